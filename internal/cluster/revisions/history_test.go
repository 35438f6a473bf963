package revisions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/podtemplate"
	"tidemark.dev/tidemark/internal/revision"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

func target(kind, name string) cluster.Target {
	k, err := cluster.FindKind(cluster.BuiltinKinds(), kind, nil)
	if err != nil {
		panic(err)
	}
	return cluster.Target{Kind: k, Namespace: "shop", Name: name}
}

// newAPI is a cluster in memory, which refuses the requests that are named: "list pods".
func newAPI(t *testing.T, forbidden ...string) client.Client {
	t.Helper()
	data, err := os.ReadFile("testdata/revisions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := runtime.NewScheme() // of its own, for the Rollouts are added to it
	if err := scheme.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(known)
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		u := &unstructured.Unstructured{}
		text, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = u.UnmarshalJSON(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		builder.WithObjects(u)
	}
	refuse := func(verb string, obj runtime.Object) error {
		gvk, err := apiutil.GVKForObject(obj, known)
		if err != nil {
			return err
		}
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		if resource := cluster.Plural(gvk); slices.Contains(forbidden, verb+" "+resource) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
		}
		return nil
	}
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := refuse("get", obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := refuse("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

func historyOf(t *testing.T, a client.Client, kind, name string) *History {
	t.Helper()
	c := cluster.ConnectionOf(a, func() time.Time { return time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC) })
	h, err := HistoryOf(t.Context(), c, target(kind, name), stamp.Observe)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// told words revisions: number, name, images, pods, availability and reach.
func told(h *History) []string {
	var out []string
	for _, r := range h.Revisions {
		text := fmt.Sprintf("%d %s %s %d/%d/%d %s %s", r.Number, r.Name, revision.Images(r.Template)[0].Image,
			r.Pods.All, r.Pods.Ready, r.Pods.Available, r.Availability, r.Reached(h.Copies).Reach)
		if r.Current {
			text += " current"
		}
		out = append(out, text)
	}
	return out
}

func TestHistoryOfEachKind(t *testing.T) {
	for name, want := range map[string][]string{
		"deployment/web": {
			"2 web-b web:2 2/2/1 available out-of", // the name of its copy belongs to another object's
			"3 web-a web:1 0/0/0 available in-full",
			"4 web-c web:3 0/0/0 never not-pinned",
			"5 web-d web:4 0/0/0 unknown out-of current",
		},
		"statefulset/db": {
			"1 db-1 db:1 0/0/0 available in-full",
			"2 db-2 db:2 1/1/0 unknown in-full current",
		},
		"rollout/canary": {
			"1 canary-f1 canary:1 3/3/3 available in-full",
			"2 canary-f2 canary:2 1/0/0 unknown in-full current",
		},
		"rollout/referring": {
			"1 referring-g1 referred:1 0/0/0 unknown in-full",
			"2 referring-g2 referred:2 2/2/2 available in-full current",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, name, _ := strings.Cut(name, "/")
			h := historyOf(t, newAPI(t), kind, name)
			if diff := cmp.Diff(want, told(h)); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
			if h.Mode != stamp.Roll {
				t.Errorf("mode %s, want that of the namespace", h.Mode)
			}
		})
	}
}

func TestHistoryTellsWhatTheRevisionsOfADeploymentSay(t *testing.T) {
	h := historyOf(t, newAPI(t), "deployment", "web")
	r, err := revision.Find(h.Revisions, 3)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cause != "first" || r.Stamp() != "s1" || len(r.Former) != 1 || r.Former[0] != 1 || r.Evidence != "Tidemark saw an available pod of it" {
		t.Errorf("revision %+v", r)
	}
	copied := workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "config-one"}
	if c := h.Copies.Of(copied); c.State != revision.CopyThere || c.Revision != 1 {
		t.Errorf("its copy: %+v", c)
	}
}

func TestWhatMayNotBeReadIsUnknown(t *testing.T) {
	h := historyOf(t, newAPI(t, "get namespaces", "list pods"), "statefulset", "db")
	if want := "2 db-2 db:2 0/0/0 unknown in-full current"; told(h)[1] != want || h.Revisions[1].Pods.Known {
		t.Errorf("%q, pods known %t; want %q and not known", told(h)[1], h.Revisions[1].Pods.Known, want)
	}
	if len(h.Remarks) != 2 {
		t.Errorf("remarks %q, want two", h.Remarks)
	}
	h = historyOf(t, newAPI(t, "get configmaps"), "deployment", "web")
	if reach := h.Revisions[1].Reached(h.Copies).Reach; reach != revision.ReachOpen {
		// The workload itself could be read, so this is about copies alone.
		t.Errorf("reach %s, want unknown", reach)
	}
	_, err := HistoryOf(t.Context(), cluster.ConnectionOf(newAPI(t, "list replicasets"), time.Now), target("deployment", "web"), "")
	if err == nil || !strings.Contains(err.Error(), "missing the right to list replicasets in namespace shop") {
		t.Errorf("without the right to its revisions: %v", err)
	}
}

func TestATemplateThatNoRevisionHasIsTheCurrentOne(t *testing.T) {
	a := newAPI(t)
	d := &appsv1.Deployment{}
	fetch(t, a, d, "web")
	d.Spec.Template.Spec.Containers[0].Image = "web:5"
	if err := a.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	got := told(historyOf(t, a, "deployment", "web"))
	if want := "0  web:5 0/0/0 unknown out-of current"; len(got) != 5 || got[4] != want {
		t.Errorf("revisions %q, want %q last", got, want)
	}
}

func TestTheRevisionOfARolloutIsKnownBeforeItsControllerSaysSo(t *testing.T) {
	a := newAPI(t)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(cluster.ArgoRollout)
	fetch(t, a, u, "canary")
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	containers := []any{map[string]any{"name": "app", "image": "canary:1"}}
	_ = unstructured.SetNestedSlice(template, containers, "spec", "containers")
	_ = unstructured.SetNestedMap(u.Object, template, "spec", "template")
	_ = unstructured.SetNestedField(u.Object, "2", "status", "observedGeneration")
	if err := a.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if got := told(historyOf(t, a, "rollout", "canary")); len(got) != 2 || !strings.HasSuffix(got[0], "in-full current") {
		t.Errorf("revisions %q, want the first to be the current one", got)
	}
}

func TestAStatefulSetThatIsStuckSaysWhatHelps(t *testing.T) {
	a := newAPI(t)
	pod := &corev1.Pod{}
	fetch(t, a, pod, "db-0")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}}
	if err := a.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	h := historyOf(t, a, "statefulset", "db")
	for number, want := range map[int64]string{1: "`kubectl delete pod db-0` replaces it", 2: "pod db-0: CrashLoopBackOff"} {
		to, _ := revision.Find(h.Revisions, number)
		p, err := h.Progress(t.Context(), to)
		if err != nil || !strings.Contains(p.Text, want) || strings.Contains(p.Text, "delete") != (number == 1) {
			t.Errorf("to revision %d: %q, error %v; want %q", number, p.Text, err, want)
		}
	}
}

