package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/stamp"
)

// Metrics are the controller's own metrics, all with the prefix tidemark_. Series of one workload exist only while
// something about it calls for attention, so their number is bounded by the number of held workloads.
type Metrics struct {
	rolls         *prometheus.CounterVec
	records       *prometheus.CounterVec
	holds         *prometheus.CounterVec
	held          *prometheus.GaugeVec
	problems      *prometheus.GaugeVec
	writeErrors   *prometheus.CounterVec
	watchProblems *prometheus.GaugeVec
	missingRights *prometheus.GaugeVec
	historyWrites prometheus.Counter
	historyErrors prometheus.Counter
	unfinished    *prometheus.GaugeVec
	paused        prometheus.Gauge
	rolling       prometheus.Gauge
	pins          pinMetrics
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		rolls:         counters("rolls_total", "Stamps written, each of which rolls its workload.", "kind", "namespace"),
		records:       counters("records_total", "Records written to the metadata of workloads, which roll nothing.", "reason"),
		holds:         counters("holds_total", "Rollouts that were wanted and held, counted when the hold began.", "reason"),
		held:          gauges("held", "1 while a wanted rollout of the workload is held.", "kind", "namespace", "name", "reason"),
		problems:      gauges("workload_problems", "Annotations or templates of the workload that cannot be read.", "kind", "namespace", "name"),
		writeErrors:   counters("write_errors_total", "Writes to workloads that the API refused, or after which the stamp was not there.", "kind", "cause"),
		watchProblems: gauges("watch_problem", "1 while a kind (as kind.group) cannot be watched: not served, or the right to list or watch it is missing; also when it was watched before.", "kind"),
		missingRights: gauges("missing_right", "1 while a right on a kind (as kind.group) is missing that is needed beside those to watch: to patch workloads, to list their revisions. Asked for at the start, and again while it is missing.", "kind", "verb"),
		historyWrites: prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_history_writes_total", Help: "Writes of the history."}),
		historyErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_history_write_errors_total", Help: "Writes of the history that failed; each is tried again."}),
		unfinished:    gauges("unfinished_rollout_seconds", "Age of the newer revision where a rollout leaves more than one running for longer than it may.", "kind", "namespace", "name"),
		paused:        prometheus.NewGauge(prometheus.GaugeOpts{Name: "tidemark_paused", Help: "1 while everything is paused."}),
		rolling:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "tidemark_rolling", Help: "Workloads that Tidemark has stamped and that have not finished rolling."}),
		pins:          newPinMetrics(),
	}
	for _, c := range append(m.pins.collectors(),
		m.rolls, m.records, m.holds, m.held, m.problems, m.writeErrors, m.watchProblems, m.missingRights, m.historyWrites, m.historyErrors, m.paused, m.rolling, m.unfinished,
	) {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tidemark_" + name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tidemark_" + name, Help: help}, labels)
}

func (m *Metrics) watchProblem(gvk schema.GroupVersionKind, on bool) {
	m.watchProblems.WithLabelValues(gvk.GroupKind().String()).Set(boolean(on))
}

func (m *Metrics) missingRight(gvk schema.GroupVersionKind, verb string, on bool) {
	m.missingRights.WithLabelValues(gvk.GroupKind().String(), verb).Set(boolean(on))
}

// kindLabel is a workload's kind as people name it: alone where it is a built-in kind, else with its group, as with
// "StatefulSet.apps.kruise.io". Of two workloads of one name and kind in two groups each has its own series; and no series gets another
// name because a kind is added.
func kindLabel(gvk schema.GroupVersionKind) string {
	if builtinKinds[gvk.GroupKind()] {
		return gvk.Kind
	}
	return gvk.GroupKind().String()
}

// builtinKinds are the built-in kinds.
var builtinKinds = func() map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, k := range cluster.BuiltinKinds() {
		kinds[k.GroupKind()] = true
	}
	return kinds
}()

func (m *Metrics) rolled(id ID) { m.rolls.WithLabelValues(kindLabel(id.GVK), id.Namespace).Inc() }

// forgetNamespace drops the series of a namespace that is gone.
func (m *Metrics) forgetNamespace(name string) {
	m.rolls.DeletePartialMatch(prometheus.Labels{"namespace": name})
}

func (m *Metrics) recorded(reason stamp.Reason) { m.records.WithLabelValues(string(reason)).Inc() }

// hold says that a rollout of the workload is held for the reason; "" that none is.
func (m *Metrics) hold(id ID, reason string) {
	m.held.DeletePartialMatch(prometheus.Labels{"kind": kindLabel(id.GVK), "namespace": id.Namespace, "name": id.Name})
	if reason != "" {
		m.holds.WithLabelValues(reason).Inc()
		m.held.WithLabelValues(kindLabel(id.GVK), id.Namespace, id.Name, reason).Set(1)
	}
}

func (m *Metrics) workloadProblems(id ID, n int) {
	if n == 0 {
		m.problems.DeleteLabelValues(kindLabel(id.GVK), id.Namespace, id.Name)
		return
	}
	m.problems.WithLabelValues(kindLabel(id.GVK), id.Namespace, id.Name).Set(float64(n))
}

// unfinishedRollouts says which rollouts are left unfinished, and how old they are; of all others nothing.
func (m *Metrics) unfinishedRollouts(ages map[ID]time.Duration) {
	m.unfinished.Reset()
	for id, age := range ages {
		m.unfinished.WithLabelValues(kindLabel(id.GVK), id.Namespace, id.Name).Set(age.Seconds())
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
