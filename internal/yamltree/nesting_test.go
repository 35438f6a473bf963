package yamltree_test

import (
	"testing"

	"tidemark.dev/tidemark/internal/yamltree"
)

func TestNesting(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "none": 0, "[1]": 1, "[{}]": 2, "[][]{}": 1, "]]][[": 2, "(((": 0, "{[{[": 4,
	} {
		if got := yamltree.Nesting(text, [2]byte{'[', '{'}, [2]byte{']', '}'}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
