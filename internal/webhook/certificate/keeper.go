package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// Keeper keeps a certificate that is valid. Every replica runs one: they share the Secret, and whichever comes first writes.
type Keeper struct {
	// Client reads and writes without a cache.
	Client client.Client
	// Namespace is Tidemark's own.
	Namespace string
	Settings  Settings
	// Configurations are the webhook configurations that are to trust the certificate; those that are not there need nothing.
	Configurations []string
	Clock          clock.Clock
	Log            logr.Logger

	serving atomic.Pointer[tls.Certificate]
	// trusted is the next certificate since this replica saw that the API is told to trust it.
	trusted struct {
		certificate []byte
		since       time.Time
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start keeps the certificate until the context ends. What fails is tried again for ever, and stops nothing else.
func (k *Keeper) Start(ctx context.Context) error {
	said := ""
	for ctx.Err() == nil {
		now := ""
		if failed := k.Keep(ctx); failed != nil {
			now = failed.Error()
		}
		if now != said && now != "" && ctx.Err() == nil {
			k.Log.Error(nil, "Cannot keep the webhook's certificate; trying again: "+now)
		}
		said = now
		select {
		case <-ctx.Done():
		case <-k.Clock.After(k.again(said != "")):
		}
	}
	return nil
}

// again is how long after a look, which may have failed, the next one is.
func (k *Keeper) again(failed bool) time.Duration {
	left := time.Duration(0)
	if c := k.serving.Load(); c != nil {
		left = c.Leaf.NotAfter.Sub(k.Clock.Now())
	}
	if failed {
		left = max(left, 2*time.Second) // the API is asked once a second at most
		return min(k.Settings.again(left), time.Second)
	}
	return k.Settings.again(left)
}

// Keep looks once whether something is due, and does it.
func (k *Keeper) Keep(ctx context.Context) error {
	secret, err := k.read(ctx)
	if err != nil {
		return err
	}
	configurations, err := k.configurations(ctx)
	if err != nil {
		return err
	}
	held := heldIn(secret)
	now := k.Clock.Now()
	wanted, err := k.Settings.next(held, k.trustedFor(held.Next.Certificate, configurations, now), now)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(wanted, held) {
		if err := k.write(ctx, secret, wanted); err != nil {
			return err
		}
	}
	if err := k.serve(wanted.Current); err != nil {
		return err
	}
	return k.inject(ctx, configurations, wanted.bundle())
}

// trustedFor is for how long the API has been told to trust the next certificate, as far as this replica has seen.
func (k *Keeper) trustedFor(
	next []byte, configurations []admissionregistrationv1.MutatingWebhookConfiguration, now time.Time,
) time.Duration {
	authority := authorityOf(next)
	if authority == nil || !trusts(configurations, authority) {
		k.trusted.certificate = nil
		return 0
	}
	if !bytes.Equal(k.trusted.certificate, next) {
		k.trusted.certificate, k.trusted.since = next, now
	}
	return now.Sub(k.trusted.since)
}

// read reads the Secret; one that is not there is empty, without a resourceVersion.
func (k *Keeper) read(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: v1.SecretWebhookCertificate}}
	err := k.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return secret, nil
}

// Entries of the Secret, besides those that every Secret with a certificate has.
const (
	nextCertificate    = "next.crt"
	nextKey            = "next.key"
	retiredCertificate = "retired.crt"
)

func heldIn(secret *corev1.Secret) Held {
	d := secret.Data
	return Held{
		Current: Pair{d[corev1.TLSCertKey], d[corev1.TLSPrivateKeyKey]}, Next: Pair{d[nextCertificate], d[nextKey]}, Retired: d[retiredCertificate],
	}
}

// write writes the Secret, unless somebody else wrote it first: then what they wrote is looked at next.
func (k *Keeper) write(ctx context.Context, secret *corev1.Secret, h Held) error {
	before := secret.DeepCopy()
	secret.Data = map[string][]byte{}
	for name, value := range map[string][]byte{
		corev1.TLSCertKey: h.Current.Certificate, corev1.TLSPrivateKeyKey: h.Current.Key,
		nextCertificate: h.Next.Certificate, nextKey: h.Next.Key, retiredCertificate: h.Retired,
	} {
		if len(value) > 0 {
			secret.Data[name] = value
		}
	}
	var err error
	if secret.ResourceVersion == "" {
		err = k.Client.Create(ctx, secret, client.FieldOwner(v1.FieldManager))
	} else {
		err = k.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1.FieldManager))
	}
	if err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	k.Log.Info("Made, or changed, the webhook's certificate", "validUntil", ends(h.Current).UTC().Format(time.RFC3339), "nextWaits", len(h.Next.Key) > 0)
	return nil
}

func (k *Keeper) serve(p Pair) error {
	if now := k.serving.Load(); now != nil {
		if c, err := p.parse(); err == nil && bytes.Equal(c.Certificate[0], now.Certificate[0]) {
			return nil
		}
	}
	c, err := p.parse()
	if err == nil {
		k.serving.Store(c)
	}
	return err
}

// errNone is why nothing is served at first.
var errNone = errors.New("there is no certificate yet")

// GetCertificate gives the certificate to serve with, as tls.Config asks for it.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.serving.Load(); c != nil {
		return c, nil
	}
	return nil, errNone
}

// Ready is a check that a valid certificate is served.
func (k *Keeper) Ready(*http.Request) error {
	c := k.serving.Load()
	if c == nil {
		return errNone
	}
	return current(c.Leaf, k.Clock.Now())
}
