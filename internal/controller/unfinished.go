package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
)

// rollouts looks, again and again, for rollouts that are left unfinished, and promotes canaries that ask for it. It runs where
// this process leads.
type rollouts struct {
	*Controller
	interval time.Duration
	// said are the last words about each workload, as long as they hold.
	said map[ID]saidOfRollout
}

// saidOfRollout is what was last told of a workload's rollout.
type saidOfRollout struct {
	unfinished, promotion, failure string
	// since is since when the newer revision is there, where the rollout was seen unfinished last.
	since time.Time
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*rollouts) NeedLeaderElection() bool { return true }

// Start looks until the context ends.
func (r *rollouts) Start(ctx context.Context) error {
	r.said = map[ID]saidOfRollout{}
	for {
		r.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-r.clock.After(r.interval):
		}
	}
}

// look looks at every workload once. One that cannot be read stops no other.
func (r *rollouts) look(ctx context.Context) {
	said := map[ID]saidOfRollout{}
	overdue := map[ID]time.Duration{}
	for _, id := range r.index.all() {
		s := r.index.workload(id)
		if s == nil || s.object.GetDeletionTimestamp() != nil || r.index.namespace(id.Namespace).ending {
			continue
		}
		now := r.said[id]
		u, err := r.unfinished(ctx, s)
		if err == nil { // else it is as it was seen last
			now.unfinished, now.since = r.tell(ctx, s, now.unfinished, u), time.Time{}
			if u != nil {
				now.since = u.Since
			}
		}
		err = errors.Join(err, r.promote(ctx, s, &now))
		if ctx.Err() != nil {
			return
		}
		now.failure = r.failed(s, now.failure, err)
		if now != (saidOfRollout{}) {
			said[id] = now
		}
		if !now.since.IsZero() {
			overdue[id] = r.clock.Since(now.since)
		}
	}
	r.said = said
	r.metrics.unfinishedRollouts(overdue)
}

// unfinished is a workload's rollout that is unfinished for longer than it may be; nil when there is none.
func (r *rollouts) unfinished(ctx context.Context, s *subject) (*fleet.Unfinished, error) {
	if !cluster.MayStayUnfinished(s.object) {
		return nil, nil
	}
	after, _ := cluster.UnfinishedAfter(r.settings(s)...) // a problem of it is told elsewhere
	partial, err := cluster.PartialOf(ctx, r.reader, s.object, after)
	if err != nil {
		return nil, fmt.Errorf("look for unfinished rollouts: %w", err)
	}
	if u := partial.UnfinishedAt(r.clock.Now()); u != nil && u.Overdue {
		return u, nil
	}
	return nil, nil
}

// settings are the annotations that may say something of a workload's rollouts: its own, those of what has its template, and
// those of the template.
func (r *rollouts) settings(s *subject) []map[string]string {
	out := []map[string]string{s.object.GetAnnotations()}
	holder := s
	if id, ok := s.elsewhere(); ok {
		if holder = r.index.workload(id); holder == nil {
			return out
		}
		out = append(out, holder.object.GetAnnotations())
	}
	if template, err := holder.kind.Template(holder.object); err == nil {
		out = append(out, template.Annotations)
	}
	return out
}

// tell announces a rollout that is left unfinished once for each revision. It returns what was told.
func (r *rollouts) tell(ctx context.Context, s *subject, told string, u *fleet.Unfinished) string {
	if u == nil {
		return ""
	}
	now := u.Revision + "/" + fmt.Sprint(u.Number)
	if now == told {
		return told
	}
	if err := r.announceOnce(ctx, s, now, "the rollout is unfinished since "+u.Since.UTC().Format(time.RFC3339)+": "+u.Text()); err != nil {
		r.log.Error(err, "Cannot tell of an unfinished rollout; trying again", "workload", s.id.String())
		return told
	}
	r.log.Info("Rollout is unfinished", "workload", s.id.String(), "revision", u.Revision, "since", u.Since, "cause", string(u.Cause))
	return now
}

// announceOnce tells of a workload's rollout by [eventOnce].
func (r *rollouts) announceOnce(ctx context.Context, s *subject, what, note string) error {
	return eventOnce(ctx, r.options.Direct, r.clock.Now(), corev1.ObjectReference{
		APIVersion: s.id.GVK.GroupVersion().String(), Kind: s.id.GVK.Kind, Namespace: s.id.Namespace, Name: s.id.Name,
		UID: s.object.GetUID(), ResourceVersion: s.object.GetResourceVersion(),
	}, "Watch", "RolloutUnfinished", what, note)
}

// promote ends the pause of a canary that asks for it.
func (r *rollouts) promote(ctx context.Context, s *subject, said *saidOfRollout) error {
	c, waits := cluster.CanaryOf(s.object)
	if !waits || c.After == 0 {
		said.promotion = ""
		return nil
	}
	c.Stopped = r.stopped(s)
	if p := fleet.Promote(c, r.clock.Now()); p.Why == "" && !p.Now && !p.At.IsZero() {
		return nil // pods need not be read before it is time
	}
	if err := cluster.AddCanaryPods(ctx, r.reader, s.object, &c); err != nil {
		return fmt.Errorf("look whether a canary is healthy: %w", err)
	}
	p := fleet.Promote(c, r.clock.Now())
	if !p.Now {
		if p.Why != "" && p.Why != said.promotion {
			r.announcer.notPromoted(s, p.Why)
		}
		said.promotion = p.Why
		return nil
	}
	if err := cluster.Promote(ctx, r.client, s.object); apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // decided again at the next look, on what is there then
	} else if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	said.promotion = ""
	r.announcer.promoted(s, c.After)
	r.log.Info("Promoted a canary", "workload", s.id.String(), "pausedSince", c.Since, "after", c.After)
	return nil
}

// stopped says who stopped all writes on a workload, or on what has its template; "" when nobody did.
func (r *rollouts) stopped(s *subject) string {
	by := r.pausedBy(s)
	if id, ok := s.elsewhere(); ok && by == "" {
		if holder := r.index.workload(id); holder != nil {
			by = r.pausedBy(holder)
		}
	}
	return by
}

func (r *rollouts) pausedBy(s *subject) string {
	return cluster.PausedBy(s.object.GetAnnotations(), s.object.GetLabels(),
		r.index.namespace(s.id.Namespace).annotations, r.index.namespace(r.options.Namespace).annotations)
}

// failed logs an error of a workload once, until it is another one or none, and returns it as text. A missing right is told on the
// workload too.
func (r *rollouts) failed(s *subject, before string, err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if text == before {
		return text
	}
	r.log.Error(err, "Cannot see to a rollout; trying again", "workload", s.id.String(), "retryIn", r.interval, "promoteAfter", s.object.GetAnnotations()[v1.AnnotationPromoteAfter])
	if apierrors.IsForbidden(err) {
		r.announcer.rolloutRefused(s, err)
	}
	return text
}
