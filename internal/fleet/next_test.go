package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
)

func TestNext(t *testing.T) {
	before := digest.OfConfigMap("shop", "pricing", map[string]string{"interval": "10m", "old": "1", "same": "1"}, nil)
	after := digest.OfConfigMap("shop", "pricing", map[string]string{"interval": "2m", "new": "1", "same": "1"}, map[string][]byte{"logo": {1}})
	o := remembered(event{0, before}, event{60, after})
	o.Log.Values = history.Values{"interval": {"2m", "10m"}, "old": nil, "new": {"1"}}
	is := func(text string) Value { return Value{There: true, Text: text, Kept: true} }
	notKept, none := Value{There: true}, Value{}
	interval := KeyChange{Object: used, Key: "interval", Change: Changed, From: is("10m"), To: is("2m")}
	old := KeyChange{Object: used, Key: "old", Change: Removed, From: notKept, To: none}
	added := KeyChange{Object: used, Key: "new", Change: Added, From: none, To: is("1")}
	logo := KeyChange{Object: used, Key: "logo", Change: Added, From: none, To: notKept}
	by := func(pods int, c KeyChange) KeyChange { c.Pods = pods; return c }
	named := workload.Consumption{Object: used, Env: workload.Keys{Names: []string{"interval", "same"}}}

	for name, tc := range map[string]struct {
		pods []Pod
		want []KeyChange
	}{
		"pods that run what is applied": {pods(2, newPods), []KeyChange{}},
		"pods that read everything into the environment": {
			pods(2, oldPods),
			[]KeyChange{by(2, interval), by(2, added), by(2, old)},
		},
		"pods that read everything as files": {
			pods(1, oldPods, reading(filesOf(false))),
			[]KeyChange{by(1, interval), by(1, logo), by(1, added), by(1, old)},
		},
		"pods that read two keys": {pods(1, oldPods, reading(named)), []KeyChange{by(1, interval)}},
		"pods of which it is not known": {
			join(pods(1, oldPods, reading(named)), pods(2, 60, unsettled)),
			[]KeyChange{
				{Object: used, Pods: 2, Change: Unsure, Why: "it changed between 2026-06-01T10:59:59Z and 2026-06-01T11:00:00Z, while it may have been read"},
				by(1, interval),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Next(fleetOf(o, tc.pods))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStarts(t *testing.T) {
	content := func(data map[string]string) digest.Content { return digest.OfConfigMap("shop", "pricing", data, nil) }
	first, second := content(map[string]string{"interval": "10m"}), content(map[string]string{"interval": "5m"})
	third := content(map[string]string{"interval": "2m"})
	o := remembered(event{0, first}, event{40, second}, event{60, third})
	o.Log.Values = history.Values{"interval": {"2m", "5m", "10m"}}
	is := func(text string) Value { return Value{There: true, Text: text, Kept: true} }
	from := func(pods int, text string) KeyChange {
		return KeyChange{Object: used, Key: "interval", Pods: pods, Change: Changed, From: is(text), To: is("2m")}
	}
	needed := wholeEnv
	needed.RequiredKeys = []string{"interval"}
	removed := remembered(event{0, first}, event{60, content(nil)})
	removed.Log.Values = history.Values{"interval": {"10m"}}
	gone := from(2, "10m")
	gone.Change, gone.To, gone.Blocks = Removed, Value{}, true

	for name, tc := range map[string]struct {
		fleet Fleet
		want  []Start
	}{
		"revisions whose pods read what is applied when they start": {
			fleetOf(o, join(pods(2, oldPods, ofRevision("r1")), pods(1, 50, ofRevision("r1")), pods(3, newPods, ofRevision("r2")))),
			[]Start{{"r1", 3, []KeyChange{from(2, "10m"), from(1, "5m")}}, {"r2", 3, []KeyChange{}}},
		},
		"an old revision that is pinned to what its pods run with": {
			pinnedTo(newCopy, edited, join(pods(2, oldPods, ofRevision("r1"), to(oldCopy)), pods(1, newPods, ofRevision("r2"), to(newCopy), stamped))),
			[]Start{{"r1", 2, []KeyChange{}}, {"r2", 1, []KeyChange{}}},
		},
		"an old revision that is not pinned and requires what was removed": {
			fleetOf(removed, join(pods(2, oldPods, ofRevision("r1"), reading(needed)), pods(1, newPods, ofRevision("r2"), stamped))),
			[]Start{{"r1", 2, []KeyChange{gone}}, {"r2", 1, []KeyChange{}}},
		},
		"pods that do not run yet run with nothing": {fleetOf(o, pods(2, newPods, notStarted)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Starts(tc.fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheValuesOfCopiesAreThoseThatWereRead(t *testing.T) {
	f := pinnedTo(newCopy, edited, pods(1, oldPods, to(oldCopy)))
	before, after := interval("10m"), interval("2m")
	f.Objects[0].Values = map[digest.Sum]string{before.Data["interval"]: "10m", after.Data["interval"]: "2m"}
	want := []KeyChange{{
		Object: used, Key: "interval", Pods: 1, Change: Changed, KeptIn: oldCopy,
		From: Value{There: true, Text: "10m", Kept: true}, To: Value{There: true, Text: "2m", Kept: true},
	}}
	if diff := cmp.Diff(want, Next(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
