package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidemark.dev/tidemark/internal/cluster/cleanup"
)

// CleanupMetrics are those of the clean-up of snapshots.
type CleanupMetrics struct {
	snapshots *prometheus.GaugeVec
	done      *prometheus.CounterVec
	errors    prometheus.Counter
	quotas    *prometheus.GaugeVec
	lost      *prometheus.GaugeVec
}

// NewCleanupMetrics makes the metrics and registers them.
func NewCleanupMetrics(registry prometheus.Registerer) (*CleanupMetrics, error) {
	m := &CleanupMetrics{
		snapshots: gauges("snapshots", "Snapshots of configuration that the last round of clean-up found, by its reason to keep or remove them.", "reason"),
		done:      counters("cleanup_actions_total", "What clean-up did to snapshots: condemn, pardon or delete.", "action"),
		errors:    prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_cleanup_errors_total", Help: "Rounds of clean-up that failed, wholly or in part; each is tried again."}),
		quotas:    gauges("quota_nearly_full", "1 while a quota on config objects, in a namespace with snapshots, is nearly full.", "namespace", "name", "resource"),
		lost:      gauges("unreachable_revisions", "Retained revisions in mode pin of which a copy is not there, so that a rollback to one would start no pod, as the last round of clean-up found. There is a series only where there are any.", "namespace"),
	}
	for _, c := range []prometheus.Collector{m.snapshots, m.done, m.errors, m.quotas, m.lost} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// count shows what a round of the whole cluster found and left.
func (m *CleanupMetrics) count(c *cleanup.Outcome) {
	m.snapshots.Reset()
	for _, item := range c.Items {
		m.snapshots.WithLabelValues(string(item.Reason)).Inc()
	}
	m.lost.Reset()
	for namespace, n := range c.Unreachable {
		m.lost.WithLabelValues(namespace).Set(float64(n))
	}
}

// full shows the quotas that are nearly full.
func (m *CleanupMetrics) full(quotas map[cleanup.Quota]bool) {
	m.quotas.Reset()
	for q := range quotas {
		m.quotas.WithLabelValues(q.Namespace, q.Name, q.Resource).Set(1)
	}
}
