package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// store is a cluster in memory with snapshots in it.
type store struct {
	client.Client
	// inner is the cluster without what is in the way of requests.
	inner client.WithWatch
	// fails are requests that fail, as "list pods", each with its error.
	fails map[string]error
	// before is called before each write, as "delete pricing-1".
	before func(what string)
	writes []string
}

var (
	machines = cluster.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Machine"}, TemplatePath: []string{"spec", "machine", "template"}}
	// noRollouts are kinds that the cluster in memory knows nothing of, as one without Argo.
	noRollouts = meta.NoKindMatchError{GroupKind: cluster.RolloutKind.GroupKind()}
)

func newStore(t *testing.T, objects ...client.Object) *store {
	t.Helper()
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	for _, k := range []cluster.Kind{machines, cluster.RolloutKind} {
		known.AddKnownTypeWithName(k.GroupVersionKind, &unstructured.Unstructured{})
		list := k.GroupVersionKind
		list.Kind += "List"
		known.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
	}
	s := &store{fails: map[string]error{"list rollouts": &noRollouts}}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	s.inner = fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).Build()
	s.Client = interceptor.NewClient(s.inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := s.refuse("get", obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := s.refuse("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := s.write("patch", obj); err != nil {
				return err
			}
			return c.Patch(ctx, obj, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := s.write("delete", obj); err != nil {
				return err
			}
			return deleteInState(ctx, c, obj, opts)
		},
	})
	return s
}

// deleteInState heeds the preconditions, which the cluster in memory does only in part.
func deleteInState(ctx context.Context, c client.Client, obj client.Object, opts []client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	if o.Preconditions == nil || o.Preconditions.UID == nil || o.Preconditions.ResourceVersion == nil {
		return errors.New("a deletion without preconditions")
	}
	present := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), present); err != nil {
		return err
	}
	if present.UID != *o.Preconditions.UID || present.ResourceVersion != *o.Preconditions.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, obj.GetName(), errors.New("precondition failed"))
	}
	return c.Delete(ctx, present)
}

func (s *store) refuse(verb string, obj runtime.Object) error {
	gvk, err := apiutil.GVKForObject(obj, scheme.Scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return s.fails[verb+" "+cluster.Plural(gvk)]
}

func (s *store) write(verb string, obj client.Object) error {
	what := verb + " " + obj.GetName()
	if s.before != nil {
		s.before(what)
	}
	if err := s.refuse(verb, obj); err != nil {
		return err
	}
	s.writes = append(s.writes, what)
	return nil
}

func forbidden(what string) error {
	verb, kind, _ := strings.Cut(what, " ")
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("cannot "+verb))
}

// pricingSnapshot is the n-th snapshot of configmap/pricing, made long ago and condemned for so long.
func pricingSnapshot(n int, condemned time.Duration) *corev1.ConfigMap {
	cm := snapshot.OfConfigMap(&corev1.ConfigMap{}, fmt.Sprintf("pricing-%d", n), snapshot.Provenance{
		Source: workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "pricing"}, Revision: int64(n), Time: noon.Add(-day),
	})
	cm.CreationTimestamp, cm.UID = metav1.NewTime(noon.Add(-day)), "uid-of-it"
	if condemned > 0 {
		cm.Annotations[v1.AnnotationCondemned] = noon.Add(-condemned).Format(time.RFC3339)
	}
	return cm
}

const day = 24 * time.Hour

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func pricing() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pricing"}}
}

func cleanup(c client.Client) Round {
	return Round{
		Client: c, Now: func() time.Time { return noon }, Kinds: append(cluster.BuiltinKinds(), machines), Namespace: "shop", System: "tidemark-system", Secrets: true,
		Retention: snapshot.Retention{History: 1, MinAge: time.Hour},
	}
}

func clean(t *testing.T, c Round) *Outcome {
	t.Helper()
	cleaned, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return cleaned
}

