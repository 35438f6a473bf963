package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/rewrite"
	"tidemark.dev/tidemark/internal/snapshot"
)

// PinnedPod is what a watch of pods keeps of each: who it is, and where it does not read what its pins say.
type PinnedPod struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// Pinned says that the pod carries pins.
	Pinned bool
	// Mismatches are the references that do not read what the pins say, or why the pins cannot be read; in words.
	Mismatches []string
}

// DeepCopyObject implements runtime.Object. The mismatches are shared: nobody changes them.
func (p *PinnedPod) DeepCopyObject() runtime.Object {
	out := *p
	out.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &out
}

// MatchPins is an informer transform that replaces pods by their [PinnedPod]. Anything else passes through.
func MatchPins(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	out := &PinnedPod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}}
	text, pinned := pod.Annotations[v1.AnnotationPins]
	if !pinned || Finished(pod) || pod.DeletionTimestamp != nil {
		return out, nil
	}
	out.Pinned = true
	pins, err := snapshot.ParsePins(pod.Namespace, text)
	if err != nil {
		out.Mismatches = []string{err.Error()}
		return out, nil //nolint:nilerr // it is told of as a mismatch
	}
	for _, m := range rewrite.Mismatches(pod, pins) {
		if m.Path != "" { // a pin of what the template does not read any more does no harm
			out.Mismatches = append(out.Mismatches, m.String())
		}
	}
	return out, nil
}
