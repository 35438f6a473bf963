package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/podtemplate"
	"tidemark.dev/tidemark/internal/workload"
)

// PodOf reduces a pod to what the judgement of its fleet needs. What its containers use is read from the pod itself, for
// its revision may consume other keys than the workload's present template. Since when its node is ready is not on the pod.
func PodOf(pod *corev1.Pod) fleet.Pod {
	out := fleet.Pod{
		Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName,
		Revision:    podtemplate.Hash(pod.Labels),
		Created:     pod.CreationTimestamp.Time,
		Stamp:       pod.Annotations[v1.AnnotationConfigHash],
		InitEnded:   initEnded(pod),
		Terminating: pod.DeletionTimestamp != nil,
		Phase:       string(pod.Status.Phase),
	}
	_, out.Ready = PodReady(pod)
	uses := usesOf(pod)
	out.Unmatched, out.PinsProblem = uses.unmatched, uses.problem
	add := func(name string, role workload.Role, statuses []corev1.ContainerStatus) {
		c := fleet.Container{Name: name, Role: role, Uses: uses.plain[name], Pinned: uses.pinned[name]}
		for i := range statuses {
			if statuses[i].Name == name {
				observeRun(&c, &statuses[i])
				out.Waiting = waitingReason(out.Waiting, &statuses[i])
			}
		}
		out.Containers = append(out.Containers, c)
	}
	for i := range pod.Spec.InitContainers {
		add(pod.Spec.InitContainers[i].Name, initRole(&pod.Spec.InitContainers[i]), pod.Status.InitContainerStatuses)
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Name, workload.RoleMain, pod.Status.ContainerStatuses)
	}
	return out
}

// Finished reports whether a pod has run to its end: it reads nothing any more and is part of no fleet.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// PodReady reports whether a pod is ready, and since when.
func PodReady(pod *corev1.Pod) (since time.Time, ready bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// ReadySince is since when a node is Ready; zero when it is not.
func ReadySince(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func initRole(c *corev1.Container) workload.Role {
	if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		return workload.RoleSidecar
	}
	return workload.RoleInit
}

// initEnded is when the last of the pod's init containers ended; zero when there is none, or one has not ended.
func initEnded(pod *corev1.Pod) time.Time {
	ended := map[string]time.Time{}
	for i := range pod.Status.InitContainerStatuses {
		if t := pod.Status.InitContainerStatuses[i].State.Terminated; t != nil {
			ended[pod.Status.InitContainerStatuses[i].Name] = t.FinishedAt.Time
		}
	}
	var last time.Time
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if initRole(c) == workload.RoleSidecar {
			continue
		}
		at, ok := ended[c.Name]
		if !ok {
			return time.Time{}
		}
		last = latest(last, at)
	}
	return last
}

// observeRun notes the container's present run and the end of the one before. An init container that has ended keeps the
// start of its last run, at which it read its configuration.
func observeRun(c *fleet.Container, s *corev1.ContainerStatus) {
	c.Restarts = s.RestartCount
	switch {
	case s.State.Running != nil:
		c.Started = s.State.Running.StartedAt.Time
	case s.State.Terminated != nil && c.Role == workload.RoleInit:
		c.Started = s.State.Terminated.StartedAt.Time
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		c.PreviousEnded = t.FinishedAt.Time
	}
}

// waitingReason is the first reason that stands in the way of a container. PodInitializing only says that another does.
func waitingReason(first string, s *corev1.ContainerStatus) string {
	if first != "" || s.State.Waiting == nil || s.State.Waiting.Reason == "PodInitializing" {
		return first
	}
	return s.State.Waiting.Reason
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
