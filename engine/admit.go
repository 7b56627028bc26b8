package engine

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// headroom is how many cells beyond its prompt a request should find before it starts, so that it does not have to give
// way at once.
const headroom = 64

// admit starts requests in order while there are places and cells: first those that had to give way, then the queue.
func (e *Engine) admit() {
	for len(e.running) < e.options.Sequences {
		if len(e.waiting) > 0 {
			if !e.resume(e.waiting[0]) {
				return
			}
			continue
		}
		if j := e.head(); j == nil || !e.start(j) {
			return
		}
	}
}

// resume lets a sequence that gave way run again, if its cells can be had.
func (e *Engine) resume(s *sequence) bool {
	defer e.guard(s)
	if !e.fits(s, len(s.pending)) {
		return false
	}
	e.waiting = slices.Delete(e.waiting, 0, 1)
	e.running, s.runs = append(e.running, s), true
	return true
}

// fits reports whether the n cells that q needs, at most the arena, can be had without taking any from running
// sequences. What those share with its prompt it need not have, what those that keep their cells have still to evaluate is
// taken already.
func (e *Engine) fits(q *sequence, n int) bool {
	e.reach(atFits)
	if len(e.running) == 0 {
		return true
	}
	taken, most, least := 0, e.arena.Free()+e.prefixes.tokens, e.options.Context // bounds of what is not held
	for _, s := range e.running {
		if s.pinned() {
			taken += len(s.pending)
		}
		least -= s.cells.Len()
	}
	for _, s := range e.sessions {
		if s.user == nil {
			most += s.cells.Len()
		}
	}
	if e.saving != nil {
		for _, p := range e.saving.prefixes {
			most += len(p.tokens)
		}
	}
	n = min(n, e.options.Context) + taken
	if max(least, e.arena.Free()) >= n {
		return true
	}
	shared := 0
	if !e.prefixes.off && !e.prefixes.copies && q.job.reuses() {
		for _, s := range e.running {
			if s.shares() && len(s.tokens) > shared {
				shared = max(shared, min(s.alike(q.pending, q.marks.at), len(s.tokens)))
			}
		}
	}
	return most >= n-shared && e.options.Context-e.held() >= n-shared
}

// held counts the cells of running sequences, those that several share once.
func (e *Engine) held() int {
	if e.marked == nil {
		e.marked = make([]uint64, e.options.Context)
	}
	e.mark++
	n := 0
	for _, s := range e.running {
		for _, c := range s.cells.Cells() {
			if e.marked[c] != e.mark {
				e.marked[c] = e.mark
				n++
			}
		}
	}
	return n
}

// start makes a running sequence of the queue's first job, if its cells can be had, or ends it.
func (e *Engine) start(j *Job) bool {
	if j.waits == nil {
		j.waits = &sequence{job: j, pending: j.request.Prompt, stats: Stats{Prompt: len(j.request.Prompt)}}
		if j.reuses() {
			j.waits.marks.add(j.request.Prompt...)
		}
	}
	s := j.waits
	defer e.guard(s)
	r := &j.request
	need := len(r.Prompt) + headroom
	if r.MaxTokens >= 0 {
		need = len(r.Prompt) + min(headroom, r.MaxTokens)
	}
	gone := context.Cause(j.ctx)
	if gone == nil && !e.fits(s, need) {
		return false
	}
	e.pop(j)
	now := time.Now()
	s.started, s.stats.Queued = now, now.Sub(j.queued)
	if gone != nil {
		e.end(j, s.stats, ReasonCancel, gone)
		return true
	}
	e.reach(atStart)
	s.tokens = make([]int32, 0, len(r.Prompt)+max(0, min(r.MaxTokens, e.options.Context-len(r.Prompt))))
	if r.Session != nil {
		if err := r.Session.enter(s); err != nil {
			e.end(j, s.stats, ReasonFailure, err)
			return true
		}
	} else {
		s.cells = e.arena.NewSeq()
	}
	e.running, s.runs = append(e.running, s), true
	return true
}

// sweep ends what no longer waits: queued requests, and those that gave way, whose caller has gone, and queued requests
// that waited too long.
func (e *Engine) sweep() {
	e.reach(atSweep)
	for _, j := range e.expired() {
		stats := Stats{Prompt: len(j.request.Prompt), Queued: time.Since(j.queued)}
		if err := context.Cause(j.ctx); err != nil {
			e.end(j, stats, ReasonCancel, err)
			continue
		}
		e.end(j, stats, ReasonFailure, fmt.Errorf("%w: waited %s in the queue", ErrBusy, stats.Queued.Round(time.Millisecond)))
	}
	for i := len(e.waiting) - 1; i >= 0; i-- {
		s := e.waiting[i]
		if err := context.Cause(s.job.ctx); err != nil {
			e.waiting = slices.Delete(e.waiting, i, i+1)
			e.finish(s, ReasonCancel, err)
		}
	}
}

// expired takes jobs out of the queue that wait no longer.
func (e *Engine) expired() []*Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ended []*Job
	limit := e.options.QueueTimeout
	e.queue = slices.DeleteFunc(e.queue, func(j *Job) bool {
		over := context.Cause(j.ctx) != nil || limit > 0 && time.Since(j.queued) > limit
		if over {
			ended = append(ended, j)
		}
		return over
	})
	return ended
}

// head is the first queued job; nil if there is none or the engine is closed.
func (e *Engine) head() *Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 || e.closed {
		return nil
	}
	return e.queue[0]
}

// pop takes a job out of the queue.
func (e *Engine) pop(j *Job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.queue, j); i >= 0 {
		e.queue = slices.Delete(e.queue, i, i+1)
	}
}

// nextDeadline is when the first queued job will have waited too long.
func (e *Engine) nextDeadline() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.options.QueueTimeout <= 0 || len(e.queue) == 0 {
		return time.Time{}, false
	}
	return e.queue[0].queued.Add(e.options.QueueTimeout), true
}

// refuseQueue ends what was never started, and what gave way and did not return.
func (e *Engine) refuseQueue(err error) {
	for len(e.waiting) > 0 {
		s := e.waiting[0]
		e.waiting = e.waiting[1:]
		e.finish(s, ReasonFailure, err)
	}
	for _, j := range e.takeQueue() {
		e.end(j, Stats{Prompt: len(j.request.Prompt), Queued: time.Since(j.queued)}, ReasonFailure, err)
	}
}

func (e *Engine) takeQueue() []*Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	queue := e.queue
	e.queue = nil
	return queue
}
