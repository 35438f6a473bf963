package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// at is a moment, in minutes from ten o'clock.
func at(m float64) time.Time { return dawn.Add(time.Duration(m * float64(time.Minute))) }

func interval(value string) digest.Content {
	return digest.OfConfigMap(used.Namespace, used.Name, map[string]string{"interval": value}, nil)
}

var (
	gone     = digest.AbsentIn(workload.ConfigMap, nil)
	wholeEnv = workload.Consumption{Object: used, Env: workload.Keys{All: true}, Required: true}
)

// event is a content that was seen at a moment.
type event struct {
	minute  float64
	content digest.Content
}

// remembered is an object whose contents were seen, and whose last one is applied. Its log is complete until now.
func remembered(events ...event) Object {
	o := Object{Use: wholeEnv, Log: history.Log{Object: used}, LogTo: now}
	for i, e := range events {
		obs := history.Observation{At: at(e.minute), Content: e.content, Lag: time.Second, EveryEvent: true}
		obs.Reads = func(key string) bool { return key == "interval" }
		if e.content.Present {
			obs.UID, obs.ResourceVersion = "u", fmt.Sprint(i)
		}
		o.Log.Observe(obs)
		o.Applied = &e.content
	}
	return o
}

var (
	// now is an hour after the change of the edited object.
	now     = at(120)
	steady  = remembered(event{0, interval("10m")})
	edited  = remembered(event{0, interval("10m")}, event{60, interval("2m")})
	oldPods = 30.0 // when pods that run the old content were created
	newPods = 90.0
)

// pods makes pods of one container that were created at a minute and started two seconds later.
func pods(n int, minute float64, change ...func(*Pod)) []Pod {
	var out []Pod
	for i := range n {
		p := Pod{
			Name: fmt.Sprintf("app-%g-%d", minute, i), Node: "n1", Revision: "r1", Created: at(minute), Phase: "Running", Ready: true,
			NodeReadySince: at(-1000),
			Containers: []Container{{
				Name: "app", Role: workload.RoleMain, Started: at(minute).Add(2 * time.Second),
				Uses: []workload.Consumption{wholeEnv},
			}},
		}
		for _, c := range change {
			c(&p)
		}
		out = append(out, p)
	}
	return out
}

func join(groups ...[]Pod) []Pod {
	var out []Pod
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}

// Changes of pods.
func notStarted(p *Pod)  { p.Containers[0].Started, p.Ready = time.Time{}, false }
func terminating(p *Pod) { p.Terminating = true }
func ofRevision(r string) func(*Pod) {
	return func(p *Pod) { p.Revision = r }
}
func restarted(ended float64) func(*Pod) {
	return func(p *Pod) {
		c := &p.Containers[0]
		c.Restarts, c.PreviousEnded, c.Started = 1, at(ended), at(ended).Add(2*time.Second)
	}
}
func stamped(p *Pod)   { p.Stamp = "v1-new" }
func crashing(p *Pod)  { notStarted(p); p.Waiting = "CrashLoopBackOff" }
func unsettled(p *Pod) { p.Created, p.Containers[0].Started = at(60).Add(-3*time.Second), at(60) }
func nodeAway(p *Pod)  { p.NodeReadySince = time.Time{} }
func rolled(m float64) *stamp.Record {
	return &stamp.Record{Stamp: "v1-new", Last: &stamp.Last{Time: at(m), Action: stamp.WriteStamp, Reason: stamp.ContentChanged}}
}
func accounted(content digest.Content) *stamp.Record {
	r := stamp.Decide(stamp.State{
		Namespace: "shop", Mode: stamp.Roll, Objects: []stamp.Object{{Use: wholeEnv, Applied: content}},
	}).Record
	return &r
}
func wentBackTo(r *stamp.Record) *stamp.Record {
	r.Last.Action, r.Last.Reason = stamp.WriteRecord, stamp.RolledBack
	return r
}
func heldBack(r *stamp.Record) *stamp.Record {
	r = wentBackTo(r)
	r.Objects = map[string]stamp.ObjectRecord{"configmap/pricing": {HeldBack: true}}
	return r
}

