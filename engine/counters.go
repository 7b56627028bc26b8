package engine

import (
	"sync"

	"github.com/minfer-go/minfer/kv"
)

// Counters are what the engine has done and holds, for metrics.
type Counters struct {
	Queued    int            // requests that wait to start, those that gave way included
	Running   int            // requests with rows in steps
	Ended     map[Reason]int // requests by how they ended
	Prompt    int            // prompt tokens of ended requests
	Cached    int            // of them found in the cells
	Generated int            // tokens of ended requests
	GaveWay   int            // times that a request lost its cells to an earlier one
	Stalled   int            // times that nothing progressed and the running requests were failed
	Faults    int            // panics outside of a step and of a request's own code
	Programs  int            // compiled programs kept
	Cells     kv.Stats
}

// counters is the state behind Counters. The loop writes, anybody reads.
type counters struct {
	mu      sync.Mutex
	c       Counters
	waiting int  // of c.Queued, those that gave way
	looked  bool // somebody has read since the arena was counted
}

func (c *counters) stalled() {
	c.mu.Lock()
	c.c.Stalled++
	c.mu.Unlock()
}

func (c *counters) fault() {
	c.mu.Lock()
	c.c.Faults++
	c.mu.Unlock()
}

func (c *counters) gaveWay() {
	c.mu.Lock()
	c.c.GaveWay++
	c.mu.Unlock()
}

// count adds an ended request.
func (e *Engine) count(s *Stats, r Reason) {
	e.counters.mu.Lock()
	defer e.counters.mu.Unlock()
	c := &e.counters.c
	if c.Ended == nil {
		c.Ended = map[Reason]int{}
	}
	c.Ended[r]++
	c.Prompt += s.Prompt
	c.Cached += s.Cached
	c.Generated += s.Generated
}

// publish refreshes the readings that change from step to step; those of the arena only where somebody has looked since,
// because they take time.
func (e *Engine) publish() {
	e.reach(atPublish)
	e.counters.mu.Lock()
	defer e.counters.mu.Unlock()
	c := &e.counters.c
	c.Running, c.Programs = len(e.running), e.programs.Len()
	e.counters.waiting = len(e.waiting)
	if e.counters.looked || len(e.running) == 0 {
		c.Cells = e.arena.Stats()
		e.counters.looked = false
	}
}

// Counters is a snapshot. The reading of the cells may be a step old.
func (e *Engine) Counters() Counters {
	e.mu.Lock()
	queued := len(e.queue)
	e.mu.Unlock()
	e.counters.mu.Lock()
	defer e.counters.mu.Unlock()
	e.counters.looked = true
	c := e.counters.c
	c.Queued = queued + e.counters.waiting
	c.Ended = make(map[Reason]int, len(e.counters.c.Ended))
	for r, n := range e.counters.c.Ended {
		c.Ended[r] = n
	}
	return c
}
