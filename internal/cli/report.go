package cli

import (
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

// judged is a workload with the verdict on its fleet.
type judged struct {
	cluster.Workload
	fleet.Result
	// context names the cluster where several were asked for.
	context string
}

func judge(workloads []cluster.Workload) []judged {
	out := make([]judged, 0, len(workloads))
	for _, w := range workloads {
		out = append(out, judged{Workload: w, Result: w.Judge()})
	}
	return out
}

// inStep is what --exit-code counts. What is not known is no finding, unless write times hint at one.
func inStep(r fleet.Result) bool {
	switch r.Verdict {
	case fleet.InStep:
		return true
	case fleet.Unknown:
		return r.Possibly == ""
	case fleet.Rolling, fleet.Split, fleet.Dormant, fleet.RolledBack, fleet.Waiting, fleet.Held, fleet.Unpinned,
		fleet.LeftUnfinished:
		return false
	}
	return false
}

// document is the fleet as it is printed in JSON and YAML.
func (j judged) document() v1.Fleet {
	f := v1.Fleet{
		Context: j.context,
		Workload: v1.WorkloadReference{
			APIVersion: j.Kind.GroupVersion().String(), Kind: j.Kind.GroupVersionKind.Kind,
			Namespace: j.Namespace, Name: j.Name, UID: j.UID,
		},
		Mode: string(j.Fleet.Mode), Paused: j.Fleet.PausedBy,
		Verdict: string(j.Verdict), Possibly: string(j.Possibly), InStep: inStep(j.Result),
		Since: seconds(j.Since), Reason: j.Reason, Stamp: j.Fleet.Stamp,
		HeldBack: names(j.HeldBack), Behind: j.Behind,
		Versions: []v1.FleetVersion{}, Objects: []v1.FleetObject{}, Pods: []v1.FleetPod{},
		NextStart:  j.nextStarts(),
		Unfinished: unfinishedDocument(j.Result.Unfinished), Problems: j.Problems,
	}
	for _, v := range j.Versions {
		f.Versions = append(f.Versions, v1.FleetVersion{Version: v.Version, Applied: v.Applied, Behind: v.Behind, Since: seconds(v.Since), Pods: v.Pods})
	}
	for _, o := range j.Fleet.Objects {
		f.Objects = append(f.Objects, j.objectDocument(o))
	}
	for _, p := range j.Pods {
		f.Pods = append(f.Pods, podDocument(p))
	}
	return f
}

func unfinishedDocument(u *fleet.Unfinished) *v1.FleetUnfinished {
	if u == nil {
		return nil
	}
	out := &v1.FleetUnfinished{
		Revision: u.Revision, Number: u.Number, Pods: u.Pods, AllPods: u.All, Cause: string(u.Cause), Why: u.Why,
		Step: u.Step, Steps: u.Steps, Weight: u.Weight, Owner: u.Owner, Since: seconds(u.Since), Overdue: u.Overdue,
	}
	if u.After > 0 {
		out.After = u.After.String()
	}
	return out
}

func (j judged) objectDocument(o fleet.Object) v1.FleetObject {
	out := v1.FleetObject{
		Object: o.Use.Object.String(), Required: o.Use.Required, Live: o.Live,
		Written: seconds(o.Written), WrittenBy: o.WrittenBy, Problem: o.Problem,
	}
	if o.Applied != nil {
		out.Present = &o.Applied.Present
		out.Applied = string(o.Applied.Consumed(o.Use))
	}
	if p, ok := j.Fleet.PinOf(o); ok {
		out.Pin = &v1.FleetPin{Snapshot: p.Snapshot, Digest: string(p.Digest), Created: seconds(p.Created), Problem: p.Problem}
	}
	return out
}

func podDocument(p fleet.PodResult) v1.FleetPod {
	out := v1.FleetPod{
		Name: p.Name, Node: p.Node, Revision: p.Revision, Ready: p.Ready, Version: p.Version, Behind: p.Behind,
		Unmatched: names(p.Unmatched), Containers: []v1.FleetContainer{},
	}
	for _, c := range p.Containers {
		container := v1.FleetContainer{Name: c.Name, Started: seconds(c.Started), Loaded: []v1.FleetLoaded{}}
		for _, l := range c.Loaded {
			container.Loaded = append(container.Loaded, v1.FleetLoaded{
				Object: l.Object.String(), Digest: string(l.Digest), Applied: string(l.Applied), Snapshot: l.Snapshot,
				Evidence: string(l.Evidence), Why: l.Why, Contradiction: l.Contradiction, Since: seconds(l.Since),
			})
		}
		out.Containers = append(out.Containers, container)
	}
	return out
}

func names(objects []workload.Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.String())
	}
	return out
}

// seconds is a time as documents have it.
func seconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}
