package notify

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

func oneHook(r *receiver) string {
	return "destinations: [{name: hook, webhook: {url: '" + r.URL + "'}}]\nfallback: [hook]\n"
}

func TestMessageIsDeliveredOnceHoweverOftenItIsSaid(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := newBench(t, newAPI(), oneHook(r), "")
	m := splitMessage("sender")
	for range 20 {
		b.Notify(m)
	}
	r.waits(t, 1)
	b.eventually(t, "it knows", func() bool { return b.knows(m.Key) == 1 })
	b.Notify(m)
	b.Resolve(m.Key)
	b.Resolve(m.Key)
	r.waits(t, 2)
	b.stop()
	if got := r.all(); len(got) != 2 {
		t.Errorf("got %d requests: %v", len(got), got)
	}
	if n := b.count(t, "tidemark_notifications_total", "destination=hook"); n != 2 {
		t.Errorf("counted %v", n)
	}
}

func TestFailedDeliveryIsTriedAgainUntilItIsTaken(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.says(func(w http.ResponseWriter, nth int) {
		if nth < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	b := newBench(t, newAPI(), oneHook(r), "")
	b.Notify(splitMessage("sender"))
	r.waits(t, 4)
	b.eventually(t, "it is counted", func() bool { return b.count(t, "tidemark_notifications_total") == 1 })
	if n := b.count(t, "tidemark_notification_failures_total", "cause=receiver", "destination=hook"); n != 3 {
		t.Errorf("counted %v failures", n)
	}
	if n := strings.Count(b.logged.String(), "Cannot deliver"); n != 1 {
		t.Errorf("the same failure is logged %d times:\n%s", n, b.logged)
	}
}

func TestReceiverThatAsksToWaitIsLeftAloneForSoLong(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.says(func(w http.ResponseWriter, nth int) {
		if nth == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	b := newBench(t, newAPI(), oneHook(r), "")
	from := time.Now()
	b.Notify(splitMessage("sender"))
	r.waits(t, 2)
	if waited := time.Since(from); waited < time.Second {
		t.Errorf("came back after %v", waited)
	}
}

func TestReceiverThatHangsKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	hangs, works := newReceiver(t), newReceiver(t)
	release := make(chan struct{})
	hangs.says(func(http.ResponseWriter, int) { <-release })
	defer close(release)
	b := newBench(t, newAPI(), fmt.Sprintf("destinations: [{name: a, webhook: {url: '%s'}}, {name: b, webhook: {url: '%s'}}]\nfallback: [a, b]\n", hangs.URL, works.URL), "")
	for i := range 5 {
		b.Notify(splitMessage(fmt.Sprint("sender-", i)))
	}
	works.waits(t, 5)
}

func TestWhatEndedBeforeAnybodyWasToldIsNotTold(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.says(func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusInternalServerError) })
	b := newBench(t, newAPI(), oneHook(r), "")
	m := splitMessage("sender")
	b.Notify(m)
	r.waits(t, 1)
	b.Resolve(m.Key)
	b.stop()
	for _, d := range r.all() {
		if d.body["status"] != "firing" {
			t.Errorf("got %s", d.text)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.entries) != 0 {
		t.Errorf("remembered: %v", b.entries)
	}
}

func TestWhatEndsWhileItIsFirstToldIsToldToHaveEnded(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	resolved := make(chan struct{})
	r.says(func(_ http.ResponseWriter, nth int) {
		if nth == 1 {
			<-resolved
		}
	})
	b := newBench(t, newAPI(), oneHook(r), "")
	m := splitMessage("sender")
	b.Notify(m)
	b.eventually(t, "the first delivery is under way", func() bool { return len(r.all()) == 1 })
	b.Resolve(m.Key)
	close(resolved)
	b.eventually(t, "the end is told and forgotten", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(r.all()) == 2 && len(b.entries) == 0
	})
	b.stop()
	if got := r.all(); len(got) != 2 || got[0].body["status"] != "firing" || got[1].body["status"] != "resolved" || got[1].body["title"] != m.Title {
		t.Errorf("got %d requests, the last %s", len(got), got[len(got)-1].text)
	}
}

// unheard sends requests whose answers never arrive.
type unheard struct{}

func (unheard) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	return nil, context.DeadlineExceeded
}

