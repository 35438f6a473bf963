package stamp

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// dice makes random states out of few values, so that they meet often.
type dice struct{ *rand.Rand }

func (r dice) of(n int) bool { return r.IntN(n) == 0 }

func (r dice) keys() workload.Keys {
	switch r.IntN(5) {
	case 0:
		return workload.Keys{}
	case 1, 2:
		return all()
	case 3:
		return keys("A")
	}
	return keys("A", "B")
}

func (r dice) object(key *digest.Key, name string) Object {
	o := Object{
		Use:  workload.Consumption{Object: configMap(name), Env: r.keys(), Files: r.keys(), Required: r.of(2)},
		Live: r.of(8),
	}
	value := func() string { return fmt.Sprint(r.IntN(2)) }
	switch r.IntN(8) {
	case 0:
		o.Applied = digest.AbsentIn(workload.ConfigMap, nil)
	case 1:
		o.Use.Object = secret(name)
		o.Applied = digest.OfSecret(key, namespace, name, map[string][]byte{"A": []byte(value())})
	default:
		data := map[string]string{"A": value(), "B": value(), "unread": value()}
		o.Applied = digest.OfConfigMap(namespace, name, data, nil)
	}
	return o
}

func (r dice) objects(keys []*digest.Key) []Object {
	var out []Object
	for _, name := range []string{"a", "b", "c"}[:r.IntN(4)] {
		out = append(out, r.object(keys[r.IntN(len(keys))], name))
	}
	return out
}

func (r dice) revisions() []Revision {
	var out []Revision
	for range r.IntN(4) {
		out = append(out, Revision{
			Number: r.Int64N(4), Created: second(r.IntN(3)), Matches: r.of(2), Renumbered: r.of(4),
		})
	}
	return out
}

// state makes a state that came about by a few decisions and rollbacks, or by someone's meddling.
func (r dice) state(t *testing.T, digestKeys []*digest.Key) State {
	s := State{Namespace: namespace, Mode: Roll}
	past := []State{s}
	for range r.IntN(6) {
		s.Objects, s.Images = r.objects(digestKeys), []string{fmt.Sprint("pricing:", r.IntN(2))}
		s.Revisions = r.revisions()
		older := past[r.IntN(len(past))]
		switch r.IntN(6) {
		case 0:
			s.Record, s.Intact, s.Stamp, s.Images = older.Record, false, older.Stamp, older.Images
		case 1:
			s.Stamp, s.Images = older.Stamp, older.Images
		case 2:
			s.Marked, s.Intact = r.of(2), false
		}
		if r.of(2) {
			past = append(past, s)
			s = decided(t, s)
		}
	}
	return s
}

func eachState(t *testing.T, check func(*testing.T, dice, State)) {
	t.Helper()
	digestKeys := []*digest.Key{testKey(t, "k"), testKey(t, "o")}
	for seed := range uint64(500) {
		r := dice{rand.New(rand.NewPCG(seed, 1))}
		s := r.state(t, digestKeys)
		if check(t, r, s); t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func TestADecisionLeavesNothingToDecide(t *testing.T) {
	eachState(t, func(t *testing.T, _ dice, s State) {
		d := Decide(s)
		if again := Decide(carry(t, s, d)); again.Action != Nothing {
			t.Errorf("%s, %s; then %s, %s, want nothing", d.Action, d.Reason, again.Action, again.Reason)
		}
	})
}

func TestOnlyAChangeOfContentRolls(t *testing.T) {
	eachState(t, func(t *testing.T, _ dice, s State) {
		d := Decide(s)
		if d.Action != WriteStamp {
			return
		}
		if len(d.Changed) == 0 || d.Stamp == s.Stamp {
			t.Fatalf("stamp %q on %q for %v, want a new one for a change", d.Stamp, s.Stamp, d.Changed)
		}
		// The same workload with the baseline's own content does not roll, so the content is what made it.
		for _, o := range s.Objects {
			rel := o.Use.Object.Relative(namespace)
			for name, before := range s.Record.Objects[rel].Baseline {
				if p, covered := partNamed(name, o.Use); covered && differs(before, p.digest(o)) {
					return
				}
			}
		}
		t.Errorf("rolls for %v, but no part differs", d.Changed)
	})
}

func TestTheOrderOfWhatIsListedDoesNotMatter(t *testing.T) {
	eachState(t, func(t *testing.T, r dice, s State) {
		want := Decide(s)
		objects, revisions := append([]Object(nil), s.Objects...), append([]Revision(nil), s.Revisions...)
		r.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		r.Shuffle(len(revisions), func(i, j int) { revisions[i], revisions[j] = revisions[j], revisions[i] })
		s.Objects, s.Revisions = objects, revisions
		if diff := cmp.Diff(want, Decide(s)); diff != "" {
			t.Errorf("decision (-want +got):\n%s", diff)
		}
	})
}

func TestADecisionChangesNothingOfItsState(t *testing.T) {
	eachState(t, func(t *testing.T, _ dice, s State) {
		if s.Record == nil {
			return
		}
		before, _ := Encode(*s.Record)
		d := Decide(s)
		d.Record.Noted(second(9), namespace, d)
		if after, _ := Encode(*s.Record); after != before {
			t.Errorf("the record became %s, was %s", after, before)
		}
	})
}
