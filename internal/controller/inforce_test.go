package controller

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// What the API server answers for what it does not serve, and for what may not be read.
var (
	errNoMatch   = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "MutatingAdmissionPolicy"}}
	errForbidden = apierrors.NewForbidden(schema.GroupResource{}, v1.PolicyPin, nil)
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
	p := NewPinning(api, "tidemark-system", clock, logr.Discard(), metrics)
	p.came = func() { came <- struct{}{} }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	if p.Lacks("shop") == "" {
		t.Error("pins are in force before anybody has looked")
	}
	go func() { defer close(ended); _ = p.Start(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	told := func(what string) {
		t.Helper()
		select {
		case <-came:
		default:
			t.Errorf("nobody was told %s", what)
		}
	}
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
	if p.Lacks("shop") == "" {
		t.Error("pins are in force and nothing is installed")
	}
	told("that nothing is installed")
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
	if p.Lacks("shop") == "" {
		t.Error("pins are in force as soon as the policy is seen, and the API server may not know it yet")
	}

	clock.Step(pinningTakes)
	waits()
	if why := p.Lacks("shop"); why != "" {
		t.Error(why)
	}
	told("that pins came into force")
}

func TestTheWebhookThatThisReplicaServesCountsOnceTheAPIServerFindsIt(t *testing.T) {
	webhook := cluster.Pinning{Webhook: true}
	for name, tc := range map[string]struct {
		found cluster.Pinning
		then  func(*Pinning, *testclock.FakeClock)
		// waits says that it was not in force before.
		waits bool
	}{
		"asked":                   {webhook, func(p *Pinning, _ *testclock.FakeClock) { p.Asked(); p.Asked() }, true},
		"nobody has a reason":     {webhook, func(p *Pinning, c *testclock.FakeClock) { c.Step(servingTakes); p.saw(webhook); p.saw(webhook) }, true},
		"a policy does it anyway": {cluster.Pinning{Policy: true, Webhook: true}, func(*Pinning, *testclock.FakeClock) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			clock := testclock.NewFakeClock(noon)
			p := NewPinning(nil, "tidemark-system", clock, logr.Discard(), w.metrics)
			came := 0
			p.came = func() { came++ }
			p.Serves()
			p.saw(tc.found)
			if waits := p.Lacks("shop") == unaskedPins; waits != tc.waits || p.Starting() != tc.waits {
				t.Errorf("it lacks %q, starting: %t", p.Lacks("shop"), p.Starting())
			}
			came = 0
			tc.then(p, clock)
			if p.Lacks("shop") != "" || p.Starting() || tc.waits != (came == 1) || came > 1 {
				t.Errorf("it lacks %q, starting: %t, told %d times", p.Lacks("shop"), p.Starting(), came)
			}
		})
	}
}

func TestWhatOfModePinMayNotBeLookedAtIsNoReasonForAnAlert(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	refuses := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errForbidden
	}}
	found, err := cluster.FindPinning(t.Context(), fake.NewClientBuilder().WithInterceptorFuncs(refuses).Build())
	if err != nil {
		t.Fatal(err)
	}
	metrics.pinning(found)
	want := map[string]float64{"policy": 0, "podWebhook": 0, "workloadWebhook": 0, "hidden": 1}
	if got := gauged(t, registry, "tidemark_pinning"); !maps.Equal(got, want) {
		t.Errorf("it is %v", got)
	}
}

func TestWhichMeansIsInForceAndWhatIsMissingIsSaidOnce(t *testing.T) {
	policy := []client.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1.PolicyPin}},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: v1.PolicyPin}},
	}
	webhook := func(name string) client.Object {
		return &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
				ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("authority")},
			}},
		}
	}
	pods, workloads := webhook(v1.WebhookPods), webhook(v1.WebhookWorkloads)
	with := func(objects ...client.Object) []client.Object { return slices.Concat(policy, objects) }
	const (
		byPolicy  = "Mode pin: the API server rewrites new pods by the policy tidemark-pin"
		byWebhook = "Mode pin: the webhook tidemark-pods rewrites new pods, which do without when it is down: "
		between   = "; without the webhook tidemark-workloads a deploy of configuration, then image, makes a revision in between"
	)
	for name, tc := range map[string]struct {
		installed []client.Object
		// policies and webhooks are what the API server answers to who asks for one; nil when it looks for it.
		policies, webhooks error
		want               string
	}{
		"everything":                     {installed: with(workloads), want: byPolicy},
		"no webhook on workloads":        {installed: policy, want: byPolicy + between},
		"both that rewrite":              {installed: with(pods, workloads), want: byPolicy + "; the webhook tidemark-pods does so once more and is not needed"},
		"a policy that nothing binds":    {installed: append(policy[:1:1], workloads), want: "Mode pin is not installed: " + noPins},
		"nothing":                        {want: "Mode pin is not installed: " + noPins},
		"a webhook where there could be": {installed: []client.Object{pods, workloads}, want: byWebhook + "the policy tidemark-pin would not be"},
		"a webhook before 1.36": {
			installed: []client.Object{pods}, policies: errNoMatch, want: byWebhook + "Kubernetes 1.36 can do it by a policy" + between,
		},
		"nothing before 1.36":                {policies: errNoMatch, want: "Mode pin is not installed: " + noPins},
		"nothing that may be looked at":      {policies: errForbidden, webhooks: errForbidden, want: "Mode pin: " + hiddenPins},
		"webhooks that may not be looked at": {installed: policy, webhooks: errForbidden, want: byPolicy},
	} {
		t.Run(name, func(t *testing.T) {
			w, log := newWorld(t, Options{}), &lines{}
			answers := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				err := tc.policies
				if obj.GetObjectKind().GroupVersionKind().Kind == "MutatingWebhookConfiguration" {
					err = tc.webhooks
				}
				if err != nil {
					return err
				}
				return c.Get(ctx, key, obj, opts...)
			}}
			api := fake.NewClientBuilder().WithObjects(tc.installed...).WithInterceptorFuncs(answers).Build()
			found, err := cluster.FindPinning(t.Context(), api)
			if err != nil {
				t.Fatal(err)
			}
			p := NewPinning(api, "tidemark-system", w.clock, log.logger(), w.metrics)
			p.saw(found)
			p.saw(found)
			if len(*log) != 1 || !strings.Contains((*log)[0], `"msg"="`+tc.want+`" `) {
				t.Errorf("it logs %q, want once %q", *log, tc.want)
			}
		})
	}
}

func TestTheWebhookOnPodsCountsNothingWhereItIsNotAsked(t *testing.T) {
	for name, tc := range map[string]struct {
		found cluster.Pinning
		out   bool // where the webhook is not asked
	}{
		"the webhook alone":           {cluster.Pinning{Webhook: true}, true},
		"the policy":                  {cluster.Pinning{Policy: true}, false},
		"the policy with the webhook": {cluster.Pinning{Policy: true, Webhook: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			p := NewPinning(nil, "tidemark", w.clock, logr.Discard(), w.metrics)
			p.saw(tc.found)
			for namespace, out := range map[string]bool{"shop": false, "": false, "kube-system": tc.out, "tidemark": tc.out} {
				if why := p.Lacks(namespace); (why == leftOutPins) != out || (why == "") == out {
					t.Errorf("in namespace %q it lacks %q", namespace, why)
				}
			}
		})
	}
}
