package node

import (
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet"
)

// withholdRecorder hides the kubelet's event recorder until the kubelet has decided not to watch the machine's
// out-of-memory log, which needs /dev/kmsg: it decides by the recorder being a fake.
//
// NewMainKubelet of Kubernetes 1.37 asks the TracerProvider for its first tracer after that decision and before it
// hands the recorder on, so asking for a tracer puts the true recorder in place. A test of the lab waits for an
// event of a kubelet, and fails when another version of Kubernetes changes the order.
func withholdRecorder(d *kubelet.Dependencies, recorder record.EventRecorderLogger) {
	d.Recorder = &record.FakeRecorder{}
	d.TracerProvider = firstTracer{then: func() { d.Recorder = recorder }}
}

// firstTracer provides tracers that do nothing.
type firstTracer struct {
	noop.TracerProvider
	then func()
}

// Tracer implements trace.TracerProvider.
func (f firstTracer) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	f.then()
	return f.TracerProvider.Tracer(name, options...)
}
