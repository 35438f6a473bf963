package stamp

import (
	"slices"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// account sets what a workload consumes now beside what was accounted for.
type account struct {
	state   State
	entries []entry // in the order of their objects
	// room is the size in bytes that is left for earlier stamps.
	room int
}

// entry is the account of one object.
type entry struct {
	object workload.Object
	key    string // in a record
	// before is what the record says of the object; empty when it has no account yet.
	before ObjectRecord
	// parts and consumed are the digests of what is consumed of the applied content.
	parts    map[string]digest.Digest
	consumed digest.Digest
	// changed says that the content differs from the baseline of before.
	changed bool
	// versioned says that the template should pin it.
	versioned bool
	// pin is the template's pin of it; "" when it has none.
	pin string
	// serves says that the pin gives what is applied, as far as the workload consumes it.
	serves bool
	// absent says that there is no such object now, gone that the template reads a copy of it all the same.
	absent, gone bool
}

func newAccount(s State) account {
	objects := rolling(s.Objects)
	level := foldLevel(s.Namespace, objects)
	a := account{
		state: s, entries: make([]entry, 0, len(objects)),
		room: budget - baselineSize(s.Namespace, objects, level),
	}
	for _, o := range objects {
		e := entry{
			object: o.Use.Object, key: o.Use.Object.Relative(s.Namespace),
			parts: map[string]digest.Digest{}, consumed: o.Applied.Consumed(o.Use),
		}
		for _, p := range partsOf(o.Use, level) {
			e.parts[p.name] = p.digest(o)
		}
		if s.Record != nil {
			e.before = s.Record.Objects[e.key]
		}
		e.changed = compare(e.before.Baseline, e.parts, o)
		e.pinned(s, o)
		a.entries = append(a.entries, e)
	}
	return a
}

func (a account) changed() bool {
	return slices.ContainsFunc(a.entries, func(e entry) bool { return e.changed })
}

// holding says whether an object is held back, and on which digest of consumption.
type holding func(entry) (older digest.Digest, held bool)

// nothingHeld moves everything to what is applied.
func nothingHeld(entry) (digest.Digest, bool) { return "", false }

// heldStill keeps what was held back and did not change. New images are a new release, for which nothing is held back:
// also when content changed with them, as nothing would be left to tell of the release afterwards.
func (a account) heldStill() holding {
	if r := a.state.Record; r == nil || !slices.Equal(a.state.Images, r.Images) {
		return nothingHeld
	}
	return func(e entry) (digest.Digest, bool) {
		return e.before.Stamped, e.before.HeldBack && !e.changed
	}
}

// heldByRollback holds back what differs from what the restored template's stamp stands for, as far as that is known: a
// rollback of a Deployment brings the record along that was left with the stamp; after one of another kind the newer
// record tells of the stamps before it. Of a stamp that is told of nowhere nothing is claimed. Of what is pinned nothing
// need be remembered: the pin itself says what the template reads.
func heldByRollback(s State) holding {
	if s.Record == nil {
		return byPins(nothingHeld)
	}
	if s.Record.Stamp == s.Stamp {
		return byPins(func(e entry) (digest.Digest, bool) {
			return e.before.Stamped, e.changed || e.before.HeldBack && differs(e.before.Stamped, e.consumed)
		})
	}
	i := slices.IndexFunc(s.Record.Earlier, func(e EarlierStamp) bool { return e.Stamp == s.Stamp })
	if i < 0 {
		return byPins(nothingHeld)
	}
	stood := s.Record.Earlier[i].Objects
	return byPins(func(e entry) (digest.Digest, bool) { return stood[e.key], differs(stood[e.key], e.consumed) })
}

// differs reports whether two digests are known to stand for different contents.
func differs(a, b digest.Digest) bool { return a != b && digest.Comparable(a, b) }

// earlier gives the stamps before the next one, latest first: those of the record, and the record's own when the next one
// replaces it. The oldest are dropped when there are too many, or when the record would grow too large.
func (a account) earlier(next string) []EarlierStamp {
	r := a.state.Record
	if r == nil {
		return nil
	}
	known := r.Earlier
	if r.Stamp != next {
		left := EarlierStamp{Stamp: r.Stamp, Objects: make(map[string]digest.Digest, len(r.Objects))}
		for key, o := range r.Objects {
			left.Objects[key] = o.Stamped
		}
		known = append([]EarlierStamp{left}, known...)
	}
	var kept []EarlierStamp
	room := a.room
	for i, e := range known {
		again := slices.ContainsFunc(known[:i], func(f EarlierStamp) bool { return f.Stamp == e.Stamp })
		if e.Stamp == next || again {
			continue
		}
		room -= earlierSize(e)
		if room < 0 || len(kept) == MaxEarlier {
			break
		}
		kept = append(kept, e)
	}
	return kept
}

func earlierSize(e EarlierStamp) int {
	size := len(e.Stamp) + 32
	for key := range e.Objects {
		size += len(key) + digestSize
	}
	return size
}
