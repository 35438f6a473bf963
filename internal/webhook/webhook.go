// Package webhook decides at admission what the controller would decide afterwards, so that it takes effect in the same write.
package webhook

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/webhook/certificate"
)

// Where the webhooks are served, as deploy/pin says it to the API server.
const (
	pathWorkloads = "/workloads"
	pathPods      = "/pods"
)

// service is the name of the Service in deploy/pin.
const service = "tidemark-webhook"

// deadline is how long a webhook may take to decide: less than the API server waits, by what deploy/pin says.
const deadline = 2 * time.Second

// minValidity is enough for a certificate to be renewed in time.
const minValidity = 10 * time.Second

// Options configure the webhooks.
type Options struct {
	// Namespace is Tidemark's own.
	Namespace string
	// Address is where they are served, as HOST:PORT.
	Address string
	// Names are further names, or addresses, under which the API server reaches them.
	Names []string
	// Validity is how long a certificate is valid.
	Validity time.Duration
	// Kinds are the kinds of workload; Jobs are among them anyway.
	Kinds []cluster.Kind
	// Live reads the API.
	Live *cluster.Live
	// PinsLack says why it is not known that new pods of a namespace read what their pins say, and what to do; "" when it is known that
	// they do.
	PinsLack func(namespace string) string
	// Asked is called each time when the API server asks a webhook, before it is answered.
	Asked func()
	// Recorder sends Events.
	Recorder events.EventRecorder
	// Clock is the real one where nil.
	Clock clock.Clock
	Log   logr.Logger
}

// Validate checks what a person may have set.
func (o Options) Validate() error {
	if _, _, err := o.listen(); err != nil {
		return err
	}
	if o.Validity < minValidity {
		return fmt.Errorf("--webhook-certificate-validity %s: want %s or more", o.Validity, minValidity)
	}
	return nil
}

func (o Options) listen() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(o.Address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("--webhook-address %q: want HOST:PORT or :PORT", o.Address)
	}
	return host, port, nil
}

// Register adds the webhooks to the manager, with what keeps their certificate. Every replica serves them. The manager is ready
// when they are served with a valid certificate.
func Register(mgr manager.Manager, o Options, metrics *Metrics) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	host, port, err := o.listen()
	if err != nil {
		return err
	}
	keeper := &certificate.Keeper{
		Client: o.Live.Copier.Client, Namespace: o.Namespace,
		Settings:       certificate.Settings{Names: o.names(), Validity: o.Validity},
		Configurations: []string{v1.WebhookWorkloads, v1.WebhookPods}, Clock: o.Clock, Log: o.Log,
	}
	server := webhook.NewServer(webhook.Options{
		Host: host, Port: port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion, c.GetCertificate = tls.VersionTLS12, keeper.GetCertificate
		}},
	})
	tells := newTeller(o.Live.Copier.Client, o.Recorder, o.Clock)
	for path, f := range o.deciders(tells) {
		f.timeout, f.clock, f.log, f.metrics = deadline, o.Clock, o.Log, metrics
		server.Register(path, &admission.Webhook{Handler: f})
	}
	for _, r := range []manager.Runnable{keeper, server, tells} {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("add webhooks: %w", err)
		}
	}
	started := server.StartedChecker()
	ready := func(r *http.Request) error {
		if err := keeper.Ready(r); err != nil {
			return err
		}
		return started(r)
	}
	if err := mgr.AddReadyzCheck("webhook", ready); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

func (o Options) deciders(tells *teller) map[string]*front {
	w := &workloads{kinds: map[schema.GroupVersionKind]cluster.Kind{}, live: o.Live, clock: o.Clock, pinsLack: o.PinsLack, tell: tells.decided}
	for _, k := range append(slices.Clone(o.Kinds), job) {
		w.kinds[k.GroupVersionKind] = k
	}
	return map[string]*front{
		pathWorkloads: {name: "workloads", asked: o.Asked, decide: w.decide},
		pathPods:      {name: "pods", asked: o.Asked, decide: pod},
	}
}

// names are those of the Service, and what was added.
func (o Options) names() []string {
	host := service + "." + o.Namespace + ".svc"
	return append([]string{host, service + "." + o.Namespace, host + ".cluster.local"}, o.Names...)
}
