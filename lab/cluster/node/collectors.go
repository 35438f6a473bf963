package node

import (
	"fmt"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// ShareCollectors lets more than one kubelet run in this process. Each registers collectors of its own for the same
// metrics with the process's registries, which panic on the second; afterwards they keep the first. Call it once,
// before anything is started.
func ShareCollectors() error {
	// The registry is not meant to be replaced: it is an exported field of an unexported struct.
	field := reflect.Indirect(reflect.ValueOf(legacyregistry.DefaultGatherer)).FieldByName("PromRegistry")
	if !field.IsValid() || !field.CanSet() {
		return fmt.Errorf("replace the metrics registry: %T has no field for it", legacyregistry.DefaultGatherer)
	}
	registry, ok := field.Interface().(metrics.PromRegistry)
	if !ok {
		return fmt.Errorf("replace the metrics registry: unexpected type %s", field.Type())
	}
	field.Set(reflect.ValueOf(firstRegistry{registry}))
	prometheus.DefaultRegisterer = firstRegisterer{prometheus.DefaultRegisterer}
	return nil
}

// firstRegistry keeps the first collector of a metric.
type firstRegistry struct{ metrics.PromRegistry }

// MustRegister implements prometheus.Registerer.
func (r firstRegistry) MustRegister(collectors ...prometheus.Collector) {
	registerFirst(r.PromRegistry, collectors)
}

// firstRegisterer keeps the first collector of a metric.
type firstRegisterer struct{ prometheus.Registerer }

// MustRegister implements prometheus.Registerer.
func (r firstRegisterer) MustRegister(collectors ...prometheus.Collector) {
	registerFirst(r.Registerer, collectors)
}

func registerFirst(registerer interface {
	Register(prometheus.Collector) error
}, collectors []prometheus.Collector) {
	for _, collector := range collectors {
		_ = registerer.Register(collector) // registered already
	}
}
