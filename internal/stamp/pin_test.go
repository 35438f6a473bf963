package stamp

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// pinned is the state of a workload in mode pin that Tidemark has not seen yet.
func pinned(objects ...Object) State {
	s := rolls(objects...)
	s.Mode = Pin
	return s
}

func (o Object) versioned() Object {
	o.Versioned = true
	return o
}

// config is a ConfigMap that is read whole, required, and pinned in mode pin.
func config(name string, data ...string) Object { return envFrom(name, data...).versioned() }

// copies are the contents of all snapshots ever made in a test, by name, in the terms of their source.
type copies map[string]digest.Content

// land is what the API would hold after a decision on the state: its snapshots made, then its write.
func (c copies) land(t *testing.T, s State, d Decision) State {
	t.Helper()
	names := map[workload.Object]string{}
	for _, o := range s.Objects {
		name := snapshot.Name(o.Use.Object, o.Applied.Whole(o.Use.Object), 0)
		names[o.Use.Object] = name
		if d.Pins[o.Use.Object] == "" {
			c[name] = o.Applied
		}
	}
	d = d.Pinned(names)
	s = carry(t, s, d)
	if d.Action == WriteStamp {
		s.Pins = maps.Clone(d.Pins)
	}
	return c.known(s)
}

// known tells the state what its pins hold.
func (c copies) known(s State) State {
	objects := make([]Object, 0, len(s.Objects))
	for _, o := range s.Objects {
		o.Pinned = nil
		if content, ok := c[s.Pins[o.Use.Object]]; ok {
			o.Pinned = &content
		}
		objects = append(objects, o)
	}
	s.Objects = objects
	return s
}

// settled is the state after Tidemark has decided on it and written.
func (c copies) settled(t *testing.T, s State) State {
	t.Helper()
	s = c.known(s)
	return c.land(t, s, Decide(s))
}

