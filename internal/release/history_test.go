package release

import (
	"math/rand/v2"
	"testing"
	"time"
)

// actor is one run of a deploy command on the release, with its guard or without one.
type actor struct {
	guarded bool
	// labels says that the command labels what it writes: a rollback cannot.
	labels  bool
	deploy  string
	number  int64
	began   time.Time
	timeout time.Duration

	running, helmStopped, guardStopped, cutOff bool
	inPod, podRuns, nodeAnswers                bool
	heard                                      time.Time // when the guard last reached the API
}

// world is a release with all that happens to it, and an observer that sees the API only.
type world struct {
	rand      *rand.Rand
	now       time.Time
	revisions []Revision
	writers   []*actor // of each revision, by what happened and not by what its record says
	lease     *Lease
	changed   time.Time // when the lease was last written
	watched   time.Time // since when the observer watches
	actors    []*actor
}

const (
	leaseTime = 3 * time.Minute
	step      = 20 * time.Second
)

func (w *world) newest() *Revision {
	if len(w.revisions) == 0 {
		return nil
	}
	return &w.revisions[len(w.revisions)-1]
}

func (w *world) chance(percent int) bool { return w.rand.IntN(100) < percent }

// start begins a deploy. A guarded one takes the lease; no other guard may hold it.
func (w *world) start() {
	a := &actor{
		guarded: w.chance(60), labels: w.chance(70), deploy: string(rune('a' + len(w.actors))), began: w.now, running: true, heard: w.now,
		inPod: w.chance(50), podRuns: true, nodeAnswers: true, timeout: time.Duration(1+w.rand.IntN(40)) * time.Minute,
	}
	if w.chance(10) {
		a.timeout = 0
	}
	n := w.newest()
	a.number = 1
	if n != nil {
		a.number = n.Number + 1
	}
	if a.guarded {
		if w.lease.live() && w.lease != nil && w.now.Sub(w.changed) < leaseTime {
			return
		}
		if w.lease != nil && w.chance(10) { // its preflight refuses, and what the lease said stands again
			w.changed = w.now
			return
		}
		w.lease = &Lease{Deploy: a.deploy, Revision: a.number, Began: w.now, Timeout: a.timeout, Duration: leaseTime}
		w.changed = w.now
	}
	w.actors = append(w.actors, a)
}

// write is Helm writing its pending record, which it refuses while another is pending.
func (w *world) write(a *actor) {
	n := w.newest()
	if n != nil {
		if op, _ := n.Status.Operation(); op != NoOperation {
			if !w.wrote(a) {
				w.end(a, 1)
			}
			return
		}
		if n.Number >= a.number && !w.wrote(a) {
			a.number = n.Number + 1 // Helm counts from what it reads, not from what the guard expected
		}
	}
	status := PendingRollback
	if a.labels {
		status = []Status{PendingInstall, PendingUpgrade}[w.rand.IntN(2)]
	}
	r := Revision{Number: a.number, Status: status, Created: w.now, Written: w.now, Deploy: a.deploy}
	if !a.guarded || !a.labels {
		r.Deploy = ""
		if n != nil && w.chance(50) {
			r.Deploy = n.Deploy // Helm hands labels on from one revision to the next
		}
	}
	if n == nil || n.Number < a.number {
		w.revisions, w.writers = append(w.revisions, r), append(w.writers, a)
	}
}

// wrote reports whether the actor wrote the newest revision.
func (w *world) wrote(a *actor) bool {
	return len(w.writers) > 0 && w.writers[len(w.writers)-1] == a
}

// end is the end of the command; its guard says so where it can.
func (w *world) end(a *actor, status int) {
	a.running = false
	if a.guarded && !a.guardStopped && !a.cutOff && w.lease != nil && w.lease.Deploy == a.deploy {
		w.lease.Finished = &Outcome{Time: w.now, ExitStatus: status}
		w.changed = w.now
	}
}

func (w *world) settle(a *actor, s Status) {
	status := 0
	if n := w.newest(); w.wrote(a) {
		n.Status, n.Written = s, w.now
	}
	if s == Failed {
		status = 1
	}
	w.end(a, status)
}

// cancel is a signal: it is noted where the guard can, and Helm heeds it, but leaves a rollback pending.
func (w *world) cancel(a *actor) {
	if a.guarded && !a.cutOff && w.lease != nil && w.lease.Deploy == a.deploy {
		w.lease.Signal, w.changed = "SIGTERM", w.now
	}
	if a.labels {
		w.settle(a, Failed)
		return
	}
	w.end(a, 1)
}

