package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/kv"
)

// A sequence is a running request: its cells, and the tokens that are not in them yet.
type sequence struct {
	job      *Job
	cells    *kv.Seq
	tokens   []int32   // those in the cells
	pending  []int32   // tokens to evaluate; the last one's logits give the next token
	decoding bool      // the prompt has been evaluated once
	looked   bool      // the cells of earlier sequences have been searched for its beginning
	runs     bool      // it is one of the running ones
	marks    marks     // of tokens and pending together
	behind   *sequence // one before it that is about to evaluate the same beginning,
	wants    int       // and how many tokens of it
	stats    Stats
	started  time.Time // of the current phase, prefill or decode
	next     [1]int32  // backing of pending while decoding
}

// prefills reports whether the sequence has more to evaluate than the token it sampled last.
func (s *sequence) prefills() bool { return !s.decoding || len(s.pending) > 1 }

// pinned reports whether the sequence must keep its cells: evaluating its tokens again would not give the same, or would
// be seen.
func (s *sequence) pinned() bool {
	r := &s.job.request
	return r.Session != nil || r.Logits != nil || r.Hidden != nil
}

// stallLimit is how many turns in a row may pass without a single row before the running requests are failed.
const stallLimit = 64

// loop serves until the engine is closed or gives up.
func (e *Engine) loop() {
	ended := false
	defer func() {
		if !ended { // code of a request has ended the goroutine
			e.restart(fmt.Errorf("%w: the loop's goroutine was ended", ErrInternal))
			go e.loop()
			return
		}
		close(e.done)
	}()
	for faults := 0; ; {
		more, err := e.turn()
		switch {
		case err == nil && !more:
			ended = true
			return
		case err == nil:
			faults = 0
			continue
		}
		e.restart(err)
		if faults++; faults == faultLimit {
			ended = true
			e.giveUp(err)
			return
		}
	}
}

// turn runs a step, with all that comes between two, or waits for work. more is false when the engine is closed and nothing
// is left. The error is a panic that nobody below has contained, or says that there is no progress.
func (e *Engine) turn() (more bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	e.answer()
	e.sweep()
	e.admit()
	e.publish()
	if len(e.running) == 0 {
		if e.isClosed() {
			e.refuseQueue(ErrClosed)
			return false, nil
		}
		e.rest()
		return true, nil
	}
	e.reap()
	if len(e.running) > 0 {
		err = e.step()
	}
	if debugChecks && err == nil {
		err = e.arena.Check(e.holders())
	}
	return true, err
}

// rest waits for work. Queued requests that cannot start yet are looked at again when their time runs out.
func (e *Engine) rest() {
	var timeout <-chan time.Time
	if at, ok := e.nextDeadline(); ok {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-e.wake:
	case <-timeout:
	}
}

func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// reap ends sequences whose caller has gone, and all of them when the engine is closed.
func (e *Engine) reap() {
	e.reach(atReap)
	closed := e.isClosed()
	for i := len(e.running) - 1; i >= 0; i-- {
		s := e.running[i]
		if closed {
			e.finish(s, ReasonFailure, ErrClosed)
		} else if err := context.Cause(s.job.ctx); err != nil {
			e.finish(s, ReasonCancel, err)
		}
	}
}

// leave takes a sequence out of the running ones.
func (e *Engine) leave(s *sequence) {
	s.runs = false
	if i := slices.Index(e.running, s); i >= 0 {
		e.running = slices.Delete(e.running, i, i+1)
	}
}

// finish ends a sequence's job. Its cells go to its session or are kept for later requests that begin alike.
func (e *Engine) finish(s *sequence, r Reason, err error) {
	if s.job.over {
		return
	}
	e.leave(s)
	if s.decoding {
		s.stats.Decode = time.Since(s.started)
	} else {
		s.stats.Prefill = time.Since(s.started)
	}
	defer e.guard(s) // the reply is whole, but its end is not what was asked for
	e.reach(atFinish)
	switch session := s.job.request.Session; {
	case session != nil:
		session.leave(s)
	case r == ReasonFailure:
		s.cells.Free()
	default:
		s.cells.Truncate(len(s.tokens))
		e.reach(atKeep)
		e.prefixes.keep(s.tokens, s.cells)
		e.reach(atKept)
	}
	e.end(s.job, s.stats, r, err)
}

