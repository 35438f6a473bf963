package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// The controller decides on what it watched, and the webhook on what it reads. Of one cluster they must decide the same.
func TestWhatIsWatchedAndWhatIsReadGiveOneDecision(t *testing.T) {
	prices := func(value string, annotations map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prices", Annotations: annotations}, Data: map[string]string{"price": value},
		}
	}
	source := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "prices"}
	copyOf := func(value string) *corev1.ConfigMap {
		cm := prices(value, nil)
		content := cluster.ContentOfConfigMap(cm)
		return snapshot.OfConfigMap(cm, snapshot.Name(source, content.Whole(source), 0), snapshot.Provenance{Source: source, Revision: 1, Time: noon})
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"}, Data: map[string][]byte{"KEY": []byte("k")}}
	inMode := func(mode string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Annotations = map[string]string{v1.AnnotationMode: mode} }
	}
	for name, tc := range map[string]struct {
		workload func(*appsv1.Deployment)
		// before is what the cluster had when Tidemark left its decision on the workload; nil when it did not.
		before  []client.Object
		objects []client.Object
		shop    metav1.ObjectMeta
		system  metav1.ObjectMeta
		// paused is who paused, where both must find it.
		paused string
	}{
		"nothing says a mode": {objects: []client.Object{prices("1", nil)}},
		"the namespace says pin": {
			objects: []client.Object{prices("1", nil)}, shop: metav1.ObjectMeta{Labels: map[string]string{v1.LabelMode: v1.ModePin}},
		},
		"mode roll for the first time": {workload: inMode(v1.ModeRoll), objects: []client.Object{prices("1", nil)}},
		"mode roll, changed": {
			workload: inMode(v1.ModeRoll), before: []client.Object{prices("1", nil)}, objects: []client.Object{prices("2", nil)},
		},
		"mode roll, gone": {workload: inMode(v1.ModeRoll), before: []client.Object{prices("1", nil)}},
		"mode pin, as it was left": {
			workload: inMode(v1.ModePin), before: []client.Object{prices("1", nil)}, objects: []client.Object{prices("1", nil), copyOf("1")},
		},
		"mode pin, changed": {
			workload: inMode(v1.ModePin), before: []client.Object{prices("1", nil)}, objects: []client.Object{prices("2", nil), copyOf("1")},
		},
		"mode pin, changed to what the copy holds": {
			workload: func(d *appsv1.Deployment) {
				inMode(v1.ModePin)(d)
				d.Spec.Template.Annotations = map[string]string{v1.AnnotationPins: "configmap/prices=" + copyOf("1").Name}
			},
			before: []client.Object{prices("2", nil), copyOf("1")}, objects: []client.Object{prices("1", nil), copyOf("1")},
		},
		"mode pin, gone under its copy": {
			workload: inMode(v1.ModePin), before: []client.Object{prices("1", nil)}, objects: []client.Object{copyOf("1")},
		},
		"a copy that is not immutable is none": {
			workload: inMode(v1.ModePin), before: []client.Object{prices("1", nil)},
			objects: []client.Object{prices("2", nil), func() client.Object { c := copyOf("1"); c.Immutable = nil; return c }()},
		},
		"pins that cannot be read": {
			workload: func(d *appsv1.Deployment) {
				inMode(v1.ModePin)(d)
				d.Spec.Template.Annotations = map[string]string{v1.AnnotationPins: "nonsense"}
			},
			objects: []client.Object{prices("1", nil)},
		},
		"an object that is ignored": {
			workload: inMode(v1.ModePin), objects: []client.Object{prices("1", map[string]string{v1.AnnotationIgnore: v1.True})},
		},
		"an object that the program reloads": {
			workload: inMode(v1.ModePin), objects: []client.Object{prices("1", map[string]string{v1.AnnotationTreatAs: v1.TreatAsLive})},
		},
		"an object that restarts": {
			workload: inMode(v1.ModePin), objects: []client.Object{prices("1", map[string]string{v1.AnnotationTreatAs: v1.TreatAsRestart})},
		},
		"a Secret": {
			workload: func(d *appsv1.Deployment) {
				inMode(v1.ModePin)(d)
				d.Annotations[v1.AnnotationExtraSecrets] = "key"
				d.Annotations[v1.AnnotationExtraConfigMaps] = "elsewhere/other"
			},
			objects: []client.Object{prices("1", nil), secret},
		},
		"paused everywhere": {
			workload: inMode(v1.ModePin), objects: []client.Object{prices("1", nil)},
			system: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationPaused: v1.True, v1.AnnotationPausedBy: "me"}},
		},
		"paused on the Rollout that takes its template": {
			workload: func(d *appsv1.Deployment) {
				inMode(v1.ModePin)(d)
				d.Spec.Replicas = new(int32)
			},
			objects: []client.Object{prices("1", nil), rolloutOf("pricing", map[string]string{v1.AnnotationPaused: v1.True, v1.AnnotationPausedBy: "me"})},
			paused:  "on the workload, by me",
		},
		"paused on a Rollout of another template": {
			workload: func(d *appsv1.Deployment) {
				inMode(v1.ModePin)(d)
				d.Spec.Replicas = new(int32)
			},
			objects: []client.Object{prices("1", nil), rolloutOf("another", map[string]string{v1.AnnotationPaused: v1.True})},
		},
		"a mode that a rollback took away": {
			workload: func(d *appsv1.Deployment) { d.Labels = map[string]string{v1.LabelRecordSum: "another"} },
			objects:  []client.Object{prices("1", nil)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := reads("pricing", 1, "prices")
			if tc.workload != nil {
				tc.workload(d)
			}
			shop := &corev1.Namespace{ObjectMeta: tc.shop}
			shop.Name = "shop"
			system := &corev1.Namespace{ObjectMeta: tc.system}
			system.Name = "tidemark-system"
			places := []client.Object{shop, system}
			if tc.before != nil {
				leave(d, seen(t, d, slices.Concat(tc.before, places)).state)
			}
			objects := slices.Concat(tc.objects, places)

			v := seen(t, d, objects)
			f := gathered(t, d, objects)

			if diff := cmp.Diff(stamp.Decide(v.state), stamp.Decide(f.State)); diff != "" {
				t.Errorf("what is watched and what is read differ:\n%s", diff)
			}
			if tc.paused != "" && f.Paused != tc.paused {
				t.Errorf("paused %q, want %q", f.Paused, tc.paused)
			}
			if v.paused != f.Paused || v.optIn != f.LostMode || v.pinned != f.Pinned || v.state.NeedsRevisions() != f.State.NeedsRevisions() {
				t.Errorf("watched: %+v\nread: %+v", v, f)
			}
		})
	}
}

