package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidemark.dev/tidemark/internal/cluster"
)

// pinMetrics are the metrics of mode pin.
type pinMetrics struct {
	installed *prometheus.GaugeVec
	pods      *prometheus.GaugeVec
}

func newPinMetrics() pinMetrics {
	return pinMetrics{
		installed: gauges("pinning", "1 while that part of mode pin is installed: the policy or the webhook that rewrites new pods, the webhook on workloads; or, as part hidden, while some of it may not be looked at.", "part"),
		pods:      gauges("pods_off_their_pins", "Pods that do not read what their pins say. There is a series only where there are any.", "namespace"),
	}
}

func (m pinMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.installed, m.pods}
}

// pinning notes what of mode pin is installed.
func (m *Metrics) pinning(p cluster.Pinning) {
	for part, on := range map[string]bool{"policy": p.Policy, "podWebhook": p.Webhook, "workloadWebhook": p.Workloads, "hidden": p.Hidden} {
		m.pins.installed.WithLabelValues(part).Set(boolean(on))
	}
}

// podsOff notes how many pods of a namespace do not read what their pins say.
func (m *Metrics) podsOff(namespace string, n int) {
	if n == 0 {
		m.pins.pods.DeleteLabelValues(namespace)
		return
	}
	m.pins.pods.WithLabelValues(namespace).Set(float64(n))
}
