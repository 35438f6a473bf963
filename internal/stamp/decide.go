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
// consumes differs from the baseline: the content that was accounted for when the record was left. Mode pin writes it also
// when the template's pins are not those that it should have. In this order, the first that holds:
//
//   - A required object or key is missing: wait, without a write. A rollout would only make pods that cannot start. What is
//     pinned is not missing when it is deleted: its revisions read their copies.
//   - Nothing was ever left here: note the baseline. Pods that are behind already are for people to judge. In mode pin the
//     template gets its first pins, unless someone went back to it.
//   - The stamp is not the one left, or the record was put back by a rollback, or it vanished. When the template is that
//     of an older revision someone went back: the template stays, and what differs from what its stamp stands for is held
//     back. Else it is a new template, whose pods read what is applied; it rolls again only for content that changed, or
//     for its pins.
//   - Content differs from the baseline: roll. What is held back and did not change stays held back, unless the images
//     changed with it. When all that changed is what the pins hold already, nothing rolls.
//   - The images changed under the stamp left: a new release. It rolls by itself, and nothing is held back any more: pins
//     move to what is applied.
//   - References came or went, or digests are of another version: the baseline follows, nothing rolls, but for the pin of
//     a new reference.
//
// A pin moves only when what the template consumes of its object changed. When a workload leaves mode pin, its pins go with
// the next write of the template. A workload that consumes nothing gets no record. One that stops consuming has its record emptied by one write, so that
// a reference that returns later is a new one, and none after that. Objects that are Live have no account.
//
// What cannot be told: while something is held back, a rollback of a StatefulSet or DaemonSet between revisions with one
// stamp and different images looks like a new release. A change of content between a rollback and the moment at which it
// is seen counts as accounted for.
func Decide(s State) Decision {
	missing := missingFrom(s)
	switch s.Mode {
	case Roll, Pin:
		return decide(s, missing)
	case Observe:
	}
	// A mode that this version does not know is observed too: reading only is always safe.
	return Decision{Action: Nothing, Reason: Observed, Missing: missing}
}

// NeedsRevisions reports whether the decision depends on the retained revisions: when the template or the record is not the
// one that was left, or the template would get its first pins.
func (s State) NeedsRevisions() bool {
	switch {
	case s.Mode != Roll && s.Mode != Pin:
		return false
	case s.Record == nil && !s.Marked:
		return newAccount(s).lacksPins()
	}
	return replaced(s)
}

func decide(s State, missing []Missing) Decision {
	if len(missing) > 0 {
		return Decision{Action: Nothing, Reason: Waiting, Missing: missing, HeldBack: s.Record.heldBack(s.Namespace, s.Objects)}
	}
	a := newAccount(s)
	switch {
	case len(a.entries) == 0 && (s.Record == nil || len(s.Record.Objects) == 0):
		return Decision{Action: Nothing, Reason: Unchanged} // nothing to account for, whatever else changed
	case s.Record == nil && !s.Marked:
		return a.first()
	case replaced(s) && wentBack(s.Revisions):
		return a.write(WriteRecord, RolledBack, heldByRollback(s))
	case replaced(s):
		return a.newTemplate()
	case a.changed() && a.pinsHoldTheChange():
		return a.write(WriteRecord, Restored, a.heldStill())
	case a.changed():
		return a.roll(ContentChanged, a.heldStill())
	case !slices.Equal(s.Images, s.Record.Images):
		return a.settle(NewRelease)
	default:
		return a.follow()
	}
}

// replaced reports whether the template, or the record, is not the one that was left. A record whose checksum is gone is
// no sign of that: no rollback takes a label away.
func replaced(s State) bool {
	return s.Record == nil || s.Record.Stamp != s.Stamp || s.Record.Pins != sumOf(s.Pins) || putBack(s)
}

// putBack reports whether the record is an older one than was left: a rollback of a Deployment restores all its
// annotations, and leaves its labels.
func putBack(s State) bool { return s.Marked && !s.Intact }

// first accounts for a workload that Tidemark has not seen before.
func (a account) first() Decision {
	switch {
	case !a.lacksPins():
		return a.write(WriteRecord, FirstRecord, nothingHeld)
	case wentBack(a.state.Revisions):
		return a.write(WriteRecord, RolledBack, nothingHeld)
	}
	return a.roll(FirstPin, nothingHeld)
}

// newTemplate accounts for a template that nobody went back to.
func (a account) newTemplate() Decision {
	// A record that was put back has the baseline of another time, so it says nothing of what changed since.
	if a.state.Record != nil && !putBack(a.state) && a.changed() {
		return a.roll(ContentChanged, nothingHeld)
	}
	return a.settle(NewTemplate)
}

// settle accounts for a template of which nothing is held back. It is written to only when its pins are not as they should be.
func (a account) settle(reason Reason) Decision {
	if a.pinsStand(nothingHeld) {
		return a.write(WriteRecord, reason, nothingHeld)
	}
	return a.roll(reason, nothingHeld)
}

// roll writes a stamp that the template has not had, with its pins.
func (a account) roll(reason Reason, h holding) Decision {
	d := a.write(WriteStamp, reason, h)
	d.Pins = a.pins(h)
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
	switch {
	case a.lacksPins() && a.state.Record.Mode != Pin:
		return a.roll(FirstPin, nothingHeld)
	case a.lacksPins():
		return a.roll(TemplateEdited, a.heldStill())
	}
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
	r := Record{
		Version: format, Mode: s.Mode, Stamp: s.Stamp, Pins: sumOf(s.Pins), Images: slices.Clone(s.Images), Earlier: a.earlier(s.Stamp),
	}
	if s.Record != nil {
		r.Rolls, r.Last = s.Record.Rolls, s.Record.Last
	}
	if len(a.entries) > 0 {
		r.Objects = make(map[string]ObjectRecord, len(a.entries))
	}
	for _, e := range a.entries {
		o := ObjectRecord{Baseline: e.parts, Stamped: e.consumed}
		if older, held := h(e); held && e.canBeHeld(s.Mode) {
			o.Stamped, o.HeldBack = older, true
		}
		r.Objects[e.key] = o
	}
	return Decision{Action: action, Reason: reason, HeldBack: r.heldBack(s.Namespace, s.Objects), Record: r}
}
