package cli

import (
	"bytes"
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/stamp"
)

// forgotten is a fleet whose canary was left at one pod, and which is that verdict or, before its time, something else.
func forgotten(name string, after time.Duration) cluster.Workload {
	weight := 20
	w := cluster.Workload{
		Target: cluster.Target{Kind: cluster.BuiltinKinds()[4], Namespace: "shop", Name: name}, UID: "uid-" + name,
		Fleet: fleet.Fleet{Now: now, Namespace: "shop", Mode: stamp.Observe, Installed: true, Partial: &fleet.Partial{
			Cause: fleet.CanaryPause, Why: "its step 2 pauses until it is promoted", Step: 2, Steps: 4, Weight: &weight, Owner: "shop-team", After: after,
			Revisions: []fleet.RevisionPods{
				{Name: name + "-new", Number: 3, Pods: 1, Since: ago(3 * day)}, {Name: name + "-old", Number: 2, Pods: 4, Since: ago(30 * day)},
			},
		}},
	}
	for _, pod := range []string{"a", "b", "c", "d", "e"} {
		w.Fleet.Pods = append(w.Fleet.Pods, fleet.Pod{Name: name + "-" + pod, Node: "node-1", Created: ago(3 * day), Ready: true, Phase: "Running"})
	}
	return w
}

func TestAnUnfinishedRolloutPrints(t *testing.T) {
	s := &cluster.Sight{Now: now, Workloads: []cluster.Workload{forgotten("canary", time.Hour), forgotten("patient", 7*day)}}
	for _, format := range []string{"wide", "json"} {
		out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
		o := statusTo(out, errOut)
		o.output = format
		if err := o.print(judge(s.Workloads), []seen{{sight: s, fleets: judge(s.Workloads)}}); err != nil || errOut.Len() > 0 {
			t.Fatal(err, errOut)
		}
		golden(t, "unfinished."+format, out.String())
	}
	out := &bytes.Buffer{}
	for _, w := range s.Workloads {
		if err := printExplanation(out, explained{judged: judged{Workload: w, Result: w.Judge()}, sight: s, next: fleet.Next(w.Fleet)}); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "unfinished.txt", out.String())
}
