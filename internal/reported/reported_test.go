package reported

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

// to dials the server, whatever the address.
func to(server *httptest.Server) Dial {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
}

func pod(name string) Pod { return Pod{Namespace: "shop", Name: name, IP: "10.0.0.1", Port: 8080} }

// report is an answer with one ConfigMap of which two keys were read.
func report(change ...string) string {
	text := `{"version":"v1","objects":[{"kind":"ConfigMap","namespace":"shop","name":"settings","loadedAt":"2026-06-01T11:00:00Z",` +
		`"env":[{"name":"LEVEL","digest":"v1-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},{"name":"GONE"}]}]}`
	return strings.NewReplacer(change...).Replace(text)
}

func TestAReportIsRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/tidemark/loaded" || r.Host != "10.0.0.1:8080" {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, report())
	}))
	defer server.Close()
	got := Direct(to(server), clock).Ask(t.Context(), []Pod{pod("a")})[0]
	if got.Problem != "" || len(got.Report.Objects) != 1 || !got.Report.At.Equal(noon) {
		t.Fatalf("got %+v", got)
	}
	o := got.Report.Objects[0]
	if o.Object.String() != "configmap/shop/settings" || !o.Env["LEVEL"].There || o.Env["GONE"].There || len(o.Env) != 2 || len(o.Files) != 0 {
		t.Errorf("got %+v", o)
	}
}

func TestAHostileAnswerIsOneMessage(t *testing.T) {
	const marker = "MARKER"
	answers := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"no JSON":                {answers("<html>" + marker), "its answer is no report of the library loaded"},
		"an empty answer":        {answers(""), "its answer is no report of the library loaded"},
		"another document":       {answers(`{"status":"` + marker + `"}`), "its answer is no report of the library loaded"},
		"a deeply nested one":    {answers(strings.Repeat(`{"objects":[`, 9000)), "its answer is no report of the library loaded"},
		"more than there may be": {answers(strings.Repeat(" ", maxAnswer+1)), "port 8080 answers with more than 256 KiB"},
		"a status":               {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, marker, http.StatusTeapot) }, "port 8080 answers with HTTP status 418"},
		"a way elsewhere":        {http.RedirectHandler("http://169.254.169.254/"+marker, http.StatusFound).ServeHTTP, "port 8080 answers with HTTP status 302"},
		"another version":        {answers(report(`"version":"v1"`, `"version":"v9"`)), "its report has digests of another version"},
		"another namespace":      {answers(report(`"shop"`, `"kube-system"`)), "its report is of another namespace"},
		"a name that is none":    {answers(report(`"settings"`, `"../`+marker+`"`)), "its report has names that no ConfigMap and no key can have"},
		"a key that is none":     {answers(report(`"LEVEL"`, `"\n`+marker+`"`)), "its report has names that no ConfigMap and no key can have"},
		"a key twice":            {answers(report(`"GONE"`, `"LEVEL"`)), "its report has a ConfigMap or a key twice"},
		"a digest that is none":  {answers(report("v1-aaaa", "v1-"+marker)), "its report has a digest that is none"},
		"a digest under a key":   {answers(report("v1-aaaa", "v1.0.aaaa")), "its report has a digest that is none"},
		"no time":                {answers(report(`"loadedAt":"2026-06-01T11:00:00Z",`, "")), "its report does not say when something was loaded"},
		"an answer that breaks":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "port 8080 does not answer: the connection fails"},
		"an answer that is short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "999")
			fmt.Fprint(w, "{")
		}, "port 8080 does not finish its answer: the connection fails"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			got := Direct(to(server), clock).Ask(t.Context(), []Pod{pod("a")})[0]
			if got.Report != nil || got.Problem != tc.want {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
			if strings.Contains(got.Problem, marker) || strings.Contains(got.Problem, "http://") {
				t.Errorf("the message repeats what was answered: %q", got.Problem)
			}
		})
	}
}

func TestWhatIsSaidOfSecretsIsPassedOver(t *testing.T) {
	got, err := decode([]byte(report("ConfigMap", "Secret")), "shop")
	if err != nil || len(got.Objects) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// counting counts the requests that are under way, where they are made: the server hears of an end later.
type counting struct {
	http.RoundTripper

	busy, most atomic.Int32
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if n := c.busy.Add(1); n > c.most.Load() {
		c.most.Store(n)
	}
	defer c.busy.Add(-1)
	return c.RoundTripper.RoundTrip(r)
}

// TestSlowPodsHoldNothingUp has many pods that never finish their answer, and behind them one that answers.
func TestSlowPodsHoldNothingUp(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "10.0.0.9:8080" {
			fmt.Fprint(w, report())
			return
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	asker := Direct(to(server), clock)
	asker.client.Timeout, asker.all = 200*time.Millisecond, time.Second
	asked := &counting{RoundTripper: asker.client.Transport}
	asker.client.Transport = asked
	var pods []Pod
	for i := range 100 {
		pods = append(pods, pod(fmt.Sprint("slow-", i)))
	}
	pods = append(pods, Pod{Namespace: "shop", Name: "good", IP: "10.0.0.9", Port: 8080})
	begun := time.Now()
	got := asker.Ask(t.Context(), pods)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if most := asked.most.Load(); most == 0 || most > atOnce {
		t.Errorf("%d were asked at once", most)
	}
	const late = "it was not asked in time: too many pods take long to answer"
	for _, a := range got {
		if a.Problem != "port 8080 does not answer: it takes too long" && a.Problem != late {
			t.Fatalf("got %+v", a)
		}
	}
	if got[100].Problem != late {
		t.Errorf("all were asked: the bound of all together does not hold: %+v", got[100])
	}
	for range 20 { // one look more where the machine is quick enough
		if got = asker.Ask(t.Context(), pods); got[100].Report != nil {
			return
		}
	}
	t.Errorf("the one that answers is never heard: %+v", got[100])
}

func TestThroughTheAPIServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/shop/pods/a:8080/proxy/tidemark/loaded" || r.Header.Get("Authorization") != "Bearer me" {
			http.Error(w, r.URL.Path, http.StatusForbidden)
			return
		}
		fmt.Fprint(w, report())
	}))
	defer server.Close()
	asker, err := Proxied(&rest.Config{Host: server.URL, BearerToken: "me"}, clock)
	if err != nil {
		t.Fatal(err)
	}
	if got := asker.Ask(t.Context(), []Pod{pod("a")})[0]; got.Problem != "" {
		t.Errorf("got %+v", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(report()))
	f.Add([]byte(`{"version":"v1","objects":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decode(body, "shop")
		if (got == nil) == (err == nil) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
