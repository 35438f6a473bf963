package fleet

import (
	"strings"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// says makes the program of the first container say that it loaded values into its environment, two seconds after its start.
func says(values map[string]string, change ...func(*ReportedObject)) func(*Pod) {
	return func(p *Pod) {
		c := &p.Containers[0]
		o := ReportedObject{Object: used, LoadedAt: c.Started.Add(2 * time.Second), Env: told(values)}
		for _, f := range change {
			f(&o)
		}
		c.Report = &Report{At: now, Objects: []ReportedObject{o}}
	}
}

func told(values map[string]string) map[string]ReportedKey {
	out := map[string]ReportedKey{}
	for key, sum := range digest.OfConfigMap(used.Namespace, used.Name, values, nil).Data {
		out[key] = ReportedKey{There: true, Sum: sum}
	}
	return out
}

func TestEvidenceOfReports(t *testing.T) {
	value := func(v string) map[string]string { return map[string]string{"interval": v} }
	two := func(minute float64, interval, mode string) event {
		return event{minute, digest.OfConfigMap(used.Namespace, used.Name, map[string]string{"interval": interval, "mode": mode}, nil)}
	}
	both := remembered(two(0, "10m", "fast"), two(60, "2m", "fast"))
	both.Use.Env = workload.Keys{Names: []string{"interval", "mode"}}
	whole := remembered(two(0, "10m", "fast"), two(60, "2m", "fast"))
	never := edited
	never.Log.Versions = nil
	early := func(o *ReportedObject) { o.LoadedAt = o.LoadedAt.Add(-time.Hour) }
	late := func(o *ReportedObject) { o.LoadedAt = now.Add(time.Hour) }
	failed := func(o *ReportedObject) { o.LastFailed = true }
	partly := func(o *ReportedObject) {
		k := o.Env["interval"]
		k.Partly = true
		o.Env["interval"] = k
	}
	other := func(o *ReportedObject) { o.Object.Name = "other" }
	inFiles := func(v string) func(*ReportedObject) { return func(o *ReportedObject) { o.Files = told(value(v)) } }
	bothWays := wholeEnv
	bothWays.Env, bothWays.Files = workload.Keys{Names: []string{"interval"}}, workload.Keys{Names: []string{"interval"}}

	for name, tc := range map[string]struct {
		object        Object
		pod           []Pod
		evidence      Evidence
		behind        bool
		why           string
		contradiction string
	}{
		"the same as its start tells": {
			edited, pods(1, oldPods, says(value("10m"))), Reported, true, "the program says that it loaded it at 2026-06-01T10:30:04Z", "",
		},
		"where its start does not tell": {edited, pods(1, 60, unsettled, says(value("2m"))), Reported, false, "the program says", ""},
		"where nobody kept a history":   {never, pods(1, oldPods, says(value("10m"))), ByWriteTimes, false, "no recorded write", ""},
		"where nobody kept a history, of what is applied": {
			never, pods(1, newPods, says(value("2m"))), Reported, false, "the program says", "",
		},
		"otherwise than its start tells": {
			edited, pods(1, oldPods, says(value("2m"))), Reported, false, "the program says", "its start tells that it loaded ",
		},
		"what the history does not have, of an object read whole": {
			edited, pods(1, oldPods, says(value("7m"))), NotKnown, false,
			"the program says that it loaded another value of interval, and does not tell of every key", "its start tells that it loaded ",
		},
		"a part of what is read, the same": {
			both, pods(1, oldPods, reading(both.Use), says(value("10m"))), Inferred, true, "; the program says the same of 1 keys", "",
		},
		"a part of what is read, otherwise": {
			both, pods(1, oldPods, reading(both.Use), says(value("2m"))), NotKnown, false, "does not tell of every key", "its start tells",
		},
		"all but a key that is overridden, of an object read whole, the same": {
			whole, pods(1, oldPods, says(value("10m"))), Inferred, true, "; the program says the same of 1 keys", "",
		},
		"all but a key that is overridden, of an object read whole, otherwise": {
			whole, pods(1, oldPods, says(value("2m"))), NotKnown, false, "does not tell of every key", "its start tells",
		},
		"all keys that are named, which the history does not have": {
			both, pods(1, oldPods, reading(both.Use), says(map[string]string{"interval": "7m", "mode": "slow"})), Reported, true,
			"the program says", "its start tells",
		},
		"a key of which lines are left out": {edited, pods(1, oldPods, says(value("7m"), partly)), Inferred, true, "read between", ""},
		"of an earlier run": {
			edited, pods(1, oldPods, says(value("2m"), early)), Inferred, true,
			"; what the program says is not heeded: it loaded at 2026-06-01T09:30:04Z, before the container started", "",
		},
		"of the future":        {edited, pods(1, oldPods, says(value("2m"), late)), Inferred, true, "which is in the future", ""},
		"of a load that stays": {edited, pods(1, oldPods, says(value("10m"), failed)), Reported, true, ", and that a later load failed", ""},
		"of another object":    {edited, pods(1, oldPods, says(value("2m"), other)), Inferred, true, "read between", ""},
		"of no key that is there": {
			edited, pods(1, oldPods, says(nil, func(o *ReportedObject) { o.Env = map[string]ReportedKey{"x": {}} })), Inferred, true, "read between", "",
		},
		"of one key read at two times": {
			edited, pods(1, oldPods, reading(bothWays), says(value("10m"), inFiles("2m"))), NotKnown, false, "another value of interval", "its start tells",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleetOf(tc.object, tc.pod)
			r := Judge(f)
			got := r.Pods[0].Containers[0].Loaded[0]
			if got.Evidence != tc.evidence || got.Behind() != tc.behind || !strings.Contains(got.Why, tc.why) {
				t.Errorf("got %+v", got)
			}
			if tc.contradiction == "" && got.Contradiction != "" || !strings.HasPrefix(got.Contradiction, tc.contradiction) {
				t.Errorf("contradiction %q, want %q", got.Contradiction, tc.contradiction)
			}
			if said := len(r.Said) == 1 && strings.Contains(r.Reason, r.Said[0]); said != (tc.contradiction != "") {
				t.Errorf("said %q in %q", r.Said, r.Reason)
			}
		})
	}
}

