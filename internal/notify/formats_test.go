package notify

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const everyKind = `
cluster: prod
destinations:
- name: am
  alertmanager: {urlFrom: am-url, tokenFrom: am-token}
- name: hook-chat
  slack: {webhookFrom: slack-url}
- name: bot-chat
  slack: {tokenFrom: slack-token, channel: C123, url: "SLACK"}
- name: pager
  pagerduty: {routingKeyFrom: pd-key, url: "PAGER"}
- name: any
  webhook: {urlFrom: hook-url, tokenFrom: hook-token}
fallback: [am, hook-chat, bot-chat, pager, any]
`

func TestEachReceiverGetsAMessageAsItsAPIWantsIt(t *testing.T) {
	t.Parallel()
	r := map[string]*receiver{}
	for _, name := range []string{"am", "slack", "bot", "pager", "any"} {
		r[name] = newReceiver(t)
	}
	r["bot"].says(func(w http.ResponseWriter, _ int) { _, _ = w.Write([]byte(`{"ok":true}`)) })
	dir := secretDir(t, map[string]string{
		"am-url": r["am"].URL + "/\n", "am-token": "am-bearer", "slack-url": r["slack"].URL + "/services/T0/B0/x", "slack-token": "xoxb-1",
		"pd-key": "routing-key\n", "hook-url": r["any"].URL + "/in", "hook-token": "hook-bearer",
	})
	b := newBench(t, newAPI(), strings.NewReplacer("SLACK", r["bot"].URL, "PAGER", r["pager"].URL).Replace(everyKind), dir)
	m := splitMessage("sender")
	b.Notify(m)
	for name := range r {
		r[name].waits(t, 1)
	}
	b.eventually(t, "everyone knows", func() bool { return b.knows(m.Key) == 5 })
	b.Resolve(m.Key)
	for name := range r {
		r[name].waits(t, 2)
	}

	am := r["am"].all()
	if am[0].path != "/api/v2/alerts" || am[0].authorization != "Bearer am-bearer" {
		t.Errorf("alertmanager: %s %s", am[0].path, am[0].authorization)
	}
	labels := map[string]any{
		"alertname": "TidemarkFleetSplit", "severity": "page", "tidemark_key": m.Key, "owner": "mail", "cluster": "prod",
		"kind": "Deployment", "namespace": "mail", "name": "sender",
	}
	for i, when := range []func(time.Time) bool{
		func(end time.Time) bool { return time.Until(end) > 50*time.Minute },
		func(end time.Time) bool { return time.Until(end) <= 0 },
	} {
		if diff := cmp.Diff(labels, am[i].body["labels"]); diff != "" {
			t.Errorf("alertmanager, labels of request %d: -want +got\n%s", i, diff)
		}
		end, err := time.Parse(time.RFC3339, am[i].body["endsAt"].(string)) //nolint:errcheck // a panic tells as much
		if err != nil || !when(end) {
			t.Errorf("alertmanager, request %d ends at %v: %v", i, end, err)
		}
	}

	title := "Page: deployment/sender in namespace mail is split: 18 older, 6 applied &lt;b&gt;&amp;"
	for name, path := range map[string]string{"slack": "/services/T0/B0/x", "bot": "/chat.postMessage"} {
		got := r[name].all()
		if got[0].path != path || got[0].body["text"] != title || !strings.Contains(got[0].text, "pods: 6 applied, 18 older") {
			t.Errorf("%s: %s %s", name, got[0].path, got[0].text)
		}
		if text, ok := got[1].body["text"].(string); !ok || !strings.HasPrefix(text, "Resolved: ") {
			t.Errorf("%s: %s", name, got[1].text)
		}
	}
	if got := r["bot"].all()[0]; got.authorization != "Bearer xoxb-1" || got.body["channel"] != "C123" {
		t.Errorf("bot: %s %s", got.authorization, got.text)
	}

	pager := r["pager"].all()
	want := map[string]any{"routing_key": "routing-key", "event_action": "resolve", "dedup_key": "tidemark/prod/" + m.Key, "client": "Tidemark"}
	if diff := cmp.Diff(want, pager[1].body); diff != "" || pager[0].path != "/v2/enqueue" {
		t.Errorf("pager, %s: -want +got\n%s", pager[0].path, diff)
	}
	if p, ok := pager[0].body["payload"].(map[string]any); !ok || p["severity"] != "critical" || p["source"] != "prod" || pager[0].body["dedup_key"] != want["dedup_key"] {
		t.Errorf("pager: %s", pager[0].text)
	}

	hook := r["any"].all()
	if hook[0].authorization != "Bearer hook-bearer" || hook[0].body["status"] != "firing" || hook[1].body["status"] != "resolved" ||
		hook[0].body["key"] != "tidemark/prod/"+m.Key || hook[0].body["key"] != hook[1].body["key"] || hook[0].body["version"] != "1" {
		t.Errorf("webhook: %s\n%s", hook[0].text, hook[1].text)
	}
	if a, z := hook[0].header.Get("Idempotency-Key"), hook[1].header.Get("Idempotency-Key"); a == "" || a == z {
		t.Errorf("webhook: idempotency keys %q and %q", a, z)
	}
}

