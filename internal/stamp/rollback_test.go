package stamp

import "testing"

// A history has three states: first was never stamped, second follows a change of object a, third a change of b.
func threeStates(t *testing.T) (first, second, third State) {
	t.Helper()
	first = decided(t, rolls(envFrom("a", "A=1"), envFrom("b", "B=1")))
	second = decided(t, first.then(envFrom("a", "A=2"), envFrom("b", "B=1")))
	third = decided(t, second.then(envFrom("a", "A=2"), envFrom("b", "B=2")))
	return first, second, third
}

func TestDecideOnATemplateThatIsNotTheOneLeft(t *testing.T) {
	first, second, third := threeStates(t)
	vanished := third.putBackFrom(first)
	vanished.Record = nil
	unknown := third.patchedFrom(first)
	unknown.Stamp = "v1-long-ago"
	fresh := func(s State) State {
		s.Revisions = []Revision{{Number: 1}, {Number: 2, Matches: true}}
		return s
	}
	a3 := []Object{envFrom("a", "A=3"), envFrom("b", "B=2")}
	bare := fresh(third)
	bare.Stamp = ""
	for name, tc := range map[string]struct {
		state State
		want  outcome
	}{
		"a Deployment goes back by one":                {third.putBackFrom(second), record(RolledBack).held("configmap/b")},
		"a Deployment goes back to before any stamp":   {third.putBackFrom(first), record(RolledBack).held("configmap/a", "configmap/b")},
		"a Deployment goes back to before the record":  {vanished, record(RolledBack)},
		"a StatefulSet goes back by one":               {third.patchedFrom(second), record(RolledBack).held("configmap/b")},
		"a StatefulSet goes back to before any stamp":  {third.patchedFrom(first), record(RolledBack).held("configmap/a", "configmap/b")},
		"a StatefulSet goes back to an unknown stamp":  {unknown, record(RolledBack)},
		"a rollback with a change at the same time":    {third.putBackFrom(second).then(a3...), record(RolledBack).held("configmap/a", "configmap/b")},
		"a rollback waits for what is missing":         {third.putBackFrom(second).then(envFrom("a").absent(), envFrom("b")), waiting("configmap/a")},
		"a new template without the stamp":             {bare, record(NewTemplate)},
		"a new template without the stamp, and change": {bare.then(a3...), rolled("configmap/a")},
		"a record put back under a new template":       {fresh(third.putBackFrom(first)), record(NewTemplate)},
		"a record removed by hand, with a new template": {func() State {
			s := fresh(third)
			s.Record, s.Intact = nil, false
			return s.then(a3...)
		}(), record(NewTemplate)},
		"revisions do not matter under the stamp left": {func() State {
			s := third
			s.Revisions = []Revision{{Number: 1, Matches: true}, {Number: 2}}
			return s
		}(), nothing(Unchanged)},
	} {
		t.Run(name, func(t *testing.T) {
			after := check(t, tc.state, tc.want)
			if tc.want.Action == WriteRecord && after.Stamp != tc.state.Stamp {
				t.Errorf("stamp %q, want %q: no template write", after.Stamp, tc.state.Stamp)
			}
		})
	}
}

func TestDecideAfterARollback(t *testing.T) {
	a1, a2, b1, b2 := envFrom("a", "A=1"), envFrom("a", "A=2"), envFrom("b", "B=1"), envFrom("b", "B=2")
	first, second, third := threeStates(t)
	for kind, back := range map[string]func(newer, older State) State{
		"Deployment": State.putBackFrom, "StatefulSet": State.patchedFrom,
	} {
		for name, run := range map[string]func(*testing.T, State){
			"it stays held back while nothing changes": func(t *testing.T, s State) {
				check(t, s, nothing(Unchanged).held("configmap/a", "configmap/b"))
			},
			"the old content restored rolls again, as the pods read the newer": func(t *testing.T, s State) {
				s = check(t, s.then(a1, b2), rolled("configmap/a").held("configmap/b"))
				check(t, s.then(a1, b1), rolled("configmap/b"))
			},
			"a new value moves its object alone": func(t *testing.T, s State) {
				check(t, s.then(envFrom("a", "A=3"), b2), rolled("configmap/a").held("configmap/b"))
			},
			"a new release holds nothing back": func(t *testing.T, s State) {
				check(t, s.image("pricing:2"), record(NewRelease))
			},
			"a new release with new content holds nothing back": func(t *testing.T, s State) {
				check(t, s.then(envFrom("a", "A=3"), b2).image("pricing:2"), rolled("configmap/a"))
			},
			"another reference keeps what is held back": func(t *testing.T, s State) {
				check(t, s.then(a2, b2, envFrom("c")), record(TemplateEdited).held("configmap/a", "configmap/b"))
			},
			"a held reference that goes is forgotten": func(t *testing.T, s State) {
				check(t, s.then(b2), record(TemplateEdited).held("configmap/b"))
			},
			"forward again holds nothing back": func(t *testing.T, s State) {
				check(t, back(s, third), record(RolledBack))
			},
			"back to the one between holds one back": func(t *testing.T, s State) {
				check(t, back(s, second), record(RolledBack).held("configmap/b"))
			},
			"forward and back again is as before": func(t *testing.T, s State) {
				forward := decided(t, back(s, third))
				check(t, back(forward, s), record(RolledBack).held("configmap/a", "configmap/b"))
			},
			"what is held back waits with the rest": func(t *testing.T, s State) {
				check(t, s.then(a2.absent(), b2), waiting("configmap/a").held("configmap/a", "configmap/b"))
			},
			"what is held back and now reloads by itself is not, while another waits": func(t *testing.T, s State) {
				check(t, s.then(a2.live(), b2.absent()), waiting("configmap/b").held("configmap/b"))
			},
			"what is held back and now reloads by itself is not": func(t *testing.T, s State) {
				check(t, s.then(a2.live(), b2), record(TemplateEdited).held("configmap/b"))
			},
		} {
			t.Run(kind+": "+name, func(t *testing.T) { run(t, decided(t, back(third, first))) })
		}
	}
}

func TestARestoredContentRollsUnderAnEqualDigest(t *testing.T) {
	s := decided(t, rolls(envFrom("a", "A=1")))
	two := decided(t, s.then(envFrom("a", "A=2")))
	three := decided(t, two.then(envFrom("a", "A=3")))
	back := decided(t, three.putBackFrom(two))
	after := check(t, back.then(envFrom("a", "A=2")), rolled("configmap/a"))
	if after.Stamp != two.Stamp+".2" {
		t.Errorf("stamp %q, want %q with a counter", after.Stamp, two.Stamp)
	}
}
