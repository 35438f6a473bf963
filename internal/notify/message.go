package notify

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Severity says how soon somebody should look.
type Severity string

// The severities.
const (
	Note Severity = "message" // during working hours
	Page Severity = "page"    // now
)

// Fact is one line of a message: a name with what it is.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Message says that something holds which people should know of. It has names, digests and counts; a value of configuration
// only where the object says so, never one of a Secret. Whoever makes it sees to that.
type Message struct {
	// Key identifies what holds, within the cluster: the same for as long as it does, and for all who say it. Required.
	Key string
	// Alert names the kind of thing that holds, as an alert of deploy/alerts is named where there is one. Required.
	Alert string
	// Severity is [Note] or [Page]. Required.
	Severity Severity
	// Title is one sentence. Required.
	Title string
	// Facts are in the order in which they are shown.
	Facts []Fact
	// Labels identify the subject for Alertmanager, such as kind, namespace and name; with Alert and Severity they are the alert's
	// identity there, so they must not change under one Key.
	Labels map[string]string
	// Since is when it began to hold; zero when that is not known.
	Since time.Time
	// Runbook is the address of what to do; "" when there is none.
	Runbook string
	// Once says that the message tells of something that happened, which cannot end: it is sent once, and never resolved.
	Once bool
	// Early says that it holds and is not to be told yet: it counts where [Notifier.Sync] sums up what already held, and else keeps
	// what was told of it before.
	Early bool

	// Owner is who owns the subject (annotation tidemark.dev/owner), by which the message is routed; "" when nobody says.
	Owner string
	// Person is a user name of a CI system. Where it is set, the message goes to that person's destinations, or, when the
	// configuration knows none of them, to the fallback.
	Person string
	// Destinations, when there are any, are where the message goes, by their names in the configuration. They win over both.
	Destinations []string
}

// The bounds of a message. What is longer is cut.
const (
	maxTitle = 300
	maxFacts = 20
	maxFact  = 500
)

func (m Message) validate() error {
	switch {
	case m.Key == "":
		return errors.New("message without a key")
	case m.Alert == "" || m.Title == "":
		return fmt.Errorf("message %s: without an alert's name, or without a title", m.Key)
	case m.Severity != Note && m.Severity != Page:
		return fmt.Errorf("message %s: severity %q: want %s or %s", m.Key, m.Severity, Note, Page)
	}
	return nil
}

// bounded cuts what is too long for a message.
func (m Message) bounded() Message {
	m.Title = cut(m.Title, maxTitle)
	facts := make([]Fact, 0, min(len(m.Facts), maxFacts))
	for _, f := range m.Facts[:min(len(m.Facts), maxFacts)] {
		facts = append(facts, Fact{cut(f.Name, maxFact), cut(f.Value, maxFact)})
	}
	m.Facts = facts
	return m
}

// cut cuts text to at most n bytes, on one line.
func cut(s string, n int) string {
	const ellipsis = "…"
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	if len(s) <= n {
		return s
	}
	end := n - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}

// notice is a message on its way to a destination.
type notice struct {
	Message
	// id is the key with the cluster before it: the same at every receiver.
	id       string
	cluster  string
	taken    time.Time
	resolved bool
}

// event tells what happened at one time from what happened at another under the same key: by when it began, or, where that is not
// known, by when it was taken on. What is sent once happens once.
func (n notice) event() string {
	if n.Since.IsZero() && !n.Once && !n.taken.IsZero() {
		return n.taken.UTC().Format(time.RFC3339Nano)
	}
	return rfc3339(n.Since)
}

// status words whether it still holds, as Alertmanager does.
func (n notice) status() string {
	if n.resolved {
		return "resolved"
	}
	return "firing"
}

// headline is the title with its status, for people.
func (n notice) headline() string {
	switch {
	case n.resolved:
		return "Resolved: " + n.Title
	case n.Severity == Page:
		return "Page: " + n.Title
	}
	return n.Title
}
