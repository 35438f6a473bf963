package controller

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations by which Helm marks what belongs to a release.
const (
	helmReleaseName      = "meta.helm.sh/release-name"
	helmReleaseNamespace = "meta.helm.sh/release-namespace"
)

// HelmPending selects the Secrets in which Helm records a release that it is working on.
func HelmPending() labels.Selector {
	owner, _ := labels.NewRequirement("owner", selection.Equals, []string{"helm"})
	status, _ := labels.NewRequirement("status", selection.In, []string{"pending-install", "pending-upgrade", "pending-rollback"})
	return labels.NewSelector().Add(*owner, *status)
}

// releases knows which Helm releases are pending, from the labels of their records: never from the payload.
type releases struct {
	mu      sync.Mutex
	pending map[types.NamespacedName]map[string]time.Time
}

func newReleases() *releases {
	return &releases{pending: map[types.NamespacedName]map[string]time.Time{}}
}

// watch follows the records in a cache that holds nothing but the metadata of those that [HelmPending] selects, and returns
// when all there are have been seen.
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

func releaseOf(o any) (types.NamespacedName, client.Object, bool) {
	obj, ok := o.(client.Object)
	if !ok {
		return types.NamespacedName{}, nil, false
	}
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetLabels()["name"]}, obj, true
}

func (r *releases) put(o any) {
	release, obj, ok := releaseOf(o)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[release] == nil {
		r.pending[release] = map[string]time.Time{}
	}
	r.pending[release][obj.GetName()] = obj.GetCreationTimestamp().Time
}

func (r *releases) drop(o any) {
	release, obj, ok := releaseOf(o)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending[release], obj.GetName())
	if len(r.pending[release]) == 0 {
		delete(r.pending, release)
	}
}

// pendingSince is since when the release that owns the object is pending; zero when none does, or it is not.
func (r *releases) pendingSince(obj client.Object) time.Time {
	a := obj.GetAnnotations()
	release := types.NamespacedName{Namespace: a[helmReleaseNamespace], Name: a[helmReleaseName]}
	if release.Name == "" {
		return time.Time{}
	}
	if release.Namespace == "" {
		release.Namespace = obj.GetNamespace()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var oldest time.Time
	for _, t := range r.pending[release] {
		if oldest.IsZero() || t.Before(oldest) {
			oldest = t
		}
	}
	return oldest
}
