package cluster

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
)

// PaceOf reads from a workload's spec how it rolls. The override of tidemark.dev/rollout-budget is not in it.
func PaceOf(obj client.Object) fleet.Rollout {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return deploymentPace(&o.Spec)
	case *appsv1.StatefulSet:
		return statefulSetPace(&o.Spec)
	case *appsv1.DaemonSet:
		return daemonSetPace(o)
	case *batchv1.CronJob:
		return fleet.Rollout{}
	case *unstructured.Unstructured:
		if _, is := isArgo(o); is {
			return readArgo(o).pace()
		}
		replicas, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if !found {
			replicas = 1
		}
		minReady, _, _ := unstructured.NestedInt64(o.Object, "spec", "minReadySeconds")
		return fleet.Rollout{Replicas: int(replicas), MinReady: time.Duration(minReady) * time.Second}
	}
	return fleet.Rollout{}
}

func deploymentPace(s *appsv1.DeploymentSpec) fleet.Rollout {
	r := fleet.Rollout{Replicas: int(orOne(s.Replicas)), MinReady: seconds(s.MinReadySeconds)}
	if s.ProgressDeadlineSeconds != nil {
		r.ProgressDeadline = seconds(*s.ProgressDeadlineSeconds)
	}
	if s.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		r.MaxUnavailable = r.Replicas
		return r
	}
	quarter := intstr.FromString("25%")
	surge, unavailable := &quarter, &quarter
	if u := s.Strategy.RollingUpdate; u != nil {
		surge, unavailable = orElse(u.MaxSurge, surge), orElse(u.MaxUnavailable, unavailable)
	}
	r.MaxSurge, r.MaxUnavailable = pods(surge, r.Replicas, true), pods(unavailable, r.Replicas, false)
	return r
}

func statefulSetPace(s *appsv1.StatefulSetSpec) fleet.Rollout {
	r := fleet.Rollout{Replicas: int(orOne(s.Replicas)), MaxUnavailable: 1, MinReady: seconds(s.MinReadySeconds)}
	if u := s.UpdateStrategy.RollingUpdate; u != nil {
		if u.Partition != nil {
			r.Partition = int(*u.Partition)
		}
		if u.MaxUnavailable != nil {
			r.MaxUnavailable = max(pods(u.MaxUnavailable, r.Replicas, true), 1)
		}
	}
	return r
}

func daemonSetPace(d *appsv1.DaemonSet) fleet.Rollout {
	r := fleet.Rollout{
		Replicas: int(d.Status.DesiredNumberScheduled), MaxUnavailable: 1, MinReady: seconds(d.Spec.MinReadySeconds),
	}
	if u := d.Spec.UpdateStrategy.RollingUpdate; u != nil {
		r.MaxSurge = pods(u.MaxSurge, r.Replicas, true)
		if u.MaxUnavailable != nil {
			r.MaxUnavailable = pods(u.MaxUnavailable, r.Replicas, true)
		}
	}
	return r
}

// pods resolves a number or a percentage of the replicas; nil is none.
func pods(value *intstr.IntOrString, replicas int, up bool) int {
	if value == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, replicas, up)
	if err != nil {
		return 0 // the API server refuses what is neither
	}
	return n
}

func orElse(value, fallback *intstr.IntOrString) *intstr.IntOrString {
	if value != nil {
		return value
	}
	return fallback
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// BudgetOf is how long a rollout should take: by the workload's pace, unless an annotation of the workload or its template
// says otherwise. An error names the annotation, which then does not count.
func BudgetOf(pace fleet.Rollout, annotations ...map[string]string) (time.Duration, error) {
	for _, a := range annotations {
		value, ok := a[v1.AnnotationRolloutBudget]
		if !ok {
			continue
		}
		override, err := time.ParseDuration(value)
		if err != nil || override <= 0 {
			return fleet.Budget(pace), fmt.Errorf(
				"annotation %s: %q is no duration and is disregarded; write one such as \"10m\"", v1.AnnotationRolloutBudget, value)
		}
		pace.Override = override
		break
	}
	return fleet.Budget(pace), nil
}
