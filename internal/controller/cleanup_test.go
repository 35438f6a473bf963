package controller

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"tidemark.dev/tidemark/internal/cluster/cleanup"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// housekeeping is a cleaner with what it asks answered by the test.
type housekeeping struct {
	*cleaner
	t        *testing.T
	hands    *clocktesting.FakeClock
	sent     chan string
	logged   *strings.Builder
	registry *prometheus.Registry

	mu     sync.Mutex
	rounds []string
	nearly []cleanup.Quota
	// answer is what the next rounds find; an error of theirs in err.
	answer *cleanup.Outcome
	err    error
}

func newHousekeeping(t *testing.T) *housekeeping {
	t.Helper()
	registry := prometheus.NewRegistry()
	metrics, err := NewCleanupMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(10)
	h := &housekeeping{
		t: t, hands: clocktesting.NewFakeClock(time.Unix(1e9, 0)), sent: recorder.Events, logged: &strings.Builder{}, registry: registry,
		answer: &cleanup.Outcome{},
	}
	h.cleaner = &cleaner{
		clock: h.hands, metrics: metrics, recorder: recorder, interval: 5 * time.Minute,
		log: funcr.New(func(_, args string) { h.logged.WriteString(args + "\n") }, funcr.Options{}),
		round: func(_ context.Context, namespace string) (*cleanup.Outcome, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.rounds = append(h.rounds, "round of "+namespace)
			return h.answer, h.err
		},
		quotas: func(context.Context) ([]cleanup.Quota, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.rounds = append(h.rounds, "quotas")
			return h.nearly, nil
		},
	}
	return h
}

// runs starts the cleaner, which is stopped at the end of the test.
func (h *housekeeping) runs() {
	ctx, stop := context.WithCancel(h.t.Context())
	ended := make(chan error)
	go func() { ended <- h.Start(ctx) }()
	h.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	})
	h.rests()
}

// rests waits until the cleaner waits for time to pass.
func (h *housekeeping) rests() {
	for !h.hands.HasWaiters() {
		runtime.Gosched()
	}
}

// pass lets minutes pass, one after the other.
func (h *housekeeping) pass(minutes int) {
	for range minutes {
		h.hands.Step(time.Minute)
		h.rests()
	}
}

// did returns what the cleaner did since the last call.
func (h *housekeeping) did() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	did := h.rounds
	h.rounds = nil
	return did
}

func (h *housekeeping) finds(c *cleanup.Outcome, quotas ...cleanup.Quota) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer, h.nearly = c, quotas
}

