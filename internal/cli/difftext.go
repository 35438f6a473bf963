package cli

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/revision"
)

// Bounds of what a comparison shows of a value.
const (
	// longValue is the length from which a value is compared line by line.
	longValue = 120
	// maxLine bounds a line.
	maxLine = 400
	// around is how many lines are shown on each side of one that differs.
	around = 3
)

// isLong reports whether a value is shown line by line.
func isLong(value string) bool {
	return len(value) > longValue || strings.Contains(strings.TrimRight(value, "\n"), "\n")
}

// differenceText prints a difference for people.
type differenceText struct {
	difference
	out io.Writer
	err error
}

func printDifference(out io.Writer, d difference) error {
	p := &differenceText{difference: d, out: out}
	where := p.Workload.Namespace
	kind := strings.ToLower(p.Workload.Kind)
	if !p.Differs {
		p.printf("%s/%s in namespace %s: no difference between %s and %s\n", kind, p.Workload.Name, where, p.from.text(), p.to.text())
		return p.err
	}
	p.printf("%s/%s in namespace %s: from %s to %s\n", kind, p.Workload.Name, where, p.from.text(), p.to.text())
	p.images()
	p.template()
	p.configuration()
	return p.err
}

func (p *differenceText) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// section prints a title with lines of aligned columns.
func (p *differenceText) section(title string, lines [][]string) {
	if len(lines) == 0 || p.err != nil {
		return
	}
	p.printf("\n%s\n", title)
	w := printers.GetNewTabWriter(p.out)
	for _, l := range lines {
		fmt.Fprintln(w, "  "+row(l))
	}
	p.err = w.Flush()
}

func (p *differenceText) images() {
	var lines [][]string
	for _, i := range p.Images {
		lines = append(lines, []string{i.Container, fmt.Sprintf("%s → %s", orNone(i.From), orNone(i.To))})
	}
	p.section("Images:", lines)
}

func (p *differenceText) template() {
	var lines [][]string
	for _, f := range p.Template {
		change := f.Note
		if change == "" {
			change = fmt.Sprintf("%s → %s", fieldText(f.From), fieldText(f.To))
		}
		lines = append(lines, []string{f.Path, change})
	}
	p.section("Template:", lines)
}

func fieldText(value *string) string {
	switch {
	case value == nil:
		return "<none>"
	case *value == "" || strings.ContainsAny(*value, "\n\t"):
		return fmt.Sprintf("%q", short(*value, maxLine))
	}
	return short(*value, maxLine)
}

func (p *differenceText) configuration() {
	if len(p.Configuration) == 0 {
		return
	}
	p.printf("\nConfiguration:\n")
	for _, o := range p.Configuration {
		name := strings.Replace(o.Object, "/"+p.Workload.Namespace+"/", "/", 1)
		p.printf("  %s: %s → %s\n", name, o.From, o.To)
		if o.Note != "" {
			p.printf("    %s\n", o.Note)
		}
		for _, k := range o.Keys {
			p.key(o.Object, k)
		}
	}
}

func (p *differenceText) key(object string, k v1.KeyDifference) {
	text := k.Key + ": " + k.Change
	lines, long := p.lines[[2]string{object, k.Key}]
	switch {
	case k.From == nil && k.To == nil:
	case !long:
		text = fmt.Sprintf("%s: %s → %s", k.Key, quoted(k.From), quoted(k.To))
	}
	var notes []string
	if k.Note != "" {
		notes = append(notes, k.Note)
	}
	if !k.Read {
		notes = append(notes, "no container reads it")
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	p.printf("    %s\n", text)
	if long {
		p.hunks(lines)
	}
}

func quoted(value *string) string {
	if value == nil {
		return "<none>"
	}
	return fmt.Sprintf("%q", *value)
}

// hunks prints the lines that differ, with a few around them, as `diff -u` does.
func (p *differenceText) hunks(lines []revision.Line) {
	shown := make([]bool, len(lines))
	differs := false
	for i, l := range lines {
		if l.Op == ' ' {
			continue
		}
		differs = true
		for j := max(0, i-around); j <= min(len(lines)-1, i+around); j++ {
			shown[j] = true
		}
	}
	if !differs {
		p.printf("      only whether the last line has an end\n")
		return
	}
	for i, l := range lines {
		if !shown[i] {
			continue
		}
		if i == 0 || !shown[i-1] {
			p.printf("      @@ line %d → %d @@\n", max(l.From, 1), max(l.To, 1))
		}
		p.printf("      %s\n", strings.TrimRight(string(l.Op)+short(plainLine(strings.TrimRight(l.Text, "\r")), maxLine), " "))
	}
}
