package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
)

// leaseReader reads the Lease that one holds, or cannot.
type leaseReader struct {
	client.Reader
	holder string
}

func (r leaseReader) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	into, ok := obj.(*coordinationv1.Lease)
	if !ok || r.holder == "" {
		return errors.New("no answer")
	}
	lease(r.holder, noon).DeepCopyInto(into)
	return nil
}

func newHistorian(t *testing.T) (*historian, *clocktesting.FakeClock) {
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(noon)
	c := &Controller{clock: clock, log: logr.Discard(), index: newIndex(), metrics: metrics}
	c.options.RenewDeadline = 10 * time.Second
	h := c.newHistorian(newSigns(clock))
	h.synced = func(workload.ObjectKind) bool { return true }
	h.watched = func(workload.ObjectKind) time.Time { return noon.Add(-time.Hour) }
	h.leading, h.holder = true, "me"
	return h, clock
}

func TestAnObjectThatIsKnownIsNotMetAnew(t *testing.T) {
	h, clock := newHistorian(t)
	id, fresh := h.index.putWorkload(deployment, reads("pricing", 1, "prices"))
	h.follow(fresh, clock.Now())
	h.takeDirty()
	for _, step := range []func() []workload.Object{
		func() []workload.Object { // the template was edited
			_, fresh := h.index.putWorkload(deployment, reads("pricing", 2, "prices"))
			return fresh
		},
		func() []workload.Object { // the only reader was made again
			h.index.dropWorkload(id)
			_, fresh := h.index.putWorkload(deployment, reads("pricing", 1, "prices"))
			return fresh
		},
		h.index.consumedObjects,
	} {
		clock.Step(time.Minute)
		h.follow(step(), clock.Now())
	}
	log := h.logs[configMap("prices", "", nil).Object]
	if dirty, _ := h.takeDirty(); len(log.Versions) != 1 || len(dirty) != 0 {
		t.Errorf("it has %d versions, want the one, without another write", len(log.Versions))
	}
}

func TestEditsOfKeysThatNoWorkloadReadsPushNothingOut(t *testing.T) {
	h, clock := newHistorian(t)
	d := reads("pricing", 1)
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "INTERVAL", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "prices"}, Key: "interval"},
	}}}
	_, fresh := h.index.putWorkload(deployment, d)
	for i := range 3 * history.MaxVersions {
		clock.Step(time.Minute)
		seen := configMap("prices", "", nil)
		seen.UID, seen.ResourceVersion = "u", fmt.Sprint(i)
		seen.Content = digest.OfConfigMap("shop", "prices", map[string]string{"interval": "10m", "comment": fmt.Sprint(i)}, nil)
		h.saw(fresh[0], look{at: clock.Now(), digested: seen})
	}
	log := h.logs[fresh[0]]
	if !log.Dropped.IsZero() || !log.Versions[0].Seen.Equal(noon.Add(time.Minute)) {
		t.Errorf("it forgot what was before %v", log.Dropped)
	}
}

func TestAnObjectFromTheLeaderBeforeIsMetOnce(t *testing.T) {
	h, clock := newHistorian(t)
	_, fresh := h.index.putWorkload(deployment, reads("pricing", 1, "prices"))
	o := fresh[0]
	old := &history.Log{Object: o}
	old.Observe(h.observation(o, look{at: noon.Add(-time.Hour)}))
	h.logs[o], h.unseen[o] = old, true
	for range 2 {
		h.follow(fresh, clock.Now())
	}
	if n := len(h.logs[o].Versions); n != 2 || !h.logs[o].Versions[1].Gap {
		t.Errorf("it has %d versions, want two with a gap: nobody watched in between", n)
	}
}

