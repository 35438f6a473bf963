package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

// podPinned is what is kept of a pod whose pins have it read a copy of "prices", and that reads what is named.
func podPinned(t *testing.T, name, reads string) *cluster.PinnedPod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Annotations: map[string]string{v1.AnnotationPins: "configmap/prices=prices-1"},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: reads},
	}}}}}
	kept, err := cluster.MatchPins(pod)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := kept.(*cluster.PinnedPod)
	if !ok {
		t.Fatalf("kept as %T", kept)
	}
	return p
}

func TestAPodThatDoesNotReadWhatItsPinsSayIsToldOfOnceAndCountedUntilItIsGone(t *testing.T) {
	world, informers := newWorld(t, Options{}), &informertest.FakeInformers{}
	w := &podWatch{
		pods: informers, log: logr.Discard(), metrics: world.metrics, announcer: world.announcer,
		sightings: world.sightings, ready: func(ID) {}, off: map[types.NamespacedName]bool{},
	}
	if err := w.watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	pods, err := informers.FakeInformerFor(t.Context(), &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	off := func(when string, want map[string]float64, told int) {
		t.Helper()
		if got := gauged(t, world.registry, "tidemark_pods_off_their_pins"); !maps.Equal(got, want) {
			t.Errorf("%s: %v are off their pins, want %v", when, got, want)
		}
		if len(*world.notes) != told {
			t.Errorf("%s: events %q, want %d", when, *world.notes, told)
		}
	}
	pods.Add(podPinned(t, "right", "prices-1"))
	off("a pod reads its copy", nil, 0)
	first, second := podPinned(t, "first", "prices"), podPinned(t, "second", "prices")
	pods.Add(first)
	off("one reads the source", map[string]float64{"shop": 1}, 1)
	for _, words := range []string{"PinsNotInForce: ", "envFrom", "apply deploy/pin"} {
		if !strings.Contains(slices.Concat(*world.notes, []string{""})[0], words) {
			t.Errorf("the event %q does not say %q", *world.notes, words)
		}
	}
	pods.Update(first, first)
	off("it is seen again", map[string]float64{"shop": 1}, 1)
	pods.Add(second)
	off("another one does", map[string]float64{"shop": 2}, 2)
	pods.Delete(first)
	off("the first is gone", map[string]float64{"shop": 1}, 2)
	ended := second.DeepCopyObject().(*cluster.PinnedPod) //nolint:errcheck // it is one
	ended.Mismatches = nil                                // as is kept of a pod that has ended
	pods.Update(second, ended)
	off("the other has ended", nil, 2)
}

func TestAPodWhosePinsCannotBeReadIsNotToBeDeleted(t *testing.T) {
	world := newWorld(t, Options{})
	w := &podWatch{
		log: logr.Discard(), metrics: world.metrics, announcer: world.announcer,
		sightings: world.sightings, ready: func(ID) {}, off: map[types.NamespacedName]bool{},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Annotations: map[string]string{v1.AnnotationPins: "prices"}}}
	kept, err := cluster.MatchPins(pod)
	if err != nil {
		t.Fatal(err)
	}
	w.saw(kept)
	text := strings.Join(*world.notes, "\n")
	for _, words := range []string{"PinsNotInForce: its pins cannot be read", "correct it on the pod template", "leave the pod"} {
		if !strings.Contains(text, words) {
			t.Errorf("the event %q does not say %q", text, words)
		}
	}
	if strings.Contains(text, "Delete it") {
		t.Errorf("the event says %q", text)
	}
}

func TestAPodThatTakesAnothersNameIsAnotherPod(t *testing.T) {
	world := newWorld(t, Options{})
	w := &podWatch{
		log: logr.Discard(), metrics: world.metrics, announcer: world.announcer,
		sightings: world.sightings, ready: func(ID) {}, off: map[types.NamespacedName]bool{},
	}
	first, second := podPinned(t, "web-0", "prices"), podPinned(t, "web-0", "prices")
	owner := cluster.PodRevision{Owner: statefulSet.GroupVersionKind, Name: "web", Hash: "web-1"}
	first.Revision, first.ReadySince = &owner, noon
	second.UID = "another"
	w.saw(first)
	w.replaced(first, second) // as a watch shows it that was broken meanwhile
	w.saw(second)
	if len(*world.notes) != 2 {
		t.Errorf("events %q, want one of each pod", *world.notes)
	}
	if hashes, _ := world.sightings.available(ID{statefulSet.GroupVersionKind, types.NamespacedName{Namespace: "shop", Name: "web"}}, 0, noon); len(hashes) > 0 {
		t.Errorf("revision %v has a pod that is ready, want none", hashes)
	}
}