// rolloutOf is a Rollout that takes its template from a Deployment.
func rolloutOf(deployment string, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment},
	}}}
	u.SetGroupVersionKind(cluster.BuiltinKinds()[4].GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("rolling")
	u.SetAnnotations(annotations)
	return u
}

// oneKey is a key that is always the same.
func oneKey(t *testing.T) *digest.Key {
	t.Helper()
	key, err := digest.NewKey(make([]byte, digest.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// seen is the controller's view, of what it watched.
func seen(t *testing.T, d *appsv1.Deployment, objects []client.Object) view {
	t.Helper()
	key := oneKey(t)
	w := newWorld(t, Options{DefaultMode: stamp.Observe, Secrets: true, Key: key})
	w.watcher.synced[workload.Secret] = noon
	transform := cluster.Digest(key)
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Namespace:
			w.index.putNamespace(o, o.Name == "tidemark-system")
		case *unstructured.Unstructured:
			w.index.putWorkload(cluster.BuiltinKinds()[4], o)
		default:
			digested, err := transform(o.DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			kept, ok := digested.(*cluster.Digested)
			if !ok {
				t.Fatalf("got %T", digested)
			}
			w.index.putObject(kept, noon.Add(-time.Hour))
		}
	}
	id, _ := w.index.putWorkload(deployment, d)
	return w.view(w.index.workload(id))
}

// gathered are the facts, of what is read.
func gathered(t *testing.T, d *appsv1.Deployment, objects []client.Object) cluster.Facts {
	t.Helper()
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for _, o := range objects {
		copied, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("a copy of %T is none", o)
		}
		api = api.WithObjects(copied)
	}
	live := &cluster.Live{
		Copier: &cluster.Copier{Client: api.Build(), Key: oneKey(t)}, Namespace: "tidemark-system", DefaultMode: stamp.Observe, Secrets: true,
	}
	f, err := live.Look(t.Context(), deployment, d)
	if err == nil && f.State.Mode != stamp.Observe {
		err = live.Consumed(t.Context(), &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// leave leaves a decision on the workload, with pins named as they would be.
func leave(d *appsv1.Deployment, s stamp.State) {
	decision := cluster.Foresee(s, stamp.Decide(s))
	annotation, sum := stamp.Encode(decision.Record)
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1.AnnotationRecord, annotation)
	metav1.SetMetaDataLabel(&d.ObjectMeta, v1.LabelRecordSum, sum)
	if decision.Action == stamp.WriteStamp {
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, v1.AnnotationConfigHash, decision.Stamp)
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, v1.AnnotationPins, decision.Pins.String())
	}
}
