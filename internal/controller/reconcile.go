package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/pace"
	"tidemark.dev/tidemark/internal/stamp"
)

// conflictRetry is how soon a write is decided again after somebody else wrote first, unless that write shows sooner.
const conflictRetry = time.Second

// errNoEffect is a write that was accepted and changed nothing.
var errNoEffect = errors.New("the API accepted the write and changed nothing: something on the way, such as a mutating webhook, takes " +
	"tidemark.dev annotations or labels away")

// errStampLost is a write that was accepted, after which the pod template is without the stamp.
var errStampLost = errors.New("the API accepted the write without the stamp on the pod template")

// Reconcile looks at one workload: it gathers, decides by the domain's pure functions, and makes at most one write.
func (c *Controller) Reconcile(ctx context.Context, id ID) (reconcile.Result, error) {
	s := c.index.workload(id)
	if s == nil || s.object.GetDeletionTimestamp() != nil || c.index.namespace(id.Namespace).ending {
		c.forget(id) // once more: a look that was under way may have remembered something since
		return reconcile.Result{}, nil
	}
	if c.memory.recall(id).written == s.object.GetResourceVersion() {
		return reconcile.Result{}, nil // our own write has not come back: its event will bring us here again
	}
	c.finishRolling(s)
	v := c.view(s)
	c.sayProblems(s, v.problems)
	if v.blind != "" {
		c.yield(id)
		return reconcile.Result{}, nil
	}
	if err := c.addRevisions(ctx, s, &v); err != nil {
		c.sayUnread(s, err)
		return reconcile.Result{}, err
	}
	d := stamp.Decide(v.state)
	lost := c.restore(ctx, s, v) // which is in the way of nothing else
	result, err := c.act(ctx, s, v, d)
	if err == nil && d.Action == stamp.Nothing {
		var noted reconcile.Result
		noted, err = c.noteAvailable(ctx, s, v, d)
		result = sooner(result, noted.RequeueAfter)
	}
	if err != nil {
		return result, errors.Join(err, lost)
	}
	again, err := c.heal(ctx, s, v)
	return sooner(result, again), errors.Join(err, lost)
}

// sooner looks again at the earlier of two times, of which each may be none.
func sooner(r reconcile.Result, again time.Duration) reconcile.Result {
	if again > 0 && (r.RequeueAfter == 0 || again < r.RequeueAfter) {
		r.RequeueAfter = again
	}
	return r
}

// act does what was decided.
func (c *Controller) act(ctx context.Context, s *subject, v view, d stamp.Decision) (reconcile.Result, error) {
	if v.enables(d) {
		return c.enable(ctx, s, v, d)
	}
	switch d.Action {
	case stamp.WriteStamp:
		return c.roll(ctx, s, v, d)
	case stamp.WriteRecord:
		return c.note(ctx, s, v, d)
	case stamp.Nothing:
		return c.rest(ctx, s, v, d)
	default:
		return reconcile.Result{}, fmt.Errorf("reconcile %s: unknown action %q", s.id, d.Action)
	}
}

