package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// api takes patches; with inert it changes nothing by them, as where a webhook takes every annotation away again. With prunes
// it keeps nothing but metadata, as where a definition knows nothing of the rest.
type api struct {
	client.Client
	inert, prunes bool
	// denied is why nothing may be listed; nil when it may, and nothing is there.
	denied error
	// patches are those taken, by name.
	patches []string
}

func (a *api) Patch(_ context.Context, obj client.Object, p client.Patch, _ ...client.PatchOption) error {
	body, err := p.Data(obj)
	if err != nil {
		return err
	}
	a.patches = append(a.patches, obj.GetName()+" "+string(body))
	if u, ok := obj.(*unstructured.Unstructured); ok && !a.prunes {
		if err := json.Unmarshal(body, &u.Object); err != nil {
			return err
		}
	}
	obj.SetResourceVersion(a.version())
	if a.inert {
		obj.SetResourceVersion("1")
	}
	return nil
}

// version is the resourceVersion that the last patch left.
func (a *api) version() string { return strconv.Itoa(1000 + len(a.patches)) }

func (a *api) List(context.Context, client.ObjectList, ...client.ListOption) error { return a.denied }

// notes are the Events sent.
type notes []string

func (n *notes) Eventf(_, _ runtime.Object, _, reason, _, _ string, args ...any) {
	*n = append(*n, reason+": "+fmt.Sprint(args...))
}

// world is a controller that knows all there is, and what it did.
type world struct {
	*Controller
	t        *testing.T
	api      *api
	notes    *notes
	registry *prometheus.Registry
}

func newWorld(t *testing.T, o Options) *world {
	w := &world{t: t, api: &api{}, notes: &notes{}, registry: prometheus.NewRegistry()}
	metrics, err := NewMetrics(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	o.Namespace = "tidemark-system"
	clock := clocktesting.NewFakeClock(noon)
	w.Controller = &Controller{
		options: o, client: w.api, reader: w.api, clock: clock, log: logr.Discard(), index: newIndex(), releases: newReleases(),
		metrics: metrics, announcer: announcer{w.notes}, memory: newMemory(), sightings: newSightings(), slots: newSlots(o.MaxRolling, time.Hour),
		pinning: &Pinning{clock: clock, came: func() {}, last: &cluster.Pinning{Policy: true}},
	}
	w.watcher = &watcher{clock: clock, namespaces: true, synced: map[workload.ObjectKind]time.Time{workload.ConfigMap: noon}}
	return w
}

// has puts a Deployment in mode roll that Tidemark knows already, reading "prices" with the value 1.
func (w *world) has(name string) ID {
	d := configMap("prices", "1", nil)
	w.index.putObject(d, noon.Add(-time.Hour))
	obj := reads(name, 1, "prices")
	obj.ResourceVersion = "1"
	obj.Annotations = map[string]string{v1.AnnotationMode: v1.ModeRoll}
	_, uses, _ := cluster.ConsumptionOf("shop", nil, &obj.Spec.Template)
	annotation, sum := stamp.Encode(stamp.Decide(stamp.State{
		Namespace: "shop", Mode: stamp.Roll, Images: []string{"app:1"}, Objects: []stamp.Object{{Use: uses[0], Applied: d.Content}},
	}).Record)
	obj.Annotations[v1.AnnotationRecord], obj.Labels = annotation, map[string]string{v1.LabelRecordSum: sum}
	id, _ := w.index.putWorkload(deployment, obj)
	return id
}

// changes gives "prices" another value, long enough ago to have settled.
func (w *world) changes() { w.index.putObject(configMap("prices", "2", nil), noon.Add(-time.Minute)) }

func (w *world) look(id ID) {
	w.t.Helper()
	if _, err := w.Reconcile(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
}

// metric fails the test unless the series of the metric with these values of its labels has the value.
func (w *world) metric(name string, want float64, labels ...string) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() != name || !slices.Equal(slices.Sorted(slices.Values(values)), slices.Sorted(slices.Values(labels))) {
				continue
			}
			if got := m.GetCounter().GetValue() + m.GetGauge().GetValue(); got != want {
				w.t.Errorf("%s of %q is %v, want %v", name, labels, got, want)
			}
			return
		}
	}
	w.t.Errorf("there is no %s of %q", name, labels)
}

