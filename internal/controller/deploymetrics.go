package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidemark.dev/tidemark/internal/release"
)

// DeployMetrics are those of Helm releases on which something is under way.
type DeployMetrics struct {
	pending    *prometheus.GaugeVec
	undecided  *prometheus.GaugeVec
	recoveries *prometheus.CounterVec
	errors     prometheus.Counter
}

// NewDeployMetrics makes the metrics and registers them.
func NewDeployMetrics(registry prometheus.Registerer) (*DeployMetrics, error) {
	m := &DeployMetrics{
		pending:    gauges("release_pending_seconds", "For how long an operation has been under way on the Helm release, with the state that its evidence gives.", "namespace", "release", "operation", "state"),
		undecided:  gauges("release_unreadable", "1 while a record of the Helm release, the lease of its guard or one of its hooks cannot be read, so that nothing can be told of it.", "namespace", "release"),
		recoveries: counters("release_recoveries_total", "Pending revisions that were marked failed, by the result: done, changed or error.", "result"),
		errors:     prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_release_errors_total", Help: "Looks at Helm releases that failed; each is tried again."}),
	}
	for _, c := range []prometheus.Collector{m.pending, m.undecided, m.recoveries, m.errors} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// show shows what is known of the releases after a look; of all others nothing.
func (m *DeployMetrics) show(all []deploy) {
	m.pending.Reset()
	m.undecided.Reset()
	for _, d := range all {
		if d.verdict.Operation != release.NoOperation {
			m.pending.WithLabelValues(d.Namespace, d.Name, string(d.verdict.Operation), string(d.verdict.State)).Set(d.verdict.Age(d.Now).Seconds())
		}
		if d.unreadable() {
			m.undecided.WithLabelValues(d.Namespace, d.Name).Set(1)
		}
	}
}

// unreadable reports whether what a record, the lease or a hook would tell is missing for the verdict.
func (d deploy) unreadable() bool {
	return len(d.Undecodable) > 0 || d.LeaseProblem != "" || d.HookProblem != "" && d.verdict.State == release.Unknown
}
