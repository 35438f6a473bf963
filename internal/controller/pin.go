package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// addPinning adds what follows whether pins are in force, in the cluster and pod by pod.
func (c *Controller) addPinning(mgr manager.Manager) error {
	c.pinning = &pinning{
		reader: c.reader, clock: c.clock, log: c.log, metrics: c.metrics, came: func() { c.enqueue(c.index.all()...) },
	}
	if err := mgr.Add(c.pinning); err != nil {
		return fmt.Errorf("add look at pins: %w", err)
	}
	if c.options.Pods == nil {
		return nil
	}
	err := mgr.Add(&podWatch{
		pods: c.options.Pods, client: c.client, clock: c.clock, log: c.log, metrics: c.metrics, announcer: c.announcer,
		sightings: c.sightings, ready: func(id ID) { c.enqueue(id) },
		off: map[types.NamespacedName]bool{},
	})
	if err != nil {
		return fmt.Errorf("add watch of pods: %w", err)
	}
	return nil
}

// outOfForce reports whether a decision is no use: it rolls a workload for its first pins only, which no pod would read.
func (c *Controller) outOfForce(d stamp.Decision) bool {
	return d.Reason == stamp.FirstPin && c.pinning != nil && !c.pinning.inForce()
}

// pin makes the snapshots that a decision names, before it is written. The decision may be another one afterwards, when the
// API is ahead of what was watched.
func (c *Controller) pin(ctx context.Context, v view, d stamp.Decision) (stamp.Decision, error) {
	if d.Action != stamp.WriteStamp || len(d.Pins) == 0 {
		return d.Pinned(nil), nil
	}
	next := func(_ context.Context, o workload.Object) (int64, error) { return c.index.nextRevision(o), nil }
	return c.copier.Pin(ctx, v.state, d, next, c.clock.Now())
}
