package controller

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

// deployWatch is the watch of Helm releases over a cluster in memory, whose clock is that of the API server too.
type deployWatch struct {
	t *testing.T
	*deploys
	clock    *clocktesting.FakeClock
	registry *prometheus.Registry
	// refuse makes a write fail.
	refuse error
	// unreadable makes lists of one namespace fail.
	unreadable error
	// written is when leases were last written, by their names: what is in memory does not date them.
	written map[string]time.Time
	// reads has how often each kind was read, by "get" and "list"; then is called after each read, where it is set.
	reads map[string]int
	then  func(reads map[string]int)
}

// read notes that a kind was read.
func (w *deployWatch) read(verb string, o runtime.Object, c client.Client) {
	gvk, err := c.GroupVersionKindFor(o)
	if err != nil {
		w.t.Error(err)
	}
	w.reads[verb+" "+gvk.Kind]++
	if w.then != nil {
		w.then(w.reads)
	}
}

// newDeployWatch has releases in ConfigMaps: in memory Secrets cannot be listed by type.
func newDeployWatch(t *testing.T, policy release.Policy, objects ...client.Object) *deployWatch {
	t.Helper()
	w := &deployWatch{t: t, clock: clocktesting.NewFakeClock(noon), registry: prometheus.NewPedanticRegistry(), reads: map[string]int{}}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tidemark-system"}})
	noSecrets := func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if gvk, err := c.GroupVersionKindFor(list); err != nil || gvk.Kind == "SecretList" {
			return err
		}
		err := c.List(ctx, list, opts...)
		w.date(list)
		return err
	}
	inner := fake.NewClientBuilder().WithObjects(objects...).Build()
	api := interceptor.NewClient(inner, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if w.unreadable != nil && slices.Contains(opts, client.ListOption(client.InNamespace("shop"))) {
				return w.unreadable
			}
			err := noSecrets(ctx, c, list, opts...)
			w.read("list", list, c)
			return err
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			w.read("get", o, c)
			return err
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if w.refuse != nil {
				return w.refuse
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	unsettled := interceptor.NewClient(inner, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return noSecrets(ctx, c, list, append(opts, client.MatchingLabelsSelector{Selector: helmrecord.Unsettled()})...)
		},
	})
	m, err := NewDeployMetrics(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	w.deploys = newDeploys(DeployOptions{
		Client: api, Now: w.clock.Now, Records: unsettled, Leases: api, Namespace: "tidemark-system", Interval: time.Minute, Policy: policy,
		ReportAfter: 30 * time.Minute, Clock: w.clock,
	}, logr.Discard(), m)
	return w
}

func (w *deployWatch) date(list client.ObjectList) {
	leases, are := list.(*coordinationv1.LeaseList)
	for i := 0; are && i < len(leases.Items); i++ {
		if at, known := w.written[leases.Items[i].Name]; known {
			leases.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: at}}}
		}
	}
}

// pendingRelease is revision 2 of a release that has been pending since noon, above one that is deployed.
func pendingRelease(name, deploy string) []client.Object {
	var out []client.Object
	for number, status := range map[int]string{1: "deployed", 2: "pending-upgrade"} {
		document := fmt.Sprintf(`{"name":%q,"version":%d,"info":{"status":%q}}`, name, number, status)
		c := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, number), CreationTimestamp: metav1.NewTime(noon),
				Labels: map[string]string{"owner": "helm", "name": name, "version": fmt.Sprint(number), "status": status},
			},
			Data: map[string]string{"release": base64.StdEncoding.EncodeToString([]byte(document))},
		}
		if number == 2 && deploy != "" {
			c.Labels[v1.LabelDeploy] = deploy
		}
		out = append(out, c)
	}
	return out
}

// guardOf is the lease of a release's guard, whose timeout is ten minutes after noon.
func guardOf(name, deploy string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: v1.DeployLeasePrefix + name, Labels: map[string]string{v1.LabelDeploy: deploy},
			Annotations: map[string]string{
				v1.AnnotationDeployRevision: "2", v1.AnnotationDeployBegan: noon.Format(time.RFC3339), v1.AnnotationDeployTimeout: "10m",
			},
		},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](180)},
	}
}

func guarded(name string) []client.Object {
	return append(pendingRelease(name, "d-"+name), guardOf(name, "d-"+name))
}

// pass looks every minute for as long.
func (w *deployWatch) pass(d time.Duration) {
	w.t.Helper()
	for range d / time.Minute {
		w.look(w.t.Context())
		w.clock.Step(time.Minute)
	}
	w.look(w.t.Context())
}

