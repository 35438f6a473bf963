package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/test/scenario"
)

// canary: a canary is forgotten at one pod, and a peak of traffic starts pods of the old release with the new configuration.
var canary = incident{id: "canary", needs: (*stage).argoRollouts, scenes: []scene{
	{title: "without Tidemark", namespace: "canary-without", play: canaryWithout},
	{title: "with Tidemark in mode pin", namespace: "canary-pin", mode: v1.ModePin, play: canaryPin},
}}

const checkout = "rollout/checkout"

var (
	forgotten = map[string]int{"1 with 3": 4, "2 without": 1}
	scaledOut = map[string]int{"1 with 3": 8, "2 without": 2}
)

// argoRollouts starts Argo Rollouts' own controller beside the lab.
func (s *stage) argoRollouts(ctx context.Context) error {
	if s.argo != nil {
		return nil
	}
	var err error
	s.argo, err = s.lab.StartArgoRollouts(ctx) // it ends with the lab
	return err
}

// canaryBegins plays the incident up to the peak.
func (s *stage) canaryBegins(ctx context.Context, sc *scenario.Scene, pinned bool) (*scenario.Canary, error) {
	c, err := scenario.NewCanary(sc)
	if err != nil {
		return nil, err
	}
	if err := c.Begins(ctx, pinned); err != nil {
		return nil, err
	}
	s.step(checkout+" needs FEE", "%d × release 1, FEE=3", 5)
	if err := c.Release(ctx); err != nil {
		return nil, err
	}
	s.step("release 2 takes FEE out of the one ConfigMap", "canary of 1 pod, and forgotten: %s", releases(forgotten))
	if err := c.Peak(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// releases words counts by release: "4 × release 1 with FEE=3, 1 × release 2 without FEE".
func releases(counts map[string]int) string {
	words := map[string]int{}
	for ran, n := range counts {
		release, fee, reads := strings.Cut(ran, " with ")
		word := "release " + release + " FEE"
		if reads {
			word = "release " + release + " with FEE=" + fee
		}
		words[word] = n
	}
	return tally(words)
}

func canaryWithout(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	c, err := s.canaryBegins(ctx, sc, false)
	if err != nil {
		return err
	}
	refused, err := awaitRefusals(ctx, sc, 4)
	if err != nil {
		return err
	}
	s.step("a peak of traffic: 10 pods are wanted", "4 old pods exit, again and again: %s", oneOf(refused))
	pod, err := c.Crash(ctx)
	if err != nil {
		return err
	}
	err = scenario.Await(ctx, pod+" to fail", func() error {
		if refused, err = sc.Refused(ctx); err == nil && refused[pod] == "" {
			err = errors.New("it has not yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	loaded, err := sc.Loaded(ctx, scenario.Released)
	if err != nil {
		return err
	}
	s.step("the program of an old pod that serves crashes", "it does not come back; left: %s", releases(loaded))
	j.add(len(refused) == 5, "without, %d of 8 old pods could not start with the new ConfigMap", len(refused))
	return nil
}

func canaryPin(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	c, err := s.canaryBegins(ctx, sc, true)
	if err != nil {
		return err
	}
	if err := awaitReleases(ctx, c, scaledOut); err != nil {
		return err
	}
	s.step("a peak of traffic: 10 pods are wanted", "%s", releases(scaledOut))
	pod, err := c.Crash(ctx)
	if err != nil {
		return err
	}
	again, err := c.Again(ctx, pod)
	if err != nil {
		return err
	}
	if err := awaitReleases(ctx, c, scaledOut); err != nil {
		return err
	}
	s.step("the program of an old pod crashes", "it starts again with FEE=%s", again.Env("FEE"))
	j.add(again.Env("FEE") == "3", "in mode pin all 8 read their own copy, one after a crash too")
	if _, err := sc.Kubectl(ctx, "annotate", checkout, v1.AnnotationUnfinishedAfter+"=1s"); err != nil {
		return err
	}
	if err := awaitVerdict(ctx, sc, checkout, "unfinished"); err != nil {
		return err
	}
	verdict, _, err := s.status(ctx, sc, checkout)
	if err != nil {
		return err
	}
	if _, err := sc.Kubectl(ctx, "annotate", checkout, v1.AnnotationPromoteAfter+"=1s"); err != nil {
		return err
	}
	if err := awaitReleases(ctx, c, map[string]int{"2 without": 10}); err != nil {
		return err
	}
	s.step(v1.AnnotationPromoteAfter+"=1s", "Tidemark goes on for whoever forgot: %s", releases(map[string]int{"2 without": 10}))
	j.add(verdict == "unfinished", "the forgotten canary was %s, then promoted", verdict)
	return nil
}

func awaitReleases(ctx context.Context, c *scenario.Canary, want map[string]int) error {
	return scenario.Await(ctx, releases(want), func() error {
		got, err := c.Loaded(ctx, scenario.Released)
		if err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("there run %s", releases(got))
		}
		return err
	})
}