func (w *world) wrote(want int) {
	w.t.Helper()
	if len(w.api.patches) != want {
		w.t.Errorf("%d writes, want %d: %v", len(w.api.patches), want, w.api.patches)
	}
}

func TestAChangeIsOneWrite(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	w.look(id)
	w.wrote(0)
	w.changes()
	w.look(id)
	w.look(id) // the write has not come back
	w.wrote(1)
	if rolling, _ := w.slots.queue.Len(); rolling != 1 {
		t.Errorf("%d roll, want 1", rolling)
	}
}

func TestNothingIsWrittenBeforeNamespacesAreKnown(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	w.changes()
	w.watcher.namespaces = false
	w.look(id)
	w.wrote(0)
	w.watcher.namespaces = true
	w.look(id)
	w.wrote(1)
}

func TestNothingIsWrittenToWhatIsBeingDeleted(t *testing.T) {
	now := metav1.NewTime(noon)
	for name, end := range map[string]func(w *world, id ID){
		"the workload": func(w *world, id ID) {
			obj, ok := w.index.workload(id).object.DeepCopyObject().(*appsv1.Deployment)
			if !ok {
				t.Fatal("it is no Deployment")
			}
			obj.DeletionTimestamp = &now
			w.index.putWorkload(deployment, obj)
		},
		"its namespace": func(w *world, _ ID) {
			ns := namespace("shop", nil)
			ns.DeletionTimestamp = &now
			if len(w.index.putNamespace(ns, false)) != 1 {
				t.Error("it must matter to the workload")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			id := w.has("pricing")
			w.changes()
			end(w, id)
			w.look(id)
			w.wrote(0)
		})
	}
}

func TestAWriteWithoutEffectIsSaidOnceAndTriedAgain(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	w.changes()
	w.api.inert = true
	for range 2 {
		if _, err := w.Reconcile(t.Context(), id); err == nil {
			t.Error("no error, so nobody would try again")
		}
	}
	if len(*w.notes) != 1 || !strings.Contains((*w.notes)[0], "WriteRefused") {
		t.Errorf("events %v, want the write's refusal once", *w.notes)
	}
	w.api.inert = false
	w.look(id)
	w.wrote(3)
}

func TestAStampThatGetsLostIsSaidOnceAndNotFoughtFor(t *testing.T) {
	w := newWorld(t, Options{MaxRolling: 1})
	first, second := w.has("first"), w.has("second")
	w.changes()
	w.api.prunes = true
	w.look(first)
	w.wrote(1)
	w.metric("tidemark_write_errors_total", 1, "Deployment", "stamplost")
	if len(*w.notes) != 1 || !strings.Contains((*w.notes)[0], "StampLost") || !strings.Contains((*w.notes)[0], "spec.template.metadata") {
		t.Errorf("events %v, want that the stamp got lost, with where", *w.notes)
	}
	w.comesBack(first) // without the stamp
	w.look(first)
	w.wrote(2) // the record, by which the template is one without a stamp
	if rolling, _ := w.slots.queue.Len(); rolling != 0 {
		t.Errorf("%d roll, want none: nobody else may wait for it", rolling)
	}
	w.look(second)
	if n := len(*w.notes); n != 2 {
		t.Errorf("%d events, want one for each workload", n)
	}
}

func TestPinsThatGetLostAreNotAskedForAgainAndAgain(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	obj, ok := w.index.workload(id).object.DeepCopyObject().(*appsv1.Deployment)
	if !ok {
		t.Fatal("it is no Deployment")
	}
	obj.Annotations[v1.AnnotationMode] = v1.ModePin // and so it wants its first pins
	w.index.putWorkload(deployment, obj)
	w.memory.change(id, func(r *recollection) { r.stampLost = true })
	for range 3 {
		w.look(id)
	}
	w.wrote(0)
}

