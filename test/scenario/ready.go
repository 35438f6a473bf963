package scenario

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// Ready returns how many pods of a Deployment are ready.
func (s *Scene) Ready(ctx context.Context, deployment string) (int32, error) {
	d := &appsv1.Deployment{}
	err := s.API.Get(ctx, ctrlclient.ObjectKey{Namespace: s.Namespace, Name: deployment}, d)
	return d.Status.ReadyReplicas, err
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
