// Package keys compares configuration by its settings: the keys of config objects, with those inside files that keys hold.
package keys

import (
	"cmp"
	"maps"
	"slices"
)

// Path names a setting: a key of a config object and, where the key holds a file that is understood, the setting inside it.
type Path struct {
	// Key of the config object.
	Key string
	// Setting inside the file, its parts separated by dots; "" for the whole value of the key. Elements of a list have the
	// part "[]" in common. The second document of a YAML stream begins with "document[2]", and so on.
	Setting string
}

// String gives "KEY" or "KEY:SETTING". No key of a config object has a colon.
func (p Path) String() string {
	if p.Setting == "" {
		return p.Key
	}
	return p.Key + ":" + p.Setting
}

// Compare orders paths by key, then setting.
func (p Path) Compare(q Path) int {
	return cmp.Or(cmp.Compare(p.Key, q.Key), cmp.Compare(p.Setting, q.Setting))
}

// Value is the value of a setting. It can be compared, and prints as nothing, so that no message shows it by accident.
type Value struct{ kind, text string }

// String hides the value.
func (Value) String() string { return "(value)" }

// GoString hides the value.
func (Value) GoString() string { return "(value)" }

// Reveal gives the text of the value; what the caller makes of it must not show it.
func (v Value) Reveal() string { return v.text }

// NewValue makes the value that a key without a file has.
func NewValue(text string) Value { return Value{kindText, text} }

// The kinds of values.
const (
	kindText   = "text"
	kindNumber = "number"
	kindBool   = "bool"
	kindNull   = "null"
	kindList   = "list"
	kindEmpty  = "empty"
)

// Settings are settings with their values.
type Settings map[Path]Value

// Sorted lists the paths in the order of [Path.Compare].
func (s Settings) Sorted() []Path { return slices.SortedFunc(maps.Keys(s), Path.Compare) }

// Opaque is a key whose value is compared as a whole, although its name says that it is a file with settings.
type Opaque struct {
	Key string
	// Why in words that follow "because it"; it has nothing of the value.
	Why string
}

// Flatten lists the settings of the data of a config object, and the keys that it could not look into, sorted.
func Flatten(data map[string]string) (Settings, []Opaque) {
	settings := make(Settings, len(data))
	var opaque []Opaque
	for _, key := range slices.Sorted(maps.Keys(data)) {
		f := Parse(key, data[key])
		if f.Opaque != "" {
			opaque = append(opaque, Opaque{key, f.Opaque})
		}
		if f.settings == nil {
			settings[Path{Key: key}] = NewValue(data[key])
		}
		if len(settings) == 0 && f.settings != nil {
			settings = f.settings // the whole object, mostly: none of it is copied
			continue
		}
		maps.Copy(settings, f.settings)
	}
	return settings, opaque
}
