package acceptance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// configObject is a ConfigMap or Secret with everything that it ever held.
type configObject struct {
	workload.Object
	immutable bool
	// now is what it holds.
	now data
	// ever is each state that it was put into, in order; being absent is one.
	ever []written
	// absentSince is the round that deleted it.
	absentSince int
	// touched says that its metadata were edited after its content.
	touched bool
}

// written is a state of an object with the time at which it was written, for people.
type written struct {
	at   time.Time
	data data
}

func (o *configObject) String() string { return strings.ToLower(string(o.Kind)) + "/" + o.Name }

// content is what Tidemark digests of a state of the object.
func (o *configObject) content(d data, key *digest.Key) digest.Content {
	switch {
	case d == nil:
		return digest.AbsentIn(o.Kind, key)
	case o.Kind == workload.ConfigMap:
		return digest.OfConfigMap(o.Namespace, o.Name, d.text(), d.binary())
	}
	return digest.OfSecret(key, o.Namespace, o.Name, d.bytes())
}

func (d data) bytes() map[string][]byte {
	out := map[string][]byte{}
	for k, v := range d {
		out[k] = []byte(v)
	}
	return out
}

// binary is what a ConfigMap has as binaryData, and text what it has as data.
func (d data) binary() map[string][]byte {
	if blob, there := d[binaryKey]; there {
		return map[string][]byte{binaryKey: []byte(blob)}
	}
	return nil
}

func (d data) text() data {
	text := maps.Clone(d)
	delete(text, binaryKey)
	return text
}

func (o *configObject) manifest(d data) ctrlclient.Object {
	meta := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
	if o.Kind == workload.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: d.text(), BinaryData: d.binary(), Immutable: &o.immutable}
	}
	return &corev1.Secret{ObjectMeta: meta, Data: d.bytes(), Immutable: &o.immutable}
}

// world is one of the scenes of the tests of evidence: config objects and workloads to which things happen at random. Worlds
// share nodes and controller, and no object.
type world struct {
	*scene
	*land
	objects   []*configObject
	workloads []string // kind/name
	// hot are the objects to which most changes are made for the time being.
	hot    []*configObject
	values int
}

func newWorld(s *scene, l *land) *world {
	w := &world{scene: s, land: l}
	for _, name := range []string{"web", "shared", "files", "calm", "rare", "fixed"} {
		o := &configObject{Object: workload.Object{Kind: workload.ConfigMap, Namespace: s.Namespace, Name: name}}
		o.immutable = name == "fixed"
		w.objects = append(w.objects, o)
		w.create(o, data{"A": w.value(), "B": w.value(), "SPARE": w.value(), binaryKey: w.blob()})
	}
	for _, name := range []string{"creds", "tls", "maybe"} {
		o := &configObject{Object: workload.Object{Kind: workload.Secret, Namespace: s.Namespace, Name: name}}
		w.objects = append(w.objects, o)
		w.create(o, data{"A": w.value(), "B": w.value(), "SPARE": w.value()})
	}
	w.warm()
	return w
}

// value is a value that was never used before; a file that holds it is one of settings.
func (w *world) value() string {
	w.values++
	return fmt.Sprintf("value=%d", w.values)
}

// blob is such a value that is no text.
func (w *world) blob() string { return "\xff\x00" + w.value() }

// warm chooses anew which objects change often. The others have the quiet that it takes to know what restarted containers read.
func (w *world) warm() {
	w.hot = nil
	for _, i := range w.random.Perm(len(w.objects))[:3] {
		w.hot = append(w.hot, w.objects[i])
	}
}

