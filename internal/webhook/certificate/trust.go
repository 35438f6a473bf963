package certificate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// configurations reads the webhook configurations that are there.
func (k *Keeper) configurations(ctx context.Context) ([]admissionregistrationv1.MutatingWebhookConfiguration, error) {
	var found []admissionregistrationv1.MutatingWebhookConfiguration
	for _, name := range k.Configurations {
		c := admissionregistrationv1.MutatingWebhookConfiguration{}
		err := k.Client.Get(ctx, client.ObjectKey{Name: name}, &c)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read webhook configuration %s: %w", name, err)
		default:
			found = append(found, c)
		}
	}
	return found, nil
}

// trusts reports whether all webhooks trust an authority.
func trusts(configurations []admissionregistrationv1.MutatingWebhookConfiguration, authority []byte) bool {
	for i := range configurations {
		for j := range configurations[i].Webhooks {
			if !bytes.Contains(configurations[i].Webhooks[j].ClientConfig.CABundle, authority) {
				return false
			}
		}
	}
	return true
}

// inject makes the webhooks trust what the bundle has, and nothing else. It changes nothing but that, whoever else writes.
func (k *Keeper) inject(ctx context.Context, configurations []admissionregistrationv1.MutatingWebhookConfiguration, bundle []byte) error {
	var errs []error
	for i := range configurations {
		c := &configurations[i]
		var changed []map[string]any
		for j := range c.Webhooks {
			if !bytes.Equal(c.Webhooks[j].ClientConfig.CABundle, bundle) {
				changed = append(changed, map[string]any{"name": c.Webhooks[j].Name, "clientConfig": map[string]any{"caBundle": bundle}})
			}
		}
		if len(changed) == 0 {
			continue
		}
		body, err := json.Marshal(map[string]any{"webhooks": changed})
		if err == nil {
			err = k.Client.Patch(ctx, c, client.RawPatch(types.StrategicMergePatchType, body), client.FieldOwner(v1.FieldManager))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("make %s trust the certificate: %w", c.Name, err))
			continue
		}
		k.Log.Info("A webhook configuration trusts the certificate", "configuration", c.Name)
	}
	return errors.Join(errs...)
}
