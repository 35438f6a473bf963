package revisions

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/podtemplate"
	"tidemark.dev/tidemark/internal/revision"
)

// replicaSetNames are the names that a controller of ReplicaSets uses on them.
type replicaSetNames struct {
	revision.Numbering
	hash string // label of the pods
}

var (
	replicaSetsOfDeployment = replicaSetNames{revision.OfDeployment, appsv1.DefaultDeploymentUniqueLabelKey}
	replicaSetsOfRollout    = replicaSetNames{revision.OfRollout, podtemplate.LabelRolloutHash}
)

// selector is that of the workload's revisions and pods.
func (h *History) selector() (labels.Selector, error) {
	for _, u := range []*unstructured.Unstructured{h.object, h.holder} {
		fields, found, _ := unstructured.NestedMap(u.Object, "spec", "selector")
		if !found {
			continue
		}
		selector := &metav1.LabelSelector{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, selector); err != nil {
			return nil, fmt.Errorf("read selector: %w", err)
		}
		return metav1.LabelSelectorAsSelector(selector)
	}
	return nil, fmt.Errorf("%s has no selector", h.Target)
}

// byTemplate finds the ReplicaSet of the template as the Deployment controller does: the oldest that carries it.
func byTemplate(template *corev1.PodTemplateSpec) func([]*appsv1.ReplicaSet) int {
	return func(sets []*appsv1.ReplicaSet) int {
		found := -1
		for i, rs := range sets {
			if podtemplate.Same(&rs.Spec.Template, template) && (found < 0 || rs.CreationTimestamp.Before(&sets[found].CreationTimestamp)) {
				found = i
			}
		}
		return found
	}
}

// byStatus finds the ReplicaSet that the Rollout's controller names as that of the present template. Until it has seen that, it
// is the one that carries it, if any does.
func (h *History) byStatus(template *corev1.PodTemplateSpec) func([]*appsv1.ReplicaSet) int {
	hash, known := cluster.RevisionOfRollout(h.object, h.holder)
	return func(sets []*appsv1.ReplicaSet) int {
		return slices.IndexFunc(sets, func(rs *appsv1.ReplicaSet) bool {
			if known {
				return hash != "" && rs.Labels[podtemplate.LabelRolloutHash] == hash
			}
			return podtemplate.SameCompleted(&rs.Spec.Template, template)
		})
	}
}

// readReplicaSets makes revisions of the workload's ReplicaSets. The present one is found among all of them.
func (h *History) readReplicaSets(ctx context.Context, names replicaSetNames, present func([]*appsv1.ReplicaSet) int) error {
	list, err := h.owned(ctx, replicaSet)
	if err != nil {
		return err
	}
	seen := h.seen(list)
	var sets []*appsv1.ReplicaSet
	for i := range list {
		raw := podtemplate.OfReplicaSet(&list[i], names.hash)
		rs, err := into[appsv1.ReplicaSet](&list[i])
		if err != nil {
			return err
		}
		h.raw[rs.Name] = raw
		sets = append(sets, rs)
	}
	current := present(sets)
	for i, rs := range sets {
		r := revision.Revision{
			Number: names.Number(rs.Annotations), Former: names.Former(rs.Annotations),
			Name: rs.Name, Hash: rs.Labels[names.hash], Created: rs.CreationTimestamp.Time,
			Cause: rs.Annotations[changeCauseAnnotation], Template: &rs.Spec.Template, Current: i == current,
			Pods: revision.Pods{
				Known: true, All: int(rs.Status.Replicas), Ready: int(rs.Status.ReadyReplicas), Available: int(rs.Status.AvailableReplicas),
			},
		}
		r.Availability, r.Evidence = availability(r, seen)
		if neverScaled(rs) {
			r.Availability, r.Evidence = revision.Never, "it never had a pod"
		}
		h.Revisions = append(h.Revisions, h.revision(r))
	}
	return nil
}

// neverScaled proves that a ReplicaSet never had a pod: it was made for none, and its spec has not changed since.
func neverScaled(rs *appsv1.ReplicaSet) bool {
	return rs.Generation == 1 && rs.Spec.Replicas != nil && *rs.Spec.Replicas == 0 && rs.Status.Replicas == 0
}

// availability is what is known of a revision from its pods now, and from what Tidemark noted.
func availability(r revision.Revision, seen map[string]bool) (revision.Availability, string) {
	switch {
	case r.Pods.Available == 1:
		return revision.Proven, "a pod of it is available"
	case r.Pods.Available > 1:
		return revision.Proven, fmt.Sprintf("%d pods of it are available", r.Pods.Available)
	case seen[r.Hash]:
		return revision.Proven, "Tidemark saw an available pod of it"
	}
	return revision.Unknown, "Kubernetes keeps no record of it, and Tidemark noted none"
}
