package recovery

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// record is one of release web. The one in memory selects by metadata alone, so it is a ConfigMap.
func record(number int, status, deploy string) *corev1.ConfigMap {
	document := fmt.Sprintf(`{"name":"web","version":%d,"info":{"status":%q},"manifest":"m"}`, number, status)
	c := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("sh.helm.release.v1.web.v%d", number), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
			Labels: map[string]string{"owner": "helm", "name": "web", "version": fmt.Sprint(number), "status": status},
		},
		Data: map[string]string{"release": base64.StdEncoding.EncodeToString([]byte(document))},
	}
	if deploy != "" {
		c.Labels[v1.LabelDeploy] = deploy
	}
	return c
}

// lease is that of deploy d1, which has been past its timeout for long.
func lease(change func(*coordinationv1.Lease)) *coordinationv1.Lease {
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: v1.DeployLeasePrefix + "web", Labels: map[string]string{v1.LabelDeploy: "d1"},
			Annotations: map[string]string{
				v1.AnnotationDeployRevision: "2", v1.AnnotationDeployBegan: "2026-11-30T11:00:00Z", v1.AnnotationDeployTimeout: "10m",
			},
		},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](180)},
	}
	change(l)
	return l
}

func ended(l *coordinationv1.Lease) {
	l.Annotations[v1.AnnotationDeployEnded], l.Annotations[v1.AnnotationDeployExitStatus] = "2026-11-30T11:05:00Z", "137"
}

// memory is a cluster in memory whose Secrets cannot be listed by type, and need not be.
func memory(objects ...client.Object) client.WithWatch {
	return interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if gvk, err := c.GroupVersionKindFor(list); err != nil || gvk.Kind == "SecretList" {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
}

func clients(c client.Client, clock *clocktesting.FakeClock) Clients {
	return Clients{API: c, Now: func() time.Time { return noon }, Clock: clock}
}

func observe(t *testing.T, c Clients) *Seen {
	t.Helper()
	seen, err := Observe(t.Context(), c, "shop", "web", nil)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func status(t *testing.T, c client.Client, number int) string {
	t.Helper()
	r := record(number, "", "")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	return r.Labels["status"]
}

var byPerson = Request{Request: release.Request{Actor: release.ByPerson, Policy: release.PolicyForward}}

func TestAnAbandonedUpgradeIsForwarded(t *testing.T) {
	api := memory(record(1, "deployed", ""), record(2, "pending-upgrade", "d1"), lease(ended))
	c := clients(api, clocktesting.NewFakeClock(noon))
	dry := byPerson
	dry.DryRun = true
	seen := observe(t, c)
	r, err := Run(t.Context(), c, seen, dry)
	if err != nil || r.Done || r.Plan.Action != release.DoForward || status(t, api, 2) != "pending-upgrade" {
		t.Errorf("a dry run: %+v, %v, %s", r, err, status(t, api, 2))
	}
	r, err = Run(t.Context(), c, seen, byPerson)
	if err != nil || !r.Done || r.Plan.To != 2 || status(t, api, 2) != "failed" || status(t, api, 1) != "deployed" {
		t.Errorf("%+v, %v, revisions %s and %s", r, err, status(t, api, 1), status(t, api, 2))
	}
	if r, err = Run(t.Context(), c, observe(t, c), byPerson); err != nil || r.Done || r.Verdict.State != release.Healthy {
		t.Errorf("a second time: %+v, %v", r, err)
	}
}

func TestNothingIsWrittenWhenItChangedSinceItWasSeen(t *testing.T) {
	write := func(object client.Object, body string) func(*testing.T, client.Client) {
		return func(t *testing.T, c client.Client) {
			if err := c.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
				t.Error(err)
			}
		}
	}
	create := func(object client.Object) func(*testing.T, client.Client) {
		return func(t *testing.T, c client.Client) {
			if err := c.Create(t.Context(), object); err != nil {
				t.Error(err)
			}
		}
	}
	for name, change := range map[string]func(*testing.T, client.Client){
		"the record was written": write(record(2, "", ""), `{"metadata":{"labels":{"modifiedAt":"2"}}}`),
		"the lease was renewed":  write(lease(func(*coordinationv1.Lease) {}), `{"spec":{"leaseTransitions":2}}`),
		"a revision was added":   create(record(3, "pending-upgrade", "")),
		"the lease is gone": func(t *testing.T, c client.Client) {
			if err := c.Delete(t.Context(), lease(func(*coordinationv1.Lease) {})); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := memory(record(1, "deployed", ""), record(2, "pending-upgrade", "d1"), lease(ended))
			c := clients(api, clocktesting.NewFakeClock(noon))
			seen := observe(t, c)
			change(t, api)
			r, err := Run(t.Context(), c, seen, byPerson)
			if !errors.Is(err, helm.ErrChanged) || r.Done || status(t, api, 2) != "pending-upgrade" {
				t.Errorf("%+v, %v, %s", r, err, status(t, api, 2))
			}
		})
	}
}

