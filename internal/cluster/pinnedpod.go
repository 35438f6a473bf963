package cluster

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/podtemplate"
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
	// Unreadable says that the pins cannot be read.
	Unreadable bool
	// Revision says of which revision of which workload it is; nil when of none.
	Revision *PodRevision
	// ReadySince is since when it is ready; zero when it is not, or has ended, or is going.
	ReadySince time.Time
}

// PodRevision is a revision of a workload, as its pods name it.
type PodRevision struct {
	// Owner and Name are the workload's.
	Owner schema.GroupVersionKind
	Name  string
	// Hash is the value of the label that tells the revision's pods.
	Hash string
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
	if Finished(pod) || pod.DeletionTimestamp != nil {
		return out, nil
	}
	out.Revision = revisionOfPod(pod)
	out.ReadySince, _ = PodReady(pod)
	text, pinned := pod.Annotations[v1.AnnotationPins]
	if !pinned {
		return out, nil
	}
	out.Pinned = true
	pins, err := snapshot.ParsePins(pod.Namespace, text)
	if err != nil {
		out.Mismatches, out.Unreadable = []string{err.Error()}, true
		return out, nil //nolint:nilerr // it is told of as a mismatch
	}
	for _, m := range rewrite.Mismatches(pod, pins) {
		if m.Path != "" { // a pin of what the template does not read any more does no harm
			out.Mismatches = append(out.Mismatches, m.String())
		}
	}
	return out, nil
}

// revisionOfPod goes by the pod's labels and by its controller. That of a Deployment's or a Rollout's pod is a ReplicaSet, which is
// named after the workload and the hash.
func revisionOfPod(pod *corev1.Pod) *PodRevision {
	owner, hash := metav1.GetControllerOf(pod), podtemplate.Hash(pod.Labels)
	if owner == nil || hash == "" {
		return nil
	}
	r := &PodRevision{Owner: schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), Name: owner.Name, Hash: hash}
	if r.Owner.Kind != "ReplicaSet" {
		return r
	}
	name, named := strings.CutSuffix(owner.Name, "-"+hash)
	if !named {
		return nil
	}
	r.Name, r.Owner = name, deployment
	if pod.Labels[podtemplate.LabelRolloutHash] != "" {
		r.Owner = ArgoRollout
	}
	return r
}
