package helm

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
	"tidemark.dev/tidemark/internal/workload"
)

// Payload reads the payload of a revision's record.
func Payload(ctx context.Context, c client.Reader, namespace string, r release.Revision) (helmrecord.Packed, error) {
	key := client.ObjectKey{Namespace: namespace, Name: r.Record}
	if r.Kind == string(workload.ConfigMap) {
		record := &corev1.ConfigMap{}
		err := c.Get(ctx, key, record)
		return helmrecord.OfConfigMap(record), err
	}
	record := &corev1.Secret{}
	err := c.Get(ctx, key, record)
	return helmrecord.OfSecret(record), err
}