// roll writes the stamp as soon as it may be written.
func (c *Controller) roll(ctx context.Context, s *subject, v view, d stamp.Decision) (reconcile.Result, error) {
	if d.Reason != stamp.ContentChanged && c.memory.recall(s.id).stampLost {
		c.yield(s.id) // it would be lost again, and asked for again
		return reconcile.Result{}, nil
	}
	if why := c.outOfForce(v, d); why != "" {
		c.yield(s.id)
		if c.pinning.looked() && !c.pinning.Starting() { // else it is a moment after the start, and it comes back here
			c.sayHeld(s, "pins", why)
		}
		return reconcile.Result{}, nil
	}
	now := c.clock.Now()
	first := c.memory.change(s.id, func(r *recollection) {
		if r.wanted.IsZero() {
			r.wanted = now
		}
	}).wanted
	if first.IsZero() {
		first = now
	}
	verdict := c.options.Pace.Decide(pace.Input{
		Now: now, FirstChange: first, LastChange: v.lastChange(), Rolls: d.Record.Rolls, Paused: v.paused != "",
		ReleasePendingSince: c.pendingSince(ctx, s.object),
	})
	if verdict.Answer == pace.Wait {
		return c.hold(ctx, s, v, d, verdict)
	}
	turn := c.slots.ask(s.id, now)
	if !turn.Granted {
		c.sayQueued(s, turn.Ahead)
		return reconcile.Result{RequeueAfter: turn.Until.Sub(now)}, nil
	}
	written := false
	d, err := c.pin(ctx, v, d)
	if err == nil && d.Action == stamp.WriteStamp {
		written, err = c.write(ctx, s, v, d, d.Record.Noted(now, s.id.Namespace, d))
	}
	if err != nil || !written {
		c.leave(s.id)
		return c.afterWrite(s, written, err)
	}
	c.memory.change(s.id, func(r *recollection) { r.rolling, r.stampLost = true, false })
	c.countRolling()
	c.metrics.rolled(s.id)
	c.announcer.rolled(s, d)
	c.clearWish(s.id)
	return reconcile.Result{}, nil
}

// lastChange is when the content was last seen to change, or when the record was left, if that is later: the webhook decides on
// what the API has, which the watch of the objects may not have shown yet when the workload's shows the record.
func (v view) lastChange() time.Time {
	if r := v.state.Record; r != nil && r.Last != nil && r.Last.Time.After(v.changed) {
		return r.Last.Time
	}
	return v.changed
}

// hold keeps a wanted rollout back. A storm is noted on the workload, so that it is seen and outlives the controller.
func (c *Controller) hold(ctx context.Context, s *subject, v view, d stamp.Decision, verdict pace.Verdict) (reconcile.Result, error) {
	now := c.clock.Now()
	c.yield(s.id)
	result := reconcile.Result{}
	if !verdict.Until.IsZero() {
		result.RequeueAfter = max(verdict.Until.Sub(now), time.Millisecond)
	}
	switch verdict.Reason {
	case pace.Paused:
		c.sayHeld(s, string(verdict.Reason), "Tidemark is paused "+v.paused)
	case pace.Storm:
		if v.state.Record != nil && v.state.Record.Hold == nil {
			written, err := c.write(ctx, s, v, stamp.Decision{Action: stamp.WriteRecord}, v.state.Record.WithHold(stamp.HoldStorm, now))
			if err != nil || !written {
				return c.afterWrite(s, written, err)
			}
		}
		c.sayHeld(s, string(verdict.Reason), "the configuration keeps changing ("+names(d.Changed, s.id.Namespace)+
			"); it rolls once more when it has been quiet until "+verdict.Until.UTC().Format(time.TimeOnly))
	case pace.Release:
		// Its end is not an event of the workload.
		c.sayHeld(s, string(verdict.Reason), "the Helm release that owns it is pending")
		result.RequeueAfter = min(result.RequeueAfter, time.Second)
	case pace.Settle, pace.None:
	}
	return result, nil
}

// note writes the record alone.
func (c *Controller) note(ctx context.Context, s *subject, v view, d stamp.Decision) (reconcile.Result, error) {
	if v.paused != "" {
		c.clearWish(s.id)
		return reconcile.Result{}, nil
	}
	now, settle := c.clock.Now(), c.options.Pace.Settle
	// A workload is often created a moment before the objects that it reads: what comes within the settle time was there.
	// One from a future further off than that says only that clocks differ, and waiting for it would lose changes.
	if age := now.Sub(s.object.GetCreationTimestamp().Time); d.Reason == stamp.FirstRecord && age < settle && age > -settle {
		return reconcile.Result{RequeueAfter: settle - age}, nil
	}
	record := d.Record.Noted(now, s.id.Namespace, d)
	written, err := c.write(ctx, s, v, d, record)
	if err != nil || !written {
		return c.afterWrite(s, written, err)
	}
	c.recorded(s, d)
	c.clearWish(s.id)
	return reconcile.Result{}, nil
}

