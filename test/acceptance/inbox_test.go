package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// message is what an inbox got, as docs/notifications.md describes it.
type message struct {
	Key, Alert, Status, Severity, Owner, Title string
	Facts                                      []struct{ Name, Value string }
	Labels                                     map[string]string
}

// fact is the value of a fact; "" when there is none.
func (m message) fact(name string) string {
	for _, f := range m.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// inbox is a real HTTP receiver of notifications, with what makes a controller send to it.
type inbox struct {
	t      *testing.T
	dir    string
	flags  []string
	marker string // in every credential

	mu   sync.Mutex
	got  []message
	text strings.Builder // all of it, headers included
}

// newInbox opens a receiver that takes what comes with its token, and writes the configuration beside the credentials.
func newInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{t: t, marker: "marker-of-the-inbox-4711"}
	server := httptest.NewServer(http.HandlerFunc(in.serve))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{"notifications.yaml": inboxConfig, "url": server.URL + "/" + in.marker, "token": in.marker} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in.dir = dir
	in.flags = []string{"--notify-config", filepath.Join(dir, "notifications.yaml"), "--notify-credentials", dir, "--notify-dormant-after", "1s", "--fleet-interval", "1s"}
	return in
}

const inboxConfig = "cluster: lab\ndestinations:\n- {name: inbox, webhook: {urlFrom: url, tokenFrom: token}}\nfallback: [inbox]\n"

// alsoTo has a second receiver told, at the address; for a controller that is not started yet.
func (in *inbox) alsoTo(address string) {
	in.t.Helper()
	config := strings.Replace(inboxConfig, "fallback: [inbox]", "- {name: other, webhook: {url: '"+address+"'}}\nfallback: [inbox, other]", 1)
	if err := os.WriteFile(filepath.Join(in.dir, "notifications.yaml"), []byte(config), 0o600); err != nil {
		in.t.Fatal(err)
	}
}

// pages has messages to a person come here, and all that no route fits go to the other inbox; for a controller that is not started
// yet.
func (in *inbox) pages(person string, fallback *inbox) {
	in.t.Helper()
	config := strings.Replace(inboxConfig, "fallback: [inbox]",
		"- {name: other, webhook: {urlFrom: other-url, tokenFrom: token}}\npeople: {"+person+": [inbox]}\nfallback: [other]", 1)
	url, err := os.ReadFile(filepath.Join(fallback.dir, "url"))
	if err != nil {
		in.t.Fatal(err)
	}
	for name, text := range map[string]string{"notifications.yaml": config, "other-url": string(url)} {
		if err := os.WriteFile(filepath.Join(in.dir, name), []byte(text), 0o600); err != nil {
			in.t.Fatal(err)
		}
	}
}

func (in *inbox) serve(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var m message
	if err != nil || json.Unmarshal(text, &m) != nil || r.Header.Get("Authorization") != "Bearer "+in.marker || r.URL.Path != "/"+in.marker {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got = append(in.got, m)
	in.text.Write(text)
}

// of are the messages of a kind, about a workload.
func (in *inbox) of(alert, namespace, name, status string) []message {
	in.mu.Lock()
	defer in.mu.Unlock()
	var out []message
	for _, m := range in.got {
		if m.Alert == alert && m.Labels["namespace"] == namespace && m.Labels["name"] == name && m.Status == status {
			out = append(out, m)
		}
	}
	return out
}

// all is everything that came, as it came.
func (in *inbox) all() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.text.String()
}

// gets waits for the message of a kind about a workload, of which there is one.
func (in *inbox) gets(s *scene, name, alert, status string) message {
	in.t.Helper()
	var found message
	s.eventually("a receiver to get "+alert+" of "+name+", "+status, func() error {
		got := in.of(alert, s.Namespace, name, status)
		switch len(got) {
		case 0:
			return errors.New("it got none; all that came: " + in.all())
		case 1:
			found = got[0]
			return nil
		}
		return fmt.Errorf("it got %d", len(got))
	})
	return found
}
