package notify

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of notifications. Destinations are named as in the configuration, so their number is bounded by it.
type Metrics struct {
	sent, failures, dropped *prometheus.CounterVec
	waiting                 *prometheus.GaugeVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tidemark_" + name, Help: help}, labels)
	}
	m := &Metrics{
		sent:     counter("notifications_total", "Notifications that a destination has taken, by whether they say that something holds or has ended: firing or resolved.", "destination", "status"),
		failures: counter("notification_failures_total", "Attempts to deliver a notification that failed; each is tried again.", "destination", "cause"),
		dropped:  counter("notifications_dropped_total", "Notifications that were not taken on: invalid, or, but for pages, too many at the same time (full).", "cause"),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidemark_notifications_waiting", Help: "Notifications that their destination has not taken yet.",
		}, []string{"destination"}),
	}
	for _, c := range []prometheus.Collector{m.sent, m.failures, m.dropped, m.waiting} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
