package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

var object = workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "pricing"}

// at is a moment, in seconds.
func at(s float64) time.Time {
	return time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

// holding is a content with one key.
func holding(value string) digest.Content {
	return digest.OfConfigMap(object.Namespace, object.Name, map[string]string{"interval": value}, nil)
}

var absent = digest.AbsentIn(workload.ConfigMap, nil)

// look is an observation of an unbroken watch, with a lag of two seconds.
func look(s float64, rv string, c digest.Content) Observation {
	o := Observation{At: at(s), Content: c, Lag: 2 * time.Second, EveryEvent: true}
	if c.Present {
		o.UID, o.ResourceVersion = "u1", rv
	}
	return o
}

func with(o Observation, change func(*Observation)) Observation {
	change(&o)
	return o
}

// window is what the tests expect of a version.
type window struct {
	NotBefore, Seen float64 // seconds; NotBefore -1 when it is not known
	RV              string
	Gap             bool
}

func windows(l Log) []window {
	var out []window
	for _, v := range l.Versions {
		w := window{NotBefore: -1, Seen: v.Seen.Sub(at(0)).Seconds(), RV: v.ResourceVersion, Gap: v.Gap}
		if !v.NotBefore.IsZero() {
			w.NotBefore = v.NotBefore.Sub(at(0)).Seconds()
		}
		out = append(out, w)
	}
	return out
}

func TestObserve(t *testing.T) {
	first := look(10, "1", holding("10m"))
	unwatched := func(s float64) func(*Observation) {
		return func(o *Observation) { o.Unwatched = at(s) }
	}
	for name, tc := range map[string]struct {
		looks   []Observation
		changed bool // of the last look
		want    []window
	}{
		"the first look knows nothing of before": {
			[]Observation{first}, true, []window{{-1, 10, "1", false}},
		},
		"other content is a new version whose window is the lag": {
			[]Observation{first, look(20, "2", holding("2m"))}, true, []window{{-1, 10, "1", false}, {18, 20, "2", false}},
		},
		"a metadata edit changes only the resourceVersion": {
			[]Observation{first, look(20, "2", holding("10m"))}, false, []window{{-1, 10, "2", false}},
		},
		"another resourceVersion may hide A→B→A when events were merged": {
			[]Observation{first, with(look(20, "2", holding("10m")), func(o *Observation) { o.EveryEvent = false })},
			true, []window{{-1, 10, "1", false}, {10, 20, "2", true}},
		},
		"another resourceVersion may hide A→B→A since events were last surely seen": {
			[]Observation{first, with(look(20, "2", holding("10m")), unwatched(15))}, true,
			[]window{{-1, 10, "1", false}, {13, 20, "2", true}},
		},
		"the same state after a gap continues the log": {
			[]Observation{first, with(look(90, "1", holding("10m")), unwatched(30))}, false, []window{{-1, 10, "1", false}},
		},
		"the same state continues the log although events were merged": {
			[]Observation{first, with(look(90, "1", holding("10m")), func(o *Observation) { o.EveryEvent = false })},
			false, []window{{-1, 10, "1", false}},
		},
		"the same content in another state after a gap may have been another meanwhile": {
			[]Observation{first, with(look(90, "3", holding("10m")), unwatched(30))}, true,
			[]window{{-1, 10, "1", false}, {28, 90, "3", true}},
		},
		"other content after a gap may have been any meanwhile": {
			[]Observation{first, with(look(90, "3", holding("2m")), unwatched(30))}, true,
			[]window{{-1, 10, "1", false}, {28, 90, "3", true}},
		},
		"an absence on both sides of a gap proves nothing": {
			[]Observation{look(10, "", absent), with(look(90, "", absent), unwatched(30))}, true,
			[]window{{-1, 10, "", false}, {28, 90, "", true}},
		},
		"an absence that lasts adds nothing": {
			[]Observation{look(10, "", absent), look(90, "", absent)}, false, []window{{-1, 10, "", false}},
		},
		"a deletion is a version": {
			[]Observation{first, look(20, "", absent)}, true, []window{{-1, 10, "1", false}, {18, 20, "", false}},
		},
		"another object under the name may have been any in between": {
			[]Observation{first, with(look(20, "5", holding("10m")), func(o *Observation) { o.UID = "u2" })}, true,
			[]window{{-1, 10, "1", false}, {18, 20, "5", true}},
		},
		"a recorded write moves the window back": {
			[]Observation{first, with(look(20, "2", holding("2m")), func(o *Observation) { o.Written = at(15) })}, true,
			[]window{{-1, 10, "1", false}, {15, 20, "2", false}},
		},
		"a recorded write never narrows the window": {
			[]Observation{first, with(look(20, "2", holding("2m")), func(o *Observation) { o.Written = at(19) })}, true,
			[]window{{-1, 10, "1", false}, {18, 20, "2", false}},
		},
		"a recorded write of the version before says nothing": {
			[]Observation{first, with(look(20, "2", holding("2m")), func(o *Observation) { o.Written = at(9) })}, true,
			[]window{{-1, 10, "1", false}, {18, 20, "2", false}},
		},
		"a recorded write later than the look, by another clock, says nothing": {
			[]Observation{first, with(look(20, "2", holding("2m")), func(o *Observation) { o.Written = at(21) })}, true,
			[]window{{-1, 10, "1", false}, {18, 20, "2", false}},
		},
		"a clock that stepped back widens the window": {
			[]Observation{first, look(5, "2", holding("2m"))}, true, []window{{-1, 10, "1", false}, {3, 10, "2", false}},
		},
		"fast changes have windows that overlap": {
			[]Observation{first, look(20, "2", holding("2m")), look(20.5, "3", holding("1m"))}, true,
			[]window{{-1, 10, "1", false}, {18, 20, "2", false}, {18.5, 20.5, "3", false}},
		},
		"an object seen coming into being has its content from the second of its creation": {
			[]Observation{with(look(22, "1", holding("10m")), func(o *Observation) { o.Fresh, o.Created = true, at(20) })}, true,
			[]window{{-1, 21, "1", false}},
		},
		"an object known to have been absent before it came into being": {
			[]Observation{with(look(22, "1", holding("10m")), func(o *Observation) {
				o.Fresh, o.Created, o.AbsentSince = true, at(20), at(3)
			})}, true,
			[]window{{-1, 3, "", false}, {20, 21, "1", false}},
		},
		"an object that comes into being after an absence": {
			[]Observation{look(10, "", absent), with(look(22, "1", holding("10m")), func(o *Observation) {
				o.Fresh, o.Created = true, at(20)
			})}, true,
			[]window{{-1, 10, "", false}, {20, 21, "1", false}},
		},
		"nothing is fresh after a gap": {
			[]Observation{look(10, "", absent), with(look(22, "1", holding("10m")), func(o *Observation) {
				o.Fresh, o.Created, o.Unwatched = true, at(20), at(15)
			})}, true,
			[]window{{-1, 10, "", false}, {13, 22, "1", true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := Log{Object: object}
			var changed bool
			for _, o := range tc.looks {
				changed = l.Observe(o)
			}
			if changed != tc.changed {
				t.Errorf("Observe() = %v, want %v", changed, tc.changed)
			}
			if diff := cmp.Diff(tc.want, windows(l)); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObserveTellsTheSameStateUnderAnotherKeyFromAChange(t *testing.T) {
	key := func() *digest.Key {
		k, err := digest.RandomKey()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	under := func(k *digest.Key, value string) digest.Content {
		return digest.OfSecret(k, "shop", "db", map[string][]byte{"password": []byte(value)})
	}
	before, after := key(), key()
	l := Log{Object: workload.Object{Kind: workload.Secret, Namespace: "shop", Name: "db"}}
	l.Observe(look(10, "1", under(before, "a")))

	copied := l
	if !l.Observe(with(look(90, "1", under(after, "a")), func(o *Observation) { o.Unwatched = at(50) })) {
		t.Error("another key is not worth a write")
	}
	if diff := cmp.Diff([]window{{-1, 10, "1", false}}, windows(l)); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if !l.Newest().Content.Equal(under(after, "a")) || !copied.Newest().Content.Equal(under(before, "a")) {
		t.Error("want the log in terms of the new key and its copy as it was")
	}
	l.Observe(look(100, "2", under(before, "a")))
	if len(l.Versions) != 2 {
		t.Errorf("got %d versions, want another for another state under another key", len(l.Versions))
	}
}

func TestObserveBoundsTheLog(t *testing.T) {
	l := Log{Object: object}
	for i := range MaxVersions + 3 {
		o := look(float64(10*i), string(rune('a'+i)), holding(string(rune('a'+i))))
		o.Immutable, o.UID = i == 1, string(rune('a'+i))
		l.Observe(o)
	}
	if len(l.Versions) != MaxVersions || !l.Dropped.Equal(at(30)) || !l.Lingering {
		t.Errorf("got %d versions, dropped before %v, lingering %v", len(l.Versions), l.Dropped, l.Lingering)
	}
}

// A controller that starts again after somebody edited an object's metadata cannot tell that the content stayed, and leaves a gap.
func TestGapsOfManyStartsDoNotCrowdOutAChange(t *testing.T) {
	var l Log
	l.Observe(look(0, "1", holding("10m")))
	l.Observe(look(100, "2", holding("2m")))
	const starts = 3 * MaxVersions
	for i := range starts {
		s := float64(1000 * (i + 1))
		l.Observe(with(look(s, fmt.Sprint(i+3), holding("2m")), func(o *Observation) { o.EveryEvent, o.Unwatched = false, at(s-10) }))
	}
	if len(l.Versions) > MaxVersions || !l.Dropped.IsZero() {
		t.Fatalf("it has %d versions, and dropped some before %v", len(l.Versions), l.Dropped)
	}
	if got, want := windows(l)[:2], (windows(Log{Versions: l.Versions[:2]})); got[0].Seen != 0 || got[1].Seen != 100 || !cmp.Equal(got, want) {
		t.Errorf("it begins with %v, want the change at 100", got)
	}
	whole := func(c digest.Content) digest.Digest { return c.Whole(object) }
	for _, tc := range []struct {
		from, to float64
		known    bool
	}{
		{10, 20, true},    // before the change
		{200, 900, true},  // after it, before the first gap
		{994, 996, false}, // in a gap
		{1000*starts + 1, 1000*starts + 100, true},    // after the last
		{1000*(starts-1) + 1, 1000*starts - 1, false}, // over one
	} {
		answer := l.Over(Span{at(tc.from), at(tc.to)}, at(1000*starts+200), workload.Consumption{}, whole)
		if known := answer.Digest != ""; known != tc.known {
			t.Errorf("from %v to %v: %+v, want known %t", tc.from, tc.to, answer, tc.known)
		}
	}
}

func TestOnlyGapsWithoutAChangeAreJoined(t *testing.T) {
	for name, differs := range map[string]func(o *Observation, i int){
		"every content is another":   func(o *Observation, i int) { o.Content = holding(fmt.Sprint(i)) },
		"every object is another":    func(o *Observation, i int) { o.UID = fmt.Sprint("u", i) },
		"the content comes and goes": func(o *Observation, i int) { o.Content = holding(fmt.Sprint(i % 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			var l Log
			for i := range MaxVersions + 3 {
				s := float64(1000 * (i + 1))
				l.Observe(with(look(s, fmt.Sprint(i), holding("2m")), func(o *Observation) {
					o.EveryEvent, o.Unwatched = false, at(s-10)
					differs(o, i)
				}))
			}
			if len(l.Versions) != MaxVersions || l.Dropped != at(4000) {
				t.Errorf("it has %d versions, and dropped those before %v", len(l.Versions), l.Dropped)
			}
		})
	}
}

// use reads one key of the object into the environment.
func use(key string) workload.Consumption {
	return workload.Consumption{Object: object, Env: workload.Keys{Names: []string{key}}, Required: true}
}

// reading is a look at a content with a key that somebody reads, beside one that nobody does.
func reading(s float64, read, unread string) Observation {
	c := digest.OfConfigMap(object.Namespace, object.Name, map[string]string{"interval": read, "comment": unread}, nil)
	return with(look(s, fmt.Sprint(s), c), func(o *Observation) { o.Reads = func(key string) bool { return key == "interval" } })
}

func TestEditsOfKeysThatNobodyReadsPushNothingOut(t *testing.T) {
	l := Log{Object: object}
	for i := range MaxVersions {
		l.Observe(reading(float64(100*i), fmt.Sprint(i), "a"))
	}
	const edits = 5 * MaxVersions
	var last digest.Content
	for i := range edits {
		o := reading(float64(10_000+100*i), fmt.Sprint(MaxVersions-1), fmt.Sprint(i))
		last = o.Content
		if !l.Observe(o) {
			t.Fatal("an edit is not worth a write")
		}
	}
	if len(l.Versions) > MaxVersions+1 || !l.Dropped.IsZero() {
		t.Fatalf("it has %d versions, and dropped those before %v", len(l.Versions), l.Dropped)
	}
	if !l.Newest().Content.Equal(last) || len(l.Newest().Forgotten) > 0 {
		t.Errorf("it ends with %+v, want what is applied", l.Newest())
	}
	const end = 10_000 + 100*edits
	for name, tc := range map[string]struct {
		key      string
		from, to float64
		known    bool
	}{
		"the oldest version of what is read":                {"interval", 10, 20, true},
		"what is read, before and after edits of the rest":  {"interval", 950, end, true},
		"what nobody read, before the edits":                {"comment", 10, 20, true},
		"what nobody read, while edits were joined":         {"comment", 10_010, 10_020, false},
		"what nobody read, since the last edit":             {"comment", end - 50, end, true},
		"what is read, while it changed":                    {"interval", 190, 210, false},
		"a key that it never had, while edits were joined":  {"other", 10_010, 10_020, true},
		"what nobody read, over two edits that were joined": {"comment", 10_010, 10_220, false},
	} {
		digestOf := func(c digest.Content) digest.Digest { return c.Consumed(use(tc.key)) }
		answer := l.Over(Span{at(tc.from), at(tc.to)}, at(end), use(tc.key), digestOf)
		if known := answer.Digest != ""; known != tc.known {
			t.Errorf("%s: %+v, want known %t", name, answer, tc.known)
		}
	}

	l.Observe(reading(end, "another", "another"))
	if len(l.Versions) != MaxVersions || l.Dropped.IsZero() {
		t.Errorf("a change of what is read leaves %d versions, want the oldest dropped", len(l.Versions))
	}
}

func TestVersionsBetweenWhichSomethingIsNotKnownAreNotJoined(t *testing.T) {
	for name, differs := range map[string]func(o *Observation, i int){
		"nobody watched in between": func(o *Observation, i int) {
			o.EveryEvent, o.Unwatched = i%2 == 0, at(float64(100*i-10))
		},
		"the object was made again": func(o *Observation, i int) { o.UID = fmt.Sprint("u", i) },
		"it went and came":          func(o *Observation, i int) { o.Content.Present = i%2 == 0 },
		"nobody says what is read":  func(o *Observation, _ int) { o.Reads = nil },
		"too many keys": func(o *Observation, i int) {
			o.Content = digest.OfConfigMap("shop", "pricing", map[string]string{fmt.Sprint("key-", i): ""}, nil)
			for k := range maxForgotten {
				o.Content.Data[fmt.Sprint("more-", i, k)] = digest.Sum{byte(i), byte(k)}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := Log{Object: object}
			for i := range MaxVersions + 3 {
				l.Observe(with(reading(float64(100*(i+1)), "10m", fmt.Sprint(i)), func(o *Observation) { differs(o, i) }))
			}
			for _, v := range l.Versions {
				if len(v.Forgotten) > 0 {
					t.Errorf("it forgot %v", v.Forgotten)
				}
			}
		})
	}
}
