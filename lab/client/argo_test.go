package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
)

// TestArgoRollouts runs Argo Rollouts' own controller on a lab, with the scenarios side by side.
func TestArgoRollouts(t *testing.T) {
	lab := labtest.Start(t, client.Options{Nodes: 2})
	argo := labtest.StartArgoRollouts(t, lab)
	scenarios := map[string]func(*rolloutSite){
		"a canary pauses, is aborted, retried, promoted and undone": canary,
		"blue-green waits for its promotion":                        blueGreen,
		"a Rollout that refers to a Deployment follows it":          workloadRef,
	}
	t.Run("scenarios", func(t *testing.T) {
		for number, name := range slices.Sorted(maps.Keys(scenarios)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenarios[name](newRolloutSite(t, lab, fmt.Sprintf("rollout-%d", number)))
			})
		}
	})
	if _, err := lab.StartArgoRollouts(t.Context()); err == nil {
		t.Error("two controllers run at a time")
	}
	if err := argo.Stop(); err != nil {
		t.Error(err)
	}
	argo = labtest.StartArgoRollouts(t, lab)
	if err := syscall.Kill(lab.Status().PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-argo.Ended():
	case <-time.After(labtest.Patience):
		t.Error("the controller outlives a lab that ends by itself")
	}
}

// rolloutSite is a site whose workload is the Rollout web.
type rolloutSite struct {
	*site
	rollouts *client.Rollouts
}

func newRolloutSite(t *testing.T, lab *client.Lab, namespace string) *rolloutSite {
	t.Helper()
	rollouts, err := lab.Rollouts(namespace)
	if err != nil {
		t.Fatal(err)
	}
	return &rolloutSite{site: newSite(t, lab, namespace), rollouts: rollouts}
}

// is waits for a phase and returns the state.
func (s *rolloutSite) is(phase client.RolloutPhase) client.RolloutState {
	s.Helper()
	var state client.RolloutState
	s.eventually("rollout web to be "+string(phase), func() error {
		if err := s.rollouts.InPhase(s.Context(), "web", phase); err != nil {
			return err
		}
		var err error
		state, err = s.rollouts.State(s.Context(), "web")
		return err
	})
	return state
}

