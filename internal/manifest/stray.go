package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/yamltree"
)

// Stray is a field of a pod template that the API does not know, and drops.
type Stray struct {
	Position

	// Path of what has the field, in the object, as "spec.template.spec.containers[0]".
	Path string
	Name string
	// Known are the fields that there are, sorted.
	Known []string
}

// maxStrays is how many stray fields of one workload are told.
const maxStrays = 100

// strays takes fields that are none out of a pod template, as the API does, and keeps where they are. Go's decoder would take them for
// fields: it does not look at the case of letters.
type strays struct {
	found []Stray
}

// strays of a workload. Kinds that are not Kubernetes' own may have more in their templates.
func (r *reader) strays(n *yaml.Node, template map[string]any, w *Workload) []Stray {
	if !slices.ContainsFunc(Kinds(), w.Kind.sameAs) {
		return nil
	}
	for _, f := range w.Kind.TemplatePath {
		n = fieldOf(n, f)
	}
	s := &strays{}
	if path := strings.Join(w.Kind.TemplatePath, "."); path != "" {
		s.value(path, template, n, reflect.TypeFor[corev1.PodTemplateSpec]())
	} else {
		s.object("", template, n, reflect.TypeFor[corev1.Pod]())
	}
	for i := range s.found {
		at := w.Position
		if line := s.found[i].Line; line > 0 {
			at.Line = r.at.Line + line - 1
		}
		s.found[i].Position = at
	}
	return s.found
}

func (s *strays) value(path string, value any, n *yaml.Node, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := value.(type) {
	case map[string]any:
		if t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			s.object(path, value, n, t)
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i, element := range value {
			var below *yaml.Node
			if n != nil && i < len(n.Content) {
				below = yamltree.Resolve(n.Content[i])
			}
			s.value(fmt.Sprintf("%s[%d]", path, i), element, below, t.Elem())
		}
	}
}

func (s *strays) object(path string, m map[string]any, n *yaml.Node, t reflect.Type) {
	known := fieldsOf(t)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if of, is := known[name]; is {
			s.value(strings.TrimPrefix(path+"."+name, "."), m[name], fieldOf(n, name), of)
			continue
		}
		if m[name] != nil && len(s.found) < maxStrays { // null decides nothing
			s.found = append(s.found, Stray{Position{Line: lineOf(n, name)}, path, name, slices.Sorted(maps.Keys(known))})
		}
		delete(m, name)
	}
}

// known are the types of the fields of structs, by the names that JSON has.
var known sync.Map

func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if fields, is := known.Load(t); is {
		return fields.(map[string]reflect.Type) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case name == "" && f.Anonymous:
			maps.Copy(fields, fieldsOf(f.Type))
		case name != "" && name != "-":
			fields[name] = f.Type
		}
	}
	known.Store(t, fields)
	return fields
}

// fieldOf is the value of a field; nil where the field is merged in from elsewhere.
func fieldOf(n *yaml.Node, name string) *yaml.Node {
	if n == nil {
		return nil
	}
	return field(n, name)
}

// lineOf is the line of a field's name; 0 where the field is merged in from elsewhere.
func lineOf(n *yaml.Node, name string) int {
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		if k := yamltree.Resolve(n.Content[i]); k.Value == name {
			return k.Line
		}
	}
	return 0
}
