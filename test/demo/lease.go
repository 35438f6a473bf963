package main

import (
	"context"
	"fmt"
	"maps"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/test/scenario"
)

// lease: an edit from June meets a drain in August.
var lease = incident{id: "lease", scenes: []scene{
	{title: "without Tidemark", namespace: "lease-without", play: leaseWithout},
	{title: "with Tidemark in mode roll", namespace: "lease-roll", mode: v1.ModeRoll, play: leaseRoll},
	{title: "with Tidemark in mode observe, where the edit may not roll", namespace: "lease-observe", mode: v1.ModeObserve, play: leaseObserve},
}}

const (
	sender    = "deployment/sender"
	upgraded  = "node-1"
	juneValue = "10m"
	newValue  = "2m"
)

var (
	loadedLease = scenario.Env("LEASE_DURATION")
	// split is the outcome of the incident: a quarter of 24 pods runs another value than the rest.
	split    = map[string]int{juneValue: 18, newValue: 6}
	all24    = map[string]int{newValue: 24}
	all24Old = map[string]int{juneValue: 24}
)

func leaseWithout(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	if err := s.leaseBegins(ctx, sc); err != nil {
		return err
	}
	if err := s.leaseEdit(ctx, sc); err != nil {
		return err
	}
	loaded, err := s.leaseDrain(ctx, sc)
	if err != nil {
		return err
	}
	j.add(maps.Equal(loaded, split), "without, a drain of %s left %s", upgraded, tally(loaded))
	return nil
}

func leaseRoll(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	if err := s.leaseBegins(ctx, sc); err != nil {
		return err
	}
	if err := sc.Set(ctx, "sender-config", "LEASE_DURATION", newValue); err != nil {
		return err
	}
	s.step("ConfigMap sender-config: LEASE_DURATION "+juneValue+" → "+newValue, "Tidemark writes the stamp")
	if err := leaseAwait(ctx, sc, all24); err != nil {
		return err
	}
	if err := awaitVerdict(ctx, sc, sender, "in-step"); err != nil {
		return err
	}
	loaded, err := sc.Loaded(ctx, loadedLease)
	if err != nil {
		return err
	}
	s.step("rollout complete", "loaded: %s", tally(loaded))
	j.add(maps.Equal(loaded, all24), "in mode roll the edit gave %s", tally(loaded))
	if loaded, err = s.leaseDrain(ctx, sc); err != nil {
		return err
	}
	if err := awaitVerdict(ctx, sc, sender, "in-step"); err != nil {
		return err
	}
	verdict, _, err := s.status(ctx, sc, sender)
	j.add(maps.Equal(loaded, all24) && verdict == "in-step", "and after a drain %s, %s", tally(loaded), verdict)
	return err
}

func leaseObserve(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	if err := s.leaseBegins(ctx, sc); err != nil {
		return err
	}
	if err := s.leaseEdit(ctx, sc); err != nil {
		return err
	}
	if err := awaitVerdict(ctx, sc, sender, "dormant"); err != nil {
		return err
	}
	first, _, err := s.status(ctx, sc, sender)
	if err != nil {
		return err
	}
	loaded, err := s.leaseDrain(ctx, sc)
	if err != nil {
		return err
	}
	if err := awaitVerdict(ctx, sc, sender, "split"); err != nil {
		return err
	}
	verdict, reason, err := s.status(ctx, sc, sender)
	if err != nil {
		return err
	}
	j.add(maps.Equal(loaded, split) && first == "dormant" && verdict == "split",
		"in mode observe status said %s, then %s (%s)", first, verdict, reason)
	return nil
}

// leaseBegins waits for the fleet as it was in May.
func (s *stage) leaseBegins(ctx context.Context, sc *scenario.Scene) error {
	if err := sc.RolledOut(ctx, sender); err != nil {
		return err
	}
	if err := s.letAge(ctx, sc, apart); err != nil {
		return err
	}
	loaded, err := sc.Loaded(ctx, loadedLease)
	if err != nil {
		return err
	}
	s.step(sender+" runs on four nodes", "loaded: %s", tally(loaded))
	if !maps.Equal(loaded, all24Old) {
		return fmt.Errorf("the fleet began with %s", tally(loaded))
	}
	return nil
}

// leaseEdit is the edit of June, which nothing notices.
func (s *stage) leaseEdit(ctx context.Context, sc *scenario.Scene) error {
	if err := sc.Set(ctx, "sender-config", "LEASE_DURATION", newValue); err != nil {
		return err
	}
	if err := s.letAge(ctx, sc, 2*apart); err != nil {
		return err
	}
	loaded, err := sc.Loaded(ctx, loadedLease)
	if err != nil {
		return err
	}
	s.step("ConfigMap sender-config: LEASE_DURATION "+juneValue+" → "+newValue, "loaded: %s", tally(loaded))
	if !maps.Equal(loaded, all24Old) {
		return fmt.Errorf("after the edit the fleet ran %s", tally(loaded))
	}
	return nil
}

// leaseDrain is the upgrade of a node in August.
func (s *stage) leaseDrain(ctx context.Context, sc *scenario.Scene) (map[string]int, error) {
	before, err := sc.Running(ctx)
	if err != nil {
		return nil, err
	}
	moved := 0
	for _, start := range before {
		if start.Node == upgraded {
			moved++
		}
	}
	if err := sc.Drain(ctx, upgraded); err != nil {
		return nil, err
	}
	if err := sc.RolledOut(ctx, sender); err != nil {
		return nil, err
	}
	if err := scenario.Await(ctx, "24 pods", func() error {
		running, err := sc.Running(ctx)
		if err == nil && len(running) != len(before) {
			err = fmt.Errorf("%d run", len(running))
		}
		return err
	}); err != nil {
		return nil, err
	}
	loaded, err := sc.Loaded(ctx, loadedLease)
	s.step(fmt.Sprintf("%s drained, %d pods replaced", upgraded, moved), "loaded: %s", tally(loaded))
	return loaded, err
}

func leaseAwait(ctx context.Context, sc *scenario.Scene, want map[string]int) error {
	return scenario.Await(ctx, "the fleet to run "+tally(want), func() error {
		loaded, err := sc.Loaded(ctx, loadedLease)
		if err == nil && !maps.Equal(loaded, want) {
			err = fmt.Errorf("it runs %s", tally(loaded))
		}
		return err
	})
}