// outcome says in short what became of the n-th snapshot.
func outcome(c *Outcome, name string) string {
	for _, item := range c.Items {
		if item.Object.Name != name {
			continue
		}
		words := []string{string(item.Action), string(item.Reason)}
		if item.Done {
			words = append(words, "done")
		}
		if item.Left != "" {
			words = append(words, "left: "+item.Left)
		}
		if item.Err != nil {
			words = append(words, "failed")
		}
		return strings.Join(words, " ")
	}
	return "not there"
}

// pinned is a pod template that is pinned to the first snapshot, and byName one that refers to it by hand.
func pinned() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationPins: "configmap/pricing=pricing-1"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
	}
}

func byName() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "pricing-1"}}}},
		}}}},
	}}
}

// users are objects that use the first snapshot, each alone.
func users() map[string]client.Object {
	at := metav1.ObjectMeta{Namespace: "shop", Name: "x"}
	unread := pinned()
	unread.Annotations[v1.AnnotationPins] = "configmap/pricing=pricing-1,nonsense"
	p, n := pinned(), byName()
	paused := appsv1.Deployment{ObjectMeta: at, Spec: appsv1.DeploymentSpec{Template: pinned(), Paused: true}}
	annotated := appsv1.Deployment{ObjectMeta: at, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: n.Spec}}}
	annotated.Spec.Template.Spec.Volumes = nil
	annotated.Annotations = map[string]string{v1.AnnotationExtraConfigMaps: "other, pricing-1"}
	return map[string]client.Object{
		"pod/x, pinned":                     &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x", Annotations: p.Annotations}, Spec: p.Spec},
		"pod/x, by name":                    &corev1.Pod{ObjectMeta: at, Spec: n.Spec},
		"pod/x, finished":                   &corev1.Pod{ObjectMeta: at, Spec: n.Spec, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
		"deployment/x, paused":              &paused,
		"deployment/x, by annotation":       &annotated,
		"deployment/x, pins unread":         &appsv1.Deployment{ObjectMeta: at, Spec: appsv1.DeploymentSpec{Template: unread}},
		"statefulset/x, pinned":             &appsv1.StatefulSet{ObjectMeta: at, Spec: appsv1.StatefulSetSpec{Template: pinned()}},
		"daemonset/x, by name":              &appsv1.DaemonSet{ObjectMeta: at, Spec: appsv1.DaemonSetSpec{Template: byName()}},
		"cronjob/x, pinned":                 &batchv1.CronJob{ObjectMeta: at, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pinned()}}}},
		"job/x, pinned":                     &batchv1.Job{ObjectMeta: at, Spec: batchv1.JobSpec{Template: pinned()}},
		"replicaset/x, pinned":              &appsv1.ReplicaSet{ObjectMeta: at, Spec: appsv1.ReplicaSetSpec{Template: pinned()}},
		"replicationcontroller/x, by name":  &corev1.ReplicationController{ObjectMeta: at, Spec: corev1.ReplicationControllerSpec{Template: &n}},
		"controllerrevision/x, pinned":      revisionOfSet(at, `{"spec":{"template":{"$patch":"replace","metadata":{"annotations":{"tidemark.dev/pins":"configmap/pricing=pricing-1"}}}}}`),
		"controllerrevision/x, by name":     revisionOfSet(at, `{"spec":{"template":{"spec":{"volumes":[{"configMap":{"name":"pricing-1"}}]}}}}`),
		"controllerrevision/x, of any form": revisionOfSet(at, `{"head":[{"annotations":{"tidemark.dev/pins":"configmap/pricing=pricing-1"}}]}`),
		"machine/x, pinned": other(machines, map[string]any{"machine": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1.AnnotationPins: "configmap/pricing=pricing-1"}},
		}}}),
		"machine/x, at another path": other(machines, map[string]any{"workers": []any{map[string]any{"configMap": map[string]any{"name": "pricing-1"}}}}),
		"rollout/x, pinned": other(cluster.RolloutKind, map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1.AnnotationPins: "configmap/pricing=pricing-1"}},
		}}),
	}
}

