package rewrite

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// Mismatch is a reference of a pod to an object that its pins replace: the pod was created while nothing rewrote it, or its
// pins were changed afterwards.
type Mismatch struct {
	// Object is the pinned object that the pod reads, and Snapshot what its pin names in place of it.
	Object   workload.Object
	Snapshot string
	// Path leads to the reference, for example "spec.containers[0].envFrom[1].configMapRef.name".
	Path string
	// Container is the container that reads it; empty for volumes.
	Container string
}

// String says it in words, for people.
func (m Mismatch) String() string {
	return fmt.Sprintf("%s reads %s, which is pinned to %s", m.Path, m.Object.Relative(m.Object.Namespace), m.Snapshot)
}

// Mismatches lists the references of a pod that [Pod] would change, init containers first and volumes last. A pin of what the
// pod does not reference at all is none: a template may lose a reference and keep the pin.
func Mismatches(pod *corev1.Pod, pins snapshot.Pins) []Mismatch {
	given := namesOf(pins, pod.Namespace)
	var found []Mismatch
	visit(&pod.Spec, func(r reference) {
		if name, pinned := given[r.kind][*r.name]; pinned {
			o := workload.Object{Kind: r.kind, Namespace: pod.Namespace, Name: *r.name}
			found = append(found, Mismatch{Object: o, Snapshot: name, Path: r.path(), Container: r.container})
		}
	})
	return found
}
