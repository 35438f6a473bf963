package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

// ErrToken says that the object holds a service account's token, which is bound to the account and never copied.
var ErrToken = errors.New("it holds a service account's token, which is never copied: annotate it with " +
	v1.AnnotationTreatAs + "=" + v1.TreatAsRestart)

// Provenance says where a snapshot comes from.
type Provenance struct {
	// Source is the object that was copied, SourceUID and SourceVersion its UID and resourceVersion then.
	Source                   workload.Object
	SourceUID, SourceVersion string
	// Revision numbers the snapshots of one source from 1 on; 0 when unknown.
	Revision int64
	// Time is when the copy was made, to the second.
	Time time.Time
}

// meta is the metadata of a snapshot.
func (p Provenance) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: p.Source.Namespace, Name: name,
		Labels: map[string]string{v1.LabelSnapshot: v1.True},
		Annotations: map[string]string{
			v1.AnnotationSnapshotOf:       p.Source.Relative(p.Source.Namespace),
			v1.AnnotationSourceUID:        p.SourceUID,
			v1.AnnotationSourceVersion:    p.SourceVersion,
			v1.AnnotationSnapshotRevision: strconv.FormatInt(p.Revision, 10),
			v1.AnnotationSnapshotTime:     p.Time.UTC().Format(time.RFC3339),
		},
	}
}

// OfConfigMap makes the snapshot of a ConfigMap. The data is shared with the source.
func OfConfigMap(cm *corev1.ConfigMap, name string, p Provenance) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{ObjectMeta: p.meta(name), Data: cm.Data, BinaryData: cm.BinaryData, Immutable: &immutable}
}

// OfSecret makes the snapshot of a Secret, of the same type. The data is shared with the source. Tokens of service accounts
// give [ErrToken].
func OfSecret(s *corev1.Secret, name string, p Provenance) (*corev1.Secret, error) {
	if s.Type == corev1.SecretTypeServiceAccountToken {
		return nil, fmt.Errorf("copy secret %s: %w", s.Name, ErrToken)
	}
	immutable := true
	return &corev1.Secret{ObjectMeta: p.meta(name), Data: s.Data, Type: s.Type, Immutable: &immutable}, nil
}

// SameConfigMap reports whether an existing object is a snapshot with the very content that is wanted, so that it can
// serve: of the same source, immutable, equal byte for byte.
func SameConfigMap(existing, wanted *corev1.ConfigMap) bool {
	return sameKind(&existing.ObjectMeta, &wanted.ObjectMeta, existing.Immutable) &&
		maps.Equal(existing.Data, wanted.Data) && sameBytes(existing.BinaryData, wanted.BinaryData)
}

// SameSecret is [SameConfigMap] for Secrets.
func SameSecret(existing, wanted *corev1.Secret) bool {
	return sameKind(&existing.ObjectMeta, &wanted.ObjectMeta, existing.Immutable) &&
		existing.Type == wanted.Type && sameBytes(existing.Data, wanted.Data)
}

func sameKind(existing, wanted *metav1.ObjectMeta, immutable *bool) bool {
	return immutable != nil && *immutable && existing.DeletionTimestamp == nil &&
		existing.Labels[v1.LabelSnapshot] == v1.True &&
		existing.Annotations[v1.AnnotationSnapshotOf] == wanted.Annotations[v1.AnnotationSnapshotOf]
}

func sameBytes(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
