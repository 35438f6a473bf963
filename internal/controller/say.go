package controller

import (
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// sayHeld tells once that a wanted rollout is held.
func (c *Controller) sayHeld(s *subject, reason, why string) {
	if c.remember(s.id, reason) {
		c.announcer.held(s, reason, why)
		c.log.Info("Rollout held", "workload", s.id.String(), "reason", reason, "why", why)
	}
}

// sayQueued notes that a rollout waits for its turn. That is as it should be, and in a fan-out true of hundreds of workloads,
// so it is no Event.
func (c *Controller) sayQueued(s *subject, ahead int) {
	if c.remember(s.id, "limit") {
		c.log.V(1).Info("Rollout waits for its turn", "workload", s.id.String(), "ahead", ahead)
	}
}

// remember notes for which reason a workload is held and reports whether that is new.
func (c *Controller) remember(id ID, reason string) bool {
	before := c.memory.change(id, func(r *recollection) { r.hold = reason })
	if before.hold == reason {
		return false
	}
	c.metrics.hold(id, reason)
	return true
}

// clearWish forgets that a rollout was wanted, and why it was held.
func (c *Controller) clearWish(id ID) {
	before := c.memory.change(id, func(r *recollection) { r.wanted, r.hold = time.Time{}, "" })
	if before.hold != "" {
		c.metrics.hold(id, "")
	}
	if !before.wanted.IsZero() && !before.rolling {
		c.leave(id)
	}
}

// sayProblems tells once what cannot be read on a workload.
func (c *Controller) sayProblems(s *subject, problems []string) {
	text := strings.Join(problems, "; ")
	before := c.memory.change(s.id, func(r *recollection) { r.problems = text })
	if before.problems == text {
		return
	}
	c.metrics.workloadProblems(s.id, len(problems))
	if text != "" {
		c.announcer.problem(s, text)
		c.log.Info("Cannot read all of a workload; others are not affected", "workload", s.id.String(), "problem", text)
	}
}

// sayStampLost tells once that a stamp which was written is not on the pod template, until one is again.
func (c *Controller) sayStampLost(s *subject) {
	if before := c.memory.change(s.id, func(r *recollection) { r.stampLost = true }); before.stampLost {
		return
	}
	c.announcer.stampLost(s)
	c.log.Info("Stamp lost; others are not affected", "workload", s.id.String(), "template", strings.Join(s.kind.TemplatePath, "."))
}

// sayUnread tells once that nothing can be decided because the right to read a workload's revisions is missing.
func (c *Controller) sayUnread(s *subject, err error) {
	if apierrors.IsForbidden(err) && c.remember(s.id, "unread") {
		c.announcer.unread(s, err)
	}
}

// forget drops all that is kept about a workload that is gone.
func (c *Controller) forget(id ID) {
	before := c.memory.recall(id)
	c.memory.forget(id)
	if before.hold != "" {
		c.metrics.hold(id, "")
	}
	c.metrics.workloadProblems(id, 0)
	c.leave(id)
}
