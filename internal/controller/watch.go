package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
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
	watches   *Watches
	kinds     []cluster.Kind
	// namespace is Tidemark's own.
	namespace string
	// secrets says whether Secrets are watched at all.
	secrets bool
	// enqueue asks for workloads to be looked at.
	enqueue func(ids ...ID)
	// gone says that a workload no longer exists.
	gone func(ID)
	// releases follows the records of pending Helm releases; nil when they are not waited for.
	releases func(context.Context) error

	mu sync.Mutex
	// synced are the kinds of config objects that are completely known, with the time since which they are.
	synced map[workload.ObjectKind]time.Time
	// namespaces says that the namespaces are completely known.
	namespaces bool
	// open are the kinds of which neither all is known nor the reason why not; nil before the start.
	open map[schema.GroupVersionKind]bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: stand-bys watch too, so that a new leader starts at once.
func (w *watcher) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (w *watcher) Start(ctx context.Context) error {
	w.begin()
	var wg sync.WaitGroup
	wg.Go(func() { w.follow(ctx, namespaceKind, w.watchNamespaces) })
	wg.Go(func() { w.followObjects(ctx, workload.ConfigMap, &corev1.ConfigMap{}) })
	if w.secrets {
		wg.Go(func() { w.followObjects(ctx, workload.Secret, &corev1.Secret{}) })
	} else {
		w.historian.watches(workload.Secret, false)
	}
	for _, k := range w.kinds {
		wg.Go(func() {
			w.follow(ctx, k.GroupVersionKind, func(ctx context.Context) error { return w.watchKind(ctx, k) })
			w.require(ctx, k.GroupVersionKind, "patch", withoutPatch)
		})
	}
	for _, gvk := range revisionKinds {
		wg.Go(func() { w.require(ctx, gvk, "list", withoutRevisions) })
	}
	wg.Wait()
	return nil
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

func kindOf(kind workload.ObjectKind) schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind(string(kind))
}

// begin notes the kinds that [watcher.ready] waits for. One that Kubernetes itself does not have is not among them: its
// definition may be broken, and that keeps nothing else.
func (w *watcher) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = map[schema.GroupVersionKind]bool{namespaceKind: true, kindOf(workload.ConfigMap): true}
	if w.secrets {
		w.open[kindOf(workload.Secret)] = true
	}
	builtin := cluster.BuiltinKinds()
	for _, k := range w.kinds {
		if !k.Optional() && slices.ContainsFunc(builtin, func(b cluster.Kind) bool { return b.GroupVersionKind == k.GroupVersionKind }) {
			w.open[k.GroupVersionKind] = true
		}
	}
}

// answered notes that all of a kind is known, or why it cannot be.
func (w *watcher) answered(gvk schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, gvk)
}

// ready is an error until everything that can be watched is known, so that this process could lead at once. A kind that may
// not be watched is reported elsewhere, and does not keep the others.
func (w *watcher) ready(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		return errors.New("the watches have not begun")
	}
	var kinds []string
	for gvk := range w.open {
		kinds = append(kinds, gvk.Kind)
	}
	if len(kinds) > 0 {
		slices.Sort(kinds)
		return fmt.Errorf("not completely known yet: %s", strings.Join(kinds, ", "))
	}
	return nil
}

// follow checks that a kind is served and may be read, and then watches it; until that is so, it says once what is missing.
func (w *watcher) follow(ctx context.Context, gvk schema.GroupVersionKind, watch func(context.Context) error) {
	for ctx.Err() == nil {
		err := cluster.Access(ctx, w.client, gvk, "", "list", "watch")
		if err == nil {
			err = watch(ctx)
		}
		if err == nil || refused(err) {
			w.answered(gvk)
		}
		if ctx.Err() != nil {
			return
		}
		w.watches.Fared(gvk, err)
		if err == nil {
			return
		}
		w.pause(ctx, retryOf(err))
	}
}

