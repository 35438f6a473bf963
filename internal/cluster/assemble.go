package cluster

import (
	"slices"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// assemble makes of all facts what verdicts are judged from.
func (r *reading) assemble() {
	for _, s := range r.seen {
		r.sight.Workloads = append(r.sight.Workloads, r.workload(s))
	}
}

func (r *reading) workload(s *seen) Workload {
	s.pods = r.throughSnapshots(s)
	w := Workload{
		Target: s.Target, UID: string(s.uid), References: s.references, Problems: s.problems, Blind: s.blind,
		Keys: map[workload.Object][]string{}, Values: map[workload.Object]map[string]string{},
		Fleet: fleet.Fleet{
			Now: r.sight.Now, Namespace: s.Namespace, Stamp: s.template[v1.AnnotationConfigHash], Pins: s.pins,
			Installed: r.sight.Installed, Settings: r.Settings,
			RolloutDone: s.rollout.Done, Stuck: s.rollout.Stuck, Partial: s.partial,
		},
	}
	r.addRecord(&w, s)
	r.addPause(&w, s)
	var err error
	if w.Fleet.Reloads, err = Switch(v1.AnnotationReloads, s.annotations, s.template); err != nil {
		w.Problems = append(w.Problems, err.Error())
	}
	if w.Fleet.Budget, err = BudgetOf(s.pace, s.annotations, s.template); err != nil {
		w.Problems = append(w.Problems, err.Error())
	}
	for _, use := range s.allUses() {
		r.addObject(&w, use)
	}
	w.Fleet.Ignored = w.Ignored
	r.addOwner(&w, s)
	r.addSnapshots(&w, s)
	w.Fleet.Pods = r.podsOf(s)
	return w
}

// addRecord reads what Tidemark left on the workload, and the mode, which the record knows where annotations do not say.
func (r *reading) addRecord(w *Workload, s *seen) {
	sum, marked := s.labels[v1.LabelRecordSum]
	record, intact, err := stamp.Parse(s.annotations[v1.AnnotationRecord], sum)
	if err != nil {
		w.Problems = append(w.Problems, err.Error())
	}
	w.Fleet.Record = record
	mode, problems := ModeOf(s.annotations, s.template, r.namespaces[s.Namespace].labels, "")
	w.Problems = append(w.Problems, problems...)
	lost := LostMode(s.annotations, mode, record, marked, intact)
	switch {
	case lost != "":
		mode = lost
	case mode != "":
	case record != nil && (intact || record.Mode != stamp.Observe):
		mode = record.Mode // nobody chose, so it is the controller's default that the record tells of
	default:
		mode = r.DefaultMode
	}
	w.Fleet.Mode = mode
}

func (r *reading) addPause(w *Workload, s *seen) {
	w.Fleet.PausedBy = PausedBy(s.annotations, s.labels, r.namespaces[s.Namespace].annotations, r.namespaces[r.System].annotations)
	w.Fleet.Paused = w.Fleet.PausedBy != ""
}

func (r *reading) addOwner(w *Workload, s *seen) {
	n := r.namespaces[s.Namespace]
	var err error
	if w.Owner, err = OwnerOf(s.annotations, s.template, n.annotations, n.labels); err != nil {
		w.Problems = append(w.Problems, err.Error())
	}
}

func (r *reading) addObject(w *Workload, use workload.Consumption) {
	o := r.objects[use.Object]
	if o.setting != "" {
		w.Problems = append(w.Problems, use.Object.Relative(w.Namespace)+": "+o.setting)
	}
	if o.ignored {
		w.Ignored = append(w.Ignored, use.Object)
		return
	}
	log := r.memory.logs[use.Object]
	facts := fleet.Object{
		Use: use, Applied: o.content, Log: log, Values: r.valuesOf(use.Object), LogTo: r.memory.completeTo(log, o, r.objectsFrom),
		Live: o.live, Problem: o.problem,
	}
	if o.present {
		write := o.writes.Newest(use)
		facts.Written, facts.WrittenBy = write.At, write.By
	}
	w.Fleet.Objects = append(w.Fleet.Objects, facts)
	if o.shown {
		w.Shown = append(w.Shown, use.Object)
	}
	w.Keys[use.Object] = o.keys()
	if o.values != nil {
		w.Values[use.Object] = o.values
	}
}

// valuesOf are the values that were read of a ConfigMap and of its snapshots, by their sums.
func (r *reading) valuesOf(source workload.Object) map[digest.Sum]string {
	if !r.Values {
		return nil
	}
	out := map[digest.Sum]string{}
	for name, o := range r.objects {
		if o.content == nil || name != source && r.copies[name] != source {
			continue
		}
		for key, value := range o.values {
			out[o.content.Data[key]] = value
		}
	}
	return out
}

// keys are the names of the object's keys, as far as known.
func (o *object) keys() []string {
	if o.content != nil {
		return o.content.Keys()
	}
	return o.writes.Keys()
}

// podsOf completes the facts of a workload's pods by what is not on the pods.
func (r *reading) podsOf(s *seen) []fleet.Pod {
	whole, _ := Switch(v1.AnnotationWholeObject, s.annotations, s.template) // a problem of it is reported with the uses
	pods := slices.Clone(s.pods)
	for i := range pods {
		pods[i].NodeReadySince = r.nodes[pods[i].Node]
		pods[i].Silences = r.memory.silences[pods[i].Node]
		if whole {
			pods[i].Containers = withWhole(pods[i].Containers)
		}
	}
	return pods
}

// withWhole makes every key of each object count that a container uses.
func withWhole(containers []fleet.Container) []fleet.Container {
	out := slices.Clone(containers)
	for i := range out {
		out[i].Uses = slices.Clone(out[i].Uses)
		for j := range out[i].Uses {
			out[i].Uses[j] = out[i].Uses[j].Whole()
		}
		out[i].Pinned = slices.Clone(out[i].Pinned)
		for j := range out[i].Pinned {
			out[i].Pinned[j].Use = out[i].Pinned[j].Use.Whole()
		}
	}
	return out
}
