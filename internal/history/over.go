package history

import (
	"fmt"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// Answer is what a log says of a span of time.
type Answer struct {
	// Digest is that of every content which may have been the applied one; "" when there is more than one, or when the log
	// does not tell.
	Digest digest.Digest
	// Version is the index in Log.Versions of the latest such content; meaningful with a Digest.
	Version int
	// Why says in words why there is no Digest.
	Why string
}

// Over gives the one digest that digestOf has, of what the use reads, for every content that may have been the applied one at any
// instant of the span, both ends included. There is none when two such contents have different digests, or when the log does not
// cover every instant: before it began, after until (up to when the log is known to be complete), and in windows in which the
// content may have been any, or any of what the use reads. For a content that cannot be the one asked for, digestOf gives "".
func (l Log) Over(span Span, until time.Time, use workload.Consumption, digestOf func(digest.Content) digest.Digest) Answer {
	if why := l.uncovered(span, until); why != "" {
		return Answer{Why: why}
	}
	a := Answer{Version: -1}
	for i := range l.Versions {
		if !l.mayApply(i, span) {
			continue
		}
		if !l.Versions[i].Tells(use) {
			return Answer{Why: "it had several values of keys that nobody read then, which are no longer remembered"}
		}
		d := digestOf(l.Versions[i].Content)
		switch {
		case d == "":
			continue
		case a.Version >= 0 && d != a.Digest:
			return Answer{Why: l.changeAt(i, span)}
		}
		a.Digest, a.Version = d, i
	}
	if a.Version < 0 {
		return Answer{Why: "it was missing all the while"}
	}
	return a
}

// Newest is the version that the log ends with; the zero value when it is empty.
func (l Log) Newest() Version {
	if len(l.Versions) == 0 {
		return Version{}
	}
	return l.Versions[len(l.Versions)-1]
}

// uncovered says why some instant of the span is not covered by the log, "" when all are.
func (l Log) uncovered(span Span, until time.Time) string {
	switch {
	case len(l.Versions) == 0:
		return "nothing is remembered of it"
	case span.To.Before(span.From):
		return fmt.Sprintf("the times of the read contradict each other (%s, %s)", clock(span.From), clock(span.To))
	case span.From.Before(l.Versions[0].Seen) && !l.Dropped.IsZero():
		return fmt.Sprintf("what was before %s is no longer remembered", clock(l.Versions[0].Seen))
	case span.From.Before(l.Versions[0].Seen):
		return fmt.Sprintf("the history begins at %s", clock(l.Versions[0].Seen))
	case l.Lingering:
		return "an immutable object of this name was made again, and a node may still serve the one before"
	case span.To.After(until):
		return fmt.Sprintf("what happened after %s is not known", clock(until))
	}
	for _, v := range l.Versions {
		if v.Gap && !v.NotBefore.After(span.To) && !v.Seen.Before(span.From) {
			return fmt.Sprintf("nobody watched from %s to %s", clock(v.NotBefore), clock(v.Seen))
		}
	}
	return ""
}

// mayApply reports whether version i may have been served at some instant of the span.
func (l Log) mayApply(i int, span Span) bool {
	v := l.Versions[i]
	if v.NotBefore.After(span.To) {
		return false
	}
	return i == len(l.Versions)-1 || l.lingers(i) || !l.Versions[i+1].Seen.Before(span.From)
}

// lingers reports whether version i may be served by a node although it is no longer the applied one.
func (l Log) lingers(i int) bool {
	if !l.Versions[i].Immutable {
		return false
	}
	for _, v := range l.Versions[i+1:] {
		if v.UID != l.Versions[i].UID {
			return true
		}
	}
	return false
}

// changeAt words that version i differs from one before it within the span.
func (l Log) changeAt(i int, span Span) string {
	v := l.Versions[i]
	if v.Seen.Before(span.From) {
		return fmt.Sprintf("an immutable object was made again at %s, and a node may still serve the one before", clock(v.Seen))
	}
	return fmt.Sprintf("it changed between %s and %s, while it may have been read", clock(v.NotBefore), clock(v.Seen))
}

// clock words a time for people.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
