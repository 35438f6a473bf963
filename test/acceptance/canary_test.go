package acceptance

import (
	"fmt"
	"testing"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client"
	strict "tidemark.dev/tidemark/lab/sample"
	"tidemark.dev/tidemark/test/scenario"
)

const checkout = "rollout/checkout"

// openCanary sets the scene of the incident canary, in a namespace with the mode given.
func openCanary(t *testing.T, namespace, mode string) (*rolloutScene, *scenario.Canary) {
	t.Helper()
	s := openRolloutsIn(t, namespace, mode)
	manifest, err := scenario.Manifest("canary")
	s.must(err)
	s.apply(manifest)
	c, err := scenario.NewCanary(s.Scene)
	s.must(err)
	s.must(c.Begins(t.Context(), mode == v1.ModePin))
	return s, c
}

func TestCanaryWithoutTidemarkOldPodsFailWithTheNewConfiguration(t *testing.T) {
	turn(t)
	s, c := openCanary(t, "canary-without", "")
	s.must(c.Release(t.Context()))

	s.must(c.Peak(t.Context()))

	s.eventually("four old pods that do not come up", func() error {
		refused, err := s.Refused(t.Context())
		if err == nil && len(refused) != 4 {
			err = fmt.Errorf("%d refused their configuration", len(refused))
		}
		return err
	})
	pod, err := c.Crash(t.Context())
	s.must(err)
	again, err := c.Again(t.Context(), pod)
	s.must(err)
	if again.ExitCode == nil || *again.ExitCode != strict.ExitConfig {
		s.eventually("the pod that ran to fail too", func() error {
			refused, err := s.Refused(t.Context())
			if err == nil && refused[pod] == "" {
				err = fmt.Errorf("only %d do", len(refused))
			}
			return err
		})
	}
	s.loads(scenario.Released, map[string]int{"1 with 3": 3, "2 without": 2})
}

func TestCanaryInModePinOldPodsReadTheirOwnConfiguration(t *testing.T) {
	turn(t)
	s, c := openCanary(t, "canary-pin", v1.ModePin)
	state, err := s.rollouts.State(t.Context(), "checkout")
	s.must(err)
	first := state.Revision
	s.must(c.Release(t.Context()))

	s.must(c.Peak(t.Context()))
	s.loads(scenario.Released, map[string]int{"1 with 3": 8, "2 without": 2})
	pod, err := c.Crash(t.Context())
	s.must(err)
	again, err := c.Again(t.Context(), pod)
	s.must(err)
	if got := scenario.Released(again); got != "1 with 3" {
		t.Errorf("the pod that crashed started again as %s", got)
	}
	s.loads(scenario.Released, map[string]int{"1 with 3": 8, "2 without": 2})

	// Forgotten: that is said, by its age, until somebody goes on or turns back.
	s.kubectl("annotate", checkout, v1.AnnotationUnfinishedAfter+"=1s")
	status := s.verdict(checkout, "unfinished")
	if u := status.Unfinished; u == nil || u.Step != 2 || u.Steps != 2 || u.Weight == nil || *u.Weight != 20 || u.Pods != 2 || u.AllPods != 10 || u.Since.IsZero() {
		t.Errorf("unfinished is %+v, want 2 of 10 pods at step 2 of 2, weight 20", u)
	}
	s.tells(checkout, "RolloutUnfinished", "CanaryPauseStep")
	series := `tidemark_unfinished_rollout_seconds{kind="Rollout",name="checkout",namespace="canary-pin"}`
	s.eventually("its age as a metric", func() error {
		age, found, err := s.controller.Metric(t.Context(), series)
		if err == nil && (!found || age < 1) {
			err = fmt.Errorf("it is %v, found %v", age, found)
		}
		return err
	})

	s.must(s.rollouts.Abort(t.Context(), "checkout"))
	s.loads(scenario.Released, map[string]int{"1 with 3": 10})
	s.must(s.rollouts.Retry(t.Context(), "checkout"))
	s.loads(scenario.Released, map[string]int{"1 with 3": 8, "2 without": 2})

	// Promoted after the stated time, and brought back by an undo: it stays so.
	s.kubectl("annotate", checkout, v1.AnnotationPromoteAfter+"=1s")
	s.loads(scenario.Released, map[string]int{"2 without": 10})
	s.tells(checkout, "CanaryPromoted", "1s")
	s.must(s.rollouts.Undo(t.Context(), "checkout", first))
	s.loads(scenario.Released, map[string]int{"1 with 3": 10})
	s.eventually("the Rollout to be done", func() error {
		return s.rollouts.InPhase(t.Context(), "checkout", client.RolloutHealthy)
	})
	s.caughtUp()
	s.verdict(checkout, "rolled-back")
	s.ownConfiguration("checkout-config", "FEE")
	if _, found, err := s.controller.Metric(t.Context(), series); err != nil || found {
		t.Errorf("the metric is still there: %v, %v", found, err)
	}
}
