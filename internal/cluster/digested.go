package cluster

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// Digested is what the cache keeps of a config object: its identity, what its metadata asks for, its sums, no data.
type Digested struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// Object names it.
	Object workload.Object
	// Setting is what its metadata asks for.
	Setting Setting
	// Content are the sums of its data; for a snapshot in the terms of its source.
	Content digest.Content
	// Snapshot says of what it is the snapshot; nil for any other object.
	Snapshot *snapshot.Snapshot
	// Immutable says that the object is immutable.
	Immutable bool
	// Listed says that this state came by a list and not by a watch event, so that changes before it may have been missed.
	Listed bool
	// Written is the newest time that the managed fields state for its data, zero when none.
	Written time.Time
}

// DeepCopyObject implements runtime.Object. The content and what is said of a snapshot are shared: nobody changes them.
func (d *Digested) DeepCopyObject() runtime.Object {
	out := *d
	out.ObjectMeta = *d.ObjectMeta.DeepCopy()
	return &out
}

// Digest returns an informer transform that replaces ConfigMaps, and Secrets under the key, by their [Digested]. Anything
// else passes through.
func Digest(key *digest.Key) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		switch o := obj.(type) {
		case *corev1.ConfigMap:
			return digested(&o.ObjectMeta, workload.ConfigMap, ContentOfConfigMap(o), o.Immutable), nil
		case *corev1.Secret:
			return digested(&o.ObjectMeta, workload.Secret, ContentOfSecret(key, o), o.Immutable), nil
		}
		return obj, nil
	}
}

func digested(meta *metav1.ObjectMeta, kind workload.ObjectKind, content digest.Content, immutable *bool) *Digested {
	_, listed := meta.Annotations[listedMark]
	return &Digested{
		ObjectMeta: metav1.ObjectMeta{
			Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
			CreationTimestamp: meta.CreationTimestamp,
		},
		Object:    workload.Object{Kind: kind, Namespace: meta.Namespace, Name: meta.Name},
		Setting:   SettingOf(kind, meta),
		Content:   content,
		Snapshot:  SnapshotOf(kind, meta, immutable),
		Immutable: immutable != nil && *immutable,
		Listed:    listed,
		Written:   dataWritten(meta.ManagedFields),
	}
}

// dataWritten is the newest time at which a manager wrote the object's data. It proves nothing about the content: removing
// a key by an update leaves no new time, and an edit of metadata by the same manager moves it.
func dataWritten(entries []metav1.ManagedFieldsEntry) time.Time {
	var newest time.Time
	for _, e := range entries {
		if e.Time == nil || e.FieldsV1 == nil || e.Subresource != "" || !e.Time.After(newest) {
			continue
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for _, f := range []string{"f:data", "f:binaryData", "f:stringData"} {
			if _, ok := fields[f]; ok {
				newest = e.Time.Time
			}
		}
	}
	return newest
}

// Slim returns an informer transform that drops what no decision reads and every object carries.
func Slim() toolscache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(metav1.Object); ok {
			o.SetManagedFields(nil)
			if a := o.GetAnnotations(); a[corev1.LastAppliedConfigAnnotation] != "" {
				delete(a, corev1.LastAppliedConfigAnnotation)
				o.SetAnnotations(a)
			}
		}
		return obj, nil
	}
}
