package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"tidemark.dev/tidemark/internal/cluster/cleanup"
	"tidemark.dev/tidemark/internal/snapshot"
)

// quotaEvery is how often quotas are looked at between two rounds of clean-up.
const quotaEvery = time.Minute

// CleanupOptions configure the clean-up of snapshots.
type CleanupOptions struct {
	// Round is a round of the whole cluster, made again and again. It has a client of its own, without a cache.
	Round cleanup.Round
	// Interval is the time between two rounds.
	Interval time.Duration
	// Recorder sends Events, under the name [Reporter].
	Recorder events.EventRecorder
	// Clock is the real one where nil.
	Clock clock.Clock
}

// RegisterCleanup adds the clean-up of snapshots to the manager. It runs where this process leads.
func RegisterCleanup(mgr manager.Manager, o CleanupOptions, metrics *CleanupMetrics) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	err := mgr.Add(&cleaner{
		clock: o.Clock, log: mgr.GetLogger().WithName("cleanup"), metrics: metrics, recorder: o.Recorder, interval: o.Interval,
		round: func(ctx context.Context, namespace string) (*cleanup.Outcome, error) {
			r := o.Round
			r.Namespace = namespace
			return r.Run(ctx)
		},
		quotas: func(ctx context.Context) ([]cleanup.Quota, error) { return cleanup.NearlyFull(ctx, o.Round.Client, "") },
	})
	if err != nil {
		return fmt.Errorf("add clean-up: %w", err)
	}
	return nil
}

// cleaner removes snapshots that nothing needs: of all namespaces at its interval, and of one whose quota became nearly full
// at once.
type cleaner struct {
	clock    clock.Clock
	log      logr.Logger
	metrics  *CleanupMetrics
	recorder events.EventRecorder
	interval time.Duration
	// round cleans up a namespace, or all of them for "".
	round func(ctx context.Context, namespace string) (*cleanup.Outcome, error)
	// quotas lists those that are nearly full.
	quotas func(ctx context.Context) ([]cleanup.Quota, error)
	// warned are the quotas that people were told of, as long as they are nearly full.
	warned map[cleanup.Quota]bool
	// busy says that the last round of all namespaces found snapshots; without any, quotas do not matter.
	busy bool
	// full are the namespaces for which a round was made because of a quota, as long as it is nearly full.
	full map[string]bool
	// said is the error that was logged last, so that one that stays is logged once.
	said string
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *cleaner) NeedLeaderElection() bool { return true }

// Start cleans up until the context ends.
func (c *cleaner) Start(ctx context.Context) error {
	c.warned, c.full = map[cleanup.Quota]bool{}, map[string]bool{}
	for {
		c.clean(ctx, "")
		for left := c.interval; left > 0; {
			pause := min(left, quotaEvery)
			select {
			case <-ctx.Done():
				return nil
			case <-c.clock.After(pause):
			}
			if left -= pause; left > 0 && c.busy {
				c.watchQuotas(ctx)
			}
		}
	}
}

// watchQuotas makes a round for each namespace in which a quota has become nearly full since the last look.
func (c *cleaner) watchQuotas(ctx context.Context) {
	quotas, err := c.quotas(ctx)
	if err != nil {
		c.failed(ctx, err)
		return
	}
	full := namespacesOf(quotas)
	for _, namespace := range slices.Sorted(maps.Keys(full)) {
		if !c.full[namespace] && !c.clean(ctx, namespace) {
			delete(full, namespace) // to be tried again
		}
	}
	c.full = full
}

func namespacesOf(quotas []cleanup.Quota) map[string]bool {
	out := map[string]bool{}
	for _, q := range quotas {
		out[q.Namespace] = true
	}
	return out
}

// clean makes a round and tells what came of it. It reports whether all went well.
func (c *cleaner) clean(ctx context.Context, namespace string) bool {
	cleaned, err := c.round(ctx, namespace)
	if err == nil {
		c.tell(cleaned, namespace)
		err = cleaned.Err()
	}
	c.failed(ctx, err)
	return err == nil
}

// failed logs an error once, until it is another one or none.
func (c *cleaner) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
		c.metrics.errors.Inc()
	}
	if text != "" && text != c.said {
		c.log.Error(err, "Cannot clean up snapshots; trying again", "retryIn", c.interval)
	}
	c.said = text
}

func (c *cleaner) tell(cleaned *cleanup.Outcome, namespace string) {
	deleted := map[string][]string{}
	for _, item := range cleaned.Items {
		if !item.Done {
			continue
		}
		c.metrics.done.WithLabelValues(string(item.Action)).Inc()
		if ns := item.Object.Namespace; item.Action == snapshot.Delete {
			deleted[ns] = append(deleted[ns], item.Object.Relative(ns))
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(deleted)) {
		named := deleted[ns]
		c.log.Info("Deleted snapshots that nothing needs", "namespace", ns, "count", len(named),
			"snapshots", strings.Join(named[:min(len(named), maxNamed)], ", ")+more(len(named)))
	}
	c.warn(cleaned.Quotas, namespace)
	if namespace == "" {
		c.busy, c.full = len(cleaned.Items) > 0, namespacesOf(cleaned.Quotas)
		c.metrics.count(cleaned)
	}
}

// warn tells people of quotas that are nearly full, each once until it is no longer so.
func (c *cleaner) warn(quotas []cleanup.Quota, namespace string) {
	still := map[cleanup.Quota]bool{}
	for q := range c.warned {
		still[q] = namespace != "" && q.Namespace != namespace // of which this round told nothing
	}
	for _, q := range quotas {
		key := q
		key.Used, key.Hard = 0, 0
		if still[key] = true; c.warned[key] {
			continue
		}
		c.log.Info("A quota is nearly full, so new snapshots may be refused", "quota", q.String())
		on := &corev1.ResourceQuota{}
		on.Namespace, on.Name = q.Namespace, q.Name
		on.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ResourceQuota"))
		announcer{c.recorder}.event(on, corev1.EventTypeWarning, "QuotaNearlyFull", "CleanUp", fmt.Sprintf(
			"%d of %d %s are used: snapshots that nothing needs are condemned now, and removed after --gc-min-age; when it is full, workloads in mode pin cannot roll, "+
				"so raise the quota where that is too late", q.Used, q.Hard, q.Resource))
	}
	maps.DeleteFunc(still, func(_ cleanup.Quota, on bool) bool { return !on })
	c.warned = still
	c.metrics.full(still)
}
