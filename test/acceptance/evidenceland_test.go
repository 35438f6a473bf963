package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/test/scenario"
)

// land is what the worlds of a run share: the nodes, the controller and the course of time.
type land struct {
	worlds []*world
	random *rand.Rand
	// apart says that steps are spaced beyond all margins, so that no read and no change come near each other by chance.
	apart bool
	// margins are those that hold on the lab.
	margins fleet.Settings
	// longest is for how many rounds an object, or a node, stays away.
	longest int
	// wanted is how many steps there are to be, steps how many there were, in so many rounds.
	wanted, steps, round int
	// happened counts the steps by what happened; past are all of them, for people.
	happened map[string]int
	past     []string

	program *scenario.Controller
	// started is when it was started.
	started time.Time
	// alive is when the controller was last seen to run; unled are the times in which none led because one had given up.
	alive time.Time
	unled []history.Span
	// down is the round in which a controller is started again; 0 while one runs.
	down     int
	cordoned string
	// cuts are the times for which nodes were cut off, oldest first; the last may be cut off still, since the round cutSince.
	cuts     []cut
	cutSince int
	// silences are those of nodes that the controller knows.
	silences history.Silences
	// noticedCuts is how many cuts the controller had to notice.
	noticedCuts int
}

// stage is the first world's scene, for what concerns all of them.
func (l *land) stage() *scene { return l.worlds[0].scene }

// event is one of the things that happen.
type event struct {
	name   string
	weight int
	// happen makes it happen, or reports that it cannot now.
	happen func() bool
}

// choose lets one of the events happen. In the second half of the run, what has not happened yet comes first.
func (l *land) choose(events []event) {
	if 2*l.steps > l.wanted {
		for _, e := range events {
			if l.happened[e.name] == 0 && e.happen() {
				l.took(e.name)
				return
			}
		}
	}
	total := 0
	for _, e := range events {
		total += e.weight
	}
	for {
		n := l.random.IntN(total)
		for _, e := range events {
			if n -= e.weight; n < 0 {
				if e.happen() {
					l.took(e.name)
					return
				}
				break
			}
		}
	}
}

// took notes a step.
func (l *land) took(what string) {
	l.steps++
	l.happened[what]++
	l.past = append(l.past, fmt.Sprintf("%s step %d: %s", time.Now().UTC().Format(time.StampMilli), l.steps, what))
}

// events are what may happen to the nodes and to the controller.
func (l *land) events() []event {
	return []event{
		{"drain", 2, l.drain},
		{"uncordon", 3, l.uncordon},
		{"cut-off", 1, l.cutOff},
		{"heal", 2, l.heal},
		{"stop-controller", 1, l.stop},
		{"kill-controller", 1, l.kill},
	}
}

// oneIn is in how many rounds something happens to the land.
const oneIn = 6

// advance plays a round: something happens to each world, and rarely to the land, where steps are apart in a round of its own.
// Nodes and controllers do not stay away for ever.
func (l *land) advance() {
	l.round++
	before := l.steps
	switch {
	case l.cutNow() != "" && l.round-l.cutSince > l.longest:
		l.heal()
		l.took("heal")
	case l.down == 0 && l.ended():
		l.start()
		l.took("lead-lost")
	case l.down != 0 && l.round >= l.down:
		l.start()
		l.took("start-controller")
	case l.random.IntN(oneIn) == 0:
		l.choose(l.events())
	}
	if l.apart && l.steps > before {
		return
	}
	for _, w := range l.worlds {
		w.advance()
	}
}

// moment lets some time pass.
func (l *land) moment(mostMilliseconds int) {
	time.Sleep(time.Duration(l.random.IntN(mostMilliseconds)) * time.Millisecond)
}

