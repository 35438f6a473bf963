package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidemark.dev/tidemark/internal/cluster"
)

const (
	// nodeLook is how often it is looked which nodes are silent.
	nodeLook = time.Second
	// nodeLeaseDuration is that of a node's Lease which states none: the kubelet's default.
	nodeLeaseDuration = 40 * time.Second
)

// nodeWatch has the history know for which times nodes gave no sign of life. A kubelet that was cut off for less than its grace period
// leaves no other trace, and may give pods old content for a while when it is back.
type nodeWatch struct {
	// leases gives the Leases of nodes; it is started when this process leads.
	leases    cache.Cache
	client    client.Client
	clock     clock.Clock
	log       logr.Logger
	historian *historian

	mu sync.Mutex
	// last is the last sign of life of each node.
	last map[string]sign
}

// sign is a node's sign of life.
type sign struct {
	// renewed is when its Lease was renewed, by the node's clock; heard is when that was seen, by this process's.
	renewed, heard time.Time
	// limit is how long after it the next is due at the latest.
	limit time.Duration
}

func newNodeWatch(leases cache.Cache, c client.Client, passing clock.Clock, log logr.Logger, h *historian) *nodeWatch {
	return &nodeWatch{leases: leases, client: c, clock: passing, log: log, historian: h, last: map[string]sign{}}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (w *nodeWatch) NeedLeaderElection() bool { return true }

// Start watches until the context ends.
func (w *nodeWatch) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.historian.loaded:
	}
	if !w.awaitRight(ctx) {
		return nil
	}
	informer, err := w.leases.GetInformer(ctx, &coordinationv1.Lease{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch leases of nodes: %w", err)
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.saw(o) },
		UpdateFunc: func(_, o any) { w.saw(o) },
		DeleteFunc: w.gone,
	})
	if err != nil {
		return fmt.Errorf("watch leases of nodes: %w", err)
	}
	go w.look(ctx, handler.HasSynced)
	return w.leases.Start(ctx)
}

// awaitRight waits until the Leases of nodes may be watched, and reports false when the context ended before.
func (w *nodeWatch) awaitRight(ctx context.Context) bool {
	told := false
	for {
		err := cluster.Access(ctx, w.client, coordinationv1.SchemeGroupVersion.WithKind("Lease"), corev1.NamespaceNodeLease, "list", "watch")
		if err == nil {
			return true
		}
		if forbidden := (&cluster.ForbiddenError{}); errors.As(err, &forbidden) && !told && ctx.Err() == nil {
			told = true
			w.log.Error(nil, "A right is missing, and nodes that are cut off for less than their grace period are not noticed: what pods read that start there may be stated "+
				"wrongly; everything else goes on: "+err.Error(), "retryEvery", accessRetry)
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.clock.After(accessRetry):
		}
	}
}

// look looks again and again for nodes that are silent, once all are known.
func (w *nodeWatch) look(ctx context.Context, synced func() bool) {
	all := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.clock.After(nodeLook):
		}
		if !all && synced() {
			all = true
			w.historian.nodesLeft(w.nodes())
		}
		w.overdue()
	}
}

// nodes tells of each node whether it is there.
func (w *nodeWatch) nodes() func(node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := maps.Clone(w.last)
	return func(node string) bool {
		_, there := last[node]
		return there
	}
}

// overdue finds the nodes of which no sign of life came in time.
func (w *nodeWatch) overdue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for node, s := range w.last {
		if w.clock.Since(s.heard) > s.limit {
			w.historian.nodeSilent(node, s.renewed)
		}
	}
}

// saw takes in a state of a node's Lease. How long it was silent is told by the times in the Lease, so that it does not matter when
// they are seen. What a watch missed that was broken makes a silence longer, never shorter.
func (w *nodeWatch) saw(o any) {
	lease, ok := o.(*coordinationv1.Lease)
	if !ok || lease.Spec.RenewTime == nil {
		return
	}
	s := sign{renewed: lease.Spec.RenewTime.Time, heard: w.clock.Now(), limit: silentAfter(lease)}
	w.mu.Lock()
	defer w.mu.Unlock()
	before, known := w.last[lease.Name]
	switch {
	case !known && s.renewed.Before(s.heard):
		s.heard = s.renewed // it may have been silent since
	case known && !s.renewed.After(before.renewed):
		return
	}
	w.last[lease.Name] = s
	if known && s.renewed.Sub(before.renewed) > s.limit {
		w.historian.nodeSilent(lease.Name, before.renewed)
	}
	w.historian.nodeHeard(lease.Name, s.renewed, s.limit)
}

func (w *nodeWatch) gone(o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if lease, ok := o.(*coordinationv1.Lease); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.last, lease.Name)
		w.historian.nodesLeft(func(node string) bool { return node != lease.Name })
	}
}

// silentAfter is how long after a renewal of its Lease a node counts as silent: when two are missing. A kubelet renews four times within
// the Lease's duration (k8s.io/kubernetes/pkg/kubelet, where it makes its lease controller).
func silentAfter(lease *coordinationv1.Lease) time.Duration {
	duration := nodeLeaseDuration
	if s := lease.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		duration = time.Duration(*s) * time.Second
	}
	return duration / 2
}
