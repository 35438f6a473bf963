package delay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tidemark.dev/tidemark/lab/wire"
)

func TestWait(t *testing.T) {
	web := wire.Subject{Namespace: "shop", Pod: "web-1", Container: "app", Node: "node-0"}
	hold := func(duration time.Duration, selector wire.Selector) wire.Delay {
		return wire.Delay{Stage: wire.BeforeStart, Duration: duration, Selector: selector}
	}
	for name, test := range map[string]struct {
		delays []wire.Delay
		want   time.Duration
	}{
		"without delays nothing is held":  {},
		"an empty selector picks all":     {delays: []wire.Delay{hold(time.Second, wire.Selector{})}, want: time.Second},
		"the longest of those that match": {delays: []wire.Delay{hold(time.Second, wire.Selector{}), hold(time.Minute, wire.Selector{PodPrefix: "web-"}), hold(time.Hour, wire.Selector{Node: "node-1"})}, want: time.Minute},
		"every field must match":          {delays: []wire.Delay{hold(time.Second, wire.Selector{Namespace: "shop", PodPrefix: "web", Container: "side"})}},
		"another stage does not count":    {delays: []wire.Delay{{Stage: wire.BeforeEnvironment, Duration: time.Second}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := NewTable()
				for _, d := range test.delays {
					table.Add(d)
				}
				begun := time.Now()
				if err := table.Wait(t.Context(), wire.BeforeStart, web); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(begun); got != test.want {
					t.Errorf("held for %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestClearLetsWaitingStartsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable()
		table.Add(wire.Delay{Stage: wire.BeforeStart, Duration: time.Hour})
		begun := time.Now()
		time.AfterFunc(time.Second, table.Clear)
		if err := table.Wait(t.Context(), wire.BeforeStart, wire.Subject{}); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(begun); got != time.Second {
			t.Errorf("held for %v", got)
		}
		if table.Holds(wire.BeforeStart, "node-0") {
			t.Error("still holds")
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable()
		table.Add(wire.Delay{Stage: wire.BeforeStart, Duration: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := table.Wait(ctx, wire.BeforeStart, wire.Subject{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestHoldsAsksForStageAndNode(t *testing.T) {
	table := NewTable()
	table.Add(wire.Delay{Stage: wire.BeforeEnvironment, Selector: wire.Selector{Node: "node-1"}})
	if !table.Holds(wire.BeforeEnvironment, "node-1") || table.Holds(wire.BeforeEnvironment, "node-0") || table.Holds(wire.BeforeStart, "node-1") {
		t.Error("wrong answer")
	}
}
