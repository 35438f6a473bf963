package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
)

func TestPaceOf(t *testing.T) {
	for name, tc := range map[string]struct {
		manifest string
		want     fleet.Rollout
	}{
		"a Deployment by default": {
			"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 10, minReadySeconds: 5, progressDeadlineSeconds: 600}",
			fleet.Rollout{Replicas: 10, MaxSurge: 3, MaxUnavailable: 2, MinReady: 5 * time.Second, ProgressDeadline: 10 * time.Minute}},
		"a Deployment with numbers": {
			"apiVersion: apps/v1\nkind: Deployment\nspec: {strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}",
			fleet.Rollout{Replicas: 1, MaxUnavailable: 1}},
		"a Deployment that is recreated": {
			"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 4, strategy: {type: Recreate}}",
			fleet.Rollout{Replicas: 4, MaxUnavailable: 4}},
		"a StatefulSet with a partition": {
			"apiVersion: apps/v1\nkind: StatefulSet\nspec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 3}}}",
			fleet.Rollout{Replicas: 5, Partition: 3, MaxUnavailable: 1}},
		"a DaemonSet on ten nodes": {
			"apiVersion: apps/v1\nkind: DaemonSet\nspec: {updateStrategy: {rollingUpdate: {maxUnavailable: 15%}}}\nstatus: {desiredNumberScheduled: 10}",
			fleet.Rollout{Replicas: 10, MaxUnavailable: 2}},
		"a CronJob": {"apiVersion: batch/v1\nkind: CronJob", fleet.Rollout{}},
		"another kind": {
			"apiVersion: example.org/v1\nkind: Machines\nspec: {replicas: 3, minReadySeconds: 2}",
			fleet.Rollout{Replicas: 3, MinReady: 2 * time.Second}},
		"a blue-green Rollout": {
			"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nspec: {replicas: 3, minReadySeconds: 2, strategy: {blueGreen: {}}}",
			fleet.Rollout{Replicas: 3, MaxSurge: 3, MinReady: 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PaceOf(workloadFrom(t, tc.manifest))); diff != "" {
				t.Errorf("pace (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBudgetOf(t *testing.T) {
	pace := fleet.Rollout{Replicas: 1}
	budget := func(value string) map[string]string { return map[string]string{v1.AnnotationRolloutBudget: value} }
	if got, err := BudgetOf(pace, budget("17m"), budget("1h")); got != 17*time.Minute || err != nil {
		t.Errorf("the workload's own: %v, %v", got, err)
	}
	if got, err := BudgetOf(pace, nil, budget("1h")); got != time.Hour || err != nil {
		t.Errorf("the template's: %v, %v", got, err)
	}
	for _, value := range []string{"soon", "-5m", "10"} {
		if got, err := BudgetOf(pace, budget(value)); got != fleet.Budget(pace) || err == nil {
			t.Errorf("%q: %v, %v, want the pace's budget and an error", value, got, err)
		}
	}
}