// check is [check] for mode pin; pins are those wanted on the template afterwards, as "OBJECT=CONTENT", where the content is
// that of the objects given, "absent" or "none".
func (c copies) check(t *testing.T, s State, want outcome, pins map[string]Object) State {
	t.Helper()
	s = c.known(s)
	d := Decide(s)
	if diff := cmp.Diff(want, outcomeOf(d)); diff != "" {
		t.Fatalf("decision (-want +got):\n%s", diff)
	}
	after := c.land(t, s, d)
	got, wanted := map[string]string{}, map[string]string{}
	for o, name := range after.Pins {
		got[o.Name] = name
	}
	for name, o := range pins {
		if wanted[name] = v1.AbsentName; o.Applied.Present {
			wanted[name] = snapshot.Name(o.Use.Object, o.Applied.Whole(o.Use.Object), 0)
		}
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
	if again := Decide(after); again.Action != Nothing {
		t.Errorf("decided again: %s, %s, want nothing", again.Action, again.Reason)
	}
	return after
}

func stamped(r Reason) outcome { return outcome{Action: WriteStamp, Reason: r} }

func (s State) pinsFrom(older State) State {
	s.Pins = older.Pins
	return s
}

func TestModePin(t *testing.T) {
	a1, a2, b1, b2 := config("a", "A=1"), config("a", "A=2"), config("b", "B=1"), config("b", "B=2")
	both := func(a, b Object) map[string]Object { return map[string]Object{"a": a, "b": b} }
	rotated := func(value string) Object { return secretFrom(testKey(t, "k"), "P="+value) }
	for name, run := range map[string]func(*testing.T, copies){
		"the first pins are one announced rollout": func(t *testing.T, c copies) {
			c.check(t, pinned(a1, b1), stamped(FirstPin), both(a1, b1))
		},
		"a workload that was rolled before gets its first pins": func(t *testing.T, c copies) {
			s := decided(t, rolls(a1, b1))
			s.Mode = Pin
			c.check(t, s, stamped(FirstPin), both(a1, b1))
		},
		"a template that someone went back to stays as it is": func(t *testing.T, c copies) {
			s := pinned(a1)
			s.Revisions = []Revision{{Number: 2}, {Number: 1, Matches: true}}
			s = c.check(t, s, record(RolledBack), nil)
			c.check(t, s.then(a2), rolled("configmap/a"), map[string]Object{"a": a2})
		},
		"what is not versioned is not pinned": func(t *testing.T, c copies) {
			c.check(t, pinned(a1, rotated("1"), config("live").live()), stamped(FirstPin), map[string]Object{"a": a1})
		},
		"objects of other namespaces and named ones are not pinned": func(t *testing.T, c copies) {
			named := config("named").with(func(u *workload.Consumption) { u.Named = true })
			foreign := config("foreign").with(func(u *workload.Consumption) { u.Object.Namespace = "elsewhere" })
			c.check(t, pinned(named, foreign), record(FirstRecord), nil)
		},
		"an absent optional object is pinned to nothing": func(t *testing.T, c copies) {
			gone := config("a").absent().optional()
			s := c.check(t, pinned(gone), stamped(FirstPin), map[string]Object{"a": gone})
			c.check(t, s.then(config("a", "A=1").optional()), rolled("configmap/a"), map[string]Object{"a": a1})
		},
		"a pin to nothing stays while what is there has none of the keys": func(t *testing.T, c copies) {
			gone, other := config("a").absent().envKeys("A").optional(), config("a", "B=1").envKeys("A").optional()
			s := c.settled(t, pinned(gone))
			s = c.check(t, s.then(other), nothing(Unchanged), map[string]Object{"a": gone})
			s = c.check(t, s.image("pricing:2"), record(NewRelease), map[string]Object{"a": gone})
			there := config("a", "A=1").envKeys("A").optional()
			c.check(t, s.then(there), rolled("configmap/a"), map[string]Object{"a": there})
		},
		"an optional object that goes is pinned to nothing": func(t *testing.T, c copies) {
			gone := config("a").absent().optional()
			s := c.settled(t, pinned(config("a", "A=1").optional()))
			c.check(t, s.then(gone), rolled("configmap/a"), map[string]Object{"a": gone})
		},
		"a change moves its own pin only": func(t *testing.T, c copies) {
			c.check(t, c.settled(t, pinned(a1, b1)).then(a2, b1), rolled("configmap/a"), both(a2, b1))
		},
		"a key that nobody reads moves no pin, then or later": func(t *testing.T, c copies) {
			read := config("a", "A=1").envKeys("A")
			more := config("a", "A=1", "unread=2").envKeys("A")
			s := c.settled(t, pinned(read, b1))
			s = c.check(t, s.then(more, b1), nothing(Unchanged), both(read, b1))
			c.check(t, s.then(more, b2), rolled("configmap/b"), both(read, b2))
		},
		"a rotated secret rolls and moves no pin": func(t *testing.T, c copies) {
			s := c.settled(t, pinned(a1, rotated("1")))
			c.check(t, s.then(a1, rotated("2")), rolled("secret/s"), map[string]Object{"a": a1})
		},
		"a required object that is deleted is not missed while its copy is there": func(t *testing.T, c copies) {
			s := c.settled(t, pinned(a1, b1))
			s = c.check(t, s.then(a1.absent(), b1), nothing(Unchanged), both(a1, b1))
			s = c.check(t, s.then(a1.absent(), b2), rolled("configmap/b"), both(a1, b2))
			s = c.check(t, s.image("pricing:2"), record(NewRelease), both(a1, b2))
			s = c.check(t, s.then(a1, b2), nothing(Unchanged), both(a1, b2))
			c.check(t, s.then(a2, b2), rolled("configmap/a"), both(a2, b2))
		},
		"a new release whose pins hold what is applied is not written to": func(t *testing.T, c copies) {
			c.check(t, c.settled(t, pinned(a1)).image("pricing:2"), record(NewRelease), map[string]Object{"a": a1})
		},
		"a new reference is pinned": func(t *testing.T, c copies) {
			c.check(t, c.settled(t, pinned(a1)).then(a1, b1), stamped(TemplateEdited), both(a1, b1))
		},
		"a restart changes nothing": func(t *testing.T, c copies) {
			c.check(t, c.settled(t, pinned(a1)), nothing(Unchanged), map[string]Object{"a": a1})
		},
		"a template that lost its stamp and pins gets them again": func(t *testing.T, c copies) {
			s := c.settled(t, pinned(a1))
			s.Stamp, s.Pins = "", nil
			c.check(t, s, stamped(NewTemplate), map[string]Object{"a": a1})
		},
		"pins that were edited by hand are put right": func(t *testing.T, c copies) {
			s := c.settled(t, pinned(a1))
			s.Pins = snapshot.Pins{configMap("a"): "a-of-another-cluster"}
			c.check(t, s, stamped(NewTemplate), map[string]Object{"a": a1})
		},
		"pins go with the first write after mode pin": func(t *testing.T, c copies) {
			s := c.settled(t, pinned(a1))
			s.Mode = Roll
			s = c.check(t, s, record(NewBaseline), map[string]Object{"a": a1})
			c.check(t, s.then(a2), rolled("configmap/a"), nil)
		},
		"mode observe leaves pins alone": func(t *testing.T, c copies) {
			s := c.settled(t, pinned(a1)).then(a2)
			s.Mode = Observe
			c.check(t, s, nothing(Observed), map[string]Object{"a": a1})
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, copies{}) })
	}
}

