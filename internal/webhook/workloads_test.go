package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/stamp"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var deployment = cluster.BuiltinKinds()[0]

// world is an API with the webhook in front of its Deployments.
type world struct {
	*front
	t        *testing.T
	api      client.Client
	requests atomic.Int32 // of the webhook
	tells    *teller
	events   sent
	// lacks is why it is not known that pods read what their pins say; "" when they do.
	lacks string
	// found says that somebody heard that the API server asks.
	found bool
	// fails makes every request of the webhook fail; nil for none.
	fails error
}

// sent are the Events sent.
type sent []string

func (s *sent) Eventf(obj, _ runtime.Object, _, reason, _, _ string, args ...any) {
	*s = append(*s, obj.GetObjectKind().GroupVersionKind().Kind+" "+reason+": "+fmt.Sprint(args...))
}

func newWorld(t *testing.T, namespaceMode string) *world {
	t.Helper()
	w := &world{t: t}
	w.api = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1.LabelMode: namespaceMode}}},
		configMap("1"),
	).WithIndex(&appsv1.Deployment{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	asked := func() error { w.requests.Add(1); return w.fails }
	direct := interceptor.NewClient(w.api.(client.WithWatch), interceptor.Funcs{ //nolint:errcheck // the fake one is
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := asked(); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := asked(); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := asked(); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
	})
	o := Options{
		Kinds: cluster.BuiltinKinds(), Clock: clocktesting.NewFakeClock(noon), PinsLack: func(string) string { return w.lacks }, Asked: func() { w.found = true },
		Live: &cluster.Live{Copier: &cluster.Copier{Client: direct}, Namespace: v1.DefaultNamespace, DefaultMode: stamp.Observe},
	}
	w.tells = newTeller(w.api, &w.events, o.Clock)
	w.front = o.deciders(w.tells)[pathWorkloads]
	return w
}

func configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prices"}, Data: map[string]string{"price": value}}
}

// prices gives the ConfigMap another value.
func (w *world) prices(value string) {
	w.t.Helper()
	if err := w.api.Update(w.t.Context(), configMap(value)); err != nil {
		w.t.Fatal(err)
	}
}

// reader is a Deployment that reads it.
func reader(image string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pricing"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pricing"}}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "app", Image: image,
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "prices"}}}},
	}}
	return d
}

func raw(t *testing.T, obj any) runtime.RawExtension {
	t.Helper()
	body, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: body}
}

// admits has a write decided, and returns what is written with it. before is nil for a new workload.
func (w *world) admits(before, after *appsv1.Deployment, want outcome) *appsv1.Deployment {
	w.t.Helper()
	a, out := w.tries(before, after, false)
	if a.outcome != want {
		w.t.Fatalf("it is %s, want %s", a.outcome, want)
	}
	out.UID = "1"
	return out
}

func (w *world) tries(before, after *appsv1.Deployment, dryRun bool) (answer, *appsv1.Deployment) {
	w.t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Operation: admissionv1.Create,
		Namespace: "shop", Object: raw(w.t, after), DryRun: &dryRun,
	}}
	if before != nil {
		req.Operation, req.OldObject = admissionv1.Update, raw(w.t, before)
	}
	a, written := w.ask(req)
	out := &appsv1.Deployment{}
	if err := json.Unmarshal(written, out); err != nil {
		w.t.Fatal(err)
	}
	return a, out
}

