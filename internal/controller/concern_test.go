package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/notify"
	"tidemark.dev/tidemark/internal/workload"
)

// told is what a real HTTP receiver got of a look's notifications.
type told struct {
	Status, Alert, Severity, Owner, Title, Key string
	Facts                                      []notify.Fact
	Labels                                     map[string]string
}

func (m told) fact(name string) string {
	for _, f := range m.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// inbox is a receiver with what it got.
type inbox struct {
	url   string
	mu    sync.Mutex
	got   []told
	heard chan struct{}
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{heard: make(chan struct{}, 1000)}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var m told
		if err != nil || json.Unmarshal(text, &m) != nil {
			t.Errorf("got %s: %v", text, err)
		}
		in.mu.Lock()
		in.got = append(in.got, m)
		in.mu.Unlock()
		in.heard <- struct{}{}
	}))
	t.Cleanup(s.Close)
	in.url = s.URL
	return in
}

// all are the first n messages, once they are there.
func (in *inbox) all(t *testing.T, n int) []told {
	t.Helper()
	late, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		in.mu.Lock()
		got := append([]told(nil), in.got...)
		in.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-in.heard:
		case <-late.Done():
			t.Fatalf("got %d messages, want %d: %v", len(got), n, got)
		}
	}
}

// tells starts a notifier for the observatory's looks, and gives what stops it.
func (o *observatory) tells(t *testing.T, api client.Client, in *inbox) (stop func()) {
	t.Helper()
	config, err := notify.ParseConfig([]byte("destinations: [{name: hook, webhook: {url: '" + in.url + "'}}]\nfallback: [hook]\n"))
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := notify.NewMetrics(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	n, err := notify.New(notify.Options{Config: config, Client: api, Namespace: "tidemark-system", Scope: "here", Log: logr.Discard()}, metrics)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Start(ctx) }()
	o.concerns = concerns{notifier: n, dormantAfter: time.Hour}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// settles looks until the notifier, which begins to work beside it, has heard of a look.
func (o *observatory) settles(t *testing.T) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for range 6000 {
		o.look(t.Context())
		if o.concerns.notifier.Knows(fleetsSource) {
			return
		}
		<-poll.C
	}
	t.Fatal("the notifier does not begin")
}

func TestPeopleAreToldOfASplitFleetAndOfItsEnd(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o, in, api := newObservatory(t), newInbox(t), fake.NewClientBuilder().Build()
	stop := o.tells(t, api, in)
	whole := drained(now, 0, 24)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{whole}}
	o.settles(t)
	split := drained(now, 18, 6)
	split.Owner = "mail"
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{split}}
	o.look(t.Context())
	o.look(t.Context())
	m := in.all(t, 1)[0]
	if m.Alert != "TidemarkFleetSplit" || m.Severity != "page" || m.Status != "firing" || m.Owner != "mail" || m.Labels["name"] != "sender" {
		t.Errorf("got %+v", m)
	}
	r := split.Judge()
	for name, want := range map[string]string{
		"pods":             fmt.Sprintf("6 applied (%s), 18 older (%s)", r.Versions[0].Version, r.Versions[1].Version),
		"keys that differ": "1", "changed": "2001-07-11T01:46:40Z", "next": "kubectl tidemark explain deployment/sender -n mail",
		"verdict": "split: " + r.Reason,
	} {
		if got := m.fact(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	// What the leader does not know ends nothing, and the next leader tells nothing again.
	blind := split
	blind.Blind = "no right to read pods"
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{blind}}
	o.look(t.Context())
	stop()
	o.tells(t, api, in)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{split}}
	o.settles(t)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{whole}}
	o.look(t.Context())
	if got := in.all(t, 2); len(got) != 2 || got[1].Status != "resolved" || got[1].Key != m.Key {
		t.Errorf("got %+v", got)
	}
}

// One pod of which it is not known what it runs neither silences a dormant change nor makes it another one.
func TestADormantChangeStaysOneMessageWhenAPodIsNotKnown(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o, in, api := newObservatory(t), newInbox(t), fake.NewClientBuilder().Build()
	stop := o.tells(t, api, in)
	o.sight = &cluster.Sight{Now: now}
	o.settles(t)
	dormant := drained(now, 24, 0)
	odd := drained(now, 24, 0)
	again := &odd.Fleet.Pods[7].Containers[0] // it started again after the change, and it is not known when the run before ended
	again.Restarts, again.Started = 1, now.Add(-time.Hour)
	if r := odd.Judge(); r.Verdict != fleet.Unknown || r.Behind != 23 {
		t.Fatalf("got %+v", r)
	}
	for _, w := range []cluster.Workload{odd, dormant, odd} {
		o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{w}}
		o.look(t.Context())
	}
	stop() // what was sent is noted then
	o.tells(t, api, in)
	o.settles(t)
	o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{drained(now, 0, 24)}}
	o.look(t.Context())
	got := in.all(t, 2)
	if len(got) != 2 || got[0].Alert != "TidemarkChangeDormant" || got[0].Status != "firing" || got[1].Status != "resolved" {
		t.Errorf("got %+v", got)
	}
}

