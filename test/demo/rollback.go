package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/sample"
	"tidemark.dev/tidemark/lab/wire"
	"tidemark.dev/tidemark/test/scenario"
)

// rollback: a setting is renamed in one step with the image; going back brings the old image to the new configuration.
var rollback = incident{id: "rollback", scenes: []scene{
	{title: "the pull request, checked", play: rollbackChecked},
	{title: "without Tidemark", namespace: "rollback-without", play: rollbackWithout},
	{title: "with Tidemark in mode pin", namespace: "rollback-pin", mode: v1.ModePin, play: rollbackPin},
}}

const (
	pricing       = "deployment/pricing"
	pricingPods   = 4
	pricingFile   = "/etc/pricing/pricing.conf"
	renamed       = "release 2: discount_rules_path → rules.discount_path"
	releaseOne    = "image 1 with discount_rules_path"
	releaseTwo    = "image 2 with rules.discount_path"
	firstRelease  = "rollback"
	bothNames     = "rollback-both"
	secondRelease = "rollback-2"
)

// ran words which image a container ran with which setting.
func ran(s wire.Start) string {
	setting, _, _ := strings.Cut(s.File(pricingFile), "=")
	return "image " + s.Image[strings.LastIndexByte(s.Image, ':')+1:] + " with " + setting
}

// release rolls the first release out, then the second.
func (s *stage) release(ctx context.Context, sc *scenario.Scene) error {
	if err := sc.RolledOut(ctx, pricing); err != nil {
		return err
	}
	if err := s.runs(ctx, sc, pricing+" is released"); err != nil {
		return err
	}
	manifest, err := scenario.Manifest(secondRelease)
	if err != nil {
		return err
	}
	if err := sc.Apply(ctx, manifest); err != nil {
		return err
	}
	if err := awaitRuns(ctx, sc, map[string]int{releaseTwo: pricingPods}); err != nil {
		return err
	}
	return s.runs(ctx, sc, renamed)
}

// runs tells what the running containers run.
func (s *stage) runs(ctx context.Context, sc *scenario.Scene, what string) error {
	running, err := sc.Loaded(ctx, ran)
	if err == nil {
		s.step(what, "%s", tally(running))
	}
	return err
}

// awaitRuns waits until the running containers run this and nothing else.
func awaitRuns(ctx context.Context, sc *scenario.Scene, want map[string]int) error {
	return scenario.Await(ctx, "all pods to run "+tally(want), func() error {
		running, err := sc.Loaded(ctx, ran)
		if err == nil && !maps.Equal(running, want) {
			err = fmt.Errorf("they run %s", tally(running))
		}
		return err
	})
}

// rollbackChecked checks the change as it was made, then the same change in the two steps that the team agreed on.
func rollbackChecked(ctx context.Context, s *stage, _ *scenario.Scene, j *judgement) error {
	for _, change := range []struct{ before, after string }{{firstRelease, secondRelease}, {firstRelease, bothNames}, {bothNames, secondRelease}} {
		text, found, err := scenario.Check(ctx, change.before, change.after)
		if err != nil {
			return err
		}
		s.command(fmt.Sprintf("tidemark check -f %s.yaml --against %s.yaml", change.after, change.before), text)
		if change.before == firstRelease && change.after == secondRelease {
			f := found.Findings
			j.add(len(f) == 1 && f[0].Rule == "rename-in-one-step" && strings.HasSuffix(f[0].Key, "discount_rules_path") && strings.HasSuffix(f[0].To, "rules.discount_path"),
				"the check of the pull request names the rename")
			continue
		}
		j.add(len(found.Findings) == 0, "%s after %s passes it", change.after, change.before)
	}
	return nil
}

func rollbackWithout(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	if err := s.release(ctx, sc); err != nil {
		return err
	}
	if _, err := sc.Kubectl(ctx, "rollout", "undo", pricing); err != nil {
		return err
	}
	refused, err := awaitRefusals(ctx, sc, 2)
	if err != nil {
		return err
	}
	if err := sc.AwaitReady(ctx, "pricing", 3); err != nil {
		return err
	}
	s.step("$ kubectl rollout undo "+pricing, "%d old pods exit with code %d, again and again: %s", len(refused), sample.ExitConfig, oneOf(refused))
	s.step("the release that was to be undone serves on", "3 of %d pods ready", pricingPods)
	j.add(len(refused) == 2, "without, the undo left %d old pods that refuse the new configuration, and 3 pods of the bad release", len(refused))
	return nil
}

func rollbackPin(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	if err := s.release(ctx, sc); err != nil {
		return err
	}
	if err := sc.RolledOut(ctx, pricing); err != nil {
		return err
	}
	if _, err := sc.Kubectl(ctx, "rollout", "undo", pricing); err != nil {
		return err
	}
	if err := awaitRuns(ctx, sc, map[string]int{releaseOne: pricingPods}); err != nil {
		return err
	}
	if err := s.runs(ctx, sc, "$ kubectl rollout undo "+pricing); err != nil {
		return err
	}
	if err := awaitVerdict(ctx, sc, pricing, "rolled-back"); err != nil {
		return err
	}
	verdict, reason, err := s.status(ctx, sc, pricing)
	if err != nil {
		return err
	}
	refused, err := sc.Refused(ctx)
	if err != nil {
		return err
	}
	j.add(verdict == "rolled-back" && len(refused) == 0, "in mode pin %d of %d pods run %s after it, none ever refused its configuration, and status says %s (%s)",
		pricingPods, pricingPods, releaseOne, verdict, reason)
	return nil
}
