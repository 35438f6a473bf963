package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"tidemark.dev/tidemark/test/scenario"
)

// pending: the machine of a deploy goes while Helm waits, and the release is locked by a process that cannot come back.
var pending = incident{id: "pending", deploys: true, scenes: []scene{
	{title: "without Tidemark", namespace: "pending-without", play: pendingWithout},
	{title: "with the deploys under tidemark guard, and the controller", namespace: "pending-guard", play: pendingGuard},
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
	s.step("helm upgrade with the fix, at once or six hours later", "refused: another operation is in progress (helm's lock has no clock)")
	j.add(refused, "without, the fix is refused")
	return nil
}

// What takes minutes and half an hour by default is a matter of seconds here. Neither helm nor the controller takes another clock
// than the machine's; the acceptance tests play the six hours of the incident with one that is handed in.
const (
	leaseLasts  = 4 * time.Second
	deployTakes = 15 * time.Second // at the most
)

func pendingGuard(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) (err error) {
	in, err := scenario.OpenInbox("ann")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stopController(), in.Close()) }()
	if err := s.startController(ctx, append(in.Flags(), "--release-interval=500ms")...); err != nil {
		return err
	}
	seen := func() error { return scenario.ReleasesSeen(ctx, s.lab) }
	if err := scenario.Await(ctx, "the controller to have looked at releases", seen); err != nil {
		return err
	}
	s.step("the controller runs, and tells people over HTTP", "a lease of %s stands for 3m, a timeout of %s for 30m", leaseLasts, deployTakes)
	chart, remove, err := s.released(ctx, sc)
	if err != nil {
		return err
	}
	defer remove()

	certain, err := s.guardedAndGone(ctx, sc, chart)
	if err != nil {
		return err
	}
	refused, said, err := s.fix(ctx, sc, chart)
	if err != nil {
		return err
	}
	s.step("the fix, while ann's deploy may still be alive", "%s", said)
	j.add(refused && time.Now().Before(certain), "guarded, the fix is refused while the deploy may be alive")

	page, err := in.Await(ctx, sc.Namespace, scenario.Release, "TidemarkReleaseAbandoned", "firing")
	if err != nil {
		return err
	}
	s.step("once it certainly is not", "%s gets a %s: %s", page.To, page.Severity, page.Title)
	others := len(in.About(sc.Namespace, scenario.Release, "TidemarkReleaseAbandoned")) - 1
	j.add(page.To == "ann" && page.Severity == "page" && others == 0 && !page.At.Before(certain), "ann is paged %s after it is certain",
		page.At.Sub(certain).Round(time.Second))
	text, err := sc.Tidemark(ctx, "releases")
	if err != nil {
		return err
	}
	s.command("tidemark releases -n "+sc.Namespace, text)
	j.add(strings.Contains(text, "abandoned"), "it is announced as abandoned")

	if refused, said, err = s.fix(ctx, sc, chart); err != nil {
		return err
	}
	s.step("the fix now, with --policy forward", "%s", said)
	if err := s.tellRevisions(ctx, sc, ""); err != nil {
		return err
	}
	revisions, err := sc.Revisions(ctx)
	if err != nil {
		return err
	}
	j.add(!refused && strings.HasSuffix(revisions, "2 failed, 3 deployed"), "the dead deploy is marked failed and the fix goes through")
	end, err := in.Await(ctx, sc.Namespace, scenario.Release, "TidemarkReleaseAbandoned", "resolved")
	if err != nil {
		return err
	}
	s.step("", "%s is told that it is over", end.To)
	j.add(end.To == "ann" && end.Key == page.Key, "and her page ends")
	return nil
}

// guardedAndGone has ann deploy under guard, and her machine go. It returns when it is certain at the earliest that the deploy cannot
// come back.
func (s *stage) guardedAndGone(ctx context.Context, sc *scenario.Scene, chart string) (certain time.Time, err error) {
	flags := []string{"--lease-duration", leaseLasts.String(), "--timeout", deployTakes.String(), "--started-by", "ann"}
	deploy, err := sc.GuardCommand(ctx, flags, hanging(chart)...)
	if err != nil {
		return time.Time{}, err
	}
	if err := sc.CutOff(ctx, deploy); err != nil {
		return time.Time{}, err
	}
	if certain, err = sc.DeployEnds(ctx); err != nil {
		return time.Time{}, err
	}
	return certain, s.tellRevisions(ctx, sc, "ann's guarded helm upgrade --wait, and its machine is gone")
}

// fix deploys release 3 under guard, and gives what the guard said about the release.
func (s *stage) fix(ctx context.Context, sc *scenario.Scene, chart string) (refused bool, said string, err error) {
	next, err := sc.GuardCommand(ctx, []string{"--lease-duration", leaseLasts.String(), "--policy", "forward", "--started-by", "bob"},
		"upgrade", scenario.Release, chart, "--wait", "--set", "release=3")
	if err != nil {
		return false, "", err
	}
	out, err := next.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		for _, prefix := range []string{"remark: release", "error: release"} {
			if strings.HasPrefix(line, prefix) {
				_, said, _ = strings.Cut(strings.TrimSpace(line), ": ")
			}
		}
	}
	const refusal = 125
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, said, nil
	case errors.As(err, &exit) && exit.ExitCode() == refusal:
		return true, "refused: " + said, nil
	}
	return false, "", fmt.Errorf("deploy release 3: %w: %s", err, out)
}