// live does what a running actor does in one step.
func (w *world) live(a *actor) {
	switch {
	case w.chance(3): // killed with its guard and its pod
		a.running, a.podRuns = false, false
		a.nodeAnswers = w.chance(70)
		return
	case w.chance(2):
		a.helmStopped = !a.helmStopped
	case w.chance(2) && (a.inPod || a.timeout == 0):
		// A guard that is stopped together with its command, outside a pod, for longer than its timeout cannot be told from a
		// dead one: design 0013 says so.
		a.guardStopped = !a.guardStopped
		a.helmStopped = a.guardStopped
	case w.chance(4):
		a.cutOff = !a.cutOff
	}
	if a.guarded && !a.guardStopped {
		w.guard(a)
	}
	if !a.running || a.helmStopped {
		return
	}
	switch {
	case a.cutOff:
	case w.chance(30):
		w.write(a)
	case w.chance(4):
		w.settle(a, Deployed)
	case w.chance(2):
		w.settle(a, Failed)
	case w.chance(3):
		w.cancel(a)
	case w.chance(1):
		w.end(a, 137) // Helm alone was killed, and its guard says so
	}
}

// guard renews the lease, and stops the command when it could not for two thirds of it, or the time is up.
func (w *world) guard(a *actor) {
	if !a.cutOff && w.lease != nil && w.lease.Deploy == a.deploy {
		a.heard, w.changed = w.now, w.now
	}
	if w.now.Sub(a.heard) >= leaseTime*2/3 || a.timeout > 0 && w.now.Sub(a.began) >= a.timeout {
		w.end(a, 143)
	}
}

// seen is what an observer that watches the API knows.
func (w *world) seen() Input {
	in := Input{Now: w.now, Revisions: w.revisions}
	if w.lease == nil {
		return in
	}
	l := *w.lease
	since := w.changed
	if w.watched.After(since) {
		since = w.watched
	}
	l.Written, l.Unchanged = w.changed, w.now.Sub(since)
	in.Lease = &l
	for _, a := range w.actors {
		if a.deploy != l.Deploy || !a.inPod || !a.nodeAnswers {
			continue
		}
		if in.Life = Dead; a.podRuns {
			in.Life = Alive
		}
	}
	return in
}

// leaseholder is who has the lease, or had it last; nil for nobody.
func (w *world) leaseholder() *actor {
	for _, a := range w.actors {
		if w.lease != nil && a.deploy == w.lease.Deploy {
			return a
		}
	}
	return nil
}

// somebodyLives reports whether any command still may write to the release.
func (w *world) somebodyLives() bool {
	for _, a := range w.actors {
		if a.running {
			return true
		}
	}
	return false
}

func TestALiveOperationIsNeverTouched(t *testing.T) {
	acted, spared, left := 0, 0, 0
	for seed := range uint64(10_000) {
		w := &world{rand: rand.New(rand.NewPCG(seed, 1)), now: now, watched: now}
		for range 150 {
			w.now = w.now.Add(step)
			if len(w.actors) < 4 && w.chance(8) {
				w.start()
			}
			if w.chance(2) {
				w.watched = w.now // the observer starts anew
			}
			for _, a := range w.actors {
				if a.running {
					w.live(a)
				}
			}
			v := Judge(w.seen())
			if v.Operation != NoOperation && w.somebodyLives() {
				spared++
			}
			if v.Left {
				left++
				if w.leaseholder().running {
					t.Fatalf("history %d: its starter is told that a deploy that lives has left its revision: %s", seed, v.Reason)
				}
			}
			for _, who := range []Actor{ByController, ByPreflight} {
				for _, policy := range Policies() {
					p := Decide(v, Request{Now: w.now, Actor: who, Policy: policy, ReportAfter: 30 * time.Minute})
					if !p.Action.Writes() {
						continue
					}
					acted++
					if w.writers[len(w.writers)-1].running {
						t.Fatalf("history %d: the %s does a %s under %s on a live operation: %s", seed, who, p.Action, policy, p.Why)
					}
				}
			}
		}
	}
	if acted < 10_000 || spared < 100_000 || left < 10_000 {
		t.Errorf("acted %d times, spared a live operation %d times, and told of one that was left %d times: the histories prove nothing", acted, spared, left)
	}
}
