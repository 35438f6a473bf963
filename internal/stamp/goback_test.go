package stamp

import "testing"

// A rollback that restores the sources too writes twice: the template, and the objects that it pins. A controller may look at
// any moment before, between and after. These tests hold the order that `tidemark rollback --restore-source` keeps.

// looked is what the controller leaves when it looks; rolls counts the template writes, each of which rolls the workload.
func (c copies) looked(t *testing.T, s State, rolls *int) State {
	t.Helper()
	s = c.known(s)
	d := Decide(s)
	if d.Action == WriteStamp {
		*rolls++
	}
	return c.land(t, s, d)
}

func TestARollbackThatRestoresTheSourcesRollsOnce(t *testing.T) {
	a1, a2, b := config("a", "A=1"), config("a", "A=2"), config("b", "B=1")
	type step func(State) State
	for kind, back := range map[string]func(newer, older State) State{
		"a Deployment whose annotations come back": State.putBackFrom, "any other, and a Deployment that tidemark rolls back": State.patchedFrom,
	} {
		for name, looks := range map[string][3]bool{
			"a look after each write": {true, true, true}, "none in between": {true, false, true}, "a look at the end alone": {false, false, true},
		} {
			t.Run(kind+": "+name, func(t *testing.T) {
				c, rolls := copies{}, 0
				first := c.settled(t, pinned(a1, b))
				s := c.settled(t, c.settled(t, first.then(a2, b).image("pricing:2")))
				template := step(func(s State) State { return back(s, first).pinsFrom(first) })
				sources := step(func(s State) State { return s.then(a1, b) })
				for i, do := range []step{func(s State) State { return s }, template, sources} {
					if s = do(s); looks[i] {
						s = c.looked(t, s, &rolls)
					}
				}
				if rolls != 0 {
					t.Errorf("Tidemark rolled it %d times more than the rollback did", rolls)
				}
				c.check(t, s, nothing(Unchanged), map[string]Object{"a": a1, "b": b})
			})
		}
	}
}

func TestSourcesBeforeTheTemplateWouldRollTwice(t *testing.T) {
	a1, a2 := config("a", "A=1"), config("a", "A=2")
	c, rolls := copies{}, 0
	first := c.settled(t, pinned(a1))
	s := c.settled(t, c.settled(t, first.then(a2).image("pricing:2")))
	c.looked(t, s.then(a1), &rolls)
	if rolls != 1 {
		t.Errorf("the new image was rolled to the old content %d times, want once: then the order would not matter", rolls)
	}
}

// While something is held back, going back between revisions with one stamp looks like a new release by the template alone.
// `tidemark rollback` then marks the record as put back.
func TestARollbackUnderTheSameStampIsNoReleaseWhenTheRecordIsMarked(t *testing.T) {
	a1, a2 := config("a", "A=1"), config("a", "A=2")
	c := copies{}
	first := c.settled(t, pinned(a1))
	sameStamp := c.settled(t, first.image("pricing:2"))
	third := c.settled(t, c.settled(t, sameStamp.then(a2).image("pricing:3")))
	held := c.check(t, third.patchedFrom(sameStamp).pinsFrom(sameStamp), record(RolledBack).held("configmap/a"), map[string]Object{"a": a1})

	again := held.patchedFrom(first).pinsFrom(first)
	c.check(t, again, stamped(NewRelease), map[string]Object{"a": a2})
	again.Intact = false
	c.check(t, again, record(RolledBack).held("configmap/a"), map[string]Object{"a": a1})
}
