package acceptance

import (
	"context"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// venue is a lab, with Tidemark's manifests on it, for one test.
type venue struct {
	t   *testing.T
	lab *client.Lab
}

// alone gives the test a lab that no other uses meanwhile, for what concerns a whole cluster: its controllers, its nodes, its
// API. The test runs in parallel with others on other labs.
func alone(t *testing.T) venue {
	t.Helper()
	return aloneIn(t, func() bool { return t.Failed() }) // so that what it left behind makes no other test fail
}

// alonePinned is alone on a lab with mode pin installed.
func alonePinned(t *testing.T) venue {
	t.Helper()
	v := aloneIn(t, func() bool { return true })
	if err := scenario.InstallPin(t.Context(), v.lab); err != nil {
		t.Fatal(err)
	}
	return v
}

// turn makes the test one of those that run at the same time on labs that they share.
func turn(t *testing.T) {
	t.Helper()
	t.Parallel()
	shared.turns <- struct{}{}
	t.Cleanup(func() { <-shared.turns })
}

// aloneIn gives the test a lab, which is closed when the test ends and spoilt says so.
func aloneIn(t *testing.T, spoilt func() bool) venue {
	t.Helper()
	t.Parallel()
	place := <-shared.places
	t.Cleanup(func() {
		if spoilt() {
			place.close(t)
		}
		shared.places <- place
	})
	lab, err := place.open()
	if err != nil {
		t.Fatal(err)
	}
	return venue{t, lab}
}

// open makes a namespace, with a mode as its label unless that is "". It is removed when the test ends.
func (v venue) open(namespace, mode string) *scene {
	v.t.Helper()
	s, err := scenario.Open(v.t.Context(), v.lab, namespace, mode)
	if err != nil {
		v.t.Fatal(err)
	}
	stage := &scene{Scene: s, t: v.t}
	v.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), labtest.Patience) // the test's own has ended
		defer cancel()
		if v.t.Failed() {
			stage.report(ctx)
		}
		if err := s.Close(ctx); err != nil {
			v.t.Error(err)
		}
	})
	return stage
}

// control starts a controller, which is stopped at the end of the test.
func (v venue) control(flags ...string) *scenario.Controller {
	v.t.Helper()
	return v.start(scenario.Program{Flags: flags})
}

// watchful is control that returns when the controller can tell what pods loaded that are made from now on.
func (v venue) watchful(flags ...string) *scenario.Controller {
	v.t.Helper()
	c := v.control(flags...)
	if err := c.HasWatched(v.t.Context()); err != nil {
		v.t.Fatal(err)
	}
	return c
}

// standBy starts a controller beside another one, which leads.
func (v venue) standBy(flags ...string) *scenario.Controller {
	v.t.Helper()
	return v.start(scenario.Program{StandBy: true, Flags: flags})
}

func (v venue) start(p scenario.Program) *scenario.Controller {
	v.t.Helper()
	p.Binary = shared.binary
	return v.begin(scenario.Start(v.t.Context(), v.lab, p))
}

// begin takes charge of a controller that was started.
func (v venue) begin(c *scenario.Controller, err error) *scenario.Controller {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() {
		if v.t.Failed() {
			v.t.Logf("end of the controller's log\n%s", tail(unless(c.Log(), "healthz check failed"), 40))
		}
		select {
		case <-c.Ended(): // the test stopped it
		default:
			if err := c.Stop(); err != nil {
				v.t.Error(err)
			}
		}
	})
	return c
}

// open makes a namespace on the lab that is there from the beginning, for a test that does not run in parallel, or has its turn.
func open(t *testing.T, namespace, mode string) *scene {
	t.Helper()
	return venue{t, shared.lab}.open(namespace, mode)
}

// openRolling makes a namespace in mode roll on the lab that tests share, with the controller that works on all of it. The
// test must have its turn.
func openRolling(t *testing.T, namespace string) *scene {
	t.Helper()
	return openControlled(t, namespace, v1.ModeRoll)
}

// openControlled is openRolling with another mode as the label, or none.
func openControlled(t *testing.T, namespace, mode string) *scene {
	t.Helper()
	c, err := shared.controller()
	if err != nil {
		t.Fatal(err)
	}
	s := venue{t, shared.lab}.open(namespace, mode)
	s.controller = c
	return s
}
