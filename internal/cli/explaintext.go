package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
)

// explanation prints an explanation for people, section by section.
type explanation struct {
	explained
	doc v1.Explanation
	out io.Writer
	err error
}

func printExplanation(out io.Writer, e explained) error {
	x := &explanation{explained: e, doc: e.document(), out: out}
	x.verdict()
	x.problems()
	x.reads()
	x.applied()
	x.pinned()
	x.pods()
	x.next()
	x.nextStart()
	x.history()
	return x.err
}

func (x *explanation) printf(format string, args ...any) {
	if x.err == nil {
		_, x.err = fmt.Fprintf(x.out, format, args...)
	}
}

// section prints a title with lines of aligned columns.
func (x *explanation) section(title string, lines [][]string) {
	x.printf("\n%s\n", title)
	if x.err != nil {
		return
	}
	w := printers.GetNewTabWriter(x.out)
	for _, l := range lines {
		fmt.Fprintln(w, "  "+row(l))
	}
	x.err = w.Flush()
}

func (x *explanation) verdict() {
	x.printf("%s in namespace %s: %s%s\n", x.Target, x.Namespace, strings.ReplaceAll(x.verdictText(), "-", " "), x.since())
	x.printf("  %s\n", x.Reason)
	x.printf("  pods: %s\n  mode %s", podsText(x.Result, true), x.Fleet.Mode)
	if by := x.Fleet.PausedBy; by != "" {
		x.printf(", paused %s", by)
	}
	x.printf("\n")
	if u := x.Result.Unfinished; u != nil && x.Verdict != fleet.LeftUnfinished {
		x.printf("  unfinished since %s: %s\n", x.when(u.Since), u.Text())
	}
}

func (x *explanation) since() string {
	if x.Since.IsZero() {
		return ""
	}
	return " since " + x.when(x.Since)
}

// when is a time with its age.
func (x *explanation) when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), duration.HumanDuration(x.sight.Now.Sub(t)))
}

func (x *explanation) problems() {
	if len(x.Problems) == 0 {
		return
	}
	var lines [][]string
	for _, p := range x.Problems {
		lines = append(lines, []string{p})
	}
	x.section("Cannot be heeded:", lines)
}

func (x *explanation) reads() {
	if len(x.doc.References) == 0 {
		x.section("Reads:", [][]string{{"no ConfigMap and no Secret"}})
		return
	}
	lines := [][]string{{"OBJECT", "BY", "CONTAINER", "KEYS", "WHERE", "NOTES"}}
	for _, r := range x.doc.References {
		container := r.Container
		switch {
		case container == "":
			container = "-"
		case r.Role != "main":
			container += " (" + r.Role + ")"
		}
		lines = append(lines, []string{
			x.relative(r.Object), r.Source, container, keysText(r), dash(r.Detail), dash(x.notes(r)),
		})
	}
	x.section("Reads:", lines)
}

func (x *explanation) notes(r v1.Reference) string {
	var notes []string
	if r.Optional && r.Rolls && r.Source != "named" {
		notes = append(notes, "optional")
	}
	if !r.Rolls {
		notes = append(notes, "does not roll")
	}
	if slices.Contains(x.doc.Ignored, r.Object) {
		notes = append(notes, "ignored")
	}
	return strings.Join(notes, ", ")
}

func (x *explanation) applied() {
	if len(x.doc.Fleet.Objects) == 0 {
		return
	}
	lines := [][]string{{"OBJECT", "VERSION", "WRITTEN", "BY", "KEYS", "NOTES"}}
	for i, o := range x.doc.Fleet.Objects {
		var notes []string
		if o.Present != nil && !*o.Present {
			notes = append(notes, "does not exist")
		}
		if o.Live {
			notes = append(notes, "reloaded by the program")
		}
		if o.Problem != "" {
			notes = append(notes, o.Problem)
		}
		keys := x.Keys[x.Fleet.Objects[i].Use.Object]
		lines = append(lines, []string{
			x.relative(o.Object), dash(shortDigest(o.Applied)), x.when(o.Written), dash(o.WrittenBy),
			dash(short(strings.Join(keys, ","), maxValue)), dash(strings.Join(notes, ", ")),
		})
	}
	x.section("Applied (the times of writes are as metadata tells them, and prove nothing):", lines)
}

