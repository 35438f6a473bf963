package helm

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/release"
)

// life tells whether the pod of a guard's job still runs, by its UID and never by age; problem says what could not be read. The
// word of a node that does not answer is not taken: what it ran may go on, although the pod is gone or said to have ended.
func life(ctx context.Context, c client.Reader, job release.JobPod) (life release.Life, problem string) {
	if job.UID == "" {
		return release.LifeUnknown, ""
	}
	pod := &corev1.Pod{}
	err := c.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.Name}, pod)
	if err != nil && !apierrors.IsNotFound(err) {
		return release.LifeUnknown, unread("pods", "in namespace "+job.Namespace, err)
	}
	there := err == nil && pod.UID == types.UID(job.UID)
	if there && pod.Spec.NodeName != "" {
		job.Node = pod.Spec.NodeName
	}
	if job.Node == "" {
		return release.LifeUnknown, ""
	}
	return lifeOn(ctx, c, job.Node, there && !ended(pod, job.Container))
}

// lifeOn tells life from whether the pod is said to run, and from its node.
func lifeOn(ctx context.Context, c client.Reader, name string, runs bool) (life release.Life, problem string) {
	node := &corev1.Node{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, node)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return release.LifeUnknown, unread("nodes", "in the cluster", err)
	case err != nil && runs: // the pod is about to be removed
		return release.LifeUnknown, ""
	case err == nil && !answers(node):
		return release.LifeUnknown, ""
	case runs:
		return release.Alive, ""
	}
	return release.Dead, ""
}

// unread says that objects could not be read, with the right that is missing where that is why.
func unread(resource, where string, err error) string {
	if apierrors.IsForbidden(err) {
		return fmt.Sprintf("missing the right to get %s %s", resource, where)
	}
	return fmt.Sprintf("read %s %s: %v", resource, where, err)
}

// ended reports whether the container has terminated, or the whole pod where none is named.
func ended(pod *corev1.Pod, container string) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	s := pod.Status
	return slices.ContainsFunc(slices.Concat(s.ContainerStatuses, s.InitContainerStatuses, s.EphemeralContainerStatuses), func(s corev1.ContainerStatus) bool {
		return container != "" && s.Name == container && s.State.Terminated != nil
	})
}

func answers(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// podEnd is what ended the pod of a guard's job, as far as it is still there to tell. It is for people alone, and has no message:
// that may be what a program printed.
func podEnd(ctx context.Context, c client.Reader, job release.JobPod) string {
	pod := &corev1.Pod{}
	if job.UID == "" || c.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.Name}, pod) != nil || pod.UID != types.UID(job.UID) {
		return ""
	}
	for _, condition := range pod.Status.Conditions { // an eviction, a preemption, a taint of the node or its shutdown
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return condition.Reason
		}
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name == job.Container && s.State.Terminated != nil && s.State.Terminated.Reason == oomKilled {
			return oomKilled
		}
	}
	return ""
}

// oomKilled is the kubelet's word for a container that took more memory than it may.
const oomKilled = "OOMKilled"
