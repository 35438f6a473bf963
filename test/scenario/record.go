package scenario

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/lab/sample"
	"tidemark.dev/tidemark/lab/wire"
)

// Starts returns every start of the scene's containers, oldest first, from the lab's record.
func (s *Scene) Starts(ctx context.Context) ([]wire.Start, error) {
	return s.Lab.Record(ctx, wire.Filter{Selector: wire.Selector{Namespace: s.Namespace}})
}

// Running returns the starts of the scene's containers that run now, from the lab's record.
func (s *Scene) Running(ctx context.Context) ([]wire.Start, error) {
	starts, err := s.Starts(ctx)
	var running []wire.Start
	for _, start := range starts {
		if start.Running() {
			running = append(running, start)
		}
	}
	return running, err
}

// Loaded counts the running containers of the scene by what they loaded, as the function reads it from the record.
func (s *Scene) Loaded(ctx context.Context, what func(wire.Start) string) (map[string]int, error) {
	running, err := s.Running(ctx)
	counts := map[string]int{}
	for _, start := range running {
		counts[what(start)]++
	}
	return counts, err
}

// Env reads an environment variable from the record of a start.
func Env(key string) func(wire.Start) string {
	return func(s wire.Start) string { return s.Env(key) }
}

// File reads a file from the record of a start.
func File(path string) func(wire.Start) string {
	return func(s wire.Start) string { return s.File(path) }
}

// Aged waits until every running container started at least so long ago. API times have a resolution of a second, and an
// edit takes a moment to reach the nodes: what happens closer together cannot be told apart afterwards, here or anywhere.
func (s *Scene) Aged(ctx context.Context, age time.Duration) error {
	return Await(ctx, "the pods to have run for "+age.String(), func() error {
		running, err := s.Running(ctx)
		if err != nil {
			return err
		}
		for _, start := range running {
			if ran := time.Since(start.Started); ran < age {
				return fmt.Errorf("%s runs since %v", start.Pod, ran)
			}
		}
		return nil
	})
}

// Refused gives, by pod, the complaint of every pod that is there and whose program has refused its configuration, and again
// when it was started once more, by the record.
func (s *Scene) Refused(ctx context.Context) (map[string]string, error) {
	pods := &corev1.PodList{}
	if err := s.API.List(ctx, pods, ctrlclient.InNamespace(s.Namespace)); err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for i := range pods.Items {
		there[string(pods.Items[i].UID)] = true
	}
	starts, err := s.Starts(ctx)
	complaints := map[string]string{}
	for _, start := range starts {
		if there[start.PodUID] && start.Attempt > 0 && start.ExitCode != nil && *start.ExitCode == sample.ExitConfig {
			complaints[start.Pod] = start.Message
		}
	}
	return complaints, err
}
