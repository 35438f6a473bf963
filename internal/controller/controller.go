// Package controller makes changes of configuration take effect: it watches, decides with the domain's pure functions, writes.
package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/pace"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
)

// Options configure the controller.
type Options struct {
	// Namespace is Tidemark's own.
	Namespace string
	// DefaultMode is the mode of workloads for which nothing else says one.
	DefaultMode stamp.Mode
	// Kinds are the kinds of workload to watch.
	Kinds []cluster.Kind
	// Secrets says whether Secrets are watched; without, references to them are as if they were not there.
	Secrets bool
	// Pace says when a wanted rollout may happen.
	Pace pace.Settings
	// MaxRolling bounds how many workloads roll at the same time; 0 for no bound.
	MaxRolling int
	// RollTimeout is after how long a workload that has not finished rolling no longer counts against MaxRolling.
	RollTimeout time.Duration
	// Workers is how many workloads are looked at concurrently.
	Workers int
	// WatchLag is how long a change may take to be seen; it widens what the history leaves open.
	WatchLag time.Duration
	// Key keys the digests of Secrets.
	Key *digest.Key
	// Direct reads and writes the API without a cache.
	Direct client.Client
	// Pods caches pods as [cluster.PinnedPod]; nil when they are not watched.
	Pods cache.Cache
	// Recorder sends Events, under the name [Reporter].
	Recorder events.EventRecorder
	// HelmRecords caches the metadata of pending Helm releases; nil when releases are not waited for.
	HelmRecords cache.Cache
	// History says whether the history is kept; it needs leader election, which tells the gaps in watching.
	History bool
	// KeepValues says whether the history has values of ConfigMaps too.
	KeepValues bool
	// RenewDeadline is how long without a renewal of the leader Lease this process may still take itself for the leader.
	RenewDeadline time.Duration
	// Lease is the leader Lease as it was before this process took part; nil when there was none.
	Lease *coordinationv1.Lease
	// NodeLeases caches the Leases of nodes; nil when they are not watched. Needs History.
	NodeLeases cache.Cache
	// Watches is told by the cache how its watches fare.
	Watches *Watches
	// RolloutInterval is how often rollouts are looked at that may be left unfinished.
	RolloutInterval time.Duration
	// Pinning follows whether pins are in force.
	Pinning *Pinning
	// Clock is the real one where nil.
	Clock clock.Clock
}

// Controller reconciles workloads of every kind.
type Controller struct {
	options   Options
	client    client.Client
	reader    client.Reader // uncached
	copier    *cluster.Copier
	pinning   *Pinning
	clock     clock.Clock
	log       logr.Logger
	index     *index
	watcher   *watcher
	releases  *releases
	metrics   *Metrics
	announcer announcer
	slots     *slots
	memory    *memory
	sightings *sightings

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[ID]
}

// Register adds the controller, its watches and its historian to the manager.
func Register(ctx context.Context, mgr manager.Manager, o Options, metrics *Metrics) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		options: o, client: mgr.GetClient(), reader: mgr.GetAPIReader(), clock: o.Clock,
		copier: &cluster.Copier{Client: o.Direct, Key: o.Key},
		log:    mgr.GetLogger().WithName("controller"), index: newIndex(), releases: newReleases(), metrics: metrics,
		announcer: announcer{o.Recorder}, memory: newMemory(), sightings: newSightings(), pinning: o.Pinning,
	}
	c.slots = newSlots(o.MaxRolling, o.RollTimeout)
	signs := newSigns(o.Clock)
	h := c.newHistorian(signs)
	c.watcher = &watcher{
		cache: mgr.GetCache(), client: c.client, clock: o.Clock, log: c.log, index: c.index, historian: h, metrics: metrics,
		watches: o.Watches, kinds: o.Kinds, namespace: o.Namespace, secrets: o.Secrets, enqueue: c.enqueue, gone: c.forget, synced: map[workload.ObjectKind]time.Time{},
	}
	h.synced, h.watched = c.watcher.knows, c.watcher.watchedSince
	o.Watches.tell(h.watches)
	if o.HelmRecords != nil {
		c.watcher.releases = func(ctx context.Context) error {
			if err := c.releases.watch(ctx, o.HelmRecords); err != nil {
				return fmt.Errorf("watch helm records: %w", err)
			}
			return nil
		}
	}
	if err := c.addPinning(mgr); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("watches", c.watcher.ready); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	if err := c.register(mgr); err != nil {
		return err
	}
	if err := mgr.Add(c.watcher); err != nil {
		return fmt.Errorf("add watcher: %w", err)
	}
	if err := mgr.Add(&rollouts{Controller: c, interval: o.RolloutInterval}); err != nil {
		return fmt.Errorf("add rollouts: %w", err)
	}
	if !o.History {
		return nil
	}
	if err := watchLease(ctx, mgr.GetCache(), signs, o.Lease); err != nil {
		return fmt.Errorf("watch lease: %w", err)
	}
	if o.NodeLeases != nil {
		if err := mgr.Add(newNodeWatch(o.NodeLeases, c.client, o.Clock, c.log, h)); err != nil {
			return fmt.Errorf("add watch of nodes: %w", err)
		}
	}
	return mgr.Add(h)
}

func (c *Controller) newHistorian(s *signs) *historian {
	return &historian{
		client: c.client, reader: c.reader, clock: c.clock, log: c.log.WithName("history"), metrics: c.metrics, index: c.index, signs: s,
		key: c.options.Key, namespace: c.options.Namespace, lag: c.options.WatchLag, renewDeadline: c.options.RenewDeadline,
		logs: map[workload.Object]*history.Log{}, dirty: map[string]bool{}, shards: map[string]int{},
		unseen: map[workload.Object]bool{}, values: newValues(c.options.KeepValues), heard: map[workload.ObjectKind]time.Time{},
		blindness: newBlindness(), silences: history.Silences{}, loaded: make(chan struct{}), kick: make(chan struct{}, 1),
	}
}

// register makes the work queue. Its only source hands the queue over when this process leads; the watches fill it.
func (c *Controller) register(mgr manager.Manager) error {
	typed, err := ctrl.NewTyped("workload", mgr, ctrl.TypedOptions[ID]{
		MaxConcurrentReconciles: c.options.Workers,
		Reconciler:              c,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ID](200*time.Millisecond, time.Minute),
		LogConstructor: func(id *ID) logr.Logger {
			if id == nil {
				return c.log
			}
			return c.log.WithValues("workload", id.String())
		},
	})
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	return typed.Watch(source.TypedFunc[ID](func(_ context.Context, q workqueue.TypedRateLimitingInterface[ID]) error {
		c.mu.Lock()
		c.queue = q
		c.mu.Unlock()
		c.enqueue(c.index.all()...)
		return nil
	}))
}

// enqueue asks for workloads to be looked at; without effect while this process does not lead.
func (c *Controller) enqueue(ids ...ID) {
	c.mu.Lock()
	q := c.queue
	c.mu.Unlock()
	if q == nil {
		return
	}
	for _, id := range ids {
		q.Add(id)
	}
}

// watchLease follows the leader Lease, from the state that it had before this process took part.
func watchLease(ctx context.Context, c cache.Cache, s *signs, before *coordinationv1.Lease) error {
	if before != nil {
		s.saw(before)
	}
	informer, err := c.GetInformer(ctx, &coordinationv1.Lease{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	saw := func(o any) {
		if lease, ok := o.(*coordinationv1.Lease); ok {
			s.saw(lease)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: saw, UpdateFunc: func(_, o any) { saw(o) }})
	return err
}
