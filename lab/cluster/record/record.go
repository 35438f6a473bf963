// Package record keeps every container start of one lab.
package record

import (
	"sync"
	"time"

	"tidemark.dev/tidemark/lab/wire"
)

// Store holds starts in the order in which they were made. It never forgets one: a lab is short-lived, and the
// record is what tests are judged by.
type Store struct {
	mu     sync.Mutex
	starts []wire.Start
}

// Append adds a start and returns its sequence number.
func (s *Store) Append(start wire.Start) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	start.Seq = uint64(len(s.starts)) + 1
	s.starts = append(s.starts, start)
	return start.Seq
}

// Finish adds to a start how it ended.
func (s *Store) Finish(seq uint64, at time.Time, code int32, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := &s.starts[seq-1]
	start.Finished, start.ExitCode, start.Message = at, &code, message
}

// Get returns one start.
func (s *Store) Get(seq uint64) wire.Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts[seq-1]
}

// List returns the starts that the filter picks, oldest first.
func (s *Store) List(filter wire.Filter) []wire.Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	picked := []wire.Start{}
	for _, start := range s.starts[min(filter.Since, uint64(len(s.starts))):] {
		if filter.Matches(start.Subject()) {
			picked = append(picked, start)
		}
	}
	return picked
}
