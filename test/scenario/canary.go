package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/wire"
)

// Canary is the scene of the incident canary, in a namespace beside which Argo Rollouts runs.
type Canary struct {
	*Scene
	Rollouts *client.Rollouts
}

const checkout = "checkout" // the Rollout

// NewCanary gives the scene its service. In mode pin its first revision is replaced by one that is pinned.
func NewCanary(s *Scene) (*Canary, error) {
	rollouts, err := s.Lab.Rollouts(s.Namespace)
	return &Canary{s, rollouts}, err
}

// Released tells which release a container runs and which fee it read: "1 with 3", "2 without".
func Released(s wire.Start) string {
	release := s.Image[len(s.Image)-1:]
	if fee := s.Env("FEE"); fee != "" {
		return release + " with " + fee
	}
	return release + " without"
}

// Begins waits until five pods run the first release, pinned where they are to be.
func (c *Canary) Begins(ctx context.Context, pinned bool) error {
	return Await(ctx, "five pods of the first release", func() error {
		if pinned {
			pins, err := c.Kubectl(ctx, "get", "rollout", checkout, "-o", `jsonpath={.spec.template.metadata.annotations.tidemark\.dev/pins}`)
			if err == nil && pins == "" {
				err = errors.New("it is not pinned yet")
			}
			if err != nil {
				return err
			}
		}
		return errors.Join(c.Rollouts.PromoteFull(ctx, checkout), c.healthy(ctx), c.Runs(ctx, map[string]int{"1 with 3": 5}))
	})
}

func (c *Canary) healthy(ctx context.Context) error {
	return c.Rollouts.InPhase(ctx, checkout, client.RolloutHealthy)
}

// Runs is an error unless the running containers are so many of each release.
func (c *Canary) Runs(ctx context.Context, want map[string]int) error {
	got, err := c.Loaded(ctx, Released)
	if err == nil && !maps.Equal(got, want) {
		err = fmt.Errorf("there run %v, want %v", got, want)
	}
	return err
}

// Release applies the next release, and waits until it has one pod and waits for somebody.
func (c *Canary) Release(ctx context.Context) error {
	manifest, err := Manifest("canary-2")
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, manifest); err != nil {
		return err
	}
	return Await(ctx, "a canary of one pod", func() error {
		if err := c.Rollouts.InPhase(ctx, checkout, client.RolloutPaused); err != nil {
			return err
		}
		return c.Runs(ctx, map[string]int{"1 with 3": 4, "2 without": 1})
	})
}

// Peak is a peak of traffic: ten pods are wanted. The canary keeps its share, so four more of the old release start.
func (c *Canary) Peak(ctx context.Context) error {
	return c.do(ctx, "scale", "rollout/"+checkout, "--replicas=10")
}

// Crash ends the program of one pod of the old release, and returns the pod.
func (c *Canary) Crash(ctx context.Context) (string, error) {
	running, err := c.Running(ctx)
	if err != nil {
		return "", err
	}
	for _, start := range running {
		if Released(start) != "1 with 3" {
			continue
		}
		_, err := c.Lab.Exit(ctx, wire.Selector{Namespace: c.Namespace, PodPrefix: start.Pod}, 1)
		return start.Pod, err
	}
	return "", errors.New("no pod of the old release runs")
}

// Again returns what the last start of a pod's container was given, once it has been started again.
func (c *Canary) Again(ctx context.Context, pod string) (wire.Start, error) {
	var last wire.Start
	err := Await(ctx, pod+" to start again", func() error {
		starts, err := c.Starts(ctx)
		for _, start := range starts {
			if start.Pod == pod {
				last = start
			}
		}
		if err == nil && last.Attempt == 0 {
			err = errors.New("it has not been")
		}
		return err
	})
	return last, err
}
