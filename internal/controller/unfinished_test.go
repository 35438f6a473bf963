package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

var rolloutKind = cluster.BuiltinKinds()[4]

// canary is a Rollout whose canary of one pod has waited since noon.
func canary(annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"strategy": map[string]any{"canary": map[string]any{"steps": []any{map[string]any{"pause": map[string]any{}}}}},
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app"}}}},
		},
		"status": map[string]any{
			"observedGeneration": "1", "phase": "Paused", "controllerPause": true, "currentPodHash": "new", "stableRS": "old",
			"currentStepIndex": int64(0), "replicas": int64(5), "updatedReplicas": int64(1),
			"pauseConditions": []any{map[string]any{"reason": "CanaryPauseStep", "startTime": noon.Format(time.RFC3339)}},
		},
	}}
	u.SetGroupVersionKind(rolloutKind.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	u.SetUID("u")
	u.SetGeneration(1)
	u.SetResourceVersion("7")
	u.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	u.SetAnnotations(annotations)
	return u
}

func setOf(name, hash string, pods int32) *appsv1.ReplicaSet {
	yes := true
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(noon), Labels: map[string]string{"app": "web", "rollouts-pod-template-hash": hash},
			Annotations:     map[string]string{"rollout.argoproj.io/revision": map[string]string{"new": "2", "old": "1"}[hash]},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Rollout", Name: "web", UID: "u", Controller: &yes}},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &pods}, Status: appsv1.ReplicaSetStatus{Replicas: pods},
	}
}

func canaryPod(ready bool) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-new-1", Labels: map[string]string{"app": "web", "rollouts-pod-template-hash": "new"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-new", UID: "uid-new", Controller: &yes}},
	}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

// watchman is a controller that sees to rollouts, with an API in which the patches of a status are counted.
type watchman struct {
	*world
	rollouts *rollouts
	direct   client.Client
	patches  []string
	refusal  error
}

func newWatchman(t *testing.T, objects ...client.Object) *watchman {
	t.Helper()
	w := &watchman{world: newWorld(t, Options{})}
	newSet, oldSet := setOf("web-new", "new", 1), setOf("web-old", "old", 4)
	newSet.UID, oldSet.UID = "uid-new", "uid-old"
	builder := fake.NewClientBuilder().WithObjects(append(objects, newSet, oldSet)...)
	w.direct = builder.WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, sub string, obj client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
			body, err := p.Data(obj)
			w.patches = append(w.patches, sub+" "+string(body))
			return errors.Join(err, w.refusal)
		},
	}).Build()
	w.reader, w.client, w.options.Direct = w.direct, w.direct, w.direct
	w.rollouts = &rollouts{Controller: w.Controller, interval: time.Minute}
	return w
}

// after moves the clock on, and looks.
func (w *watchman) after(d time.Duration) {
	w.t.Helper()
	clock, ok := w.clock.(*clienttesting.FakeClock)
	if !ok {
		w.t.Fatal("the clock is not a fake one")
	}
	clock.Step(d)
	w.rollouts.look(w.t.Context())
}

func (w *watchman) told() []string {
	w.t.Helper()
	list := &eventsv1.EventList{}
	if err := w.direct.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Reason+" "+e.Note)
	}
	return out
}

func TestAnUnfinishedRolloutIsToldOnceWithItsAge(t *testing.T) {
	w := newWatchman(t)
	w.index.putWorkload(rolloutKind, canary(nil))
	w.after(59 * time.Minute)
	if told := w.told(); len(told) > 0 {
		t.Errorf("before its time it tells %q", told)
	}
	w.after(time.Minute)
	w.after(time.Minute)
	told := w.told()
	if len(told) != 1 || !strings.Contains(told[0], "RolloutUnfinished") || !strings.Contains(told[0], "revision 2 (web-new) has 1 of 5 pods") {
		t.Errorf("it tells %q, want once what is unfinished", told)
	}
	w.metric("tidemark_unfinished_rollout_seconds", 61*60, "Rollout", "shop", "web")

	again := &rollouts{Controller: w.Controller, interval: time.Minute} // another leader
	again.said = map[ID]saidOfRollout{}
	again.look(t.Context())
	if told := w.told(); len(told) != 1 {
		t.Errorf("another leader tells it again: %q", told)
	}

	reader := w.reader
	w.reader = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("the API does not answer")
		},
	})
	w.after(time.Minute)
	w.metric("tidemark_unfinished_rollout_seconds", 62*60, "Rollout", "shop", "web") // as it was seen last
	w.reader = reader

	done := canary(nil)
	if err := unstructured.SetNestedField(done.Object, "new", "status", "stableRS"); err != nil {
		t.Fatal(err)
	}
	w.index.putWorkload(rolloutKind, done)
	w.after(time.Minute)
	if n := w.series("tidemark_unfinished_rollout_seconds"); n != 0 {
		t.Errorf("%d series are left when it is finished", n)
	}
}

