package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// ID identifies a workload in queues and maps.
type ID struct {
	GVK schema.GroupVersionKind
	types.NamespacedName
}

// String gives "Kind/namespace/name".
func (id ID) String() string { return id.GVK.Kind + "/" + id.NamespacedName.String() }

// subject is a workload as the index knows it. It is never changed, only replaced.
type subject struct {
	id     ID
	kind   cluster.Kind
	object client.Object // as in the informer's cache: read only
	// uses is what the pod template and the annotations consume.
	uses []workload.Consumption
	// bad is why the template cannot be read; nil otherwise.
	bad error
	// problems are annotations that cannot be read.
	problems []error
}

// item is a config object as the index knows it.
type item struct {
	digested *cluster.Digested
	// changed is when its content was seen to change; zero when it has not since the start.
	changed time.Time
	// since is from when on the content surely has been this one, without a moment in which nobody watched.
	since time.Time
	// born says that the object was seen coming into being with this content.
	born bool
}

// place is what the index keeps of a namespace.
type place struct {
	labels, annotations map[string]string
	// ending says that it is being deleted, with all that is in it.
	ending bool
}

// index relates workloads to the config objects that they consume, as seen by the informers.
type index struct {
	mu       sync.RWMutex
	subjects map[ID]*subject
	readers  map[workload.Object]map[ID]struct{}
	items    map[workload.Object]item
	places   map[string]place
	// referrers are the workloads that take their pod template from another one, by that.
	referrers map[ID]map[ID]struct{}
	// copies are the snapshots of each config object.
	copies map[workload.Object]map[workload.Object]struct{}
	// departed are the objects that were deleted of late while nobody consumed them, in the order of their deletion.
	departed []departure
}

func newIndex() *index {
	return &index{
		subjects:  map[ID]*subject{},
		readers:   map[workload.Object]map[ID]struct{}{},
		items:     map[workload.Object]item{},
		places:    map[string]place{},
		referrers: map[ID]map[ID]struct{}{},
		copies:    map[workload.Object]map[workload.Object]struct{}{},
	}
}

// putWorkload takes a workload in and returns the objects that nobody consumed before.
func (x *index) putWorkload(kind cluster.Kind, obj client.Object) (ID, []workload.Object) {
	id := ID{kind.GroupVersionKind, client.ObjectKeyFromObject(obj)}
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.subjects[id]
	if old != nil && sameSpec(old.object, obj) {
		kept := *old
		kept.object = obj
		x.subjects[id] = &kept
		return id, nil
	}
	s := &subject{id: id, kind: kind, object: obj}
	template, err := kind.Template(obj)
	if err != nil {
		s.bad = err
	} else {
		_, s.uses, s.problems = cluster.ConsumptionOf(obj.GetNamespace(), obj.GetAnnotations(), template)
	}
	x.subjects[id] = s
	x.refer(old, s)
	fresh := x.link(s)
	x.unlink(old, s.uses)
	return id, fresh
}

// sameSpec reports whether two states of a workload differ in neither spec nor annotations, so that what they consume is
// the same. Objects without a generation are always taken as different.
func sameSpec(a, b client.Object) bool {
	return a.GetGeneration() != 0 && a.GetGeneration() == b.GetGeneration() && a.GetUID() == b.GetUID() &&
		maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

func (x *index) link(s *subject) (fresh []workload.Object) {
	for _, u := range s.uses {
		if x.readers[u.Object] == nil {
			x.readers[u.Object] = map[ID]struct{}{}
			fresh = append(fresh, u.Object)
		}
		x.readers[u.Object][s.id] = struct{}{}
	}
	return fresh
}

// unlink takes a workload from the readers of what it consumed and does not any more. What is left of an object that is
// gone goes with its last reader.
func (x *index) unlink(s *subject, still []workload.Consumption) {
	if s == nil {
		return
	}
	for _, u := range s.uses {
		if slices.ContainsFunc(still, func(v workload.Consumption) bool { return v.Object == u.Object }) {
			continue
		}
		delete(x.readers[u.Object], s.id)
		if len(x.readers[u.Object]) > 0 {
			continue
		}
		delete(x.readers, u.Object)
		if i, ok := x.items[u.Object]; ok && i.digested == nil {
			delete(x.items, u.Object)
			x.depart(u.Object, i.since)
		}
	}
}

// dropWorkload forgets a workload.
func (x *index) dropWorkload(id ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unlink(x.subjects[id], nil)
	x.refer(x.subjects[id], nil)
	delete(x.subjects, id)
}

// putObject takes the state of a config object in and returns the workloads that it may matter to: none when neither its
// content nor the annotations that count are different.
func (x *index) putObject(d *cluster.Digested, now time.Time) []ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.items[d.Object]
	next := item{digested: d, changed: old.changed, since: old.since, born: old.born}
	same := old.digested != nil && old.digested.Content.Equal(d.Content)
	if !same {
		next.changed = now
	}
	if !same || d.Listed && d.ResourceVersion != old.digested.ResourceVersion {
		next.since, next.born = now, old.digested == nil && !d.Listed
	}
	x.items[d.Object] = next
	x.tally(old.digested, d)
	if same && old.digested.Setting == d.Setting {
		return nil
	}
	return x.readersOf(d.Object)
}