func revisionOfSet(at metav1.ObjectMeta, data string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: at, Data: runtime.RawExtension{Raw: []byte(data)}}
}

func other(k cluster.Kind, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(k.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("x")
	return u
}

func TestCleanupKeepsWhatAnythingUses(t *testing.T) {
	for name, user := range users() {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, pricing(), pricingSnapshot(1, 0), pricingSnapshot(2, 0), user)
			delete(s.fails, "list rollouts")
			cleaned := clean(t, cleanup(s))
			if got := outcome(cleaned, "pricing-1"); got != "keep used" {
				t.Errorf("it is %s", got)
			}
			by, _, _ := strings.Cut(name, ",")
			if detail := cleaned.Items[1].Detail; !strings.Contains(detail, by) {
				t.Errorf("the reason is %q, want %s in it", detail, by)
			}
			if len(s.writes) > 0 {
				t.Errorf("wrote %q", s.writes)
			}
		})
	}
}

func TestCleanupKeepsASecretThatIsUsedWithoutAPod(t *testing.T) {
	at := metav1.ObjectMeta{Namespace: "shop", Name: "x"}
	for name, user := range map[string]client.Object{
		"serviceaccount/x":           &corev1.ServiceAccount{ObjectMeta: at, Secrets: []corev1.ObjectReference{{Name: "door-1"}}},
		"serviceaccount/x, to pull":  &corev1.ServiceAccount{ObjectMeta: at, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "door-1"}}},
		"ingress/x":                  &networkingv1.Ingress{ObjectMeta: at, Spec: networkingv1.IngressSpec{TLS: []networkingv1.IngressTLS{{SecretName: "door-1"}}}},
		"machine/x, by name anyhow":  other(machines, map[string]any{"secretName": "door-1"}),
		"machine/x, as part of text": other(machines, map[string]any{"secretName": "door-12"}),
	} {
		t.Run(name, func(t *testing.T) {
			p := snapshot.Provenance{Source: workload.Object{Kind: workload.Secret, Namespace: "shop", Name: "door"}, Revision: 1}
			secret, err := snapshot.OfSecret(&corev1.Secret{}, "door-1", p)
			if err != nil {
				t.Fatal(err)
			}
			secret.CreationTimestamp = metav1.NewTime(noon.Add(-day))
			want := "keep used"
			if strings.HasSuffix(name, "part of text") {
				want = "condemn orphaned done"
			}
			if got := outcome(clean(t, cleanup(newStore(t, secret, user))), "door-1"); got != want {
				t.Errorf("it is %s, want %s", got, want)
			}
		})
	}
}

func TestCleanupRemovesInTwoRounds(t *testing.T) {
	s := newStore(t, pricing(), pricingSnapshot(1, 0), pricingSnapshot(2, 0))
	c := cleanup(s)
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "condemn superseded done"},
		{time.Minute, "keep waiting"},
		{time.Hour, "keep waiting"}, // the mark may be up to two seconds late
		{time.Hour + 2*time.Second, "delete superseded done"},
		{2 * time.Hour, "not there"},
	} {
		c.Now = func() time.Time { return noon.Add(step.after) }
		if got := outcome(clean(t, c), "pricing-1"); got != step.want {
			t.Errorf("after %v: it is %s, want %s", step.after, got, step.want)
		}
	}
	if diff := cmp.Diff([]string{"patch pricing-1", "delete pricing-1"}, s.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestCleanupTakesTheMarkAwayFromWhatIsUsedAgain(t *testing.T) {
	s := newStore(t, pricing(), pricingSnapshot(1, 2*time.Hour), pricingSnapshot(2, 0), users()["pod/x, pinned"])
	if got := outcome(clean(t, cleanup(s)), "pricing-1"); got != "pardon used done" {
		t.Errorf("it is %s", got)
	}
	cm := &corev1.ConfigMap{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "pricing-1"}, cm); err != nil {
		t.Fatal(err)
	}
	if mark, ok := cm.Annotations[v1.AnnotationCondemned]; ok || cm.Annotations[v1.AnnotationSnapshotOf] == "" {
		t.Errorf("mark %q, annotations %v", mark, cm.Annotations)
	}
}

