package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// ContentOfConfigMap reduces a ConfigMap as the API has it to its content. That of a snapshot is in the terms of its source,
// since sums bind an object's name: so it compares with what is applied.
func ContentOfConfigMap(cm *corev1.ConfigMap) digest.Content {
	name := nameInSums(SnapshotOf(workload.ConfigMap, cm, cm.Immutable), cm.Name)
	return digest.OfConfigMap(cm.Namespace, name, cm.Data, cm.BinaryData)
}

// ContentOfSecret reduces a Secret as the API has it to its content, as [ContentOfConfigMap] does.
func ContentOfSecret(key *digest.Key, s *corev1.Secret) digest.Content {
	name := nameInSums(SnapshotOf(workload.Secret, s, s.Immutable), s.Name)
	return digest.OfSecret(key, s.Namespace, name, s.Data)
}

// SnapshotOf reads of what an object is the snapshot; nil for any other object. One that is not immutable is none, whatever
// its label says, because it proves nothing of what was read from it.
func SnapshotOf(kind workload.ObjectKind, m metav1.Object, immutable *bool) *snapshot.Snapshot {
	if immutable == nil || !*immutable {
		return nil
	}
	s, ok := snapshot.Read(kind, m)
	if !ok {
		return nil
	}
	return &s
}

func nameInSums(s *snapshot.Snapshot, own string) string {
	if s == nil {
		return own
	}
	return s.Source.Name
}
