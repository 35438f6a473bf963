package revisions

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/podtemplate"
	"tidemark.dev/tidemark/internal/revision"
)

// statefulSetHash is the value of the label controller-revision-hash on the pods of a revision; on those of a StatefulSet it
// is the revision's whole name.
func statefulSetHash(cr *appsv1.ControllerRevision) string { return cr.Name }

func daemonSetHash(cr *appsv1.ControllerRevision) string {
	return cr.Labels[appsv1.ControllerRevisionHashLabelKey]
}

// readControllerRevisions makes revisions of the workload's ControllerRevisions.
func (h *History) readControllerRevisions(
	ctx context.Context, present *corev1.PodTemplateSpec, hash func(*appsv1.ControllerRevision) string,
) error {
	list, err := h.owned(ctx, controllerRevisionKind)
	if err != nil {
		return err
	}
	pods, err := h.countPods(ctx)
	if err != nil {
		return err
	}
	seen := h.seen(list)
	current := -1
	for i := range list {
		cr, err := into[appsv1.ControllerRevision](&list[i])
		if err != nil {
			return err
		}
		raw, template, err := templateIn(&list[i])
		if err != nil {
			return fmt.Errorf("read controllerrevision %s: %w", cr.Name, err)
		}
		h.raw[cr.Name] = raw
		r := revision.Revision{
			Number: cr.Revision, Name: cr.Name, Hash: hash(cr), Created: cr.CreationTimestamp.Time,
			Cause: cr.Annotations[changeCauseAnnotation], Template: template, Pods: pods.of(hash(cr)),
		}
		r.Availability, r.Evidence = availability(r, seen)
		// Two can hold one template after a collision of hashes; the newest counts.
		if podtemplate.Same(template, present) && (current < 0 || h.Revisions[current].Number < r.Number) {
			current = len(h.Revisions)
		}
		h.Revisions = append(h.Revisions, h.revision(r))
	}
	if current >= 0 {
		h.Revisions[current].Current = true
	}
	return nil
}

// templateIn reads the template that a ControllerRevision holds as a patch which replaces it.
func templateIn(u *unstructured.Unstructured) (map[string]any, *corev1.PodTemplateSpec, error) {
	raw, _, err := unstructured.NestedMap(u.Object, "data", "spec", "template")
	if err != nil {
		return nil, nil, fmt.Errorf("read template: %w", err)
	}
	delete(raw, "$patch")
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("read template: %w", err)
	}
	template := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(text, template); err != nil {
		return nil, nil, fmt.Errorf("read template: %w", err)
	}
	return raw, template, nil
}

// podCounts are the pods of a workload by the hash of their revision; nil when they may not be listed.
type podCounts map[string]revision.Pods

func (c podCounts) of(hash string) revision.Pods {
	p := c[hash]
	p.Known = c != nil
	return p
}

// countPods counts the pods that the workload controls itself.
func (h *History) countPods(ctx context.Context) (podCounts, error) {
	selector, err := h.selector()
	if err != nil {
		return nil, err
	}
	minReady, _, _ := unstructured.NestedInt64(h.object.Object, "spec", "minReadySeconds")
	counts := podCounts{}
	err = cluster.EachItem(ctx, h.client, func() client.ObjectList { return &corev1.PodList{} }, cluster.PageSize, func(pod *corev1.Pod) {
		if !metav1.IsControlledBy(pod, h.object) || cluster.Finished(pod) || pod.DeletionTimestamp != nil {
			return
		}
		hash := podtemplate.Hash(pod.Labels)
		p := counts[hash]
		ready, available := readiness(pod, time.Duration(minReady)*time.Second, h.Now)
		p.All++
		p.Ready += ready
		p.Available += available
		counts[hash] = p
	}, client.InNamespace(h.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if apierrors.IsForbidden(err) {
		needs := cluster.Right{Verb: "list", Resource: "pods", Namespace: h.Namespace}
		h.Remarks = append(h.Remarks, needs.Missing()+": the pods of each revision are not known")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return counts, nil
}

// readiness counts a pod as ready, and as available: ready for as long as the workload asks for.
func readiness(pod *corev1.Pod, minReady time.Duration, now time.Time) (ready, available int) {
	switch since, is := cluster.PodReady(pod); {
	case !is:
		return 0, 0
	case now.Sub(since) < minReady:
		return 1, 0
	}
	return 1, 1
}
