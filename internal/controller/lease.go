package controller

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"
)

// signs follows the leader Lease: when somebody last gave a sign of life, which bounds the gaps in watching.
type signs struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// renewed is the newest renewal of each holder seen.
	renewed map[string]time.Time
	// heard is when the Lease was last seen renewed, by this process's clock.
	heard time.Time
}

func newSigns(c clock.PassiveClock) *signs { return &signs{clock: c, renewed: map[string]time.Time{}} }

// saw takes a state of the Lease in.
func (s *signs) saw(lease *coordinationv1.Lease) {
	if lease.Spec.RenewTime == nil {
		return
	}
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = s.clock.Now()
	if t := lease.Spec.RenewTime.Time; t.After(s.renewed[holder]) {
		s.renewed[holder] = t
	}
}

// before is the newest renewal by anyone but the holder; zero when there was none.
func (s *signs) before(holder string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest time.Time
	for h, t := range s.renewed {
		if h != holder && t.After(newest) {
			newest = t
		}
	}
	return newest
}

// silence is how long ago the Lease was last seen renewed; 0 when it never was.
func (s *signs) silence() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard.IsZero() {
		return 0
	}
	return s.clock.Since(s.heard)
}
