package stamp

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/workload"
)

// outcome is a decision in the words of the tables.
type outcome struct {
	Action                     Action
	Reason                     Reason
	Changed, HeldBack, Missing []string
}

func outcomeOf(d Decision) outcome {
	relative := func(objects []workload.Object) (names []string) {
		for _, o := range objects {
			names = append(names, o.Relative(namespace))
		}
		return names
	}
	out := outcome{Action: d.Action, Reason: d.Reason, Changed: relative(d.Changed), HeldBack: relative(d.HeldBack)}
	for _, m := range d.Missing {
		name := m.Object.Relative(namespace)
		if m.Key != "" {
			name += " " + m.Key
		}
		out.Missing = append(out.Missing, name)
	}
	return out
}

// check decides, compares with what is wanted, and checks what holds after every decision.
func check(t *testing.T, s State, want outcome) State {
	t.Helper()
	d := Decide(s)
	if diff := cmp.Diff(want, outcomeOf(d)); diff != "" {
		t.Fatalf("decision (-want +got):\n%s", diff)
	}
	if d.Action == WriteStamp && (d.Stamp == s.Stamp || d.Stamp == "" || d.Record.Stamp != d.Stamp) {
		t.Errorf("stamp %q on %q with %q in the record, want a new one in both", d.Stamp, s.Stamp, d.Record.Stamp)
	}
	for _, e := range d.Record.Earlier {
		if e.Stamp == d.Record.Stamp {
			t.Errorf("stamp %q is listed as an earlier one of itself", e.Stamp)
		}
	}
	after := carry(t, s, d)
	if again := Decide(after); again.Action != Nothing {
		t.Errorf("decided again: %s, %s, want nothing", again.Action, again.Reason)
	}
	return after
}

func nothing(r Reason) outcome { return outcome{Action: Nothing, Reason: r} }

func record(r Reason) outcome { return outcome{Action: WriteRecord, Reason: r} }

func rolled(changed ...string) outcome {
	return outcome{Action: WriteStamp, Reason: ContentChanged, Changed: changed}
}

func (o outcome) held(names ...string) outcome {
	o.HeldBack = names
	return o
}

func waiting(missing ...string) outcome {
	return outcome{Action: Nothing, Reason: Waiting, Missing: missing}
}

func TestDecideOnAWorkloadNeverSeenBefore(t *testing.T) {
	observed := rolls(envFrom("a", "A=1"))
	observed.Mode = Observe
	strange := observed
	strange.Mode = "pin-all"
	stamped := rolls(envFrom("a", "A=1"))
	stamped.Stamp = "v1-of-another-cluster"
	bothWays := envFrom("a").binary("A=1").envKeys("A").with(func(c *workload.Consumption) { c.Files = all() })
	eitherWay := envFrom("a").binary("A=1").envKeys("A").with(func(c *workload.Consumption) { c.Env = all() })
	for name, tc := range map[string]struct {
		state State
		want  outcome
	}{
		"mode observe writes nothing":                       {observed, nothing(Observed)},
		"a mode that is not known writes nothing":           {strange, nothing(Observed)},
		"the baseline is noted, and nothing rolls":          {rolls(envFrom("a", "A=1")), record(FirstRecord)},
		"a stamp from elsewhere is taken as it is":          {stamped, record(FirstRecord)},
		"a workload that consumes nothing gets no record":   {rolls(), nothing(Unchanged)},
		"what reloads by itself needs no record":            {rolls(envFrom("a", "A=1").live()), nothing(Unchanged)},
		"an object of which no key is read needs no record": {rolls(envFrom("a", "A=1").mounted(keys())), nothing(Unchanged)},
		"a key that no object can have needs no record":     {rolls(envFrom("a", "A=1").mounted(keys("*")).optional()), nothing(Unchanged)},
		"a missing object waits, without a record":          {rolls(envFrom("a").absent(), envFrom("b")), waiting("configmap/a")},
		"a missing key waits":                               {rolls(envFrom("a", "A=1").envKeys("A", "B")), waiting("configmap/a B")},
		"all that is missing is listed, in order":           {rolls(envFrom("c").absent(), envFrom("b").absent(), envFrom("a").envKeys("X", "Y")), waiting("configmap/a X", "configmap/a Y", "configmap/b", "configmap/c")},
		"a variable does not find its key in binaryData":    {rolls(envFrom("a").binary("A=1").envKeys("A")), waiting("configmap/a A")},
		"nor where files show the key as well":              {rolls(bothWays), waiting("configmap/a A")},
		"nor where another reads all into the environment":  {rolls(eitherWay), waiting("configmap/a A")},
		"a file finds its key in binaryData":                {rolls(envFrom("a").binary("A=1").mounted(keys("A"))), record(FirstRecord)},
		"a missing optional object is a baseline":           {rolls(envFrom("a").absent().optional()), record(FirstRecord)},
		"a missing object that is live is not waited for":   {rolls(envFrom("a").absent().live(), envFrom("b")), record(FirstRecord)},
	} {
		t.Run(name, func(t *testing.T) {
			after := check(t, tc.state, tc.want)
			if after.Stamp != tc.state.Stamp {
				t.Errorf("stamp %q, want %q as before", after.Stamp, tc.state.Stamp)
			}
		})
	}
}

