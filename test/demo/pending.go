package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"tidemark.dev/tidemark/test/scenario"
)

// pending: the machine of a deploy goes while Helm waits, and the release is locked by a process that cannot come back.
var pending = incident{id: "pending", deploys: true, scenes: []scene{
	{title: "without Tidemark", namespace: "pending-without", play: pendingWithout},
	{title: "with the deploys under tidemark guard", namespace: "pending-guard", play: pendingGuard},
}}

// released installs release 1 of the service, and gives the directory of its chart.
func (s *stage) released(ctx context.Context, sc *scenario.Scene) (chart string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "tidemark-demo-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if chart, err = scenario.Chart(dir); err == nil {
		_, _, err = s.lab.Helm(ctx, "install", scenario.Release, chart, "-n", sc.Namespace, "--wait")
	}
	if err == nil {
		err = s.tellRevisions(ctx, sc, "helm install "+scenario.Release)
	}
	return chart, remove, err
}

func (s *stage) tellRevisions(ctx context.Context, sc *scenario.Scene, what string) error {
	revisions, err := sc.Revisions(ctx)
	s.step(what, "revisions: %s", revisions)
	return err
}

// hanging are helm's arguments for an upgrade whose pods are never ready.
func hanging(chart string) []string {
	return []string{"upgrade", scenario.Release, chart, "--wait", "--set", "release=2,bootDelay=1h"}
}

func pendingWithout(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	chart, remove, err := s.released(ctx, sc)
	if err != nil {
		return err
	}
	defer remove()
	deploy, err := s.lab.HelmCommand(ctx, append(hanging(chart), "-n", sc.Namespace)...)
	if err != nil {
		return err
	}
	if err := sc.CutOff(ctx, deploy); err != nil {
		return err
	}
	if err := s.tellRevisions(ctx, sc, "helm upgrade --wait, and its machine is gone"); err != nil {
		return err
	}
	_, _, err = s.lab.Helm(ctx, "upgrade", scenario.Release, chart, "-n", sc.Namespace, "--set", "release=3")
	refused := err != nil && strings.Contains(err.Error(), "another operation")
	s.step("helm upgrade with the fix, and every one after it", "refused: another operation is in progress")
	j.add(refused, "without, the fix is refused")
	return nil
}

func pendingGuard(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	chart, remove, err := s.released(ctx, sc)
	if err != nil {
		return err
	}
	defer remove()
	// A lease of seconds, and a timeout that is soon past: what takes minutes and half an hour by default.
	deploy, err := sc.GuardCommand(ctx, []string{"--lease-duration", "4s", "--timeout", "10s", "--started-by", "ann"}, hanging(chart)...)
	if err != nil {
		return err
	}
	if err := sc.CutOff(ctx, deploy); err != nil {
		return err
	}
	if err := s.tellRevisions(ctx, sc, "guarded helm upgrade --wait, and its machine is gone"); err != nil {
		return err
	}
	refusals := 0
	var said []byte
	err = scenario.Await(ctx, "the fix to go through", func() error {
		next, err := sc.GuardCommand(ctx, []string{"--lease-duration", "4s", "--policy", "forward"},
			"upgrade", scenario.Release, chart, "--wait", "--set", "release=3")
		if err != nil {
			return err
		}
		if said, err = next.CombinedOutput(); err != nil {
			refusals++
			return fmt.Errorf("%w: %s", err, said)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.step("the fix, while ann's deploy may still be alive", "refused %d times", refusals)
	for line := range strings.Lines(string(said)) {
		if strings.HasPrefix(line, "remark: release") {
			s.step("the fix, once it certainly is not", "%s", strings.TrimSpace(strings.TrimPrefix(line, "remark: ")))
		}
	}
	revisions, err := sc.Revisions(ctx)
	if err != nil {
		return err
	}
	s.step("", "revisions: %s", revisions)
	j.add(strings.HasSuffix(revisions, "2 failed, 3 deployed"), "guarded, the dead deploy is marked failed and the fix goes through")
	return nil
}