func TestARevisionWithAnAvailablePodIsNotedByOneWrite(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	ready := func(pod, hash string) {
		w.sightings.saw(&cluster.PinnedPod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod, UID: types.UID(pod)}, ReadySince: noon.Add(-time.Minute),
			Revision: &cluster.PodRevision{Owner: id.GVK, Name: "pricing", Hash: hash},
		})
	}
	w.look(id)
	w.wrote(0)
	for pod, hash := range map[string]string{"a": "one", "b": "one", "c": "two"} {
		ready(pod, hash)
	}
	w.look(id)
	w.wrote(1)
	if !strings.Contains(w.api.patches[0], `"tidemark.dev/seen-available":"one,two"`) || strings.Contains(w.api.patches[0], "spec") {
		t.Errorf("it wrote %s", w.api.patches[0])
	}
	w.look(id) // the watch has not shown it yet
	w.comesBack(id)
	w.look(id)
	w.wrote(1)
}

func TestThatRevisionsMayNotBeReadIsSaidOnce(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	obj, ok := w.index.workload(id).object.DeepCopyObject().(*appsv1.Deployment)
	if !ok {
		t.Fatal("it is no Deployment")
	}
	obj.Spec.Template.Annotations = map[string]string{v1.AnnotationConfigHash: "somebody's"}
	w.index.putWorkload(deployment, obj)
	w.api.denied = apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "replicasets"}, "", nil)
	for range 2 {
		if _, err := w.Reconcile(t.Context(), id); err == nil {
			t.Error("no error, so nobody would try again")
		}
	}
	if len(*w.notes) != 1 || !strings.Contains((*w.notes)[0], "ReadRefused") || !strings.Contains((*w.notes)[0], "replicasets") {
		t.Errorf("events %v, want one that names the right", *w.notes)
	}
	w.metric("tidemark_held", 1, "Deployment", "shop", "pricing", "unread")
	w.api.denied = nil
	w.look(id)
	w.wrote(1)
}

// comesBack lets the watch show a workload as the last patch left its metadata.
func (w *world) comesBack(id ID) {
	w.t.Helper()
	obj, ok := w.index.workload(id).object.DeepCopyObject().(*appsv1.Deployment)
	if !ok {
		w.t.Fatal("it is no Deployment")
	}
	_, body, _ := strings.Cut(w.api.patches[len(w.api.patches)-1], " ")
	patched := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal([]byte(body), patched); err != nil {
		w.t.Fatal(err)
	}
	obj.ResourceVersion = w.api.version()
	if patched.Labels != nil {
		obj.Labels = patched.Labels
	}
	maps.Copy(obj.Annotations, patched.Annotations)
	w.index.putWorkload(deployment, obj)
}

