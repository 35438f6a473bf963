package keys

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// flattener gathers the settings of one file within the bounds of a file.
type flattener struct {
	key      string
	settings Settings
	names    int
	why      string
}

// flatten lists the settings of the documents of a key, or says why it does not.
func flatten(key string, documents []any) (Settings, string) {
	f := flattener{key: key, settings: Settings{}}
	for i, d := range documents {
		prefix := ""
		if i > 0 {
			prefix = fmt.Sprintf("document[%d]", i+1)
		}
		f.walk(prefix, d, 0)
	}
	if f.why != "" {
		return nil, f.why
	}
	return f.settings, ""
}

func (f *flattener) walk(path string, node any, depth int) {
	if depth > maxDepth {
		f.why = deep
	}
	if f.why != "" {
		return
	}
	switch n := node.(type) {
	case map[string]any:
		f.object(path, n, depth)
	case []any:
		f.list(path, n, depth)
	default:
		f.set(path, scalar(n))
	}
}

func (f *flattener) object(path string, m map[string]any, depth int) {
	if len(m) == 0 {
		f.set(path, Value{kind: kindEmpty})
		return
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		f.walk(join(path, k), m[k], depth+1)
	}
}

// list takes a list of scalars for one value. Of a list of anything else the elements share their settings, so that one
// element more or less changes values and removes no setting.
func (f *flattener) list(path string, list []any, depth int) {
	if slices.ContainsFunc(list, func(e any) bool { return !isScalar(e) }) {
		for _, e := range list {
			f.walk(join(path, "[]"), e, depth+1)
		}
		return
	}
	var text strings.Builder
	for _, e := range list {
		v := scalar(e)
		text.WriteString(strconv.Quote(v.text))
	}
	f.set(path, Value{kindList, text.String()})
}

func (f *flattener) set(path string, v Value) {
	p := Path{f.key, path}
	f.names += len(path)
	if len(f.settings) >= maxSettings || f.names > maxNames {
		f.why = fmt.Sprintf("has more than %d settings, or names that are too long", maxSettings)
		return
	}
	if other, repeated := f.settings[p]; repeated {
		v = Value{kindList, other.text + "\x00" + v.text}
	}
	f.settings[p] = v
}

// join puts a name below a path. One that is a URL with a user in it, and perhaps a password, has no dots at which it could be parted, and
// a part of it be shown.
func join(path, name string) string {
	if strings.Contains(name, "://") && strings.Contains(name, "@") {
		name = strings.ReplaceAll(name, ".", "\u2024")
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func scalar(v any) Value {
	switch v := v.(type) {
	case nil:
		return Value{kind: kindNull}
	case string:
		return Value{kindText, v}
	case bool:
		return Value{kindBool, strconv.FormatBool(v)}
	case json.Number:
		return Value{kindNumber, v.String()}
	}
	return Value{kindNumber, fmt.Sprint(v)}
}