// end tells a job's reader how it ended, once.
func (e *Engine) end(j *Job, stats Stats, r Reason, err error) {
	if j.over {
		return
	}
	j.over = true
	e.count(&stats, r)
	j.end(r, stats, err)
}

// step composes, runs and delivers one step. A failure of the step ends the requests in it; the engine goes on. The error
// says that there has been no progress for long.
func (e *Engine) step() error {
	params := e.compose()
	if len(e.batch.Tokens) == 0 {
		if e.stalled++; e.stalled >= stallLimit {
			e.counters.stalled()
			return fmt.Errorf("%w: no progress in %d turns", ErrInternal, stallLimit)
		}
		return nil
	}
	e.stalled = 0
	logits, err := e.compute(params)
	if errors.Is(err, backend.ErrStopped) {
		e.reap()
		return nil
	}
	if err != nil {
		for _, p := range e.plan {
			e.finish(p.seq, ReasonFailure, err)
		}
		return nil
	}
	row := 0
	for _, p := range e.plan {
		e.advance(p, logits, row)
		row += p.outputs
	}
	return nil
}

// abandoned reports whether nobody waits for the step that runs: the caller of every sequence in it has gone.
func (e *Engine) abandoned() bool {
	for _, p := range e.plan {
		if p.seq.job.ctx.Err() == nil {
			return false
		}
	}
	return true
}

// compute runs the composed batch.
func (e *Engine) compute(params stepParams) (logits backend.Logits, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	e.reach(atCompute)
	program, err := e.program(e.params(len(e.batch.Tokens), len(e.batch.OutRows), params.phase, params.hidden))
	if err != nil {
		return backend.Logits{}, err
	}
	return program.Run(&e.batch)
}

// advance takes a sequence past its rows of the step: deliver, sample, and decide whether it goes on. A panic in code of
// the request's own ends that request alone.
func (e *Engine) advance(p portion, logits backend.Logits, row int) {
	s := p.seq
	defer func() {
		if r := recover(); r != nil {
			e.finish(s, ReasonFailure, panicked(r))
		}
	}()
	e.reach(atAdvance)
	r := &s.job.request
	s.tokens = append(s.tokens, s.pending[:p.rows]...)
	s.pending = s.pending[p.rows:]
	if report := s.job.report(); report != nil && !s.decoding {
		for i := range p.outputs {
			report(s.cells.Len()-p.rows+i, logits.Row(row+i))
		}
	}
	if len(s.pending) > 0 {
		return
	}
	if !s.decoding {
		now := time.Now()
		s.stats.Prefill, s.started, s.decoding = now.Sub(s.started), now, true
	}
	if r.MaxTokens == 0 {
		e.finish(s, ReasonLength, nil)
		return
	}
	e.sample(s, logits.Row(row+p.outputs-1))
}

// sample draws a sequence's next token from its logits.
func (e *Engine) sample(s *sequence, logits []float32) {
	r := &s.job.request
	id, err := s.job.sampler.Sample(logits, r.Mask)
	if err != nil {
		e.finish(s, ReasonFailure, err)
		return
	}
	t := Token{ID: id}
	if r.Logprobs != nil {
		if t.Top, t.Logprob, err = e.scorer.Score(nil, logits, *r.Logprobs, id); err != nil {
			e.finish(s, ReasonFailure, err)
			return
		}
	}
	s.stats.Generated++
	s.job.sampler.Accept(id)
	if r.IsEnd != nil && r.IsEnd(id) {
		e.finish(s, ReasonStop, nil)
		return
	}
	s.stats.Decode = time.Since(s.started)
	s.job.deliver(t, s.stats)
	if s.stats.Generated == r.MaxTokens || s.cells.Len() == e.options.Context {
		e.finish(s, ReasonLength, nil)
		return
	}
	if m, ok := r.Mask.(accepter); ok {
		if err := m.Accept(id); err != nil {
			e.finish(s, ReasonFailure, err)
			return
		}
	}
	s.next[0] = id
	s.pending = s.next[:]
	s.marks.add(id)
}

// full reports whether an error says that the arena has no cells left.
func full(err error) bool { return errors.Is(err, kv.ErrFull) }
