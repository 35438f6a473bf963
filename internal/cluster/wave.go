package cluster

import (
	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
)

// WaveScheduler is the name of the scheduler that Wave took away from a workload that opted in to it, for who finds that
// nothing is missing any more; nil where there is nothing to give back. It is "" where the API's default is to come back: Wave
// noted no name, or (in a manifest that was saved meanwhile) its own invalid one.
func WaveScheduler(annotations map[string]string, template *corev1.PodTemplateSpec) *string {
	name, disabled := annotations[v1.WaveSchedulingDisabled]
	if !disabled || annotations[v1.WaveOptIn] != v1.True || template.Spec.SchedulerName != v1.WaveSchedulerInvalid {
		return nil
	}
	if name == v1.WaveSchedulerInvalid {
		name = ""
	}
	return &name
}
