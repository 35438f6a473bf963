package revision

import "strings"

// Line is a line of two texts beside each other: ' ' in both, '-' in the first, '+' in the second.
type Line struct {
	Op   byte
	Text string
	// From and To are its numbers in the two texts, from 1 on; where it is in one only, the other has that of the line
	// before.
	From, To int
}

// costliest bounds the work, and memory, of comparing two texts line by line: the product of their lengths.
const costliest = 4_000_000

// Lines compares two texts line by line. Where what differs is too long to be compared it is all of the first text and
// then all of the second.
func Lines(from, to string) []Line {
	a, b := split(from), split(to)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []Line
	w := lineWriter{out: &out}
	w.both(a[:head])
	w.middle(a[head:len(a)-tail], b[head:len(b)-tail])
	w.both(a[len(a)-tail:])
	return out
}

// split cuts a text into lines; an end of line at the end is none of its own.
func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

type lineWriter struct {
	out      *[]Line
	from, to int
}

func (w *lineWriter) add(op byte, text string) {
	if op != '+' {
		w.from++
	}
	if op != '-' {
		w.to++
	}
	*w.out = append(*w.out, Line{op, text, w.from, w.to})
}

func (w *lineWriter) both(lines []string) {
	for _, l := range lines {
		w.add(' ', l)
	}
}

// middle writes what differs, by the longest sequence of lines that both have.
func (w *lineWriter) middle(a, b []string) {
	if len(a)*len(b) > costliest {
		for _, l := range a {
			w.add('-', l)
		}
		for _, l := range b {
			w.add('+', l)
		}
		return
	}
	longest := table(a, b)
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			w.add(' ', a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			w.add('-', a[i])
			i++
		default:
			w.add('+', b[j])
			j++
		}
	}
}

// table gives, for each pair of places, how many lines what follows them has in common.
func table(a, b []string) [][]int32 {
	longest := make([][]int32, len(a)+1)
	for i := range longest {
		longest[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	return longest
}
