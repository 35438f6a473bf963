package cluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/revision"
)

// unfinishedAfter is the default of [v1.AnnotationUnfinishedAfter].
const unfinishedAfter = time.Hour

// UnfinishedAfter is after how long a rollout counts as unfinished, by the first of the annotations that says; 0 for never. An
// error names the annotation, which then does not count.
func UnfinishedAfter(annotations ...map[string]string) (time.Duration, error) {
	for _, a := range annotations {
		switch value, has := a[v1.AnnotationUnfinishedAfter]; {
		case !has:
		case value == v1.Off:
			return 0, nil
		default:
			d, err := positive(v1.AnnotationUnfinishedAfter, value, `, or "`+v1.Off+`"`)
			if err != nil {
				return unfinishedAfter, err
			}
			return d, nil
		}
	}
	return unfinishedAfter, nil
}

// PromoteAfter is after how long the pause of a canary is ended by Tidemark; 0 for never.
func PromoteAfter(annotations map[string]string) (time.Duration, error) {
	value, has := annotations[v1.AnnotationPromoteAfter]
	if !has {
		return 0, nil
	}
	return positive(v1.AnnotationPromoteAfter, value, "")
}

func positive(annotation, value, or string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("annotation %s: %q is no duration and is disregarded; write one such as \"2h\"%s", annotation, value, or)
	}
	return d, nil
}

// RolloutProblems are what cannot be heeded of the annotations about a workload's rollouts.
func RolloutProblems(obj client.Object) []string {
	var out []string
	if _, err := UnfinishedAfter(obj.GetAnnotations()); err != nil {
		out = append(out, err.Error())
	}
	if _, err := PromoteAfter(obj.GetAnnotations()); err != nil {
		out = append(out, err.Error())
	}
	if _, has := obj.GetAnnotations()[v1.AnnotationPromoteAfter]; has {
		if _, is := isArgo(obj); !is {
			out = append(out, "annotation "+v1.AnnotationPromoteAfter+" has no effect here: only an Argo Rollout pauses for it")
		}
	}
	return out
}

// MayStayUnfinished reports whether more than one revision of a workload may have pods for as long as nobody does anything, as far
// as its spec and status tell.
func MayStayUnfinished(obj client.Object) bool {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Spec.Paused && o.Status.Replicas > 0
	case *appsv1.StatefulSet:
		return (o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || partitionOf(o) > 0) &&
			o.Status.UpdatedReplicas > 0 && o.Status.UpdatedReplicas < o.Status.Replicas
	case *appsv1.DaemonSet:
		return o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType &&
			o.Status.UpdatedNumberScheduled > 0 && o.Status.UpdatedNumberScheduled < o.Status.CurrentNumberScheduled
	}
	if u, is := isArgo(obj); is {
		s := readArgo(u).Status
		return s.StableRS != "" && s.CurrentPodHash != s.StableRS && s.UpdatedReplicas < s.Replicas
	}
	return false
}

func partitionOf(s *appsv1.StatefulSet) int32 {
	if u := s.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		return *u.Partition
	}
	return 0
}

// unreadableRevisionsError is a list of revisions that failed.
type unreadableRevisionsError struct {
	error
	resource string
}

// Unwrap gives the API's error.
func (e *unreadableRevisionsError) Unwrap() error { return e.error }

// PartialOf reads the revisions of a workload of which [MayStayUnfinished] says that more than one may have pods: with one
// list, and one more where the object comes from a cache that keeps no managed fields.
func PartialOf(ctx context.Context, reader client.Reader, obj client.Object, after time.Duration) (*fleet.Partial, error) {
	p := &fleet.Partial{After: after, Cause: fleet.NotKnownCause}
	var err error
	switch o := obj.(type) {
	case *appsv1.Deployment:
		p.Cause, p.Why = fleet.PausedByPerson, deploymentRollout(o).Stuck
		p.Revisions, err = replicaSetPods(ctx, reader, o, o.Spec.Selector, revision.OfDeployment, pausedSince(o))
	case *appsv1.StatefulSet:
		p.Cause, p.Why = fleet.Partition, statefulSetRollout(o).Stuck
		if o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			p.Cause = fleet.OnDelete
		}
		p.Revisions, err = controllerRevisionPods(ctx, reader, o, o.Spec.Selector, o.Status.UpdatedReplicas, o.Status.Replicas)
	case *appsv1.DaemonSet:
		p.Cause, p.Why = fleet.OnDelete, OnDelete
		p.Revisions, err = controllerRevisionPods(
			ctx, reader, o, o.Spec.Selector, o.Status.UpdatedNumberScheduled, o.Status.CurrentNumberScheduled)
	default:
		u, is := isArgo(obj)
		if !is {
			return nil, nil
		}
		a := readArgo(u)
		a.partial(p)
		p.Revisions, err = replicaSetPods(ctx, reader, obj, a.Spec.Selector, revision.OfRollout, a.incompleteSince())
	}
	if err != nil {
		return nil, err
	}
	p.Owner, err = ownerOf(ctx, reader, obj)
	return p, err
}

