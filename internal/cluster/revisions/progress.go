package revisions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/podtemplate"
	"tidemark.dev/tidemark/internal/revision"
)

// Progress is how far the rollout of a workload is.
type Progress struct {
	// Done says that every pod that is to be of the newest revision is, and available.
	Done bool
	// Failed is why it will not be done; "" while it may.
	Failed string
	// Text says it in words: "3 of 4 pods are updated, 2 available; pod web-1: CrashLoopBackOff".
	Text string
}

// Unfinishable is why the rollout of the workload never is done by itself; "" when it may be.
func (h *History) Unfinishable() string {
	if h.isRollout() {
		return ""
	}
	if kind, _, _ := unstructured.NestedString(h.object.Object, "spec", "updateStrategy", "type"); kind == "OnDelete" {
		return cluster.OnDelete
	}
	return ""
}

// Progress reads how far the rollout to a revision is. After [History.GoBack] it has failed as soon as there is another template
// than the one written: whatever is updated then is of another revision.
func (h *History) Progress(ctx context.Context, to revision.Revision) (Progress, error) {
	u, err := h.get(ctx, h.Kind.GroupVersionKind, h.Name)
	if apierrors.IsNotFound(err) {
		return lost("somebody deleted it")
	}
	if err != nil {
		return Progress{}, fmt.Errorf("get %s: %w", h.Target, err)
	}
	holder := u
	if h.holder != h.object {
		holder, err = h.get(ctx, h.holder.GroupVersionKind(), h.holder.GetName())
		if apierrors.IsNotFound(err) {
			return lost("somebody deleted " + h.holderName() + ", which has its template")
		}
		if err != nil {
			return Progress{}, fmt.Errorf("get %s: %w", h.holderName(), err)
		}
	}
	if h.written != nil && !h.sameButForStamp(h.written, holder) {
		return lost("somebody put another template there")
	}
	p, err := h.progress(u, holder, to)
	if err != nil || p.Done {
		return p, err
	}
	hindrance, err := h.hindrance(ctx, u, to)
	if hindrance != "" {
		p.Text += "; " + hindrance
	}
	return p, err
}

// sameButForStamp reports whether it is the same object still, with the same template but for what Tidemark writes into it: a revision from
// before Tidemark gets its first stamp when it comes back.
func (h *History) sameButForStamp(then, now *unstructured.Unstructured) bool {
	return h.sameTemplate(h.unstamped(then), h.unstamped(now))
}

func (h *History) unstamped(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	path := append(slices.Clone(h.path), "metadata", "annotations")
	annotations, _, _ := unstructured.NestedMap(out.Object, path...)
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, v1.Domain+"/") })
	unstructured.RemoveNestedField(out.Object, path...)
	if len(annotations) > 0 {
		_ = unstructured.SetNestedMap(out.Object, annotations, path...) // it was read from there
	}
	return out
}

// lost is the progress of a rollout that somebody else put an end to.
func lost(why string) (Progress, error) { return Progress{Failed: why, Text: why}, nil }

func (h *History) progress(u, holder *unstructured.Unstructured, to revision.Revision) (Progress, error) {
	unseen := Progress{Text: "waiting for its controller to see it"}
	if h.isRollout() {
		if _, seen := cluster.RevisionOfRollout(u, holder); !seen {
			return unseen, nil
		}
		return rolloutProgress(u), nil
	}
	if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); seen < u.GetGeneration() {
		return unseen, nil
	}
	switch h.Kind.GroupVersionKind {
	case statefulSet:
		s, err := into[appsv1.StatefulSet](u)
		if err != nil {
			return Progress{}, err
		}
		return statefulSetProgress(s), nil
	case daemonSet:
		d, err := into[appsv1.DaemonSet](u)
		if err != nil {
			return Progress{}, err
		}
		s := d.Status
		return progressOf(s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberAvailable, 0), nil
	}
	d, err := into[appsv1.Deployment](u)
	if err != nil {
		return Progress{}, err
	}
	return deploymentProgress(d, to), nil
}

