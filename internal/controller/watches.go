package controller

import (
	"errors"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/workload"
)

// Watches tells which kinds cannot be watched, or not any more: once each in the log, and in a metric for as long as it lasts.
type Watches struct {
	log     logr.Logger
	metrics *Metrics

	mu sync.Mutex
	// trouble is what was last said of each kind that cannot be watched.
	trouble map[schema.GroupVersionKind]string
	// watched are the kinds that were watched at some time.
	watched map[schema.GroupVersionKind]bool
	// config is told whether a kind of config objects is watched; nil for nobody.
	config func(kind workload.ObjectKind, watched bool)
}

// NewWatches makes one that knows of no trouble.
func NewWatches(log logr.Logger, metrics *Metrics) *Watches {
	return &Watches{
		log: log, metrics: metrics,
		trouble: map[schema.GroupVersionKind]string{}, watched: map[schema.GroupVersionKind]bool{},
	}
}

// Fared takes note of how an attempt to watch a kind went: nil when it is watched. That the cluster does not serve a kind of
// which that is to be expected is no trouble.
func (w *Watches) Fared(gvk schema.GroupVersionKind, err error) {
	var notServed *cluster.NotServedError
	if cluster.Optional(gvk) && errors.As(err, &notServed) {
		w.absent(gvk)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	said, kind := w.trouble[gvk], gvk.GroupKind().String()
	w.metrics.watchProblem(gvk, err != nil)
	if kind := workload.ObjectKind(gvk.Kind); w.config != nil && gvk == kindOf(kind) && (kind == workload.ConfigMap || kind == workload.Secret) {
		w.config(kind, err == nil)
	}
	switch {
	case err == nil:
		w.watched[gvk] = true
		delete(w.trouble, gvk)
		if said != "" {
			w.log.Info("Watching now", "kind", kind)
		}
	case err.Error() == said:
	case w.watched[gvk]:
		w.trouble[gvk] = err.Error()
		w.log.Error(nil, "Cannot watch a kind any more, and goes by what it last saw of it; everything else goes on: "+err.Error(), "kind", kind)
	default:
		w.trouble[gvk] = err.Error()
		w.log.Error(nil, "Cannot watch a kind; everything else goes on: "+err.Error(), "kind", kind, "retryEvery", accessRetry)
	}
}

// tell has somebody told whether a kind of config objects is watched.
func (w *Watches) tell(config func(kind workload.ObjectKind, watched bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.config = config
}

// absent takes note of a kind that is not there, and need not be: whatever was said of it is over.
func (w *Watches) absent(gvk schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.trouble, gvk)
	w.metrics.watchProblem(gvk, false)
}
