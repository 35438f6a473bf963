package controller

import (
	"sync"
	"time"
)

// recollection is what a controller remembers of one workload between two looks, and may forget at any time: nothing is
// decided on it that would not be decided the same, if later, without it.
type recollection struct {
	// wanted is since when a rollout is wanted; zero when none is.
	wanted time.Time
	// hold is the reason for which a wanted rollout was last said to be held; "" when it is not held.
	hold string
	// rolling says that a stamp was written and the workload has not finished rolling since.
	rolling bool
	// problems are those last said about it.
	problems string
	// written is the resourceVersion on which the last write was decided: until the watch shows another one, the state in
	// the cache is the one before that write.
	written string
	// stampLost says that the last stamp written got lost, and that this was told.
	stampLost bool
	// unrestored is why copies that its template names could not be made again, as it was last told; "" when none lack.
	unrestored string
}

// memory keeps recollections.
type memory struct {
	mu sync.Mutex
	of map[ID]recollection
}

func newMemory() *memory { return &memory{of: map[ID]recollection{}} }

// recall returns what is remembered.
func (m *memory) recall(id ID) recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[id]
}

// change lets the function change what is remembered, and returns it as it was before.
func (m *memory) change(id ID, f func(*recollection)) recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of[id]
	before := r
	f(&r)
	if r == (recollection{}) {
		delete(m.of, id)
	} else {
		m.of[id] = r
	}
	return before
}

// forget forgets all about a workload.
func (m *memory) forget(id ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, id)
}
