package fleet

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// copied is a snapshot in a world: what it holds, and from when to when it is there. It may be deleted, and be made again.
type copied struct {
	name    string
	content digest.Content
	made    []time.Time
	deleted []time.Time
}

// copyOf makes a snapshot of some state of the object, some time later.
func (w *world) copyOf() copied {
	var present []state
	for _, s := range w.states {
		if s.content.Present {
			present = append(present, s)
		}
	}
	if len(present) == 0 || w.chance(10) {
		return copied{name: v1.AbsentName, content: digest.AbsentIn(workload.ConfigMap, nil)}
	}
	s := present[w.IntN(len(present))]
	c := copied{content: s.content, made: []time.Time{s.from.Add(w.upTo(10 * time.Second))}}
	c.name = snapshot.Name(used, s.content.Whole(used), 0)
	for w.chance(15) {
		c.deleted = append(c.deleted, c.made[len(c.made)-1].Add(w.upTo(time.Minute)))
		if w.chance(30) {
			break
		}
		c.made = append(c.made, c.deleted[len(c.deleted)-1].Add(w.upTo(20*time.Second)))
	}
	return c
}

// at is what is there of the snapshot at a moment: false while it is deleted.
func (c copied) at(t time.Time) bool {
	there := false
	for i, made := range c.made {
		there = there || !made.After(t) && (i >= len(c.deleted) || c.deleted[i].After(t))
	}
	return there
}

// read is what a container reads of it that may do without it.
func (c copied) read(t time.Time) digest.Content {
	if c.at(t) {
		return c.content
	}
	return digest.AbsentIn(workload.ConfigMap, nil)
}

// follow starts a container that reads the snapshot, perhaps several times, and gives what it read; false when it could not
// start. A kubelet asks for a snapshot when the first pod needs it, and once it has it never again.
func (w *world) follow(c copied) (life, bool) {
	l := life{use: w.use(), reads: w.chance(20)}
	l.pod = Pod{Name: "app-1", Node: "n1", Phase: "Running", Ready: true}
	created := w.between(dawn, w.states[len(w.states)-1].from.Add(time.Minute))
	if len(c.made) > 0 { // soon after it was made, or made again, as a rule
		created = c.made[w.IntN(len(c.made))].Add(w.upTo(time.Minute))
	}
	if slices.ContainsFunc(c.made[min(1, len(c.made)):], func(m time.Time) bool { return m.After(created) && m.Before(created.Add(time.Second)) }) {
		return l, false // beyond what can be known: docs/design/0003-evidence.md says so
	}
	mounted := w.between(created, created.Add(5*time.Second))
	reading := w.between(mounted, mounted.Add(5*time.Second))
	started := w.between(reading, reading.Add(5*time.Second))
	run := Container{Name: "app", Role: workload.RoleMain, Pinned: []PinnedUse{{Use: l.use, Snapshot: c.name}}}
	for {
		fits := w.fits(l.use, c.read(reading))
		if first := run.Restarts == 0; !l.use.Files.Empty() && first {
			fits = fits && w.fits(l.use, c.read(mounted))
		} else if l.use.Env.Empty() && !first {
			fits = true // its files stay
		}
		if !fits {
			return l, false
		}
		if !w.chance(30) {
			break
		}
		run.Restarts++
		run.PreviousEnded = second(w.between(started, started.Add(time.Minute)), w.node)
		reading = w.between(run.PreviousEnded.Add(2*time.Second), run.PreviousEnded.Add(10*time.Second))
		started = w.between(reading, reading.Add(5*time.Second))
	}
	run.Started = second(started, w.node)
	l.pod.Created, l.pod.Containers = second(created, w.api), []Container{run}
	l.now = w.between(started, started.Add(30*time.Second))
	if !l.use.Env.Empty() {
		l.read = append(l.read, c.read(reading))
	}
	if !l.use.Files.Empty() {
		l.read = append(l.read, c.read(mounted))
		if !c.at(mounted) && l.use.Refreshed && w.chance(50) {
			l.read[len(l.read)-1] = c.read(started) // files that were missing may come
		}
	}
	return l, true
}

// show is what a cluster shows of the snapshot at a moment.
func (w *world) show(c copied, now time.Time) Snapshot {
	if !c.at(now) {
		return Snapshot{Gone: true}
	}
	s := Snapshot{Source: used, Content: &c.content}
	for _, made := range c.made {
		if !made.After(now) {
			s.Created = second(made, w.api)
		}
	}
	return s
}