// recorded tells of a record that was written.
func (c *Controller) recorded(s *subject, d stamp.Decision) {
	c.metrics.recorded(d.Reason)
	if d.Reason == stamp.RolledBack {
		c.announcer.rolledBack(s, d)
	}
}

// rest is for workloads that want nothing: what was said of them before is taken back.
func (c *Controller) rest(ctx context.Context, s *subject, v view, d stamp.Decision) (reconcile.Result, error) {
	if d.Reason == stamp.Waiting {
		// What comes after the missing object settles anew.
		c.memory.change(s.id, func(r *recollection) { r.wanted = time.Time{} })
		c.yield(s.id)
		if c.remember(s.id, "waiting") {
			c.announcer.waiting(s, d.Missing)
		}
		return reconcile.Result{}, nil
	}
	now := c.clock.Now()
	if d.Reason == stamp.Observed || v.state.Record == nil || v.state.Record.Hold == nil || v.paused != "" {
		// Content that keeps coming back to where it was is not at rest there: a wish that is older than --settle-max rolls when
		// it leaves again, so that what flaps between two values is seen to be a storm.
		if left := c.options.Pace.Settle - now.Sub(v.changed); d.Reason == stamp.Unchanged && left > 0 && !c.memory.recall(s.id).wanted.IsZero() {
			return reconcile.Result{RequeueAfter: left}, nil
		}
		c.clearWish(s.id)
		return reconcile.Result{}, nil
	}
	// Held for a storm that came back to where it began: the hold goes when it is over.
	verdict := c.options.Pace.Decide(pace.Input{Now: now, FirstChange: v.changed, LastChange: v.changed, Rolls: v.state.Record.Rolls})
	if verdict.Reason == pace.Storm {
		return reconcile.Result{RequeueAfter: max(verdict.Until.Sub(now), time.Millisecond)}, nil
	}
	written, err := c.write(ctx, s, v, stamp.Decision{Action: stamp.WriteRecord}, v.state.Record.WithoutHold())
	if err != nil || !written {
		return c.afterWrite(s, written, err)
	}
	c.clearWish(s.id)
	return reconcile.Result{}, nil
}

// enable gives a workload the scheduler back that Wave took away from it, and takes Wave's note of it away. That changes the
// template, so whatever else is decided goes with it: one rollout, of pods that could not start before. No pace applies, and no
// bound: nothing runs that it could disturb, and a pending Helm release may be waiting for these very pods.
func (c *Controller) enable(ctx context.Context, s *subject, v view, d stamp.Decision) (reconcile.Result, error) {
	if c.outOfForce(v, d) != "" {
		d = stamp.Decision{Action: stamp.Nothing, Reason: d.Reason} // the scheduler is no reason to wait for pins
	}
	d, err := c.pin(ctx, v, d)
	if err != nil {
		return c.afterWrite(s, false, err)
	}
	p := cluster.Patch{ResourceVersion: s.object.GetResourceVersion()}
	if d.Action != stamp.Nothing {
		p = v.patch(s, d, d.Record.Noted(c.clock.Now(), s.id.Namespace, d))
	}
	p.Set(v1.WaveSchedulingDisabled, nil)
	p.Scheduler = v.scheduler
	written, err := c.send(ctx, s, p)
	if err != nil || !written {
		return c.afterWrite(s, written, err)
	}
	c.announcer.enabled(s, *v.scheduler)
	switch d.Action {
	case stamp.WriteStamp:
		c.metrics.rolled(s.id)
		c.announcer.rolled(s, d)
	case stamp.WriteRecord:
		c.recorded(s, d)
	case stamp.Nothing:
	}
	c.clearWish(s.id)
	return reconcile.Result{}, nil
}

