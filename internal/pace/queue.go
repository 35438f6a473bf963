package pace

import (
	"slices"
	"sync"
	"time"
)

// Workload names a workload to the queue.
type Workload struct {
	Namespace string
	// Name is the workload's within the namespace, with its kind: "deployment/pricing".
	Name string
}

// Queue bounds how many workloads roll at the same time. Slots go round the namespaces that wait, and within a namespace
// to who came first, so that no namespace with many workloads keeps another waiting. It is safe for concurrent use.
//
// A slot ends when the caller says so, or at its timeout: a rollout that is stuck, or whose workload is gone, cannot keep
// the others waiting. It is a bound on load and not on correctness, so it is kept in memory alone.
type Queue struct {
	mu    sync.Mutex
	limit int
	// rolling holds the end of each slot.
	rolling map[Workload]time.Time
	// waiting holds who waits, first come first; ring has the namespaces of waiting in the order of their turns.
	waiting map[string][]place
	ring    []string
}

type place struct {
	workload Workload
	timeout  time.Duration
}

// Turn is the queue's answer.
type Turn struct {
	// Granted says that the workload has a slot and may roll.
	Granted bool
	// Ahead counts the workloads that are served before this one if nobody else comes; 0 when granted.
	Ahead int
	// Until is when to ask again at the latest; zero when granted.
	Until time.Time
}

// NewQueue makes a queue for at most limit workloads at the same time; 0 is no limit.
func NewQueue(limit int) *Queue {
	return &Queue{limit: limit, rolling: map[Workload]time.Time{}, waiting: map[string][]place{}}
}

// Ask asks for a slot that ends after the timeout at the latest, counted from when it is granted. Who is not granted one
// waits in the queue; asking again keeps the place, as it keeps a slot with its end. Slots that timed out are given to
// those whose turn it is, who learn of it when they ask again.
func (q *Queue) Ask(w Workload, timeout time.Duration, now time.Time) Turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, has := q.rolling[w]; !has || !q.rolling[w].After(now) {
		q.enqueue(place{w, timeout})
	}
	q.serve(now)
	if _, granted := q.rolling[w]; granted {
		return Turn{Granted: true}
	}
	return Turn{Ahead: q.ahead(w), Until: q.firstEnd()}
}

// Done ends the workload's slot, or takes it out of the queue, and lists who got a slot by that, in the order of their
// turns. They hold it from now on, so the caller wakes them. It is harmless for a workload that the queue does not know.
func (q *Queue) Done(w Workload, now time.Time) []Workload {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.rolling, w)
	if line, left := q.waiting[w.Namespace], q.position(w); left >= 0 {
		q.setLine(w.Namespace, slices.Delete(line, left, left+1))
	}
	return q.serve(now)
}

// Expire ends the slots that timed out, lists who got a slot by that, and says when the next slot times out that somebody
// waits for; zero when nobody waits.
func (q *Queue) Expire(now time.Time) (granted []Workload, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	granted = q.serve(now)
	if len(q.ring) > 0 {
		next = q.firstEnd()
	}
	return granted, next
}

// Len counts the workloads that hold a slot and those that wait.
func (q *Queue) Len() (rolling, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, line := range q.waiting {
		waiting += len(line)
	}
	return len(q.rolling), waiting
}

func (q *Queue) enqueue(p place) {
	ns := p.workload.Namespace
	if q.position(p.workload) >= 0 {
		return
	}
	if len(q.waiting[ns]) == 0 {
		q.ring = append(q.ring, ns)
	}
	q.waiting[ns] = append(q.waiting[ns], p)
}

// serve ends what timed out and grants what is free.
func (q *Queue) serve(now time.Time) []Workload {
	for w, end := range q.rolling {
		if !end.After(now) {
			delete(q.rolling, w)
		}
	}
	var granted []Workload
	for len(q.ring) > 0 && (q.limit <= 0 || len(q.rolling) < q.limit) {
		ns := q.ring[0]
		first := q.waiting[ns][0]
		q.rolling[first.workload] = now.Add(first.timeout)
		granted = append(granted, first.workload)
		// To the end of the ring, as long as the namespace has more that waits.
		rest := q.waiting[ns][1:]
		q.setLine(ns, nil)
		if len(rest) > 0 {
			q.ring = append(q.ring, ns)
			q.waiting[ns] = rest
		}
	}
	return granted
}

// setLine replaces who waits in a namespace, which leaves the ring when nobody does.
func (q *Queue) setLine(ns string, line []place) {
	if len(line) > 0 {
		q.waiting[ns] = line
		return
	}
	delete(q.waiting, ns)
	q.ring = slices.DeleteFunc(q.ring, func(n string) bool { return n == ns })
}

// position gives the workload's place within its namespace, -1 when it does not wait.
func (q *Queue) position(w Workload) int {
	return slices.IndexFunc(q.waiting[w.Namespace], func(p place) bool { return p.workload == w })
}

// ahead counts who is served before the workload: each namespace of the ring gets as many turns as the workload needs,
// those behind its own one less.
func (q *Queue) ahead(w Workload) int {
	position, turn := q.position(w), slices.Index(q.ring, w.Namespace)
	count := 0
	for i, ns := range q.ring {
		turns := position
		if i < turn {
			turns++
		}
		count += min(turns, len(q.waiting[ns]))
	}
	return count
}

// firstEnd gives the earliest end of a slot.
func (q *Queue) firstEnd() time.Time {
	var first time.Time
	for _, end := range q.rolling {
		if first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}
