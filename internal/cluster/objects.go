package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// object is what a survey keeps of one config object.
type object struct {
	workload.Object
	// known says that it was looked for, and present that it is there.
	known, present       bool
	uid, resourceVersion string
	ignored, live, shown bool
	writes               Writes
	// content is what it holds, a snapshot in the terms of its source; nil when not known.
	content *digest.Content
	// snapshot says of what it is the snapshot; nil for any other object.
	snapshot *snapshot.Snapshot
	values   map[string]string
	// setting is an annotation of it that cannot be heeded, and problem why its content is not known; for people.
	setting, problem string
}

var (
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
)

// readObjects reads the config objects that the workloads use, and the snapshots that pins name. Of Secrets only metadata is
// read: what they hold is known from the history, or, to those who may read Tidemark's digest key, from a bounded number of
// reads.
func (r *reading) readObjects(ctx context.Context) error {
	r.objectsFrom = r.Now()
	r.objects = make(map[workload.Object]*object, len(r.used))
	for o := range r.used {
		r.objects[o] = &object{Object: o}
	}
	for o := range r.copies {
		r.objects[o] = &object{Object: o}
	}
	inScope := func(o *object) bool {
		return len(r.Targets) == 0 && (r.Namespace == "" || o.Namespace == r.Namespace)
	}
	for _, kind := range []workload.ObjectKind{workload.ConfigMap, workload.Secret} {
		var listed, single []*object
		for _, o := range r.sorted(kind) {
			if inScope(o) {
				listed = append(listed, o)
			} else {
				single = append(single, o)
			}
		}
		if err := r.listObjects(ctx, kind, listed); err != nil {
			return err
		}
		if err := r.getObjects(ctx, single); err != nil {
			return err
		}
	}
	return r.compareSecrets(ctx)
}

func (r *reading) sorted(kind workload.ObjectKind) []*object {
	var out []*object
	for _, o := range r.objects {
		if o.Kind == kind {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *object) int { return a.Object.Compare(b.Object) })
	return out
}

// listObjects reads objects of the scope by lists: of metadata where the history has the content of nearly all of them.
func (r *reading) listObjects(ctx context.Context, kind workload.ObjectKind, objects []*object) error {
	if len(objects) == 0 {
		return nil
	}
	if kind == workload.ConfigMap && len(r.memory.logs) == 0 {
		return r.listConfigMaps(ctx, objects)
	}
	ok, err := r.listMetadata(ctx, kind, objects)
	if err != nil || !ok || kind == workload.Secret {
		return err
	}
	var open, copies []*object
	for _, o := range objects {
		switch {
		case o.content != nil:
		case o.snapshot != nil:
			copies = append(copies, o)
		default:
			open = append(open, o)
		}
	}
	if err := r.openConfigMaps(ctx, open); err != nil {
		return err
	}
	return r.openConfigMaps(ctx, copies, client.MatchingLabels{v1.LabelSnapshot: v1.True})
}

// openConfigMaps reads the content of ConfigMaps of the scope, all of which the options select.
func (r *reading) openConfigMaps(ctx context.Context, objects []*object, opts ...client.ListOption) error {
	if len(objects) > Few {
		return r.listConfigMaps(ctx, objects, opts...)
	}
	return r.getObjects(ctx, objects)
}

func (r *reading) listConfigMaps(ctx context.Context, objects []*object, opts ...client.ListOption) error {
	err := EachItem(ctx, r.Client, newConfigMaps, largePageSize, func(cm *corev1.ConfigMap) {
		if o := r.objects[workload.Object{Kind: workload.ConfigMap, Namespace: cm.Namespace, Name: cm.Name}]; o != nil {
			r.tookConfigMap(o, cm)
		}
	}, append(opts, client.InNamespace(r.Namespace))...)
	_, err = r.settle(objects, Right{"list", "configmaps", r.Namespace, unknownContent}, err)
	return err
}

const unknownContent = "what is applied is unknown where they are used"

func (r *reading) listMetadata(ctx context.Context, kind workload.ObjectKind, objects []*object) (bool, error) {
	gvk := GVKOf(kind)
	err := EachItem(ctx, r.Client, MetadataList(gvk), PageSize, func(m *metav1.PartialObjectMetadata) {
		if o := r.objects[workload.Object{Kind: kind, Namespace: m.Namespace, Name: m.Name}]; o != nil {
			r.tookMetadata(o, m)
		}
	}, client.InNamespace(r.Namespace))
	return r.settle(objects, Right{"list", Plural(gvk), r.Namespace, unknownContent}, err)
}

