package history

import (
	"testing"
	"time"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// whole is the digest of everything in the object.
func whole(c digest.Content) digest.Digest {
	return c.Consumed(workload.Consumption{Object: object, Env: workload.Keys{All: true}, Required: true})
}

// present is as whole, of contents that a container which requires the object can have read.
func present(c digest.Content) digest.Digest {
	if !c.Present {
		return ""
	}
	return whole(c)
}

func TestOver(t *testing.T) {
	tenMinutes, twoMinutes := holding("10m"), holding("2m")
	const until = 1000
	immutable := func(s float64, uid string, c digest.Content) Observation {
		return with(look(s, uid, c), func(o *Observation) { o.UID, o.Immutable = uid, true })
	}
	for name, tc := range map[string]struct {
		looks    []Observation
		from, to float64
		digestOf func(digest.Content) digest.Digest
		want     digest.Digest
		version  int
		why      string
	}{
		"one content all the while": {
			looks: []Observation{look(10, "1", tenMinutes)}, from: 10, to: 1000, want: whole(tenMinutes),
		},
		"before the first look nothing is known": {
			looks: []Observation{look(10, "1", tenMinutes)}, from: 9.9, to: 20, why: "the history begins at 2026-06-01T10:00:10Z",
		},
		"after the end of the log nothing is known": {
			looks: []Observation{look(10, "1", tenMinutes)}, from: 900, to: 1000.1,
			why: "what happened after 2026-06-01T10:16:40Z is not known",
		},
		"a stretch that ends before the window": {
			looks: []Observation{look(10, "1", tenMinutes), look(100, "2", twoMinutes)}, from: 20, to: 97.9, want: whole(tenMinutes),
		},
		"a stretch that ends in the window": {
			looks: []Observation{look(10, "1", tenMinutes), look(100, "2", twoMinutes)}, from: 20, to: 98,
			why: "it changed between 2026-06-01T10:01:38Z and 2026-06-01T10:01:40Z, while it may have been read",
		},
		"a stretch that begins in the window": {
			looks: []Observation{look(10, "1", tenMinutes), look(100, "2", twoMinutes)}, from: 100, to: 110,
			why: "it changed between 2026-06-01T10:01:38Z and 2026-06-01T10:01:40Z, while it may have been read",
		},
		"a stretch that begins after the window": {
			looks: []Observation{look(10, "1", tenMinutes), look(100, "2", twoMinutes)}, from: 100.1, to: 110,
			want: whole(twoMinutes), version: 1,
		},
		"a change of what is not consumed does not matter": {
			looks: []Observation{look(10, "1", tenMinutes), look(100, "2", twoMinutes)}, from: 20, to: 110,
			digestOf: func(digest.Content) digest.Digest { return "v1-same" }, want: "v1-same", version: 1,
		},
		"content that went and came back within the stretch": {
			looks: []Observation{look(10, "1", tenMinutes), look(100, "2", twoMinutes), look(101, "3", tenMinutes)}, from: 20, to: 110,
			why: "it changed between 2026-06-01T10:01:38Z and 2026-06-01T10:01:40Z, while it may have been read",
		},
		"content that came back earlier than it was seen to go": {
			// The second change may have happened before the first was seen.
			looks: []Observation{look(10, "1", tenMinutes), look(100, "2", twoMinutes), look(100.5, "3", holding("1m"))},
			from:  98.6, to: 98.7,
			digestOf: func(c digest.Content) digest.Digest {
				if c.Equal(holding("1m")) {
					return "v1-other"
				}
				return "v1-same"
			},
			why: "it changed between 2026-06-01T10:01:38Z and 2026-06-01T10:01:40Z, while it may have been read",
		},
		"a gap in watching within the stretch": {
			looks: []Observation{look(10, "1", tenMinutes), with(look(100, "2", tenMinutes), func(o *Observation) { o.Unwatched = at(50) })},
			from:  47, to: 48, why: "nobody watched from 2026-06-01T10:00:48Z to 2026-06-01T10:01:40Z",
		},
		"a gap in watching before the stretch": {
			looks: []Observation{look(10, "1", tenMinutes), with(look(100, "2", tenMinutes), func(o *Observation) { o.Unwatched = at(50) })},
			from:  100.1, to: 110, want: whole(tenMinutes), version: 1,
		},
		"a gap in watching after the stretch": {
			looks: []Observation{look(10, "1", tenMinutes), with(look(100, "2", tenMinutes), func(o *Observation) { o.Unwatched = at(50) })},
			from:  20, to: 47.9, want: whole(tenMinutes),
		},
		"what requires the object cannot have read its absence": {
			looks: []Observation{look(10, "", absent), look(100, "1", tenMinutes)}, from: 20, to: 110,
			digestOf: present, want: whole(tenMinutes), version: 1,
		},
		"what requires the object cannot have read at all": {
			looks: []Observation{look(10, "", absent)}, from: 20, to: 110, digestOf: present, why: "it was missing all the while",
		},
		"an immutable object is served by nodes after it was made again": {
			looks: []Observation{immutable(10, "u1", tenMinutes), look(50, "", absent), immutable(60, "u2", twoMinutes)},
			from:  500, to: 510,
			why: "an immutable object was made again at 2026-06-01T10:01:00Z, and a node may still serve the one before",
		},
		"an object that became immutable is the same object": {
			looks: []Observation{look(10, "1", tenMinutes), with(look(50, "2", tenMinutes), func(o *Observation) { o.Immutable = true })},
			from:  500, to: 510, want: whole(tenMinutes),
		},
		"times that contradict each other": {
			looks: []Observation{look(10, "1", tenMinutes)}, from: 30, to: 20,
			why: "the times of the read contradict each other (2026-06-01T10:00:30Z, 2026-06-01T10:00:20Z)",
		},
		"a log that knows nothing": {from: 20, to: 30, why: "nothing is remembered of it"},
	} {
		t.Run(name, func(t *testing.T) {
			l := Log{Object: object}
			for _, o := range tc.looks {
				l.Observe(o)
			}
			digestOf := tc.digestOf
			if digestOf == nil {
				digestOf = whole
			}
			got := l.Over(Span{at(tc.from), at(tc.to)}, at(until), workload.Consumption{}, digestOf)
			if got.Digest != tc.want || got.Why != tc.why || got.Digest != "" && got.Version != tc.version {
				t.Errorf("Over() = %+v, want %q of version %d, why %q", got, tc.want, tc.version, tc.why)
			}
		})
	}
}

func TestOverSaysThatTheLogWasBounded(t *testing.T) {
	l := Log{Object: object}
	for i := range MaxVersions + 1 {
		l.Observe(look(float64(10*i), string(rune('a'+i)), holding(string(rune('a'+i)))))
	}
	got := l.Over(Span{at(5), at(6)}, at(1000), workload.Consumption{}, whole)
	if want := "what was before 2026-06-01T10:00:10Z is no longer remembered"; got.Why != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	l.Lingering = true
	got = l.Over(Span{at(50), at(51)}, at(1000), workload.Consumption{}, whole)
	if got.Digest != "" {
		t.Errorf("got %+v, though a node may serve a content that is forgotten", got)
	}
}

func TestOverOfALogWithoutVersionsIsEmpty(t *testing.T) {
	if v := (Log{}).Newest(); v.UID != "" || !v.Seen.Equal(time.Time{}) {
		t.Errorf("got %+v", v)
	}
}