// linger lets time pass after a round: mostly none, and rarely enough for calm; or, where steps are apart, until for as long
// as the margins reach nothing happened and no container started.
func (l *land) linger() {
	if l.apart {
		l.rest()
		return
	}
	switch n := l.random.IntN(10); {
	case n < 6:
		l.moment(2000)
	case n == 6:
		time.Sleep(4 * time.Second)
	}
}

// longestRest bounds the wait for calm: where a node is cut off, or an object is away, some pods start when they can.
const longestRest = 45 * time.Second

func (l *land) rest() {
	began := time.Now()
	last := began
	for time.Since(last) < reach(l.margins) && time.Since(began) < longestRest {
		time.Sleep(500 * time.Millisecond)
		for _, w := range l.worlds {
			running, err := w.Running(w.t.Context())
			w.must(err)
			for _, s := range running {
				last = later(last, s.Started)
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (l *land) drain() bool {
	if l.cordoned != "" {
		return false
	}
	s := l.stage()
	l.cordoned = pick(l.random, s.Lab.Nodes())
	_, _, err := s.Lab.Kubectl(s.t.Context(), "drain", l.cordoned, "--ignore-daemonsets", "--force", "--timeout=10s")
	if err != nil {
		s.t.Logf("step %d: %v", l.steps, err) // pods that leave slowly are no matter here
	}
	return true
}

func (l *land) uncordon() bool {
	if l.cordoned == "" {
		return false
	}
	s := l.stage()
	_, _, err := s.Lab.Kubectl(s.t.Context(), "uncordon", l.cordoned)
	s.must(err)
	l.cordoned = ""
	return true
}

// cut is a time for which a node was cut off; without an end while it is.
type cut struct {
	node     string
	from, to time.Time
	// watched is the controller that led from before its beginning; nil when none surely did.
	watched *scenario.Controller
}

// cutNow is the node that is cut off, "" when none is.
func (l *land) cutNow() string {
	if n := len(l.cuts); n > 0 && l.cuts[n-1].to.IsZero() {
		return l.cuts[n-1].node
	}
	return ""
}

func (l *land) cutOff() bool {
	if l.cutNow() != "" {
		return false
	}
	s := l.stage()
	node := pick(l.random, s.Lab.Nodes())
	c := cut{node: node, from: time.Now()}
	if l.down == 0 && time.Since(l.started) > takesOver {
		c.watched = l.program
	}
	l.cuts, l.cutSince = append(l.cuts, c), l.round
	s.must(s.Lab.Partition(s.t.Context(), node))
	return true
}

func (l *land) heal() bool {
	node := l.cutNow()
	if node == "" {
		return false
	}
	s := l.stage()
	s.must(s.Lab.Heal(s.t.Context(), node))
	l.cuts[len(l.cuts)-1].to = time.Now()
	return true
}

// stale is for how long a kubelet that is connected again may serve what it knew before: so long may it wait, at most,
// before it tries anew to watch an object.
const stale = time.Minute

// wasCutSince reports whether the node was cut off, or served what it knew before it was, at the time or later.
func (l *land) wasCutSince(node string, at time.Time) bool {
	return slices.ContainsFunc(l.cuts, func(c cut) bool {
		return c.node == node && (c.to.IsZero() || at.Before(c.to.Add(stale)))
	})
}

const (
	// takesOver is how long a controller may take to lead that is started after another was killed.
	takesOver = 40 * time.Second
	// learns is how long the history may take to have a silence of a node, from its end.
	learns = 15 * time.Second
	// missed is how long a node of this lab is cut off at least when its silence is noticed: two renewals of its Lease are missing.
	missed = 5 * time.Second
)

// wasCutUnnoticed reports whether the node was cut off at the time, or served what it knew before it was, and the controller could not
// know that when it was said: it had not heard of it yet, none led all the while, or it was too short.
func (l *land) wasCutUnnoticed(node string, at, said time.Time) bool {
	return slices.ContainsFunc(l.cuts, func(c cut) bool {
		return c.node == node && at.After(c.from) && (c.to.IsZero() || at.Before(c.to.Add(stale))) &&
			(c.to.IsZero() || said.Before(c.to.Add(learns)) || !l.noticed(c))
	})
}

// noticed reports whether the controller knows of a silence of the node when it was cut off.
func (l *land) noticed(c cut) bool {
	return slices.ContainsFunc(l.silences[c.node], func(s history.Span) bool {
		return s.From.Before(c.to) && (s.To.IsZero() || s.To.After(c.from))
	})
}

// hear reads which silences of nodes the controller knows. It must know those that it watched from their beginning to their end.
func (l *land) hear() {
	s := l.stage()
	var err error
	l.silences, err = cluster.ReadSilences(s.t.Context(), s.API, scenario.SystemNamespace)
	s.must(err)
	for i := range l.cuts {
		c := &l.cuts[i]
		if c.to.IsZero() || time.Since(c.to) < learns || c.watched == nil {
			continue
		}
		if c.watched == l.program && l.down == 0 && !l.ended() && c.to.Sub(c.from) > missed {
			if l.noticedCuts++; !l.noticed(*c) {
				s.t.Errorf("%s was cut off from %v to %v, and of its silences the controller knows only %v", c.node, c.from, c.to, l.silences[c.node])
			}
		}
		c.watched = nil // judged once
	}
}

// controllerFlags let rollouts happen as often as they are wanted.
var controllerFlags = []string{"--storm-rolls=0"}

func (l *land) start() {
	s := l.stage()
	c, err := scenario.Start(s.t.Context(), s.Lab, scenario.Program{Binary: shared.binary, Flags: controllerFlags})
	s.must(err)
	l.program, s.controller, l.down, l.started = c, c, 0, time.Now()
}

// ended reports whether the controller gave up because it could not renew its Lease, as it must on a machine that is too busy.
func (l *land) ended() bool {
	select {
	case <-l.program.Ended():
	default:
		return false
	}
	if s := l.stage(); !strings.Contains(l.program.Log(), "leader election lost") {
		s.t.Fatalf("the controller ended by itself:\n%s", tail(l.program.Log(), 40))
	}
	return true
}

// revive starts another controller for one that gave up, and waits until it knows as much as one that went on.
func (l *land) revive() {
	if l.apart && l.ended() {
		l.start()
		l.stage().must(l.program.HasWatched(l.stage().t.Context()))
		time.Sleep(late)
		l.unled = append(l.unled, history.Span{From: l.alive.Add(-late), To: time.Now()})
		l.took("lead-lost")
	}
	l.alive = time.Now()
}

// stop stops the controller, and starts it at once or after some rounds.
func (l *land) stop() bool {
	if l.down != 0 || l.ended() {
		return false
	}
	l.stage().must(l.program.Stop())
	l.away(l.random.IntN(8))
	return true
}

func (l *land) kill() bool {
	if l.down != 0 || l.ended() {
		return false
	}
	l.stage().must(l.program.Kill())
	l.away(2 + l.random.IntN(12))
	return true
}

// away leaves the land without a controller for some rounds; where steps are apart for none, as the next would come too near.
func (l *land) away(rounds int) {
	l.down = l.round + rounds
	if l.apart {
		l.start()
	}
}

// close leaves the lab as it was.
func (l *land) close(ctx context.Context) {
	s := l.stage()
	var errs []error
	if l.down == 0 && l.program != nil && !l.ended() {
		errs = append(errs, l.program.Stop())
	}
	errs = append(errs, s.Lab.ClearDelays(ctx))
	if node := l.cutNow(); node != "" {
		errs = append(errs, s.Lab.Heal(ctx, node))
	}
	if l.cordoned != "" {
		_, _, err := s.Lab.Kubectl(ctx, "uncordon", l.cordoned)
		errs = append(errs, err)
	}
	for _, err := range errs {
		if err != nil {
			s.t.Error(err)
		}
	}
}
