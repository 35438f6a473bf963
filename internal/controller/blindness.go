package controller

import (
	"time"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/workload"
)

// blindness is which kinds of config objects nobody watches, and since when: the history does not tell what becomes of them.
type blindness struct {
	// since is when each kind was last watched, for sure or about.
	since map[workload.ObjectKind]time.Time
	// over is when each of them was watched again.
	over map[workload.ObjectKind]time.Time
	// stated is what the Lease says.
	stated map[workload.ObjectKind]time.Time
}

func newBlindness() blindness {
	return blindness{since: map[workload.ObjectKind]time.Time{}, over: map[workload.ObjectKind]time.Time{}}
}

// begin takes in that a kind is not watched.
func (b *blindness) begin(kind workload.ObjectKind, at time.Time) {
	delete(b.over, kind)
	if b.since[kind].IsZero() {
		b.since[kind] = at
	}
}

// end takes in that a kind is watched.
func (b *blindness) end(kind workload.ObjectKind, at time.Time) {
	if _, blind := b.since[kind]; blind && b.over[kind].IsZero() {
		b.over[kind] = at
	}
}

// inherit takes in what the leader before said, and when it last gave a sign of life: what it watched nobody has watched since.
func (b *blindness) inherit(stated map[workload.ObjectKind]time.Time, last time.Time, watched func(workload.ObjectKind) bool, now time.Time) {
	b.stated = stated
	for kind, since := range b.since {
		b.since[kind] = earliest(since, last)
	}
	for kind, since := range stated {
		b.since[kind] = earliest(b.since[kind], since)
		if watched(kind) {
			b.end(kind, now)
		}
	}
}

// before is the last moment at which a kind was watched, given that of all kinds; zero when that is not known.
func (b *blindness) before(kind workload.ObjectKind, all time.Time) time.Time {
	if all.IsZero() {
		return all
	}
	return earliest(all, b.since[kind])
}

// statement is what the Lease is to say. A kind that is watched again stays in it for as long as the history may be late with what it
// missed; then lasts is true, for there will be something else to say.
func (b *blindness) statement(now time.Time) (blind map[workload.ObjectKind]time.Time, lasts bool) {
	blind = map[workload.ObjectKind]time.Time{}
	for kind, since := range b.since {
		switch over := b.over[kind]; {
		case over.IsZero():
			blind[kind] = since
		case now.Sub(over) < cluster.HistoryLag:
			blind[kind], lasts = since, true
		default:
			delete(b.since, kind)
			delete(b.over, kind)
		}
	}
	return blind, lasts
}

// earliest is the earlier of two times that are known, else the one that is.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
