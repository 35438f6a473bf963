package keys_test

import (
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/keys"
)

// FuzzParse reads whatever a key may hold, in each format, and checks what every reading owes: no parser fails, nothing of the
// value is in a reason, and a file does not differ from itself.
func FuzzParse(f *testing.F) {
	names := []string{"a.yaml", "a.json", "a.toml", "a.properties", "a.ini", "a.env", "config"}
	for i := range names {
		for _, seed := range []string{
			"", "a: 1\nb: [x, {c: d}]\n---\ne: &f {g: h}\ni: *f\n", `{"a": {"b": [1, "x", null]}}`, "[a]\nb = 1\n[[c]]\nd = 1979-05-27\n",
			"a.b=c\\\n d\n\\u0041: x\n", "[s]\nk = v ; note\n", "export A=\"x\\ny\"\nB=${A}\n", "{{ template }}", "\x00\xff\xfe", "a: *a", "? ? ? x",
			"<<: *x", "a: !!binary x", "[[[[[[", "a = '''", "%YAML 1.1\n---\n", "- - - - -", "\\", "=", ":", "[]", "&a a: *a",
			"A=xxxxxxxx\n" + strings.Repeat("A=$A${A}\n", 30), "A=\"\\$A\"\nB='$A'\nC=$(A)\n",
		} {
			f.Add(i, seed)
		}
	}
	f.Fuzz(func(t *testing.T, i int, text string) {
		name := names[uint(i)%uint(len(names))]
		file := keys.Parse(name, text)
		if strings.Contains(file.Opaque, "parser fail") {
			t.Fatalf("%s: %s", name, file.Opaque)
		}
		if file.Opaque != "" && len(file.Documents) > 0 {
			t.Error("an opaque file has documents")
		}
		one, _ := keys.Flatten(map[string]string{name: text})
		two, _ := keys.Flatten(map[string]string{name: text})
		if changes := keys.Compare(one, two, keys.Options{}); len(changes) > 0 {
			t.Errorf("it differs from itself: %v", changes)
		}
		for _, c := range keys.Compare(one, keys.Settings{}, keys.Options{}) {
			if c.Kind != keys.Removed {
				t.Errorf("of what is removed, %v is %s", c.Path, c.Kind)
			}
		}
	})
}
