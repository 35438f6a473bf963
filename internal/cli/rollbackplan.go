package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tidemark.dev/tidemark/internal/cluster/revisions"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// rollbackPlan is what a rollback is going to do.
type rollbackPlan struct {
	to revision.Revision
	// nothing says that the workload is there already.
	nothing bool
	// changes are the images and copies that change, for people; remarks are what they should know.
	changes, remarks []string
	sources          []revisions.SourceChange
}

// planRollback decides where to go, and whether that is possible. The number is that of the revision, 0 for a choice.
func planRollback(h *revisions.History, number int64) (rollbackPlan, error) {
	to, remarks, err := rollbackTarget(h, number)
	if err != nil {
		return rollbackPlan{}, err
	}
	p := rollbackPlan{to: to, remarks: remarks, nothing: to.Current}
	if to.Current {
		return p, nil
	}
	if h.Paused {
		return rollbackPlan{}, fmt.Errorf("%s is paused (spec.paused), so it would not roll: resume it first%s", h.Target, resumeText(h))
	}
	reached := to.Reached(h.Copies)
	switch reached.Reach {
	case revision.OutOf, revision.ReachOpen:
		return rollbackPlan{}, unreachable(h, to)
	case revision.NotPinned, revision.InPart:
		p.remarks = append(p.remarks, appliedText(h, to, reached.Applied))
	case revision.InFull:
	}
	if h.Owner != "" {
		p.remarks = append(p.remarks, fmt.Sprintf("%s controls %s, and may put its own template back", h.Owner, h.Target))
	}
	if h.Manager != "" && h.Manager != "Helm" { // Helm writes when somebody runs it
		p.remarks = append(p.remarks, fmt.Sprintf("%s manages %s, and may put the template back that it knows", h.Manager, h.Target))
	}
	if current, has := revision.Current(h.Revisions); has {
		p.changes = changesText(h, current, to)
	}
	return p, nil
}

// rollbackTarget finds the revision of the number, or chooses one; what speaks against the choice is remarked.
func rollbackTarget(h *revisions.History, number int64) (revision.Revision, []string, error) {
	if number > 0 {
		r, err := revision.Find(h.Revisions, number)
		if err != nil {
			return r, nil, fmt.Errorf("%s: %w", h.Target, err)
		}
		if r.Availability == revision.Never {
			return r, []string{fmt.Sprintf("revision %s: %s", r.Text(), r.Evidence)}, nil
		}
		return r, nil, nil
	}
	choice, has := revision.Previous(h.Revisions)
	if !has {
		if len(h.Revisions) > 1 {
			return revision.Revision{}, nil, fmt.Errorf("no other revision of %s ever had a pod: name one with --to-revision", h.Target)
		}
		return revision.Revision{}, nil, fmt.Errorf("%s has no other revision to go back to", h.Target)
	}
	var remarks []string
	for _, r := range choice.Passed {
		why := "nothing shows that a pod of it was ever available"
		if r.Availability == revision.Never {
			why = r.Evidence
		}
		remarks = append(remarks, fmt.Sprintf("revision %s is passed over: %s; --to-revision %[1]s goes there all the same", r.Text(), why))
	}
	if choice.Target.Availability == revision.Unknown {
		remarks = append(remarks, fmt.Sprintf("nothing shows that a pod of revision %s was ever available: %s", choice.Target.Text(), choice.Target.Evidence))
	}
	return choice.Target, remarks, nil
}

func resumeText(h *revisions.History) string {
	if h.Kind.GroupVersionKind.Kind == "Deployment" {
		return fmt.Sprintf(" with `kubectl rollout resume %s`", h.Target)
	}
	return ""
}

// unreachable says why a revision cannot be brought back, and which can.
func unreachable(h *revisions.History, to revision.Revision) error {
	text := fmt.Sprintf("revision %s of %s cannot be brought back in full, so nothing is written: %s", to.Text(), h.Target, whyUnreachable(h, to))
	var whole []string
	for _, r := range h.Revisions {
		if !r.Current && r.Number > 0 && r.Reached(h.Copies).Reach == revision.InFull {
			whole = append(whole, revision.Number(r.Number))
		}
	}
	if len(whole) > 0 {
		text += "; those that can be are " + strings.Join(whole, ", ")
	}
	return errors.New(text)
}

func whyUnreachable(h *revisions.History, to revision.Revision) string {
	reached := to.Reached(h.Copies)
	switch {
	case len(reached.Gone) > 0:
		return whyNot(h, reached.Gone)
	case to.PinsProblem != "":
		return to.PinsProblem
	}
	return whyNot(h, reached.Open)
}

// appliedText says of the objects that a revision does not pin whether what is applied is what it was released with, as far
// as Tidemark noted that.
func appliedText(h *revisions.History, to revision.Revision, readings []revision.Reading) string {
	text := fmt.Sprintf("revision %s does not pin %s, so its pods read what is applied", to.Text(), objects(h, readings))
	stood, known := stoodFor(h.Record, to.Stamp())
	var differ, open []revision.Reading
	for _, r := range readings {
		key := r.Object.Relative(h.Namespace)
		before, now := stood[key], digest.Digest("")
		if known && !h.Record.Objects[key].HeldBack {
			now = h.Record.Objects[key].Stamped
		}
		switch {
		case !digest.Comparable(before, now):
			open = append(open, r)
		case before != now:
			differ = append(differ, r)
		}
	}
	switch {
	case len(differ) > 0:
		return text + "; not what it was released with: " + objects(h, differ)
	case len(open) > 0:
		return text + "; whether that is what it was released with is not known"
	}
	return text + ", which is what it was released with"
}

// stoodFor gives the digests that a stamp stood for, by the record on the workload.
func stoodFor(record *stamp.Record, text string) (map[string]digest.Digest, bool) {
	if record == nil {
		return nil, false
	}
	if record.Stamp == text {
		out := map[string]digest.Digest{}
		for key, o := range record.Objects {
			out[key] = o.Stamped
		}
		return out, true
	}
	i := slices.IndexFunc(record.Earlier, func(e stamp.EarlierStamp) bool { return e.Stamp == text })
	if i < 0 {
		return nil, false
	}
	return record.Earlier[i].Objects, true
}

// changesText lists the images and the places of configuration that change.
func changesText(h *revisions.History, from, to revision.Revision) []string {
	var out []string
	before := map[string]string{}
	for _, i := range revision.Images(from.Template) {
		before[i.Container] = i.Image
	}
	for _, i := range revision.Images(to.Template) {
		if before[i.Container] != i.Image {
			out = append(out, fmt.Sprintf("image of %s: %s → %s", i.Container, orNone(before[i.Container]), i.Image))
		}
	}
	a, b := from.Readings(), to.Readings()
	for _, o := range revision.Merge(a, b) {
		x, y := placeText(h, a, o), placeText(h, b, o)
		if x != y {
			out = append(out, fmt.Sprintf("%s: %s → %s", o.Relative(h.Namespace), x, y))
		}
	}
	return out
}

// placeText words where an object is read: "copy web-x7k2m9 (3)".
func placeText(h *revisions.History, readings []revision.Reading, o workload.Object) string {
	r, has := readingOf(readings, o)
	if !has {
		return "not read"
	}
	copied, is := r.Copy()
	if !is {
		return version(h, r)
	}
	text := "copy " + copied.Name
	if n := h.Copies.Of(copied).Revision; n > 0 {
		text += fmt.Sprintf(" (%d)", n)
	}
	return text
}
