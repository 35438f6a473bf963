package fleet

import (
	"fmt"
	"math/rand/v2"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
)

// world is a cluster in which everything is known: when an object truly changed, what a container truly read. Clocks are
// apart, times of the API are truncated, watches and caches lag, nodes are cut off; all within the margins, and as unkindly
// as they allow. From it comes a fleet, which shows only what a cluster shows.
type world struct {
	*rand.Rand
	settings Settings
	lag      time.Duration // of watches
	// api, node, controller and reader are the clocks: how far each is from the truth.
	api, node, controller, reader time.Duration
	spaced                        bool
	// crowded worlds have more changes than a log remembers, most of them of what nobody reads.
	crowded bool
	a       int // the value of key a
	states  []state
	log     history.Log
	// seen are the true times at which the controller saw the states; zero for those that it did not.
	seen   []time.Time
	diedAt time.Time // when the controller ended; zero when it lives
	back   time.Time // since when a node that was cut off is connected again
	// silences are the times for which the node gave no sign of life, oldest first.
	silences []history.Span
}

// state is what the object is from a moment on.
type state struct {
	from      time.Time
	content   digest.Content
	uid, rv   string
	created   time.Time
	immutable bool
}

var (
	dawn = time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	used = workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "pricing"}
)

func newWorld(r *rand.Rand) *world {
	w := &world{Rand: r, spaced: r.IntN(4) == 0, crowded: r.IntN(5) == 0}
	w.settings = Settings{
		RefreshLag: w.upTo(time.Minute), ReadLag: w.upTo(4 * time.Second), CutLag: w.upTo(30 * time.Second),
		ResumeLag: w.upTo(30 * time.Second),
		Skew:      w.upTo(2 * time.Second), LoadTime: w.upTo(5 * time.Second),
	}
	w.lag = w.upTo(5 * time.Second)
	for _, c := range []*time.Duration{&w.api, &w.node, &w.controller, &w.reader} {
		*c = w.upTo(w.settings.Skew) - w.settings.Skew/2
	}
	w.live()
	return w
}

// upTo is a random time, often one of the ends.
func (w *world) upTo(d time.Duration) time.Duration {
	switch w.IntN(6) {
	case 0:
		return 1
	case 1:
		return max(d, 1)
	}
	return 1 + time.Duration(w.Int64N(int64(max(d, 1))))
}

// between is a random moment, often one of the ends.
func (w *world) between(from, to time.Time) time.Time {
	if !to.After(from) {
		return from
	}
	return from.Add(w.upTo(to.Sub(from)) - 1)
}

func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

// second is a time as the API tells it.
func second(t time.Time, clock time.Duration) time.Time { return t.Add(clock).Truncate(time.Second) }

// live lets the object live its life.
func (w *world) live() {
	now := dawn
	s := state{from: now}
	if w.chance(80) {
		s = w.born(now)
	} else {
		s.content = digest.AbsentIn(workload.ConfigMap, nil)
	}
	w.states = append(w.states, s)
	changes := w.IntN(9)
	if w.crowded {
		changes += 3 * history.MaxVersions
	}
	for i := range changes {
		pause := w.upTo(15 * time.Second)
		if w.spaced {
			pause = 10*time.Minute + w.upTo(time.Hour)
		}
		now = now.Add(pause)
		w.states = append(w.states, w.next(w.states[i], now))
	}
}

func (w *world) born(now time.Time) state {
	id := fmt.Sprint(len(w.states))
	return state{from: now, content: w.content(), uid: "u" + id, rv: "r" + id, created: now, immutable: !w.crowded && w.chance(15)}
}

// content is one of few, so that contents come back.
func (w *world) content() digest.Content {
	unread := w.IntN(3)
	if w.crowded {
		unread = w.Int()
	}
	if !w.crowded || w.chance(10) {
		w.a = w.IntN(3)
	}
	data := map[string]string{"a": fmt.Sprint(w.a), "unread": fmt.Sprint(unread)}
	if !w.crowded && w.chance(20) {
		delete(data, "a")
	}
	return digest.OfConfigMap(used.Namespace, used.Name, data, nil)
}

