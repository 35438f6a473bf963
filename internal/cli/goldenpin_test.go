package cli

import (
	"bytes"
	"testing"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// pricer is the fleet of the incident `rollback`, in mode pin: its workload went back from a release that renamed a setting.
// Nothing remembers its history.
func pricer() cluster.Workload {
	pricing := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "pricing"}
	extra := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "extra"}
	older, newer := copyIn("pricing-old"), copyIn("pricing-new")
	all := workload.Keys{All: true}
	uses := []workload.Consumption{{Object: extra, Env: all}, {Object: pricing, Env: all, Required: true}}
	before, renamed := map[string]string{"INTERVAL": "10m"}, map[string]string{"REFRESH": "10m"}
	then := digest.OfConfigMap("shop", "pricing", before, nil)
	present := digest.OfConfigMap("shop", "pricing", renamed, nil)
	none := digest.AbsentIn(workload.ConfigMap, nil)
	w := cluster.Workload{
		Target: cluster.Target{Kind: cluster.BuiltinKinds()[0], Namespace: "shop", Name: "pricer"}, UID: "uid-4",
		References: []workload.Reference{
			{Object: extra, Source: workload.SourceEnvFrom, Container: "pricer", Role: workload.RoleMain, Optional: true},
			{Object: pricing, Source: workload.SourceEnvFrom, Container: "pricer", Role: workload.RoleMain},
		},
		Keys:   map[workload.Object][]string{pricing: present.Keys(), older: then.Keys()},
		Values: map[workload.Object]map[string]string{pricing: renamed, older: before},
		Fleet: fleet.Fleet{
			Now: now, Namespace: "shop", Mode: stamp.Pin, RolloutDone: true, Budget: 10 * time.Minute,
			Stamp: "v1-s", Pins: snapshot.Pins{pricing: older.Name, extra: v1.AbsentName},
			Record: &stamp.Record{
				Stamp: "v1-s", Objects: map[string]stamp.ObjectRecord{"configmap/pricing": {HeldBack: true}},
				Last: &stamp.Last{Time: ago(time.Hour), Action: stamp.WriteRecord, Reason: stamp.RolledBack},
			},
			Snapshots: map[workload.Object]fleet.Snapshot{
				older: {Source: pricing, Content: &then, Created: ago(30 * day)},
				newer: {Source: pricing, Content: &present, Created: ago(2 * time.Hour)},
			},
			Objects: []fleet.Object{
				{Use: uses[0], Applied: &none},
				{Use: uses[1], Applied: &present, Written: ago(2 * time.Hour), WrittenBy: "helm"},
			},
		},
	}
	for _, name := range []string{"pricer-5d8-a", "pricer-5d8-b"} {
		w.Fleet.Pods = append(w.Fleet.Pods, fleet.Pod{
			Name: name, Node: "node-1", Revision: "5d8", Created: ago(time.Hour), Ready: true, Phase: "Running",
			Containers: []fleet.Container{{
				Name: "pricer", Role: workload.RoleMain, Started: ago(time.Hour).Add(time.Second),
				Pinned: []fleet.PinnedUse{{Use: uses[0], Snapshot: v1.AbsentName}, {Use: uses[1], Snapshot: older.Name}},
			}},
		})
	}
	return w
}

func copyIn(name string) workload.Object {
	return workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: name}
}

// unpinned is that fleet, one pod of which was created while nothing heeded pins, and another on a copy that is gone.
func unpinned() cluster.Workload {
	w := pricer()
	w.Name, w.UID = "quoter", "uid-5"
	use := w.Fleet.Objects[1].Use
	stray, lost := w.Fleet.Pods[0], w.Fleet.Pods[1]
	stray.Name, stray.Unmatched = "pricer-5d8-c", []workload.Object{use.Object}
	stray.Containers = []fleet.Container{{
		Name: "pricer", Role: workload.RoleMain, Started: stray.Containers[0].Started, Uses: []workload.Consumption{use},
	}}
	lost.Name = "pricer-4f2-d"
	lost.Containers = []fleet.Container{{
		Name: "pricer", Role: workload.RoleMain, Started: lost.Containers[0].Started,
		Pinned: []fleet.PinnedUse{{Use: use, Snapshot: "pricing-lost"}},
	}}
	w.Fleet.Snapshots[copyIn("pricing-lost")] = fleet.Snapshot{Gone: true}
	w.Fleet.Pods = append(w.Fleet.Pods, stray, lost)
	return w
}

func TestStatusOfPinnedFleetsPrints(t *testing.T) {
	s := &cluster.Sight{Now: now, Workloads: []cluster.Workload{pricer(), unpinned()}}
	for _, format := range []string{"wide", "yaml"} {
		t.Run("as "+format, func(t *testing.T) {
			out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
			o := statusTo(out, errOut)
			o.output = format
			if err := o.print(judge(s.Workloads), []seen{{sight: s, fleets: judge(s.Workloads)}}); err != nil {
				t.Fatal(err)
			}
			golden(t, "pinned."+format, out.String())
		})
	}
}

func TestExplainOfPinnedFleetsPrints(t *testing.T) {
	for name, w := range map[string]cluster.Workload{"pricer": pricer(), "quoter": unpinned()} {
		e := explained{judged: judged{Workload: w, Result: w.Judge()}, sight: &cluster.Sight{Now: now}, next: fleet.Next(w.Fleet)}
		out := &bytes.Buffer{}
		if err := printExplanation(out, e); err != nil {
			t.Fatal(err)
		}
		golden(t, "explain-"+name+".txt", out.String())
	}
}
