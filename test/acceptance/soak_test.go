package acceptance

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// soaking reports whether this is `make soak`, which plays the long forms.
func soaking() bool { return os.Getenv("TIDEMARK_SOAK") != "" }

// chance gives the seed of a test in which things happen at random, and how many steps it takes: the short number, or its part
// of the long one in `make soak`, where TIDEMARK_SHARDS processes with seeds of their own share the steps. TIDEMARK_STEPS is
// another number.
func chance(t *testing.T, short, long int) (seed uint64, steps int) {
	t.Helper()
	steps = short
	if soaking() {
		shards := max(1, int(number(t, "TIDEMARK_SHARDS")))
		steps = (long + shards - 1) / shards
	}
	if n := number(t, "TIDEMARK_STEPS"); n > 0 {
		steps = int(n)
	}
	seed = chosenSeed(t)
	t.Logf("TIDEMARK_SEED=%d TIDEMARK_STEPS=%d", seed, steps)
	return seed, steps
}

// chosenSeed is TIDEMARK_SEED, or another one each time.
func chosenSeed(t *testing.T) uint64 {
	t.Helper()
	if chosen := number(t, "TIDEMARK_SEED"); chosen != 0 {
		return chosen
	}
	return uint64(time.Now().UnixNano())
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