func TestOnlyALeaderWritesHistory(t *testing.T) {
	for name, tc := range map[string]struct {
		silence time.Duration
		holder  string
		want    bool
	}{
		"the Lease was renewed of late":            {5 * time.Second, "other", true},
		"the Lease is still its own":               {time.Minute, "me", true},
		"it was frozen, and another leads":         {time.Minute, "other", false},
		"it was cut off, and cannot find out":      {time.Minute, "", false},
		"the Lease was given up in the time since": {time.Minute, "me-before", false},
	} {
		t.Run(name, func(t *testing.T) {
			h, clock := newHistorian(t)
			h.reader = leaseReader{holder: tc.holder}
			h.signs.saw(lease("me", noon))
			clock.Step(tc.silence)
			if got := h.flush(t.Context()); got != tc.want {
				t.Errorf("it writes: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestANamespaceThatIsGoneHasItsHistoryLookedAt(t *testing.T) {
	h, _ := newHistorian(t)
	h.shards["shop"] = 1
	h.ended("elsewhere")
	h.ended("shop")
	if got, _ := h.takeDirty(); len(got) != 1 || got[0] != "shop" {
		t.Errorf("to write are %v, want that of shop", got)
	}
}

func TestTheHistoryOfANamespaceThatEndedWhileNobodyLedGoesAtTheNextStart(t *testing.T) {
	h, _ := newHistorian(t)
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "there"}}}
	for _, ns := range []string{"there", "ended"} {
		log := history.Log{Object: workload.Object{Kind: workload.ConfigMap, Namespace: ns, Name: "prices"}}
		log.Observe(history.Observation{At: noon, Content: digest.OfConfigMap(ns, "prices", map[string]string{"a": "b"}, nil), UID: "1", ResourceVersion: "1"})
		shards, err := history.Encode([]history.Log{log})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: shardName(ns, 0), Labels: map[string]string{v1.LabelHistory: ns}}, Data: shards[0],
		})
	}
	led := lease("me", noon)
	led.Namespace, led.Name = h.namespace, v1.LeaseLeader
	api := fake.NewClientBuilder().WithScheme(historyScheme(t)).WithObjects(append(objects, led)...).Build()
	h.client, h.reader = api, api
	h.signs.saw(led)
	if err := errors.Join(h.load(t.Context()), h.missEnded(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !h.flush(t.Context()) {
		t.Error("it was not written")
	}
	left := &corev1.ConfigMapList{}
	if err := api.List(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 1 || left.Items[0].Name != shardName("there", 0) {
		t.Errorf("there are %d histories, want that of the namespace that is there: %v", len(left.Items), left.Items)
	}
}

func TestTheLeaseSaysSinceWhenTheHistoryCannotBeWritten(t *testing.T) {
	h, clock := newHistorian(t)
	led := lease("me", noon)
	led.Namespace, led.Name = h.namespace, v1.LeaseLeader
	var refusal error
	api := fake.NewClientBuilder().WithScheme(historyScheme(t)).WithObjects(led).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if refusal != nil {
				return refusal
			}
			return c.Apply(ctx, obj, opts...)
		},
	}).Build()
	h.client, h.reader = api, api
	h.signs.saw(led)
	unsaved := func() time.Time {
		t.Helper()
		now := &coordinationv1.Lease{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(led), now); err != nil {
			t.Fatal(err)
		}
		return cluster.UnsavedSince(now)
	}
	flushes := func(want bool, since time.Time) {
		t.Helper()
		h.signs.saw(lease("me", clock.Now()))
		if got := h.flush(t.Context()); got != want {
			t.Errorf("all is written: %t, want %t", got, want)
		}
		if got := unsaved(); !got.Equal(since) {
			t.Errorf("the Lease says that it is not since %v, want %v", got, since)
		}
	}
	_, fresh := h.index.putWorkload(deployment, reads("pricing", 1, "prices"))
	h.follow(fresh, clock.Now())
	flushes(true, time.Time{})

	refusal = errors.New("a webhook does not answer")
	for _, value := range []string{"b", "a"} {
		clock.Step(time.Minute)
		h.saw(fresh[0], look{at: clock.Now(), digested: configMap("prices", value, map[string]string{"a": value})})
		flushes(false, noon.Add(time.Minute))
	}

	// The next leader cannot know what was seen since then, and can write.
	next, _ := newHistorian(t)
	next.client, next.reader = api, api
	next.signs.saw(lease("me", clock.Now()))
	if err := next.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next.unwatched.After(noon.Add(time.Minute)) {
		t.Errorf("it takes the time until %v for watched", next.unwatched)
	}
	refusal = nil
	h = next
	flushes(true, time.Time{})
}

func TestWhatIsSeenWhileAWriteFailsIsNotForgotten(t *testing.T) {
	h, clock := newHistorian(t)
	led := lease("me", noon)
	led.Namespace, led.Name = h.namespace, v1.LeaseLeader
	_, fresh := h.index.putWorkload(deployment, reads("pricing", 1, "prices"))
	h.follow(fresh, clock.Now())
	h.takeDirty()
	h.dirty["shop"] = true // as where only values are to be written
	api := fake.NewClientBuilder().WithScheme(historyScheme(t)).WithObjects(led).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			h.saw(fresh[0], look{at: clock.Now(), digested: configMap("prices", "b", nil)})
			return errors.New("a webhook does not answer")
		},
	}).Build()
	h.client, h.reader = api, api
	for range 2 {
		h.signs.saw(lease("me", clock.Now()))
		if h.flush(t.Context()) {
			t.Error("all is written")
		}
	}
	now := &coordinationv1.Lease{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(led), now); err != nil || !cluster.UnsavedSince(now).Equal(noon) {
		t.Errorf("the Lease says that it is not written since %v, %v", cluster.UnsavedSince(now), err)
	}
}

func historyScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}