func TestPagerGetsAllFactsOfOneName(t *testing.T) {
	t.Parallel()
	n := notice{Message: summary("fleets", []Message{splitMessage("a"), splitMessage("b")})}
	got := pagerDutyEventOf(n, "").Payload.CustomDetails["TidemarkFleetSplit"]
	if want := "2; " + splitMessage("a").Title + "; " + splitMessage("b").Title; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIdempotencyKeyIsThatOfOneEventWhoeverSendsIt(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	at := splitMessage("sender")
	later := at
	later.Since = at.Since.Add(5 * time.Hour)
	var keys []string
	for i, m := range []Message{at, at, later} {
		newBench(t, newAPI(), oneHook(r), "").Notify(m)
		keys = append(keys, r.waits(t, i+1)[i].header.Get("Idempotency-Key"))
	}
	if keys[0] != keys[1] || keys[0] == keys[2] {
		t.Errorf("got %q", keys)
	}
}

// Of what is missing it is often not known since when. The next time it is, a receiver must not take it for the last time.
func TestWhatRecursHasAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	r, api := newReceiver(t), newAPI()
	m := splitMessage("sender")
	m.Since = time.Time{}
	first := newBench(t, api, oneHook(r), "")
	first.Notify(m)
	first.eventually(t, "it knows", func() bool { return first.knows(m.Key) == 1 })
	first.stop()
	second := newBench(t, api, oneHook(r), "")
	second.Resolve(m.Key)
	second.eventually(t, "the end is told", func() bool { return !second.Holds(m.Key) && second.knows(m.Key) == 0 })
	second.Notify(m)
	var keys []string
	for _, d := range r.waits(t, 3) {
		keys = append(keys, d.header.Get("Idempotency-Key"))
	}
	at := func(key, status string) string { return key[strings.LastIndex(key, status)+len(status):] }
	if keys[0] == keys[2] || at(keys[0], "firing") != at(keys[1], "resolved") {
		t.Errorf("got %q", keys)
	}
}

// knows counts the destinations that were told.
func (b *bench) knows(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[key]; e != nil {
		return len(e.Told)
	}
	return 0
}

func TestLongKeysStayApartAndWithinWhatReceiversTake(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 300)
	a, b := shortened(long+"a"), shortened(long+"b")
	if a == b || len(a) > maxKey || shortened("short") != "short" {
		t.Errorf("%q, %q", a, b)
	}
}

func TestWhatIsTooLongIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	m := Message{Title: strings.Repeat("ü", 400), Facts: make([]Fact, 50)}.bounded()
	if len(m.Title) > maxTitle || !strings.HasSuffix(m.Title, "ü…") || len(m.Facts) != maxFacts {
		t.Errorf("%d bytes, %d facts: %s", len(m.Title), len(m.Facts), m.Title)
	}
	if got := cut("two\nlines", 100); got != "two lines" {
		t.Errorf("got %q", got)
	}
}

// test/alerts reads the file with Alertmanager's own models.
func TestAlertIsTheOneThatAlertmanagersModelsWereShown(t *testing.T) {
	t.Parallel()
	const file = "testdata/alert.json"
	now := time.Unix(1e9+600, 0)
	n := notice{Message: splitMessage("sender").bounded(), cluster: "prod"}
	ended := n
	ended.resolved = true
	got, err := json.MarshalIndent([]postableAlert{alertOf(n, now), alertOf(ended, now)}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != string(got)+"\n" {
		t.Errorf("%s: %v; got\n%s", file, err, got)
	}
}
