package notify

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// delivery is one request that a receiver got.
type delivery struct {
	path, authorization string
	header              http.Header
	body                map[string]any
	text                string
}

// receiver is a real HTTP server that notes what it gets. What it answers is the test's to say.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []delivery
	answer func(w http.ResponseWriter, nth int)
	heard  chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{heard: make(chan struct{}, 10_000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, _ := io.ReadAll(req.Body)
		d := delivery{path: req.URL.Path, authorization: req.Header.Get("Authorization"), header: req.Header, text: string(text)}
		var list []map[string]any
		if err := json.Unmarshal(text, &d.body); err != nil && json.Unmarshal(text, &list) == nil && len(list) > 0 {
			d.body = list[0]
		}
		r.mu.Lock()
		r.got = append(r.got, d)
		nth, answer := len(r.got), r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(w, nth)
		}
		r.heard <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) says(answer func(w http.ResponseWriter, nth int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) all() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivery(nil), r.got...)
}

// waits until it has got n requests in all.
func (r *receiver) waits(t *testing.T, n int) []delivery {
	t.Helper()
	late, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		if got := r.all(); len(got) >= n {
			return got
		}
		select {
		case <-r.heard:
		case <-late.Done():
			t.Fatalf("got %d requests, want %d", len(r.all()), n)
		}
	}
}

// secretDir is a Secret mounted at a directory.
func secretDir(t *testing.T, entries map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range entries {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bench is a notifier with what a test looks at.
type bench struct {
	*Notifier
	client   client.Client
	logged   *syncLog
	registry *prometheus.Registry
	stop     func()
}

type syncLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newBench starts a notifier over the given objects of the API.
func newBench(t *testing.T, c client.Client, config, credentials string, change ...func(*Options)) *bench {
	t.Helper()
	parsed, err := ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{client: c, logged: &syncLog{}, registry: prometheus.NewPedanticRegistry()}
	metrics, err := NewMetrics(b.registry)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Config: parsed, Credentials: credentials, Client: c, Namespace: "tidemark-system", Scope: "a-cluster",
		RetryFirst: time.Millisecond, RetryMost: 20 * time.Millisecond,
		Log: funcr.New(func(prefix, args string) {
			b.logged.mu.Lock()
			defer b.logged.mu.Unlock()
			b.logged.text.WriteString(prefix + args + "\n")
		}, funcr.Options{}),
	}
	for _, f := range change {
		f(&o)
	}
	if b.Notifier, err = New(o, metrics); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Start(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(b.stop)
	b.awaitWork(t)
	return b
}

func (b *bench) awaitWork(t *testing.T) {
	t.Helper()
	b.eventually(t, "it works", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.working
	})
}

// eventually waits for a state of the notifier.
func (b *bench) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-late.C:
			t.Fatalf("not so after 30 s: %s\n%s", what, b.logged)
		}
	}
}

// count is the sum of a metric's series that have all the labels given, as name=value.
func (b *bench) count(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			text := ""
			for _, l := range m.GetLabel() {
				text += l.GetName() + "=" + l.GetValue() + " "
			}
			fits := true
			for _, l := range labels {
				fits = fits && strings.Contains(text, l)
			}
			if fits {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func newAPI() client.Client { return fake.NewClientBuilder().Build() }

func splitMessage(name string) Message {
	return Message{
		Key: "fleet/deployment/mail/" + name + "/split", Alert: "TidemarkFleetSplit", Severity: Page, Owner: "mail",
		Title: "deployment/" + name + " in namespace mail is split: 18 older, 6 applied <b>&", Since: time.Unix(1e9, 0),
		Facts:   []Fact{{"pods", "6 applied, 18 older"}, {"next", "kubectl tidemark explain deployment/" + name + " -n mail"}},
		Labels:  map[string]string{"kind": "Deployment", "namespace": "mail", "name": name},
		Runbook: "https://tidemark.dev/docs/runbooks/TidemarkFleetSplit.md",
	}
}