func TestDecideOnWhatChangedSince(t *testing.T) {
	key, other := testKey(t, "k"), testKey(t, "o")
	a1, a2 := envFrom("a", "A=1"), envFrom("a", "A=2")
	named := func(o Object) Object {
		o = o.mounted(all()).optional()
		o.Use.Named = true
		return o
	}
	for name, tc := range map[string]struct {
		before, after []Object
		want          outcome
	}{
		"nothing":                                       {[]Object{a1}, []Object{a1}, nothing(Unchanged)},
		"a value of an environment":                     {[]Object{a1}, []Object{a2}, rolled("configmap/a")},
		"three objects in one rollout":                  {[]Object{envFrom("c"), envFrom("b"), a1}, []Object{a2, envFrom("b", "X=1"), envFrom("c", "X=1")}, rolled("configmap/a", "configmap/b", "configmap/c")},
		"one of two objects":                            {[]Object{a1, envFrom("b")}, []Object{a1, envFrom("b", "X=1")}, rolled("configmap/b")},
		"a key that is read":                            {[]Object{a1.envKeys("A")}, []Object{a2.envKeys("A")}, rolled("configmap/a")},
		"a key that is not read":                        {[]Object{a1.envKeys("A")}, []Object{envFrom("a", "A=1", "B=1").envKeys("A")}, nothing(Unchanged)},
		"a file that is not read":                       {[]Object{a1.mounted(keys("A"))}, []Object{envFrom("a", "A=1", "B=1").mounted(keys("A"))}, nothing(Unchanged)},
		"binaryData under files":                        {[]Object{a1.mounted(all())}, []Object{a1.binary("B=1").mounted(all())}, rolled("configmap/a")},
		"binaryData under an environment":               {[]Object{a1}, []Object{a1.binary("B=1")}, nothing(Unchanged)},
		"a value moved from data to binaryData":         {[]Object{a1.mounted(all())}, []Object{envFrom("a").binary("A=1").mounted(all())}, nothing(Unchanged)},
		"an object named by annotation":                 {[]Object{named(a1)}, []Object{named(a2)}, rolled("configmap/a")},
		"an optional object appears":                    {[]Object{a1.absent().optional()}, []Object{a1.optional()}, rolled("configmap/a")},
		"an optional object goes":                       {[]Object{a1.optional()}, []Object{a1.absent().optional()}, rolled("configmap/a")},
		"an optional object appears with other keys":    {[]Object{a1.envKeys("B").absent().optional()}, []Object{a1.envKeys("B").optional()}, nothing(Unchanged)},
		"an optional object goes that had other keys":   {[]Object{a1.mounted(keys("B")).optional()}, []Object{a1.mounted(keys("B")).absent().optional()}, nothing(Unchanged)},
		"an optional object appears with nothing in it": {[]Object{a1.absent().optional()}, []Object{envFrom("a").optional()}, nothing(Unchanged)},
		"an object of which no key is read appears":     {[]Object{a1, envFrom("b").absent().mounted(keys()).optional()}, []Object{a1, envFrom("b").mounted(keys()).optional()}, nothing(Unchanged)},
		"a required object goes":                        {[]Object{a1}, []Object{a1.absent()}, waiting("configmap/a")},
		"a required key goes":                           {[]Object{a1.envKeys("A")}, []Object{envFrom("a").envKeys("A")}, waiting("configmap/a A")},
		"another object changes while one waits":        {[]Object{a1, envFrom("b")}, []Object{a2, envFrom("b").absent()}, waiting("configmap/b")},
		"what reloads by itself":                        {[]Object{a1.live(), envFrom("b")}, []Object{a2.live(), envFrom("b")}, nothing(Unchanged)},
		"a reference to come":                           {[]Object{a1}, []Object{a1, envFrom("b")}, record(TemplateEdited)},
		"a reference to come, beside a change":          {[]Object{a1}, []Object{a2, envFrom("b")}, rolled("configmap/a")},
		"a reference to go":                             {[]Object{a1, envFrom("b")}, []Object{a1}, record(TemplateEdited)},
		"the last reference to go":                      {[]Object{a1}, nil, record(TemplateEdited)},
		"an object that now reloads by itself":          {[]Object{a1, envFrom("b")}, []Object{a2.live(), envFrom("b")}, record(TemplateEdited)},
		"a key more, nothing else":                      {[]Object{envFrom("a", "A=1", "B=1").envKeys("A")}, []Object{envFrom("a", "A=1", "B=1").envKeys("A", "B")}, record(TemplateEdited)},
		"a key more, with the known one changed":        {[]Object{envFrom("a", "A=1", "B=1").envKeys("A")}, []Object{envFrom("a", "A=2", "B=1").envKeys("A", "B")}, rolled("configmap/a")},
		"a key less, and its value":                     {[]Object{envFrom("a", "A=1", "B=1").envKeys("A", "B")}, []Object{envFrom("a", "A=1", "B=2").envKeys("A")}, record(TemplateEdited)},
		"from environment to files":                     {[]Object{a1}, []Object{a2.mounted(all())}, record(TemplateEdited)},
		"all keys to one, unchanged":                    {[]Object{envFrom("a", "A=1", "B=1")}, []Object{envFrom("a", "A=1", "B=1").envKeys("A")}, record(TemplateEdited)},
		"all keys to one, and another key's value":      {[]Object{envFrom("a", "A=1", "B=1")}, []Object{envFrom("a", "A=1", "B=2").envKeys("A")}, rolled("configmap/a")},
		"one key to all, unchanged":                     {[]Object{a1.envKeys("A")}, []Object{a1}, record(TemplateEdited)},
		"one key to all, and the key's value":           {[]Object{a1.envKeys("A")}, []Object{a2}, rolled("configmap/a")},
		"one key to all, and another key's value":       {[]Object{envFrom("a", "A=1", "B=1").envKeys("A")}, []Object{envFrom("a", "A=1", "B=2")}, record(TemplateEdited)},
		"a secret":                                 {[]Object{secretFrom(key, "P=1")}, []Object{secretFrom(key, "P=2")}, rolled("secret/s")},
		"the key of the digests":                   {[]Object{secretFrom(key, "P=1")}, []Object{secretFrom(other, "P=1")}, record(NewBaseline)},
		"the key of the digests, with a secret":    {[]Object{secretFrom(key, "P=1")}, []Object{secretFrom(other, "P=2")}, record(NewBaseline)},
		"the key of the digests, with a ConfigMap": {[]Object{secretFrom(key, "P=1"), a1}, []Object{secretFrom(other, "P=1"), a2}, rolled("configmap/a")},
		"the key of the digests, with a reference": {[]Object{secretFrom(key, "P=1")}, []Object{secretFrom(other, "P=1"), a1}, record(TemplateEdited)},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, decided(t, rolls(tc.before...)).then(tc.after...), tc.want)
		})
	}
}