// pinned shows what new pods read in place of what is applied.
func (x *explanation) pinned() {
	lines := [][]string{{"OBJECT", "SNAPSHOT", "VERSION", "APPLIED", "MADE", "NOTES"}}
	for _, o := range x.doc.Fleet.Objects {
		p := o.Pin
		if p == nil {
			continue
		}
		applied, notes := "unknown", p.Problem
		if p.Digest != "" && o.Applied != "" {
			applied = yesNo(p.Digest == o.Applied)
		}
		if p.Snapshot == v1.AbsentName {
			notes = "there was none"
		}
		if slices.Contains(x.doc.Fleet.HeldBack, o.Object) {
			notes = strings.TrimPrefix(notes+", held back", ", ")
		}
		lines = append(lines, []string{
			x.relative(o.Object), p.Snapshot, dash(shortDigest(p.Digest)), applied, x.when(p.Created), dash(notes),
		})
	}
	if len(lines) > 1 {
		x.section("Pinned (what pods of the present template read in place of the object):", lines)
	}
}

func (x *explanation) pods() {
	if len(x.doc.Fleet.Pods) == 0 {
		return
	}
	lines := [][]string{{"POD", "READY", "CONTAINER", "STARTED", "OBJECT", "LOADED", "APPLIED", "EVIDENCE", "WHY"}}
	for _, p := range x.doc.Fleet.Pods {
		lines = append(lines, x.podLines(p)...)
	}
	x.section("Pods:", lines)
}

func (x *explanation) podLines(p v1.FleetPod) [][]string {
	var lines [][]string
	pod, ready := p.Name, fmt.Sprint(p.Ready)
	line := func(columns ...string) {
		lines = append(lines, append([]string{pod, ready}, columns...))
		pod, ready = "", "" // said once
	}
	for _, c := range p.Containers {
		started := "-"
		if !c.Started.IsZero() {
			started = c.Started.Format(time.RFC3339)
		}
		for _, l := range c.Loaded {
			applied := "unknown"
			if l.Digest != "" && l.Applied != "" {
				applied = yesNo(l.Digest == l.Applied)
			}
			why := l.Why
			if l.Contradiction != "" {
				why += "; but " + l.Contradiction
			}
			if l.Snapshot == "" && slices.Contains(p.Unmatched, l.Object) {
				why += "; its pins name a copy"
			}
			line(c.Name, started, x.relative(l.Object), dash(shortDigest(l.Digest)), applied, l.Evidence, why)
		}
	}
	if len(lines) == 0 {
		line("-", "-", "-", "-", "-", "-", "no container that reads configuration runs")
	}
	return lines
}

func (x *explanation) next() {
	if len(x.doc.Next) == 0 {
		return
	}
	lines := [][]string{{"OBJECT", "KEY", "VALUE", "DIFFERENCE"}}
	for _, k := range x.doc.Next {
		lines = append(lines, []string{x.relative(k.Object), dash(k.Key), valueText(k), changeText(k)})
	}
	x.section("The next pod to start would read:", lines)
}

// nextStart is what pods of the revisions that run would read otherwise.
func (x *explanation) nextStart() {
	lines := [][]string{{"REVISION", "OBJECT", "KEY", "PODS", "RUN WITH", "WOULD READ", "NOTES"}}
	for _, s := range x.doc.Fleet.NextStart {
		for _, k := range s.Keys {
			note := k.Why
			if k.Blocks {
				note = "the pod would not start without it"
			}
			now, next := sideText(k.From, k.FromNote), sideText(k.To, k.ToNote)
			if fleet.Change(k.Change) == fleet.Unsure {
				now, next = "not known", "-"
			}
			lines = append(lines, []string{
				dash(s.Revision), x.relative(k.Object), dash(k.Key), fmt.Sprintf("%d of %d", k.Pods, s.Pods), now, next, dash(note),
			})
		}
	}
	if len(lines) > 1 {
		x.section("A pod of the same revision that starts now would read otherwise:", lines)
	}
}

// history is what Tidemark did, held and said.
func (x *explanation) history() {
	var lines [][]string
	if l := x.doc.LastAction; l != nil {
		what := "noted, without a rollout"
		if l.Action == "stamp" {
			what = "rolled"
		}
		lines = append(lines, []string{x.when(l.Time), what, l.Reason, strings.Join(l.Changed, ", ")})
	}
	if h := x.doc.Hold; h != nil {
		lines = append(lines, []string{x.when(h.Since), "held", h.Reason, ""})
	}
	for _, e := range x.doc.Events {
		lines = append(lines, []string{x.when(e.Time), "said", e.Reason, e.Message})
	}
	if len(lines) > 0 {
		x.section("Tidemark:", lines)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
