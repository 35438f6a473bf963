package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// addPinning adds what follows whether pins are in force, in the cluster and pod by pod.
func (c *Controller) addPinning(mgr manager.Manager) error {
	c.pinning.came = func() { c.enqueue(c.index.all()...) }
	if err := mgr.Add(c.pinning); err != nil {
		return fmt.Errorf("add look at pins: %w", err)
	}
	ready := func(*http.Request) error {
		if !c.pinning.looked() {
			return errors.New(unseenPins)
		}
		return nil
	}
	if err := mgr.AddReadyzCheck("pins", ready); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
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

// outOfForce says why a decision must wait: its rollout is no good unless pods read what their pins say, and that they do is not
// known; "" when nothing is in its way. What is good without pins too waits only where they are a matter of seconds.
func (c *Controller) outOfForce(v view, d stamp.Decision) string {
	if why := c.pinning.Lacks(v.state.Namespace); why != "" && (d.NeedsPins(v.state) || len(d.Pins) > 0 && c.pinning.Starting()) {
		return why
	}
	return ""
}

// pin makes the snapshots that a decision names, before it is written. The decision may be another one afterwards, when the
// API is ahead of what was watched.
func (c *Controller) pin(ctx context.Context, v view, d stamp.Decision) (stamp.Decision, error) {
	if d.Action != stamp.WriteStamp || len(d.Pins) == 0 {
		return d.Pinned(nil), nil
	}
	return c.copier.Pin(ctx, v.state, d, c.nextRevision, c.clock.Now())
}

// restore makes the snapshots again that the template names and that somebody deleted, of objects that still have their content.
func (c *Controller) restore(ctx context.Context, s *subject, v view) error {
	if v.state.Mode != stamp.Pin || v.paused != "" {
		return nil
	}
	restored, err := c.copier.Restore(ctx, v.state, c.nextRevision, c.clock.Now())
	text := ""
	if err != nil {
		text = err.Error()
		err = fmt.Errorf("restore the copies of %s: %w", s.id, err)
	}
	if before := c.memory.change(s.id, func(r *recollection) { r.unrestored = text }); text != "" && before.unrestored == "" {
		c.announcer.unrestored(s, text)
	}
	if len(restored) > 0 && err == nil {
		c.log.Info("Made copies again that somebody deleted", "workload", s.id.String(), "of", names(restored, s.id.Namespace))
	}
	return err
}

// nextRevision is a [cluster.Revisions] of what was watched.
func (c *Controller) nextRevision(_ context.Context, o workload.Object) (int64, error) {
	return c.index.nextRevision(o), nil
}