// said are the reasons of the Events sent.
func (w *world) said() []string {
	var out []string
	for _, note := range *w.notes {
		reason, _, _ := strings.Cut(note, ":")
		out = append(out, reason)
	}
	return out
}

// series counts those of a metric.
func (w *world) series(name string) int {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return len(f.GetMetric())
		}
	}
	return 0
}

func TestACanaryIsPromotedWhenItAsksForIt(t *testing.T) {
	const asks = v1.AnnotationPromoteAfter
	for name, tc := range map[string]struct {
		annotations map[string]string
		ready       bool
		paused      bool // Tidemark
		refusal     error
		want        int
		says        string
	}{
		"healthy, and its time has come": {map[string]string{asks: "2h"}, true, false, nil, 1, "CanaryPromoted"},
		"it does not ask":                {nil, true, false, nil, 0, ""},
		"it asks in words":               {map[string]string{asks: "soon"}, true, false, nil, 0, ""},
		"its time has not come":          {map[string]string{asks: "4h"}, false, false, nil, 0, ""},
		"a pod is not ready":             {map[string]string{asks: "2h"}, false, false, nil, 0, "CanaryNotPromoted"},
		"Tidemark is paused":             {map[string]string{asks: "2h"}, true, true, nil, 0, "CanaryNotPromoted"},
		"somebody else wrote first":      {map[string]string{asks: "2h"}, true, false, apierrors.NewConflict(schema.GroupResource{}, "web", nil), 1, ""},
		"the right is missing":           {map[string]string{asks: "2h"}, true, false, apierrors.NewForbidden(schema.GroupResource{}, "web", nil), 1, "WriteRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatchman(t, canaryPod(tc.ready))
			w.refusal = tc.refusal
			if tc.paused {
				ns := &metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{v1.AnnotationPaused: v1.True}}
				w.index.putNamespace(ns, false)
			}
			w.index.putWorkload(rolloutKind, canary(tc.annotations))
			w.after(3 * time.Hour)
			if len(w.patches) != tc.want {
				t.Fatalf("it patches %q, want %d", w.patches, tc.want)
			}
			if tc.want > 0 && w.patches[0] != `status {"metadata":{"resourceVersion":"7"},"status":{"pauseConditions":null}}` {
				t.Errorf("it patches %s", w.patches[0])
			}
			said := w.said()
			if strings.Join(said, " ") != tc.says {
				t.Errorf("it says %q, want %q", said, tc.says)
			}
			w.after(time.Minute) // what is in the way is said once
			if again := w.said(); tc.says != "CanaryPromoted" && len(again) > len(said) {
				t.Errorf("it says it again: %q", again)
			}
		})
	}
}

func TestARolloutThatRefersToADeploymentIsSeenToThroughIt(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.has("web")
	referring := canary(nil)
	unstructured.RemoveNestedField(referring.Object, "spec", "template")
	ref := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
	if err := unstructured.SetNestedMap(referring.Object, ref, "spec", "workloadRef"); err != nil {
		t.Fatal(err)
	}
	rollout, _ := w.index.putWorkload(rolloutKind, referring)
	w.look(rollout)
	if said := w.said(); len(said) > 0 {
		t.Errorf("without a template of its own it says %q", said)
	}
	if r := w.rollout(w.index.workload(id)); r.Done || !strings.Contains(r.Stuck, "canary pauses") {
		t.Errorf("the Deployment's rollout is %+v, want that of the Rollout", r)
	}

	paused := referring.DeepCopy()
	paused.SetAnnotations(map[string]string{v1.AnnotationPaused: v1.True})
	w.index.putWorkload(rolloutKind, paused)
	w.changes()
	w.look(id)
	w.wrote(0)

	w.index.putWorkload(rolloutKind, referring)
	w.look(id)
	w.wrote(1)
	w.index.dropWorkload(rollout)
	if len(w.index.referrers) > 0 {
		t.Errorf("it is still known who refers: %v", w.index.referrers)
	}
}
