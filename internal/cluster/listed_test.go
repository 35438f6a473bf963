package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"tidemark.dev/tidemark/internal/digest"
)

func named(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "1"}}
}

// listedByWatch runs a watch through the marks and tells, by name, whether each object counts as listed.
func listedByWatch(t *testing.T, initial bool, events ...watch.Event) map[string]bool {
	t.Helper()
	feed := watch.NewFakeWithChanSize(len(events), false)
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.ConfigMapList{Items: []corev1.ConfigMap{*named("a")}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return feed, nil },
	}
	markListed(lw)
	for _, e := range events {
		feed.Action(e.Type, e.Object)
	}
	w, err := lw.WatchFuncWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &initial})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	got := map[string]bool{}
	for range events {
		e := <-w.ResultChan()
		if e.Type == watch.Bookmark {
			continue
		}
		d := digestOf(t, e.Object)
		got[d.Name] = d.Listed
	}
	return got
}

func digestOf(t *testing.T, obj any) *Digested {
	t.Helper()
	key, err := digest.RandomKey()
	if err != nil {
		t.Fatal(err)
	}
	out, err := Digest(key)(obj)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := out.(*Digested)
	if !ok {
		t.Fatalf("got %T", out)
	}
	if again, _ := Digest(key)(d); again != any(d) {
		t.Error("what is digested already must pass through")
	}
	return d
}

func TestObjectsOfAListAreMarked(t *testing.T) {
	end := named("")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	got := listedByWatch(t, true,
		watch.Event{Type: watch.Added, Object: named("before")},
		watch.Event{Type: watch.Bookmark, Object: named("")}, // a bookmark that ends nothing
		watch.Event{Type: watch.Added, Object: named("still-before")},
		watch.Event{Type: watch.Bookmark, Object: end},
		watch.Event{Type: watch.Added, Object: named("after")},
		watch.Event{Type: watch.Modified, Object: named("before-and-after")},
	)
	for name, want := range map[string]bool{"before": true, "still-before": true, "after": false, "before-and-after": false} {
		if got[name] != want {
			t.Errorf("%s: listed %t, want %t", name, got[name], want)
		}
	}
	if got := listedByWatch(t, false, watch.Event{Type: watch.Added, Object: named("a")}); got["a"] {
		t.Error("an event of a resumed watch counts as listed")
	}
}

func TestAnOrdinaryListIsMarked(t *testing.T) {
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.ConfigMapList{Items: []corev1.ConfigMap{*named("a"), *named("b")}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
	Informers{}.New(lw, &corev1.ConfigMap{}, time.Hour, nil)
	list, err := lw.ListWithContextFunc(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	configMaps, ok := list.(*corev1.ConfigMapList)
	if !ok {
		t.Fatalf("got %T", list)
	}
	for i := range configMaps.Items {
		if d := digestOf(t, &configMaps.Items[i]); !d.Listed || len(d.Annotations) != 0 {
			t.Errorf("%s: listed %t, annotations %v", d.Name, d.Listed, d.Annotations)
		}
	}
}

func TestDigestedKeepsNoData(t *testing.T) {
	cm := named("a")
	cm.Data = map[string]string{"KEY": "marker-in-the-data"}
	cm.Annotations = map[string]string{"tidemark.dev/treat-as": "live", "else": "marker-in-an-annotation"}
	yes := true
	cm.Immutable = &yes
	d := digestOf(t, cm)
	if !d.Setting.Live() || len(d.Annotations) != 0 || !d.Immutable {
		t.Errorf("got setting %v, annotations %v, immutable %t", d.Setting, d.Annotations, d.Immutable)
	}
	if _, ok := d.Content.Data["KEY"]; !ok || !d.Content.Present {
		t.Errorf("got content %v", d.Content)
	}
}
