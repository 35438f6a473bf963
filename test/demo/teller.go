package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// teller tells what happens to the reader.
type teller struct{ out io.Writer }

func (t teller) heading(title string) { fmt.Fprintf(t.out, "\n%s\n", title) }

// step tells something that was done, with what came of it.
func (t teller) step(what, outcome string, args ...any) {
	fmt.Fprintf(t.out, "  %-58s %s\n", what, fmt.Sprintf(outcome, args...))
}

// command shows a command with its output.
func (t teller) command(line, output string) {
	fmt.Fprintf(t.out, "  $ %s\n", line)
	for text := range strings.Lines(strings.TrimRight(output, "\n")) {
		fmt.Fprintf(t.out, "    %s\n", strings.TrimRight(text, "\n"))
	}
}

// tally words counts by value, the most frequent first: "18 × 10m, 6 × 2m".
func tally(counts map[string]int) string {
	values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	words := make([]string, 0, len(values))
	for _, v := range values {
		words = append(words, fmt.Sprintf("%d × %s", counts[v], v))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