func TestCleanupRemovesWhatNothingCanGoBackToWhenTheSourceIsGone(t *testing.T) {
	for _, n := range []int{1, cluster.Few + 1} {
		var objects []client.Object
		for i := range n {
			cm := pricingSnapshot(i, 2*time.Hour)
			cm.Annotations[v1.AnnotationSnapshotOf] = fmt.Sprintf("configmap/source-%d", i)
			objects = append(objects, cm)
		}
		objects = append(objects, pricing(), pricingSnapshot(100, 2*time.Hour))
		cleaned := clean(t, cleanup(newStore(t, objects...)))
		if got := outcome(cleaned, "pricing-0"); got != "delete orphaned done" {
			t.Errorf("%d sources gone: it is %s", n, got)
		}
		if got := outcome(cleaned, "pricing-100"); got != "pardon recent done" {
			t.Errorf("%d sources gone: the one of a source that is there is %s", n, got)
		}
	}
}

func TestCleanupWritesNothingWhenAListFails(t *testing.T) {
	for _, what := range []string{
		"list configmaps", "list secrets", "list deployments", "list statefulsets", "list daemonsets", "list cronjobs", "list machines", "list rollouts",
		"list replicationcontrollers", "list replicasets", "list controllerrevisions", "list jobs", "list pods", "get configmaps",
	} {
		for problem, err := range map[string]error{
			"missing the right to " + what:    forbidden(what),
			"nothing is condemned or deleted": errors.New("etcd is on fire"),
		} {
			s := newStore(t, pricingSnapshot(1, 2*time.Hour), pricingSnapshot(2, 0))
			s.fails[what] = err
			cleaned, err := cleanup(s).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), problem) || cleaned != nil || len(s.writes) > 0 {
				t.Errorf("%s: error %v, wrote %q; want %q, and nothing written", what, err, s.writes, problem)
			}
		}
	}
}

func TestCleanupAsksForNothingButRevisionsWhereThereAreNoSnapshots(t *testing.T) {
	s := newStore(t, pricing())
	for _, what := range []string{"list pods", "list resourcequotas", "list deployments", "get namespaces"} {
		s.fails[what] = forbidden(what)
	}
	if cleaned := clean(t, cleanup(s)); len(cleaned.Items)+len(cleaned.Remarks) > 0 {
		t.Errorf("found %v, remarked %q", cleaned.Items, cleaned.Remarks)
	}
}

