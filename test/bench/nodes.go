package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeCount is how many machines the pods are spread over. They are nothing but objects.
const nodeCount = 20

func nodeName(i int) string { return fmt.Sprintf("paper-%d", i%nodeCount) }

// nodes makes machines that exist on paper, so that pods on them are not collected as orphans.
func (s *site) nodes(ctx context.Context) error {
	return each(ctx, nodeCount, 1, func(ctx context.Context, i int) error {
		now := metav1.Now()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		if err := s.api.Create(ctx, node); err != nil {
			return err
		}
		made := ctrlclient.MergeFrom(node.DeepCopy())
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "OnPaper", LastHeartbeatTime: now, LastTransitionTime: now,
		}}
		return s.api.Status().Patch(ctx, node, made)
	})
}

// pods makes the real controllers make the pods of n Deployments, and states of each pod that it runs, as its kubelet would.
func (s *site) pods(ctx context.Context, namespace string, n, replicas int, name func(int) string) error {
	source := func(i int) corev1.EnvFromSource {
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name(i)}}}
	}
	// Without a scheduler in between: it would only take time.
	spec := corev1.PodSpec{NodeName: nodeName(0), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
	if err := s.workloads(ctx, namespace, n, replicas, source, spec); err != nil {
		return err
	}
	for {
		left, total, err := s.runPods(ctx, namespace)
		if err != nil {
			return err
		}
		if total == n*replicas && left == 0 {
			return nil
		}
		s.say("%d pods, %d of them new", total, left)
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// runPods states of each pod that does not run yet that it runs.
func (s *site) runPods(ctx context.Context, namespace string) (started, total int, err error) {
	pods := &corev1.PodList{}
	if err := s.api.List(ctx, pods, ctrlclient.InNamespace(namespace)); err != nil {
		return 0, 0, err
	}
	var fresh []*corev1.Pod
	for i := range pods.Items {
		if pods.Items[i].Status.Phase != corev1.PodRunning {
			fresh = append(fresh, &pods.Items[i])
		}
	}
	return len(fresh), len(pods.Items), each(ctx, len(fresh), workers, func(ctx context.Context, i int) error {
		made := ctrlclient.MergeFrom(fresh[i].DeepCopy())
		return s.api.Status().Patch(ctx, running(fresh[i]), made)
	})
}

func running(pod *corev1.Pod) *corev1.Pod {
	now := metav1.Now()
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, PodIP: "10.0.0.1"}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	started := true
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "paper://" + string(pod.UID), Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return pod
}
