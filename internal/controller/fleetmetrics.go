package controller

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/stamp"
)

// maxVersions bounds the versions of one fleet that have series of their own; pods of any others are counted together.
const maxVersions = 5

// otherVersions stands for the versions of a fleet beyond [maxVersions].
const otherVersions = "other"

// podState says how the pods of a series stand towards what is applied.
type podState string

const (
	podApplied podState = "applied" // they run what is applied
	podOlder   podState = "older"   // they are known to run something else
	podUnknown podState = "unknown" // what they run is not known
)

// FleetMetrics are the series of fleets, made by the leader: as of its last look, all of one look or none; of kinds that this look
// might not list, as of the look before it. A fleet that reads no
// configuration and is in step has no series, so their number is bounded by 8 + [maxVersions] + 5 for each other one: three states of
// pods of other versions, and pods whose version is not known.
type FleetMetrics struct {
	verdict, since, versions, pods, behind, differing, dormant, budget, unmatched *prometheus.Desc
	fleets, pinned, looked                                                        *prometheus.Desc

	seconds prometheus.Histogram
	errors  prometheus.Counter
	remarks prometheus.Gauge

	mu   sync.Mutex
	last *lookedAt // nil until the first look, and where another process leads
}

// lookedAt is one look at all fleets, by the API server's clock.
type lookedAt struct {
	at     time.Time
	fleets []measured
}

// pinned counts the fleets in mode pin.
func (l *lookedAt) pinned() int {
	n := 0
	for i := range l.fleets {
		if l.fleets[i].mode == stamp.Pin {
			n++
		}
	}
	return n
}

// measured is one fleet with what its series say.
type measured struct {
	cluster.Target
	owner  string
	mode   stamp.Mode
	result fleet.Result
	budget time.Duration
}

// NewFleetMetrics makes the metrics and registers them.
func NewFleetMetrics(registry prometheus.Registerer) (*FleetMetrics, error) {
	of := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("tidemark_fleet_"+name, help, append([]string{"kind", "namespace", "name"}, more...), nil)
	}
	m := &FleetMetrics{
		verdict:   of("verdict", "1, with the verdict on the fleet, and the owner where one is named.", "verdict", "owner"),
		since:     of("verdict_timestamp_seconds", "Since when the fleet has its verdict; no series where that is not known."),
		versions:  of("versions", "Distinct versions that the fleet's pods are known to run."),
		pods:      of("pods", "Running pods of the fleet by the version that they run (empty where it is not known, other beyond the five with the most pods), and by whether it is the applied one: applied, older or unknown.", "version", "state"),
		behind:    of("pods_behind", "Pods of the fleet that are known to run something else than is applied."),
		differing: of("differing_keys", "Consumed keys of which some pod is known to have loaded something else than is applied."),
		dormant:   of("dormant_seconds", "Age of the oldest applied change that has not reached every pod of the fleet; 0 when all have it, no series where it is not known."),
		budget:    of("rollout_budget_seconds", "How long a rollout of the workload should take."),
		unmatched: of("unmatched_references", "Config objects that pods of the fleet read by their own names although their pins name a copy, summed over the pods. There is a series only where there are any."),
		fleets:    prometheus.NewDesc("tidemark_fleets", "Fleets that the leader looked at, those without series included.", nil, nil),
		pinned:    prometheus.NewDesc("tidemark_fleets_pinned", "Fleets in mode pin that the leader looked at.", nil, nil),
		looked:    prometheus.NewDesc("tidemark_fleets_timestamp_seconds", "When the leader last looked at all fleets.", nil, nil),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tidemark_fleets_look_seconds", Help: "How long a look at all fleets took.", Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		errors:  prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_fleets_errors_total", Help: "Looks at all fleets that failed; the series stay as they were."}),
		remarks: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tidemark_fleets_remarks", Help: "What the last look at all fleets could not read, missing rights for example: so much is unknown that need not be."}),
	}
	for _, c := range []prometheus.Collector{m, m.seconds, m.errors, m.remarks} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Describe implements prometheus.Collector.
