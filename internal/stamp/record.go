package stamp

import (
	"slices"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// Bounds of a record's lists.
const (
	// MaxRolls bounds Record.Rolls.
	MaxRolls = 8
	// MaxEarlier bounds Record.Earlier.
	MaxEarlier = 4
	// MaxLastChanged bounds Last.Changed.
	MaxLastChanged = 16
)

// Record is what Tidemark notes on a workload's own metadata: what it left there and on which contents it decided.
type Record struct {
	// Version of the record's format: 1.
	Version int `json:"v"`
	// Mode the workload was in, so that a mode annotation which a rollback took away is no opt-out.
	Mode Mode `json:"mode"`
	// Stamp is the stamp that was left on the pod template; "" when none was written yet.
	Stamp string `json:"stamp,omitempty"`
	// Pins is a checksum of the pins that were left with it; "" when there were none.
	Pins string `json:"pins,omitempty"`
	// Images of the template, in order, when the record was left.
	Images []string `json:"images,omitempty"`
	// Objects by workload.Object.Relative.
	Objects map[string]ObjectRecord `json:"objects,omitempty"`
	// Earlier are the stamps before this one, latest first, at most MaxEarlier and as many as fit. A rollback of a
	// StatefulSet or DaemonSet leaves the newest record in place; this is how it is known what went back.
	Earlier []EarlierStamp `json:"earlier,omitempty"`
	// Rolls are the times of the latest template writes in the order written, at most MaxRolls: the storm breaker's memory.
	Rolls []time.Time `json:"rolls,omitempty"`
	// Hold is set while a wanted rollout is held for a reason that must outlive the controller.
	Hold *Hold `json:"hold,omitempty"`
	// Last says what Tidemark did last and why.
	Last *Last `json:"last,omitempty"`
}

// ObjectRecord is the account of one object.
type ObjectRecord struct {
	// Baseline is the content that was accounted for, in parts: "env:*", "env:KEY", "file:*", "file:KEY"; in a record that
	// would grow too large "env:#LIST" and "file:#LIST" for a whole list of keys.
	Baseline map[string]digest.Digest `json:"baseline,omitempty"`
	// Stamped is the digest of the consumption that the stamp stands for. A template without a stamp stands for the first
	// baseline, so it is set there too.
	Stamped digest.Digest `json:"stamped,omitempty"`
	// HeldBack says that a rollback left the object on an older version on purpose.
	HeldBack bool `json:"heldBack,omitempty"`
}

// EarlierStamp is what a stamp that was replaced stood for.
type EarlierStamp struct {
	// Stamp as on the pod template; "" for the template before the first stamp.
	Stamp string `json:"stamp,omitempty"`
	// Objects are the digests of consumption, by workload.Object.Relative.
	Objects map[string]digest.Digest `json:"objects,omitempty"`
}

// HoldReason says why a wanted rollout is held.
type HoldReason string

// HoldStorm holds a workload whose configuration keeps changing.
const HoldStorm HoldReason = "storm"

// Hold is a rollout that is wanted and held.
type Hold struct {
	Reason HoldReason `json:"reason"`
	// Since is when the hold began.
	Since time.Time `json:"since"`
}

// Last is the latest thing that Tidemark did to a workload.
type Last struct {
	Time   time.Time `json:"time"`
	Action Action    `json:"action"`
	Reason Reason    `json:"reason"`
	// Changed are the objects that made it act, by workload.Object.Relative, the first MaxLastChanged of them.
	Changed []string `json:"changed,omitempty"`
}

// Noted returns the record with the write of the decision noted at the time: as the last thing done, and among the rolls
// when it rolls. The receiver is left as it is. The time of the last thing is kept in full, because what the first pods of a
// rollout loaded is told from it.
func (r Record) Noted(now time.Time, namespace string, d Decision) Record {
	now = now.UTC().Round(0)
	last := Last{Time: now, Action: d.Action, Reason: d.Reason}
	for _, o := range d.Changed[:min(len(d.Changed), MaxLastChanged)] {
		last.Changed = append(last.Changed, o.Relative(namespace))
	}
	r.Last = &last
	if d.Action == WriteStamp {
		rolls := append(slices.Clone(r.Rolls), now.Truncate(time.Second))
		r.Rolls = rolls[max(0, len(rolls)-MaxRolls):]
	}
	return r
}

// WithHold returns the record with a hold since the time. A hold that is there already, for the same reason, keeps its
// beginning.
func (r Record) WithHold(reason HoldReason, since time.Time) Record {
	if r.Hold == nil || r.Hold.Reason != reason {
		r.Hold = &Hold{Reason: reason, Since: since.UTC().Truncate(time.Second)}
	}
	return r
}

// WithoutHold returns the record without a hold. Every record that [Decide] makes is without one.
func (r Record) WithoutHold() Record {
	r.Hold = nil
	return r
}

// heldBack lists those of the objects that the record holds back, sorted.
func (r *Record) heldBack(namespace string, objects []Object) []workload.Object {
	if r == nil {
		return nil
	}
	var held []workload.Object
	for _, o := range objects {
		if r.Objects[o.Use.Object.Relative(namespace)].HeldBack && !o.Live {
			held = append(held, o.Use.Object)
		}
	}
	slices.SortFunc(held, workload.Object.Compare)
	return held
}