// require checks that a right on a kind is there that is needed beside those to watch; until it is, what does not work without
// it is said once. Nothing waits for it.
func (w *watcher) require(ctx context.Context, gvk schema.GroupVersionKind, verb, without string) {
	said, kind := false, gvk.GroupKind().String()
	for ctx.Err() == nil {
		err := cluster.Access(ctx, w.client, gvk, "", verb)
		if err == nil {
			w.metrics.missingRight(gvk, verb, false)
			if said {
				w.log.Info("The right is there now", "kind", kind, "verb", verb)
			}
			return
		}
		var forbidden *cluster.ForbiddenError
		if errors.As(err, &forbidden) && !said {
			said = true
			w.metrics.missingRight(gvk, verb, true)
			w.log.Error(nil, "A right is missing, and "+without+"; everything else goes on: "+err.Error(), "kind", kind, "verb", verb, "retryEvery", accessRetry)
		}
		w.pause(ctx, retryOf(err))
	}
}

// What does not work without a right that is needed beside those to watch.
const (
	withoutPatch     = "workloads of the kind do not roll, except where another role grants it in their namespace"
	withoutRevisions = "nothing is decided about a workload whose template somebody replaced, as only its revisions tell whether that was a rollback"
)

// revisionKinds are the kinds of the retained revisions of workloads, which are listed when one is needed and not watched.
var revisionKinds = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
	appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
}

// retryOf is how long to wait after an error: an answer of no is asked about rarely, an API that did not answer soon.
func retryOf(err error) time.Duration {
	if refused(err) {
		return accessRetry
	}
	return time.Second
}

// refused reports whether the error is an answer of no.
func refused(err error) bool {
	var notServed *cluster.NotServedError
	var forbidden *cluster.ForbiddenError
	return errors.As(err, &notServed) || errors.As(err, &forbidden)
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
	obj.SetGroupVersionKind(namespaceKind)
	put := func(o any) {
		if ns, ok := o.(*metav1.PartialObjectMetadata); ok {
			if ns.Name == w.namespace {
				w.metrics.paused.Set(boolean(ns.Annotations[v1.AnnotationPaused] == v1.True))
			}
			w.enqueue(w.index.putNamespace(ns, ns.Name == w.namespace)...)
		}
	}
	err := w.listen(ctx, obj, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, o any) { put(o) },
		DeleteFunc: func(o any) {
			if m, ok := unwrap(o).(client.Object); ok {
				w.index.dropNamespace(m.GetName())
				w.historian.ended(m.GetName())
				w.metrics.forgetNamespace(m.GetName())
			}
		},
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.namespaces = true
	w.mu.Unlock()
	w.enqueue(w.index.all()...)
	return nil
}

// followObjects watches the config objects of a kind. Nothing is decided that needs the kind until all of it is known.
func (w *watcher) followObjects(ctx context.Context, kind workload.ObjectKind, obj client.Object) {
	w.follow(ctx, kindOf(kind), func(ctx context.Context) error {
		if kind == workload.Secret && w.releases != nil {
			if err := w.releases(ctx); err != nil {
				return err
			}
		}
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
		if s := w.index.workload(id); s != nil {
			w.historian.readBy(s.uses)
		}
		w.enqueue(id)
		if holder, ok := w.index.holderOf(id); ok {
			w.enqueue(holder) // which is paused with it, and rolls by it
		}
	}
	return w.listen(ctx, kind.NewObject(), toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, o any) { put(o) },
		DeleteFunc: func(o any) {
			if obj, ok := unwrap(o).(client.Object); ok {
				id := ID{kind.GroupVersionKind, client.ObjectKeyFromObject(obj)}
				w.index.dropWorkload(id)
				w.gone(id)
				w.enqueue(id) // a look that is under way may still remember something of it
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

// knowsNamespaces reports whether every namespace is known, with its mode and pause.
func (w *watcher) knowsNamespaces() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.namespaces
}

// watchedSince is from when on the watch has shown every config object of the kind; zero when it does not.
func (w *watcher) watchedSince(kind workload.ObjectKind) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced[kind]
}
