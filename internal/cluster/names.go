package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespaces lists the names of the namespaces that may be listed.
func Namespaces(ctx context.Context, c *Connection) []string {
	var out []string
	// What cannot be read is not offered.
	_ = EachItem(ctx, c.Client, MetadataList(NamespaceKind), PageSize, func(m *metav1.PartialObjectMetadata) {
		out = append(out, m.Name)
	})
	return out
}

// Names lists the workloads of a namespace that may be listed, by metadata alone.
func Names(ctx context.Context, c *Connection, kinds []Kind, ns string) []Target {
	var out []Target
	for _, k := range kinds {
		// What cannot be read is not offered.
		_ = EachItem(ctx, c.Client, MetadataList(k.GroupVersionKind), PageSize, func(m *metav1.PartialObjectMetadata) {
			out = append(out, Target{Kind: k, Namespace: m.Namespace, Name: m.Name})
		}, client.InNamespace(ns))
	}
	return out
}

// PodNames lists the pods of a namespace that may be listed, by metadata alone.
func PodNames(ctx context.Context, c *Connection, ns string) []string {
	var out []string
	// What cannot be read is not offered.
	_ = EachItem(ctx, c.Client, MetadataList(corev1.SchemeGroupVersion.WithKind("Pod")), PageSize, func(m *metav1.PartialObjectMetadata) {
		out = append(out, m.Name)
	}, client.InNamespace(ns))
	return out
}