// told are the reasons with the notes of the events.
func (w *deployWatch) told() string {
	w.t.Helper()
	list := &eventsv1.EventList{}
	if err := w.Client.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, fmt.Sprintf("%s on %s/%s: %s", e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note))
	}
	return strings.Join(out, "\n")
}

func (w *deployWatch) statusOf(name string) string {
	w.t.Helper()
	return w.labelOf("sh.helm.release.v1." + name + ".v2")
}

// labelOf is the status that a record's label tells.
func (w *deployWatch) labelOf(record string) string {
	w.t.Helper()
	c := &corev1.ConfigMap{}
	if err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: record}, c); err != nil {
		w.t.Fatal(err)
	}
	return c.Labels["status"]
}

func (w *deployWatch) renew(name string) {
	w.t.Helper()
	body := fmt.Sprintf(`{"metadata":{"annotations":{"renewed":%q}}}`, w.clock.Now())
	if err := w.Client.Patch(w.t.Context(), guardOf(name, ""), client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

func TestWhateverIsPendingForLongIsReportedOnce(t *testing.T) {
	w := newDeployWatch(t, release.PolicyReport, pendingRelease("web", "")...)
	w.pass(30 * time.Minute)
	if told := w.told(); told != "" {
		t.Errorf("told before half an hour: %s", told)
	}
	w.pass(10 * time.Minute)
	told := w.told()
	if strings.Count(told, "\n") > 0 || !strings.Contains(told, "ReleaseNotSettled on ConfigMap/sh.helm.release.v1.web.v2: release web: revision 2 is pending-upgrade since") {
		t.Errorf("told %q", told)
	}
	w.said = nil // another leader
	w.deploys = newDeploys(w.DeployOptions, logr.Discard(), w.metrics)
	w.look(t.Context())
	if again := w.told(); again != told {
		t.Errorf("told again: %q", again)
	}
	if got := w.metric("tidemark_release_pending_seconds"); got != (40 * time.Minute).Seconds() {
		t.Errorf("its age is %v", got)
	}
}

// What nobody can read has not ended: neither its alert does, nor does its guard's silence count anew.
func TestAReleaseThatCannotBeReadStaysWhatItWas(t *testing.T) {
	w := newDeployWatch(t, release.PolicyReport, guarded("web")...)
	w.pass(15 * time.Minute)
	w.unreadable = errors.New("no route to host")
	w.pass(5 * time.Minute)
	if got := w.metric("tidemark_release_pending_seconds"); got != (15 * time.Minute).Seconds() {
		t.Errorf("its age is %v", got)
	}
	w.unreadable = nil
	if all := w.look(t.Context()); len(all) != 1 || all[0].verdict.State != release.Abandoned {
		t.Errorf("it is %+v", all)
	}
	w.unreadable = errors.New("no route to host")
	w.settle("web")
	if err := w.Client.Delete(t.Context(), guardOf("web", "")); err != nil {
		t.Fatal(err)
	}
	if w.look(t.Context()); len(w.known) > 0 {
		t.Errorf("of what is settled is known %+v", w.known)
	}
}

// metric is the value of the only series of a metric.
func (w *deployWatch) metric(name string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name && len(f.GetMetric()) == 1 {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	w.t.Fatalf("%s has not one series", name)
	return 0
}

func TestForwardOnlyWhereItIsChosenAndAllIsSure(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  release.Policy
		objects []client.Object
		during  func(*deployWatch)
		want    string
	}{
		"chosen":                  {release.PolicyForward, guarded("web"), nil, "failed"},
		"not chosen":              {release.PolicyReport, guarded("web"), nil, "pending-upgrade"},
		"a guard that lives":      {release.PolicyForward, guarded("web"), func(w *deployWatch) { w.renew("web") }, "pending-upgrade"},
		"no guard":                {release.PolicyForward, pendingRelease("web", ""), nil, "pending-upgrade"},
		"a lease of another":      {release.PolicyForward, append(pendingRelease("web", ""), guardOf("web", "d-other")), nil, "pending-upgrade"},
		"paused in the namespace": {release.PolicyForward, guarded("web"), func(w *deployWatch) { w.pause("shop") }, "pending-upgrade"},
		"paused everywhere":       {release.PolicyForward, guarded("web"), func(w *deployWatch) { w.pause("tidemark-system") }, "pending-upgrade"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeployWatch(t, tc.policy, tc.objects...)
			for range 15 {
				if tc.during != nil {
					tc.during(w)
				}
				w.pass(time.Minute)
			}
			if got := w.statusOf("web"); got != tc.want {
				t.Errorf("it is %s, want %s; told %s", got, tc.want, w.told())
			}
			if done := strings.Contains(w.told(), "ReleaseRecovered"); done != (tc.want == "failed") {
				t.Errorf("told %s", w.told())
			}
		})
	}
}

// While the controller decides about one release it reads on, and people and guards go on too.
func TestForwardIsDecidedAgainJustBeforeItIsDone(t *testing.T) {
	for name, tc := range map[string]struct {
		// reads is what is read last before the change comes.
		reads  string
		change func(*deployWatch)
		want   string
	}{
		"nothing changes":                            {"get Namespace", func(*deployWatch) {}, "failed"},
		"its guard renews the lease":                 {"get Namespace", func(w *deployWatch) { w.renew("web") }, "pending-upgrade"},
		"somebody pauses the namespace":              {"get Namespace", func(w *deployWatch) { w.pause("shop") }, "pending-upgrade"},
		"somebody pauses Tidemark while it is sure":  {"list LeaseList", func(w *deployWatch) { w.pause("tidemark-system") }, "pending-upgrade"},
		"somebody else marks the revision as failed": {"get Namespace", func(w *deployWatch) { w.settle("web") }, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeployWatch(t, release.PolicyForward, guarded("web")...)
			w.look(t.Context())
			w.clock.Step(15 * time.Minute)
			// The look reads two namespaces, that of the release and Tidemark's own, and each kind of record and the leases once before.
			last := map[string]int{"get Namespace": w.reads["get Namespace"] + 2, "list LeaseList": w.reads["list LeaseList"] + 3}[tc.reads]
			w.then = func(reads map[string]int) {
				if reads[tc.reads] == last {
					w.then = nil
					tc.change(w)
				}
			}
			w.look(t.Context())
			if w.then != nil {
				t.Fatalf("%s was read %d times, not %d", tc.reads, w.reads[tc.reads], last)
			}
			if got := w.statusOf("web"); got != tc.want {
				t.Errorf("it is %s, want %s; told %s", got, tc.want, w.told())
			}
			if done, want := strings.Contains(w.told(), "ReleaseRecovered"), name == "nothing changes"; done != want {
				t.Errorf("recovered: %t; told %s", done, w.told())
			}
		})
	}
}

