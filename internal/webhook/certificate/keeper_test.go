package certificate

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "tidemark.dev/tidemark/api/v1"
)

// world is an API with a webhook configuration, and a replica that keeps the certificate.
type world struct {
	*Keeper
	t     *testing.T
	api   client.Client
	clock *clocktesting.FakeClock
}

const validity = 24 * time.Hour

func newWorld(t *testing.T) *world {
	t.Helper()
	path := "/workloads"
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: v1.WebhookWorkloads},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "workloads.tidemark.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "tidemark-system", Name: "tidemark-webhook", Path: &path},
			},
		}},
	}).Build()
	w := &world{t: t, api: api, clock: clocktesting.NewFakeClock(time.Now())}
	w.Keeper = w.replica()
	return w
}

func (w *world) replica() *Keeper {
	return &Keeper{
		Client: w.api, Namespace: v1.DefaultNamespace, Settings: Settings{Names: names, Validity: validity},
		Configurations: []string{v1.WebhookWorkloads, v1.WebhookPods}, Clock: w.clock, Log: logr.Discard(),
	}
}

func (w *world) look(k *Keeper) {
	w.t.Helper()
	if err := k.Keep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// trusted fails the test unless the API server would trust what a replica serves with.
func (w *world) trusted(k *Keeper) *x509.Certificate {
	w.t.Helper()
	c := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: v1.WebhookWorkloads}, c); err != nil {
		w.t.Fatal(err)
	}
	if c.Webhooks[0].ClientConfig.Service == nil {
		w.t.Error("the webhook configuration has lost its Service")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.Webhooks[0].ClientConfig.CABundle)
	serving, err := k.GetCertificate(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := serving.Leaf.Verify(x509.VerifyOptions{DNSName: names[0], Roots: roots, CurrentTime: w.clock.Now()}); err != nil {
		w.t.Error(err)
	}
	if err := k.Ready(nil); err != nil {
		w.t.Error(err)
	}
	return serving.Leaf
}

func TestReplicasShareTheCertificate(t *testing.T) {
	w := newWorld(t)
	if err := w.Ready(nil); err == nil {
		t.Error("it is ready without a certificate")
	}
	w.look(w.Keeper)
	other := w.replica()
	w.look(other)
	if a, b := w.trusted(w.Keeper), w.trusted(other); !bytes.Equal(a.Raw, b.Raw) {
		t.Error("two replicas serve with two certificates")
	}
}

func TestACertificateIsRenewedWithoutAMomentInWhichItIsNotTrusted(t *testing.T) {
	w := newWorld(t)
	other := w.replica()
	w.look(w.Keeper)
	w.look(other)
	first := w.trusted(w.Keeper)

	w.clock.Step(validity*2/3 + time.Minute)
	w.look(w.Keeper) // makes the next one
	w.trusted(w.Keeper)
	w.trusted(other)
	held := w.held()
	if len(held.Next.Key) == 0 {
		t.Fatal("no certificate is to follow")
	}
	w.look(w.Keeper) // it must be trusted for a while first
	if now := w.trusted(w.Keeper); !bytes.Equal(now.Raw, first.Raw) {
		t.Error("the next certificate serves before every API server can know of it")
	}
	w.clock.Step(time.Minute)
	w.look(w.Keeper)
	now := w.trusted(w.Keeper)
	w.trusted(other) // it serves with the one before, for a moment
	w.look(other)
	if bytes.Equal(now.Raw, first.Raw) || !bytes.Equal(w.trusted(other).Raw, now.Raw) {
		t.Error("the certificate was not renewed by both")
	}
}

func TestACertificateThatEndsSoonIsReplacedBeforeItDoes(t *testing.T) {
	w := newWorld(t)
	other := w.replica()
	const short = 15 * time.Second
	w.Settings.Validity = short
	w.look(w.Keeper)
	began, first := w.clock.Now(), w.trusted(w.Keeper)

	// Both are started anew, with the validity that is usual.
	w.Keeper = w.replica()
	w.look(w.Keeper)
	w.look(other)
	next := map[*Keeper]time.Time{w.Keeper: {}, other: {}}
	for w.clock.Now().Before(began.Add(2 * short)) {
		for k, due := range next {
			w.trusted(k)
			if !w.clock.Now().Before(due) {
				w.look(k)
				next[k] = w.clock.Now().Add(k.again(false))
			}
			w.trusted(k)
		}
		w.clock.Step(50 * time.Millisecond)
	}
	if now := w.trusted(other); bytes.Equal(now.Raw, first.Raw) || now.NotAfter.Before(began.Add(validity-time.Minute)) {
		t.Errorf("it serves with a certificate until %s", now.NotAfter)
	}
}

func (w *world) held() Held {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: v1.DefaultNamespace, Name: v1.SecretWebhookCertificate}, secret); err != nil {
		w.t.Fatal(err)
	}
	return heldIn(secret)
}

func TestWhatSomebodyElseChangesIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.look(w.Keeper)
	for name, change := range map[string]func() error{
		"the bundle": func() error {
			c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: v1.WebhookWorkloads}}
			return w.api.Patch(t.Context(), c, client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)))
		},
		"the Secret": func() error {
			return w.api.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1.DefaultNamespace, Name: v1.SecretWebhookCertificate}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			w.look(w.Keeper)
			w.trusted(w.Keeper)
		})
	}
}
