// Package delay holds container starts back on request.
package delay

import (
	"context"
	"slices"
	"sync"
	"time"

	"tidemark.dev/tidemark/lab/wire"
)

// Table is the set of delays of one lab.
type Table struct {
	mu      sync.Mutex
	delays  []wire.Delay
	changed chan struct{} // closed when delays changes
}

// NewTable returns a table without delays.
func NewTable() *Table { return &Table{changed: make(chan struct{})} }

// Add puts a delay in force, for starts that already wait as well.
func (t *Table) Add(d wire.Delay) {
	t.change(func() { t.delays = append(t.delays, d) })
}

// Clear ends all delays. Starts that wait go on at once.
func (t *Table) Clear() {
	t.change(func() { t.delays = nil })
}

// List returns the delays in force.
func (t *Table) List() []wire.Delay {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]wire.Delay{}, t.delays...)
}

// Holds reports whether any start on the node may be held at the stage.
func (t *Table) Holds(stage wire.Stage, node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.delays, func(d wire.Delay) bool {
		return d.Stage == stage && (d.Node == "" || d.Node == node)
	})
}

// Wait holds the subject for as long as the longest delay that picks it, counted from the call.
func (t *Table) Wait(ctx context.Context, stage wire.Stage, subject wire.Subject) error {
	begun := time.Now()
	for {
		longest, changed := t.longest(stage, subject)
		rest := time.Until(begun.Add(longest))
		if rest <= 0 {
			return nil
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-changed:
			timer.Stop()
		case <-timer.C:
			return nil
		}
	}
}

func (t *Table) longest(stage wire.Stage, subject wire.Subject) (time.Duration, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var longest time.Duration
	for _, d := range t.delays {
		if d.Stage == stage && d.Matches(subject) {
			longest = max(longest, d.Duration)
		}
	}
	return longest, t.changed
}

func (t *Table) change(apply func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	apply()
	close(t.changed)
	t.changed = make(chan struct{})
}