// getObjects reads objects one by one: ConfigMaps whole, of Secrets the metadata.
func (r *reading) getObjects(ctx context.Context, objects []*object) error {
	for _, o := range objects {
		key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
		var err error
		if o.Kind == workload.Secret {
			m := MetadataOf(secretKind)
			if err = r.Client.Get(ctx, key, m); err == nil {
				r.tookMetadata(o, m)
			}
		} else {
			cm := &corev1.ConfigMap{}
			if err = r.Client.Get(ctx, key, cm); err == nil {
				r.tookConfigMap(o, cm)
			}
		}
		if apierrors.IsNotFound(err) {
			err = nil
			o.present = false
		}
		resource := Plural(GVKOf(o.Kind))
		if _, err := r.settle([]*object{o}, Right{"get", resource, o.Namespace, unknownContent}, err); err != nil {
			return err
		}
	}
	return nil
}

// settle closes a read of objects: those that were not found by it are absent, unless the right was missing.
func (r *reading) settle(objects []*object, needs Right, err error) (bool, error) {
	ok, err := r.permitted(err, needs)
	if err != nil {
		return false, err
	}
	for _, o := range objects {
		o.known, o.problem = ok, ""
		switch {
		case !ok:
			o.problem = needs.Missing()
		case !o.present:
			absent := r.absent(o.Object)
			o.content = &absent
		case o.content == nil:
			o.problem = "its content is not read, and not in the history"
		}
	}
	return ok, nil
}

// absent is the content of an object that is not there, in the terms of its history.
func (r *reading) absent(o workload.Object) digest.Content {
	if v := r.memory.logs[o].Newest().Content.Version; v != "" {
		return digest.Content{Version: v}
	}
	return digest.Content{Version: digest.V1}
}

func (r *reading) tookMetadata(o *object, m metav1.Object) {
	o.known, o.present = true, true
	o.uid, o.resourceVersion = string(m.GetUID()), m.GetResourceVersion()
	o.writes = WritesOf(m)
	s := SettingOf(o.Kind, m)
	o.ignored, o.live, o.shown, o.setting = s.Ignore, s.Live(), s.ShowValues, s.Problem
	if s, is := snapshot.Read(o.Kind, m); is {
		o.snapshot, o.content = &s, r.copiedFrom(s)
	}
	if log := r.memory.logs[o.Object]; o.atEndOf(log) {
		content := log.Newest().Content
		o.content = &content
	}
}

// copiedFrom is what a snapshot holds, where the history of its source has the content after which it is named; nil where it
// has not.
func (r *reading) copiedFrom(s snapshot.Snapshot) *digest.Content {
	for _, v := range slices.Backward(r.memory.logs[s.Source].Versions) {
		if !v.Content.Present {
			continue
		}
		whole := v.Content.Whole(s.Source)
		for attempt := range attempts {
			if snapshot.Name(s.Source, whole, attempt) == s.Object.Name {
				return &v.Content
			}
		}
	}
	return nil
}

func (r *reading) tookConfigMap(o *object, cm *corev1.ConfigMap) {
	r.tookMetadata(o, cm)
	content := ContentOfConfigMap(cm)
	o.content, o.snapshot = &content, SnapshotOf(o.Kind, cm, cm.Immutable)
	if r.Values {
		o.values = maps.Clone(cm.Data)
	}
}

// compareSecrets digests those Secrets whose state the history does not have, for whoever may read the digest key. Their
// data is reduced to sums at once.
func (r *reading) compareSecrets(ctx context.Context) error {
	var open []*object
	for _, o := range r.sorted(workload.Secret) {
		if o.present && o.content == nil && hasLog(r.memory.logs[o.source()]) {
			open = append(open, o)
		}
	}
	if len(open) == 0 || len(open) > Few {
		return nil
	}
	key, err := StoredKey(ctx, r.Client, r.System)
	switch {
	case errors.Is(err, errBadKey):
		return nil // the controller reports it; to this reader the Secrets stay opaque
	case err != nil:
		return ignoreUnreadable(err)
	}
	for _, o := range open {
		secret := &corev1.Secret{}
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, secret); err != nil {
			if ignoreUnreadable(err) != nil {
				return err
			}
			continue
		}
		r.tookMetadata(o, secret)
		content := ContentOfSecret(key, secret)
		o.content, o.problem = &content, ""
		o.snapshot = SnapshotOf(o.Kind, secret, secret.Immutable)
	}
	return nil
}

// source is the object whose content a snapshot holds, and any other object itself.
func (o *object) source() workload.Object {
	if o.snapshot != nil {
		return o.snapshot.Source
	}
	return o.Object
}

func hasLog(log history.Log) bool { return len(log.Versions) > 0 }

// ignoreUnreadable passes over what may not be read, or is gone: what depends on it stays unknown.
func ignoreUnreadable(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// GVKOf is the kind of a config object.
func GVKOf(kind workload.ObjectKind) schema.GroupVersionKind {
	if kind == workload.Secret {
		return secretKind
	}
	return configMapKind
}