// write makes the one write of a look: the record, and with [stamp.WriteStamp] the stamp in the same patch.
func (c *Controller) write(ctx context.Context, s *subject, v view, d stamp.Decision, record stamp.Record) (bool, error) {
	return c.send(ctx, s, v.patch(s, d, record))
}

// patch is the write of a decision. It carries the resourceVersion that it was decided on.
func (v view) patch(s *subject, d stamp.Decision, record stamp.Record) cluster.Patch {
	annotation, sum := stamp.Encode(record)
	p := cluster.Patch{ResourceVersion: s.object.GetResourceVersion(), Labels: map[string]*string{v1.LabelRecordSum: &sum}}
	p.Set(v1.AnnotationRecord, &annotation)
	if v.optIn != "" {
		mode := string(v.optIn)
		p.Set(v1.AnnotationMode, &mode)
	}
	if d.Action == stamp.WriteStamp {
		p.TemplateAnnotations = map[string]*string{v1.AnnotationConfigHash: &d.Stamp}
		if pins := d.Pins.String(); pins != "" {
			p.TemplateAnnotations[v1.AnnotationPins] = &pins
		} else if v.pinned {
			p.TemplateAnnotations[v1.AnnotationPins] = nil
		}
	}
	return p
}

// send sends a patch; false without an error means that somebody else wrote first. With [errStampLost] it was written.
func (c *Controller) send(ctx context.Context, s *subject, p cluster.Patch) (bool, error) {
	body, err := s.kind.JSON(p)
	if err != nil {
		return false, fmt.Errorf("encode patch: %w", err)
	}
	answer := s.answer(p)
	err = c.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1.FieldManager))
	if err == nil && answer.GetResourceVersion() == p.ResourceVersion {
		err = errNoEffect // and not remembered as written: no event would follow
	}
	if err == nil {
		c.memory.change(s.id, func(r *recollection) { r.written = p.ResourceVersion })
		if whole, ok := answer.(*unstructured.Unstructured); ok && !s.kind.Keeps(whole, p) {
			err = errStampLost
		}
	}
	if err != nil {
		c.metrics.writeErrors.WithLabelValues(kindLabel(s.id.GVK), cause(err)).Inc()
	}
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// answer is what the API's answer to a patch is read into: all of the workload when the patch writes to its template, to see
// what became of that, else its metadata.
func (s *subject) answer(p cluster.Patch) client.Object {
	var obj client.Object = &metav1.PartialObjectMetadata{}
	if len(p.TemplateAnnotations) > 0 {
		obj = &unstructured.Unstructured{}
	}
	obj.GetObjectKind().SetGroupVersionKind(s.kind.GroupVersionKind)
	obj.SetNamespace(s.id.Namespace)
	obj.SetName(s.id.Name)
	return obj
}

// cause is the error's in the metric of write errors.
func cause(err error) string {
	switch {
	case errors.Is(err, errNoEffect):
		return "noeffect"
	case errors.Is(err, errStampLost):
		return "stamplost"
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return strings.ToLower(string(reason))
	}
	return "unreachable"
}

// afterWrite is the result of a look whose write did not go through: a conflict is decided again soon, a workload that is
// gone needs nothing, and anything else is tried again with backoff for ever. A stamp that got lost is not: the next look takes the
// template for what it is, and the next change is the next attempt.
func (c *Controller) afterWrite(s *subject, written bool, err error) (reconcile.Result, error) {
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case errors.Is(err, errStampLost):
		c.sayStampLost(s)
		return reconcile.Result{}, nil
	case err != nil:
		if c.remember(s.id, "refused") {
			c.announcer.refused(s, err)
		}
		return reconcile.Result{}, fmt.Errorf("write stamp of %s: %w", s.id, err)
	case !written:
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return reconcile.Result{}, nil
}
