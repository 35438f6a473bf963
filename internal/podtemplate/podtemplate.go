// Package podtemplate tells a pod template from what a cluster adds to it.
package podtemplate

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// LabelRolloutHash is the label by which the controller of Argo's Rollouts tells the pods of a revision.
const LabelRolloutHash = "rollouts-pod-template-hash"

// HashLabels are the labels by which controllers tell the pods of a revision. That of Argo's Rollouts comes last: their pods carry
// no other.
func HashLabels() []string {
	return []string{appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey, LabelRolloutHash}
}

// Hash is the value of the label that tells the revision of a pod; "" when it carries none.
func Hash(labels map[string]string) string {
	for _, l := range HashLabels() {
		if v := labels[l]; v != "" {
			return v
		}
	}
	return ""
}

// Same compares templates as the Deployment controller does: without the hash that it adds.
func Same(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// SameCompleted compares templates of which one may have been completed by the API server's defaults while the other was
// not: the template of one of Argo's Rollouts and that of its ReplicaSet. Argo's controller compares them the same way.
func SameCompleted(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(completed(a), completed(b))
}

// Leaves reports whether a template that somebody applies is the one that is there: but for the defaults of the API, and
// for labels and annotations that others put on it, which an apply leaves.
func Leaves(there, applied *corev1.PodTemplateSpec) bool {
	a, b := there.DeepCopy(), applied.DeepCopy()
	keep := func(there, applied map[string]string) map[string]string {
		out := map[string]string{}
		for name, value := range there {
			if _, has := applied[name]; has {
				out[name] = value
			}
		}
		return out
	}
	a.Annotations, a.Labels = keep(a.Annotations, b.Annotations), keep(a.Labels, b.Labels)
	return SameCompleted(a, b)
}