// object picks one that changes often, or rarely another. Where steps are apart, all change alike, and none is made again
// under its name while a node may serve it: what such a node serves is unknown on purpose.
func (w *world) object() *configObject {
	switch {
	case w.apart:
		return pick(w.random, slices.DeleteFunc(slices.Clone(w.objects), func(o *configObject) bool { return o.immutable }))
	case w.random.IntN(20) == 0:
		return pick(w.random, w.objects)
	}
	return pick(w.random, w.hot)
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func (w *world) put(o *configObject, d data) {
	o.now, o.touched = d, false
	o.ever = append(o.ever, written{time.Now(), d})
}

func (w *world) create(o *configObject, d data) {
	w.t.Helper()
	w.put(o, d)
	w.must(w.API.Create(w.t.Context(), o.manifest(d)))
}

func (w *world) remove(o *configObject) {
	w.t.Helper()
	w.put(o, nil)
	o.absentSince = w.round
	w.must(w.API.Delete(w.t.Context(), o.manifest(nil)))
}

// update gives an object other data; one that is immutable is made anew.
func (w *world) update(o *configObject, d data) {
	w.t.Helper()
	if o.immutable {
		w.remove(o)
		w.create(o, d)
		return
	}
	w.put(o, d)
	w.must(w.API.Update(w.t.Context(), o.manifest(d)))
}

// changed is the object's data with one of its keys changed, or come, or gone.
func (w *world) changed(o *configObject, keys ...string) data {
	d := maps.Clone(o.now)
	switch key := pick(w.random, keys); {
	case key == "EXTRA" && d[key] != "":
		delete(d, key)
	case key == binaryKey:
		d[key] = w.blob()
	default:
		d[key] = w.value()
	}
	return d
}

// before is a state in which the object was present, one of the last few.
func (w *world) before(o *configObject) data {
	recent := o.ever[max(0, len(o.ever)-6):]
	for {
		if d := pick(w.random, recent).data; d != nil {
			return d
		}
		recent = o.ever // the first of which was present
	}
}

// events are what may happen to the objects and the pods of the world.
func (w *world) events() []event {
	events := []event{
		{"edit", 22, w.toPresent(w.edit)},
		{"edit-spare", 6, w.toPresent(func(o *configObject) { w.update(o, w.changed(o, "SPARE")) })},
		{"edit-back", 6, w.toPresent(func(o *configObject) { w.update(o, w.before(o)) })},
		{"there-and-back", 6, w.toPresent(w.thereAndBack)},
		{"annotate", 6, w.toPresent(w.annotate)},
		{"delete", 3, w.toPresent(w.remove)},
		{"make-again", 5, w.makeAgain},
		{"replace", 4, w.toPresent(w.replace)},
		{"exit", 18, w.exit},
		{"delete-pod", 5, w.deletePod},
		{"delay", 2, w.delay},
		{"end-delays", 4, w.endDelays},
		{"restart", 4, func() bool { return w.ask("rollout", "restart", w.workload()) }},
		{"undo", 4, func() bool { return w.ask("rollout", "undo", w.workload()) }},
		{"scale", 4, w.scale},
		{"image", 3, func() bool {
			return w.ask("set", "image", w.workload(), fmt.Sprintf("*=tidemark-sample:%d", w.random.IntN(5)))
		}},
	}
	if w.apart {
		return events
	}
	return append(events,
		event{"warm", 3, func() bool { w.warm(); return true }},
		event{"edit-then-exit", 10, w.toPresent(func(o *configObject) { w.edit(o); w.moment(2500); w.exitReader(o) })},
		event{"exit-then-edit", 8, w.toPresent(func(o *configObject) { w.exitReader(o); w.moment(1500); w.edit(o) })},
		event{"delete-pod-then-edit", 6, w.toPresent(func(o *configObject) { w.deletePod(); w.moment(1500); w.edit(o) })},
	)
}

// toPresent lets something happen to an object that is there.
func (w *world) toPresent(happen func(*configObject)) func() bool {
	return func() bool {
		o := w.object()
		if o.now == nil {
			return false
		}
		happen(o)
		return true
	}
}

func (w *world) edit(o *configObject) {
	keys := []string{"A", "A", "B", "EXTRA"}
	if o.Kind == workload.ConfigMap {
		keys = append(keys, binaryKey)
	}
	w.update(o, w.changed(o, keys...))
}

func (w *world) thereAndBack(o *configObject) {
	d := o.now
	w.update(o, w.changed(o, "A"))
	w.moment(400)
	w.update(o, d)
}

func (w *world) annotate(o *configObject) {
	o.touched = true
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, w.steps)
	w.must(w.API.Patch(w.t.Context(), o.manifest(nil), ctrlclient.RawPatch("application/merge-patch+json", []byte(patch))))
}

func (w *world) replace(o *configObject) {
	d := o.now
	if w.random.IntN(2) == 0 {
		d = w.changed(o, "A")
	}
	w.remove(o)
	w.create(o, d)
}

// makeAgain makes an object that was deleted.
func (w *world) makeAgain() bool {
	for _, o := range w.objects {
		if o.now == nil {
			d := w.before(o)
			if w.random.IntN(2) == 0 {
				d = maps.Clone(d)
				d["A"] = w.value()
			}
			w.create(o, d)
			return true
		}
	}
	return false
}

// advance lets one thing happen to the world. Objects do not stay away for ever.
func (w *world) advance() {
	for _, o := range w.objects {
		if o.now == nil && w.round-o.absentSince > w.longest {
			w.create(o, w.before(o))
			w.took("make-again")
			return
		}
	}
	w.choose(w.events())
}
