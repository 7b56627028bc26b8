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
			s := e.waiting[0]
			if !e.fits(s.job, s.pending, len(s.pending)) {
				return
			}
			e.waiting = append(e.waiting[:0], e.waiting[1:]...)
			e.running = append(e.running, s)
			continue
		}
		j := e.head()
		if j == nil {
			return
		}
		r := &j.request
		need := len(r.Prompt) + headroom
		if r.MaxTokens >= 0 {
			need = len(r.Prompt) + min(headroom, r.MaxTokens)
		}
		if context.Cause(j.ctx) == nil && !e.fits(j, r.Prompt, need) {
			return
		}
		e.pop(j)
		e.start(j)
	}
}

// fits reports whether the n cells that a request needs, at most the arena, can be had without taking any from running
// sequences. What those share with its prompt it need not have, what those that keep their cells have still to evaluate is
// taken already.
func (e *Engine) fits(j *Job, prompt []int32, n int) bool {
	if len(e.running) == 0 {
		return true
	}
	left := e.options.Context - e.held()
	for _, s := range e.running {
		if s.pinned() {
			left -= len(s.pending)
		}
	}
	if n = min(n, e.options.Context); left >= n {
		return true
	}
	if e.prefixes.off || e.prefixes.copies || !j.reuses() {
		return false
	}
	shared := 0
	for _, s := range e.running {
		if s.shares() {
			shared = max(shared, common(s.tokens, prompt))
		}
	}
	return left >= n-shared
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

// start makes a sequence of a job.
func (e *Engine) start(j *Job) {
	now := time.Now()
	s := &sequence{job: j, pending: j.request.Prompt, started: now}
	s.stats = Stats{Prompt: len(j.request.Prompt), Queued: now.Sub(j.queued)}
	refuse := func(r Reason, err error) {
		e.count(&s.stats, r)
		j.end(r, s.stats, err)
	}
	if err := context.Cause(j.ctx); err != nil {
		refuse(ReasonCancel, err)
		return
	}
	s.tokens = make([]int32, 0, len(j.request.Prompt)+max(0, min(j.request.MaxTokens, e.options.Context-len(j.request.Prompt))))
	if j.request.Session != nil {
		if err := j.request.Session.enter(s); err != nil {
			refuse(ReasonFailure, err)
			return
		}
	} else {
		s.cells = e.arena.NewSeq()
	}
	e.running = append(e.running, s)
}

// sweep ends what no longer waits: queued requests, and those that gave way, whose caller has gone, and queued requests
// that waited too long.
func (e *Engine) sweep() {
	type ending struct {
		job *Job
		r   Reason
		err error
	}
	var ended []ending
	e.mu.Lock()
	e.queue = slices.DeleteFunc(e.queue, func(j *Job) bool {
		if err := context.Cause(j.ctx); err != nil {
			ended = append(ended, ending{j, ReasonCancel, err})
			return true
		}
		if limit := e.options.QueueTimeout; limit > 0 && time.Since(j.queued) > limit {
			waited := time.Since(j.queued).Round(time.Millisecond)
			ended = append(ended, ending{j, ReasonFailure, fmt.Errorf("%w: waited %s in the queue", ErrBusy, waited)})
			return true
		}
		return false
	})
	e.mu.Unlock()
	for _, x := range ended {
		s := Stats{Prompt: len(x.job.request.Prompt), Queued: time.Since(x.job.queued)}
		e.count(&s, x.r)
		x.job.end(x.r, s, x.err)
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(s *sequence) bool {
		err := context.Cause(s.job.ctx)
		if err != nil {
			s.cells.Free()
			e.count(&s.stats, ReasonCancel)
			s.job.end(ReasonCancel, s.stats, err)
		}
		return err != nil
	})
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
	for i, have := range e.queue {
		if have == j {
			e.queue = append(e.queue[:i], e.queue[i+1:]...)
			return
		}
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
func (e *Engine) refuseQueue() {
	for _, s := range e.waiting {
		s.cells.Free()
		s.job.end(ReasonFailure, s.stats, ErrClosed)
	}
	e.waiting = nil
	e.mu.Lock()
	queue := e.queue
	e.queue = nil
	e.mu.Unlock()
	for _, j := range queue {
		j.end(ReasonFailure, Stats{Prompt: len(j.request.Prompt)}, ErrClosed)
	}
}
