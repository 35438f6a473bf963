package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// Copier makes snapshots. It reads and writes the API itself, never a cache: a copy is of the very content that its stamp is
// decided on.
type Copier struct {
	// Client reads and writes without a cache.
	Client client.Client
	// Key digests Secrets.
	Key *digest.Key
}

// Source is a config object as one read of the API gave it.
type Source struct {
	Object workload.Object
	// Content is what it holds; that of an absent object when there is none.
	Content   digest.Content
	configMap *corev1.ConfigMap
	secret    *corev1.Secret
}

// Read reads a config object.
func (c *Copier) Read(ctx context.Context, o workload.Object) (Source, error) {
	out := Source{Object: o, Content: digest.AbsentIn(o.Kind, c.Key)}
	obj := NewConfigObject(o.Kind)
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, obj)
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("read %s: %w", o, err)
	}
	switch t := obj.(type) {
	case *corev1.ConfigMap:
		out.configMap, out.Content = t, ContentOfConfigMap(t)
	case *corev1.Secret:
		out.secret, out.Content = t, ContentOfSecret(c.Key, t)
	}
	return out, nil
}

// NewConfigObject is an empty config object of a kind.
func NewConfigObject(kind workload.ObjectKind) client.Object {
	if kind == workload.Secret {
		return &corev1.Secret{}
	}
	return &corev1.ConfigMap{}
}

// attempts bounds how many names are tried when other objects have them: each is as unlikely as the first.
const attempts = 4

// Copy makes sure that there is a snapshot of what was read, and returns its name: [v1.AbsentName] for an absent object. One
// that is there already with the same content serves again; a mark that clean-up put on it is taken away before, so that it
// is not deleted under its new user. An object of that name with another content gives the next name a try.
//
// The revision numbers the snapshots of one source; one that serves again is given it when its own is lower.
func (c *Copier) Copy(ctx context.Context, s Source, revision int64, now time.Time) (string, error) {
	if !s.Content.Present {
		return v1.AbsentName, nil
	}
	p := snapshot.Provenance{Source: s.Object, Revision: revision, Time: now}
	whole := s.Content.Whole(s.Object)
	for attempt := range attempts {
		name := snapshot.Name(s.Object, whole, attempt)
		wanted, err := s.copyAs(name, p)
		if err != nil {
			return "", err
		}
		ok, err := c.provide(ctx, wanted, revision)
		if err != nil {
			return "", fmt.Errorf("copy %s to %s: %w", s.Object, name, err)
		}
		if ok {
			return name, nil
		}
	}
	return "", fmt.Errorf("copy %s: objects with other content have all %d names that a copy could have, the first of them %s: "+
		"delete those that are no snapshots", s.Object, attempts, snapshot.Name(s.Object, whole, 0))
}

// copyAs makes the object that the snapshot would be.
func (s Source) copyAs(name string, p snapshot.Provenance) (client.Object, error) {
	if s.secret != nil {
		p.SourceUID, p.SourceVersion = string(s.secret.UID), s.secret.ResourceVersion
		return snapshot.OfSecret(s.secret, name, p)
	}
	p.SourceUID, p.SourceVersion = string(s.configMap.UID), s.configMap.ResourceVersion
	return snapshot.OfConfigMap(s.configMap, name, p), nil
}

// provide creates the snapshot, or takes the one that is there when it is the same; false when another object has the name. It
// looks first, because the API server counts even a creation that ends with "already exists" against the quota of the namespace,
// and refuses it where that is used up.
func (c *Copier) provide(ctx context.Context, wanted client.Object, revision int64) (bool, error) {
	// A snapshot that clean-up deletes between two of these calls is made anew.
	for range attempts {
		existing, ok := wanted.DeepCopyObject().(client.Object)
		if !ok {
			return false, fmt.Errorf("unexpected type %T", wanted)
		}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(wanted), existing)
		if apierrors.IsNotFound(err) {
			if err = c.Client.Create(ctx, wanted, client.FieldOwner(v1.FieldManager)); err == nil {
				return true, nil
			}
			wanted.SetResourceVersion("")
			if apierrors.IsAlreadyExists(err) {
				continue
			}
		}
		if err != nil {
			return false, err
		}
		if !sameSnapshot(existing, wanted) {
			return false, nil
		}
		err = c.reuse(ctx, existing, revision)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		return err == nil, err
	}
	return false, fmt.Errorf("it is being written to all the time; trying again")
}

func sameSnapshot(existing, wanted client.Object) bool {
	switch w := wanted.(type) {
	case *corev1.ConfigMap:
		e, ok := existing.(*corev1.ConfigMap)
		return ok && snapshot.SameConfigMap(e, w)
	case *corev1.Secret:
		e, ok := existing.(*corev1.Secret)
		return ok && snapshot.SameSecret(e, w)
	}
	return false
}

// reuse makes a snapshot that is there the newest of its source, and takes clean-up's mark away. The write carries the
// resourceVersion, as the deletion does: one of the two fails.
func (c *Copier) reuse(ctx context.Context, existing client.Object, revision int64) error {
	annotations := map[string]any{}
	if _, condemned := existing.GetAnnotations()[v1.AnnotationCondemned]; condemned {
		annotations[v1.AnnotationCondemned] = nil
	}
	if own, _ := strconv.ParseInt(existing.GetAnnotations()[v1.AnnotationSnapshotRevision], 10, 64); own < revision-1 {
		annotations[v1.AnnotationSnapshotRevision] = strconv.FormatInt(revision, 10)
	}
	if len(annotations) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": existing.GetResourceVersion(), "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return c.Client.Patch(ctx, existing, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1.FieldManager))
}
