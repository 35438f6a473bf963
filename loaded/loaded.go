// Package loaded states which configuration a program really loaded.
//
// A program reads its ConfigMaps through a [Load], which hands every value on as it is and notes its digest. What was read
// is exported as a metric and on an HTTP handler, as the digest that Tidemark computes of the same content, so that the two
// can be compared. Values are never kept, exported or logged; of a Secret nothing but the time of load leaves the program.
//
//	reporter, err := loaded.New("") // the pod's own namespace
//	...
//	settings := reporter.ConfigMap("settings")
//	load := settings.Begin()
//	limits, err := load.ReadFile("limits.yaml", "/etc/settings/limits.yaml")
//	...
//	load.Done() // or load.Failed(), where the program goes on with what it had
//
//	prometheus.MustRegister(reporter)
//	http.Handle(loaded.Path, reporter)
//
// A pod that declares the port of the handler in the annotation tidemark.dev/loaded-port is asked by Tidemark's controller,
// where that is switched on.
package loaded

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Path is where Tidemark looks for the handler.
const Path = "/tidemark/loaded"

// namespaceFile has the pod's namespace, unless its service account is not mounted.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// kind is the kind of a config object, as the API names it.
type kind string

const (
	configMap kind = "ConfigMap"
	secret    kind = "Secret"
)

// Reporter gathers what one program loaded. It is a prometheus.Collector and an http.Handler. All its methods may be called
// at the same time.
type Reporter struct {
	namespace string
	now       func() time.Time

	mu      sync.Mutex
	sources []*Source // in the order of kind and name
}

// New makes a reporter for a program that runs in the namespace. With "", the namespace is POD_NAMESPACE of the environment,
// else that of the pod's service account; an error says that neither is there.
func New(namespace string) (*Reporter, error) {
	if namespace == "" {
		namespace = os.Getenv("POD_NAMESPACE")
	}
	if namespace == "" {
		content, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, errors.New("find the pod's namespace: set POD_NAMESPACE from metadata.namespace, or pass it to loaded.New")
		}
		namespace = strings.TrimSpace(string(content))
	}
	//nolint:forbidigo // A library's user has no clock to hand in; tests replace it.
	return &Reporter{namespace: namespace, now: time.Now}, nil
}

// Source is one config object that the program loads, once or again and again.
type Source struct {
	reporter *Reporter
	kind     kind
	name     string
	options  options

	mu                  sync.Mutex
	last                *snapshot // nil before the first load that succeeded
	successes, failures uint64
	lastFailed          bool
}

// options are what the program declares of an object.
type options struct {
	overridden, leftOut []string
	lines               map[string]*regexp.Regexp
}

// Option declares something of an object.
type Option func(*options)

// Overridden declares keys whose variables do not come from the object although its envFrom has them, because an `env` entry, or
// a later envFrom, has the same name. Their values go into no digest.
func Overridden(keys ...string) Option {
	return func(o *options) { o.overridden = append(o.overridden, keys...) }
}

// LeaveOut declares keys that differ from pod to pod on purpose. Their values go into no digest.
func LeaveOut(keys ...string) Option {
	return func(o *options) { o.leftOut = append(o.leftOut, keys...) }
}

// LeaveOutLines declares lines of a key that differ from pod to pod on purpose: those that match. The rest of the key goes into the
// digest, which then compares between pods, but not with what Tidemark computes of the whole key.
func LeaveOutLines(key string, lines *regexp.Regexp) Option {
	return func(o *options) {
		if o.lines == nil {
			o.lines = map[string]*regexp.Regexp{}
		}
		o.lines[key] = lines
	}
}

// ConfigMap declares a ConfigMap of the pod's namespace. Declared again, it is the same source with the options added.
func (r *Reporter) ConfigMap(name string, opts ...Option) *Source {
	return r.source(configMap, name, opts)
}

// Secret declares a Secret of the pod's namespace: its time of load is exported, and neither digests nor keys.
func (r *Reporter) Secret(name string) *Source { return r.source(secret, name, nil) }

func (r *Reporter) source(k kind, name string, opts []Option) *Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := slices.BinarySearchFunc(r.sources, string(k)+"/"+name, func(s *Source, id string) int {
		return strings.Compare(string(s.kind)+"/"+s.name, id)
	})
	if !found {
		r.sources = slices.Insert(r.sources, at, &Source{reporter: r, kind: k, name: name})
	}
	s := r.sources[at]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range opts {
		o(&s.options)
	}
	return s
}

// all lists the sources declared so far.
func (r *Reporter) all() []*Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sources)
}

// Begin begins to load the object. What is read counts as loaded once [Load.Done] is called.
func (s *Source) Begin() *Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Load{source: s, started: s.reporter.now(), options: s.options.clone(), env: map[string]value{}, files: map[string]value{}}
}

func (o options) clone() options {
	return options{overridden: slices.Clone(o.overridden), leftOut: slices.Clone(o.leftOut), lines: cloneMap(o.lines)}
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (s *Source) String() string {
	return fmt.Sprintf("%s/%s/%s", strings.ToLower(string(s.kind)), s.reporter.namespace, s.name)
}