// The pods of a drained node do not run yet, then it is not known what they run, and then they run what is applied: people hear once that
// the change lay dormant, and once that it does no more.
func TestADrainEndsADormantChangeOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o, in := newObservatory(t), newInbox(t)
	stop := o.tells(t, fake.NewClientBuilder().Build(), in)
	o.sight = &cluster.Sight{Now: now}
	o.settles(t)
	starting, odd := drained(now, 24, 0), drained(now, 24, 0)
	starting.Fleet.RolloutDone = false
	starting.Fleet.Pods[7].Created, starting.Fleet.Pods[7].Containers[0].Started = now, time.Time{}
	again := &odd.Fleet.Pods[7].Containers[0]
	again.Restarts, again.Started = 1, now.Add(-time.Hour)
	for _, step := range []struct {
		fleet cluster.Workload
		want  fleet.Verdict
	}{{drained(now, 24, 0), fleet.Dormant}, {starting, fleet.Rolling}, {odd, fleet.Unknown}, {drained(now, 18, 6), fleet.Split}} {
		if got := step.fleet.Judge().Verdict; got != step.want {
			t.Fatalf("it is %s, want %s", got, step.want)
		}
		o.sight = &cluster.Sight{Now: now, Workloads: []cluster.Workload{step.fleet}}
		o.look(t.Context())
		in.all(t, 1) // what ended before anybody was told of it is never told
	}
	all := in.all(t, 3)
	stop() // what else was to be sent is sent then
	var got []string
	for _, m := range in.all(t, len(all)) {
		if m.Alert == "TidemarkChangeDormant" {
			got = append(got, m.Status)
		}
	}
	if !slices.Equal(got, []string{"firing", "resolved"}) {
		t.Errorf("people were told of a dormant change that is %q", got)
	}
}

// While pods of a drained node start, it is not known for a moment what they run.
func TestAFleetThatWasSplitIsNotDormantAgainWhenItsNewPodsAreNotKnown(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	odd := drained(now, 24, 0)
	again := &odd.Fleet.Pods[7].Containers[0]
	again.Restarts, again.Started = 1, now.Add(-time.Hour)
	c := &concerns{}
	for i, step := range []struct {
		fleet   cluster.Workload
		alert   string // none for none
		unknown bool
	}{
		{odd, "TidemarkChangeDormant", true},
		{drained(now, 18, 6), "TidemarkFleetSplit", false},
		{odd, "", true},
		{odd, "", true},
		{drained(now, 24, 0), "TidemarkChangeDormant", false},
		{odd, "TidemarkChangeDormant", true},
	} {
		holds, unknown := c.holds(t.Context(), now, []judged{{Workload: step.fleet, result: step.fleet.Judge()}})
		alert := ""
		for _, m := range holds {
			alert += m.Alert
		}
		if alert != step.alert || unknown[keyPrefix(step.fleet.Target)] != step.unknown {
			t.Errorf("look %d: people are told of %q, unknown: %v; want %q, %t", i, alert, unknown, step.alert, step.unknown)
		}
	}
}

func TestWhatAlreadyHeldIsOneSummary(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o, in, api := newObservatory(t), newInbox(t), fake.NewClientBuilder().Build()
	o.tells(t, api, in)
	o.sight = &cluster.Sight{Now: now}
	for i := range 12 {
		w := drained(now, 18, 6)
		w.Name = fmt.Sprint("sender-", i)
		o.sight.Workloads = append(o.sight.Workloads, w)
	}
	o.settles(t)
	o.look(t.Context())
	if got := in.all(t, 1); len(got) != 1 || got[0].Alert != "TidemarkSummary" || got[0].fact("TidemarkFleetSplit") != "12" {
		t.Errorf("got %+v", got)
	}
}

