package stamp

import (
	"maps"
	"slices"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// ToCopy lists the objects of which the decision needs a snapshot of what is applied, sorted. The snapshots must be there
// before the stamp is written, made from the very content that was decided on; [Decision.Pinned] then names them.
func (d Decision) ToCopy() []workload.Object {
	var out []workload.Object
	for o, name := range d.Pins {
		if name == "" {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, workload.Object.Compare)
	return out
}

// Pinned returns the decision with the names of the snapshots that it needed. The receiver is left as it is. Asked to pin an
// object to nothing it panics, because a stamp never names what is not there.
func (d Decision) Pinned(names map[workload.Object]string) Decision {
	if d.Action != WriteStamp {
		return d
	}
	d.Pins = maps.Clone(d.Pins)
	for _, o := range d.ToCopy() {
		if names[o] == "" {
			panic("pin " + o.String() + ": no snapshot was made")
		}
		d.Pins[o] = names[o]
	}
	d.Record.Pins = sumOf(d.Pins)
	return d
}

// NeedsPins reports whether the rollout of a decision should wait while pods do not read what their pins say. Either it is for
// nothing but pins that the template lacks, which would change nothing that a pod reads. Or a pin names another content than is
// applied, of what is held back or gone, so that new pods would read what they should not, or could not start.
func (d Decision) NeedsPins(s State) bool {
	switch {
	case d.Action != WriteStamp:
		return false
	case d.Reason == FirstPin || d.Reason == TemplateEdited:
		return true
	}
	return slices.ContainsFunc(newAccount(s).entries, func(e entry) bool {
		return e.pin != "" && d.Pins[e.object] == e.pin && (e.gone || !e.serves)
	})
}

// sumOf is the checksum of pins in a record; "" for none.
func sumOf(pins snapshot.Pins) string {
	if len(pins) == 0 {
		return ""
	}
	return checksum(pins.String())[:pinSumLength]
}

// pinSumLength is enough of a checksum to notice that pins are not the ones that were left: 65 bits.
const pinSumLength = 16

// goneUnderPin reports whether a required object is gone while the template reads a copy of it.
func goneUnderPin(s State, o Object) bool {
	pin := s.Pins[o.Use.Object]
	return !o.Applied.Present && (o.Use.Required || len(o.Use.RequiredKeys) > 0) && pin != "" && pin != v1.AbsentName
}

// pinned completes an entry by what the template's pins say of its object.
func (e *entry) pinned(s State, o Object) {
	e.versioned = s.Mode == Pin && o.Versioned && o.Use.Object.Namespace == s.Namespace && !o.Use.Named
	e.pin, e.absent = s.Pins[e.object], !o.Applied.Present
	switch {
	case e.pin == "":
		e.serves = true // pods read what is applied
	case goneUnderPin(s, o):
		// The copy is all there is: nothing changed that pods could read. What comes back is compared with what was.
		e.parts, e.consumed, e.changed = e.before.Baseline, e.before.Stamped, false
		e.gone, e.serves = true, true
	case e.pin == v1.AbsentName:
		e.serves = digest.Content{Version: o.Applied.Version}.Consumed(o.Use) == e.consumed
	case o.Pinned != nil && digest.Comparable(o.Pinned.Consumed(o.Use), e.consumed):
		e.serves = o.Pinned.Consumed(o.Use) == e.consumed
	default:
		e.serves = o.Applied.Present && snapshot.Name(e.object, o.Applied.Whole(e.object), 0) == e.pin
	}
}

// canBeHeld reports whether pods can be on an older version of the object. In mode pin that takes a pin: what has none they
// read as it is applied, whatever the stamp says. Mode roll speaks of what the stamp stands for.
func (e entry) canBeHeld(mode Mode) bool { return mode != Pin || e.versioned && e.pin != "" }

// byPins decides by the pin of what is pinned, and as given for the rest.
func byPins(otherwise holding) holding {
	return func(e entry) (digest.Digest, bool) {
		older, held := otherwise(e)
		if e.pin == "" {
			return older, held
		}
		return older, !e.serves
	}
}

// lacksPins reports whether the template should name a snapshot of what is applied where it does not: of every object when
// mode pin is new to the workload, else of references that are new; a pin of another time may wait for one that returns.
// What has its account already was decided before: a rollback to a template without pins left it so, or its treatment was
// changed.
func (a account) lacksPins() bool {
	r := a.state.Record
	return slices.ContainsFunc(a.entries, func(e entry) bool {
		if !e.versioned || e.pin != "" && e.serves {
			return false
		}
		if r == nil || r.Mode != Pin {
			return e.pin == ""
		}
		_, known := r.Objects[e.key]
		return !known
	})
}

// pinsStand reports whether the template's pins say what they should, so that it need not be written for them. Where there
// should be none, one that gives what is applied may stay until the next write.
func (a account) pinsStand(h holding) bool {
	return !slices.ContainsFunc(a.entries, func(e entry) bool {
		_, held := h(e)
		return e.versioned && e.pin == "" || !held && !e.serves
	})
}

// pinsHoldTheChange reports whether the content changed to nothing else than what the template's pins hold already.
func (a account) pinsHoldTheChange() bool {
	return a.pinsStand(a.heldStill()) && !slices.ContainsFunc(a.entries, func(e entry) bool {
		return e.changed && (!e.versioned || e.pin == "")
	})
}

// pins are those that a template write leaves: what is held or did not change keeps its pin, the rest moves to what is
// applied. Outside mode pin only what is held keeps one.
func (a account) pins(h holding) snapshot.Pins {
	pins := snapshot.Pins{}
	for _, e := range a.entries {
		_, held := h(e)
		held = held && e.canBeHeld(a.state.Mode)
		switch {
		case e.pin != "" && (held || e.gone || e.versioned && e.serves):
			pins[e.object] = e.pin
		case e.versioned && e.absent:
			pins[e.object] = v1.AbsentName
		case e.versioned:
			pins[e.object] = "" // to be copied
		}
	}
	return pins
}