func TestTheSchedulerThatWaveTookAwayComesBackWithWhateverElseIsWanted(t *testing.T) {
	const restores, stamps, records = `"schedulerName":"gpu"`, `"tidemark.dev/config-hash"`, `"tidemark.dev/record"`
	for name, tc := range map[string]struct {
		state func(w *world, obj *appsv1.Deployment)
		want  []string // of the only patch; none for none
	}{
		"it would get pins, which are not in force": {func(w *world, obj *appsv1.Deployment) {
			obj.Annotations[v1.AnnotationMode] = v1.ModePin
			w.pinning.last = &cluster.Pinning{}
		}, []string{restores}},
		"nothing else is wanted": {func(*world, *appsv1.Deployment) {}, []string{restores}},
		"it is not known yet": {func(_ *world, obj *appsv1.Deployment) {
			delete(obj.Annotations, v1.AnnotationRecord)
			delete(obj.Labels, v1.LabelRecordSum)
		}, []string{restores, records}},
		"its configuration changed a moment ago": {func(w *world, _ *appsv1.Deployment) {
			w.index.putObject(configMap("prices", "2", nil), noon)
		}, []string{restores, records, stamps}},
		"what it requires is missing": {func(w *world, _ *appsv1.Deployment) {
			w.index.dropObject(configMap("prices", "", nil).Object, noon)
		}, nil},
		"it is paused":   {func(_ *world, obj *appsv1.Deployment) { obj.Annotations[v1.AnnotationPaused] = v1.True }, nil},
		"it is observed": {func(_ *world, obj *appsv1.Deployment) { obj.Annotations[v1.AnnotationMode] = v1.ModeObserve }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{}
			o.Pace.Settle = time.Minute
			w := newWorld(t, o)
			id := w.has("pricing")
			obj, ok := w.index.workload(id).object.DeepCopyObject().(*appsv1.Deployment)
			if !ok {
				t.Fatal("it is no Deployment")
			}
			obj.Annotations[v1.WaveOptIn], obj.Annotations[v1.WaveSchedulingDisabled] = v1.True, "gpu"
			obj.Spec.Template.Spec.SchedulerName = v1.WaveSchedulerInvalid
			tc.state(w, obj)
			w.index.putWorkload(deployment, obj)
			w.look(id)
			w.wrote(min(1, len(tc.want)))
			for _, part := range []string{restores, records, stamps, `"` + v1.WaveSchedulingDisabled + `":null`} {
				want := slices.Contains(tc.want, part) || len(tc.want) > 0 && strings.HasSuffix(part, ":null")
				if got := strings.Contains(strings.Join(w.api.patches, ""), part); got != want {
					t.Errorf("the patch has %s: %v, want %v", part, got, want)
				}
			}
		})
	}
}

func TestWhoWaitsForAMissingObjectKeepsNoOneElseWaiting(t *testing.T) {
	w := newWorld(t, Options{MaxRolling: 1})
	first, second := w.has("first"), w.has("second")
	w.changes()
	w.look(first)
	w.look(second)
	w.wrote(1)
	w.index.dropObject(configMap("prices", "", nil).Object, noon.Add(-time.Minute))
	w.look(second)
	if _, waiting := w.slots.queue.Len(); waiting != 0 {
		t.Errorf("%d wait for a slot, want none", waiting)
	}
}

func TestALookThatOutlivedItsWorkloadLeavesNothingBehind(t *testing.T) {
	w := newWorld(t, Options{MaxRolling: 1})
	id := w.has("pricing")
	w.changes()
	w.look(id)
	w.index.dropWorkload(id)
	w.look(id)
	if rolling, _ := w.slots.queue.Len(); rolling != 0 || len(w.memory.of) != 0 {
		t.Errorf("%d roll and %v is remembered, want nothing", rolling, w.memory.of)
	}
}

func TestAWorkloadFromTheFutureIsRecordedAllTheSame(t *testing.T) {
	o := Options{DefaultMode: stamp.Roll}
	o.Pace.Settle = 2 * time.Second
	for name, tc := range map[string]struct {
		created time.Duration
		writes  int
	}{
		"just made":                 {-time.Second, 0},
		"by a clock a little ahead": {time.Second, 0},
		"by a clock far ahead":      {time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, o)
			w.index.putObject(configMap("prices", "1", nil), noon)
			obj := reads("pricing", 1, "prices")
			obj.ResourceVersion, obj.CreationTimestamp = "1", metav1.NewTime(noon.Add(tc.created))
			id, _ := w.index.putWorkload(deployment, obj)
			w.look(id)
			w.wrote(tc.writes)
		})
	}
}

func TestAnEventIsNeverLongerThanTheAPITakes(t *testing.T) {
	n := &notes{}
	announcer{n}.problem(&subject{object: reads("pricing", 1)}, strings.Repeat("ä", 2000))
	note := strings.TrimPrefix((*n)[0], "InvalidConfiguration: ")
	if len(note) > maxNote || len(note) < maxNote-utf8.UTFMax || !utf8.ValidString(note) {
		t.Errorf("%d bytes, valid %t", len(note), utf8.ValidString(note))
	}
}
