package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tidemark.dev/tidemark/lab/client"
)

// Inbox is a real HTTP receiver of the controller's notifications, on this machine: one destination for each of some people, and
// one for everybody else.
type Inbox struct {
	dir    string
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

	Key      string
	Alert    string
	Status   string
	Severity string
	Person   string
	Title    string
	Labels   map[string]string
}

// OpenInbox opens a receiver for the people.
func OpenInbox(people ...string) (*Inbox, error) {
	dir, err := os.MkdirTemp("", "tidemark-inbox-")
	if err != nil {
		return nil, err
	}
	in := &Inbox{dir: dir}
	in.server = httptest.NewServer(http.HandlerFunc(in.serve))
	if err := os.WriteFile(in.config(), []byte(in.configuration(people)), 0o600); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

func (in *Inbox) config() string { return filepath.Join(in.dir, "notifications.yaml") }

func (in *Inbox) configuration(people []string) string {
	var destinations, routes strings.Builder
	for _, name := range append(people, Everybody) {
		fmt.Fprintf(&destinations, "- {name: %s, webhook: {url: '%s/%s'}}\n", name, in.server.URL, name)
		if name != Everybody {
			fmt.Fprintf(&routes, "  %s: [%s]\n", name, name)
		}
	}
	return fmt.Sprintf("cluster: lab\ndestinations:\n%speople:\n%sfallback: [%s]\n", &destinations, &routes, Everybody)
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
	n := Notice{To: strings.TrimPrefix(r.URL.Path, "/"), At: time.Now()}
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got = append(in.got, n)
}

// About is what arrived about the object of a kind of alert, in order.
func (in *Inbox) About(namespace, name, alert string) []Notice {
	in.mu.Lock()
	defer in.mu.Unlock()
	var out []Notice
	for _, n := range in.got {
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