func TestDecideOverTime(t *testing.T) {
	a1, a2, a3 := envFrom("a", "A=1"), envFrom("a", "A=2"), envFrom("a", "A=3")
	for name, run := range map[string]func(*testing.T){
		"a change and back before anything was written rolls nothing": func(t *testing.T) {
			s := decided(t, rolls(a1))
			Decide(s.then(a2))
			check(t, s.then(a1), nothing(Unchanged))
		},
		"a stamp that an earlier revision had does not come back": func(t *testing.T) {
			s := check(t, decided(t, rolls(a1)).then(a2), rolled("configmap/a"))
			first := s.Stamp
			s = check(t, s.then(a3), rolled("configmap/a"))
			s = check(t, s.then(a2), rolled("configmap/a"))
			if s.Stamp != first+".2" {
				t.Errorf("stamp %q, want %q with a counter", s.Stamp, first)
			}
		},
		"what was missing comes back as it was": func(t *testing.T) {
			s := check(t, decided(t, rolls(a1)).then(a1.absent()), waiting("configmap/a"))
			check(t, s.then(a1), nothing(Unchanged))
		},
		"what was missing comes back with other content": func(t *testing.T) {
			s := check(t, decided(t, rolls(a1)).then(a1.absent()), waiting("configmap/a"))
			check(t, s.then(a2), rolled("configmap/a"))
		},
		"what changed while another was missing rolls when it is back": func(t *testing.T) {
			s := check(t, decided(t, rolls(a1, envFrom("b"))).then(a2, envFrom("b").absent()), waiting("configmap/b"))
			check(t, s.then(a2, envFrom("b")), rolled("configmap/a"))
		},
		"what changed while only observed rolls once afterwards": func(t *testing.T) {
			s := decided(t, rolls(a1)).then(a2)
			s.Mode = Observe
			s = check(t, s, nothing(Observed)).then(a3)
			s.Mode = Roll
			check(t, s, rolled("configmap/a"))
		},
		"a reference that returns is a new one": func(t *testing.T) {
			s := check(t, decided(t, rolls(a1)).then(), record(TemplateEdited))
			s = check(t, s.image("pricing:2"), nothing(Unchanged))
			check(t, s.then(a2), record(NewRelease))
		},
		"new images are a new release": func(t *testing.T) {
			s := check(t, decided(t, rolls(a1)).image("pricing:2"), record(NewRelease))
			check(t, s.image("pricing:1"), record(NewRelease))
		},
		"new images with new content roll for the content": func(t *testing.T) {
			check(t, decided(t, rolls(a1)).then(a2).image("pricing:2"), rolled("configmap/a"))
		},
		"every write ends a hold": func(t *testing.T) {
			s := decided(t, rolls(a1))
			held := s.Record.WithHold(HoldStorm, second(1))
			s = carry(t, s, Decision{Action: WriteRecord, Record: held})
			check(t, s, nothing(Unchanged))
			if s = check(t, s.then(a2), rolled("configmap/a")); s.Record.Hold != nil {
				t.Error("still held after the rollout")
			}
		},
		"what is noted calls for no write": func(t *testing.T) {
			s := decided(t, rolls(a1)).then(a2)
			d := Decide(s)
			d.Record = d.Record.Noted(second(1), namespace, d)
			s = check(t, carry(t, s, d), nothing(Unchanged))
			if d = Decide(s.then(a3)); len(d.Record.Rolls) != 1 || d.Record.Last == nil {
				t.Errorf("record %+v, want what was noted kept", d.Record)
			}
		},
		"a record that lost its checksum gets it again": func(t *testing.T) {
			s := decided(t, rolls(a1))
			s.Intact, s.Marked = false, false
			check(t, s, record(NewBaseline))
		},
		"a record that lost its checksum still tells of a change": func(t *testing.T) {
			s := decided(t, rolls(a1)).then(a2)
			s.Intact, s.Marked = false, false
			check(t, s, rolled("configmap/a"))
		},
		"a change that a fold covers is seen, and an unread key is not": func(t *testing.T) {
			var names []string
			for i := range 700 {
				names = append(names, string(rune('A'+i/26%26))+string(rune('A'+i%26))+string(rune('A'+i/676)))
			}
			wide := func(first string) Object {
				return envFrom("a", append([]string{names[0] + "=" + first, "other=" + first}, names[1:]...)...).mounted(keys(names...))
			}
			s := decided(t, rolls(wide("1")))
			if n := len(s.Record.Objects["configmap/a"].Baseline); n != 1 {
				t.Fatalf("%d parts, want one fold", n)
			}
			unread := envFrom("a", append([]string{names[0] + "=1", "other=2"}, names[1:]...)...).mounted(keys(names...))
			s = check(t, s.then(unread), nothing(Unchanged))
			s = check(t, s.then(wide("2")), rolled("configmap/a"))
			// A list with one key less is another fold: it cannot be told what changed, and the new template rolled by itself.
			check(t, s.then(wide("3").mounted(keys(names[1:]...))), record(TemplateEdited))
		},
		"a fold of a Secret is of one list of keys": func(t *testing.T) {
			key, names := testKey(t, "a"), numbered(700)
			wide := func(n int) Object { return secretFrom(key, names...).envKeys(names[:n]...) }
			s := decided(t, rolls(wide(699)))
			if n := len(s.Record.Objects["secret/s"].Baseline); n != 1 {
				t.Fatalf("%d parts, want one fold", n)
			}
			s = check(t, s.then(wide(700)), record(TemplateEdited))
			changed := secretFrom(key, append(names[1:], names[0]+"=2")...).envKeys(names...)
			check(t, s.then(changed), rolled("secret/s"))
		},
		"a fold that does not say of which list rolls nothing": func(t *testing.T) {
			key, names := testKey(t, "a"), numbered(700)
			s := decided(t, rolls(secretFrom(key, names...).envKeys(names[:699]...)))
			for _, sum := range s.Record.Objects["secret/s"].Baseline { // the only one, named as older records name it
				s.Record.Objects["secret/s"] = ObjectRecord{Baseline: map[string]digest.Digest{"env:#": sum}}
			}
			check(t, s, record(TemplateEdited))
			check(t, s.then(secretFrom(key, names...).envKeys(names...)), record(TemplateEdited))
		},
	} {
		t.Run(name, run)
	}
}

// numbered are names of keys.
func numbered(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("KEY_%03d", i))
	}
	return names
}