// settle has somebody else mark revision 2 failed.
func (w *deployWatch) settle(name string) {
	w.t.Helper()
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sh.helm.release.v1." + name + ".v2"}}
	if err := w.Client.Patch(w.t.Context(), record, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"status":"failed"}}}`))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *deployWatch) pause(namespace string) {
	w.t.Helper()
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1.AnnotationPaused)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := w.Client.Patch(w.t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

func TestSilenceCountsFromWhenThisProcessBeganToWatch(t *testing.T) {
	w := newDeployWatch(t, release.PolicyForward, guarded("web")...)
	w.clock.Step(time.Hour) // nobody watched; the lease is old, and the timeout past
	w.pass(2 * time.Minute)
	if got := w.statusOf("web"); got != "pending-upgrade" {
		t.Errorf("after two minutes it is %s", got)
	}
	w.pass(2 * time.Minute)
	if got := w.statusOf("web"); got != "failed" {
		t.Errorf("after four minutes it is %s: %s", got, w.told())
	}
}

// A controller that has just started must not say of a silent guard that it lives, nor take back what the one before it told.
func TestASilentGuardIsNeitherAliveNorDeadUntilItWasWatched(t *testing.T) {
	w := newDeployWatch(t, release.PolicyReport)
	look := func() deploy {
		all := []deploy{deployOf(release.PendingUpgrade, func(d *deploy) { d.Lease.ResourceVersion = "5" })} // silent for an hour by the API server's clock
		w.decide(all, nil, nil)
		return all[0]
	}
	first := look()
	if m, _ := first.message(); !first.watched || first.verdict.State != release.Unknown || first.plan.Action != release.DoNothing || m.Key != "" {
		t.Errorf("at first it is %s, %s, and told %+v", first.verdict.State, first.plan.Action, m)
	}
	w.clock.Step(3 * time.Minute)
	if then := look(); then.watched || then.verdict.State != release.Abandoned || then.plan.Action != release.DoReport {
		t.Errorf("after the lease's duration it is %s, %s", then.verdict.State, then.plan.Action)
	}
}

// A guard that refused has put back the lease that it had taken. Its write is no sign of life of the deploy before.
func TestALeaseThatWasGivenBackDoesNotTellThatItsGuardLives(t *testing.T) {
	w := newDeployWatch(t, release.PolicyReport, guarded("web")...)
	w.written = map[string]time.Time{v1.DeployLeasePrefix + "web": noon}
	w.pass(15 * time.Minute)
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1.AnnotationDeployWritten, noon.Format(time.RFC3339))
	if err := w.Client.Patch(t.Context(), guardOf("web", ""), client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		t.Fatal(err)
	}
	w.written[v1.DeployLeasePrefix+"web"] = w.clock.Now()
	if one := w.look(t.Context())[0]; !one.watched || one.verdict.State != release.Unknown || !one.keeps(one.abandoned()) {
		t.Errorf("it is %s: %s", one.verdict.State, one.verdict.Reason)
	}
	w.pass(4 * time.Minute)
	if one := w.look(t.Context())[0]; one.verdict.State != release.Abandoned {
		t.Errorf("after the lease's duration it is %s: %s", one.verdict.State, one.verdict.Reason)
	}
}

func TestManyGuardsThatFallSilentTogetherAreOneIncident(t *testing.T) {
	for count, want := range map[int]string{3: "failed", 4: "pending-upgrade"} {
		var objects []client.Object
		for i := range count {
			objects = append(objects, guarded(fmt.Sprintf("web-%d", i))...)
		}
		w := newDeployWatch(t, release.PolicyForward, objects...)
		w.pass(15 * time.Minute)
		if got := w.statusOf("web-0"); got != want {
			t.Errorf("of %d it is %s, want %s", count, got, want)
		}
		if said := strings.Contains(w.told(), "fell silent together"); said != (want != "failed") {
			t.Errorf("of %d it told %s", count, w.told())
		}
	}
}

// A guard that died before its first install wrote anything has left a lease, and nothing else.
func TestALeaseWithoutARecordIsLookedAt(t *testing.T) {
	w := newDeployWatch(t, release.PolicyForward, guardOf("web", "d1"))
	var states []release.State
	for range 5 {
		all := w.look(t.Context())
		if len(all) != 1 {
			t.Fatalf("looked at %+v", all)
		}
		if s := all[0].verdict.State; len(states) == 0 || states[len(states)-1] != s {
			states = append(states, s)
		}
		w.clock.Step(time.Minute)
	}
	if want := []release.State{release.Live, release.Silent}; !slices.Equal(states, want) || w.told() != "" {
		t.Errorf("it is %s, want %s; told %s", states, want, w.told())
	}
}

// After a restart, or a change of leader, this process hears of all dead guards at once. They had died hours apart.
func TestGuardsThatFellSilentHoursApartAreNoIncident(t *testing.T) {
	var objects []client.Object
	written := map[string]time.Time{}
	for i := range 4 {
		name := fmt.Sprintf("web-%d", i)
		objects = append(objects, guarded(name)...)
		written[v1.DeployLeasePrefix+name] = noon.Add(time.Duration(i) * time.Hour)
	}
	w := newDeployWatch(t, release.PolicyForward, objects...)
	w.written = written
	w.clock.Step(24 * time.Hour)
	w.pass(5 * time.Minute)
	for i := range 4 {
		if got := w.statusOf(fmt.Sprintf("web-%d", i)); got != "failed" {
			t.Errorf("web-%d is %s", i, got)
		}
	}
	if strings.Contains(w.told(), "fell silent together") {
		t.Errorf("it told %s", w.told())
	}
}

// Nobody deletes the leases of guards that died together once. When their releases are settled again, the incident is over.
func TestAnIncidentEndsWithWhatItLeftPending(t *testing.T) {
	var objects []client.Object
	for i := range 4 {
		objects = append(objects, guarded(fmt.Sprintf("web-%d", i))...)
	}
	w := newDeployWatch(t, release.PolicyForward, objects...)
	w.pass(15 * time.Minute)
	for i := range 2 {
		w.settle(fmt.Sprintf("web-%d", i))
	}
	w.pass(time.Minute)
	if got := w.statusOf("web-3"); got != "failed" {
		t.Errorf("it is %s: %s", got, w.told())
	}
}

func TestAReleaseIsRecoveredOnceAnHour(t *testing.T) {
	w := newDeployWatch(t, release.PolicyForward, guarded("web")...)
	w.pass(15 * time.Minute)
	for _, o := range pendingRelease("web", "d-web") { // the same again: somebody restored the record
		if o.GetName() == "sh.helm.release.v1.web.v2" {
			if err := errors.Join(w.Client.Delete(t.Context(), o), w.Client.Create(t.Context(), o)); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.pass(10 * time.Minute)
	if got := w.statusOf("web"); got != "pending-upgrade" || !strings.Contains(w.told(), "less than an hour ago") {
		t.Errorf("it is %s: %s", got, w.told())
	}
	w.pass(time.Hour)
	if got := w.statusOf("web"); got != "failed" {
		t.Errorf("after an hour it is %s", got)
	}
}

// The next deploy is left too, and meanwhile another controller leads: the record of the first one tells when it was recovered.
func TestAReleaseIsRecoveredOnceAnHourWhoeverLeads(t *testing.T) {
	w := newDeployWatch(t, release.PolicyForward, guarded("web")...)
	w.pass(15 * time.Minute)
	next := pendingRelease("web", "d-next")
	for _, o := range next {
		if o.GetName() == "sh.helm.release.v1.web.v2" {
			record, _ := o.(*corev1.ConfigMap)
			record.Name, record.Labels["version"] = "sh.helm.release.v1.web.v3", "3"
			document := `{"name":"web","version":3,"info":{"status":"pending-upgrade"}}`
			record.Data["release"] = base64.StdEncoding.EncodeToString([]byte(document))
			lease := guardOf("web", "d-next")
			lease.Annotations[v1.AnnotationDeployRevision] = "3"
			if err := errors.Join(w.Client.Create(t.Context(), record), w.Client.Delete(t.Context(), guardOf("web", "")), w.Client.Create(t.Context(), lease)); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.deploys = newDeploys(w.DeployOptions, logr.Discard(), w.metrics)
	w.pass(10 * time.Minute)
	status := func() string { return w.labelOf("sh.helm.release.v1.web.v3") }
	if status() != "pending-upgrade" || !strings.Contains(w.told(), "less than an hour ago") {
		t.Errorf("it is %s: %s", status(), w.told())
	}
	w.pass(time.Hour)
	if status() != "failed" {
		t.Errorf("after an hour it is %s", status())
	}
}

func TestARefusedRecoveryIsToldAndStopsNoOther(t *testing.T) {
	w := newDeployWatch(t, release.PolicyForward, append(guarded("web"), guarded("shop")...)...)
	w.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", nil)
	w.pass(15 * time.Minute)
	if told := w.told(); strings.Count(told, "RecoveryRefused") != 2 || strings.Contains(told, "ReleaseRecovered") {
		t.Errorf("told %s", told)
	}
	w.refuse = nil
	w.pass(time.Minute)
	if w.statusOf("web") != "failed" || w.statusOf("shop") != "failed" {
		t.Errorf("they are %s and %s", w.statusOf("web"), w.statusOf("shop"))
	}
}

func TestADamagedRecordIsNamedAndStopsNoOther(t *testing.T) {
	torn := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "sh.helm.release.v1.torn.v3", Labels: map[string]string{"owner": "helm", "name": "torn", "version": "x"},
	}}
	w := newDeployWatch(t, release.PolicyForward, append(guarded("web"), torn)...)
	w.pass(15 * time.Minute)
	if told := w.told(); !strings.Contains(told, "release torn: record configmap/sh.helm.release.v1.torn.v3") || w.statusOf("web") != "failed" {
		t.Errorf("told %s; web is %s", told, w.statusOf("web"))
	}
	if got := w.metric("tidemark_release_unreadable"); got != 1 {
		t.Errorf("unreadable is %v", got)
	}
}

func TestARecordWhosePayloadIsTornIsNamed(t *testing.T) {
	records := pendingRelease("web", "d-web")
	for _, o := range records {
		if c, is := o.(*corev1.ConfigMap); is && c.Labels["version"] == "2" {
			c.Data["release"] = "H4sI" // gzip, and no more of it
		}
	}
	w := newDeployWatch(t, release.PolicyForward, append(records, guardOf("web", "d-web"))...)
	w.pass(45 * time.Minute)
	if told := w.told(); !strings.Contains(told, "configmap/sh.helm.release.v1.web.v2 cannot be read") || w.statusOf("web") != "pending-upgrade" {
		t.Errorf("it is %s: told %s", w.statusOf("web"), told)
	}
	if got := w.metric("tidemark_release_unreadable"); got != 1 {
		t.Errorf("unreadable is %v", got)
	}
}