// fleetOf is a fleet in mode roll whose rollouts may take two minutes.
func fleetOf(o Object, pods []Pod, change ...func(*Fleet)) Fleet {
	f := Fleet{
		Now: now, Namespace: "shop", Mode: stamp.Roll, Objects: []Object{o}, Pods: pods,
		Installed: true, Budget: 2 * time.Minute, RolloutDone: true,
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

// judged is what the tables expect.
type judged struct {
	Verdict  Verdict
	Since    float64 // minutes; -1 when not known
	Behind   int
	Possibly Verdict
	Reason   string
}

func judge(f Fleet) judged {
	r := Judge(f)
	j := judged{Verdict: r.Verdict, Since: -1, Behind: r.Behind, Possibly: r.Possibly, Reason: r.Reason}
	if !r.Since.IsZero() {
		j.Since = r.Since.Sub(at(0)).Minutes()
	}
	return j
}

// seconds gives a moment in minutes with seconds.
func seconds(m, s float64) float64 { return m + s/60 }

func TestJudge(t *testing.T) {
	live := steady
	live.Live = true
	unread := steady
	unread.Applied, unread.Problem = nil, "secrets are not readable"
	missing := remembered(event{0, interval("10m")}, event{60, gone})
	missingToo := remembered(event{0, interval("10m")}, event{90, gone})
	missingToo.Use.Object.Name, missingToo.Log.Object.Name = "limits", "limits"
	lacking := steady
	lacking.Use.RequiredKeys = []string{"interval", "limit"}
	rollingOn := func(f *Fleet) { f.RolloutDone = false }
	record := func(r *stamp.Record) func(*Fleet) {
		return func(f *Fleet) { f.Record, f.Stamp = r, r.Stamp }
	}
	paused := func(f *Fleet) { f.Paused, f.PausedBy = true, "by ada, for the fair" }

	for name, tc := range map[string]struct {
		fleet Fleet
		want  judged
	}{
		// Waiting
		"a required object is missing": {
			fleetOf(missing, pods(2, oldPods)), judged{Waiting, 60, 2, "", "missing: configmap/pricing"},
		},
		"a required key is missing": {
			fleetOf(lacking, nil), judged{Waiting, -1, 0, "", "missing: key limit of configmap/pricing"},
		},
		"what is missing longest counts": {
			fleetOf(missing, nil, func(f *Fleet) { f.Objects = append(f.Objects, missingToo) }),
			judged{Waiting, 60, 0, "", "missing: configmap/pricing, configmap/limits"},
		},
		"of one that is missing it is not known since when": {
			fleetOf(missing, nil, func(f *Fleet) { f.Objects = append(f.Objects, lacking) }),
			judged{Waiting, -1, 0, "", "missing: configmap/pricing, key limit of configmap/pricing"},
		},
		// nothing to differ
		"no configuration is read": {
			Fleet{Now: now, Pods: pods(2, oldPods, func(p *Pod) { p.Containers[0].Uses = nil })},
			judged{InStep, -1, 0, "", "reads no configuration"},
		},
		"only configuration that is reloaded is read": {
			fleetOf(live, pods(2, oldPods)), judged{InStep, -1, 0, "", "reads only configuration that it reloads by itself"},
		},
		"no pods run": {fleetOf(edited, nil), judged{InStep, -1, 0, "", "no pods run"}},
		"pods that have run to their end are no pods": {
			fleetOf(edited, pods(3, oldPods, func(p *Pod) { p.Phase = "Succeeded" })), judged{InStep, -1, 0, "", "no pods run"},
		},
		// Held
		"paused with pods behind": {
			fleetOf(edited, pods(2, oldPods), paused),
			judged{Held, 60, 2, "", "2 of 2 pods run an earlier version of configmap/pricing; paused by ada, for the fair"},
		},
		"paused with nothing behind is a remark": {
			fleetOf(edited, pods(2, newPods), paused),
			judged{InStep, seconds(90, 2), 0, "", "2 of 2 pods run what is applied; paused by ada, for the fair"},
		},
		"paused where only observed is a remark": {
			fleetOf(edited, pods(2, oldPods), paused, func(f *Fleet) { f.Mode = stamp.Observe }),
			judged{Dormant, 60, 2, "", "2 of 2 pods run an earlier version of configmap/pricing; paused by ada, for the fair"},
		},
		"a rollout is held": {
			fleetOf(edited, pods(2, oldPods), record(&stamp.Record{Hold: &stamp.Hold{Reason: stamp.HoldStorm, Since: at(61)}})),
			judged{Held, 61, 2, "", "a rollout is held: storm; 2 of 2 pods run an earlier version of configmap/pricing"},
		},
		"a rollout is held, and no pods run": {
			fleetOf(edited, nil, record(&stamp.Record{Hold: &stamp.Hold{Reason: stamp.HoldStorm, Since: at(61)}})),
			judged{Held, 61, 0, "", "a rollout is held: storm; no pod runs"},
		},
		"paused with a rollout that is wanted, and no pods run": {
			fleetOf(edited, nil, paused, record(accounted(interval("10m")))),
			judged{Held, 60, 0, "", "a rollout is wanted for configmap/pricing; no pod runs; paused by ada, for the fair"},
		},
		"paused with none that is wanted, and no pods run": {
			fleetOf(edited, nil, paused, record(accounted(interval("2m")))),
			judged{InStep, -1, 0, "", "no pods run; paused by ada, for the fair"},
		},
		"paused with another template than was left, and no pods run": {
			fleetOf(edited, nil, paused, record(accounted(interval("10m"))), func(f *Fleet) { f.Stamp = "v1-other" }),
			judged{InStep, -1, 0, "", "no pods run; paused by ada, for the fair"},
		},
		// RolledBack
		"gone back, with pods that read what is applied": {
			fleetOf(edited, pods(2, newPods), record(heldBack(rolled(80)))),
			judged{RolledBack, 80, 0, "", "the workload went back to an older revision; 2 of 2 pods run what is applied"},
		},
		"gone back to what is applied, or to where it is again": {
			fleetOf(edited, pods(2, newPods), record(wentBackTo(rolled(80)))),
			judged{InStep, seconds(90, 2), 0, "", "the workload went back to an older revision; 2 of 2 pods run what is applied"},
		},
		"gone back, with pods that never ran anything else": {
			fleetOf(edited, pods(2, oldPods), record(heldBack(rolled(80)))),
			judged{RolledBack, 80, 2, "", "the workload went back to an older revision; 2 of 2 pods run an earlier version of configmap/pricing"},
		},
		"gone back, and split by it": {
			fleetOf(edited, join(pods(2, oldPods), pods(1, newPods)), record(heldBack(rolled(80)))),
			judged{Split, 90, 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods runs what is applied"},
		},
		// Rolling
		"a rollout within its budget": {
			fleetOf(edited, join(pods(2, oldPods), pods(1, 119.1, stamped)), record(rolled(119)), rollingOn),
			judged{Rolling, 119, 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods runs what is applied"},
		},
		"a rollout that may take less than any would by itself": {
			fleetOf(edited, join(pods(2, oldPods), pods(1, 119.1, stamped)), record(rolled(119)), rollingOn, func(f *Fleet) { f.Budget = 30 * time.Second }),
			judged{Split, seconds(119, 6), 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods runs what is applied"},
		},
		"a rollout whose first pod does not run yet": {
			fleetOf(edited, join(pods(2, oldPods), pods(1, 119.5, notStarted, stamped, ofRevision("r2"))), record(rolled(119)), rollingOn),
			judged{Rolling, 119, 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods does not run yet"},
		},
		"a rollout that its controller has not begun": {
			fleetOf(edited, pods(2, oldPods), record(rolled(119.9))),
			judged{Rolling, seconds(119, 54), 2, "", "2 of 2 pods run an earlier version of configmap/pricing"},
		},
		"a rollout whose last pods have just started": {
			fleetOf(edited, join(pods(2, 119.1, stamped), pods(1, 119.98, stamped)), record(rolled(119)), rollingOn),
			judged{
				Rolling, 119, 0, "", "2 of 3 pods run what is applied; it is not known what 1 of 3 pods loaded: " +
					"of configmap/pricing in app-119.98-0, what happened after 2026-06-01T12:00:00Z is not known",
			},
		},
		"a rollout whose old pods are on their way out": {
			fleetOf(edited, join(pods(1, oldPods, terminating), pods(2, 119.1, stamped)), record(rolled(119))),
			judged{Rolling, 119, 1, "", "1 of 3 pods runs an earlier version of configmap/pricing; 2 of 3 pods run what is applied"},
		},
		"a rollout that somebody else began": {
			fleetOf(edited, join(pods(2, oldPods), pods(1, 119, ofRevision("r2"))), rollingOn),
			judged{Rolling, 119, 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods runs what is applied"},
		},
		// Split
		"a rollout beyond its budget": {
			fleetOf(edited, join(pods(2, oldPods), pods(1, newPods, stamped)), record(rolled(89)), rollingOn),
			judged{Split, 90, 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods runs what is applied"},
		},
		"a node pool upgrade replaced some pods of a dormant fleet": {
			fleetOf(edited, join(pods(18, oldPods), pods(6, 119.5))),
			judged{Split, 119.5, 18, "", "18 of 24 pods run an earlier version of configmap/pricing; 6 of 24 pods run what is applied"},
		},
		"a container restarted in its pod": {
			fleetOf(edited, join(pods(2, oldPods), pods(1, oldPods, restarted(100)))),
			judged{Split, seconds(100, 2), 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods runs what is applied"},
		},
		"a rollout that got stuck at its first pod": {
			fleetOf(edited, join(pods(2, oldPods), pods(1, newPods, crashing, stamped, ofRevision("r2"))), record(rolled(89)), rollingOn),
			judged{Split, 90, 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods does not run yet (CrashLoopBackOff)"},
		},
		"two old versions": {
			fleetOf(remembered(event{0, interval("10m")}, event{60, interval("2m")}, event{110, interval("1m")}), join(pods(1, oldPods), pods(1, newPods))),
			judged{Split, 90, 2, "", "2 of 2 pods run an earlier version of configmap/pricing"},
		},
		"two versions are known whatever a third pod runs": {
			fleetOf(edited, join(pods(1, oldPods), pods(1, newPods), pods(1, 60, unsettled))),
			judged{
				Split, 60, 1, "", "1 of 3 pods runs an earlier version of configmap/pricing; 1 of 3 pods runs what is applied; " +
					"it is not known what 1 of 3 pods loaded: of configmap/pricing in app-60-0, " +
					"it changed between 2026-06-01T10:59:59Z and 2026-06-01T11:00:00Z, while it may have been read",
			},
		},
		// Dormant
		"nothing restarted since the change": {
			fleetOf(edited, pods(24, oldPods)), judged{Dormant, 60, 24, "", "24 of 24 pods run an earlier version of configmap/pricing"},
		},
		"the change came back and went again": {
			fleetOf(remembered(event{0, interval("10m")}, event{60, interval("2m")}, event{70, interval("10m")}, event{80, interval("2m")}), pods(2, oldPods)),
			judged{Dormant, 80, 2, "", "2 of 2 pods run an earlier version of configmap/pricing"},
		},
		"a workload that does not roll by itself": {
			fleetOf(edited, pods(2, oldPods, stamped), record(rolled(61)), rollingOn, func(f *Fleet) { f.Stuck = "its update strategy is OnDelete" }),
			judged{Dormant, 60, 2, "", "2 of 2 pods run an earlier version of configmap/pricing; its update strategy is OnDelete"},
		},
		"a pod of the same revision does not run yet": {
			fleetOf(edited, join(pods(2, oldPods), pods(1, 119.9, notStarted))),
			judged{Dormant, 60, 2, "", "2 of 3 pods run an earlier version of configmap/pricing; 1 of 3 pods does not run yet"},
		},
		// Unknown
		"pods older than the history": {
			fleetOf(steady, pods(2, -30)),
			judged{Unknown, -1, 0, "", "it is not known what 2 of 2 pods loaded: of configmap/pricing in app--30-0, the history begins at 2026-06-01T10:00:00Z"},
		},
		"one pod behind and another not known": {
			fleetOf(edited, join(pods(1, oldPods), pods(1, 60, unsettled))),
			judged{
				Unknown, -1, 1, "", "1 of 2 pods runs an earlier version of configmap/pricing; it is not known what 1 of 2 pods loaded: " +
					"of configmap/pricing in app-60-0, it changed between 2026-06-01T10:59:59Z and 2026-06-01T11:00:00Z, while it may have been read",
			},
		},
		"one pod in step and another not known": {
			fleetOf(edited, join(pods(1, newPods), pods(1, 60, unsettled))),
			judged{
				Unknown, -1, 0, "", "1 of 2 pods runs what is applied; it is not known what 1 of 2 pods loaded: " +
					"of configmap/pricing in app-60-0, it changed between 2026-06-01T10:59:59Z and 2026-06-01T11:00:00Z, while it may have been read",
			},
		},
		"what is applied could not be read": {
			fleetOf(unread, pods(1, oldPods)),
			judged{Unknown, -1, 0, "", "it is not known what 1 of 1 pod loaded: of configmap/pricing in app-30-0, secrets are not readable"},
		},
		"a restart on a node that was away": {
			fleetOf(edited, pods(1, oldPods, restarted(100), nodeAway)),
			judged{
				Unknown, -1, 0, "", "it is not known what 1 of 1 pod loaded: of configmap/pricing in app-30-0, it changed between " +
					"2026-06-01T10:59:59Z and 2026-06-01T11:00:00Z, while it may have been read; node n1 was not ready all the while",
			},
		},
		"no pod runs yet": {
			fleetOf(edited, pods(2, 119, crashing)), judged{Unknown, -1, 0, "", "no pod runs yet (CrashLoopBackOff)"},
		},
		"an object that only pods of an older revision read": {
			fleetOf(steady, pods(1, oldPods, func(p *Pod) {
				p.Containers[0].Uses = []workload.Consumption{{Object: workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "old"}}}
			})),
			judged{
				Unknown, -1, 0, "", "it is not known what 1 of 1 pod loaded: of configmap/old in app-30-0, " +
					"it is no longer used by the workload's template and was not read",
			},
		},
		// InStep
		"every pod loaded what is applied": {
			fleetOf(edited, join(pods(3, newPods), pods(1, 100))), judged{InStep, seconds(100, 2), 0, "", "4 of 4 pods run what is applied"},
		},
		"the change came back to what the pods loaded": {
			fleetOf(remembered(event{0, interval("10m")}, event{60, interval("2m")}, event{70, interval("10m")}), pods(2, oldPods)),
			judged{InStep, 70, 0, "", "2 of 2 pods run what is applied"},
		},
		"a restart on a node that was away, with nothing changed": {
			fleetOf(steady, pods(1, oldPods, restarted(100), nodeAway)), judged{InStep, seconds(100, 2), 0, "", "1 of 1 pod runs what is applied"},
		},
		"a pod that does not run yet is not behind": {
			fleetOf(edited, join(pods(1, newPods), pods(1, 119.9, notStarted))),
			judged{InStep, seconds(90, 2), 0, "", "1 of 2 pods runs what is applied; 1 of 2 pods does not run yet"},
		},
		"a pod that stopped on its way out is no pod": {
			fleetOf(edited, join(pods(1, newPods), pods(1, oldPods, notStarted, terminating))),
			judged{InStep, seconds(90, 2), 0, "", "1 of 1 pod runs what is applied"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(tc.fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, judge(afterRestart(t, tc.fleet, false))); diff != "" {
				t.Errorf("after a restart of the controller (-want +got):\n%s", diff)
			}
		})
	}
}

// afterRestart is the fleet as a controller knows it that was started again: its history comes from the API, and each object
// was met anew; edited, with metadata that were edited while nobody watched.
func afterRestart(t *testing.T, f Fleet, edited bool) Fleet {
	t.Helper()
	f.Objects = slices.Clone(f.Objects)
	for i := range f.Objects {
		o := &f.Objects[i]
		if len(o.Log.Versions) == 0 || o.Applied == nil {
			continue
		}
		shards, err := history.Encode([]history.Log{o.Log})
		if err != nil {
			t.Fatal(err)
		}
		logs, err := history.Decode(o.Use.Object.Namespace, shards)
		if err != nil || len(logs) != 1 {
			t.Fatalf("read back %d logs, %v", len(logs), err)
		}
		last := logs[0].Newest()
		obs := history.Observation{
			At: last.Seen.Add(30 * time.Minute), Content: *o.Applied, UID: last.UID, ResourceVersion: last.ResourceVersion,
			Lag: time.Second, Unwatched: last.Seen.Add(20 * time.Minute),
		}
		if edited {
			obs.ResourceVersion += "1"
		}
		if obs.Content.Present {
			logs[0].Observe(obs)
		}
		o.Log = logs[0]
	}
	return f
}

// TestSinceWhenSurvivesRestarts edits metadata while no controller runs: the content may have been any for a while then, but
// what pods run has not been the applied one for longer.
func TestSinceWhenSurvivesRestarts(t *testing.T) {
	for name, f := range map[string]Fleet{
		"dormant": fleetOf(edited, pods(2, oldPods)),
		"split":   fleetOf(edited, join(pods(2, oldPods), pods(1, 100))),
		"in-step": fleetOf(edited, pods(2, 100)),
	} {
		t.Run(name, func(t *testing.T) {
			before, after := judge(f), judge(afterRestart(t, f, true))
			if diff := cmp.Diff(before, after); diff != "" || string(after.Verdict) != name || after.Since < 0 {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

func TestJudgeByWriteTimesNeverKnows(t *testing.T) {
	object := func(written float64) Object {
		o := Object{Use: wholeEnv, Applied: steady.Applied}
		if written > 0 {
			o.Written, o.WrittenBy = at(written), "helm"
		}
		return o
	}
	for name, tc := range map[string]struct {
		fleet Fleet
		want  judged
	}{
		"written after the start": {
			fleetOf(object(60), pods(24, oldPods)),
			judged{
				Unknown, -1, 0, Dormant,
				"possibly dormant: configmap/pricing was written by helm at 2026-06-01T11:00:00Z, after the start of 24 of 24 containers",
			},
		},
		"written after the start of some": {
			fleetOf(object(60), join(pods(2, oldPods), pods(1, newPods))),
			judged{
				Unknown, -1, 0, Dormant,
				"possibly dormant: configmap/pricing was written by helm at 2026-06-01T11:00:00Z, after the start of 2 of 3 containers",
			},
		},
		"written before the start": {
			fleetOf(object(20), pods(3, oldPods)),
			judged{
				Unknown, -1, 0, "",
				"it is not known what 3 of 3 pods loaded: of configmap/pricing in app-30-0, no recorded write since the container started",
			},
		},
		"written in the second of the start": {
			fleetOf(object(seconds(30, 2)), pods(1, oldPods)),
			judged{
				Unknown, -1, 0, "",
				"it is not known what 1 of 1 pod loaded: of configmap/pricing in app-30-0, no recorded write since the container started",
			},
		},
		"no write recorded": {
			fleetOf(object(0), pods(1, oldPods)),
			judged{
				Unknown, -1, 0, "",
				"it is not known what 1 of 1 pod loaded: of configmap/pricing in app-30-0, no recorded write since the container started",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(tc.fleet)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if l := Judge(tc.fleet).Pods[0].Containers[0].Loaded[0]; l.Evidence != ByWriteTimes || l.Digest != "" {
				t.Errorf("got %+v", l)
			}
		})
	}
}

func TestPodsStayKnownHoweverOftenWhatNobodyReadsIsEdited(t *testing.T) {
	withComment := func(interval, comment string) digest.Content {
		return digest.OfConfigMap(used.Namespace, used.Name, map[string]string{"interval": interval, "comment": comment}, nil)
	}
	events := []event{{0, withComment("10m", "")}, {60, withComment("2m", "")}}
	for i := range 2 * history.MaxVersions {
		events = append(events, event{61 + float64(i), withComment("2m", fmt.Sprint(i))})
	}
	use := wholeEnv
	use.Env = workload.Keys{Names: []string{"interval"}}
	o := remembered(events...)
	o.Use = use
	f := fleetOf(o, pods(24, oldPods, func(p *Pod) { p.Containers[0].Uses = []workload.Consumption{use} }))
	want := judged{Dormant, 60, 24, "", "24 of 24 pods run an earlier version of configmap/pricing"}
	if diff := cmp.Diff(want, judge(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