func TestModePinAfterARollback(t *testing.T) {
	a1, a2, a3 := config("a", "A=1"), config("a", "A=2"), config("a", "A=3")
	b1, b2 := config("b", "B=1"), config("b", "B=2")
	key := testKey(t, "k")
	s1, s2 := secretFrom(key, "P=1"), secretFrom(key, "P=2")
	both := func(a, b Object) map[string]Object { return map[string]Object{"a": a, "b": b} }
	held := func(o outcome) outcome { return o.held("configmap/a") }
	for kind, back := range map[string]func(newer, older State) State{
		"Deployment": State.putBackFrom, "StatefulSet": State.patchedFrom,
	} {
		for name, run := range map[string]func(*testing.T, copies, State){
			"it stays": func(t *testing.T, c copies, s State) {
				c.check(t, s, held(nothing(Unchanged)), both(a1, b1))
			},
			"a rotated secret rolls, the pins stay": func(t *testing.T, c copies, s State) {
				s = c.check(t, s.then(a2, b1, s2), rolled("secret/s").held("configmap/a"), both(a1, b1))
				c.check(t, s.then(a2, b1, s1), rolled("secret/s").held("configmap/a"), both(a1, b1))
			},
			"an edit of another object moves that one": func(t *testing.T, c copies, s State) {
				c.check(t, s.then(a2, b2, s1), rolled("configmap/b").held("configmap/a"), both(a1, b2))
			},
			"an edit of the object itself moves it": func(t *testing.T, c copies, s State) {
				c.check(t, s.then(a3, b1, s1), rolled("configmap/a"), both(a3, b1))
			},
			"the old content restored needs no rollout": func(t *testing.T, c copies, s State) {
				s = c.check(t, s.then(a1, b1, s1), record(Restored), both(a1, b1))
				c.check(t, s.then(a2, b1, s1), rolled("configmap/a"), both(a2, b1))
			},
			"a new image moves everything": func(t *testing.T, c copies, s State) {
				c.check(t, s.image("pricing:3"), stamped(NewRelease), both(a2, b1))
			},
			"a new image with new content moves everything": func(t *testing.T, c copies, s State) {
				c.check(t, s.then(a2, b2, s1).image("pricing:3"), rolled("configmap/b"), both(a2, b2))
			},
			"a new reference is pinned, the others stay": func(t *testing.T, c copies, s State) {
				more := config("c", "C=1")
				c.check(t, s.then(a2, b1, s1, more), held(stamped(TemplateEdited)), map[string]Object{"a": a1, "b": b1, "c": more})
			},
			"a copy that is not known counts as another content": func(t *testing.T, c copies, s State) {
				clear(c)
				c.check(t, s, held(nothing(Unchanged)), both(a1, b1))
			},
			"a source that is deleted changes nothing": func(t *testing.T, c copies, s State) {
				c.check(t, s.then(a2.absent(), b1, s1), held(nothing(Unchanged)), both(a1, b1))
			},
		} {
			t.Run(kind+": "+name, func(t *testing.T) {
				c := copies{}
				first := c.settled(t, pinned(a1, b1, s1))
				second := c.settled(t, c.settled(t, first.then(a2, b1, s1).image("pricing:2")))
				s := c.check(t, back(second, first).pinsFrom(first), held(record(RolledBack)), both(a1, b1))
				run(t, c, s)
			})
		}
	}
}