func (w *world) next(s state, now time.Time) state {
	switch {
	case !s.content.Present:
		return w.born(now)
	case !w.crowded && w.chance(20):
		return state{from: now, content: digest.AbsentIn(workload.ConfigMap, nil)}
	}
	s.from, s.rv = now, fmt.Sprint("r", len(w.states))
	if !s.immutable && w.chance(75) {
		s.content = w.content()
	}
	s.immutable = s.immutable || !w.crowded && w.chance(5)
	return s
}

// stateAt is the index of the state at a moment; the first one has always been.
func (w *world) stateAt(t time.Time) int {
	i := 0
	for j, s := range w.states {
		if !s.from.After(t) {
			i = j
		}
	}
	return i
}

// watch lets a controller follow the object from a random moment on, with gaps, until the end.
func (w *world) watch(end time.Time) {
	began := w.between(dawn.Add(-time.Minute), dawn.Add(20*time.Second))
	w.log = history.Log{Object: used}
	w.seen = make([]time.Time, len(w.states))
	if w.chance(20) {
		w.diedAt = w.between(began, end)
	}
	merged := w.chance(20)
	consumed := began
	if w.chance(20) {
		consumed = w.between(began, began.Add(30*time.Second)) // the workload came later than the object
	}
	first := w.stateAt(began)
	last := began
	if !consumed.After(began) {
		w.observe(first, began, history.Observation{})
	}
	w.seen[first] = began
	for i := first + 1; i < len(w.states); i++ {
		arrives := later(last, w.states[i].from.Add(w.upTo(w.lag)))
		if merged && i+1 < len(w.states) && w.states[i+1].from.Before(w.states[i].from.Add(w.lag/2)) && w.chance(50) {
			continue // seen only in what comes after it
		}
		if !w.diedAt.IsZero() && arrives.After(w.diedAt) {
			if w.chance(50) {
				return
			}
			// Another takes over, and begins with a list.
			taken := w.between(w.diedAt, end)
			i, consumed = w.stateAt(taken), earlier(consumed, taken)
			w.observe(i, taken, history.Observation{Unwatched: w.diedAt.Add(w.controller), EveryEvent: true})
			w.seen[i], last, w.diedAt = taken, taken, time.Time{}
			continue
		}
		last, w.seen[i] = arrives, arrives
		if arrives.Before(consumed) {
			continue
		}
		w.catchUp(i-1, first, consumed, began)
		o := history.Observation{EveryEvent: !merged, Fresh: w.states[i].created.Equal(w.states[i].from)}
		if merged && w.chance(80) {
			o.Unwatched = arrives.Add(w.controller) // what was merged came within the lag
		}
		w.observe(i, arrives, o)
	}
	if len(w.log.Versions) == 0 {
		w.catchUp(w.stateAt(w.latestSeen()), first, consumed, began)
	}
}

// catchUp takes the object in when the first workload that consumes it appears.
func (w *world) catchUp(i, first int, consumed, began time.Time) {
	if len(w.log.Versions) > 0 || w.seen[i].IsZero() {
		return
	}
	s := w.states[i]
	o := history.Observation{EveryEvent: true, Fresh: i > first && s.created.Equal(s.from)}
	if o.Fresh && i == first+1 && !w.states[first].content.Present {
		o.AbsentSince = began.Add(w.controller)
	}
	w.observe(i, later(consumed, w.seen[i]), o)
}

func (w *world) latestSeen() time.Time {
	var t time.Time
	for i, at := range w.seen {
		if !at.IsZero() {
			t = w.states[i].from
		}
	}
	return t
}

func (w *world) observe(i int, at time.Time, o history.Observation) {
	s := w.states[i]
	o.At, o.Lag, o.Content = at.Add(w.controller), w.lag, s.content
	o.UID, o.ResourceVersion, o.Immutable = s.uid, s.rv, s.immutable
	o.Reads = func(key string) bool { return key == "a" }
	if s.content.Present {
		o.Created = second(s.created, w.api)
		o.Written = second(s.from, w.api)
		if w.chance(20) {
			o.Written = second(s.created, w.api) // a removal of a key leaves no time
		}
	}
	w.log.Observe(o)
}
