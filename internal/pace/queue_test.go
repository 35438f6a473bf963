package pace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func named(ns, name string) Workload { return Workload{Namespace: ns, Name: "deployment/" + name} }

func TestTheQueueGoesRoundTheNamespaces(t *testing.T) {
	q := NewQueue(1)
	for _, w := range []Workload{
		named("big", "a"), named("big", "b"), named("big", "c"), named("big", "d"), named("small", "x"), named("tiny", "y"),
	} {
		q.Ask(w, time.Hour, noon)
	}
	if turn := q.Ask(named("big", "d"), time.Hour, noon); turn.Ahead != 4 || !turn.Until.Equal(at(time.Hour)) {
		t.Errorf("the last one has %d ahead until %s, want 4 until the first slot's end", turn.Ahead, turn.Until)
	}
	if turn := q.Ask(named("tiny", "y"), time.Hour, noon); turn.Ahead != 2 {
		t.Errorf("the one of the third namespace has %d ahead, want one of each before", turn.Ahead)
	}
	var served []Workload
	for holder := []Workload{named("big", "a")}; len(holder) == 1; holder = q.Done(holder[0], noon) {
		served = append(served, holder[0])
	}
	want := []Workload{
		named("big", "a"), named("big", "b"), named("small", "x"), named("tiny", "y"), named("big", "c"), named("big", "d"),
	}
	if diff := cmp.Diff(want, served); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

func TestQueue(t *testing.T) {
	a, b, c := named("n", "a"), named("n", "b"), named("n", "c")
	ask := func(q *Queue, w Workload, now time.Time) bool { return q.Ask(w, time.Minute, now).Granted }
	for name, run := range map[string]func(*testing.T, *Queue){
		"asking again keeps the slot with its end": func(t *testing.T, q *Queue) {
			if !ask(q, a, noon) || !ask(q, a, at(30*time.Second)) {
				t.Fatal("the first one has no slot")
			}
			if turn := q.Ask(b, time.Minute, at(30*time.Second)); turn.Granted || !turn.Until.Equal(at(time.Minute)) {
				t.Errorf("turn %+v, want to wait for the first slot's end", turn)
			}
		},
		"asking again keeps the place": func(t *testing.T, q *Queue) {
			ask(q, a, noon)
			ask(q, b, noon)
			ask(q, c, noon)
			ask(q, b, noon)
			if granted := q.Done(a, noon); !slices.Equal(granted, []Workload{b}) {
				t.Errorf("granted %v, want b", granted)
			}
			if granted := q.Done(b, noon); !slices.Equal(granted, []Workload{c}) {
				t.Errorf("granted %v, want c", granted)
			}
		},
		"a stuck rollout ends at its timeout": func(t *testing.T, q *Queue) {
			ask(q, a, noon)
			ask(q, b, noon)
			if granted, next := q.Expire(at(59 * time.Second)); granted != nil || !next.Equal(at(time.Minute)) {
				t.Errorf("granted %v, next %s, want nobody before the timeout", granted, next)
			}
			granted, next := q.Expire(at(time.Minute))
			if !slices.Equal(granted, []Workload{b}) || !next.IsZero() {
				t.Errorf("granted %v, next %s, want b and nobody waiting", granted, next)
			}
		},
		"who timed out comes after those who wait": func(t *testing.T, q *Queue) {
			ask(q, a, noon)
			ask(q, b, noon)
			if ask(q, a, at(time.Minute)) {
				t.Error("the one that timed out has a slot again, want b first")
			}
			if granted := q.Done(b, at(time.Minute)); !slices.Equal(granted, []Workload{a}) {
				t.Errorf("granted %v after b, want a again", granted)
			}
		},
		"who no longer wants leaves the queue": func(t *testing.T, q *Queue) {
			ask(q, a, noon)
			ask(q, b, noon)
			ask(q, c, noon)
			q.Done(b, noon)
			if granted := q.Done(a, noon); !slices.Equal(granted, []Workload{c}) {
				t.Errorf("granted %v, want c", granted)
			}
		},
		"done is harmless for who is not known": func(t *testing.T, q *Queue) {
			ask(q, a, noon)
			q.Done(c, noon)
			if rolling, waiting := q.Len(); rolling != 1 || waiting != 0 {
				t.Errorf("%d rolling and %d waiting, want 1 and 0", rolling, waiting)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, NewQueue(1)) })
	}
}

func TestAQueueWithoutLimitGrantsAll(t *testing.T) {
	q := NewQueue(0)
	for i := range 100 {
		if !q.Ask(named("n", fmt.Sprint(i)), time.Minute, noon).Granted {
			t.Fatalf("workload %d waits", i)
		}
	}
}

func TestAllFinishAndNoneStarves(t *testing.T) {
	const limit, big, small = 3, 200, 20
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		q, now := NewQueue(limit), noon
		asked := map[Workload]bool{}
		for i := range big {
			asked[named("big", fmt.Sprint(i))] = true
		}
		for i := range small {
			asked[named(fmt.Sprintf("small-%d", i), "only")] = true
		}
		order := slices.SortedFunc(maps.Keys(asked), func(a, b Workload) int { return strings.Compare(a.Namespace+a.Name, b.Namespace+b.Name) })
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		var started []Workload
		for _, w := range order {
			if q.Ask(w, time.Minute, now).Granted {
				started = append(started, w)
			}
		}
		// One in three is stuck: only its timeout ends it.
		for i := 0; i < len(started); i++ {
			if r.IntN(3) > 0 {
				started = append(started, q.Done(started[i], now)...)
			}
			if rolling, _ := q.Len(); rolling > limit {
				t.Fatalf("seed %d: %d roll at the same time, want at most %d", seed, rolling, limit)
			}
			if i == len(started)-1 {
				now = now.Add(time.Minute)
				granted, _ := q.Expire(now)
				started = append(started, granted...)
			}
		}
		if len(started) != len(asked) {
			t.Errorf("seed %d: %d started, want all %d", seed, len(started), len(asked))
		}
		// Each namespace has its first turn within one round of all of them, after the slots given before anyone waited.
		for i, w := range started {
			if w.Namespace != "big" && i > limit+small+1 {
				t.Errorf("seed %d: %s started as number %d, behind more than one round", seed, w.Namespace, i)
			}
		}
	}
}

func TestTheQueueIsSafeForConcurrentUse(t *testing.T) {
	q := NewQueue(2)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			w := named(fmt.Sprint(i%3), fmt.Sprint(i))
			q.Ask(w, time.Minute, noon)
			q.Expire(noon)
			q.Done(w, noon)
		})
	}
	wg.Wait()
	if rolling, waiting := q.Len(); rolling != 0 || waiting != 0 {
		t.Errorf("%d rolling and %d waiting, want none", rolling, waiting)
	}
}
