package acceptance

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// soaking reports whether this is `make soak`, which plays the long forms.
func soaking() bool { return os.Getenv("TIDEMARK_SOAK") != "" }

// course is how long a test goes on in which things happen at random.
type course struct {
	seed  uint64
	steps int
	// ends is when it ends after fewer steps; zero for never.
	ends time.Time
	told int
}

// tellEvery is after how many steps a run tells how far it is.
const tellEvery = 200

// courseOf gives the course of a test that takes the short number of steps, or its part of the long one in `make soak`, where
// TIDEMARK_SHARDS processes with seeds of their own share the steps. TIDEMARK_STEPS is another number, and TIDEMARK_FOR a time,
// as in 30m, after which it ends all the same.
func courseOf(t *testing.T, short, long int) *course {
	t.Helper()
	c := &course{steps: short, seed: chosenSeed(t)}
	if soaking() {
		shards := max(1, int(number(t, "TIDEMARK_SHARDS")))
		c.steps = (long + shards - 1) / shards
	}
	if n := number(t, "TIDEMARK_STEPS"); n > 0 {
		c.steps = int(n)
	}
	if text := os.Getenv("TIDEMARK_FOR"); text != "" {
		most, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("TIDEMARK_FOR: %v", err)
		}
		c.ends = time.Now().Add(most)
	}
	t.Logf("TIDEMARK_SEED=%d TIDEMARK_STEPS=%d", c.seed, c.steps)
	return c
}

// goesOn reports whether there is another step after so many, and tells how far a long run is.
func (c *course) goesOn(t *testing.T, done int) bool {
	t.Helper()
	if done >= c.told+tellEvery {
		c.told = done
		t.Logf("%d of %d steps", done, c.steps)
	}
	return done < c.steps && (c.ends.IsZero() || time.Now().Before(c.ends))
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
