package controller

import (
	"time"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/workload"
)

// rememberGone is how long it is remembered that an object was deleted which nobody consumed. A history that begins tells of
// an absence no longer than this before.
const rememberGone = time.Minute

// departure is the deletion of an object that nobody consumed.
type departure struct {
	object workload.Object
	at     time.Time
}

// depart notes a deletion. The index is locked.
func (x *index) depart(o workload.Object, now time.Time) {
	old := 0
	for old < len(x.departed) && now.Sub(x.departed[old].at) > rememberGone {
		old++
	}
	x.departed = append(x.departed[old:], departure{o, now})
}

// acquaintance is what the watch has shown of an object by the time at which somebody first consumes it. Workloads are often
// made together with their configuration, or long after it: without this the history would begin too late to tell what their
// first pods loaded.
type acquaintance struct {
	digested *cluster.Digested
	// since is from when on the object surely has had its present content, or has been absent; zero when only the present is known.
	since time.Time
	// born says that it was seen coming into being with that content, and absent since when it had surely been absent before.
	born   bool
	absent time.Time
}

// acquaintance returns what is known of an object of a kind that has been watched without a gap since the time given.
func (x *index) acquaintance(o workload.Object, watched, now time.Time) acquaintance {
	x.mu.RLock()
	defer x.mu.RUnlock()
	i := x.items[o]
	a := acquaintance{digested: i.digested, since: i.since, born: i.born}
	if i.digested != nil && !i.born {
		return a
	}
	before := now
	if i.digested != nil {
		before = i.since
	}
	absent := latest(watched, before.Add(-rememberGone))
	for _, d := range x.departed {
		if d.object == o {
			absent = latest(absent, d.at)
		}
	}
	if i.digested != nil {
		a.absent = absent
		return a
	}
	a.since = latest(absent, i.since)
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