// ask has a write decided, and returns it as it is written.
func (w *world) ask(req admission.Request) (answer, []byte) {
	w.t.Helper()
	a, err := w.decide(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	return a, applied(w.t, req.Object.Raw, a.patch)
}

func pinsOn(d *appsv1.Deployment) string { return d.Spec.Template.Annotations[v1.AnnotationPins] }

func left(d *appsv1.Deployment) string {
	return fmt.Sprint(d.Spec.Template.Annotations, d.Annotations[v1.AnnotationRecord], d.Labels[v1.LabelRecordSum])
}

func withImage(d *appsv1.Deployment, image string) *appsv1.Deployment {
	d = d.DeepCopy()
	d.Spec.Template.Spec.Containers[0].Image = image
	return d
}

func TestARequestForEachThingThatIsReadAndNoneWithoutAChange(t *testing.T) {
	w := newWorld(t, v1.ModePin)
	created := w.admits(nil, reader("app:1"), stamped)
	// Two namespaces, the ConfigMap, the number of its snapshots, the snapshot, which is looked for before it is made.
	w.asked(6)
	labelled := created.DeepCopy()
	labelled.Labels["team"] = "shop"
	w.admits(created, labelled, unchanged)
	w.asked(0)
	next := w.admits(created, withImage(created, "app:2"), recorded)
	w.asked(4) // and whether what it stays pinned to is there
	w.prices("2")
	w.admits(next, withImage(next, "app:3"), stamped)
	w.asked(6 + 1) // what the template pinned before is read, too
}

// asked fails the test unless the webhook made so many requests since the last time.
func (w *world) asked(want int32) {
	w.t.Helper()
	if got := w.requests.Swap(0); got != want {
		w.t.Errorf("%d requests, want %d", got, want)
	}
}

func TestWhatAWriterDropsIsPutBack(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(*appsv1.Deployment)
		want  outcome
	}{
		"a manifest replaces the whole workload":    {func(d *appsv1.Deployment) { *d = *reader("app:1") }, kept},
		"a program writes the whole template":       {func(d *appsv1.Deployment) { d.Spec.Template = reader("app:1").Spec.Template }, kept},
		"a manifest replaces it with another image": {func(d *appsv1.Deployment) { *d = *reader("app:2") }, recorded},
		"a program writes the whole template with another port": {func(d *appsv1.Deployment) {
			d.Spec.Template = reader("app:1").Spec.Template
			d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
		}, kept},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, v1.ModePin)
			before := w.admits(nil, reader("app:1"), stamped)
			after := before.DeepCopy()
			tc.write(after)
			now := w.admits(before, after, tc.want)
			if now.Spec.Template.Annotations[v1.AnnotationConfigHash] != before.Spec.Template.Annotations[v1.AnnotationConfigHash] || pinsOn(now) != pinsOn(before) {
				t.Errorf("the template carries %v, want %v", now.Spec.Template.Annotations, before.Spec.Template.Annotations)
			}
			if tc.want == kept && left(now) != left(before) {
				t.Errorf("it carries %s, want %s", left(now), left(before))
			}
			if again, _ := w.tries(before, now, false); len(again.patch) != 0 {
				t.Errorf("looked at again it is %s, with %+v", again.outcome, again.patch)
			}
		})
	}
}

func TestWhatIsTakenAwayOnPurposeStaysAway(t *testing.T) {
	w := newWorld(t, v1.ModePin)
	before := w.admits(nil, reader("app:1"), stamped)
	for name, write := range map[string]func(*appsv1.Deployment){
		"the record, so that it is accounted for anew": func(d *appsv1.Deployment) { delete(d.Annotations, v1.AnnotationRecord) },
		"everything, with mode observe": func(d *appsv1.Deployment) {
			*d = *reader("app:1")
			d.Annotations = map[string]string{v1.AnnotationMode: v1.ModeObserve}
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			write(after)
			if _, now := w.tries(before, after, false); left(now) != left(after) {
				t.Errorf("it carries %s, want %s", left(now), left(after))
			}
		})
	}
}

func TestACopyOfAnotherNamespacesManifestIsAccountedForAnew(t *testing.T) {
	w := newWorld(t, v1.ModePin)
	original := w.admits(nil, reader("app:1"), stamped)
	elsewhere := original.DeepCopy()
	elsewhere.Spec.Template.Annotations[v1.AnnotationPins] = "configmap/prices=prices-elsewhere"
	a, now := w.tries(nil, elsewhere, false)
	if a.outcome != stamped || left(now) == left(elsewhere) || pinsOn(now) != pinsOn(original) || len(a.remarks) == 0 {
		t.Errorf("it is %s with %s, remarks %q", a.outcome, left(now), a.remarks)
	}
	if a, _ := w.tries(nil, original, false); len(a.patch) != 0 {
		t.Errorf("what is restored with its snapshots is changed: %+v", a.patch)
	}
}

func TestADryRunIsShownWhatAWriteWouldBe(t *testing.T) {
	w := newWorld(t, v1.ModePin)
	_, shown := w.tries(nil, reader("app:1"), true)
	list := &corev1.ConfigMapList{}
	if err := w.api.List(t.Context(), list); err != nil || len(list.Items) != 1 {
		t.Errorf("there are %d ConfigMaps, %v", len(list.Items), err)
	}
	if _, written := w.tries(nil, reader("app:1"), false); left(written) != left(shown) || pinsOn(shown) == "" {
		t.Errorf("it was shown %s, and was written %s", left(shown), left(written))
	}
}

