package plan

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/workload"
)

// intendedClient reads the cluster as it is once the manifests are applied.
type intendedClient struct {
	client.Client
	Intended Intended
}

// Get implements client.Reader.
func (c intendedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	cm, is := obj.(*corev1.ConfigMap)
	if !is {
		return err
	}
	given := c.Intended.ConfigMaps[workload.Object{Kind: workload.ConfigMap, Namespace: key.Namespace, Name: key.Name}]
	switch {
	case given == nil:
		return err
	case apierrors.IsNotFound(err):
		given.DeepCopyInto(cm)
		return nil
	case err == nil:
		cm.Data, cm.BinaryData, cm.Annotations = given.Data, given.BinaryData, joined(cm.Annotations, given.Annotations)
	}
	return err
}