func fetch(t *testing.T, c client.Client, obj client.Object, name string) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, obj); err != nil {
		t.Fatal(err)
	}
}

func goBack(t *testing.T, h *History, number int64) {
	t.Helper()
	to, err := revision.Find(h.Revisions, number)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.GoBack(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
}

func TestGoBackWritesTheTemplateAndTheCause(t *testing.T) {
	a := newAPI(t)
	goBack(t, historyOf(t, a, "deployment", "web"), 3)
	d, rs := &appsv1.Deployment{}, &appsv1.ReplicaSet{}
	fetch(t, a, d, "web")
	fetch(t, a, rs, "web-a")
	if !podtemplate.Same(&d.Spec.Template, &rs.Spec.Template) {
		t.Errorf("template %+v, want that of web-a", d.Spec.Template)
	}
	if _, has := d.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; has {
		t.Error("the hash of the ReplicaSet is on the template")
	}
	want := map[string]string{"deployment.kubernetes.io/revision": "5", "kubernetes.io/change-cause": "first", "note": "kept"}
	if diff := cmp.Diff(want, d.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if d.Labels["tidemark.dev/record-sum"] != "sum" {
		t.Errorf("labels %v, want them as they were", d.Labels)
	}
}

func TestGoBackOfAStatefulSetKeepsFieldsThatAreNotKnown(t *testing.T) {
	a := newAPI(t)
	h := historyOf(t, a, "statefulset", "db")
	container, _, _ := unstructured.NestedSlice(h.raw["db-1"], "spec", "containers")
	if fields, ok := container[0].(map[string]any); !ok || fields["tomorrow"] != "field" {
		t.Errorf("the template to write has the container %v", container)
	}
	goBack(t, h, 1)
	s := &appsv1.StatefulSet{}
	fetch(t, a, s, "db")
	if image := s.Spec.Template.Spec.Containers[0].Image; image != "db:1" || s.Annotations[changeCauseAnnotation] != "first" {
		t.Errorf("image %s, annotations %v", image, s.Annotations)
	}
}

func TestGoBackOfARolloutTakesOffWhatArgoAdded(t *testing.T) {
	a := newAPI(t)
	goBack(t, historyOf(t, a, "rollout", "canary"), 1)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(cluster.ArgoRollout)
	fetch(t, a, u, "canary")
	got, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	want := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "canary"}},
		"spec": map[string]any{
			"containers":    []any{map[string]any{"name": "app", "image": "canary:1", "resources": map[string]any{}}},
			"restartPolicy": "Always",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

func TestGoBackOfARolloutThatRefersToADeploymentWritesThat(t *testing.T) {
	a := newAPI(t)
	goBack(t, historyOf(t, a, "rollout", "referring"), 1)
	d := &appsv1.Deployment{}
	fetch(t, a, d, "referred")
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "referred:1" || *d.Spec.Replicas != 0 {
		t.Errorf("image %s, %d replicas", image, *d.Spec.Replicas)
	}
}

func TestGoBackWritesNothingWhenSomebodyElseDid(t *testing.T) {
	a := newAPI(t)
	h := historyOf(t, a, "deployment", "web")
	d := &appsv1.Deployment{}
	fetch(t, a, d, "web")
	d.Spec.Template.Spec.Containers[0].Image = "web:5"
	if err := a.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	to, _ := revision.Find(h.Revisions, 3)
	if err := h.GoBack(t.Context(), to, false); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v, want %v", err, ErrChanged)
	}
}

func TestGoBackWritesNothingWhenACopyIsGoneMeanwhile(t *testing.T) {
	a := newAPI(t)
	h := historyOf(t, a, "deployment", "web")
	cm := &corev1.ConfigMap{}
	fetch(t, a, cm, "config-one")
	if err := a.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	to, _ := revision.Find(h.Revisions, 3)
	if err := h.GoBack(t.Context(), to, false); err == nil || !strings.Contains(err.Error(), "configmap/config-one does not exist") {
		t.Errorf("error %v", err)
	}
}

func TestTheRecordIsMarkedWhereARollbackLooksLikeARelease(t *testing.T) {
	a := newAPI(t)
	h := historyOf(t, a, "deployment", "web")
	h.Record = &stamp.Record{Objects: map[string]stamp.ObjectRecord{"configmap/config": {HeldBack: true}}}
	for i := range h.Revisions {
		if h.Revisions[i].Number == 3 { // as the present one, but for its image
			current, _ := revision.Current(h.Revisions)
			h.Revisions[i].Pins = current.Pins
			h.Revisions[i].Template.Annotations = current.Template.Annotations
		}
	}
	to, _ := revision.Find(h.Revisions, 3)
	var marked bool
	now := &unstructured.Unstructured{}
	now.SetLabels(map[string]string{"tidemark.dev/record-sum": "sum"})
	for _, op := range h.operations(now, nil, to) {
		marked = marked || op.Path == "/metadata/labels/tidemark.dev~1record-sum"
	}
	if !marked {
		t.Error("the record is not marked")
	}
	for name, unmark := range map[string]func(){
		"nothing is held back": func() { h.Record.Objects = nil },
		"it is only observed":  func() { h.Mode = stamp.Observe },
	} {
		mode, record := h.Mode, *h.Record
		unmark()
		if h.looksLikeRelease(to) {
			t.Errorf("it is marked where %s", name)
		}
		h.Mode, h.Record = mode, &record
	}
}

func TestSourcesGetTheContentOfTheirCopies(t *testing.T) {
	a := newAPI(t)
	h := historyOf(t, a, "deployment", "web")
	to, _ := revision.Find(h.Revisions, 3)
	changes, remarks, err := h.SourceChanges(t.Context(), to)
	if err != nil || len(remarks) > 0 || len(changes) != 1 || len(changes[0].Keys) != 2 || changes[0].Manager != "Helm" {
		t.Fatalf("changes %+v, remarks %q, error %v", changes, remarks, err)
	}
	if err := h.WriteSource(t.Context(), changes[0], true); err != nil {
		t.Fatal(err)
	}
	touch(t, a, nil) // another resourceVersion, the same content
	if err := h.WriteSource(t.Context(), changes[0], false); err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{}
	fetch(t, a, cm, "config")
	if diff := cmp.Diff(map[string]string{"MODE": "one"}, cm.Data); diff != "" || cm.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Errorf("labels %v, data (-want +got):\n%s", cm.Labels, diff)
	}
	if changes, _, err = h.SourceChanges(t.Context(), to); err != nil || len(changes) > 0 {
		t.Errorf("then there are changes %+v, error %v", changes, err)
	}
}

