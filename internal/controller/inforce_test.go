package controller

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
)

func TestPinsAreInForceOnceTheAPIServerHadTheTimeToHearOfThem(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	came := make(chan struct{}, 1)
	p := &pinning{reader: api, clock: clock, log: logr.Discard(), metrics: metrics, came: func() { came <- struct{}{} }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Start(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	waits := func() {
		t.Helper()
		for range 1000 {
			if clock.HasWaiters() {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal("it does not wait for its next look")
	}
	waits()
	if p.inForce() {
		t.Error("pins are in force and nothing is installed")
	}
	named := metav1.ObjectMeta{Name: v1.PolicyPin}
	for _, obj := range []client.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: named}, &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: named},
	} {
		if err := api.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}

	clock.Step(unpinnedEvery)
	waits()
	if p.inForce() {
		t.Error("pins are in force as soon as the policy is seen, and the API server may not know it yet")
	}

	clock.Step(pinningTakes)
	waits()
	if !p.inForce() {
		t.Error("pins are not in force")
	}
	select {
	case <-came:
	default:
		t.Error("nobody was told that pins came into force")
	}
}

func TestWhatOfModePinMayNotBeLookedAtIsNoReasonForAnAlert(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	forbidden := interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		return apierrors.NewForbidden(schema.GroupResource{}, key.Name, nil)
	}}
	found, err := cluster.FindPinning(t.Context(), fake.NewClientBuilder().WithInterceptorFuncs(forbidden).Build())
	if err != nil {
		t.Fatal(err)
	}
	metrics.pinning(found)
	want := map[string]float64{"policy": 0, "podWebhook": 0, "workloadWebhook": 0, "hidden": 1}
	if got := gauged(t, registry, "tidemark_pinning"); !maps.Equal(got, want) {
		t.Errorf("it is %v", got)
	}
}
