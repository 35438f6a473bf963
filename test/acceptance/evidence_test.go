package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/test/scenario"
)

// worlds is how many there are in a short run, with eight workloads each, and soakWorlds in a long one.
const (
	worlds     = 4
	soakWorlds = 6
)

// TestSoakEvidenceThatIsStatedIsTrue lets things happen at random to config objects, pods, nodes and the controller, as near
// to each other as they come, looks at the status after each round, and compares whatever it states as loaded with the lab's
// record of what was.
func TestSoakEvidenceThatIsStatedIsTrue(t *testing.T) {
	l := &land{margins: labMargins, longest: 8}
	c := run(t, l, "close", 200, 5000)
	for kind, enough := range map[string]int{"first start": l.steps / 2, "restart": l.steps / 20} {
		if n := c.different(ofLab, kind); n < enough {
			t.Errorf("only %d different facts of a %s were stated, want %d or more: the test proves little", n, kind, enough)
		}
	}
}

// mostUnknown is the share of statements that may be unknown where steps are apart.
const mostUnknown = 0.02

// TestSoakEvidenceIsKnownWhereStepsAreApart spaces the steps beyond the margins that hold on the lab. Then hardly anything
// may be unknown, except on nodes that were cut off, and nothing of which one content spans the time of the read.
func TestSoakEvidenceIsKnownWhereStepsAreApart(t *testing.T) {
	l := &land{margins: apartMargins, longest: 3, apart: true}
	c := run(t, l, "apart", 20, 500)
	n := c.count[ofLab]
	if share := n.share(n.notKnown()); share > mostUnknown {
		t.Errorf("%.1f %% is not known, want %.1f %% at most", 100*share, 100*mostUnknown)
	}
	if enough := 20 * l.steps; n.known < enough {
		t.Errorf("only %d statements were known, want %d or more: the test proves little", n.known, enough)
	}
}

// run plays one of these tests in namespaces of that name, with so many steps in its short form and its long.
func run(t *testing.T, l *land, name string, short, long int) *court {
	course := courseOf(t, short, long)
	l.wanted, l.happened = course.steps, map[string]int{}
	count := worlds
	if soaking() {
		count = soakWorlds
	}
	l.random = rand.New(rand.NewPCG(course.seed, 0))
	v := venue{t, labtest.Start(t, client.Options{Nodes: nodes})} // whose nodes are soon missed
	if err := scenario.Install(t.Context(), v.lab); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		l.worlds = append(l.worlds, newWorld(v.open(fmt.Sprintf("evidence-%s-%d", name, i+1), ""), l))
	}
	l.start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), labtest.Patience) // the test's own has ended
		defer cancel()
		l.close(ctx)
	})
	l.stage().must(l.program.HasWatched(t.Context()))
	c := newCourt(l)
	for _, j := range c.judges {
		j.install()
	}
	l.linger()
	l.revive()
	for course.goesOn(t, l.steps) {
		l.advance()
		l.linger()
		l.revive()
		c.look()
	}
	for range 3 { // for the statements whose start was not in the record yet
		l.round++
		c.look()
	}
	c.report()
	return c
}
