package yamltree_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"tidemark.dev/tidemark/internal/yamltree"
)

func TestValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"scalars have their types":              {"a: 1\nb: 1.50\nc: true\nd: ~\ne: yes\nf: 0x10\ng: .inf\nh: 2020-01-01\ni: 007\n", `{"a":1,"b":1.50,"c":true,"d":null,"e":"yes","f":16,"g":".inf","h":"2020-01-01","i":7}`},
		"text in quotes is text":                {"a: \"1\"\nb: 'true'\n", `{"a":"1","b":"true"}`},
		"an alias has the value of its anchor":  {"a: &x [1, 2]\nb: *x\n", `{"a":[1,2],"b":[1,2]}`},
		"what is merged is overridden":          {"a: &x {k: 1, l: 2}\nb: {k: 3, <<: *x}\n", `{"a":{"k":1,"l":2},"b":{"k":3,"l":2}}`},
		"the first of several merged maps wins": {"a: &x {k: 1}\nb: &y {k: 2, m: 4}\nc: {<<: [*x, *y]}\n", `{"a":{"k":1},"b":{"k":2,"m":4},"c":{"k":1,"m":4}}`},
		"a key that is an alias":                {"a: &k name\n*k : 1\n", `{"a":"name","name":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := value(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := json.Marshal(v); string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestValueRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"a key that is there twice":         {"a: 1\na: 2\n", nil},
		"a key that is a list":              {"? [a]\n: 1\n", nil},
		"a merge of a scalar":               {"<<: 1\n", nil},
		"an alias within its own value":     {"a: &a [*a]\n", yamltree.ErrDeep},
		"maps that nest too deeply":         {strings.Repeat("{a: ", 300) + strings.Repeat("}", 300), yamltree.ErrDeep},
		"aliases that expand without end":   {bomb(), yamltree.ErrAliases},
		"an alias merged into itself":       {"a: &a {<<: *a}\n", yamltree.ErrDeep},
		"more levels than the parser takes": {strings.Repeat("[", 100_000), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := value(c.text); err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// The parser has no line for them.
func TestWhatIsNoTextIsPlaced(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a: b\nc: \"\xff\"\n", "a: b\nc: \x00\n", "a: b\nc: d\x1be\n"} {
		var placed *yamltree.Error
		if _, err := yamltree.Parse(text); !errors.Is(err, yamltree.ErrNoText) || !errors.As(err, &placed) || placed.Line != 2 {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := yamltree.Parse("a: [\n"); !errors.Is(err, yamltree.ErrSyntax) {
		t.Errorf("of text: %v", err)
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'm'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 10) + "]\n")
	}
	return b.String()
}

func value(text string) (any, error) {
	documents, err := yamltree.Parse(text)
	if err != nil {
		return nil, err
	}
	return yamltree.Value(documents[0])
}

// FuzzValue reads whatever parses, which must end, and have no value that JSON cannot write.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{"a: 1", bomb(), "<<: *x", "&a a: *a", "a: !!binary x", "? {a: b}\n: c", "- !!float .nan", "!!int x", "!!null x: 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		documents, err := yamltree.Parse(text)
		if err != nil {
			return
		}
		for _, d := range documents {
			v, err := yamltree.Value(d)
			if err != nil {
				continue
			}
			if _, err := json.Marshal(v); err != nil {
				t.Error(err)
			}
		}
	})
}
