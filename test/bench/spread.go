package main

import (
	"fmt"
	"slices"
	"time"
)

// spread is a figure taken several times.
type spread []float64

func (s spread) sorted() []float64 {
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	return sorted
}

func (s spread) median() float64 {
	sorted, n := s.sorted(), len(s)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// over divides each figure by the one of the same round.
func (s spread) over(base spread) spread {
	var out spread
	for i := range min(len(s), len(base)) {
		out = append(out, s[i]/base[i])
	}
	return out
}

// text gives the median, with the lowest and the highest beside it.
func (s spread) text(format, unit string) string {
	if len(s) == 0 {
		return ""
	}
	sorted := s.sorted()
	return fmt.Sprintf(format+unit+" ("+format+"–"+format+")", s.median(), sorted[0], sorted[len(sorted)-1])
}

func (s spread) seconds() string { return s.text("%.2f", " s") }

func (s spread) ratio() string { return s.text("%.2f", "×") }

func (s *spread) add(d time.Duration) { *s = append(*s, d.Seconds()) }

// grouped writes a number with commas between the thousands.
func grouped[T int | int64](n T) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