func TestARolloutThatNeedsItsPins(t *testing.T) {
	a1, a2, b1, b2, c1 := config("a", "A=1"), config("a", "A=2"), config("b", "B=1"), config("b", "B=2"), config("c", "C=1")
	back := func(c copies) State { // from a2 to a1
		first := c.settled(t, pinned(a1, b1))
		return c.settled(t, c.settled(t, first.then(a2, b1)).putBackFrom(first).pinsFrom(first))
	}
	for name, tc := range map[string]struct {
		state func(copies) State
		want  outcome
		needs bool
	}{
		"the first pins":                {func(copies) State { return pinned(a1) }, stamped(FirstPin), true},
		"the pin of a new reference":    {func(c copies) State { return c.settled(t, pinned(a1)).then(a1, b1) }, stamped(TemplateEdited), true},
		"a change":                      {func(c copies) State { return c.settled(t, pinned(a1, b1)).then(a2, b1) }, rolled("configmap/a"), false},
		"a change beside what is held":  {func(c copies) State { return back(c).then(a2, b2) }, rolled("configmap/b").held("configmap/a"), true},
		"a change of what is held":      {func(c copies) State { return back(c).then(config("a", "A=3"), b1) }, rolled("configmap/a"), false},
		"a new release of what is held": {func(c copies) State { return back(c).image("pricing:3") }, stamped(NewRelease), false},
		"a change beside what is gone":  {func(c copies) State { return c.settled(t, pinned(a1, b1)).then(a1.absent(), b2) }, rolled("configmap/b"), true},
		"a change beside an absence": {func(c copies) State {
			s := config("c").absent().optional()
			return c.settled(t, pinned(a1, s)).then(a2, s)
		}, rolled("configmap/a"), false},
		"a template without its pins":    {func(c copies) State { s := c.settled(t, pinned(a1)); s.Stamp, s.Pins = "", nil; return s }, stamped(NewTemplate), false},
		"mode roll":                      {func(copies) State { return decided(t, rolls(a1, c1)).then(a2, c1) }, rolled("configmap/a"), false},
		"nothing to write":               {func(c copies) State { return c.settled(t, pinned(a1)) }, nothing(Unchanged), false},
		"nothing to write beside a hold": {func(c copies) State { return back(c) }, nothing(Unchanged).held("configmap/a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := copies{}
			s := c.known(tc.state(c))
			d := Decide(s)
			if diff := cmp.Diff(tc.want, outcomeOf(d)); diff != "" {
				t.Fatalf("decision (-want +got):\n%s", diff)
			}
			if got := d.NeedsPins(s); got != tc.needs {
				t.Errorf("it needs its pins: %v, want %v", got, tc.needs)
			}
		})
	}
}
