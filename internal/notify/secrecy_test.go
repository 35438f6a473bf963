package notify

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
)

// roundTripper is a transport that only fails.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Every credential holds the marker, in the URL, in the token and in the key, and receivers repeat what they get. Nothing of it
// may be seen anywhere, however the delivery fails.
func TestNoCredentialIsSeenHoweverADeliveryFails(t *testing.T) {
	t.Parallel()
	echo := func(status int, header ...string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"ok":false,"error":"` + marker + r.URL.Path + r.Header.Get("Authorization") + `"}`))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	tlsServer := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tlsServer.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	for name, c := range map[string]struct {
		base      string
		transport http.RoundTripper
		cause     Cause
	}{
		"nobody listens":            {base: closed.URL, cause: CauseConnection},
		"the connection is dropped": {base: "http://" + silent.Addr().String(), cause: CauseOther},
		"the host has no address": {base: "https://" + marker + ".invalid", transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, &net.DNSError{Name: r.URL.Host, Err: "no such host"}
		}), cause: CauseName},
		"the certificate is not trusted": {base: tlsServer.URL, cause: CauseTLS},
		"no TLS is spoken":               {base: "https" + strings.TrimPrefix(echo(200), "http"), cause: CauseTLS},
		"no answer in time":              {base: "http://host", transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded }), cause: CauseTimeout},
		"an error that repeats all": {base: "http://host", transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, errors.New(r.URL.String() + r.Header.Get("Authorization"))
		}), cause: CauseOther},
		"it sends elsewhere":        {base: echo(http.StatusFound, "Location", "http://elsewhere/"+marker), cause: CauseRedirect},
		"the credential is refused": {base: echo(http.StatusForbidden), cause: CauseRefused},
		"it wants fewer":            {base: echo(http.StatusTooManyRequests, "Retry-After", marker), cause: CauseLimited},
		"it fails":                  {base: echo(http.StatusInternalServerError), cause: CauseReceiver},
		"the entry is no URL":       {base: marker + " \x7f", cause: CauseCredential},
		"the entry has two lines":   {base: "http://host\n" + marker, cause: CauseCredential},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := secretDir(t, map[string]string{"url": c.base + "/" + marker, "token": marker})
			api := newAPI()
			b := newBench(t, api, "destinations: [{name: hook, webhook: {urlFrom: url, tokenFrom: token}}]\nfallback: [hook]\n", dir,
				func(o *Options) { o.Transport = c.transport })
			b.Notify(splitMessage("sender"))
			b.eventually(t, "it failed for "+string(c.cause), func() bool { return b.count(t, "tidemark_notification_failures_total", "cause="+string(c.cause)) > 0 })
			b.stop()
			b.hasNoMarker(t)
		})
	}
}

func TestSlackThatRefusesIsExplainedWithoutItsWords(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{"channel_not_found": "invite the bot", marker: "does not accept the message"} {
		r := newReceiver(t)
		r.says(func(w http.ResponseWriter, _ int) { _, _ = w.Write([]byte(`{"ok":false,"error":"` + said + `"}`)) })
		b := newBench(t, newAPI(), "destinations: [{name: bot, slack: {tokenFrom: token, channel: C1, url: '"+r.URL+"'}}]\nfallback: [bot]\n",
			secretDir(t, map[string]string{"token": marker}))
		b.Notify(splitMessage("sender"))
		b.eventually(t, want, func() bool { return strings.Contains(b.logged.String(), want) })
		b.stop()
		b.hasNoMarker(t)
	}
}

func TestMissingCredentialNamesItsEntry(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{"": "--notify-credentials", t.TempDir(): "entry pd-key of the Secret"} {
		b := newBench(t, newAPI(), "destinations: [{name: pager, pagerduty: {routingKeyFrom: pd-key}}]\nfallback: [pager]\n", dir)
		b.Notify(splitMessage("sender"))
		b.eventually(t, want, func() bool { return strings.Contains(b.logged.String(), want) })
	}
}

// hasNoMarker looks through all that leaves the process, besides the requests themselves.
func (b *bench) hasNoMarker(t *testing.T) {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var metrics bytes.Buffer
	for _, f := range families {
		metrics.WriteString(f.String())
	}
	cm := &corev1.ConfigMap{}
	if err := b.client.Get(context.Background(), client.ObjectKey{Namespace: "tidemark-system", Name: v1.ConfigMapNotified}, cm); err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"log": b.logged.String(), "metrics": metrics.String(), "memory": cm.Data[toldEntry]} {
		if text == "" {
			t.Errorf("%s: empty, so this proves nothing", where)
		}
		if strings.Contains(text, "MARKER") || strings.Contains(text, "http://") || strings.Contains(text, "https://127") {
			t.Errorf("%s: shows a credential or a URL:\n%s", where, text)
		}
	}
}