func (m *FleetMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.verdict, m.since, m.versions, m.pods, m.behind, m.differing, m.dormant, m.budget, m.unmatched, m.fleets, m.pinned, m.looked} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *FleetMetrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	last := m.last
	m.mu.Unlock()
	if last == nil {
		return
	}
	out <- prometheus.MustNewConstMetric(m.fleets, prometheus.GaugeValue, float64(len(last.fleets)))
	out <- prometheus.MustNewConstMetric(m.pinned, prometheus.GaugeValue, float64(last.pinned()))
	out <- prometheus.MustNewConstMetric(m.looked, prometheus.GaugeValue, float64(last.at.Unix()))
	for i := range last.fleets {
		if f := &last.fleets[i]; f.speaks() {
			m.collect(out, f, last.at)
		}
	}
}

func (m *FleetMetrics) collect(out chan<- prometheus.Metric, f *measured, at time.Time) {
	labels := []string{kindLabel(f.Kind.GroupVersionKind), f.Namespace, f.Name}
	gauge := func(d *prometheus.Desc, value float64, more ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append(slices.Clone(labels), more...)...)
	}
	gauge(m.verdict, 1, string(f.result.Verdict), f.owner)
	if !f.result.Since.IsZero() {
		gauge(m.since, float64(f.result.Since.Unix()))
	}
	gauge(m.behind, float64(f.result.Behind))
	gauge(m.differing, float64(f.result.Differing))
	gauge(m.budget, f.budget.Seconds())
	switch {
	case f.result.Behind == 0 && f.known():
		gauge(m.dormant, 0)
	case !f.result.Changed.IsZero():
		gauge(m.dormant, max(at.Sub(f.result.Changed), 0).Seconds())
	}
	if n := f.unmatched(); n > 0 {
		gauge(m.unmatched, float64(n))
	}
	counts, known := f.pods()
	gauge(m.versions, float64(known))
	for _, c := range counts {
		gauge(m.pods, float64(c.pods), c.version, string(c.state))
	}
}

// known reports whether it is known of every running pod whether it runs what is applied.
func (f *measured) known() bool {
	return f.result.Verdict != fleet.Unknown && !slices.ContainsFunc(f.result.Versions, func(v fleet.VersionCount) bool { return stateOf(v) == podUnknown })
}

// speaks reports whether the fleet has anything to say: it reads configuration, or something is amiss.
func (f *measured) speaks() bool {
	return f.result.Verdict != fleet.InStep || len(f.result.Versions) > 0 && f.reads()
}

func (f *measured) reads() bool {
	return slices.ContainsFunc(f.result.Pods, func(p fleet.PodResult) bool {
		return slices.ContainsFunc(p.Containers, func(c fleet.ContainerResult) bool { return len(c.Loaded) > 0 })
	})
}

// unmatched counts, over all pods, the objects that a pod reads by their own names although its pins name copies.
func (f *measured) unmatched() int {
	n := 0
	for _, p := range f.result.Pods {
		n += len(p.Unmatched)
	}
	return n
}

// podCount is how many pods run a version.
type podCount struct {
	version string
	state   podState
	pods    int
}

// pods counts the running pods by version, and how many versions are known.
func (f *measured) pods() (counts []podCount, known int) {
	versions := slices.Clone(f.result.Versions)
	slices.SortStableFunc(versions, func(a, b fleet.VersionCount) int { return cmp.Compare(b.Pods, a.Pods) })
	seen, named := map[string]bool{}, 0
	for _, v := range versions {
		c := podCount{v.Version, stateOf(v), v.Pods}
		if v.Version != "" {
			seen[v.Version] = true
			if named++; named > maxVersions {
				c.version = otherVersions
			}
		}
		at := slices.IndexFunc(counts, func(o podCount) bool { return o.version == c.version && o.state == c.state })
		if at < 0 {
			counts = append(counts, c)
			continue
		}
		counts[at].pods += c.pods
	}
	return counts, len(seen)
}

func stateOf(v fleet.VersionCount) podState {
	switch {
	case v.Applied:
		return podApplied
	case v.Behind:
		return podOlder
	}
	return podUnknown
}

// of are the fleets of the kinds as the last look found them: a right that is lost ends no series, and no alert that stands on them.
func (m *FleetMetrics) of(kinds []cluster.Kind) []measured {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		return nil
	}
	var out []measured
	for i := range m.last.fleets {
		f := &m.last.fleets[i]
		if slices.ContainsFunc(kinds, func(k cluster.Kind) bool { return k.GroupKind() == f.Kind.GroupKind() }) {
			out = append(out, *f)
		}
	}
	return out
}

// show replaces the series by those of a look.
func (m *FleetMetrics) show(l *lookedAt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = l
}
