package webhook

import (
	"maps"
	"slices"
	"strings"

	"tidemark.dev/tidemark/internal/cluster"
)

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// part is a map of an object that a patch changes.
type part struct {
	path   []string
	values map[string]*string
}

func parts(kind cluster.Kind, p cluster.Patch) []part {
	return []part{
		{[]string{"metadata", "annotations"}, p.Annotations},
		{[]string{"metadata", "labels"}, p.Labels},
		{append(slices.Clone(kind.TemplatePath), "metadata", "annotations"), p.TemplateAnnotations},
	}
}

// operations turn a patch into steps that change the object into what the patch makes of it, and touch nothing else. A patch
// that makes nothing new has no steps.
func operations(object map[string]any, kind cluster.Kind, p cluster.Patch) []operation {
	var out []operation
	for _, part := range parts(kind, p) {
		if len(part.values) > 0 {
			out = append(out, setAll(object, part.path, part.values)...)
		}
	}
	return out
}

// setAll sets the values in the map at the path, and removes those that are nil.
func setAll(object map[string]any, path []string, values map[string]*string) []operation {
	there := object
	for i, field := range path {
		inner, ok := there[field].(map[string]any)
		if !ok || len(inner) == 0 {
			return addMap(path[:i+1], path[i+1:], values)
		}
		there = inner
	}
	var out []operation
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at, value := pointer(append(slices.Clone(path), key)), values[key]
		old, has := there[key]
		switch {
		case value == nil && has:
			out = append(out, operation{Op: "remove", Path: at})
		case value != nil && old != *value:
			out = append(out, operation{Op: "add", Path: at, Value: *value})
		}
	}
	return out
}

// addMap adds the values where nothing is: at a path whose parent is there, below the fields that are not there either.
func addMap(at, below []string, values map[string]*string) []operation {
	set := map[string]any{}
	for key, value := range values {
		if value != nil {
			set[key] = *value
		}
	}
	if len(set) == 0 {
		return nil
	}
	for _, field := range slices.Backward(below) {
		set = map[string]any{field: set}
	}
	return []operation{{Op: "add", Path: pointer(at), Value: set}}
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// pointer writes a path as a JSON pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, field := range path {
		b.WriteString("/" + escape.Replace(field))
	}
	return b.String()
}
