package controller

import (
	"strings"
	"sync"
	"time"

	"tidemark.dev/tidemark/internal/pace"
)

// slots bounds how many workloads roll at the same time, in terms of workload IDs.
type slots struct {
	queue   *pace.Queue
	timeout time.Duration

	mu  sync.Mutex
	ids map[pace.Workload]ID
}

func newSlots(limit int, timeout time.Duration) *slots {
	return &slots{queue: pace.NewQueue(limit), timeout: timeout, ids: map[pace.Workload]ID{}}
}

func queued(id ID) pace.Workload {
	return pace.Workload{Namespace: id.Namespace, Name: strings.ToLower(id.GVK.GroupKind().String()) + "/" + id.Name}
}

// ask asks for a slot.
func (s *slots) ask(id ID, now time.Time) pace.Turn {
	w := queued(id)
	s.mu.Lock()
	defer s.mu.Unlock() // over both, or who is gone meanwhile leaves a slot behind that nobody gives back
	s.ids[w] = id
	return s.queue.Ask(w, s.timeout, now)
}

// done ends the workload's slot, or its wait for one, and returns who got a slot by that.
func (s *slots) done(id ID, now time.Time) []ID {
	w := queued(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.ids[w]; !known {
		return nil
	}
	delete(s.ids, w)
	return s.known(s.queue.Done(w, now))
}

func (s *slots) known(workloads []pace.Workload) []ID {
	var ids []ID
	for _, w := range workloads {
		if id, ok := s.ids[w]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// finishRolling gives the workload's slot back when it has rolled, or when it cannot: the others need not wait for a
// person.
func (c *Controller) finishRolling(s *subject) {
	if !c.memory.recall(s.id).rolling {
		return
	}
	if r := c.rollout(s); !r.Done && r.Stuck == "" {
		return
	}
	c.memory.change(s.id, func(r *recollection) { r.rolling = false })
	c.leave(s.id)
}

// leave gives up a workload's slot, or its place in the queue for one.
func (c *Controller) leave(id ID) {
	c.enqueue(c.slots.done(id, c.clock.Now())...)
	c.countRolling()
}

// yield gives up a place in the queue, or a slot that was granted and is not used. A workload that rolls keeps its own.
func (c *Controller) yield(id ID) {
	if !c.memory.recall(id).rolling {
		c.leave(id)
	}
}

func (c *Controller) countRolling() {
	rolling, _ := c.slots.queue.Len()
	c.metrics.rolling.Set(float64(rolling))
}