// TestWhatIsSaidOfPinnedPodsIsTrue lets containers read through pins, and some not, in many random worlds, and compares what is
// said of them, and of their fleet, with what they truly read.
func TestWhatIsSaidOfPinnedPodsIsTrue(t *testing.T) {
	cases, asPinned, plain, known := 0, 0, 0, 0
	verdicts := map[Verdict]int{}
	for seed := range worlds(10000) {
		w := newWorld(rand.New(rand.NewPCG(seed, 4)))
		w.watch(w.states[len(w.states)-1].from.Add(30 * time.Second))
		f, lives := w.pinnedFleet()
		if len(lives) == 0 {
			continue
		}
		got := Judge(f)
		verdicts[got.Verdict]++
		for i, l := range lives {
			cases++
			loaded := got.Pods[i].Containers[0].Loaded[0]
			if l.pod.Containers[0].Pinned != nil {
				asPinned++
				if loaded.Digest != "" {
					known++
				}
			} else {
				plain++
			}
			for _, c := range l.read {
				if truth := c.Consumed(l.use); loaded.Digest != "" && truth != loaded.Digest {
					t.Fatalf("seed %d: said %s, read %s: %s\nuse %+v\npod %+v\nsnapshots %+v", seed,
						loaded.Digest.Short(), truth.Short(), loaded.Why, l.use, l.pod, f.Snapshots)
				}
			}
		}
		if why := w.wrong(got, f, lives); why != "" {
			t.Fatalf("seed %d: %s (%s): %s", seed, got.Verdict, got.Reason, why)
		}
	}
	t.Logf("%d containers, %d pinned of which %d%% known, %d not; verdicts %v", cases, asPinned, 100*known/asPinned, plain, verdicts)
	if 100*known/asPinned < 75 || plain < asPinned/10 {
		t.Errorf("of %d pinned containers %d are known, beside %d others", asPinned, known, plain)
	}
}

// pinnedFleet is a fleet of one to three pods at one moment, each with what it read.
func (w *world) pinnedFleet() (Fleet, []life) {
	var lives []life
	snapshots := map[workload.Object]Snapshot{}
	all := []copied{w.copyOf(), w.copyOf()}
	if all[1].name == all[0].name { // of the same content there is one
		all[1] = all[0]
	}
	var now time.Time
	for range 1 + w.IntN(3) {
		l, ok := w.follow(all[w.IntN(len(all))])
		if w.chance(25) {
			if l, ok = w.run(); ok && w.chance(70) {
				l.pod.Unmatched = []workload.Object{used} // it carries pins, and nothing heeded them
			}
		}
		// Of a program that reads its files again it is known only what it read at its own end.
		if !ok || len(lives) > 0 && (l.use.Required != lives[0].use.Required || l.reads || lives[0].reads) {
			continue
		}
		lives, now = append(lives, l), later(now, l.now)
	}
	if len(lives) == 0 {
		return Fleet{}, nil
	}
	lives[0].now = now
	f := w.fleet(lives[0])
	f.Mode, f.Pods, f.Pins = stamp.Pin, nil, snapshot.Pins{used: all[0].name}
	for _, l := range lives {
		f.Pods = append(f.Pods, l.pod)
	}
	for _, c := range all {
		if c.name != v1.AbsentName {
			snapshots[pinned(used, c.name)] = w.show(c, now)
		}
	}
	f.Snapshots = snapshots
	return f, lives
}

// wrong says what is not true of a verdict; "" when all is.
func (w *world) wrong(got Result, f Fleet, lives []life) string {
	applied := w.states[w.stateAt(lives[0].now)].content
	for _, o := range (&f).replaced() {
		applied = o
	}
	behind, current := 0, 0
	for _, l := range lives {
		older := slices.ContainsFunc(l.read, func(c digest.Content) bool { return c.Consumed(l.use) != applied.Consumed(l.use) })
		if older {
			behind++
		} else {
			current++
		}
	}
	switch got.Verdict { //nolint:exhaustive // of the others nothing is claimed here
	case InStep:
		if behind > 0 {
			return "a pod read something else"
		}
	case Dormant:
		if current > 0 {
			return "a pod read what is applied"
		}
	case Split:
		if behind == 0 {
			return "every pod read what is applied"
		}
	case Unpinned:
		if !slices.ContainsFunc(lives, func(l life) bool { return len(l.pod.Unmatched) > 0 }) {
			return "every pod reads what its pins say"
		}
	case Rolling, RolledBack, Waiting, Held, Unknown:
	}
	if got.Behind > behind {
		return "more pods are said to be behind than are"
	}
	return ""
}

// replaced is what counts as applied of objects that are gone under their pins.
func (f *Fleet) replaced() []digest.Content {
	var out []digest.Content
	objects, gone := f.underPins()
	for _, o := range objects {
		if slices.Contains(gone, o.Use.Object) && o.Applied != nil {
			out = append(out, *o.Applied)
		}
	}
	return out
}
