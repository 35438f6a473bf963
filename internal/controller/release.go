package controller

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/helmrecord"
	"tidemark.dev/tidemark/internal/release"
)

// releases knows which Helm releases are pending, from the labels of their records: never from the payload.
type releases struct {
	mu      sync.Mutex
	pending map[types.NamespacedName]map[string]release.Revision // by record
}

func newReleases() *releases {
	return &releases{pending: map[types.NamespacedName]map[string]release.Revision{}}
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
		r.pending[name] = map[string]release.Revision{}
	}
	r.pending[name][revision.Record] = revision
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

// pendingOf is the newest revision that is pending of the release which owns the object, with the release's name; the zero one when none
// owns it, or none is.
func (r *releases) pendingOf(obj client.Object) (owner types.NamespacedName, newest release.Revision) {
	a := obj.GetAnnotations()
	owner = types.NamespacedName{Namespace: a[helmrecord.AnnotationReleaseNamespace], Name: a[helmrecord.AnnotationReleaseName]}
	if owner.Namespace == "" {
		owner.Namespace = obj.GetNamespace()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, revision := range r.pending[owner] {
		if newest.Record == "" || revision.Number > newest.Number {
			newest = revision
		}
	}
	return owner, newest
}

// pendingSince is since when the release that owns the object is pending; zero when none does, or it is not. Only its newest revision
// counts: a rollback leaves what was pending below it for good. Where that cannot be looked up, it is waited for as if it were the newest.
func (c *Controller) pendingSince(ctx context.Context, obj client.Object) time.Time {
	owner, pending := c.releases.pendingOf(obj)
	if pending.Record == "" {
		return time.Time{}
	}
	residue := false
	err := cluster.EachItem(ctx, c.reader, cluster.MetadataList(corev1.SchemeGroupVersion.WithKind("Secret")), cluster.PageSize, func(m *metav1.PartialObjectMetadata) {
		_, revision, err := helmrecord.Decode("Secret", m)
		residue = residue || err == nil && revision.Number > pending.Number
	}, client.InNamespace(owner.Namespace), client.MatchingLabels(helmrecord.Labels(owner.Name)),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("type", string(helmrecord.SecretType))})
	if err != nil {
		c.log.Info("Cannot look up which revision of a release is the newest", "release", owner.String(), "error", err.Error())
		return pending.Created
	}
	if residue {
		return time.Time{}
	}
	return pending.Created
}
