package fleet

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// worlds is how many random worlds to look at: more of them by request, to look for what is rare.
func worlds(standard uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("TIDEMARK_WORLDS"), 10, 64); err == nil {
		return n
	}
	return standard
}

// TestWhatIsSaidToBeKnownIsTrue lets containers read in many random worlds and compares what is said of them with what they
// truly read.
func TestWhatIsSaidToBeKnownIsTrue(t *testing.T) {
	cases, known, easy, easyKnown := 0, 0, 0, 0
	for seed := range worlds(40000) {
		w := newWorld(rand.New(rand.NewPCG(seed, 26)))
		w.watch(w.states[len(w.states)-1].from.Add(30 * time.Second))
		l, ok := w.run()
		if !ok {
			continue
		}
		cases++
		got := Judge(w.fleet(l))
		loaded := got.Pods[0].Containers[0].Loaded[0]
		if w.easy(l) {
			easy++
			if loaded.Digest != "" {
				easyKnown++
			}
		}
		if loaded.Digest == "" {
			if got.Verdict != Unknown && got.Verdict != Waiting && got.Verdict != Rolling {
				t.Fatalf("seed %d: %s (%s), though it is not known what was loaded", seed, got.Verdict, got.Reason)
			}
			continue
		}
		known++
		applied := w.states[w.stateAt(l.now)].content.Consumed(l.use)
		if want := verdictOf(loaded.Digest == applied); got.Verdict != want && got.Verdict != Waiting && got.Verdict != Rolling {
			t.Fatalf("seed %d: %s, want %s: %s", seed, got.Verdict, want, got.Reason)
		}
		for _, c := range l.read {
			if truth := c.Consumed(l.use); truth != loaded.Digest {
				t.Fatalf("seed %d: said %s, read %s: %s\nuse %+v\npod %+v\nlog %+v", seed,
					loaded.Digest.Short(), truth.Short(), loaded.Why, l.use, l.pod, w.log)
			}
		}
	}
	t.Logf("%d cases, %d%% known; %d with changes far apart, %d%% known", cases, 100*known/cases, easy, 100*easyKnown/easy)
	if 100*easyKnown/easy < 90 {
		t.Errorf("only %d of %d are known where changes are far apart", easyKnown, easy)
	}
	if 100*known/cases < 20 {
		t.Errorf("only %d of %d are known", known, cases)
	}
}

func verdictOf(current bool) Verdict {
	if current {
		return InStep
	}
	return Dormant
}

// easy reports whether nothing stands in the way of knowing: the log covers the pod's life, no change is near, no object
// was immutable.
func (w *world) easy(l life) bool {
	if !w.spaced || !w.diedAt.IsZero() || len(w.log.Versions) == 0 {
		return false
	}
	c := l.pod.Containers[0]
	if c.Restarts > 0 && c.PreviousEnded.IsZero() || l.pod.NodeReadySince.IsZero() || l.pod.NodeReadySince.After(dawn) {
		return false
	}
	first := l.pod.Created
	if c.Restarts > 0 {
		first = c.PreviousEnded
	}
	const far = 3 * time.Minute
	last := c.Started
	if l.reads && l.use.Refreshed {
		first, last = earlier(first, l.now), l.now
	}
	if first.Add(-far).Before(w.log.Versions[0].Seen) || slices.ContainsFunc(w.states, func(s state) bool { return s.immutable }) {
		return false
	}
	for _, s := range w.states {
		if s.from.After(first.Add(-far)) && s.from.Before(last.Add(far)) {
			return false
		}
	}
	for _, v := range w.log.Versions {
		if v.Gap && !v.NotBefore.After(last) && !v.Seen.Before(first.Add(-far)) {
			return false
		}
	}
	return true
}
