package snapshot

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/workload"
)

// Snapshot is what the metadata of a snapshot says.
type Snapshot struct {
	// Object is the snapshot itself.
	Object workload.Object
	Provenance
	// Created is when the API made it.
	Created time.Time
	// UID and ResourceVersion are those of the snapshot, for preconditions.
	UID, ResourceVersion string
	// Condemned is when clean-up found that nothing needs it any more; zero when it has not.
	Condemned time.Time
}

// Read reads the metadata of a snapshot; false when the object is none, or does not say of what. Numbers and times that
// cannot be read are left zero.
func Read(kind workload.ObjectKind, m metav1.Object) (Snapshot, bool) {
	annotations := m.GetAnnotations()
	if m.GetLabels()[v1.LabelSnapshot] != v1.True {
		return Snapshot{}, false
	}
	source, err := workload.ParseObject(annotations[v1.AnnotationSnapshotOf], m.GetNamespace())
	if err != nil || source.Kind != kind || source.Namespace != m.GetNamespace() {
		return Snapshot{}, false
	}
	revision, _ := strconv.ParseInt(annotations[v1.AnnotationSnapshotRevision], 10, 64)
	return Snapshot{
		Object: workload.Object{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()},
		Provenance: Provenance{
			Source: source, Revision: revision, Time: parseTime(annotations[v1.AnnotationSnapshotTime]),
			SourceUID: annotations[v1.AnnotationSourceUID], SourceVersion: annotations[v1.AnnotationSourceVersion],
		},
		Created: m.GetCreationTimestamp().Time,
		UID:     string(m.GetUID()), ResourceVersion: m.GetResourceVersion(),
		Condemned: parseTime(annotations[v1.AnnotationCondemned]),
	}, true
}

func parseTime(text string) time.Time {
	t, _ := time.Parse(time.RFC3339, text)
	return t
}
