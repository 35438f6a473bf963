package loaded

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Report is what the handler serves, as JSON.
type Report struct {
	// Version is the version of the digests, "v1".
	Version string `json:"version"`
	// Objects are those that were loaded at least once, by kind and name.
	Objects []Object `json:"objects"`
}

// Object says what was loaded of one config object.
type Object struct {
	Kind      string `json:"kind"` // ConfigMap or Secret
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Digest is that of all keys read. There is none of a Secret, nor where no key was found, because an object that is absent looks
	// like an empty one.
	Digest string `json:"digest,omitempty"`
	// LoadedAt is when the load began whose result the program runs with.
	LoadedAt time.Time `json:"loadedAt"`
	// LastFailed says that a later load failed.
	LastFailed bool `json:"lastFailed,omitempty"`
	// Env and Files are the keys read into the environment and as files, sorted.
	Env   []Key `json:"env,omitempty"`
	Files []Key `json:"files,omitempty"`
	// LeftOut are keys that went into no digest, as the program declares: overridden ones, and those that differ by pod.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Key is one key that went into the digest.
type Key struct {
	Name string `json:"name"`
	// Digest is that of the value, bound to object and key; none when the key was not there.
	Digest string `json:"digest,omitempty"`
	// Partly says that lines of the value were left out.
	Partly bool `json:"partly,omitempty"`
}

// Report states what is loaded now.
func (r *Reporter) Report() Report {
	out := Report{Version: version, Objects: []Object{}}
	for _, s := range r.all() {
		if o, ok := s.report(); ok {
			out.Objects = append(out.Objects, o)
		}
	}
	return out
}

func (s *Source) report() (Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return Object{}, false
	}
	l := s.last
	return Object{
		Kind: string(s.kind), Namespace: s.reporter.namespace, Name: s.name, Digest: s.digest(), LoadedAt: l.at.UTC(),
		LastFailed: s.lastFailed, Env: keysOf(l.env), Files: keysOf(l.files), LeftOut: l.leftOut,
	}, true
}

// digest is that of the last load; "" when no key was found.
func (s *Source) digest() string {
	for _, view := range []map[string]value{s.last.env, s.last.files} {
		for _, v := range view {
			if v.present {
				return s.consumed(s.last.env, s.last.files)
			}
		}
	}
	return ""
}

func keysOf(view map[string]value) []Key {
	var out []Key
	for _, name := range slices.Sorted(maps.Keys(view)) {
		k := Key{Name: name, Partly: view[name].partly}
		if view[name].present {
			k.Digest = view[name].sum.text()
		}
		out = append(out, k)
	}
	return out
}

// ServeHTTP serves the [Report] as JSON to GET and HEAD.
func (r *Reporter) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(r.Report()) // a client that went away needs no answer
}

var (
	object      = []string{"object_kind", "object_namespace", "object"}
	infoDesc    = prometheus.NewDesc("tidemark_loaded_info", "1, with the digest of what the program loaded of the ConfigMap.", append(slices.Clone(object), "digest"), nil)
	timeDesc    = prometheus.NewDesc("tidemark_loaded_timestamp_seconds", "When the program began the load of the object whose result it runs with.", object, nil)
	loadsDesc   = prometheus.NewDesc("tidemark_loaded_loads_total", "Loads of the object, by result: success or failure.", append(slices.Clone(object), "result"), nil)
	successDesc = prometheus.NewDesc("tidemark_loaded_last_load_successful", "Whether the last load of the object succeeded.", object, nil)
)

// Describe implements prometheus.Collector.
func (r *Reporter) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{infoDesc, timeDesc, loadsDesc, successDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector. There is one digest for each object at a time.
func (r *Reporter) Collect(out chan<- prometheus.Metric) {
	for _, s := range r.all() {
		s.collect(out)
	}
}

func (s *Source) collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	labels := []string{string(s.kind), s.reporter.namespace, s.name}
	with := func(more string) []string { return append(slices.Clone(labels), more) }
	out <- prometheus.MustNewConstMetric(loadsDesc, prometheus.CounterValue, float64(s.successes), with("success")...)
	out <- prometheus.MustNewConstMetric(loadsDesc, prometheus.CounterValue, float64(s.failures), with("failure")...)
	if s.successes+s.failures > 0 {
		successful := 1.0
		if s.lastFailed {
			successful = 0
		}
		out <- prometheus.MustNewConstMetric(successDesc, prometheus.GaugeValue, successful, labels...)
	}
	if s.last == nil {
		return
	}
	out <- prometheus.MustNewConstMetric(timeDesc, prometheus.GaugeValue, float64(s.last.at.UnixNano())/1e9, labels...)
	if d := s.digest(); d != "" {
		out <- prometheus.MustNewConstMetric(infoDesc, prometheus.GaugeValue, 1, with(d)...)
	}
}
