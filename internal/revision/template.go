package revision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/podtemplate"
)

// Edit is one difference between two pod templates.
type Edit struct {
	// Path leads to the field, with items of lists by what tells them apart: "spec.containers[app].resources.limits.cpu".
	Path string
	// From and To are the values: text as it is, anything else as JSON; nil where there is none.
	From, To *string
}

// Edits lists the differences between two templates, by path. Images are left out, for [Images] has them, and so is what
// controllers add: the hash of the template, Tidemark's own stamp.
func Edits(from, to *corev1.PodTemplateSpec) []Edit {
	a, b := flatten(from), flatten(to)
	var out []Edit
	for _, path := range slices.Sorted(maps.Keys(merged(a.leaves, b.leaves))) {
		before, had := a.leaves[path]
		after, has := b.leaves[path]
		if had == has && before == after || had != has && (before == empty && b.below(path) || after == empty && a.below(path)) {
			continue
		}
		e := Edit{Path: path}
		if had {
			e.From = &before
		}
		if has {
			e.To = &after
		}
		out = append(out, e)
	}
	out = append(out, reordered(a.orders, b.orders)...)
	slices.SortStableFunc(out, func(x, y Edit) int { return cmp.Compare(x.Path, y.Path) })
	return out
}

// reordered are the lists whose common items stand in another order, which counts for variables and init containers.
func reordered(a, b map[string][]string) []Edit {
	var out []Edit
	for path, before := range a {
		after := b[path]
		common := func(of, in []string) []string {
			return slices.DeleteFunc(slices.Clone(of), func(s string) bool { return !slices.Contains(in, s) })
		}
		x, y := strings.Join(common(before, after), ", "), strings.Join(common(after, before), ", ")
		if x != y {
			out = append(out, Edit{Path: path + " (order)", From: &x, To: &y})
		}
	}
	return out
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// flat is a template as paths with values.
type flat struct {
	leaves map[string]string
	// orders are the items of each list whose items have names, in order.
	orders map[string][]string
}

// empty is a field that is there, with nothing in it.
const empty = "{}"

// below reports whether there is a field below the path.
func (f flat) below(path string) bool {
	for leaf := range f.leaves {
		if strings.HasPrefix(leaf, path+".") || strings.HasPrefix(leaf, path+"[") {
			return true
		}
	}
	return false
}

// added are labels and annotations that controllers, and Tidemark, put on templates.
var added = append(podtemplate.HashLabels(), v1.AnnotationConfigHash, v1.AnnotationPins)

func flatten(t *corev1.PodTemplateSpec) flat {
	t = t.DeepCopy()
	for _, name := range added {
		delete(t.Labels, name)
		delete(t.Annotations, name)
	}
	for _, containers := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
		for i := range containers {
			containers[i].Image = ""
		}
	}
	out := flat{map[string]string{}, map[string][]string{}}
	text, err := json.Marshal(t)
	var fields map[string]any
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(fmt.Sprintf("encode template: %v", err)) // it came from JSON
	}
	out.walk("", fields)
	return out
}

func (f flat) walk(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 && path != "" {
			f.leaves[path] = empty
		}
		for name, field := range v {
			f.walk(child(path, name), field)
		}
	case []any:
		f.list(path, v)
	case string:
		f.leaves[path] = v
	case nil:
		// an empty time of creation, which is as good as none
	default:
		f.leaves[path] = asJSON(v)
	}
}

// list walks a list. One of plain values, such as the arguments of a command, is one value: its items mean something
// together.
func (f flat) list(path string, items []any) {
	var fields []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			fields = append(fields, m)
		}
	}
	if len(fields) < len(items) || len(items) == 0 {
		f.leaves[path] = asJSON(items)
		return
	}
	field, names := namesOf(fields)
	if names != nil {
		f.orders[path] = names
	}
	for i, m := range fields {
		name := fmt.Sprint(i)
		if names != nil {
			name = names[i]
			delete(m, field) // it stands in the path
		}
		f.walk(fmt.Sprintf("%s[%s]", path, name), m)
	}
}

// telling are the fields that tell the items of a list in a pod template apart, by choice.
var telling = []string{"name", "mountPath", "devicePath", "containerPort", "topologyKey", "key", "ip", "path"}

// namesOf gives each item a name of its own, with the field that it is from; nil when they have none.
func namesOf(items []map[string]any) (field string, names []string) {
	for _, field := range telling {
		names = nil
		for _, item := range items {
			value, has := item[field]
			if name := fmt.Sprint(value); has && name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(names) == len(items) {
			return field, names
		}
	}
	return "", nil
}

// child is the path to a field: with a dot, or, where its name has one, in brackets.
func child(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./"):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode value: %v", err)) // it came from JSON
	}
	return string(text)
}