func TestARevisionIsNotLetThroughOnACopyThatSomebodyDeleted(t *testing.T) {
	w := newWorld(t, v1.ModePin)
	before := w.admits(nil, reader("app:1"), stamped)
	_, name, _ := strings.Cut(pinsOn(before), "=")
	lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if err := w.api.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	copies := func(want int) {
		t.Helper()
		list := &corev1.ConfigMapList{}
		if err := w.api.List(t.Context(), list, client.MatchingLabels{v1.LabelSnapshot: v1.True}); err != nil || len(list.Items) != want {
			t.Errorf("there are %d copies, %v; want %d", len(list.Items), err, want)
		}
	}
	if a, _ := w.tries(before, withImage(before, "app:2"), true); a.outcome != recorded {
		t.Errorf("a dry run is %s", a.outcome)
	}
	copies(0)
	if now := w.admits(before, withImage(before, "app:2"), recorded); pinsOn(now) != pinsOn(before) {
		t.Errorf("it is pinned to %s, want %s", pinsOn(now), pinsOn(before))
	}
	copies(1)
}

func TestFirstPinsWaitUntilPodsWouldReadThem(t *testing.T) {
	w := newWorld(t, v1.ModePin)
	w.lacks = "nothing rewrites pods"
	copies := func(want int) {
		t.Helper()
		list := &corev1.ConfigMapList{}
		if err := w.api.List(t.Context(), list, client.MatchingLabels{v1.LabelSnapshot: v1.True}); err != nil || len(list.Items) != want {
			t.Errorf("there are %d copies, %v; want %d", len(list.Items), err, want)
		}
	}
	held := func(what string, a answer, want outcome, remarks int) {
		t.Helper()
		if a.outcome != want || len(a.remarks) != remarks || !strings.Contains(a.remarks[0], w.lacks) {
			t.Errorf("%s: it is %s with remarks %q", what, a.outcome, a.remarks)
		}
		copies(0)
	}
	for _, dryRun := range []bool{true, false} {
		a, out := w.tries(nil, reader("app:1"), dryRun)
		held("a new workload", a, settled, 1)
		if len(a.patch) != 0 || pinsOn(out) != "" {
			t.Errorf("a new workload carries %s", left(out))
		}
	}
	bare := reader("app:1")
	bare.UID = "1"
	a, _ := w.tries(bare, withImage(bare, "app:2"), false)
	held("a new image", a, settled, 1)
	a, _ = w.ask(admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Operation: admissionv1.Create, Namespace: "shop",
		Object: raw(t, &batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "once"},
			Spec: batchv1.JobSpec{Template: bare.Spec.Template},
		}),
	}})
	held("a Job", a, settled, 1)
	elsewhere := reader("app:1")
	elsewhere.Spec.Template.Annotations = map[string]string{v1.AnnotationPins: "configmap/prices=prices-elsewhere"}
	a, out := w.tries(nil, elsewhere, false)
	held("a copy of another namespace's", a, stripped, 2)
	if pinsOn(out) != "" {
		t.Errorf("a copy of another namespace's carries %s", left(out))
	}

	// What has pins goes on: its pods are made anew anyway, and the revision names what they read.
	w.lacks = ""
	created := w.admits(nil, reader("app:1"), stamped)
	w.lacks = "nothing rewrites pods"
	w.prices("2")
	if now := w.admits(created, withImage(created, "app:2"), stamped); pinsOn(now) == pinsOn(created) {
		t.Errorf("a release under other configuration carries %s", left(now))
	}
	copies(2)
}

func TestAJobFromAnothersManifestKeepsNoPinsOfCopiesThatAreNotThere(t *testing.T) {
	for mode, want := range map[stamp.Mode]outcome{stamp.Pin: stamped, stamp.Roll: stripped} {
		w := newWorld(t, string(mode))
		once := func(pins string) (answer, *batchv1.Job) {
			template := reader("app:1").Spec.Template
			template.Annotations = map[string]string{v1.AnnotationPins: pins}
			job := &batchv1.Job{
				TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "once"},
				Spec: batchv1.JobSpec{Template: template},
			}
			a, patched := w.ask(admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Operation: admissionv1.Create, Namespace: "shop",
				Object: raw(t, job),
			}})
			out := &batchv1.Job{}
			if err := json.Unmarshal(patched, out); err != nil {
				t.Fatal(err)
			}
			return a, out
		}
		a, job := once("configmap/prices=prices-elsewhere")
		pins := job.Spec.Template.Annotations[v1.AnnotationPins]
		if a.outcome != want || len(a.remarks) != 1 || (pins != "") != (mode == stamp.Pin) || strings.Contains(pins, "elsewhere") {
			t.Errorf("in mode %s it is %s with pins %q, remarks %q", mode, a.outcome, pins, a.remarks)
		}
		if mode == stamp.Pin {
			if a, job := once(pins); a.outcome != settled || job.Spec.Template.Annotations[v1.AnnotationPins] != pins {
				t.Errorf("with pins of what is there it is %s with %q", a.outcome, job.Spec.Template.Annotations[v1.AnnotationPins])
			}
		}
	}
}

