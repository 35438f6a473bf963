package revision

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func shown(lines []Line) []string {
	var out []string
	for _, l := range lines {
		out = append(out, string(l.Op)+l.Text)
	}
	return out
}

func TestLinesComparesLineByLine(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     []string
	}{
		"nothing":           {"", "", nil},
		"from nothing":      {"", "a\nb\n", []string{"+a", "+b"}},
		"to nothing":        {"a", "", []string{"-a"}},
		"one in the middle": {"a\nb\nc\n", "a\nx\nc\n", []string{" a", "-b", "+x", " c"}},
		"one more":          {"a\nc\n", "a\nb\nc\n", []string{" a", "+b", " c"}},
		"moved":             {"a\nb\nc\n", "b\nc\na\n", []string{"-a", " b", " c", "+a"}},
		"the end of a line": {"a", "a\n", []string{" a"}},
		"empty lines count": {"a\n\n\nb", "a\n\nb", []string{" a", " ", "-", " b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, shown(Lines(tc.from, tc.to))); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinesHoldBothTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(string(rune('a'+random.IntN(4))) + "\n")
		}
		return b.String()
	}
	for range 300 {
		from, to := text(random.IntN(30)), text(random.IntN(30))
		check(t, from, to)
	}
	check(t, strings.Repeat("a\n", 3000), strings.Repeat("b\n", 3000)) // too long to compare
}

func check(t *testing.T, from, to string) {
	t.Helper()
	var a, b strings.Builder
	for _, l := range Lines(from, to) {
		if l.Op != '+' {
			a.WriteString(l.Text + "\n")
		}
		if l.Op != '-' {
			b.WriteString(l.Text + "\n")
		}
		if n := strings.Count(a.String(), "\n"); n != l.From {
			t.Fatalf("line %q is number %d of the first text, want %d", l.Text, l.From, n)
		}
	}
	if a.String() != from || b.String() != to {
		t.Fatalf("from %q to %q: the lines hold %q and %q", from, to, a.String(), b.String())
	}
}

func TestKeys(t *testing.T) {
	content := func(binary string, data ...string) Content {
		c := Content{Present: true, Data: map[string][]byte{}, Binary: map[string]bool{binary: true}}
		for _, d := range data {
			k, v, _ := strings.Cut(d, "=")
			c.Data[k] = []byte(v)
		}
		return c
	}
	got := Keys(content("", "a=1", "b=1", "c=1", "moved=1"), content("moved", "b=2", "c=1", "d=", "moved=1"))
	want := []KeyChange{
		{"a", Removed, []byte("1"), nil}, {"b", Changed, []byte("1"), []byte("2")},
		{"d", Added, nil, []byte{}}, {"moved", Changed, []byte("1"), []byte("1")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if got := Keys(Content{}, Content{}); len(got) > 0 {
		t.Errorf("of nothing: %v", got)
	}
}