// metric is the value of the series of a metric one of whose labels has the value; 0 when there is none.
func (h *housekeeping) metric(name, label string) float64 {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			matches := label == ""
			for _, l := range m.GetLabel() {
				matches = matches || l.GetValue() == label
			}
			if f.GetName() == name && matches {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func judgedAs(name string, action snapshot.Action, reason snapshot.Reason) cleanup.Item {
	s := snapshot.Snapshot{Object: workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: name}}
	return cleanup.Item{Verdict: snapshot.Verdict{Snapshot: s, Action: action, Reason: reason}, Done: action != snapshot.Keep}
}

func TestCleanupRunsAtItsInterval(t *testing.T) {
	h := newHousekeeping(t)
	h.runs()
	h.pass(4)
	h.pass(1)
	if diff := cmp.Diff([]string{"round of ", "round of "}, h.did()); diff != "" {
		t.Errorf("without snapshots, in five minutes (-want +got):\n%s", diff)
	}
}

func TestCleanupRunsEarlyWhereAQuotaBecomesNearlyFull(t *testing.T) {
	h := newHousekeeping(t)
	quota := cleanup.Quota{Namespace: "shop", Name: "objects", Resource: "configmaps", Used: 9, Hard: 10}
	one := &cleanup.Outcome{Items: []cleanup.Item{judgedAs("a", snapshot.Keep, snapshot.Recent)}}
	h.finds(one)
	h.runs()
	h.pass(1)
	h.finds(&cleanup.Outcome{Items: one.Items, Quotas: []cleanup.Quota{quota}}, quota)
	h.pass(3) // once, as long as it is so
	if diff := cmp.Diff([]string{"round of ", "quotas", "quotas", "round of shop", "quotas", "quotas"}, h.did()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(h.sent); n != 1 {
		t.Fatalf("%d events, want 1", n)
	}
	if e := <-h.sent; !strings.Contains(e, "QuotaNearlyFull") || !strings.Contains(e, "9 of 10 configmaps") {
		t.Errorf("event %q", e)
	}
	if got := h.metric("tidemark_quota_nearly_full", "shop"); got != 1 {
		t.Errorf("metric %v, want 1", got)
	}

	h.finds(one)
	h.pass(1)
	if got := h.metric("tidemark_quota_nearly_full", "shop"); got != 0 {
		t.Errorf("when there is room again the metric is %v", got)
	}
	h.finds(&cleanup.Outcome{Items: one.Items, Quotas: []cleanup.Quota{quota}}, quota)
	h.pass(1)
	if n := len(h.sent); n != 1 {
		t.Errorf("%d events the second time that it becomes so, want 1", n)
	}
}

func TestAnEarlyCleanupThatFailsIsTriedAgain(t *testing.T) {
	h := newHousekeeping(t)
	quota := cleanup.Quota{Namespace: "shop", Name: "objects", Resource: "configmaps", Used: 9, Hard: 10}
	one := &cleanup.Outcome{Items: []cleanup.Item{judgedAs("a", snapshot.Keep, snapshot.Recent)}}
	h.finds(one)
	h.runs()
	h.mu.Lock()
	h.nearly, h.err = []cleanup.Quota{quota}, errors.New("the list expired")
	h.mu.Unlock()
	h.pass(1)
	h.mu.Lock()
	h.err = nil
	h.mu.Unlock()
	h.pass(2)
	if diff := cmp.Diff([]string{"round of ", "quotas", "round of shop", "quotas", "round of shop", "quotas"}, h.did()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCleanupTellsWhatItDid(t *testing.T) {
	h := newHousekeeping(t)
	h.finds(&cleanup.Outcome{Items: []cleanup.Item{
		judgedAs("a", snapshot.Keep, snapshot.Used), judgedAs("b", snapshot.Keep, snapshot.Used), judgedAs("c", snapshot.Condemn, snapshot.Superseded),
		judgedAs("d", snapshot.Delete, snapshot.Superseded), judgedAs("e", snapshot.Delete, snapshot.Orphaned),
	}})
	h.clean(t.Context(), "")
	for reason, want := range map[string]float64{"used": 2, "superseded": 2, "orphaned": 1} {
		if got := h.metric("tidemark_snapshots", reason); got != want {
			t.Errorf("%s: %v, want %v", reason, got, want)
		}
	}
	for action, want := range map[string]float64{"condemn": 1, "delete": 2} {
		if got := h.metric("tidemark_cleanup_actions_total", action); got != want {
			t.Errorf("%s: %v, want %v", action, got, want)
		}
	}
	if !strings.Contains(h.logged.String(), "configmap/d, configmap/e") || strings.Count(h.logged.String(), "\n") != 1 {
		t.Errorf("logged %q", h.logged)
	}
}

func TestCleanupLogsAnErrorThatStaysOnce(t *testing.T) {
	h := newHousekeeping(t)
	h.err = errors.New("missing the right to list pods")
	for range 3 {
		h.clean(t.Context(), "")
	}
	h.err = nil
	h.clean(t.Context(), "")
	h.err = errors.New("missing the right to list pods")
	h.clean(t.Context(), "")
	if n := strings.Count(h.logged.String(), "missing the right"); n != 2 {
		t.Errorf("logged %d times, want 2: %s", n, h.logged)
	}
	if got := h.metric("tidemark_cleanup_errors_total", ""); got != 4 {
		t.Errorf("metric %v, want 4", got)
	}
}
