package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
)

// fleetTable prints fleets as lines of aligned columns. Widths are kept between flushes, so that the lines of a watch
// align with those before.
type fleetTable struct {
	w interface {
		io.Writer
		Flush() error
	}
	withContext, withNamespace, wide bool
}

func newFleetTable(out io.Writer, withNamespace, wide bool) *fleetTable {
	return &fleetTable{w: printers.GetNewTabWriter(out), withNamespace: withNamespace, wide: wide}
}

func (t *fleetTable) header() {
	columns := []string{"WORKLOAD", "MODE", "VERDICT", "AGE", "PODS", "REASON"}
	if t.wide {
		columns = []string{"WORKLOAD", "MODE", "VERDICT", "AGE", "SINCE", "PODS", "HELD-BACK", "NEXT-START", "REASON"}
	}
	t.line("CONTEXT", "NAMESPACE", columns)
}

func (t *fleetTable) row(j judged, now time.Time) {
	age, since := "<unknown>", "<unknown>"
	if !j.Since.IsZero() {
		age, since = duration.HumanDuration(now.Sub(j.Since)), j.Since.UTC().Format(time.RFC3339)
	}
	columns := []string{j.String(), j.modeText(), j.verdictText(), age, podsText(j.Result, t.wide), short(j.reasonText(), maxReason)}
	if t.wide {
		heldBack := "<none>"
		if len(j.HeldBack) > 0 {
			heldBack = strings.Join(names(j.HeldBack), ",")
		}
		columns = []string{
			j.String(), j.modeText(), j.verdictText(), age, since, podsText(j.Result, true), heldBack, j.nextStartText(), j.reasonText(),
		}
	}
	t.line(j.context, j.Namespace, columns)
}

// gone prints a line for a fleet whose workload is no more.
func (t *fleetTable) gone(w cluster.Target) {
	columns := []string{w.String(), "-", verdictGone, "-", "-", reasonGone}
	if t.wide {
		columns = []string{w.String(), "-", verdictGone, "-", "-", "-", "-", "-", reasonGone}
	}
	t.line("", w.Namespace, columns)
}

func (t *fleetTable) line(context, namespace string, columns []string) {
	if t.withNamespace {
		columns = append([]string{namespace}, columns...)
	}
	if t.withContext {
		columns = append([]string{context}, columns...)
	}
	fmt.Fprintln(t.w, strings.Join(columns, "\t"))
}

func (t *fleetTable) flush() error { return t.w.Flush() }

// printNames prints the fleets' workloads as arguments that this program and kubectl take.
func printNames(out io.Writer, fleets []judged) error {
	for _, j := range fleets {
		name := j.Kind.Lower()
		if j.Kind.Group != "" {
			name += "." + j.Kind.Group
		}
		if _, err := fmt.Fprintf(out, "%s/%s\n", name, j.Name); err != nil {
			return err
		}
	}
	return nil
}

// maxReason bounds the reason in a table that is not wide.
const maxReason = 100

// short cuts a text for people.
func short(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

func (j judged) modeText() string {
	mode := cmp.Or(string(j.Fleet.Mode), "-")
	if j.Fleet.Paused {
		mode += ",paused"
	}
	return mode
}

func (j judged) verdictText() string {
	if j.Possibly != "" {
		return "possibly-" + string(j.Possibly)
	}
	return string(j.Verdict)
}

// reasonText is the reason, after what is wrong with the workload's annotations.
func (j judged) reasonText() string {
	return strings.Join(append([]string{j.Reason}, j.Problems...), "; ")
}

// podsText counts the pods by what they run: "18 applied, 6 older, 1 unknown, 1 starting". Each older version is told by
// its own mark in a wide table.
func podsText(r fleet.Result, wide bool) string {
	var words []string
	applied, older, unknown := 0, 0, 0
	var marked []string
	for _, v := range r.Versions {
		switch {
		case v.Applied:
			applied += v.Pods
		case v.Version == "" && !v.Behind:
			unknown += v.Pods
		case v.Version == "":
			older += v.Pods
			marked = append(marked, fmt.Sprintf("%d older", v.Pods))
		default:
			older += v.Pods
			marked = append(marked, fmt.Sprintf("%d older(%s)", v.Pods, v.Version))
		}
	}
	count := func(n int, what string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, what))
		}
	}
	count(applied, "applied")
	if wide {
		words = append(words, marked...)
	} else {
		count(older, "older")
	}
	count(unknown, "unknown")
	count(len(r.Pods)-applied-older-unknown, "starting")
	if len(words) == 0 {
		return "0"
	}
	return strings.Join(words, ", ")
}
