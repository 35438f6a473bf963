package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/sample"
	"tidemark.dev/tidemark/test/scenario"
)

// dormant: a bad edit lies unread until the nodes are replaced.
var dormant = incident{id: "dormant", scenes: []scene{
	{title: "without Tidemark", namespace: "dormant-without", play: dormantWithout},
	{title: "with Tidemark in mode roll", namespace: "dormant-roll", mode: v1.ModeRoll, play: dormantRoll},
}}

const (
	gateway    = "deployment/gateway"
	replicas   = 8
	goodConfig = "upstream=http://catalog:8080\ntimeout=5s\n"
	badConfig  = "upstream=http://catalog:8080\ntimeouts=5s\n"
	edit       = "ConfigMap gateway-config: timeout=5s → timeouts=5s"
)

func dormantWithout(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	if err := s.dormantBegins(ctx, sc); err != nil {
		return err
	}
	if err := sc.Set(ctx, "gateway-config", "gateway.conf", badConfig); err != nil {
		return err
	}
	if err := sc.AwaitReady(ctx, "gateway", replicas); err != nil {
		return err
	}
	refused, err := sc.Refused(ctx)
	if err != nil {
		return err
	}
	s.step(edit, "%d of %d pods ready: nothing notices", replicas, replicas)
	j.add(len(refused) == 0, "without, %d of %d pods were ready after the edit", replicas, replicas)
	var ready int32
	for _, node := range s.lab.Nodes() {
		if err := sc.Drain(ctx, node); err != nil {
			return err
		}
		if ready, err = sc.Ready(ctx, "gateway"); err != nil {
			return err
		}
		s.step(node+" upgraded", "%d of %d pods ready", ready, replicas)
	}
	// The last pods that were moved may still be counted as ready for a moment.
	err = scenario.Await(ctx, "the outage", func() error {
		if ready, err = sc.Ready(ctx, "gateway"); err == nil && ready > 0 {
			err = fmt.Errorf("%d pods are ready", ready)
		}
		return err
	})
	if err != nil {
		return err
	}
	if refused, err = awaitRefusals(ctx, sc, replicas); err != nil {
		return err
	}
	s.step(fmt.Sprintf("%d pods exit with code %d, again and again", len(refused), sample.ExitConfig), "%s", oneOf(refused))
	j.add(ready == 0 && len(refused) == replicas, "%d once the nodes were upgraded", ready)
	return nil
}

// dormantRoll judges how many pods are ready while the bad file is applied. It does not once the file is put right: the pod
// that fails reads the good one when it starts again, becomes ready under the stamp that is just being replaced, and the
// Deployment's controller, which counts by figures a moment old, may then take down an old pod that it wants back.
func dormantRoll(ctx context.Context, s *stage, sc *scenario.Scene, j *judgement) error {
	if err := s.dormantBegins(ctx, sc); err != nil {
		return err
	}
	low, err := sc.WatchReady(ctx, "gateway")
	if err != nil {
		return err
	}
	if err := sc.Set(ctx, "gateway-config", "gateway.conf", badConfig); err != nil {
		return err
	}
	s.step(edit, "Tidemark writes the stamp")
	refused, err := awaitRefusals(ctx, sc, 1)
	if err != nil {
		return err
	}
	if err := awaitReason(ctx, sc, "CrashLoopBackOff"); err != nil {
		return err
	}
	if err := sc.AwaitReady(ctx, "gateway", replicas); err != nil {
		return err
	}
	s.step(fmt.Sprintf("%d new pod exits with code %d", len(refused), sample.ExitConfig), "%s", oneOf(refused))
	s.step("the old pods serve on", "%d of %d ready", replicas, replicas)
	verdict, _, err := s.status(ctx, sc, gateway)
	if err != nil {
		return err
	}
	lowest := low.Stop()
	j.add(len(refused) == 1 && (verdict == "rolling" || verdict == "split"), "in mode roll the edit failed in %d pod at once (%s)", len(refused), verdict)
	j.add(lowest == replicas, "with never fewer than %d of %d pods ready", lowest, replicas)
	if err := sc.Set(ctx, "gateway-config", "gateway.conf", goodConfig); err != nil {
		return err
	}
	if _, err := awaitRefusals(ctx, sc, 0); err != nil {
		return err
	}
	if err := sc.RolledOut(ctx, gateway); err != nil {
		return err
	}
	if err := awaitVerdict(ctx, sc, gateway, "in-step"); err != nil {
		return err
	}
	if err := sc.AwaitReady(ctx, "gateway", replicas); err != nil {
		return err
	}
	s.step("ConfigMap gateway-config put right", "rolled out: %d of %d pods ready", replicas, replicas)
	verdict, _, err = s.status(ctx, sc, gateway)
	j.add(verdict == "in-step", "%s with %d ready once put right", verdict, replicas)
	return err
}

// dormantBegins waits for the service as it was.
func (s *stage) dormantBegins(ctx context.Context, sc *scenario.Scene) error {
	if err := sc.RolledOut(ctx, gateway); err != nil {
		return err
	}
	if err := s.letAge(ctx, sc, filesApart); err != nil {
		return err
	}
	if err := sc.AwaitReady(ctx, "gateway", replicas); err != nil {
		return err
	}
	s.step(gateway+" runs on four nodes", "%d of %d pods ready", replicas, replicas)
	return nil
}

// awaitRefusals waits until so many pods have refused their configuration more than once, and returns their complaints.
func awaitRefusals(ctx context.Context, sc *scenario.Scene, want int) (map[string]string, error) {
	var refused map[string]string
	err := scenario.Await(ctx, fmt.Sprintf("%d pods to fail", want), func() error {
		var err error
		if refused, err = sc.Refused(ctx); err == nil && len(refused) != want {
			err = fmt.Errorf("%d failed", len(refused))
		}
		return err
	})
	return refused, err
}

// awaitReason waits until status gives a reason that contains the text.
func awaitReason(ctx context.Context, sc *scenario.Scene, text string) error {
	return scenario.Await(ctx, "status to say "+text, func() error {
		fleet, err := sc.Status(ctx, gateway)
		if err == nil && !strings.Contains(fleet.Reason, text) {
			err = errors.New(fleet.Verdict + ": " + fleet.Reason)
		}
		return err
	})
}

// oneOf is the first complaint by the pods' names.
func oneOf(complaints map[string]string) string {
	for _, pod := range slices.Sorted(maps.Keys(complaints)) {
		return complaints[pod]
	}
	return ""
}
