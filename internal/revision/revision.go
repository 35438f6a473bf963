// Package revision judges the retained revisions of a workload: which to go back to, how two of them differ.
package revision

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// Availability says whether a revision ever had a pod that was available.
type Availability string

// The answers. Kubernetes keeps no record of it, so the third is common and is never taken for one of the others.
const (
	Proven  Availability = "available" // a pod of it is available, or was seen to be
	Never   Availability = "never"     // it never had a pod
	Unknown Availability = "unknown"   // nothing tells
)

// Revision is one retained revision of a workload: a ReplicaSet, a ControllerRevision, or the workload's present template
// before its controller has made one of it.
type Revision struct {
	// Number is the revision's number; 0 until the workload's controller has numbered it.
	Number int64
	// Former are numbers that it had before somebody went back to it.
	Former []int64
	// Name is that of the ReplicaSet or ControllerRevision; "" for a template that there is none of yet.
	Name string
	// Hash is the value of the label that tells the revision's pods.
	Hash string
	// Created is when the ReplicaSet or ControllerRevision was made, to the second.
	Created time.Time
	// Cause is what the annotation kubernetes.io/change-cause says.
	Cause string
	// Namespace of the workload, and Template of its pods without what controllers add to it.
	Namespace string
	Template  *corev1.PodTemplateSpec
	// Pins are those of the template, and PinsProblem why they cannot be read; there are none then.
	Pins        snapshot.Pins
	PinsProblem string
	// Current says that it is the workload's present template.
	Current bool
	// Availability of its pods until now, with what it is known from.
	Availability Availability
	Evidence     string
	// Pods counts the revision's pods.
	Pods Pods
}

// Pods counts the pods of a revision.
type Pods struct {
	// Known says that they could be counted.
	Known bool
	// All, those that are ready, and those that are available: ready for as long as the workload asks for.
	All, Ready, Available int
}

// Stamp is the stamp on the revision's template; "" when there is none.
func (r Revision) Stamp() string { return r.Template.Annotations[v1.AnnotationConfigHash] }

// Image is what one container of a template runs.
type Image struct {
	Container, Image string
}

// Images lists the images of a template, those of init containers last.
func Images(t *corev1.PodTemplateSpec) []Image {
	var out []Image
	for _, c := range slices.Concat(t.Spec.Containers, t.Spec.InitContainers) {
		out = append(out, Image{c.Name, c.Image})
	}
	return out
}

// Reading is where the pods of a revision read one config object.
type Reading struct {
	Object workload.Object
	// Use is what they read of it; its zero value when the template pins the object and does not refer to it.
	Use workload.Consumption
	// Pin is the name of the copy that they read, [v1.AbsentName] for none, "" where they read what is applied.
	Pin string
}

// Absent says that the object is pinned to nothing.
func (r Reading) Absent() bool { return r.Pin == v1.AbsentName }

// Copy is the object that is read in its place; false where there is none.
func (r Reading) Copy() (workload.Object, bool) {
	copied := r.Object
	copied.Name = r.Pin
	return copied, r.Pin != "" && !r.Absent()
}

// Reads reports whether the template reads a key of the object.
func (r Reading) Reads(key string) bool { return r.Use.Env.Has(key) || r.Use.Files.Has(key) }

// Readings lists the config objects that the revision's template refers to, or pins, sorted. Those that only an annotation
// names are left out: they are no part of a revision.
func (r Revision) Readings() []Reading {
	var out []Reading
	for _, use := range workload.Consumed(workload.References(r.Namespace, r.Template)) {
		out = append(out, Reading{Object: use.Object, Use: use, Pin: r.Pins[use.Object]})
	}
	for o, pin := range r.Pins {
		if !slices.ContainsFunc(out, func(have Reading) bool { return have.Object == o }) {
			out = append(out, Reading{Object: o, Pin: pin})
		}
	}
	slices.SortFunc(out, func(a, b Reading) int { return a.Object.Compare(b.Object) })
	return out
}

// Text names the revision for people: "5", or "that is not made yet" in place of a number.
func (r Revision) Text() string {
	if r.Number == 0 {
		return "without a number"
	}
	return Number(r.Number)
}

// Sort puts revisions in order: by number, those without one last, since they are about to get the highest.
func Sort(revisions []Revision) {
	slices.SortStableFunc(revisions, func(a, b Revision) int {
		switch {
		case a.Number == b.Number:
			return strings.Compare(a.Name, b.Name)
		case a.Number == 0:
			return 1
		case b.Number == 0:
			return -1
		case a.Number < b.Number:
			return -1
		}
		return 1
	})
}

// Merge lists the objects that are in either list of readings, each once, sorted.
func Merge(a, b []Reading) []workload.Object {
	var out []workload.Object
	for _, r := range slices.Concat(a, b) {
		if !slices.Contains(out, r.Object) {
			out = append(out, r.Object)
		}
	}
	slices.SortFunc(out, workload.Object.Compare)
	return out
}
