package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/kv"
)

// A sequence is a running request: its cells, and the tokens that are not in them yet.
type sequence struct {
	job      *Job
	cells    *kv.Seq
	tokens   []int32 // those in the cells
	pending  []int32 // tokens to evaluate; the last one's logits give the next token
	promised int     // cells that admission set aside
	decoding bool    // the prompt is evaluated
	stats    Stats
	refusal  error     // why it got no cells
	started  time.Time // of the current phase, prefill or decode
	next     [1]int32  // backing of pending while decoding
}

// A portion is what one sequence contributes to a step.
type portion struct {
	seq     *sequence
	rows    int
	outputs int // rows with logits: the last ones
}

// loop serves until the engine is closed.
func (e *Engine) loop() {
	defer close(e.done)
	for {
		e.answer()
		e.admit()
		if len(e.running) == 0 {
			if e.isClosed() {
				e.refuseQueue()
				return
			}
			<-e.wake
			continue
		}
		e.reap()
		if len(e.running) > 0 {
			e.step()
		}
	}
}

func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// refuseQueue ends what was never admitted.
func (e *Engine) refuseQueue() {
	e.mu.Lock()
	queue := e.queue
	e.queue = nil
	e.mu.Unlock()
	for _, j := range queue {
		j.end(ReasonFailure, Stats{Prompt: len(j.request.Prompt)}, ErrClosed)
	}
}

// admit starts queued requests, in order, while there are cells for all that they may need.
func (e *Engine) admit() {
	for len(e.running) < e.options.Sequences {
		e.mu.Lock()
		if len(e.queue) == 0 || e.closed {
			e.mu.Unlock()
			return
		}
		j := e.queue[0]
		need := e.need(&j.request)
		if err := context.Cause(j.ctx); err == nil && e.held+need > e.options.Context {
			e.mu.Unlock()
			return
		}
		e.queue = e.queue[1:]
		e.mu.Unlock()
		now := time.Now()
		s := &sequence{job: j, pending: j.request.Prompt, started: now}
		s.stats = Stats{Prompt: len(j.request.Prompt), Queued: now.Sub(j.queued)}
		if err := context.Cause(j.ctx); err != nil {
			j.end(ReasonCancel, s.stats, err)
			continue
		}
		s.promised = need
		s.tokens = make([]int32, 0, need)
		if j.request.Session != nil {
			if err := j.request.Session.enter(s); err != nil {
				j.end(ReasonFailure, s.stats, err)
				continue
			}
		} else {
			s.cells = e.arena.NewSeq()
			e.reuse(s)
		}
		e.held += need
		e.running = append(e.running, s)
	}
}

// reuse shares the cells of an earlier sequence that begins as this one does. At least the prompt's last token is
// evaluated, for its logits; with a Logits callback every token is.
func (e *Engine) reuse(s *sequence) {
	r := &s.job.request
	if r.Logits != nil || r.Fresh {
		return
	}
	from, n := e.prefixes.longest(r.Prompt, e.running, len(r.Prompt)-1)
	if n == 0 {
		return
	}
	if err := s.cells.SharePrefix(from, n); err != nil {
		return // the prompt is evaluated instead
	}
	s.tokens = append(s.tokens, r.Prompt[:n]...)
	s.pending = r.Prompt[n:]
	s.stats.Cached = n
}

// need is the most cells that a request can use.
func (e *Engine) need(r *Request) int {
	if r.MaxTokens < 0 {
		return e.options.Context
	}
	return min(len(r.Prompt)+r.MaxTokens, e.options.Context)
}

