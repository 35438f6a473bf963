package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"tidemark.dev/tidemark/internal/fleet"
)

// Screen is where the output goes, as far as that matters to its form.
type Screen struct {
	// Terminal says that it is one.
	Terminal bool
	// Colour says that it shows colours, and that nobody asked for none.
	Colour bool
	// Width is in columns; 80 where 0.
	Width int
}

const (
	standardWidth = 80
	// maxPictures bounds how many fleets are drawn below a table.
	maxPictures = 5
	indentation = "  "
)

// Cells of pods without a version, and of pods of versions beyond the letters.
const (
	cellUnknown  = '?'
	cellStarting = '.'
	cellMore     = '#'
)

// Colours, as ANSI numbers them: of the applied version, of older ones in turn, of pods without a version.
var (
	colourApplied = "30;42"
	coloursOlder  = []string{"30;43", "30;45", "30;46", "37;44", "37;41"}
	colourNone    = "90"
)

// group is the pods of a fleet that are drawn alike.
type group struct {
	cell   rune
	colour string
	pods   int
	// text says what they run, and since when that is applied.
	text string
}

// groups are those of a fleet, in the order of its versions.
func (j judged) groups(now time.Time) []group {
	var out []group
	running, letters, older := 0, 'A', 0
	for _, v := range j.Versions {
		g := group{cell: letters, pods: v.Pods}
		running += v.Pods
		switch {
		case v.Version == "" && v.Behind:
			g.cell, g.colour, g.text = cellUnknown, colourNone, "something else than what is applied, not known in all"
		case v.Version == "":
			g.cell, g.colour, g.text = cellUnknown, colourNone, "not known what they loaded"
		case v.Applied:
			g.colour, g.text = colourApplied, "what is applied"+sinceText(" since", v.Since, now)
		default:
			g.colour, g.text = coloursOlder[older%len(coloursOlder)], "version "+v.Version+sinceText(", which was applied from", v.Since, now)
			older++
		}
		if v.Version != "" {
			letters++
		}
		if g.cell > 'Z' {
			g.cell = cellMore
		}
		out = append(out, g)
	}
	if n := len(j.Pods) - running; n > 0 {
		out = append(out, group{cellStarting, colourNone, n, "do not run yet"})
	}
	return out
}

func sinceText(words string, since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s %s (%s ago)", words, since.UTC().Format(time.RFC3339), duration.HumanDuration(now.Sub(since)))
}

// draw draws a fleet: one cell for each pod, what the cells stand for, and the keys by which a pod that starts now differs.
func (s Screen) draw(out io.Writer, j judged, now time.Time) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in namespace %s: %s", j.Target, j.Namespace, j.verdictText())
	if !j.Since.IsZero() {
		b.WriteString(" for " + duration.HumanDuration(now.Sub(j.Since)))
	}
	b.WriteString("\n")
	groups := j.groups(now)
	for _, line := range s.cells(groups) {
		b.WriteString(indentation + line + "\n")
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "%s%s  %s %s\n", indentation, s.paint(g, 1), pods(g.pods), g.text)
	}
	for _, start := range j.nextStarts() {
		fmt.Fprintf(&b, "%sa pod of revision %s that starts now:\n", indentation, dash(start.Revision))
		for _, k := range start.Keys {
			fmt.Fprintf(&b, "%s%s%s\n", indentation, indentation, keyText(j.Namespace, k))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// cells are the lines of cells, as wide as the screen.
func (s Screen) cells(groups []group) []string {
	width := s.Width
	if width <= 0 {
		width = standardWidth
	}
	width = max(width-len(indentation), 1)
	var lines []string
	var line strings.Builder
	room := width
	for _, g := range groups {
		for left := g.pods; left > 0; {
			n := min(left, room)
			line.WriteString(s.paint(g, n))
			if left, room = left-n, room-n; room == 0 {
				lines, room = append(lines, line.String()), width
				line.Reset()
			}
		}
	}
	if line.Len() > 0 {
		lines = append(lines, line.String())
	}
	return lines
}

// paint gives n cells of a group.
func (s Screen) paint(g group, n int) string {
	text := strings.Repeat(string(g.cell), n)
	if !s.Colour {
		return text
	}
	return "\x1b[" + g.colour + "m" + text + "\x1b[0m"
}

func pods(n int) string {
	if n == 1 {
		return "1 pod:"
	}
	return fmt.Sprintf("%d pods:", n)
}

// drawAll draws all fleets with pods, or, below a table, a few of those that are not in step.
func (s Screen) drawAll(out io.Writer, fleets []judged, now time.Time, below bool) error {
	drawn, left := 0, 0
	for _, j := range fleets {
		switch {
		case len(j.Pods) == 0, below && (j.Verdict == fleet.InStep || j.Verdict == fleet.Unknown):
			continue
		case below && drawn == maxPictures:
			left++
			continue
		}
		if drawn > 0 || below {
			fmt.Fprintln(out)
		}
		if err := s.draw(out, j, now); err != nil {
			return err
		}
		drawn++
	}
	if left > 0 {
		_, err := fmt.Fprintf(out, "\n%d more are not in step: -o fleet draws all.\n", left)
		return err
	}
	return nil
}
