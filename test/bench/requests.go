package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// tally counts requests by what was asked: "patch deployments".
type tally map[string]int64

const controllerUser = "system:serviceaccount:" + scenario.SystemNamespace + ":" + scenario.ServiceAccount

// byTheClock are the groups of what the controller asks for again and again, whatever the cluster does: the heartbeat of leader
// election, whether pins are in force, and what it may do.
var byTheClock = []string{"coordination.k8s.io", "admissionregistration.k8s.io", "authorization.k8s.io"}

// byController selects the controller's requests, without those that go by the clock; discovery is among these.
func byController(r wire.Request) bool {
	return r.User == controllerUser && !slices.Contains(byTheClock, r.Group) && !strings.HasPrefix(r.Path, "/api")
}

// byAgent selects the requests of one user agent, or of those that begin with it.
func byAgent(agent string) func(wire.Request) bool {
	return func(r wire.Request) bool { return strings.HasPrefix(r.UserAgent, agent) }
}

// requests counts what was asked since the last reset.
func (s *site) requests(ctx context.Context, by func(wire.Request) bool) (tally, error) {
	all, err := s.lab.Requests(ctx)
	if err != nil {
		return nil, err
	}
	t := tally{}
	for _, r := range all {
		if by(r) && r.Count > 0 { // an open watch counts from its beginning
			t[asked(r)] += r.Count
		}
	}
	return t, nil
}

// asked names what a request asks for; one that was refused says so.
func asked(r wire.Request) string {
	what := r.Verb + " " + r.Resource
	switch {
	case r.Resource == "":
		what = r.Verb + " " + r.Path
	case r.Subresource != "":
		what += "/" + r.Subresource
	}
	if r.Code >= 400 {
		what += fmt.Sprintf(" (refused: %d)", r.Code)
	}
	return what
}

func (t tally) total() (n int64) {
	for _, count := range t {
		n += count
	}
	return n
}

// of counts the requests of a verb.
func (t tally) of(verb string) (n int64) {
	for what, count := range t {
		if strings.HasPrefix(what, verb+" ") {
			n += count
		}
	}
	return n
}

// String lists the counts, the highest first.
func (t tally) String() string {
	kinds := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		if t[a] != t[b] {
			return int(t[b] - t[a])
		}
		return strings.Compare(a, b)
	})
	var out []string
	for _, k := range kinds {
		out = append(out, grouped(t[k])+" "+k)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// quiet is how long the controller must have asked nothing for its work to count as done: more than it gathers changes of
// the history for, before it writes them.
const quiet = 2500 * time.Millisecond

// atRest waits until the controller has asked nothing for a while.
func (s *site) atRest(ctx context.Context) error {
	last, since := int64(-1), time.Now()
	for {
		t, err := s.requests(ctx, byController)
		if err != nil {
			return err
		}
		if n := t.total(); n != last {
			last, since = n, time.Now()
		} else if time.Since(since) >= quiet {
			return nil
		}
		if err := wait(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