// reap ends sequences whose caller has gone, and all of them when the engine is closed.
func (e *Engine) reap() {
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

// finish frees a sequence and ends its job.
func (e *Engine) finish(s *sequence, r Reason, err error) {
	for i, have := range e.running {
		if have == s {
			e.running = append(e.running[:i], e.running[i+1:]...)
			break
		}
	}
	if session := s.job.request.Session; session != nil {
		session.leave(s)
	} else if r == ReasonFailure {
		s.cells.Free()
	} else {
		s.cells.Truncate(len(s.tokens))
		e.prefixes.keep(s.tokens, s.cells)
	}
	e.held -= s.promised
	if s.decoding {
		s.stats.Decode = time.Since(s.started)
	} else {
		s.stats.Prefill = time.Since(s.started)
	}
	s.job.end(r, s.stats, err)
}

// step composes, runs and delivers one step. A failure ends the requests of the step; the engine goes on.
func (e *Engine) step() {
	defer func() {
		if p := recover(); p != nil {
			e.failAll(fmt.Errorf("%w: %v\n%s", ErrInternal, p, debug.Stack()))
		}
	}()
	phase := e.compose()
	if len(e.batch.Tokens) == 0 {
		return
	}
	program, err := e.program(e.params(len(e.batch.Tokens), len(e.batch.OutRows), phase))
	if err != nil {
		e.failAll(err)
		return
	}
	logits, err := program.Run(&e.batch)
	if err != nil {
		e.failAll(err)
		return
	}
	row := 0
	for _, p := range e.plan {
		e.advance(p, logits, row)
		row += p.outputs
	}
}

// failAll ends the requests of the step.
func (e *Engine) failAll(err error) {
	for _, p := range e.plan {
		if !p.seq.ended() {
			e.finish(p.seq, ReasonFailure, err)
		}
	}
}

func (s *sequence) ended() bool {
	s.job.mu.Lock()
	defer s.job.mu.Unlock()
	return s.job.ended
}

// compose fills the batch: first one token of every decoding sequence, then prompt chunks in order of admission while
// the step has room.
func (e *Engine) compose() graph.Phase {
	b := &e.batch
	b.Tokens, b.Positions, b.Cells, b.OutRows, b.Seqs = b.Tokens[:0], b.Positions[:0], b.Cells[:0], b.OutRows[:0], b.Seqs[:0]
	e.plan = e.plan[:0]
	room, phase := e.options.Batch, graph.Decode
	for _, s := range e.running {
		if s.decoding && room > 0 {
			room -= e.add(s, 1, 1)
		}
	}
	for _, s := range e.running {
		if s.decoding || room == 0 {
			continue
		}
		n := min(room, len(s.pending))
		if s.job.request.Chunk > 0 {
			n = min(n, s.job.request.Chunk)
		}
		outputs := 0
		if s.job.request.Logits != nil {
			outputs = n
		} else if n == len(s.pending) && s.job.request.MaxTokens != 0 {
			outputs = 1
		}
		room -= e.add(s, n, outputs)
		phase = graph.Prefill
	}
	for _, s := range e.refused {
		e.finish(s, ReasonFailure, s.refusal)
	}
	e.refused = e.refused[:0]
	return phase
}

// add appends rows of a sequence to the batch and returns how many. A sequence without cells is left out and remembered
// as refused.
func (e *Engine) add(s *sequence, rows, outputs int) int {
	at := s.cells.Len()
	e.prefixes.release(e.arena, rows)
	e.evict(rows)
	if s.refusal = s.cells.Append(rows); s.refusal != nil {
		e.refused = append(e.refused, s)
		return 0
	}
	b := &e.batch
	row := len(b.Tokens)
	cells := s.cells.Cells()
	b.Tokens = append(b.Tokens, s.pending[:rows]...)
	b.Cells = append(b.Cells, cells[at:]...)
	for i := range rows {
		b.Positions = append(b.Positions, int32(at+i))
	}
	for i := rows - outputs; i < rows; i++ {
		b.OutRows = append(b.OutRows, int32(row+i))
	}
	b.Seqs = append(b.Seqs, backend.SeqRun{Row: row, Rows: rows, Cells: cells})
	e.plan = append(e.plan, portion{seq: s, rows: rows, outputs: outputs})
	return rows
}

// advance takes a sequence past its rows of the step: deliver logits, sample, and decide whether it goes on.
func (e *Engine) advance(p portion, logits backend.Logits, row int) {
	s, r := p.seq, &p.seq.job.request
	s.tokens = append(s.tokens, s.pending[:p.rows]...)
	s.pending = s.pending[p.rows:]
	if r.Logits != nil && !s.decoding {
		for i := range p.outputs {
			r.Logits(s.cells.Len()-p.rows+i, logits.Row(row+i))
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
	id, err := s.job.sampler.Sample(logits.Row(row+p.outputs-1), r.Mask)
	if err != nil {
		e.finish(s, ReasonFailure, err)
		return
	}
	s.stats.Generated++
	s.job.sampler.Accept(id)
	if m, ok := r.Mask.(accepter); ok {
		if err := m.Accept(id); err != nil {
			e.finish(s, ReasonFailure, err)
			return
		}
	}
	if r.IsEnd != nil && r.IsEnd(id) {
		e.finish(s, ReasonStop, nil)
		return
	}
	s.stats.Decode = time.Since(s.started)
	s.job.deliver(Token{ID: id}, s.stats)
	if s.stats.Generated == r.MaxTokens || s.cells.Len() == e.options.Context {
		e.finish(s, ReasonLength, nil)
		return
	}
	s.next[0] = id
	s.pending = s.next[:]
}
