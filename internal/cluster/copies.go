package cluster

import (
	"slices"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

// usedCopies are the snapshots that the pins of templates and of pods name.
func (r *reading) usedCopies() map[workload.Object]workload.Object {
	out := map[workload.Object]workload.Object{}
	for _, s := range r.seen {
		for copied, source := range s.copies() {
			out[copied] = source
		}
	}
	return out
}

// copies are the snapshots that the template of a workload has it read, and those that its pods read.
func (s *seen) copies() map[workload.Object]workload.Object {
	out := map[workload.Object]workload.Object{}
	add := func(source workload.Object, name string) {
		if name != "" && name != v1.AbsentName {
			out[pinnedAs(source, name)] = source
		}
	}
	for _, u := range s.uses {
		add(u.Object, s.pins[u.Object])
	}
	for i := range s.pods {
		for j := range s.pods[i].Containers {
			for _, p := range s.pods[i].Containers[j].Pinned {
				add(p.Use.Object, p.Snapshot)
			}
		}
	}
	return out
}

// throughSnapshots gives the pods of a workload where what they read by the name of a snapshot is a use of its source, also
// for pods that lost their pins. It stays a use of the snapshot itself where the template names that, or does not use the
// source.
func (r *reading) throughSnapshots(s *seen) []fleet.Pod {
	pods := slices.Clone(s.pods)
	for i := range pods {
		for j := range pods[i].Containers {
			if slices.ContainsFunc(pods[i].Containers[j].Uses, func(u workload.Consumption) bool { return r.stray(s, u.Object) }) {
				pods[i].Containers = slices.Clone(pods[i].Containers)
				pods[i].Containers[j] = r.pin(s, pods[i].Containers[j])
			}
		}
	}
	return pods
}

// stray reports whether a pod that reads the object reads the snapshot of one that the template uses.
func (r *reading) stray(s *seen, o workload.Object) bool {
	known := r.objects[o]
	return known != nil && known.snapshot != nil && !s.usesObject(o) && s.usesObject(known.snapshot.Source)
}

func (s *seen) usesObject(o workload.Object) bool {
	return slices.ContainsFunc(s.uses, func(u workload.Consumption) bool { return u.Object == o })
}

// pin gives a container whose uses of stray snapshots are uses of their sources.
func (r *reading) pin(s *seen, c fleet.Container) fleet.Container {
	uses := c.Uses
	c.Uses, c.Pinned = nil, slices.Clone(c.Pinned)
	for _, u := range uses {
		if !r.stray(s, u.Object) {
			c.Uses = append(c.Uses, u)
			continue
		}
		name := u.Object.Name
		u.Object = r.objects[u.Object].snapshot.Source
		c.Pinned = append(c.Pinned, fleet.PinnedUse{Use: u, Snapshot: name})
	}
	return c
}

// addSnapshots gives a workload's fleet the snapshots that its pods read, and that its template has new pods read.
func (r *reading) addSnapshots(w *Workload, s *seen) {
	copies := s.copies()
	if len(copies) == 0 {
		return
	}
	w.Fleet.Snapshots = make(map[workload.Object]fleet.Snapshot, len(copies))
	for copied, source := range copies {
		o := r.objects[copied]
		w.Fleet.Snapshots[copied] = o.asSnapshot()
		if s.pins[source] == copied.Name {
			w.Keys[copied] = o.keys()
			if o.values != nil {
				w.Values[copied] = o.values
			}
		}
	}
}

// asSnapshot is what is known of an object that pins name.
func (o *object) asSnapshot() fleet.Snapshot {
	switch {
	case !o.known:
		return fleet.Snapshot{Problem: o.problem}
	case !o.present:
		return fleet.Snapshot{Gone: true}
	case o.snapshot == nil:
		return fleet.Snapshot{}
	}
	return fleet.Snapshot{Source: o.snapshot.Source, Content: o.content, Created: o.snapshot.Created, Problem: o.problem}
}
