package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"tidemark.dev/tidemark/internal/workload"
)

// Retention says what clean-up keeps, and how long it waits.
//
// Clean-up has two phases. A snapshot that nothing needs is condemned: it gets a mark with the time. It is deleted when the
// mark has stood for MinAge and a fresh listing finds, again, that nothing needs it. Whoever writes a stamp that names a
// condemned snapshot takes the mark away before; that write changes the resourceVersion on which a deletion under way insists.
// So a stamp can name a deleted snapshot only if its writer looked at the snapshot longer than MinAge before it wrote.
type Retention struct {
	// History is how many snapshots of each source stay, the newest ones, whether or not something uses them.
	History int
	// MinAge is how old a snapshot must be to be condemned, and how long it must have been condemned to be deleted.
	MinAge time.Duration
}

// ShortestAge is the least MinAge. So short an age is for tests: the writer of a stamp may take longer.
const ShortestAge = time.Second

// Defaults gives the retention that is used where nothing else is asked for.
func Defaults() Retention { return Retention{History: 5, MinAge: time.Hour} }

// Validate checks the settings. The newest snapshot of a source may be about to be used, so there is no history of 0.
func (r Retention) Validate() error {
	var errs []error
	if r.History < 1 {
		errs = append(errs, fmt.Errorf("a history of %d: want 1 or more", r.History))
	}
	if r.MinAge < ShortestAge {
		errs = append(errs, fmt.Errorf("a minimum age of %v: want %v or more", r.MinAge, ShortestAge))
	}
	return errors.Join(errs...)
}

// Mark is the time to write as the mark of condemnation. The clock that now was read from may be up to a second behind the
// truth, and the mark is written in whole seconds: it must never seem older than it is.
func Mark(now time.Time) time.Time {
	return now.Add(2*time.Second - time.Nanosecond).Truncate(time.Second)
}

// Action is what clean-up does with an object.
type Action string

// The actions of clean-up.
const (
	// Keep leaves it as it is.
	Keep Action = "keep"
	// Condemn marks it as not needed.
	Condemn Action = "condemn"
	// Pardon takes that mark away.
	Pardon Action = "pardon"
	// Delete deletes it.
	Delete Action = "delete"
)

// Reason is why, in one word. It is part of the output for programs.
type Reason string

// The reasons for an action.
const (
	// Used: something uses it.
	Used Reason = "used"
	// Recent: it is among the newest of its source.
	Recent Reason = "recent"
	// Young: it is not old enough to be condemned.
	Young Reason = "young"
	// Waiting: it is condemned, and its time has not come.
	Waiting Reason = "waiting"
	// Superseded: nothing uses it, and enough newer ones are kept.
	Superseded Reason = "superseded"
	// Orphaned: its source is gone, and all that used any snapshot of it.
	Orphaned Reason = "orphaned"
	// Released: the manifest of its Helm release, as it is deployed or being deployed, names it.
	Released Reason = "released"
	// Unversioned: its name does not end in a revision of its Helm release or in a hash.
	Unversioned Reason = "unversioned"
)

// Verdict is what is to become of one object, with exactly one reason.
type Verdict struct {
	Snapshot
	Action Action
	Reason Reason
	// Detail is the reason in one sentence, for people.
	Detail string
	// Until is when the reason ends by itself: that it is young, or waits; zero for others.
	Until time.Time
}

// Stock is what a fresh and complete listing of a scope found: all snapshots, with all that may use them.
type Stock struct {
	// Now is a moment before the uses were listed.
	Now       time.Time
	Snapshots []Snapshot
	// Uses are those of snapshots, and of sources by their own names.
	Uses Uses
	// Gone are the sources that do not exist.
	Gone map[workload.Object]bool
}

// Plan judges every snapshot: by source, the newest first. It does not depend on the order of the listing.
func (r Retention) Plan(s Stock) []Verdict {
	snapshots := slices.Clone(s.Snapshots)
	slices.SortFunc(snapshots, newestFirst)
	out := make([]Verdict, 0, len(snapshots))
	for family := range families(snapshots) {
		orphaned := s.orphaned(family)
		for i := range family {
			out = append(out, r.judge(s, family[i], i, orphaned))
		}
	}
	return out
}

// newestFirst orders by source, then by revision, time and name.
func newestFirst(a, b Snapshot) int {
	return cmp.Or(
		a.Source.Compare(b.Source),
		cmp.Compare(b.Revision, a.Revision), b.Time.Compare(a.Time), a.Object.Compare(b.Object),
	)
}

// families yields the runs of snapshots of one source.
func families(sorted []Snapshot) func(yield func([]Snapshot) bool) {
	return func(yield func([]Snapshot) bool) {
		for len(sorted) > 0 {
			n := slices.IndexFunc(sorted, func(s Snapshot) bool { return s.Source != sorted[0].Source })
			if n < 0 {
				n = len(sorted)
			}
			if !yield(sorted[:n]) {
				return
			}
			sorted = sorted[n:]
		}
	}
}

// orphaned reports whether the source of a family is gone, with all that used it or any of the family: nothing can go back
// to them any more, so none is kept as history.
func (s Stock) orphaned(family []Snapshot) bool {
	source := family[0].Source
	if _, used := s.Uses[source]; used || !s.Gone[source] {
		return false
	}
	return !slices.ContainsFunc(family, func(m Snapshot) bool { _, used := s.Uses[m.Object]; return used })
}

// judge gives the verdict on the snapshot that has so many newer ones of its source.
func (r Retention) judge(s Stock, m Snapshot, newer int, orphaned bool) Verdict {
	v := Verdict{Snapshot: m, Action: Keep}
	user, used := s.Uses[m.Object]
	young, condemned := m.Created.Add(r.MinAge), m.Condemned.Add(r.MinAge)
	switch {
	case used:
		v.Action, v.Reason, v.Detail = m.spared(), Used, "used by "+user.String()
	case !orphaned && newer < r.History:
		v.Action, v.Reason, v.Detail = m.spared(), Recent, fmt.Sprintf("among the last %d of %s", r.History, m.of())
	case s.Now.Before(young):
		v.Reason, v.Until, v.Detail = Young, young, fmt.Sprintf("not needed, and younger than %v", r.MinAge)
	case m.Condemned.IsZero():
		v.Action = Condemn
		v.Reason, v.Detail = r.unneeded(m, orphaned)
	case s.Now.Before(condemned):
		v.Reason, v.Until = Waiting, condemned
		v.Detail = "condemned; deleted after " + condemned.UTC().Format(time.RFC3339) + " unless something needs it again"
	default:
		v.Action = Delete
		v.Reason, v.Detail = r.unneeded(m, orphaned)
	}
	return v
}

// spared is what happens to a snapshot that is needed.
func (s Snapshot) spared() Action {
	if s.Condemned.IsZero() {
		return Keep
	}
	return Pardon
}

func (r Retention) unneeded(m Snapshot, orphaned bool) (Reason, string) {
	if orphaned {
		return Orphaned, m.of() + " is gone, with all that used it"
	}
	return Superseded, fmt.Sprintf("nothing uses it, and %d newer of %s are kept", r.History, m.of())
}

// of names the source for people.
func (s Snapshot) of() string { return s.Source.Relative(s.Object.Namespace) }
