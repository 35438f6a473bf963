package scenario

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tidemark.dev/tidemark/lab/client"
)

// Inbox is a real HTTP receiver of the controller's notifications, on this machine: one destination for each of some people, and
// one for everybody else. What comes without its token is refused.
type Inbox struct {
	// Token is part of each destination's address, and what each authenticates with.
	Token string

	dir    string
	people []string
	server *httptest.Server

	mu  sync.Mutex
	got []Notice
}

// Everybody is who gets what no person is told of.
const Everybody = "everybody"

// Notice is a message as it arrived, of which docs/notifications.md describes the fields.
type Notice struct {
	// To is the person at whose destination it arrived, or Everybody.
	To string `json:"-"`
	// At is when.
	At time.Time `json:"-"`
	// Text is all of it.
	Text string `json:"-"`

	Key      string
	Alert    string
	Status   string
	Severity string
	Person   string
	Title    string
	Facts    []struct{ Name, Value string }
	Labels   map[string]string
}

// Fact is the value of a fact; "" when there is none.
func (n Notice) Fact(name string) string {
	for _, f := range n.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// OpenInbox opens a receiver for the people.
func OpenInbox(people ...string) (*Inbox, error) {
	dir, err := os.MkdirTemp("", "tidemark-inbox-")
	if err != nil {
		return nil, err
	}
	in := &Inbox{Token: rand.Text(), dir: dir, people: people}
	in.server = httptest.NewServer(http.HandlerFunc(in.serve))
	if err := errors.Join(in.writeCredentials(), in.configure()); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

func (in *Inbox) destinations() []string { return append(slices.Clone(in.people), Everybody) }

// writeCredentials writes the token, and the address of each destination.
func (in *Inbox) writeCredentials() error {
	err := os.WriteFile(filepath.Join(in.dir, tokenFile), []byte(in.Token), 0o600)
	for _, name := range in.destinations() {
		err = errors.Join(err, os.WriteFile(filepath.Join(in.dir, addressFile(name)), []byte(in.server.URL+in.path(name)), 0o600))
	}
	return err
}

const tokenFile = "token"

func addressFile(destination string) string { return destination + ".url" }

func (in *Inbox) path(destination string) string { return "/" + destination + "/" + in.Token }

func (in *Inbox) config() string { return filepath.Join(in.dir, "notifications.yaml") }

// AlsoTo has a controller that is started after it send what everybody gets to an address too.
func (in *Inbox) AlsoTo(address string) error { return in.configure(address) }

func (in *Inbox) configure(also ...string) error {
	var destinations, routes strings.Builder
	for _, name := range in.destinations() {
		fmt.Fprintf(&destinations, "- {name: %s, webhook: {urlFrom: %s, tokenFrom: %s}}\n", name, addressFile(name), tokenFile)
	}
	for _, name := range in.people {
		fmt.Fprintf(&routes, "  %s: [%s]\n", name, name)
	}
	fallback := []string{Everybody}
	for i, address := range also {
		name := fmt.Sprint("other-", i)
		fmt.Fprintf(&destinations, "- {name: %s, webhook: {url: '%s'}}\n", name, address)
		fallback = append(fallback, name)
	}
	text := fmt.Sprintf("cluster: lab\ndestinations:\n%speople:\n%sfallback: [%s]\n", &destinations, &routes, strings.Join(fallback, ", "))
	return os.WriteFile(in.config(), []byte(text), 0o600)
}

// Flags make a controller send here.
func (in *Inbox) Flags() []string {
	return []string{"--notify-config", in.config(), "--notify-credentials", in.dir}
}

// Close ends the receiver.
func (in *Inbox) Close() error {
	in.server.Close()
	return os.RemoveAll(in.dir)
}

func (in *Inbox) serve(w http.ResponseWriter, r *http.Request) {
	to, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if r.URL.Path != in.path(to) || r.Header.Get("Authorization") != "Bearer "+in.Token {
		http.Error(w, "not its token", http.StatusForbidden)
		return
	}
	n := Notice{To: to, At: time.Now()}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	n.Text = string(text)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got = append(in.got, n)
}

// All is what arrived, in order.
func (in *Inbox) All() []Notice {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.got)
}

// About is what arrived about the object of a kind of alert, in order.
func (in *Inbox) About(namespace, name, alert string) []Notice {
	var out []Notice
	for _, n := range in.All() {
		if n.Labels["namespace"] == namespace && n.Labels["name"] == name && n.Alert == alert {
			out = append(out, n)
		}
	}
	return out
}

// Await waits for the first of these with the status, "firing" or "resolved".
func (in *Inbox) Await(ctx context.Context, namespace, name, alert, status string) (Notice, error) {
	var found Notice
	err := Await(ctx, "a message "+alert+" of "+namespace+"/"+name+", "+status, func() error {
		all := in.About(namespace, name, alert)
		for _, found = range all {
			if found.Status == status {
				return nil
			}
		}
		return fmt.Errorf("%d others came", len(all))
	})
	return found, err
}

// ReleasesSeen is an error until a controller has noted what held of releases when it began to look: people are told of that together,
// and of all that follows one by one.
func ReleasesSeen(ctx context.Context, lab *client.Lab) error {
	kept, _, err := lab.Kubectl(ctx, "-n", SystemNamespace, "get", "configmap", "tidemark-notified", "-o", "yaml")
	if err == nil && !strings.Contains(kept, "releases") {
		err = errors.New("it has not looked at releases yet")
	}
	return err
}