func TestCleanupLeavesForTheNextRunWhatSomebodyElseWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		condemned time.Duration
		meanwhile func(*corev1.ConfigMap)
		want      string
	}{
		"a stamper takes the mark away before the deletion": {
			2 * time.Hour, func(cm *corev1.ConfigMap) { delete(cm.Annotations, v1.AnnotationCondemned) },
			"delete superseded left: somebody else wrote it meanwhile",
		},
		"a stamper makes it the newest before the mark": {
			0, func(cm *corev1.ConfigMap) { cm.Annotations[v1.AnnotationSnapshotRevision] = "9" },
			"condemn superseded left: somebody else wrote it meanwhile",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, pricing(), pricingSnapshot(1, tc.condemned), pricingSnapshot(2, 0))
			key := client.ObjectKey{Namespace: "shop", Name: "pricing-1"}
			s.before = func(string) {
				s.before = nil
				cm := &corev1.ConfigMap{}
				if err := s.Get(t.Context(), key, cm); err != nil {
					t.Error(err)
				}
				tc.meanwhile(cm)
				if err := s.Update(t.Context(), cm); err != nil {
					t.Error(err)
				}
			}
			cleaned := clean(t, cleanup(s))
			if got := outcome(cleaned, "pricing-1"); got != tc.want || cleaned.Err() != nil {
				t.Errorf("it is %s, error %v; want %s", got, cleaned.Err(), tc.want)
			}
			if err := s.Get(t.Context(), key, &corev1.ConfigMap{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCleanupLeavesNamespacesAloneThatArePausedOrEnd(t *testing.T) {
	on := map[string]string{v1.AnnotationPaused: v1.True}
	for want, namespace := range map[string]*corev1.Namespace{
		"Tidemark is paused in the namespace":  {ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: on}},
		"Tidemark is paused everywhere":        {ObjectMeta: metav1.ObjectMeta{Name: "tidemark-system", Annotations: on}},
		"the namespace is being deleted":       {ObjectMeta: metav1.ObjectMeta{Name: "shop", Finalizers: []string{"kubernetes"}}},
		"the namespace is gone":                {ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		"somebody paused it after the listing": {ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: on}},
	} {
		t.Run(want, func(t *testing.T) {
			s := newStore(t, pricing(), pricingSnapshot(1, 2*time.Hour), pricingSnapshot(2, 0), pricingSnapshot(0, 0))
			c := cleanup(s)
			s.place(t, namespace, want)
			got := outcome(clean(t, c), "pricing-1")
			if want == "somebody paused it after the listing" {
				want = "Tidemark is paused in the namespace"
			}
			if got != "delete superseded left: "+want || len(s.writes) > 0 {
				t.Errorf("it is %s, wrote %q", got, s.writes)
			}
			c.DryRun = true
			if got := outcome(clean(t, c), "pricing-1"); got != "delete superseded left: "+want {
				t.Errorf("as a dry run it is %s", got)
			}
		})
	}
}

func TestCleanupGoesOnAfterAPauseWithinASecond(t *testing.T) {
	s := newStore(t, pricing(), pricingSnapshot(1, 2*time.Hour), pricingSnapshot(2, 2*time.Hour), pricingSnapshot(3, 0))
	now := noon
	c := cleanup(s)
	c.Now = func() time.Time { return now }
	s.before = func(string) { // somebody pauses while the first is being deleted, and a second passes
		now = now.Add(time.Second)
		s.pause(t)
	}
	cleaned := clean(t, c)
	got := []string{outcome(cleaned, "pricing-2"), outcome(cleaned, "pricing-1")}
	want := []string{"delete superseded done", "delete superseded left: Tidemark is paused in the namespace"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCleanupSaysWhichRightIsMissingOnce(t *testing.T) {
	policy := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "pricing-1", nil)
	policy.ErrStatus.Message = "configmaps \"pricing-1\" is forbidden: ValidatingAdmissionPolicy 'tidemark-snapshots' denied request: protected"
	for want, err := range map[string]error{
		"missing the right to delete configmaps in namespace shop":                         forbidden("delete configmaps"),
		`takes the verb "retire" on snapshots of API group tidemark.dev in namespace shop`: policy,
	} {
		s := newStore(t, pricing(), pricingSnapshot(1, 2*time.Hour), pricingSnapshot(2, 2*time.Hour), pricingSnapshot(3, 0), pricingSnapshot(0, 0))
		s.fails["delete configmaps"] = err
		tried := 0
		s.before = func(what string) {
			if strings.HasPrefix(what, "delete") {
				tried++
			}
		}
		cleaned := clean(t, cleanup(s))
		if err := cleaned.Err(); err == nil || !strings.Contains(err.Error(), want) || tried != 1 {
			t.Errorf("tried %d times, error %v; want %q", tried, err, want)
		}
		if got := outcome(cleaned, "pricing-1"); got != "delete superseded failed" {
			t.Errorf("it is %s", got)
		}
		if got := outcome(cleaned, "pricing-0"); got != "condemn superseded done" {
			t.Errorf("the one to be condemned is %s", got)
		}
	}
}

func TestWhatSomebodyElseRefusesStopsNothingElse(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	for name, refusal := range map[string]error{
		"a webhook": &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "guard.example.com" denied the request: on hold`,
		}},
		"a policy": apierrors.NewForbidden(configMaps, "pricing-1", errors.New("ValidatingAdmissionPolicy 'holds' with binding 'holds' denied request: on hold")),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, pricing(), pricingSnapshot(1, 2*time.Hour), pricingSnapshot(2, 2*time.Hour), pricingSnapshot(3, 0))
			s.fails["delete configmaps"] = refusal
			tried := 0
			s.before = func(string) { tried++ }
			cleaned := clean(t, cleanup(s))
			if tried != 2 {
				t.Errorf("tried %d deletions, want both", tried)
			}
			if err := cleaned.Err(); err == nil || !strings.Contains(err.Error(), "on hold") || strings.Contains(err.Error(), "right") || strings.Contains(err.Error(), "retire") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestCleanupRemarksWhatIsNoSnapshotInSpiteOfItsLabel(t *testing.T) {
	odd := pricingSnapshot(1, 2*time.Hour)
	delete(odd.Annotations, v1.AnnotationSnapshotOf)
	cleaned := clean(t, cleanup(newStore(t, odd)))
	if len(cleaned.Items) > 0 || len(cleaned.Remarks) != 1 || !strings.Contains(cleaned.Remarks[0], "1 objects") {
		t.Errorf("found %v, remarked %q", cleaned.Items, cleaned.Remarks)
	}
}

func TestQuotasThatAreNearlyFullAreTold(t *testing.T) {
	quota := func(namespace, name string, hard, used int64) *corev1.ResourceQuota {
		list := func(n int64) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(n, resource.DecimalSI), "pods": resource.MustParse("1")}
		}
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ReplaceAll(name, "/", "-")},
			Status:     corev1.ResourceQuotaStatus{Hard: list(hard), Used: list(used)},
		}
	}
	s := newStore(t, pricing(), pricingSnapshot(1, 0), quota("shop", "configmaps", 10, 9), quota("shop", "count/configmaps", 10, 8),
		quota("shop", "count/secrets", 100, 120), quota("shop", "secrets", 0, 0), quota("bare", "secrets", 10, 10))
	c := cleanup(s)
	c.Namespace = ""
	var got []string
	for _, q := range clean(t, c).Quotas {
		got = append(got, q.String())
	}
	slices.Sort(got)
	want := []string{
		"resourcequota/configmaps in namespace shop is nearly full: 9 of 10 configmaps",
		"resourcequota/count-secrets in namespace shop is nearly full: 120 of 100 count/secrets",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.fails["list resourcequotas"] = forbidden("list resourcequotas")
	if cleaned := clean(t, c); len(cleaned.Remarks) != 1 || !strings.Contains(cleaned.Remarks[0], "right to list resourcequotas") {
		t.Errorf("remarked %q", cleaned.Remarks)
	}
}

// place puts a namespace into the store as the case wants it.
func (s *store) place(t *testing.T, ns *corev1.Namespace, how string) {
	t.Helper()
	ctx := t.Context()
	switch how {
	case "the namespace is gone":
		s.fails["get namespaces"] = apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop")
		return
	case "Tidemark is paused everywhere":
		if err := s.inner.Create(ctx, ns.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		return
	}
	present := &corev1.Namespace{}
	if err := s.inner.Get(ctx, client.ObjectKey{Name: ns.Name}, present); err != nil {
		t.Fatal(err)
	}
	present.Annotations, present.Finalizers = ns.Annotations, ns.Finalizers
	err := s.inner.Update(ctx, present)
	if err == nil && how == "the namespace is being deleted" {
		err = s.inner.Delete(ctx, present) // which its finalizer holds up
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pause pauses Tidemark in the namespace.
func (s *store) pause(t *testing.T) {
	t.Helper()
	s.place(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{v1.AnnotationPaused: v1.True}}}, "")
}