// A receiver that took the message and did not say so must not page for ever.
func TestWhatWasPerhapsToldIsToldToHaveEnded(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	api := newAPI()
	m := splitMessage("sender")
	first := newBench(t, api, oneHook(r), "", func(o *Options) { o.Transport = unheard{} })
	first.Notify(m)
	r.waits(t, 1)
	first.Resolve(m.Key)
	first.stop()

	second := newBench(t, api, oneHook(r), "")
	second.eventually(t, "the end is told and forgotten", func() bool {
		second.mu.Lock()
		defer second.mu.Unlock()
		got := r.all()
		return got[len(got)-1].body["status"] == "resolved" && len(second.entries) == 0
	})
	n := len(r.all())
	second.Notify(m) // it holds again
	if got := r.waits(t, n+1)[n]; got.body["status"] != "firing" {
		t.Errorf("got %s", got.text)
	}
}

func TestNextLeaderRepeatsNothingAndEndsWhatHasEnded(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	api := newAPI()
	a := splitMessage("a")
	first := newBench(t, api, oneHook(r), "")
	first.Sync("fleets", nil, nil)
	first.Sync("fleets", []Message{a, splitMessage("b")}, nil)
	r.waits(t, 2)
	first.eventually(t, "it knows", func() bool { return first.knows(a.Key) == 1 && first.knows(splitMessage("b").Key) == 1 })
	first.stop()

	second := newBench(t, api, oneHook(r), "")
	second.Sync("fleets", []Message{a, splitMessage("b")}, nil)
	second.Sync("fleets", []Message{a}, nil)
	r.waits(t, 3)
	second.stop()
	if got := r.all(); len(got) != 3 || got[2].body["status"] != "resolved" || got[2].body["title"] != splitMessage("b").Title {
		t.Errorf("got %d requests, the last %s", len(got), got[len(got)-1].text)
	}
}

func TestNextLeaderDeliversWhatThisOneCouldNot(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.says(func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusBadGateway) })
	api := newAPI()
	first := newBench(t, api, oneHook(r), "")
	first.Notify(Message{Key: "release/mail/7/abandoned", Alert: "TidemarkReleaseAbandoned", Severity: Page, Title: "abandoned", Once: true, Facts: []Fact{{"revision", "7"}}})
	r.waits(t, 1)
	first.stop()
	r.says(nil)
	before := len(r.all())
	newBench(t, api, oneHook(r), "")
	if got := r.waits(t, before+1)[before]; !strings.Contains(got.text, `"revision"`) {
		t.Errorf("got %s", got.text)
	}
}

func TestWhatHeldAtTheFirstStartIsOneSummary(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := newBench(t, newAPI(), oneHook(r), "")
	var holds []Message
	for i := range 30 {
		holds = append(holds, splitMessage(fmt.Sprint("sender-", i)))
	}
	b.Sync("fleets", holds, nil)
	r.waits(t, 1)
	b.Sync("fleets", holds[:20], nil) // ten end: nobody was told of them
	b.Sync("fleets", append(holds[:20:20], splitMessage("new")), nil)
	r.waits(t, 2)
	b.Sync("fleets", append(holds[:21:21], splitMessage("new")), nil) // one comes back: that is new
	r.waits(t, 3)
	b.stop()
	got := r.all()
	if len(got) != 3 || !strings.Contains(got[0].text, "30 things") || !strings.Contains(got[0].text, `"20 more"`) {
		t.Errorf("got %d requests: %s", len(got), got[0].text)
	}
	if got[1].body["title"] != splitMessage("new").Title || got[2].body["title"] != holds[20].Title {
		t.Errorf("got %s and %s", got[1].text, got[2].text)
	}
}

func TestWhatIsEarlyIsToldInTheSummaryOnly(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := newBench(t, newAPI(), oneHook(r), "")
	early := func(name string) Message {
		m := splitMessage(name)
		m.Early = true
		return m
	}
	b.Sync("fleets", []Message{early("a")}, nil)
	r.waits(t, 1)
	b.Sync("fleets", []Message{early("a"), early("b")}, nil)
	b.Sync("fleets", []Message{splitMessage("a"), early("b")}, nil) // of a its time has come, and it was in the summary
	b.Sync("fleets", []Message{splitMessage("a"), splitMessage("b")}, nil)
	r.waits(t, 2)
	b.Sync("fleets", []Message{early("b")}, nil) // it stays what it was
	b.stop()
	got := r.all()
	if len(got) != 2 || !strings.Contains(got[0].text, "1 things") || got[1].body["title"] != splitMessage("b").Title {
		t.Errorf("got %d requests, the last %s", len(got), got[len(got)-1].text)
	}
}

func TestWhatIsNotDecidedStaysAsItIs(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := newBench(t, newAPI(), oneHook(r), "")
	b.Sync("fleets", nil, nil)
	m := splitMessage("sender")
	b.Sync("fleets", []Message{m}, nil)
	r.waits(t, 1)
	b.eventually(t, "it knows", func() bool { return b.knows(m.Key) == 1 })
	b.Sync("fleets", nil, func(key string) bool { return key == m.Key })
	b.Sync("fleets", []Message{m}, nil)
	b.Sync("other", nil, nil) // another source ends nothing of this one
	b.stop()
	if got := r.all(); len(got) != 1 {
		t.Errorf("got %d requests, the last %s", len(got), got[len(got)-1].text)
	}
}