func (a argo) partial(p *fleet.Partial) {
	if cause, why := a.hindrance(); cause != "" {
		p.Cause, p.Why = cause, why
	}
	p.Step, p.Steps = a.step()
	if w, has := a.weight(); has {
		p.Weight = &w
	}
}

// incompleteSince is when the Rollout began to have another revision than the stable one; zero when that is not known.
func (a argo) incompleteSince() time.Time {
	for _, c := range a.Status.Conditions {
		if c.Type == "Completed" && c.Status == corev1.ConditionFalse {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// pausedSince is when a Deployment was paused; zero when its status does not tell.
func pausedSince(d *appsv1.Deployment) time.Time {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionUnknown {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// replicaSetPods are the revisions that ReplicaSets hold, with their pods. A ReplicaSet keeps the time of its creation when it
// becomes the newest revision again: that was then not before any other was made, and, where a condition tells when the
// present rollout began, about then.
func replicaSetPods(
	ctx context.Context, reader client.Reader, owner client.Object, selector *metav1.LabelSelector, numbering revision.Numbering, begun time.Time,
) ([]fleet.RevisionPods, error) {
	list := &appsv1.ReplicaSetList{}
	if err := reader.List(ctx, list, selecting(owner.GetNamespace(), selector)...); err != nil {
		return nil, &unreadableRevisionsError{err, Plural(replicaSet)}
	}
	var out []fleet.RevisionPods
	var last time.Time
	for i := range list.Items {
		rs := &list.Items[i]
		if !controlledBy(rs, owner.GetUID()) {
			continue
		}
		last = latest(last, rs.CreationTimestamp.Time)
		out = append(out, fleet.RevisionPods{
			Name: rs.Name, Number: numbering.Number(rs.Annotations), Pods: int(rs.Status.Replicas), Since: rs.CreationTimestamp.Time,
		})
	}
	for i := range out {
		if out[i].Since.Before(last) {
			out[i].Since = latest(last, begun)
		}
	}
	return out, nil
}

// selecting narrows a list; what has no selector that can be read is not narrowed.
func selecting(namespace string, selector *metav1.LabelSelector) []client.ListOption {
	opts := []client.ListOption{client.InNamespace(namespace)}
	if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && selector != nil {
		opts = append(opts, client.MatchingLabelsSelector{Selector: s})
	}
	return opts
}

// controllerRevisionPods are the newest revision that ControllerRevisions hold, and all others as one, with their pods. A
// ControllerRevision is written to only to be numbered anew when it becomes the newest again, which its managed fields tell.
func controllerRevisionPods(
	ctx context.Context, reader client.Reader, owner client.Object, selector *metav1.LabelSelector, updated, all int32,
) ([]fleet.RevisionPods, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := reader.List(ctx, list, selecting(owner.GetNamespace(), selector)...); err != nil {
		return nil, &unreadableRevisionsError{err, Plural(controllerRevision)}
	}
	var newest *appsv1.ControllerRevision
	for i := range list.Items {
		cr := &list.Items[i]
		if controlledBy(cr, owner.GetUID()) && (newest == nil || cr.Revision > newest.Revision) {
			newest = cr
		}
	}
	if newest == nil {
		return nil, nil
	}
	since := newest.CreationTimestamp.Time
	for _, f := range newest.ManagedFields {
		if f.Time != nil {
			since = latest(since, f.Time.Time)
		}
	}
	return []fleet.RevisionPods{
		{Name: newest.Name, Number: newest.Revision, Pods: int(updated), Since: since},
		{Name: "older", Number: newest.Revision - 1, Pods: int(all - updated)},
	}, nil
}
