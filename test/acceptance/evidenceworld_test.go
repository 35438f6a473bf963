package acceptance

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
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
	// absentSince is the step that deleted it.
	absentSince int
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
		return digest.OfConfigMap(o.Namespace, o.Name, d, nil)
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

func (o *configObject) manifest(d data) ctrlclient.Object {
	meta := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
	if o.Kind == workload.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: d, Immutable: &o.immutable}
	}
	return &corev1.Secret{ObjectMeta: meta, Data: d.bytes(), Immutable: &o.immutable}
}

// world is the scene of the test of evidence: config objects and workloads to which things happen at random.
type world struct {
	*scene
	random    *rand.Rand
	objects   []*configObject
	workloads []string // kind/name
	// hot are the objects to which most changes are made for the time being.
	hot  []*configObject
	step int
	// past are the steps so far, for people.
	past     []string
	values   int
	cordoned string
	// cuts are the times for which nodes were cut off, oldest first; the last may be cut off still, since the step cutSince.
	cuts     []cut
	cutSince int
	// down is the step at which a controller is started again; 0 while one runs.
	down int
}

func newWorld(s *scene, random *rand.Rand) *world {
	w := &world{scene: s, random: random}
	for _, name := range []string{"web", "shared", "files", "calm", "rare", "fixed"} {
		o := &configObject{Object: workload.Object{Kind: workload.ConfigMap, Namespace: s.Namespace, Name: name}}
		o.immutable = name == "fixed"
		w.objects = append(w.objects, o)
	}
	for _, name := range []string{"creds", "tls", "maybe"} {
		o := &configObject{Object: workload.Object{Kind: workload.Secret, Namespace: s.Namespace, Name: name}}
		w.objects = append(w.objects, o)
	}
	for _, o := range w.objects {
		w.create(o, data{"A": w.value(), "B": w.value(), "SPARE": w.value()})
	}
	w.warm()
	return w
}

// value is a value that was never used before.
func (w *world) value() string {
	w.values++
	return fmt.Sprintf("value-%d", w.values)
}

// warm chooses anew which objects change often. The others have the quiet that it takes to know what restarted containers read.
func (w *world) warm() {
	w.hot = nil
	for _, i := range w.random.Perm(len(w.objects))[:3] {
		w.hot = append(w.hot, w.objects[i])
	}
}

// object picks one that changes often, or rarely another.
func (w *world) object() *configObject {
	if w.random.IntN(20) == 0 {
		return pick(w.random, w.objects)
	}
	return pick(w.random, w.hot)
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func (w *world) put(o *configObject, d data) {
	o.now = d
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
	o.absentSince = w.step
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
	if key := pick(w.random, keys); key == "EXTRA" && d[key] != "" {
		delete(d, key)
	} else {
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

// event is one of the things that happen.
type event struct {
	name   string
	weight int
	// happen makes it happen, or reports that it cannot now.
	happen func() bool
}

// events are what may happen, to the objects, to the pods and to Tidemark.
func (w *world) events() []event {
	return []event{
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
		{"edit-then-exit", 10, w.toPresent(func(o *configObject) { w.edit(o); w.moment(2500); w.exitReader(o) })},
		{"exit-then-edit", 8, w.toPresent(func(o *configObject) { w.exitReader(o); w.moment(1500); w.edit(o) })},
		{"delete-pod-then-edit", 6, w.toPresent(func(o *configObject) { w.deletePod(); w.moment(1500); w.edit(o) })},
		{"delay", 2, w.delay},
		{"end-delays", 4, w.endDelays},
		{"drain", 2, w.drain},
		{"uncordon", 3, w.uncordon},
		{"cut-off", 1, w.cutOff},
		{"heal", 2, w.heal},
		{"restart", 4, func() bool { return w.ask("rollout", "restart", w.workload()) }},
		{"undo", 4, func() bool { return w.ask("rollout", "undo", w.workload()) }},
		{"scale", 4, w.scale},
		{"image", 3, func() bool {
			return w.ask("set", "image", w.workload(), fmt.Sprintf("*=tidemark-sample:%d", w.random.IntN(5)))
		}},
		{"warm", 3, func() bool { w.warm(); return true }},
		{"stop-controller", 1, w.stop},
		{"kill-controller", 1, w.kill},
	}
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

func (w *world) edit(o *configObject) { w.update(o, w.changed(o, "A", "A", "B", "EXTRA")) }

// moment lets some time pass.
func (w *world) moment(mostMilliseconds int) {
	time.Sleep(time.Duration(w.random.IntN(mostMilliseconds)) * time.Millisecond)
}

func (w *world) thereAndBack(o *configObject) {
	d := o.now
	w.update(o, w.changed(o, "A"))
	w.moment(400)
	w.update(o, d)
}

func (w *world) annotate(o *configObject) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, w.step)
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

// close leaves the lab as it was.
func (w *world) close(ctx context.Context) {
	if w.down == 0 && w.controller != nil {
		if err := w.controller.Stop(); err != nil {
			w.t.Error(err)
		}
	}
	if err := w.Lab.ClearDelays(ctx); err != nil {
		w.t.Error(err)
	}
	if node := w.cutNow(); node != "" {
		if err := w.Lab.Heal(ctx, node); err != nil {
			w.t.Error(err)
		}
	}
	if w.cordoned != "" {
		if _, _, err := w.Lab.Kubectl(ctx, "uncordon", w.cordoned); err != nil {
			w.t.Error(err)
		}
	}
}

// longest is for how many steps an object, or a node, stays away.
const longest = 8

// advance lets one thing happen. Objects, nodes and controllers do not stay away for ever.
func (w *world) advance() string {
	if w.cutNow() != "" && w.step-w.cutSince > longest {
		w.heal()
		return "heal"
	}
	if w.down != 0 && w.step >= w.down {
		w.start()
		return "start-controller"
	}
	for _, o := range w.objects {
		if o.now == nil && w.step-o.absentSince > longest {
			w.create(o, w.before(o))
			return "make-again"
		}
	}
	events := w.events()
	total := 0
	for _, e := range events {
		total += e.weight
	}
	for {
		n := w.random.IntN(total)
		for _, e := range events {
			if n -= e.weight; n < 0 {
				if e.happen() {
					return e.name
				}
				break
			}
		}
	}
}
