package stamp

import (
	"maps"
	"slices"

	"tidemark.dev/tidemark/internal/digest"
)

// Decide says what must be left on a workload. It is level-based: the state alone decides, however it came about, and the
// state that the decision leads to calls for nothing more.
//
// In mode observe nothing is ever written. Mode roll writes the stamp when, and only when, content that the template
// consumes differs from the baseline: the content that was accounted for when the record was left. In this order, the
// first that holds:
//
//   - A required object or key is missing: wait, without a write. A rollout would only make pods that cannot start.
//   - Nothing was ever left here: note the baseline. Pods that are behind already are for people to judge.
//   - The stamp is not the one left, or the record was put back by a rollback, or it vanished. When the template is that
//     of an older revision someone went back: the template stays, and what differs from what its stamp stands for is held
//     back. Else it is a new template, whose pods read what is applied; it rolls again only for content that changed.
//   - Content differs from the baseline: roll. What is held back and did not change stays held back, unless the images
//     changed with it.
//   - The images changed under the stamp left: a new release. It rolls by itself, and nothing is held back any more.
//   - References came or went, or digests are of another version: the baseline follows, nothing rolls.
//
// A workload that consumes nothing gets no record. One that stops consuming has its record emptied by one write, so that
// a reference that returns later is a new one, and none after that. Objects that are Live have no account.
//
// What cannot be told: while something is held back, a rollback of a StatefulSet or DaemonSet between revisions with one
// stamp and different images looks like a new release. A change of content between a rollback and the moment at which it
// is seen counts as accounted for.
func Decide(s State) Decision {
	missing := missingFrom(s.Objects)
	switch s.Mode {
	case Roll:
		return decideRoll(s, missing)
	case Observe:
	}
	// A mode that this version does not know is observed too: reading only is always safe.
	return Decision{Action: Nothing, Reason: Observed, Missing: missing}
}

func decideRoll(s State, missing []Missing) Decision {
	if len(missing) > 0 {
		return Decision{Action: Nothing, Reason: Waiting, Missing: missing, HeldBack: s.Record.heldBack(s.Namespace, s.Objects)}
	}
	a := newAccount(s)
	switch {
	case len(a.entries) == 0 && (s.Record == nil || len(s.Record.Objects) == 0):
		return Decision{Action: Nothing, Reason: Unchanged} // nothing to account for, whatever else changed
	case s.Record == nil && !s.Marked:
		return a.write(WriteRecord, FirstRecord, nothingHeld)
	case replaced(s) && wentBack(s.Revisions):
		return a.write(WriteRecord, RolledBack, heldByRollback(s))
	case replaced(s):
		return a.newTemplate()
	case a.changed():
		return a.roll(a.heldStill())
	case !slices.Equal(s.Images, s.Record.Images):
		return a.write(WriteRecord, NewRelease, nothingHeld)
	default:
		return a.follow()
	}
}

// replaced reports whether the template, or the record, is not the one that was left. A record whose checksum is gone is
// no sign of that: no rollback takes a label away.
func replaced(s State) bool {
	return s.Record == nil || s.Record.Stamp != s.Stamp || putBack(s)
}

// putBack reports whether the record is an older one than was left: a rollback of a Deployment restores all its
// annotations, and leaves its labels.
func putBack(s State) bool { return s.Marked && !s.Intact }

// newTemplate accounts for a template that nobody went back to.
func (a account) newTemplate() Decision {
	// A record that was put back has the baseline of another time, so it says nothing of what changed since.
	if a.state.Record != nil && !putBack(a.state) && a.changed() {
		return a.roll(nothingHeld)
	}
	return a.write(WriteRecord, NewTemplate, nothingHeld)
}

// roll writes a stamp that the template has not had.
func (a account) roll(h holding) Decision {
	d := a.write(WriteStamp, ContentChanged, h)
	used := []string{a.state.Stamp}
	if r := a.state.Record; r != nil {
		used = append(used, r.Stamp)
		for _, e := range r.Earlier {
			used = append(used, e.Stamp)
		}
	}
	parts := make([]digest.Part, 0, len(a.entries))
	for _, e := range a.entries {
		parts = append(parts, digest.Part{Object: e.object, Digest: d.Record.Objects[e.key].Stamped})
		if e.changed {
			d.Changed = append(d.Changed, e.object)
		}
	}
	d.Stamp = freshStamp(digest.OfParts(parts), used...)
	d.Record.Stamp = d.Stamp
	d.Record.Earlier = a.earlier(d.Stamp)
	return d
}

// follow lets the record follow what calls for no rollout, and writes nothing when there is nothing to follow.
func (a account) follow() Decision {
	d := a.write(WriteRecord, NewBaseline, a.heldStill())
	was := a.state.Record.WithoutHold()
	before, _ := Encode(was)
	after, _ := Encode(d.Record)
	// A record without its checksum is written again: without it the next rollback would pass unnoticed.
	if before == after && a.state.Intact {
		return Decision{Action: Nothing, Reason: Unchanged, HeldBack: d.HeldBack}
	}
	if !sameParts(was.Objects, d.Record.Objects) {
		d.Reason = TemplateEdited
	}
	return d
}

func sameParts(a, b map[string]ObjectRecord) bool {
	return maps.EqualFunc(a, b, func(x, y ObjectRecord) bool {
		return maps.EqualFunc(x.Baseline, y.Baseline, func(digest.Digest, digest.Digest) bool { return true })
	})
}

// write makes the record that accounts for everything applied now, but for what is held back.
func (a account) write(action Action, reason Reason, h holding) Decision {
	s := a.state
	r := Record{Version: format, Mode: s.Mode, Stamp: s.Stamp, Images: slices.Clone(s.Images), Earlier: a.earlier(s.Stamp)}
	if s.Record != nil {
		r.Rolls, r.Last = s.Record.Rolls, s.Record.Last
	}
	if len(a.entries) > 0 {
		r.Objects = make(map[string]ObjectRecord, len(a.entries))
	}
	for _, e := range a.entries {
		o := ObjectRecord{Baseline: e.parts, Stamped: e.consumed}
		if older, held := h(e); held {
			o.Stamped, o.HeldBack = older, true
		}
		r.Objects[e.key] = o
	}
	return Decision{Action: action, Reason: reason, HeldBack: r.heldBack(s.Namespace, s.Objects), Record: r}
}
