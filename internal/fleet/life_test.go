package fleet

import (
	"slices"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// life is one container with what it truly read.
type life struct {
	pod   Pod
	use   workload.Consumption
	read  []digest.Content // what it truly read, through each view
	now   time.Time
	roll  *stamp.Record
	reads bool // the program re-reads its files
}

// uses are the ways in which the container may read the object.
func (w *world) use() workload.Consumption {
	keys := workload.Keys{Names: []string{"a"}}
	if w.chance(15) { // of an older revision: the present template reads no such key
		keys.Names = append(keys.Names, "unread")
	}
	u := workload.Consumption{Object: used, Required: w.chance(60)}
	if u.Required && w.chance(60) {
		u.RequiredKeys = []string{"a"}
	}
	view := w.IntN(5)
	if view != 0 {
		u.Env = keys
	}
	if view == 0 || view == 1 {
		u.Files, u.Refreshed = keys, w.chance(70)
	}
	return u
}

// cut is how a node was cut off from the API server around a later start.
type cut int

const (
	connected cut = iota
	unnoticed     // shorter than it takes to be seen
	noticed       // the node was seen to be not ready
)

// run starts a container, perhaps several times, and gives what it read; false when it could not start.
func (w *world) run() (life, bool) {
	l := life{use: w.use(), reads: w.chance(20)}
	created := w.between(dawn, w.states[len(w.states)-1].from.Add(10*time.Second))
	if w.chance(50) { // close to a change, where it is hard
		created = w.states[w.IntN(len(w.states))].from.Add(w.upTo(8*time.Second) - 4*time.Second)
	}
	c := Container{Name: "app", Role: workload.RoleMain, Uses: []workload.Consumption{l.use}}
	l.pod = Pod{Name: "app-1", Node: "n1", Phase: "Running", Ready: true}
	created = w.stamped(&l, created)
	l.pod.Created = second(created, w.api)
	l.pod.NodeReadySince = second(dawn.Add(-24*time.Hour), w.node)

	w.silence(&l, created)

	how := cut(w.IntN(3))
	mounted := w.between(created, created.Add(5*time.Second))
	mount := w.between(w.known(mounted).Add(-w.settings.ReadLag), mounted)
	ready, ended := mounted, mounted
	if w.chance(30) {
		ended = w.between(mounted, mounted.Add(40*time.Second))
		l.pod.InitEnded, ready = second(ended, w.node), ended
	} else {
		how = connected // the first read proves that the node was connected after the creation
	}
	floor := w.known(created).Add(-w.settings.ReadLag)
	reading := w.between(ready, ready.Add(3*time.Second))
	env := w.cached(floor, reading, how)
	started := w.between(reading, reading.Add(5*time.Second))
	if !w.fits(l.use, w.states[w.stateAt(env)].content) || !w.fits(l.use, w.states[w.stateAt(mount)].content) {
		return l, false
	}
	for w.chance(40) {
		how = cut(w.IntN(3))
		ran := w.upTo(20 * time.Second)
		if w.spaced {
			ran = w.upTo(2 * time.Hour)
		}
		ended = w.between(started, started.Add(ran))
		if w.chance(30) { // close to a change, where it is hard
			ended = later(started, w.states[w.IntN(len(w.states))].from.Add(w.upTo(4*time.Second)-2*time.Second))
		}
		reading = w.between(ended, ended.Add(10*time.Second))
		env = w.cached(env, reading, how)
		if !l.use.Env.Empty() && !w.fits(l.use, w.states[w.stateAt(env)].content) {
			return l, false
		}
		c.Restarts, c.PreviousEnded = c.Restarts+1, second(ended, w.node)
		if w.chance(10) {
			c.PreviousEnded = time.Time{}
		}
		started = w.between(reading, reading.Add(5*time.Second))
	}
	if how == noticed {
		// It was seen to be back when its cache may not have been fresh again for a while.
		back := w.between(ended.Add(-w.settings.CutLag), started.Add(20*time.Second))
		l.pod.NodeReadySince, w.back = second(back, w.node), back
		if w.chance(20) {
			w.back = dawn.Add(1000 * time.Hour)
			l.pod.NodeReadySince = time.Time{}
		}
	}
	c.Started = second(started, w.node)
	l.pod.Containers = []Container{c}
	l.now = w.between(started, started.Add(30*time.Second))
	if w.spaced {
		l.now = later(l.now, started.Add(time.Minute))
	}
	if !l.use.Env.Empty() {
		l.read = append(l.read, w.served(l.use, env))
	}
	if !l.use.Files.Empty() {
		l.read = append(l.read, w.file(l, mount, reading, started, how, c.Restarts > 0))
	}
	return l, true
}

// stamped makes the pod one of a rollout, sometimes: then it is created after its stamp was written.
func (w *world) stamped(l *life, created time.Time) time.Time {
	i := w.IntN(len(w.seen))
	if w.seen[i].IsZero() || w.chance(50) {
		return created
	}
	written := w.seen[i].Add(w.upTo(5 * time.Second))
	l.roll = &stamp.Record{Stamp: "v1-s", Last: &stamp.Last{Time: written.Add(w.controller), Action: stamp.WriteStamp}}
	if w.chance(30) {
		l.roll.Last.Time = l.roll.Last.Time.Truncate(time.Second)
	}
	if w.chance(30) {
		return created // of an older stamp
	}
	l.pod.Stamp = "v1-s"
	return w.between(written, written.Add(3*time.Second))
}

// silence has the pod's node give no sign of life for a while or two, sometimes, as its Lease tells by the node's clock.
func (w *world) silence(l *life, near time.Time) {
	w.silences = nil
	from := near.Add(w.upTo(20*time.Second) - w.upTo(90*time.Second))
	for range w.IntN(5) - 2 {
		to := from.Add(w.upTo(time.Minute))
		w.silences = append(w.silences, history.Span{From: from, To: to})
		l.pod.Silences = append(l.pod.Silences, history.Span{From: from.Add(w.node), To: to.Add(w.node)})
		from = to.Add(w.upTo(40 * time.Second))
	}
	if n := len(l.pod.Silences); n > 0 && w.chance(10) {
		l.pod.Silences[n-1].To, w.silences[n-1].To = time.Time{}, dawn.Add(1000*time.Hour)
	}
}

// known is the moment as of which a kubelet surely knows the state at another.
func (w *world) known(at time.Time) time.Time {
	for _, s := range slices.Backward(w.silences) {
		if s.From.Before(at) && !s.To.Add(w.settings.ResumeLag).Before(at) {
			at = s.From
		}
	}
	return at
}

// cached is the moment whose state a kubelet serves at another, given the moment whose state it served before.
func (w *world) cached(before, at time.Time, how cut) time.Time {
	oldest := w.known(at).Add(-w.settings.ReadLag)
	switch how {
	case connected:
	case unnoticed:
		oldest = earlier(oldest, at.Add(-max(w.settings.CutLag, w.settings.ReadLag)))
	case noticed:
		oldest = before
	}
	return w.between(later(before, oldest), at)
}

// file is what the program reads of a mounted file.
func (w *world) file(l life, mount, reading, started time.Time, how cut, restarted bool) digest.Content {
	at, oldest := started, mount
	if l.use.Refreshed {
		at = w.between(started, started.Add(w.settings.LoadTime))
	}
	if restarted {
		oldest = w.cached(mount, reading, how).Add(-w.settings.RefreshLag)
	}
	if l.reads && l.use.Refreshed {
		at = l.now
		served := at.Add(-w.settings.RefreshLag - w.settings.LoadTime)
		oldest = earlier(served.Add(-max(w.settings.CutLag, w.settings.ReadLag)), w.known(served).Add(-w.settings.ReadLag))
		if w.back.After(oldest) {
			oldest = mount
		}
	}
	i := w.stateAt(w.between(later(mount, oldest), at))
	// Files stay as they were while what is required is not there.
	for !w.fits(l.use, w.states[i].content) && w.states[i].from.After(mount) {
		i--
	}
	return w.states[i].content
}

// served is what a node gives a container that reads the state of a moment: perhaps an immutable object that was since made
// again.
func (w *world) served(use workload.Consumption, at time.Time) digest.Content {
	i := w.stateAt(at)
	for j, s := range w.states[:i] {
		if s.immutable && w.remembered(j) && s.uid != w.states[i].uid && w.fits(use, s.content) && w.chance(50) {
			return w.states[j].content
		}
	}
	return w.states[i].content
}

// remembered reports whether the log has, or had, the state. What an immutable object held that nobody saw is beyond what
// can be known: docs/design/0003-evidence.md says so.
func (w *world) remembered(i int) bool {
	return !w.seen[i].IsZero() && slices.ContainsFunc(w.log.Versions, func(v history.Version) bool { return v.UID == w.states[i].uid })
}

// fits reports whether a container can start with the content.
func (w *world) fits(use workload.Consumption, c digest.Content) bool {
	if !use.Required {
		return true
	}
	return c.Present && !slices.ContainsFunc(use.RequiredKeys, func(k string) bool { _, ok := c.Value(k); return !ok })
}

// fleet is what a cluster shows of it all.
func (w *world) fleet(l life) Fleet {
	o := Object{Use: l.use, Log: w.log}
	applied := w.states[w.stateAt(l.now)]
	o.Applied = &applied.content
	end := l.now
	if !w.diedAt.IsZero() {
		end = earlier(end, w.diedAt)
	}
	o.LogTo = end.Add(w.controller - w.lag)
	if w.chance(50) && applied.rv != "" && w.log.Newest().ResourceVersion == applied.rv {
		o.LogTo = l.now.Add(w.reader)
	}
	f := Fleet{
		Now: l.now.Add(w.reader), Namespace: "shop", Mode: stamp.Roll, Record: l.roll, Stamp: "v1-s",
		Objects: []Object{o}, Pods: []Pod{l.pod}, Reloads: l.reads, Installed: true, Settings: w.settings,
	}
	return f
}