func TestModeRollIsStampedOnlyWithAChange(t *testing.T) {
	w := newWorld(t, v1.ModeRoll)
	created := w.admits(nil, reader("app:1"), settled)
	w.asked(2) // what it consumes is not even read
	// The controller leaves the first record.
	w.admits(created, withImage(created, "app:2"), settled)
	known := created.DeepCopy()
	f, err := w.facts(known)
	if err != nil {
		t.Fatal(err)
	}
	annotation, sum := stamp.Encode(stamp.Decide(f.State).Record)
	known.Annotations, known.Labels = map[string]string{v1.AnnotationRecord: annotation}, map[string]string{v1.LabelRecordSum: sum}
	released := w.admits(known, withImage(known, "app:2"), recorded)
	w.prices("2")
	now := w.admits(released, withImage(released, "app:3"), stamped)
	if now.Spec.Template.Annotations[v1.AnnotationConfigHash] == "" || pinsOn(now) != "" {
		t.Errorf("it carries %s", left(now))
	}
	r, _, err := stamp.Parse(now.Annotations[v1.AnnotationRecord], now.Labels[v1.LabelRecordSum])
	if err != nil || len(r.Rolls) != 0 || r.Last == nil || !r.Last.Time.Equal(noon) {
		t.Errorf("the record is %+v, %v; a rollout of the writer's is none of Tidemark's", r, err)
	}
}

// facts are those of a Deployment as the webhook gathers them.
func (w *world) facts(d *appsv1.Deployment) (cluster.Facts, error) {
	live := &cluster.Live{Copier: &cluster.Copier{Client: w.api}, Namespace: v1.DefaultNamespace, DefaultMode: stamp.Observe}
	f, err := live.Look(w.t.Context(), deployment, d)
	if err == nil {
		err = live.Consumed(w.t.Context(), &f)
	}
	return f, err
}

func TestWhatWasWrittenIsToldAndWhatWasNotIsNot(t *testing.T) {
	for name, tc := range map[string]struct {
		writes bool
		want   []string
	}{
		"the write was made": {true, []string{"Deployment ConfigurationRolled: configuration changed: configmap/prices; " +
			"it goes with the change of the pod template, in one revision"}},
		"the write failed afterwards": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, v1.ModePin)
			created := w.admits(nil, reader("app:1"), stamped)
			w.prices("2")
			w.tries(created, withImage(created, "app:2"), true) // a dry run is not told of
			now := w.admits(created, withImage(created, "app:2"), stamped)
			if tc.writes {
				now.UID = ""
				if err := w.api.Create(t.Context(), now); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(w.tells.waiting); n != 1 {
				t.Fatalf("%d decisions wait to be told, want 1", n)
			}
			w.tells.tell(t.Context(), <-w.tells.waiting)
			if diff := cmp.Diff(tc.want, []string(w.events)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFailedReadLetsTheWriteThroughWithAWarning(t *testing.T) {
	w := newWorld(t, v1.ModePin)
	w.fails = fmt.Errorf("the API is away")
	w.front.timeout, w.front.clock = time.Minute, clocktesting.NewFakeClock(noon)
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.front.metrics = metrics
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Operation: admissionv1.Create,
		Namespace: "shop", Object: raw(t, reader("app:1")),
	}}
	for name, decide := range map[string]func(context.Context, admission.Request) (answer, error){
		"a read that fails": w.front.decide,
		"a fault":           func(context.Context, admission.Request) (answer, error) { panic("a fault") },
	} {
		t.Run(name, func(t *testing.T) {
			f := *w.front
			f.decide = decide
			w.found = false
			r := f.Handle(t.Context(), req)
			if !w.found {
				t.Error("nobody hears that the API server finds the webhook")
			}
			if !r.Allowed || len(r.Patch) != 0 || len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "tidemark: ") {
				t.Errorf("%+v", r)
			}
		})
	}
}
