package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of the admission webhooks.
type Metrics struct {
	admissions *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_admissions_total",
			Help: "Writes that the API server asked a webhook about, by what came of it; none is ever refused.",
		}, []string{"webhook", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidemark_admission_seconds", Help: "How long a webhook took to answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"webhook"}),
	}
	for _, c := range []prometheus.Collector{m.admissions, m.seconds} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) admitted(webhook string, o outcome, took time.Duration) {
	m.admissions.WithLabelValues(webhook, string(o)).Inc()
	m.seconds.WithLabelValues(webhook).Observe(took.Seconds())
}
