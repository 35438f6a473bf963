package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/workload"
)

// accessRetry is how often a kind that is not served, or not allowed, is looked at again.
const accessRetry = 30 * time.Second

// watcher keeps the index and the historian abreast of the cluster, on leaders and stand-bys alike. A kind that cannot be
// watched is reported once, tried again for ever, and stops no other kind.
type watcher struct {
	cache     cache.Cache
	client    client.Client
	clock     clock.Clock
	log       logr.Logger
	index     *index
	historian *historian
	metrics   *Metrics
	kinds     []cluster.Kind
	// namespace is Tidemark's own.
	namespace string
	// secrets says whether Secrets are watched at all.
	secrets bool
	// enqueue asks for workloads to be looked at.
	enqueue func(ids ...ID)
	// gone says that a workload no longer exists.
	gone func(ID)

	mu sync.Mutex
	// synced are the kinds of config objects that are completely known, with the time since which they are.
	synced map[workload.ObjectKind]time.Time
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: stand-bys watch too, so that a new leader starts at once.
func (w *watcher) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (w *watcher) Start(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { w.follow(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), w.watchNamespaces) })
	wg.Go(func() { w.followObjects(ctx, workload.ConfigMap, &corev1.ConfigMap{}) })
	if w.secrets {
		wg.Go(func() { w.followObjects(ctx, workload.Secret, &corev1.Secret{}) })
	}
	for _, k := range w.kinds {
		wg.Go(func() {
			w.follow(ctx, k.GroupVersionKind, func(ctx context.Context) error { return w.watchKind(ctx, k) })
		})
	}
	wg.Wait()
	return nil
}

// follow checks that a kind is served and may be read, and then watches it; until that is so, it says once what is missing.
func (w *watcher) follow(ctx context.Context, gvk schema.GroupVersionKind, watch func(context.Context) error) {
	said := ""
	for ctx.Err() == nil {
		err := cluster.Access(ctx, w.client, gvk, "", "list", "watch")
		if err == nil {
			err = watch(ctx)
		}
		if err == nil {
			w.metrics.watchProblem(gvk.Kind, false)
			if said != "" {
				w.log.Info("Watching now", "kind", gvk.Kind)
			}
			return
		}
		if ctx.Err() != nil {
			return
		}
		w.metrics.watchProblem(gvk.Kind, true)
		if err.Error() != said {
			said = err.Error()
			w.log.Error(nil, "Cannot watch a kind; everything else goes on: "+said, "kind", gvk.Kind, "retryEvery", accessRetry)
		}
		w.pause(ctx, retryOf(err))
	}
}

// retryOf is how long to wait after an error: an answer of no is asked about rarely, an API that did not answer soon.
func retryOf(err error) time.Duration {
	var notServed *cluster.NotServedError
	var forbidden *cluster.ForbiddenError
	if errors.As(err, &notServed) || errors.As(err, &forbidden) {
		return accessRetry
	}
	return time.Second
}

func (w *watcher) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-w.clock.After(d):
	}
}

// listen adds handlers to the informer of a type and waits until they have seen everything there is.
func (w *watcher) listen(ctx context.Context, obj client.Object, handlers toolscache.ResourceEventHandler) error {
	informer, err := w.cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %T: %w", obj, err)
	}
	registration, err := informer.AddEventHandler(handlers)
	if err != nil {
		return fmt.Errorf("watch %T: %w", obj, err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	return nil
}

func (w *watcher) watchNamespaces(ctx context.Context) error {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	put := func(o any) {
		if ns, ok := o.(*metav1.PartialObjectMetadata); ok {
			if ns.Name == w.namespace {
				w.metrics.paused.Set(boolean(ns.Annotations[v1.AnnotationPaused] == v1.True))
			}
			w.enqueue(w.index.putNamespace(ns.Name, ns.Name == w.namespace, ns.Labels, ns.Annotations)...)
		}
	}
	return w.listen(ctx, obj, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, o any) { put(o) },
		DeleteFunc: func(o any) {
			if m, ok := unwrap(o).(client.Object); ok {
				w.index.dropNamespace(m.GetName())
			}
		},
	})
}

// followObjects watches the config objects of a kind. Nothing is decided that needs the kind until all of it is known.
func (w *watcher) followObjects(ctx context.Context, kind workload.ObjectKind, obj client.Object) {
	w.follow(ctx, corev1.SchemeGroupVersion.WithKind(string(kind)), func(ctx context.Context) error {
		if err := w.listen(ctx, obj, w.objectHandlers()); err != nil {
			return err
		}
		w.mu.Lock()
		w.synced[kind] = w.clock.Now()
		w.mu.Unlock()
		w.historian.follow(w.index.consumedObjects(), w.clock.Now())
		w.enqueue(w.index.all()...)
		return nil
	})
}

func (w *watcher) objectHandlers() toolscache.ResourceEventHandler {
	put := func(o any, fresh bool) {
		if d, ok := o.(*cluster.Digested); ok {
			now := w.clock.Now()
			ids := w.index.putObject(d, now)
			w.historian.saw(d.Object, look{at: now, digested: d, fresh: fresh, listed: d.Listed})
			w.enqueue(ids...)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(o any, initial bool) { put(o, !initial) },
		UpdateFunc: func(_, o any) { put(o, false) },
		DeleteFunc: func(o any) {
			_, missed := o.(toolscache.DeletedFinalStateUnknown)
			if d, ok := unwrap(o).(*cluster.Digested); ok {
				now := w.clock.Now()
				ids := w.index.dropObject(d.Object, now)
				w.historian.saw(d.Object, look{at: now, listed: missed})
				w.enqueue(ids...)
			}
		},
	}
}

func (w *watcher) watchKind(ctx context.Context, kind cluster.Kind) error {
	put := func(o any) {
		obj, ok := o.(client.Object)
		if !ok {
			return
		}
		id, fresh := w.index.putWorkload(kind, obj)
		w.historian.follow(fresh, w.clock.Now())
		w.enqueue(id)
	}
	return w.listen(ctx, kind.NewObject(), toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, o any) { put(o) },
		DeleteFunc: func(o any) {
			if obj, ok := unwrap(o).(client.Object); ok {
				id := ID{kind.GroupVersionKind, client.ObjectKeyFromObject(obj)}
				w.index.dropWorkload(id)
				w.gone(id)
			}
		},
	})
}

// unwrap returns the last known state of an object whose deletion was not itself seen.
func unwrap(o any) any {
	if t, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		return t.Obj
	}
	return o
}

// knows reports whether every config object of the kind is known, so that one that is not in the index is absent.
func (w *watcher) knows(kind workload.ObjectKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.synced[kind].IsZero()
}

// watchedSince is from when on the watch has shown every config object of the kind; zero when it does not.
func (w *watcher) watchedSince(kind workload.ObjectKind) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced[kind]
}