func TestTheCallersOwnLeaseIsNoSignOfAnothersLife(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "mine", UID: "u"}, Spec: corev1.PodSpec{NodeName: "n"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	mine := lease(func(l *coordinationv1.Lease) {
		l.Labels[v1.LabelDeploy], l.Annotations[v1.AnnotationDeployRevision] = "d2", "3"
		l.Annotations[v1.AnnotationDeployPod], l.Annotations[v1.AnnotationDeployNode] = "ci/mine/u", "n"
	})
	api := memory(record(1, "deployed", ""), record(2, "pending-upgrade", "d1"), mine, pod, node)
	c := clients(api, clocktesting.NewFakeClock(noon))
	silent := &release.Lease{Deploy: "d1", Revision: 2, Began: noon.Add(-time.Hour), Timeout: 10 * time.Minute, Duration: time.Minute, Unchanged: time.Minute}
	seen, err := Look(t.Context(), c, "shop", "web", helm.Before{Lease: silent})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Run(t.Context(), c, seen, byPerson); err != nil || !r.Done || status(t, api, 2) != "failed" {
		t.Errorf("%+v, %v", r, err)
	}
}

// watched observes while the clock is moved on whenever the observer waits; between is called before each move.
func watched(t *testing.T, api client.Client, between func(turn int)) (seen *Seen, waited time.Duration, told int) {
	t.Helper()
	clock := clocktesting.NewFakeClock(noon)
	type result struct {
		seen *Seen
		err  error
	}
	done := make(chan result)
	go func() {
		seen, err := Observe(t.Context(), clients(api, clock), "shop", "web", func(time.Duration) { told++ })
		done <- result{seen, err}
	}()
	for turn := 0; ; turn++ {
		for !clock.HasWaiters() {
			select {
			case r := <-done:
				if r.err != nil {
					t.Fatal(r.err)
				}
				return r.seen, clock.Since(noon), told
			case <-time.After(time.Millisecond):
			}
		}
		between(turn)
		clock.Step(15 * time.Second)
	}
}

func TestSilenceIsObservedForTheWholeLease(t *testing.T) {
	silent := lease(func(*coordinationv1.Lease) {})
	api := memory(record(1, "deployed", ""), record(2, "pending-upgrade", "d1"), silent)
	seen, waited, told := watched(t, api, func(int) {})
	if v := release.Judge(seen.Input); v.State != release.Abandoned || waited < 3*time.Minute || told != 1 {
		t.Errorf("%s after %s, told %d times: %s", v.State, waited, told, v.Reason)
	}
}

func TestASignOfLifeEndsTheObservation(t *testing.T) {
	api := memory(record(1, "deployed", ""), record(2, "pending-upgrade", "d1"), lease(func(*coordinationv1.Lease) {}))
	seen, waited, _ := watched(t, api, func(turn int) {
		if turn == 3 {
			if err := api.Patch(t.Context(), lease(func(*coordinationv1.Lease) {}), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"leaseTransitions":2}}`))); err != nil {
				t.Error(err)
			}
		}
	})
	v := release.Judge(seen.Input)
	if v.State != release.Overdue || waited >= 3*time.Minute {
		t.Errorf("%s after %s: %s", v.State, waited, v.Reason)
	}
	if p := Decide(seen, byPerson).Plan; p.Action.Writes() {
		t.Errorf("a live operation: %+v", p)
	}
}

func TestNobodyWaitsWhereSilenceDecidesNothing(t *testing.T) {
	unguarded := lease(func(l *coordinationv1.Lease) { l.Labels[v1.LabelDeploy] = "d9" })
	for name, objects := range map[string][]client.Object{
		"nothing is pending":      {record(1, "deployed", ""), lease(func(*coordinationv1.Lease) {})},
		"the guard said its end":  {record(2, "pending-upgrade", "d1"), lease(ended)},
		"no lease tells":          {record(2, "pending-upgrade", "")},
		"the lease is of another": {record(2, "pending-upgrade", "d1"), unguarded},
	} {
		if _, waited, told := watched(t, memory(objects...), func(int) {}); waited > 0 || told > 0 {
			t.Errorf("%s: waited %s", name, waited)
		}
	}
}

func TestAReleaseWithoutARecordIsAnError(t *testing.T) {
	_, err := Observe(t.Context(), clients(memory(), clocktesting.NewFakeClock(noon)), "shop", "web", nil)
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "release web in namespace shop") {
		t.Errorf("error %v", err)
	}
}
