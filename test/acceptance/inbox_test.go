package acceptance

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tidemark.dev/tidemark/test/scenario"
)

// inbox is a receiver of notifications for one test.
type inbox struct {
	*scenario.Inbox
	t *testing.T
	// flags make a controller send to it at once.
	flags []string
}

// newInbox opens a receiver for the people and everybody else.
func newInbox(t *testing.T, people ...string) *inbox {
	t.Helper()
	opened, err := scenario.OpenInbox(people...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return &inbox{opened, t, append(opened.Flags(), "--notify-dormant-after", "1s", "--fleet-interval", "1s")}
}

// of are the messages of a kind, about an object.
func (in *inbox) of(alert, namespace, name, status string) []scenario.Notice {
	var out []scenario.Notice
	for _, n := range in.About(namespace, name, alert) {
		if n.Status == status {
			out = append(out, n)
		}
	}
	return out
}

// text is everything that came, as it came.
func (in *inbox) text() string {
	var all strings.Builder
	for _, n := range in.All() {
		all.WriteString(n.Text)
	}
	return all.String()
}

// gets waits for the message of a kind about an object, of which there is one.
func (in *inbox) gets(s *scene, name, alert, status string) scenario.Notice {
	in.t.Helper()
	var found scenario.Notice
	s.eventually("a receiver to get "+alert+" of "+name+", "+status, func() error {
		got := in.of(alert, s.Namespace, name, status)
		switch len(got) {
		case 0:
			return errors.New("it got none; all that came: " + in.text())
		case 1:
			found = got[0]
			return nil
		}
		return fmt.Errorf("it got %d", len(got))
	})
	return found
}
