package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
)

// DigestKey reads the key for digests of Secrets from Tidemark's own namespace, and makes it where there is none. The key
// lives nowhere else: when it is lost, the next one gives every Secret a new baseline, and no rollout.
func DigestKey(ctx context.Context, c client.Client, namespace string) (*digest.Key, error) {
	for range 3 { // another replica may make it at the same time
		key, err := StoredKey(ctx, c, namespace)
		if !apierrors.IsNotFound(err) {
			return key, err
		}
		fresh, err := digest.RandomKey()
		if err != nil {
			return nil, err
		}
		secret := &corev1.Secret{Data: map[string][]byte{v1.DigestKeyEntry: fresh.Secret()}}
		secret.Namespace, secret.Name = namespace, v1.SecretDigestKey
		if err := c.Create(ctx, secret, client.FieldOwner(v1.FieldManager)); err == nil {
			return fresh, nil
		} else if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("make digest key: %w", err)
		}
	}
	return nil, fmt.Errorf("make digest key: secret %s/%s comes and goes", namespace, v1.SecretDigestKey)
}

// errBadKey says that what is stored as the digest key is none.
var errBadKey = errors.New("read digest key")

// StoredKey reads the key for digests of Secrets, without making one. The error where there is none wraps the API's.
func StoredKey(ctx context.Context, c client.Reader, namespace string) (*digest.Key, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1.SecretDigestKey}, secret); err != nil {
		return nil, fmt.Errorf("read digest key: %w", err)
	}
	key, err := digest.NewKey(secret.Data[v1.DigestKeyEntry])
	if err != nil {
		return nil, fmt.Errorf("%w: secret %s/%s, entry %q: %w: delete the Secret to have a new one made",
			errBadKey, namespace, v1.SecretDigestKey, v1.DigestKeyEntry, err)
	}
	return key, nil
}
