package stamp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/workload"
)

// template is the part of a pod template that matters here.
type template struct {
	stamp, image, pins string
	restarted          int // a restart annotation
	second             bool
}

// revision is what a workload's controller retains. A Deployment's keeps the workload's annotations beside the template.
type revision struct {
	Revision
	template   template
	annotation string
}

// model is a workload with its controller, its pods and its configuration.
type model struct {
	mode       Mode
	deployment bool
	// The workload.
	template   template
	annotation string // the record
	label      string // its checksum
	revisions  []revision
	clock      int
	// The configuration, and what the pods loaded of it when they last started.
	content map[string]int
	loaded  map[string]int
	// snapshots are the values that were copied, by name.
	snapshots map[string]int
}

// sync is one round of the workload's controller: a template without a revision gets one, which rolls the pods; the
// revision of one that was there before is numbered anew.
func (m *model) sync() {
	highest := int64(0)
	for _, r := range m.revisions {
		highest = max(highest, r.Number)
	}
	i := slices.IndexFunc(m.revisions, func(r revision) bool { return r.template == m.template })
	switch {
	case i < 0:
		m.revisions = append(m.revisions, revision{
			Revision: Revision{Name: fmt.Sprint(len(m.revisions)), Number: highest + 1, Created: second(m.clock / 2)}, template: m.template,
		})
		i = len(m.revisions) - 1
		m.restart()
	case m.revisions[i].Number < highest:
		m.revisions[i].Number = highest + 1
		m.revisions[i].Renumbered = m.deployment
		m.restart()
	}
	if m.deployment {
		m.revisions[i].annotation = m.annotation
	}
}

// restart makes all pods read what the template names.
func (m *model) restart() {
	m.loaded = map[string]int{}
	pins, _ := snapshot.ParsePins(namespace, m.template.pins)
	for name, value := range m.content {
		if pin := pins[configMap(name)]; pin != "" {
			value = m.snapshots[pin]
		}
		m.loaded[name] = value
	}
}

// undo is kubectl rollout undo.
func (m *model) undo(to revision) {
	m.template = to.template
	if m.deployment {
		m.annotation = to.annotation
	}
}

func (m *model) state(t *testing.T) State {
	t.Helper()
	record, intact, err := Parse(m.annotation, m.label)
	if err != nil {
		t.Fatal(err)
	}
	s := State{
		Namespace: namespace, Mode: m.mode, Record: record, Intact: intact, Marked: m.label != "",
		Stamp: m.template.stamp, Images: []string{m.template.image},
	}
	if s.Pins, err = snapshot.ParsePins(namespace, m.template.pins); err != nil {
		t.Fatal(err)
	}
	for _, name := range m.consumed() {
		o := envFrom(name)
		o.Applied, o.Versioned = contentOf(name, m.content[name]), true
		if pin := s.Pins[o.Use.Object]; pin != "" {
			held := contentOf(name, m.snapshots[pin])
			o.Pinned = &held
		}
		s.Objects = append(s.Objects, o)
	}
	for _, r := range m.revisions {
		r.Matches = r.template == m.template
		s.Revisions = append(s.Revisions, r.Revision)
	}
	return s
}

func contentOf(name string, value int) digest.Content {
	return digest.OfConfigMap(namespace, name, map[string]string{"A": fmt.Sprint(value)}, nil)
}

func (m *model) consumed() []string {
	if m.template.second {
		return []string{"a", "b"}
	}
	return []string{"a"}
}

// reconcile is Tidemark's turn.
func (m *model) reconcile(t *testing.T) Decision {
	t.Helper()
	d := Decide(m.state(t))
	switch d.Action {
	case WriteStamp:
		names := map[workload.Object]string{}
		for _, o := range d.ToCopy() {
			names[o] = snapshot.Name(o, contentOf(o.Name, m.content[o.Name]).Whole(o), 0)
			m.snapshots[names[o]] = m.content[o.Name]
		}
		d = d.Pinned(names)
		m.template.stamp, m.template.pins = d.Stamp, d.Pins.String()
		m.annotation, m.label = Encode(d.Record.Noted(second(m.clock), namespace, d))
	case WriteRecord:
		m.annotation, m.label = Encode(d.Record.Noted(second(m.clock), namespace, d))
	case Nothing:
	}
	return d
}

