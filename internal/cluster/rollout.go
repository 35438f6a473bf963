package cluster

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rollout is what a workload's own controller says of its rollout.
type Rollout struct {
	// Done says that every pod is of the newest revision, as far as the workload's controller has got to see.
	Done bool
	// Stuck is why the workload does not roll although its template changed, in words for people; "" when nothing is known to
	// stand in the way.
	Stuck string
}

// RolloutOf reads the rollout of a workload from its spec and status. A kind whose status is not known is never done.
func RolloutOf(obj client.Object) Rollout {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return deploymentRollout(o)
	case *appsv1.StatefulSet:
		return statefulSetRollout(o)
	case *appsv1.DaemonSet:
		return daemonSetRollout(o)
	case *batchv1.CronJob:
		// A CronJob rolls nothing: the template counts from the next Job on.
		return Rollout{Done: true}
	case *unstructured.Unstructured:
		if _, is := isArgo(o); is {
			return readArgo(o).rollout()
		}
		return otherRollout(o)
	}
	return Rollout{}
}

func deploymentRollout(d *appsv1.Deployment) Rollout {
	replicas := orOne(d.Spec.Replicas)
	r := Rollout{Done: d.Status.ObservedGeneration >= d.Generation &&
		d.Status.UpdatedReplicas >= replicas && d.Status.Replicas <= d.Status.UpdatedReplicas}
	if r.Done {
		return r
	}
	if d.Spec.Paused {
		r.Stuck = "spec.paused is set, so the Deployment does not roll until it is resumed"
		return r
	}
	for _, c := range d.Status.Conditions {
		if d.Status.ObservedGeneration < d.Generation {
			break // they tell of the rollout before
		}
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			r.Stuck = fmt.Sprintf("the rollout does not progress (%s): %s", c.Reason, c.Message)
		}
	}
	return r
}

func statefulSetRollout(s *appsv1.StatefulSet) Rollout {
	replicas := orOne(s.Spec.Replicas)
	r := Rollout{Done: s.Status.ObservedGeneration >= s.Generation &&
		(s.Status.UpdateRevision == s.Status.CurrentRevision || s.Status.UpdatedReplicas >= max(replicas, s.Status.Replicas))}
	if r.Done {
		return r
	}
	switch u := s.Spec.UpdateStrategy; {
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType:
		r.Stuck = OnDelete
	case u.RollingUpdate != nil && u.RollingUpdate.Partition != nil && *u.RollingUpdate.Partition > 0:
		r.Stuck = fmt.Sprintf("partition %d: pods below this ordinal keep their revision", *u.RollingUpdate.Partition)
	}
	return r
}

// OnDelete says why a rollout with this strategy goes no further by itself.
const OnDelete = "updateStrategy OnDelete: each pod keeps its revision until it is deleted"

func daemonSetRollout(d *appsv1.DaemonSet) Rollout {
	r := Rollout{Done: d.Status.ObservedGeneration >= d.Generation &&
		d.Status.UpdatedNumberScheduled >= d.Status.DesiredNumberScheduled}
	if !r.Done && d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		r.Stuck = OnDelete
	}
	return r
}

// otherRollout reads the fields that kinds with a scale have in common; what it does not find is not done.
func otherRollout(u *unstructured.Unstructured) Rollout {
	var r Rollout
	want, hasWant, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !hasWant {
		want = 1
	}
	updated, hasUpdated, _ := unstructured.NestedInt64(u.Object, "status", "updatedReplicas")
	all, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
	r.Done = hasUpdated && observed(u) && updated >= want && all <= updated
	if paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused"); paused && !r.Done {
		r.Stuck = fmt.Sprintf("spec.paused is set, so the %s does not roll until it is resumed", u.GetKind())
	}
	return r
}

// observed reports whether the status tells of the present spec, of which some kinds note the generation as text.
func observed(u *unstructured.Unstructured) bool {
	seen, found, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "observedGeneration")
	return found && fmt.Sprint(seen) == fmt.Sprint(u.GetGeneration())
}

func orOne(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
