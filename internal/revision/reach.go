package revision

import (
	"tidemark.dev/tidemark/internal/workload"
)

// CopyState says what became of the copy that a revision reads.
type CopyState string

// The states.
const (
	CopyThere   CopyState = "there"
	CopyGone    CopyState = "gone"    // it is not there, or is being deleted
	CopyForeign CopyState = "foreign" // something else has its name
	CopyUnknown CopyState = "unknown" // it may not be read
)

// Copy is the copy of a config object that revisions read.
type Copy struct {
	State CopyState
	// Revision numbers the copies of one source; 0 when not known.
	Revision int64
	// Why explains a state that is not [CopyThere].
	Why string
}

// Copies by the object that each is.
type Copies map[workload.Object]Copy

// Of is what is known of a copy.
func (c Copies) Of(o workload.Object) Copy {
	if known, ok := c[o]; ok {
		return known
	}
	return Copy{State: CopyUnknown, Why: "it was not looked for"}
}

// Reach says how much of what a revision was released with its pods would read if it came back.
type Reach string

// The answers, best first.
const (
	InFull    Reach = "in-full"    // its template, with each copy that it names
	NotPinned Reach = "not-pinned" // its template only: pods read what is applied
	InPart    Reach = "in-part"    // it pins some of its ConfigMaps; of others pods read what is applied
	ReachOpen Reach = "unknown"    // whether its copies are there is not known
	OutOf     Reach = "out-of"     // a copy is not there: its pods could not start, or read nothing
)

// Reached is how far a revision can be reached, with the readings that say why, by their objects.
type Reached struct {
	Reach Reach
	// Gone are pinned to copies that are not there, Open to copies of which that is not known, and Applied are ConfigMaps
	// that are not pinned.
	Gone, Open, Applied []Reading
}

// Reached tells how far the revision can be reached. A Secret that is not pinned does not count: by default they never are,
// because a credential that was rotated must not come back.
func (r Revision) Reached(copies Copies) Reached {
	var out Reached
	pinned := 0
	for _, reading := range r.Readings() {
		copied, has := reading.Copy()
		switch {
		case has:
			pinned++
			switch copies.Of(copied).State {
			case CopyThere:
			case CopyGone, CopyForeign:
				out.Gone = append(out.Gone, reading)
			case CopyUnknown:
				out.Open = append(out.Open, reading)
			}
		case reading.Absent():
			pinned++
		case reading.Object.Kind == workload.ConfigMap:
			out.Applied = append(out.Applied, reading)
		}
	}
	switch {
	case len(out.Gone) > 0:
		out.Reach = OutOf
	case r.PinsProblem != "" || len(out.Open) > 0:
		out.Reach = ReachOpen
	case len(out.Applied) == 0:
		out.Reach = InFull
	case pinned == 0:
		out.Reach = NotPinned
	default:
		out.Reach = InPart
	}
	return out
}
