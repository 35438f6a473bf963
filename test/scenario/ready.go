package scenario

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// Ready returns how many pods of a Deployment are ready.
func (s *Scene) Ready(ctx context.Context, deployment string) (int32, error) {
	d := &appsv1.Deployment{}
	err := s.API.Get(ctx, ctrlclient.ObjectKey{Namespace: s.Namespace, Name: deployment}, d)
	return d.Status.ReadyReplicas, err
}

// AwaitReady waits until so many pods of a Deployment are ready: on a busy machine the kubelet may take a pod that runs
// undisturbed for unready for a moment. When it gives up, the error says why each of the others is not.
func (s *Scene) AwaitReady(ctx context.Context, deployment string, want int32) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return Await(ctx, fmt.Sprintf("%d ready pods of %s", want, deployment), func() error {
		ready, err := s.Ready(ctx, deployment)
		if err == nil && ready != want {
			err = fmt.Errorf("%d are: %s", ready, s.unready(ctx))
		}
		return err
	})
}

// unready says of each pod of the scene that is not ready what its conditions and containers give as the reason.
func (s *Scene) unready(ctx context.Context) string {
	pods := &corev1.PodList{}
	if err := s.API.List(ctx, pods, ctrlclient.InNamespace(s.Namespace)); err != nil {
		return err.Error()
	}
	var why []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
				why = append(why, fmt.Sprintf("%s on %s since %s: %s %s", pod.Name, pod.Spec.NodeName, c.LastTransitionTime, c.Reason, c.Message))
			}
		}
	}
	return strings.Join(why, "; ")
}

// LowWater is the lowest number of ready pods that a Deployment was seen with.
type LowWater struct {
	watch watch.Interface
	done  chan struct{}

	mu     sync.Mutex
	lowest int32
}

// WatchReady follows the number of ready pods of a Deployment from now on.
func (s *Scene) WatchReady(ctx context.Context, deployment string) (*LowWater, error) {
	now, err := s.Ready(ctx, deployment)
	if err != nil {
		return nil, err
	}
	w, err := s.API.Watch(ctx, &appsv1.DeploymentList{}, ctrlclient.InNamespace(s.Namespace))
	if err != nil {
		return nil, fmt.Errorf("watch deployments: %w", err)
	}
	l := &LowWater{watch: w, done: make(chan struct{}), lowest: now}
	go l.follow(deployment)
	return l, nil
}

func (l *LowWater) follow(deployment string) {
	defer close(l.done)
	for event := range l.watch.ResultChan() {
		d, ok := event.Object.(*appsv1.Deployment)
		if !ok || d.Name != deployment {
			continue
		}
		l.mu.Lock()
		l.lowest = min(l.lowest, d.Status.ReadyReplicas)
		l.mu.Unlock()
	}
}

// Stop ends the following and returns the lowest number seen.
func (l *LowWater) Stop() int32 {
	l.watch.Stop()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lowest
}
