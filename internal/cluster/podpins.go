package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/rewrite"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// podUses are what the containers of a pod consume, by container.
type podUses struct {
	plain  map[string][]workload.Consumption
	pinned map[string][]fleet.PinnedUse
	// unmatched are the objects that the pod's pins name and that its spec references by their own names, sorted.
	unmatched []workload.Object
	// problem is why the pins cannot be read; "" when they can.
	problem string
}

// usesOf reads what a pod's containers consume from the pod's own spec, which is what its kubelet goes by. A reference to what
// the pod's pins name is one of the object that is pinned; pins that cannot be read pin nothing.
func usesOf(pod *corev1.Pod) podUses {
	pins, err := snapshot.ParsePins(pod.Namespace, pod.Annotations[v1.AnnotationPins])
	behind := behindNames(pins)
	refs := workload.References(pod.Namespace, &corev1.PodTemplateSpec{Spec: pod.Spec})
	plain, through := map[string][]workload.Reference{}, map[string][]workload.Reference{}
	out := podUses{plain: map[string][]workload.Consumption{}, pinned: map[string][]fleet.PinnedUse{}}
	if err != nil {
		out.problem = err.Error()
	}
	for _, r := range refs {
		sources := behind[r.Object]
		switch {
		case r.Container == "":
		case len(sources) == 0:
			plain[r.Container] = append(plain[r.Container], r)
		default:
			for _, source := range sources {
				of := r
				of.Object = source
				through[r.Container] = append(through[r.Container], of)
			}
		}
	}
	for name, refs := range plain {
		out.plain[name] = workload.Consumed(refs)
	}
	for name, refs := range through {
		for _, use := range workload.Consumed(refs) {
			pin := pins[use.Object]
			shared := len(behind[pinnedAs(use.Object, pin)]) > 1
			out.pinned[name] = append(out.pinned[name], fleet.PinnedUse{Use: use, Snapshot: pin, Shared: shared})
		}
	}
	out.unmatched = unmatched(pod, pins)
	return out
}

// unmatched are the objects that the pins name and that the pod's spec references by their own names, sorted. Pins of what it
// does not reference at all are left over from references that went, and say nothing.
func unmatched(pod *corev1.Pod, pins snapshot.Pins) []workload.Object {
	if len(pins) == 0 {
		return nil
	}
	var out []workload.Object
	for _, m := range rewrite.Mismatches(pod, pins) {
		if m.Path != "" {
			out = append(out, m.Object)
		}
	}
	slices.SortFunc(out, workload.Object.Compare)
	return slices.Compact(out)
}

// behindNames gives, for each object that pins name, those that it stands for: one for a snapshot, any number for
// [v1.AbsentName].
func behindNames(pins snapshot.Pins) map[workload.Object][]workload.Object {
	out := make(map[workload.Object][]workload.Object, len(pins))
	for source, name := range pins {
		as := pinnedAs(source, name)
		out[as] = append(out[as], source)
	}
	return out
}

// pinnedAs is the object of that name that is read in place of another.
func pinnedAs(o workload.Object, name string) workload.Object {
	o.Name = name
	return o
}

// consumptions are all that a container consumes, however it reads it.
func consumptions(c *fleet.Container) []workload.Consumption {
	out := slices.Clone(c.Uses)
	for _, p := range c.Pinned {
		out = append(out, p.Use)
	}
	return out
}