func TestOnlyTheLeaderSends(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	b := newBench(t, newAPI(), oneHook(r), "")
	b.stop()
	b.Notify(splitMessage("sender"))
	b.Sync("fleets", []Message{splitMessage("sender")}, nil)
	if got := r.all(); len(got) != 0 || !b.NeedLeaderElection() {
		t.Errorf("got %v", got)
	}
	var off *Notifier
	off.Notify(splitMessage("sender"))
	off.Sync("fleets", nil, nil)
	off.Resolve("x")
}

func TestStopDeliversWhatWaitsWithinBoundedTime(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	release := make(chan struct{})
	r.says(func(http.ResponseWriter, int) { <-release })
	defer close(release)
	b := newBench(t, newAPI(), oneHook(r), "")
	b.Notify(splitMessage("sender"))
	from := time.Now()
	b.stop()
	if took := time.Since(from); took > flushTimeout+saveLast {
		t.Errorf("took %v", took)
	}
	quick := newReceiver(t)
	api := newAPI()
	c := newBench(t, api, oneHook(quick), "")
	for i := range 50 {
		c.Notify(splitMessage(fmt.Sprint("sender-", i)))
	}
	c.stop()
	if got := len(quick.all()); got != 50 {
		t.Errorf("%d of 50 were delivered before the end", got)
	}
	cm := &corev1.ConfigMap{}
	if err := api.Get(context.Background(), client.ObjectKey{Namespace: "tidemark-system", Name: v1.ConfigMapNotified}, cm); err != nil || !strings.Contains(cm.Data[toldEntry], "sender-49") {
		t.Errorf("written down: %v %v", cm.Data, err)
	}
}

func TestWhatIsTakenOnIsBounded(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.says(func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusInternalServerError) })
	b := newBench(t, newAPI(), oneHook(r), "", func(o *Options) { o.RetryFirst, o.RetryMost = time.Hour, time.Hour })
	long := strings.Repeat("x", 2*maxFact)
	say := func(name string, severity Severity) {
		m := splitMessage(name)
		m.Title, m.Severity = long, severity
		for range maxFacts {
			m.Facts = append(m.Facts, Fact{"fact", long})
		}
		b.Notify(m)
	}
	for i := range maxEntries + 7 {
		say(fmt.Sprint("sender-", i), Note)
	}
	for i := range 800 {
		say(fmt.Sprint("paged-", i), Page)
	}
	if n := b.count(t, "tidemark_notifications_dropped_total", "cause=full"); n != 7 {
		t.Errorf("%v were dropped", n)
	}
	b.mu.Lock()
	text, err := encode(b.entries, b.sources)
	b.mu.Unlock()
	if err != nil || len(text) > maxStored {
		t.Errorf("%d bytes are to be written: %v", len(text), err)
	}
	kept, _, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, e := range kept {
		if e.Severity == Page {
			pages++
		}
	}
	if pages != 800 || len(kept) == pages {
		t.Errorf("of 800 pages %d are to be written, and %d of the others", pages, len(kept)-pages)
	}
	b.Notify(Message{Title: "no key"})
	if n := b.count(t, "tidemark_notifications_dropped_total", "cause=invalid"); n != 1 {
		t.Errorf("%v invalid ones were counted", n)
	}
}

func TestAlertmanagerHearsAgainOfWhatStillHolds(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	e := &entry{Message: splitMessage("sender"), To: []string{"am", "chat"}, Told: map[string]time.Time{"am": now, "chat": now}}
	later := now.Add(alertRepeats)
	if _, ok := e.wants("am", true, later); !ok {
		t.Error("the alert would go out")
	}
	if _, ok := e.wants("am", true, later.Add(-time.Second)); ok {
		t.Error("it is repeated too early")
	}
	if _, ok := e.wants("chat", false, later.Add(30*24*time.Hour)); ok {
		t.Error("a chat hears of it again")
	}
}

func TestSentOnceIsForgottenInTheEnd(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	e := &entry{Message: Message{Once: true}, To: []string{"chat"}, Told: map[string]time.Time{"chat": now}}
	if e.done(now.Add(onceKept-time.Second)) || !e.done(now.Add(onceKept)) {
		t.Error("not after the time stated")
	}
	e.Told = map[string]time.Time{}
	if e.done(now.Add(onceKept)) {
		t.Error("forgotten before it was sent")
	}
}