// dropObject notes that a config object is gone, and returns the workloads that consume it, or of which it was a copy.
func (x *index) dropObject(o workload.Object, now time.Time) []ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.items[o].digested
	x.tally(old, nil)
	x.items[o] = item{changed: now, since: now}
	if x.readers[o] == nil {
		delete(x.items, o)
		x.depart(o, now)
	}
	ids := x.readersOf(o)
	if old != nil && old.Snapshot != nil {
		ids = append(ids, x.readersOf(old.Snapshot.Source)...)
	}
	return ids
}

func (x *index) readersOf(o workload.Object) []ID {
	return slices.Collect(maps.Keys(x.readers[o]))
}

// putNamespace takes a namespace in and returns the workloads whose mode or pause may be another now: those in it, or all
// of them for Tidemark's own.
func (x *index) putNamespace(ns metav1.Object, own bool) []ID {
	name, next := ns.GetName(), place{
		labels:      pick(ns.GetLabels(), v1.LabelMode),
		annotations: pick(ns.GetAnnotations(), v1.AnnotationPaused, v1.AnnotationPausedBy),
		ending:      ns.GetDeletionTimestamp() != nil,
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.places[name]
	x.places[name] = next
	if maps.Equal(old.labels, next.labels) && maps.Equal(old.annotations, next.annotations) && old.ending == next.ending {
		return nil
	}
	if own {
		return x.idsIn("")
	}
	return x.idsIn(name)
}

func pick(m map[string]string, keys ...string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		if v, ok := m[k]; ok {
			out[k] = v
		}
	}
	return out
}

func (x *index) dropNamespace(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.places, name)
}

// idsIn lists the workloads of a namespace, all of them for "".
func (x *index) idsIn(namespace string) []ID {
	var ids []ID
	for id := range x.subjects {
		if namespace == "" || id.Namespace == namespace {
			ids = append(ids, id)
		}
	}
	return ids
}

// all lists every workload.
func (x *index) all() []ID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.idsIn("")
}

// workload returns what is known of a workload, nil when it is gone.
func (x *index) workload(id ID) *subject {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.subjects[id]
}

// content returns a config object's present content, what its metadata asks for and when its content was seen to change. An
// absent object asks for what its kind does.
func (x *index) content(o workload.Object, key *digest.Key) (digest.Content, cluster.Setting, time.Time) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := x.items[o]
	if s.digested == nil {
		return digest.AbsentIn(o.Kind, key), cluster.SettingOf(o.Kind, &metav1.ObjectMeta{Name: o.Name}), s.changed
	}
	return s.digested.Content, s.digested.Setting, s.changed
}

// pinned returns what the snapshot of that name holds of a config object, in the terms of the object itself; nil when there is
// none of it that is known.
func (x *index) pinned(o workload.Object, name string) *digest.Content {
	x.mu.RLock()
	defer x.mu.RUnlock()
	o.Name, name = name, o.Name
	d := x.items[o].digested
	if d == nil || d.Snapshot == nil || d.Snapshot.Source.Name != name {
		return nil
	}
	return &d.Content
}

// nextRevision is the number for the next snapshot of a config object.
func (x *index) nextRevision(o workload.Object) int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var highest int64
	for s := range x.copies[o] {
		highest = max(highest, x.items[s].digested.Snapshot.Revision)
	}
	return highest + 1
}

// tally keeps the lists of each object's snapshots right when the state of one changes.
func (x *index) tally(before, after *cluster.Digested) {
	if before != nil && before.Snapshot != nil {
		delete(x.copies[before.Snapshot.Source], before.Object)
		if len(x.copies[before.Snapshot.Source]) == 0 {
			delete(x.copies, before.Snapshot.Source)
		}
	}
	if after != nil && after.Snapshot != nil {
		if x.copies[after.Snapshot.Source] == nil {
			x.copies[after.Snapshot.Source] = map[workload.Object]struct{}{}
		}
		x.copies[after.Snapshot.Source][after.Object] = struct{}{}
	}
}

// namespace returns what is known of a namespace.
func (x *index) namespace(name string) place {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.places[name]
}

// consumed reports whether any workload consumes the object, and what is known of it.
func (x *index) consumed(o workload.Object) (*cluster.Digested, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.items[o].digested, x.readers[o] != nil
}

// reads tells of each key of a config object whether any workload reads it.
func (x *index) reads(o workload.Object) func(key string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var all []workload.Keys
	for id := range x.readers[o] {
		for _, u := range x.subjects[id].uses {
			if u.Object == o {
				all = append(all, u.Env, u.Files)
			}
		}
	}
	return func(key string) bool {
		return slices.ContainsFunc(all, func(k workload.Keys) bool { return k.Has(key) })
	}
}

// consumedObjects lists every object that some workload consumes.
func (x *index) consumedObjects() []workload.Object {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.readers))
}