func (s *rolloutSite) did(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// change makes a new revision of what has the template.
func (s *rolloutSite) change(workload, value string) {
	s.Helper()
	s.kubectl("patch", workload, "--type=merge", "--patch", fmt.Sprintf(`{"spec": {"template": {"metadata": {"annotations": {"change": %q}}}}}`, value))
}

// sizes waits until the ReplicaSets have as many ready pods as given, in the order of revisions, and no others.
func (s *rolloutSite) sizes(want ...int32) {
	s.Helper()
	s.eventually("the ReplicaSets", func() error {
		sets, err := s.rollouts.ReplicaSets(s.Context(), "web")
		if err != nil {
			return err
		}
		var got, ready []int32
		for _, set := range sets {
			got, ready = append(got, set.Status.Replicas), append(ready, set.Status.ReadyReplicas)
		}
		return errors.Join(labtest.Equal("pods", fmt.Sprint(got), fmt.Sprint(want)),
			labtest.Equal("ready", fmt.Sprint(ready), fmt.Sprint(want)))
	})
}

// list makes several values one, to be compared.
func list(values ...any) string { return fmt.Sprintf("%v", values) }

func (s *rolloutSite) pausedFor(state client.RolloutState, reason string) {
	s.Helper()
	if len(state.Pauses) != 1 || state.Pauses[0].Reason != reason || state.Pauses[0].StartTime.IsZero() {
		s.Errorf("pauses are %v, want one for %s", state.Pauses, reason)
	}
}

func canary(s *rolloutSite) {
	s.apply(canaryRollout)
	first := s.is(client.RolloutHealthy)
	s.equal("stable", first.Stable, first.Current)
	s.sizes(4)

	s.change("rollout/web", "2")
	paused := s.is(client.RolloutPaused)
	s.pausedFor(paused, client.PauseCanaryStep)
	s.equal("step, weight, revision", list(paused.Step, paused.Steps, paused.Weight, paused.Revision), list(1, 2, 25, 2))
	s.equal("stable", paused.Stable, first.Current)
	s.sizes(3, 1)

	s.did(s.rollouts.Abort(s.Context(), "web"))
	aborted := s.is(client.RolloutDegraded)
	s.equal("after the abort", list(aborted.Aborted, aborted.Step, aborted.Weight, aborted.Revision), list(true, 0, 0, 2))
	s.equal("current", aborted.Current, paused.Current)
	s.equal("template", s.kubectl("get", "rollout", "web", "-o", "jsonpath={.spec.template.metadata.annotations.change}"), "2")
	s.sizes(4, 0)

	s.did(s.rollouts.Retry(s.Context(), "web"))
	s.pausedFor(s.is(client.RolloutPaused), client.PauseCanaryStep)
	s.sizes(3, 1)

	s.did(s.rollouts.Promote(s.Context(), "web"))
	promoted := s.is(client.RolloutHealthy)
	s.equal("stable", promoted.Stable, paused.Current)
	s.equal("step, weight", list(promoted.Step, promoted.Weight), list(2, 100))
	s.sizes(0, 4)

	s.did(s.rollouts.Undo(s.Context(), "web", 0))
	undone := s.is(client.RolloutPaused)
	s.equal("current, revision", list(undone.Current, undone.Revision), list(first.Current, 3))
	s.sizes(3, 1) // the first ReplicaSet has become the newest revision
	s.did(s.rollouts.PromoteFull(s.Context(), "web"))
	s.equal("stable", s.is(client.RolloutHealthy).Stable, first.Current)
	s.sizes(0, 4)
}

func blueGreen(s *rolloutSite) {
	s.apply(blueGreenRollout)
	first := s.is(client.RolloutHealthy)
	s.equal("active", first.Active, first.Current)

	s.change("rollout/web", "2")
	paused := s.is(client.RolloutPaused)
	s.pausedFor(paused, client.PauseBlueGreen)
	s.equal("active, preview", list(paused.Active, paused.Preview), list(first.Current, paused.Current))
	s.equal("the service selects", s.selected("active"), first.Current)
	s.sizes(2, 2)

	s.did(s.rollouts.Promote(s.Context(), "web"))
	promoted := s.is(client.RolloutHealthy)
	s.equal("active, stable", list(promoted.Active, promoted.Stable), list(paused.Current, paused.Current))
	s.equal("the service selects", s.selected("active"), paused.Current)
	// The old pods stay for a while, in case somebody turns back.
	s.eventually("the old ReplicaSet to have a deadline", func() error {
		sets, err := s.rollouts.ReplicaSets(s.Context(), "web")
		if err == nil && sets[0].Annotations["scale-down-deadline"] == "" {
			err = fmt.Errorf("annotations are %v", sets[0].Annotations)
		}
		return err
	})
}

// selected returns the hash that a service selects pods by.
func (s *rolloutSite) selected(service string) string {
	s.Helper()
	var selector map[string]string
	s.did(json.Unmarshal([]byte(s.kubectl("get", "service", service, "-o", "jsonpath={.spec.selector}")), &selector))
	return selector[client.LabelRolloutHash]
}

func workloadRef(s *rolloutSite) {
	s.apply(referredDeployment)
	s.apply(referringRollout)
	first := s.is(client.RolloutHealthy)
	s.sizes(2)

	s.did(s.rollouts.Pause(s.Context(), "web"))
	if state := s.is(client.RolloutPaused); !state.PausedBySpec || len(state.Pauses) > 0 {
		s.Errorf("a person's pause is %+v", state)
	}
	s.did(s.rollouts.Promote(s.Context(), "web"))
	s.is(client.RolloutHealthy)

	s.change("deployment/web", "2")
	s.eventually("the new template to be taken over", func() error {
		state, err := s.rollouts.State(s.Context(), "web")
		if err == nil && state.Current == first.Current {
			err = errors.New("not yet")
		}
		return err
	})
	s.pausedFor(s.is(client.RolloutPaused), client.PauseCanaryStep)
	s.equal("template of the Rollout", s.kubectl("get", "rollout", "web", "-o", "jsonpath={.spec.template}"), "")
	s.did(s.rollouts.Promote(s.Context(), "web"))
	s.is(client.RolloutHealthy)
	s.sizes(0, 2)

	s.did(s.rollouts.Undo(s.Context(), "web", 1))
	s.equal("template of the Deployment", s.kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.metadata.annotations}"), "")
	s.eventually("the old template to be taken over", func() error {
		state, err := s.rollouts.State(s.Context(), "web")
		return errors.Join(err, labtest.Equal("current", state.Current, first.Current))
	})
}
