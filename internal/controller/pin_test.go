package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// pins puts a Deployment into mode pin. Known, it has the pins that Tidemark left when "prices" had the value 1.
func (w *world) pins(id ID, known bool) {
	w.t.Helper()
	obj, ok := w.index.workload(id).object.DeepCopyObject().(*appsv1.Deployment)
	if !ok {
		w.t.Fatal("it is no Deployment")
	}
	obj.Annotations, obj.Labels = map[string]string{v1.AnnotationMode: v1.ModePin}, nil
	w.index.putWorkload(deployment, obj)
	if known {
		left := obj.DeepCopy()
		leave(left, w.view(w.index.workload(id)).state)
		w.index.putWorkload(deployment, left)
	}
}

// applies gives "prices" a value in the API and in what was watched of it, and returns the name of a copy of that.
func (w *world) applies(value string) string {
	o := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "prices"}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Data: map[string]string{"KEY": value}}
	w.copier = &cluster.Copier{Client: fake.NewClientBuilder().WithObjects(cm).Build()}
	content := cluster.ContentOfConfigMap(cm)
	w.index.putObject(configMap(o.Name, value, nil), noon.Add(-time.Minute))
	return snapshot.Name(o, content.Whole(o), 0)
}

func TestFirstPinsWaitUntilItIsKnownThatPodsReadThem(t *testing.T) {
	for name, tc := range map[string]struct {
		found *cluster.Pinning
		says  string // in an Event; none for none
	}{
		"nobody has looked yet":     {nil, ""},
		"nothing is installed":      {&cluster.Pinning{Served: true}, "apply deploy/pin"},
		"it may not be looked at":   {&cluster.Pinning{Served: true, Hidden: true}, "the right to get the policy tidemark-pin"},
		"what decides is installed": {&cluster.Pinning{Served: true, Workloads: true}, "neither the policy tidemark-pin"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			id := w.has("pricing")
			first := w.applies("1")
			w.pins(id, false)
			w.pinning.last = tc.found
			for range 2 {
				w.look(id)
			}
			w.wrote(0)
			if said := strings.Join(*w.notes, "\n"); strings.Count(said, "held (pins)") != min(1, len(tc.says)) || !strings.Contains(said, tc.says) {
				t.Errorf("events %q, want once %q", *w.notes, tc.says)
			}
			if tc.says != "" {
				w.metric("tidemark_held", 1, "Deployment", "shop", "pricing", "pins")
			}

			w.pinning.last = &cluster.Pinning{Policy: true}
			w.look(id)
			w.wrote(1)
			if patch := strings.Join(w.api.patches, ""); !strings.Contains(patch, `"tidemark.dev/pins":"configmap/prices=`+first+`"`) {
				t.Errorf("it wrote %s, want the pin %s", patch, first)
			}
			if held := gauged(t, w.registry, "tidemark_held"); len(held) != 0 {
				t.Errorf("held: %v", held)
			}
		})
	}
}

func TestAChangeOfWhatIsPinnedRollsWithItsPinsAlsoWhilePodsDoNotReadThem(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	w.applies("1")
	w.pins(id, true)
	w.pinning.last = &cluster.Pinning{Served: true}
	w.look(id)
	w.wrote(0)

	second := w.applies("2")
	w.look(id)
	w.wrote(1)
	if patch := strings.Join(w.api.patches, ""); !strings.Contains(patch, `"tidemark.dev/pins":"configmap/prices=`+second+`"`) {
		t.Errorf("it wrote %s, want the pin %s", patch, second)
	}
	for _, note := range *w.notes {
		if strings.Contains(note, "Held") {
			t.Errorf("event %q", note)
		}
	}
}

func TestWhatGetsPinsWaitsForTheWebhookThatHasOnlyJustStarted(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	w.applies("1")
	w.pins(id, true)
	w.pinning.last = &cluster.Pinning{Webhook: true}
	w.pinning.Serves()
	w.applies("2")
	w.look(id)
	w.wrote(0)
	if len(*w.notes) > 0 {
		t.Errorf("events %q, for seconds", *w.notes)
	}

	w.pinning.Asked()
	w.look(id)
	w.wrote(1)
}

func TestACopyThatSomebodyDeletedIsMadeAgainWithoutARollout(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	name := w.applies("1")
	w.pins(id, true)
	w.look(id)
	w.wrote(0)
	copied := &corev1.ConfigMap{}
	if err := w.copier.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, copied); err != nil {
		t.Error(err)
	}

	d := configMap(name, "1", nil)
	d.Snapshot = &snapshot.Snapshot{Object: d.Object, Provenance: snapshot.Provenance{Source: workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "prices"}}}
	w.index.putObject(d, noon)
	if ids := w.index.dropObject(d.Object, noon); !slices.Equal(ids, []ID{id}) {
		t.Errorf("the deletion of a copy has %v looked at, want %v", ids, id)
	}
}

func TestACopyThatCannotBeMadeAgainIsSaidOnceAndKeepsNothingElseWaiting(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("pricing")
	w.applies("1")
	w.pins(id, true)
	full := errors.New("the quota is used up")
	w.copier.Client = interceptor.NewClient(w.copier.Client.(client.WithWatch), interceptor.Funcs{ //nolint:errcheck // the fake one is
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return full },
	})
	s := w.index.workload(id)
	edited, ok := s.object.DeepCopyObject().(*appsv1.Deployment)
	if !ok {
		t.Fatal("it is no Deployment")
	}
	edited.Spec.Template.Spec.Containers[0].Image = "app:2"
	w.index.putWorkload(deployment, edited)
	for range 2 {
		if _, err := w.Reconcile(t.Context(), id); !errors.Is(err, full) {
			t.Errorf("got %v, want %v, to try again", err, full)
		}
		w.memory.change(id, func(r *recollection) { r.written = "" })
	}
	w.wrote(2) // the record of the new image, each time
	if len(*w.notes) != 1 || !strings.HasPrefix((*w.notes)[0], "CopyLost: ") || !strings.Contains((*w.notes)[0], full.Error()) {
		t.Errorf("events %q", *w.notes)
	}
}
