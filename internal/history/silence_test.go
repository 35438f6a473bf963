package history

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

func silenceTime(seconds int) time.Time { return time.Unix(int64(1_800_000_000+seconds), 0).UTC() }

func TestASilenceLastsUntilTheNextSignOfLife(t *testing.T) {
	s := Silences{}

	if !s.Begin("n", silenceTime(0)) || s.Begin("n", silenceTime(0)) {
		t.Error("want the begin of a silence to be news once")
	}
	if want := (Silences{"n": {{From: silenceTime(0)}}}); !reflect.DeepEqual(s, want) {
		t.Errorf("while it lasts: %v, want %v", s, want)
	}
	if !s.End("n", silenceTime(30), 20*time.Second) || s.End("n", silenceTime(40), 20*time.Second) {
		t.Error("want the end of a silence to be news once")
	}
	if want := (Silences{"n": {{From: silenceTime(0), To: silenceTime(30)}}}); !reflect.DeepEqual(s, want) {
		t.Errorf("afterwards: %v, want %v", s, want)
	}
}

func TestWhatWasHeardLateWasNoSilence(t *testing.T) {
	s := Silences{}
	s.Begin("n", silenceTime(0))

	if !s.End("n", silenceTime(10), 20*time.Second) || len(s) != 0 {
		t.Errorf("%v is remembered of a node whose signs of life were only heard late", s)
	}
}

// What is joined may make more unknown, never less: every silence lies within one that is remembered.
func TestOfTooManySilencesTheOldestBecomeOne(t *testing.T) {
	s := Silences{}
	for i := range 3 * maxSilences {
		s.Begin("n", silenceTime(1000*i))
		s.End("n", silenceTime(1000*i+100), time.Second)
	}

	of := s["n"]
	if len(of) != maxSilences {
		t.Errorf("%d are remembered, want %d", len(of), maxSilences)
	}
	if want := (Span{From: silenceTime(0), To: silenceTime(2000*maxSilences + 100)}); of[0] != want {
		t.Errorf("the oldest is %v, want %v", of[0], want)
	}
}

func TestSilencesOfNodesThatAreGoneAreForgotten(t *testing.T) {
	s := Silences{"gone": {{From: silenceTime(0)}}, "there": {{From: silenceTime(0)}}}
	there := func(node string) bool { return node == "there" }

	if !s.Forget(there) || s.Forget(there) || len(s) != 1 || s["there"] == nil {
		t.Errorf("%v is remembered", s)
	}
}

func TestSilencesAreReadAsTheyWereWritten(t *testing.T) {
	s := Silences{
		"a": {{From: silenceTime(0), To: silenceTime(30)}, {From: silenceTime(60)}},
		"b": {{From: silenceTime(0).Add(1234567 * time.Nanosecond), To: silenceTime(1).Add(1234567 * time.Nanosecond)}},
	}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}

	read, err := DecodeSilences(data)

	// What is less than a millisecond makes a silence longer, never shorter.
	s["b"] = []Span{{From: silenceTime(0).Add(time.Millisecond), To: silenceTime(1).Add(2 * time.Millisecond)}}
	if err != nil || !reflect.DeepEqual(read, s) {
		t.Errorf("read %v (%v), want %v", read, err, s)
	}
}

func TestANodeWhoseEntryCannotBeReadWasAlwaysSilent(t *testing.T) {
	for _, entry := range []string{"soon/now", "2026-12-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z/later"} {
		read, err := DecodeSilences(map[string]string{"odd": entry})
		if err == nil || !strings.Contains(err.Error(), "node odd") {
			t.Errorf("%q: error %v, want one that names the node", entry, err)
		}
		if want := (Silences{"odd": {{From: time.Unix(0, 0).UTC()}}}); !reflect.DeepEqual(read, want) {
			t.Errorf("%q: %v, want %v", entry, read, want)
		}
	}
}

func TestSilencesFitAConfigMap(t *testing.T) {
	full := func(nodes int) Silences {
		s := Silences{}
		for n := range nodes {
			for i := range maxSilences {
				node := fmt.Sprintf("ip-10-0-0-1.eu-central-1.compute.internal-%05d", n)
				s.Begin(node, silenceTime(1000*i))
				s.End(node, silenceTime(1000*i+100), time.Second)
			}
		}
		return s
	}
	for nodes, all := range map[int]bool{10: true, 5000: true, 20_000: false} {
		data, err := full(nodes).Encode()
		size := 0
		for k, v := range maps.All(data) {
			size += len(k) + len(v)
		}
		if size > ShardLimit {
			t.Errorf("%d nodes: %d bytes, want %d at most", nodes, size, ShardLimit)
		}
		if all != (err == nil) || all != (len(data) == nodes) {
			t.Errorf("%d nodes: %d are remembered (%v)", nodes, len(data), err)
		}
		read, err := DecodeSilences(data)
		if err != nil {
			t.Fatal(err)
		}
		for node, of := range read {
			if of[0].From != silenceTime(0) || of[len(of)-1].To != silenceTime(1000*(maxSilences-1)+100) {
				t.Fatalf("%d nodes: of %s only %v is remembered", nodes, node, of)
			}
		}
	}
}