// behind lists the objects of which the pods run another content than they should: the applied one, or in mode pin, for what
// is held back, another one.
func (m *model) behind(d Decision) []string {
	var out []string
	for _, name := range m.consumed() {
		held := m.mode == Pin && slices.Contains(d.HeldBack, configMap(name))
		if held != (m.loaded[name] != m.content[name]) {
			out = append(out, name)
		}
	}
	return out
}

// gap is the time between two looks of Tidemark. What happens in it is bounded to what Tidemark promises to cope with: no
// object changes twice, as it could change back unseen, and none changes after a rollback or a new reference.
type gap struct {
	happened      []string
	edited, final bool
}

// happen lets something happen to the workload or to its configuration.
func (m *model) happen(r *rand.Rand, g *gap) {
	m.clock++
	what := ""
	switch n := r.IntN(6); {
	case n <= 1 && !g.edited && !g.final:
		name := []string{"a", "b"}[r.IntN(2)]
		m.content[name], g.edited = r.IntN(3), true
		what = fmt.Sprintf("%s := %d", name, m.content[name])
	case n == 2:
		m.template.image = fmt.Sprint("pricing:", r.IntN(2))
		what = "image " + m.template.image
	case n == 3:
		m.template.restarted++
		what = "restart"
	case n == 4:
		m.template.second, g.final = !m.template.second, true
		what = fmt.Sprint("second reference ", m.template.second)
	case n == 5:
		to := m.revisions[r.IntN(len(m.revisions))]
		m.undo(to)
		g.final = true
		what = "undo to revision " + to.Name
	}
	g.happened = append(g.happened, what)
	if r.IntN(2) == 0 { // the workload's controller and Tidemark race
		m.sync()
		g.happened = append(g.happened, "(sync)")
	}
}

// Whatever happens, once Tidemark has seen it the pods run what is applied; and it rolls them only for content that
// changed since it looked last.
func TestEveryChangeRollsOnceAndNothingElseRolls(t *testing.T) {
	for _, mode := range []Mode{Roll, Pin} {
		for _, deployment := range []bool{true, false} {
			t.Run(fmt.Sprint(mode, " deployment ", deployment), func(t *testing.T) {
				for seed := range uint64(60) {
					live(t, mode, deployment, rand.New(rand.NewPCG(seed, 2)))
				}
			})
		}
	}
}

func live(t *testing.T, mode Mode, deployment bool, r *rand.Rand) {
	t.Helper()
	m := &model{
		mode: mode, deployment: deployment, template: template{image: "pricing:0", second: true},
		content: map[string]int{"a": 0, "b": 0}, snapshots: map[string]int{},
	}
	m.sync()
	m.reconcile(t)
	m.sync()
	var log []gap
	for range 50 {
		seen := maps.Clone(m.content)
		var g gap
		for range 1 + r.IntN(3) {
			m.happen(r, &g)
		}
		changed := !maps.Equal(seen, m.content)
		d := m.reconcile(t)
		g.happened = append(g.happened, fmt.Sprint(d.Action, " ", d.Reason, d.Changed, d.HeldBack))
		log = append(log, g)
		// In mode pin a new release moves what was held back, a new reference gets its pin.
		moves := mode == Pin && slices.Contains([]Reason{NewRelease, TemplateEdited, NewTemplate}, d.Reason)
		if d.Action == WriteStamp && !changed && !moves {
			t.Fatalf("stamped without a change of content:\n%v", log)
		}
		m.sync()
		if late := m.behind(d); len(late) > 0 {
			t.Fatalf("the pods never get %v:\n%v", late, log)
		}
		if again := m.reconcile(t); again.Action != Nothing {
			t.Fatalf("then %s, %s, want nothing:\n%v", again.Action, again.Reason, log)
		}
	}
}