func TestAReportDoesNotOverrideAPin(t *testing.T) {
	f := pinnedTo(newCopy, edited, pods(1, oldPods, to(oldCopy), says(map[string]string{"interval": "2m"})))
	r := Judge(f)
	got := r.Pods[0].Containers[0].Loaded[0]
	if got.Evidence != Pinned || !got.Behind() || got.Contradiction != "the program says that it loaded another value of interval" {
		t.Errorf("got %+v", got)
	}
	if want := "1 of 1 pod reports otherwise than other evidence tells: of configmap/pricing in app-30-0, " + got.Contradiction; !strings.Contains(r.Reason, want) {
		t.Errorf("reason %q, want %q in it", r.Reason, want)
	}
}

func TestAnAnswerThatCannotBeUsedIsSaidAndNothingElse(t *testing.T) {
	f := fleetOf(edited, join(pods(1, oldPods, func(p *Pod) { p.ReportProblem = "port 8080 answers with HTTP status 500" }), pods(1, 40)))
	got, without := Judge(f), Judge(fleetOf(edited, join(pods(1, oldPods), pods(1, 40))))
	if got.Verdict != without.Verdict || got.Behind != 2 {
		t.Errorf("got %s, %d behind", got.Verdict, got.Behind)
	}
	if want := "what 1 of 2 pods reports cannot be used: of app-30-0, port 8080 answers with HTTP status 500"; !strings.HasSuffix(got.Reason, want) {
		t.Errorf("reason %q, want %q", got.Reason, want)
	}
}
