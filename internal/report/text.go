package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"tidemark.dev/tidemark/internal/check"
)

// text writes the report for people; wide also what is excused, and the matrix.
func (r Report) text(w io.Writer, wide bool) error {
	var b strings.Builder
	errors, warnings, excused := 0, 0, 0
	for _, f := range r.Findings {
		switch {
		case f.Excused != nil:
			excused++
		case f.Severity == check.Error:
			errors++
		default:
			warnings++
		}
		if f.Excused == nil || wide {
			finding(&b, f)
		}
	}
	if wide {
		r.matrix(&b)
	}
	if compared := r.compared(); errors+warnings == 0 {
		fmt.Fprintf(&b, "No findings in %s%s.", Plain(r.After), compared)
	} else {
		fmt.Fprintf(&b, "%s in %s%s: %s, %s.", count(errors+warnings, "finding"), Plain(r.After), compared, count(errors, "error"), count(warnings, "warning"))
	}
	if excused > 0 {
		fmt.Fprintf(&b, " %d excused.", excused)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) compared() string {
	if len(r.Before) == 0 {
		return ", compared with nothing"
	}
	return ", compared with " + Plain(strings.Join(r.Before, ", "))
}

// hides reports whether a character acts on what is around it rather than being seen: control characters, those that turn the direction of
// writing, those that end lines elsewhere.
func hides(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Plain is a text without control characters. Names of files and keys are those of whoever wrote the manifests: in a terminal they
// could paint over what is said, in a pipeline's log begin a line that means something to it.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if hides(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func finding(b *strings.Builder, f check.Finding) {
	fmt.Fprintf(b, "%s: %s: %s\n  %s", Plain(f.At.String()), f.Severity, f.Rule, Plain(f.Object))
	if f.Key != "" {
		fmt.Fprintf(b, "  %s", Plain(f.Key))
	}
	if f.To != "" {
		fmt.Fprintf(b, " → %s", Plain(f.To))
	}
	if f.Workload != "" && f.Workload != f.Object {
		fmt.Fprintf(b, "  read by %s", Plain(f.Workload))
	}
	fmt.Fprintf(b, "  (%s)\n  %s\n  Fix: %s\n", f.Confidence, Plain(f.Why), Plain(f.Fix))
	if f.Excused != nil {
		fmt.Fprintf(b, "  Excused until %s: %s\n", f.Excused.Until.Format(time.DateOnly), Plain(f.Excused.Reason))
	}
	b.WriteByte('\n')
}

// matrix writes which revision could read which configuration.
func (r Report) matrix(b *strings.Builder) {
	if len(r.Matrix) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "WORKLOAD\tREVISION\tCONFIGURATION\tOUTCOME\tWHY")
	for _, c := range r.Matrix {
		why := c.Why
		if why == "" {
			why = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", Plain(c.Workload), Plain(c.Revision), Plain(c.Configuration), c.Outcome, Plain(why))
	}
	_ = t.Flush() // into memory
	b.WriteByte('\n')
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