// Of what is missing it is not known since when, where the history begins with the absence: its time begins with the first look.
func TestWhatWaitedAlreadyIsNotToldMinutesLater(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o, in, api := newObservatory(t), newInbox(t), fake.NewClientBuilder().Build()
	o.tells(t, api, in)
	o.sight = &cluster.Sight{Now: now}
	waiting := func(name string) cluster.Workload {
		w := drained(now, 18, 6)
		w.Name = name
		w.Fleet.Objects = []fleet.Object{absentObject(w.Fleet.Objects[0])}
		return w
	}
	for i := range 40 {
		o.sight.Workloads = append(o.sight.Workloads, waiting(fmt.Sprint("sender-", i)))
	}
	o.settles(t)
	if got := in.all(t, 1)[0]; got.Alert != "TidemarkSummary" || got.fact("TidemarkWorkloadWaiting") != "40" {
		t.Errorf("got %+v", got)
	}
	for _, minutes := range []int{1, 6} {
		at := now.Add(time.Duration(minutes) * time.Minute)
		o.sight = &cluster.Sight{Now: at, Workloads: append(o.sight.Workloads[:40:40], waiting("new"))}
		o.look(t.Context())
	}
	o.sight = &cluster.Sight{Now: now.Add(7 * time.Minute), Workloads: append(o.sight.Workloads[:40:40], waiting("new"))}
	o.look(t.Context())
	if got := in.all(t, 2); len(got) != 2 || got[1].Labels["name"] != "new" {
		t.Errorf("got %d messages, want the summary and the one that came since: %+v", len(got), got[1:])
	}
}

// absentObject is an object that is required and was never seen to be there.
func absentObject(o fleet.Object) fleet.Object {
	gone := digest.AbsentIn(workload.ConfigMap, nil)
	o.Use.Required, o.Applied, o.Log = true, &gone, history.Log{}
	return o
}

func TestVerdictMustStandForAsLongAsItsConcernSays(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	target := cluster.Target{Kind: cluster.BuiltinKinds()[0], Namespace: "mail", Name: "sender"}
	for name, c := range map[string]struct {
		result fleet.Result
		at     time.Time
		want   bool
	}{
		"held for a minute":                     {fleet.Result{Verdict: fleet.Held, Since: now}, now.Add(time.Minute), false},
		"held for a quarter of an hour":         {fleet.Result{Verdict: fleet.Held, Since: now}, now.Add(15 * time.Minute), true},
		"waiting for a while, not known":        {fleet.Result{Verdict: fleet.Waiting}, now.Add(4 * time.Minute), false},
		"waiting for long, not known":           {fleet.Result{Verdict: fleet.Waiting}, now.Add(6 * time.Minute), true},
		"dormant for minutes, changed days ago": {fleet.Result{Verdict: fleet.Dormant, Since: now, Changed: now.Add(-48 * time.Hour)}, now.Add(time.Minute), true},
		"dormant for a moment":                  {fleet.Result{Verdict: fleet.Dormant, Since: now, Changed: now}, now.Add(time.Minute), false},
		"pods behind for days, one not known":   {fleet.Result{Verdict: fleet.Unknown, Behind: 23, Changed: now.Add(-48 * time.Hour)}, now.Add(time.Minute), true},
		"pods behind of late, one not known":    {fleet.Result{Verdict: fleet.Unknown, Behind: 23, Changed: now}, now.Add(time.Minute), false},
		"not known for days":                    {fleet.Result{Verdict: fleet.Unknown}, now.Add(48 * time.Hour), false},
		"split for a moment":                    {fleet.Result{Verdict: fleet.Split, Since: now}, now.Add(30 * time.Second), false},
		"split for a minute":                    {fleet.Result{Verdict: fleet.Split, Since: now}, now.Add(time.Minute), true},
		"rolling for hours":                     {fleet.Result{Verdict: fleet.Rolling, Since: now}, now.Add(9 * time.Hour), false},
		"rolled back for days":                  {fleet.Result{Verdict: fleet.RolledBack, Since: now}, now.Add(90 * time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cs := concerns{dormantAfter: time.Hour}
			cs.holds(t.Context(), now, []judged{{cluster.Workload{Target: target}, c.result}})
			if got, _ := cs.holds(t.Context(), c.at, []judged{{cluster.Workload{Target: target}, c.result}}); len(got) > 1 || slices.ContainsFunc(got, func(m notify.Message) bool { return !m.Early }) != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A message without its page sends people nowhere.
func TestEachAlertHasARunbook(t *testing.T) {
	t.Parallel()
	for _, v := range []fleet.Verdict{fleet.Split, fleet.Dormant, fleet.LeftUnfinished, fleet.Waiting, fleet.Held, fleet.Unpinned} {
		why := concernOf(v, time.Hour)
		if why == nil {
			t.Errorf("%s concerns nobody", v)
			continue
		}
		text, err := os.ReadFile("../../docs/runbooks/" + why.alert + ".md")
		if err != nil || !strings.Contains(string(text), "kubectl") {
			t.Errorf("%s: %v", why.alert, err)
		}
	}
}
