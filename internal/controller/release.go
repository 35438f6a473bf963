package controller

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

// releases knows which Helm releases are pending, from the labels of their records: never from the payload.
type releases struct {
	mu      sync.Mutex
	pending map[types.NamespacedName]map[string]time.Time
}

func newReleases() *releases {
	return &releases{pending: map[types.NamespacedName]map[string]time.Time{}}
}

// watch follows the records in a cache that holds nothing but the metadata of those that [helmrecord.Unsettled] selects, and
// returns when all there are have been seen.
func (r *releases) watch(ctx context.Context, c cache.Cache) error {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.put(o) },
		UpdateFunc: func(_, o any) { r.put(o) },
		DeleteFunc: func(o any) { r.drop(unwrap(o)) },
	})
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	return nil
}

func releaseOf(o any) (name types.NamespacedName, revision release.Revision, ok bool) {
	obj, ok := o.(client.Object)
	if !ok {
		return types.NamespacedName{}, release.Revision{}, false
	}
	text, revision, _ := helmrecord.Decode("Secret", obj) // only what it says of being pending is of use here
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: text}, revision, true
}

func (r *releases) put(o any) {
	name, revision, ok := releaseOf(o)
	switch operation, _ := revision.Status.Operation(); {
	case !ok, operation == release.NoOperation, operation == release.Uninstall: // whose workloads go
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[name] == nil {
		r.pending[name] = map[string]time.Time{}
	}
	r.pending[name][revision.Record] = revision.Created
}

func (r *releases) drop(o any) {
	name, revision, ok := releaseOf(o)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending[name], revision.Record)
	if len(r.pending[name]) == 0 {
		delete(r.pending, name)
	}
}

// pendingSince is since when the release that owns the object is pending; zero when none does, or it is not.
func (r *releases) pendingSince(obj client.Object) time.Time {
	a := obj.GetAnnotations()
	owner := types.NamespacedName{Namespace: a[helmrecord.AnnotationReleaseNamespace], Name: a[helmrecord.AnnotationReleaseName]}
	if owner.Name == "" {
		return time.Time{}
	}
	if owner.Namespace == "" {
		owner.Namespace = obj.GetNamespace()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var oldest time.Time
	for _, t := range r.pending[owner] {
		if oldest.IsZero() || t.Before(oldest) {
			oldest = t
		}
	}
	return oldest
}