// touch writes to the ConfigMap "config".
func touch(t *testing.T, c client.Client, data map[string]string) {
	t.Helper()
	cm := &corev1.ConfigMap{}
	fetch(t, c, cm, "config")
	cm.Labels["touched"] = "true"
	if data != nil {
		cm.Data = data
	}
	if err := c.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
}

func TestASourceThatSomebodyElseWroteIsLeftAlone(t *testing.T) {
	a := newAPI(t)
	h := historyOf(t, a, "deployment", "web")
	to, _ := revision.Find(h.Revisions, 3)
	changes, _, err := h.SourceChanges(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	touch(t, a, map[string]string{"MODE": "three"})
	if err := h.WriteSource(t.Context(), changes[0], false); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v, want %v", err, ErrChanged)
	}
}

func TestSourcesThatCannotBeWritten(t *testing.T) {
	for want, spoil := range map[string]func(*testing.T, client.Client, *corev1.ConfigMap) error{
		"configmap/config is immutable": func(t *testing.T, c client.Client, cm *corev1.ConfigMap) error {
			yes := true
			cm.Immutable = &yes
			return c.Update(t.Context(), cm)
		},
		"configmap/config does not exist": func(t *testing.T, c client.Client, cm *corev1.ConfigMap) error {
			return c.Delete(t.Context(), cm)
		},
	} {
		t.Run(want, func(t *testing.T) {
			a := newAPI(t)
			cm := &corev1.ConfigMap{}
			fetch(t, a, cm, "config")
			if err := spoil(t, a, cm); err != nil {
				t.Fatal(err)
			}
			h := historyOf(t, a, "deployment", "web")
			to, _ := revision.Find(h.Revisions, 3)
			_, _, err := h.SourceChanges(t.Context(), to)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--restore-source") {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}