// progressOf counts: of the pods wanted so many are updated and available, and so many older ones are left.
func progressOf(want, updated, available, older int32) Progress {
	p := Progress{
		Done: updated >= want && available >= want && older <= 0,
		Text: fmt.Sprintf("%d of %d pods are updated, %d available", updated, want, min(available, want)),
	}
	if older > 0 {
		p.Text += fmt.Sprintf(", %d of another revision are left", older)
	}
	return p
}

// deploymentProgress tells a rollout that failed by the condition of that very ReplicaSet: that of the rollout before stays
// for a while.
func deploymentProgress(d *appsv1.Deployment, to revision.Revision) Progress {
	p := progressOf(ptr.Deref(d.Spec.Replicas, 1), d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.Replicas-d.Status.UpdatedReplicas)
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, `"`+to.Name+`"`) && !p.Done {
			p.Failed = c.Message
		}
	}
	return p
}

func statefulSetProgress(s *appsv1.StatefulSet) Progress {
	replicas, partition := ptr.Deref(s.Spec.Replicas, 1), int32(0)
	if u := s.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		partition = *u.Partition
	}
	want := max(0, replicas-partition)
	p := Progress{
		Done: s.Status.UpdatedReplicas >= want && s.Status.AvailableReplicas >= replicas && s.Status.Replicas == replicas,
		Text: fmt.Sprintf("%d of %d pods are updated, %d available", min(s.Status.UpdatedReplicas, want), want, s.Status.AvailableReplicas),
	}
	if partition > 0 {
		p.Text += fmt.Sprintf(" (partition %d: pods below this ordinal keep their revision)", partition)
	} else {
		p.Done = p.Done && s.Status.CurrentRevision == s.Status.UpdateRevision
	}
	return p
}

// rolloutProgress goes by the phase that the Rollout's controller states.
func rolloutProgress(u *unstructured.Unstructured) Progress {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	message, _, _ := unstructured.NestedString(u.Object, "status", "message")
	text := phase
	if message != "" {
		text += ": " + message
	}
	switch phase {
	case "Healthy":
		return Progress{Done: true, Text: text}
	case "Degraded":
		return Progress{Failed: text, Text: text}
	}
	return Progress{Text: text}
}

// hindrance is the first thing that stands in the way of a pod: one of the revision before others.
func (h *History) hindrance(ctx context.Context, u *unstructured.Unstructured, to revision.Revision) (string, error) {
	selector, err := h.selector()
	if err != nil {
		return "", err
	}
	var waiting []corev1.Pod
	err = cluster.EachItem(ctx, h.client, func() client.ObjectList { return &corev1.PodList{} }, cluster.PageSize, func(pod *corev1.Pod) {
		if why := whyWaiting(pod); why != "" && pod.DeletionTimestamp == nil && !cluster.Finished(pod) {
			waiting = append(waiting, *pod)
		}
	}, client.InNamespace(h.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if apierrors.IsForbidden(err) || err == nil && len(waiting) == 0 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	slices.SortFunc(waiting, func(a, b corev1.Pod) int {
		return cmp.Or(rank(podtemplate.Hash(a.Labels) == to.Hash)-rank(podtemplate.Hash(b.Labels) == to.Hash), cmp.Compare(a.Name, b.Name))
	})
	first := &waiting[0]
	text := fmt.Sprintf("pod %s: %s", first.Name, whyWaiting(first))
	if policy, _, _ := unstructured.NestedString(u.Object, "spec", "podManagementPolicy"); h.Kind.GroupVersionKind == statefulSet &&
		policy != string(appsv1.ParallelPodManagement) && podtemplate.Hash(first.Labels) != to.Hash {
		text += " (it is of another revision, and a StatefulSet goes no further while a pod is not ready: " +
			"`kubectl delete pod " + first.Name + "` replaces it)"
	}
	return text, nil
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// whyWaiting is what keeps a pod from starting; "" when nothing is known to.
func whyWaiting(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	switch reason := cluster.PodOf(pod).Waiting; reason {
	case "ContainerCreating":
		return ""
	default:
		return reason
	}
}
