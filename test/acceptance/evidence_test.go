package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"tidemark.dev/tidemark/lab/client/labtest"
)

// TestSoakEvidenceThatIsStatedIsTrue lets things happen at random to config objects, pods, nodes and the controller, looks
// at the status after each, and compares whatever it states as loaded with the lab's record of what was. TIDEMARK_SEED
// chooses what happens, TIDEMARK_STEPS for how long.
func TestSoakEvidenceThatIsStatedIsTrue(t *testing.T) {
	steps := 200
	if os.Getenv("TIDEMARK_SOAK") != "" {
		steps = 5000
	}
	if n := number(t, "TIDEMARK_STEPS"); n > 0 {
		steps = int(n)
	}
	seed := number(t, "TIDEMARK_SEED")
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("TIDEMARK_SEED=%d TIDEMARK_STEPS=%d", seed, steps)

	s := open(t, "evidence", "")
	w := newWorld(s, rand.New(rand.NewPCG(seed, 0)))
	w.start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), labtest.Patience) // the test's own has ended
		defer cancel()
		w.close(ctx)
	})
	s.must(w.controller.HasWatched(t.Context()))
	j := newJudge(w)
	j.install()

	happened := map[string]int{}
	for w.step = 1; w.step <= steps; w.step++ {
		at, what := time.Now().UTC(), w.advance()
		happened[what]++
		w.past = append(w.past, fmt.Sprintf("%s step %d: %s", at.Format(time.StampMilli), w.step, what))
		w.linger()
		j.look()
	}
	for range 3 { // for the statements whose start was not in the record yet
		w.step++
		j.look()
	}
	j.report(happened)
	for kind, enough := range map[string]int{"first start": steps / 2, "restart": steps / 20} {
		if n := j.different(ofLab, kind); n < enough {
			t.Errorf("only %d different facts of a %s were stated, want %d or more: the test proves little", n, kind, enough)
		}
	}
}

// linger mostly does not: some time passes after some of the steps, and rarely enough for calm.
func (w *world) linger() {
	switch n := w.random.IntN(20); {
	case n < 6:
		w.moment(1000)
	case n == 6:
		time.Sleep(4 * time.Second)
	}
}

// number reads a number from the environment; 0 when there is none.
func number(t *testing.T, name string) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
