package fleet

import (
	"fmt"
	"slices"
	"time"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// PinnedUse is what a container consumes of an object through what its pod is pinned to.
type PinnedUse struct {
	// Use names the object itself, not the snapshot.
	Use workload.Consumption
	// Snapshot is the name that the pod's own spec references in place of the object's: that of a snapshot, or
	// [v1.AbsentName].
	Snapshot string
	// Shared says that the pod has several objects pinned to that name and does not tell of which of them the use is.
	Shared bool
}

// Snapshot is an object that pins name.
type Snapshot struct {
	// Source is the object of which it is the snapshot; the zero value when it is none.
	Source workload.Object
	// Content is what it holds in the terms of its source; nil when that is not known (Problem says why).
	Content *digest.Content
	// Created is when it was made.
	Created time.Time
	// Gone says that it was looked for and is not there.
	Gone bool
	// Problem is why its content is not known, for people.
	Problem string
}

// findPinned gives what is known of an object that the container reads through its pod's pin. That needs no times: a
// snapshot never changes.
func (r *reader) findPinned(p PinnedUse) finding {
	out := r.about(p.Use)
	if out.object == nil {
		return out
	}
	out.Snapshot, out.Since = p.Snapshot, r.podFrom()
	content, why := r.held(p, out.object)
	if why == "" {
		out.Digest = content.Consumed(p.Use)
		why = out.incomparable()
	}
	if why != "" {
		out.Digest, out.Why = "", why
		return out
	}
	out.Evidence, out.content = Pinned, *content
	out.Why = "the pod reads " + r.fleet.relative(p.Use.Object, p.Snapshot) + ", a copy that never changes"
	if p.Snapshot == v1.AbsentName {
		out.Why = "the pod was pinned while there was none"
	}
	out.noteChange()
	return out
}

// held is what the use gives the container, or why that is not known.
func (r *reader) held(p PinnedUse, o *Object) (content *digest.Content, why string) {
	if p.Shared && (p.Snapshot != v1.AbsentName || o.Applied == nil || o.Applied.Present) {
		return nil, "several objects of the pod are pinned to " + p.Snapshot + ", and it does not tell which of them is read here"
	}
	content, why = r.fleet.heldBy(p.Snapshot, o)
	if why != "" || p.Snapshot == v1.AbsentName {
		return content, why
	}
	// What was there before may have been missing when the container started.
	if made := r.fleet.Snapshots[pinned(o.Use.Object, p.Snapshot)].Created; made.After(r.pod.Created) {
		return nil, fmt.Sprintf("%s was made at %s, after the pod", r.fleet.relative(o.Use.Object, p.Snapshot), clock(made))
	}
	return content, ""
}

// heldBy is what the snapshot of that name holds of an object, or why that is not known.
func (f *Fleet) heldBy(name string, o *Object) (content *digest.Content, why string) {
	if name == v1.AbsentName {
		return f.absence(o)
	}
	s, ok := f.Snapshots[pinned(o.Use.Object, name)]
	words := f.relative(o.Use.Object, name)
	switch {
	case !ok:
		return nil, words + " was not read"
	case s.Gone:
		return nil, words + ", which is a copy of it, is gone"
	case s.Problem != "":
		return nil, words + ", which is a copy of it: " + s.Problem
	case s.Source != o.Use.Object:
		return nil, words + " is no copy of it"
	case s.Content == nil:
		return nil, "what " + words + " holds is not known"
	}
	return s.Content, ""
}

// absence is the content of an object that is absent, in the terms of what is applied of it or was before.
func (f *Fleet) absence(o *Object) (content *digest.Content, why string) {
	absent := digest.Content{Version: o.Log.Newest().Content.Version}
	if o.Applied != nil {
		absent.Version = o.Applied.Version
	}
	if absent.Consumed(o.Use) == "" {
		return nil, "the pod was pinned while there was none, which compares with nothing that is known"
	}
	return &absent, ""
}

// pinned is the object of that name that is read in place of another.
func pinned(o workload.Object, name string) workload.Object {
	o.Name = name
	return o
}

// relative names, as seen from the fleet's namespace, the object of that name that is read in place of another.
func (f *Fleet) relative(o workload.Object, name string) string {
	return pinned(o, name).Relative(f.Namespace)
}

// underPins gives the objects as they count for pods, and those that are gone while the template reads a copy of them: their
// pods go on reading that, and so it counts as what is applied. [stamp.Decide] takes them in the same way.
func (f *Fleet) underPins() (objects []Object, gone []workload.Object) {
	objects = slices.Clone(f.Objects)
	for i := range objects {
		o := &objects[i]
		pin := f.Pins[o.Use.Object]
		if pin == "" || pin == v1.AbsentName || !o.Use.Required || o.Applied == nil || o.Applied.Present {
			continue
		}
		gone = append(gone, o.Use.Object)
		o.Applied, o.Problem = f.heldBy(pin, o)
	}
	return objects, gone
}

// lostCopies lists the copies that pods of the present template require and that are gone.
func (s survey) lostCopies() []workload.Object {
	if n, _ := s.unmatched(); n > 0 {
		return nil // its pods read what is applied
	}
	var out []workload.Object
	for _, o := range s.Objects {
		pin := s.Pins[o.Use.Object]
		if pin == "" || pin == v1.AbsentName || !o.Use.Required || o.Live {
			continue
		}
		if name := pinned(o.Use.Object, pin); s.Snapshots[name].Gone {
			out = append(out, name)
		}
	}
	return out
}

// unmatched counts the pods that do not read what their pins say, and gives since when there is one.
func (s survey) unmatched() (pods int, since time.Time) {
	for _, p := range s.pods {
		if len(p.Unmatched) == 0 && p.PinsProblem == "" || p.Terminating {
			continue
		}
		if pods++; since.IsZero() || p.Created.Before(since) {
			since = p.Created
		}
	}
	return pods, since
}

// unmatchedText words the pods that do not read what their pins say; "" when there are none.
func (s survey) unmatchedText() string {
	n, bad := 0, 0
	var problem string
	var objects []workload.Object
	for _, p := range s.pods {
		switch {
		case p.Terminating:
		case p.PinsProblem != "":
			bad, problem = bad+1, p.PinsProblem
		case len(p.Unmatched) > 0:
			n, objects = n+1, append(objects, p.Unmatched...)
		}
	}
	words := ""
	if bad > 0 {
		words = fmt.Sprintf("%s pins that cannot be read, and %s what is applied: %s", s.of(bad, "carries", "carry"), plural(bad, "reads", "read"), problem)
	}
	if n == 0 {
		return words
	}
	slices.SortFunc(objects, workload.Object.Compare)
	return sentence(words, fmt.Sprintf("%s not read what %s pins say of %s: the admission policy was not in force when %s started; "+
		"restart %s once %s is installed",
		s.of(n, "does", "do"), plural(n, "its", "their"), s.listed(slices.Compact(objects)),
		plural(n, "it", "they"), plural(n, "it", "them"), v1.PolicyPin))
}

// Pin is what the pod template has new pods read in place of an object.
type Pin struct {
	// Snapshot is the name of the copy, or [v1.AbsentName].
	Snapshot string
	// Digest is that of what the template consumes of it; "" when not known (Problem says why).
	Digest digest.Digest
	// Created is when it was made; zero when not known.
	Created time.Time
	Problem string
}

// PinOf gives the pin of one of the fleet's objects; false when the template has none of it.
func (f Fleet) PinOf(o Object) (Pin, bool) {
	name := f.Pins[o.Use.Object]
	if name == "" {
		return Pin{}, false
	}
	p := Pin{Snapshot: name, Created: f.Snapshots[pinned(o.Use.Object, name)].Created}
	content, why := f.heldBy(name, &o)
	if p.Problem = why; why == "" {
		p.Digest = content.Consumed(o.Use)
	}
	return p, true
}

// next is what a pod that starts now reads of an object: what the template pins it to, else what is applied; nil when that is
// not known.
func (f *Fleet) next(o *Object) *digest.Content {
	pin := f.Pins[o.Use.Object]
	if pin == "" {
		return o.Applied
	}
	content, _ := f.heldBy(pin, o)
	return content
}
