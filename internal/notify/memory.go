package notify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// maxEntries bounds what holds at the same time, or was sent once of late: beyond it only pages are taken on.
	maxEntries = 1000
	// maxStored bounds the memory as it is kept, in bytes: an object of the API holds 1 MiB.
	maxStored = 900 << 10
	// onceKept is how long it is remembered that a message was sent that is sent once.
	onceKept = 7 * 24 * time.Hour
)

// entry is one message with what became of it.
type entry struct {
	Message
	// Source is the set to which it belongs; "" for one of no set.
	Source string
	// Taken is when it was taken on.
	Taken time.Time
	// To are the destinations.
	To []string
	// Told are those that know of it, with when they were last told.
	Told map[string]time.Time
	// Perhaps are those that may know of it, because a delivery had no answer: they are told again, and of its end.
	Perhaps []string
	// Ended says that it no longer holds, and that those who know of it, or may, are being told.
	Ended bool
	// Silent says that it was part of a summary: nobody was told of it alone, and nobody will be when it ends.
	Silent bool
}

// wants reports what a destination is to be told now: that it holds, or that it has ended.
func (e *entry) wants(to string, repeats bool, now time.Time) (n notice, ok bool) {
	at, told := e.Told[to]
	switch {
	case e.Silent:
		return notice{}, false
	case e.Ended:
		return notice{Message: e.Message, taken: e.Taken, resolved: true}, told || slices.Contains(e.Perhaps, to)
	case !slices.Contains(e.To, to):
		return notice{}, false
	}
	again := repeats && !e.Once && now.Sub(at) >= alertRepeats
	return notice{Message: e.Message, taken: e.Taken}, !told || again
}

// done reports whether nothing is left to say or to remember.
func (e *entry) done(now time.Time) bool {
	switch {
	case e.Ended:
		return len(e.Told) == 0 && len(e.Perhaps) == 0 || e.Silent
	case e.Once && e.everyoneKnows():
		return !slices.ContainsFunc(slices.Collect(maps.Values(e.Told)), func(at time.Time) bool { return now.Sub(at) < onceKept })
	}
	return false
}

// settled notes that a destination has taken what it was told.
func (e *entry) settled(to string, resolved bool, now time.Time) {
	e.Perhaps = slices.DeleteFunc(e.Perhaps, func(other string) bool { return other == to })
	if resolved {
		delete(e.Told, to)
	} else {
		e.Told[to] = now
	}
}

// unsure notes that a destination may have taken what it was told.
func (e *entry) unsure(to string) {
	if _, told := e.Told[to]; !told && !slices.Contains(e.Perhaps, to) {
		e.Perhaps = append(e.Perhaps, to)
	}
}

func (e *entry) everyoneKnows() bool {
	return !slices.ContainsFunc(e.To, func(to string) bool { return e.Told[to].IsZero() })
}

// stored is an entry as it is kept.
type stored struct {
	Key      string               `json:"key"`
	Source   string               `json:"source,omitempty"`
	Alert    string               `json:"alert"`
	Severity Severity             `json:"severity"`
	Title    string               `json:"title"`
	Facts    []Fact               `json:"facts,omitempty"`
	Labels   map[string]string    `json:"labels,omitempty"`
	Since    time.Time            `json:"since,omitzero"`
	Taken    time.Time            `json:"taken,omitzero"`
	Runbook  string               `json:"runbook,omitempty"`
	Once     bool                 `json:"once,omitempty"`
	Owner    string               `json:"owner,omitempty"`
	Person   string               `json:"person,omitempty"`
	To       []string             `json:"to"`
	Told     map[string]time.Time `json:"told,omitempty"`
	Perhaps  []string             `json:"perhaps,omitempty"`
	Ended    bool                 `json:"ended,omitempty"`
	Silent   bool                 `json:"silent,omitempty"`
}

// memory is what is kept over restarts.
type memory struct {
	Version string   `json:"version"`
	Sources []string `json:"sources"`
	Entries []stored `json:"entries"`
}

const memoryVersion = "1"

// encode writes the memory. Facts are kept until everyone knows them, and left out where there are too many. What does not fit even so
// is left out, pages last: the next leader tells it again.
func encode(entries map[string]*entry, sources map[string]bool) ([]byte, error) {
	m := memory{Version: memoryVersion, Sources: slices.Sorted(maps.Keys(sources)), Entries: []stored{}}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		e := entries[key]
		s := stored{
			Key: key, Source: e.Source, Alert: e.Alert, Severity: e.Severity, Title: e.Title, Facts: e.Facts, Labels: e.Labels, Since: e.Since, Taken: e.Taken, Runbook: e.Runbook,
			Once: e.Once, Owner: e.Owner, Person: e.Person, To: e.To, Told: e.Told, Perhaps: e.Perhaps, Ended: e.Ended, Silent: e.Silent,
		}
		if e.everyoneKnows() {
			s.Facts = nil
		}
		m.Entries = append(m.Entries, s)
	}
	text, err := json.Marshal(m)
	if err != nil || len(text) <= maxStored {
		return text, err
	}
	for i := range m.Entries {
		m.Entries[i].Facts = nil
	}
	slices.SortStableFunc(m.Entries, func(a, b stored) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	for text, err = json.Marshal(m); err == nil && len(text) > maxStored && len(m.Entries) > 0; text, err = json.Marshal(m) {
		m.Entries = m.Entries[:len(m.Entries)*maxStored/len(text)]
	}
	return text, err
}

// rank is the order in which the memory is kept.
var rank = map[Severity]int{Page: 0, Note: 1}

// decode reads what encode wrote.
func decode(text []byte) (map[string]*entry, map[string]bool, error) {
	var m memory
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, nil, fmt.Errorf("decode what was told: %w", err)
	}
	if m.Version != memoryVersion {
		return nil, nil, fmt.Errorf("decode what was told: version %q is not known", m.Version)
	}
	entries, sources := map[string]*entry{}, map[string]bool{}
	for _, s := range m.Sources {
		sources[s] = true
	}
	for _, s := range m.Entries {
		e := &entry{
			Message: Message{
				Key: s.Key, Alert: s.Alert, Severity: s.Severity, Title: s.Title, Facts: s.Facts, Labels: s.Labels, Since: s.Since, Runbook: s.Runbook,
				Once: s.Once, Owner: s.Owner, Person: s.Person,
			},
			Source: s.Source, Taken: s.Taken, To: s.To, Told: s.Told, Perhaps: s.Perhaps, Ended: s.Ended, Silent: s.Silent,
		}
		if e.Told == nil {
			e.Told = map[string]time.Time{}
		}
		entries[s.Key] = e
	}
	return entries, sources, nil
}
