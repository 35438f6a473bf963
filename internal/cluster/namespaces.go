package cluster

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// namespace is what a survey keeps of a namespace.
type namespace struct{ annotations, labels map[string]string }

// NamespaceKind is the kind of namespaces.
var NamespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// readNamespaces reads what the namespaces of the workloads, and Tidemark's own, say of modes and pauses.
func (r *reading) readNamespaces(ctx context.Context) error {
	r.namespaces = map[string]namespace{}
	const unknown = "modes and pauses of namespaces are unknown"
	if len(r.Targets) == 0 && r.Namespace == "" {
		err := EachItem(ctx, r.Client, MetadataList(NamespaceKind), PageSize, func(m *metav1.PartialObjectMetadata) {
			r.namespaces[m.Name] = namespace{kept(m.Annotations), kept(m.Labels)}
		})
		_, err = r.permitted(err, Right{"list", "namespaces", ClusterScope, unknown})
		return err
	}
	names := map[string]bool{r.System: true}
	for _, s := range r.seen {
		names[s.Namespace] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		m := MetadataOf(NamespaceKind)
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, m)
		if apierrors.IsNotFound(err) {
			continue // Tidemark is not installed
		}
		ok, err := r.permitted(err, Right{"get", "namespaces/" + name, ClusterScope, unknown})
		if err != nil {
			return err
		}
		if ok {
			r.namespaces[name] = namespace{kept(m.Annotations), kept(m.Labels)}
		}
	}
	return nil
}

// PausedBy says where all writes to a workload were stopped, and by whom: on the workload itself, by its annotation or by
// the label that a rollback leaves in place; for everything; in its namespace. It is "" when nobody did.
func PausedBy(annotations, labels, namespaceAnnotations, systemAnnotations map[string]string) string {
	switch {
	case annotations[v1.AnnotationPaused] == v1.True || labels[v1.LabelPaused] == v1.True:
		return "on the workload" + by(annotations)
	case systemAnnotations[v1.AnnotationPaused] == v1.True:
		return "everywhere" + by(systemAnnotations)
	case namespaceAnnotations[v1.AnnotationPaused] == v1.True:
		return "in the namespace" + by(namespaceAnnotations)
	}
	return ""
}

func by(annotations map[string]string) string {
	if who := annotations[v1.AnnotationPausedBy]; who != "" {
		return ", by " + who
	}
	return ""
}
