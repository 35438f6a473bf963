package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

func TestNext(t *testing.T) {
	before := digest.OfConfigMap("shop", "pricing", map[string]string{"interval": "10m", "old": "1", "same": "1"}, nil)
	after := digest.OfConfigMap("shop", "pricing", map[string]string{"interval": "2m", "new": "1", "same": "1"}, map[string][]byte{"logo": {1}})
	o := remembered(event{0, before}, event{60, after})
	named := workload.Consumption{Object: used, Env: workload.Keys{Names: []string{"interval", "same"}}}

	for name, tc := range map[string]struct {
		pods []Pod
		want []KeyChange
	}{
		"pods that run what is applied": {pods(2, newPods), []KeyChange{}},
		"pods that read everything into the environment": {
			pods(2, oldPods),
			[]KeyChange{{used, "interval", 2, Changed, ""}, {used, "new", 2, Added, ""}, {used, "old", 2, Removed, ""}},
		},
		"pods that read everything as files": {
			pods(1, oldPods, reading(filesOf(false))),
			[]KeyChange{{used, "interval", 1, Changed, ""}, {used, "logo", 1, Added, ""}, {used, "new", 1, Added, ""}, {used, "old", 1, Removed, ""}},
		},
		"pods that read two keys": {pods(1, oldPods, reading(named)), []KeyChange{{used, "interval", 1, Changed, ""}}},
		"pods of which it is not known": {
			join(pods(1, oldPods, reading(named)), pods(2, 60, unsettled)),
			[]KeyChange{{used, "", 2, Unsure, ""}, {used, "interval", 1, Changed, ""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Next(fleetOf(o, tc.pods))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		rollout Rollout
		want    time.Duration
	}{
		"one pod":                        {Rollout{Replicas: 1, MaxSurge: 1}, 2 * time.Minute},
		"no pods":                        {Rollout{}, 2 * time.Minute},
		"24 pods, a quarter up and down": {Rollout{Replicas: 24, MaxSurge: 6, MaxUnavailable: 6}, 2 * time.Minute},
		"24 pods, two at once":           {Rollout{Replicas: 24, MaxSurge: 1, MaxUnavailable: 1}, 12 * time.Minute},
		"a wave that is not full counts": {Rollout{Replicas: 5, MaxUnavailable: 2}, 3 * time.Minute},
		"one after the other":            {Rollout{Replicas: 5, MinReady: 30 * time.Second}, 7*time.Minute + 30*time.Second},
		"only above the partition":       {Rollout{Replicas: 5, Partition: 2}, 3 * time.Minute},
		"a partition above all":          {Rollout{Replicas: 5, Partition: 9}, 2 * time.Minute},
		"all at once":                    {Rollout{Replicas: 50, MaxUnavailable: 50, MinReady: 5 * time.Minute}, 6 * time.Minute},
		"a controller that gives up early": {
			Rollout{Replicas: 10, MaxSurge: 1, ProgressDeadline: 20 * time.Second}, 200 * time.Second,
		},
		"a controller that gives up late": {Rollout{Replicas: 10, MaxSurge: 1, ProgressDeadline: time.Hour}, 10 * time.Minute},
		"what the workload asks for":      {Rollout{Replicas: 24, Override: time.Second}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Budget(tc.rollout); got != tc.want {
				t.Errorf("Budget(%+v) = %v, want %v", tc.rollout, got, tc.want)
			}
		})
	}
}
