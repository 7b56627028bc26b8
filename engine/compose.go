package engine

import (
	"slices"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/kv"
)

// How the prompt tokens of a step are bounded: while other sequences generate, a step brings at most mixedPrompt of them,
// so that nobody waits long for a token.
const mixedPrompt = 128

// worthWaiting is how many tokens another sequence must be about to evaluate before one with the same beginning waits
// for them.
const worthWaiting = 16

// A portion is what one sequence contributes to a step.
type portion struct {
	seq     *sequence
	rows    int
	outputs int // rows with a result: the last ones
}

// stepParams are the Params of a step that do not follow from its batch.
type stepParams struct {
	phase  graph.Phase
	hidden bool // the results are hidden states, not logits
}

// compose fills the batch: one token of every sequence that generates, then prompt chunks while the step has room. Steps
// of hidden states and of logits alternate where both are asked for.
func (e *Engine) compose() stepParams {
	b := &e.batch
	b.Tokens, b.Positions, b.Cells, b.OutRows, b.Seqs = b.Tokens[:0], b.Positions[:0], b.Cells[:0], b.OutRows[:0], b.Seqs[:0]
	e.plan, e.prompts = e.plan[:0], e.prompts[:0]
	params := stepParams{phase: graph.Decode, hidden: e.nextHidden()}
	e.reach(atCompose)
	// The list of running sequences changes where one has to give way.
	e.order = append(e.order[:0], e.running...)
	for _, s := range e.order {
		if len(b.Tokens) < e.options.Batch && s.runs && !s.prefills() && !params.hidden {
			e.add(s, 1, 1)
		}
	}
	room := e.options.Batch - len(b.Tokens)
	if len(b.Tokens) > 0 {
		room = min(room, mixedPrompt)
	}
	for _, s := range e.order {
		if s.runs && s.prefills() && (s.job.request.Hidden != nil) == params.hidden && e.ready(s) {
			e.prompts = append(e.prompts, s)
		}
	}
	// The shortest first, each an equal share of what is left: nobody starves, and what a short one does not need goes to
	// the others.
	slices.SortStableFunc(e.prompts, func(a, b *sequence) int { return len(a.pending) - len(b.pending) })
	for i, s := range e.prompts {
		n := min(len(s.pending), (room+len(e.prompts)-i-1)/(len(e.prompts)-i))
		if c := s.job.request.Chunk; c > 0 {
			n = min(n, c)
		}
		if n == 0 || !s.runs {
			continue
		}
		if e.add(s, n, s.outputs(n)) {
			room -= n
			params.phase = graph.Prefill
		}
	}
	return params
}

// nextHidden says which results the next step gives: hidden states if some sequence wants them and either nothing else
// runs or the last step gave logits.
func (e *Engine) nextHidden() bool {
	hidden, other := false, false
	for _, s := range e.running {
		if s.job.request.Hidden != nil {
			hidden = true
		} else {
			other = true
		}
	}
	e.lastHidden = hidden && (!other || !e.lastHidden)
	return e.lastHidden
}

// outputs is how many of the next n rows of a sequence give results.
func (s *sequence) outputs(n int) int {
	switch r := &s.job.request; {
	case !s.decoding && s.job.report() != nil:
		return n
	case n == len(s.pending) && r.MaxTokens != 0:
		return 1
	}
	return 0
}

// ready looks, once, for cells that hold the beginning of a sequence, and reports whether it may start: not while a
// sequence before it is about to evaluate the same beginning.
func (e *Engine) ready(s *sequence) (may bool) {
	if s.looked || e.prefixes.off || !s.job.reuses() {
		return true
	}
	if o := s.behind; o != nil && o.runs && o.prefills() && len(o.tokens) < s.wants {
		return false
	}
	s.behind = nil
	defer e.guard(s)
	e.reach(atReady)
	from, n := e.prefixes.longest(s.pending, s.marks.at, e.running, len(s.pending)-1)
	for _, other := range e.running {
		if other == s {
			break
		}
		if !other.shares() || !other.prefills() {
			continue
		}
		if c := min(other.alike(s.pending, s.marks.at), len(s.pending)-1); c >= n+worthWaiting {
			s.behind, s.wants = other, c
			return false
		}
	}
	s.looked = true
	if n == 0 || e.take(s, from, n) != nil {
		return true // the prompt is evaluated instead
	}
	s.tokens = append(s.tokens, s.pending[:n]...)
	s.pending = s.pending[n:]
	if !s.decoding {
		s.stats.Cached = n
	}
	return true
}

// reuses reports whether the request may begin with cells of others.
func (j *Job) reuses() bool {
	return !j.request.Fresh && j.request.Session == nil && j.report() == nil
}

// shares reports whether others may use the sequence's cells: those of a session may have been changed in place.
func (s *sequence) shares() bool { return s.job.request.Session == nil }

// alike is the length of the common beginning of a prompt with the tokens that s has and will have evaluated, as far as
// their hashes tell.
func (s *sequence) alike(prompt []int32, marks []uint64) int {
	n := same(s.marks.at, marks)
	if n < len(s.tokens) {
		n += common(s.tokens[n:], prompt[n:])
	}
	if n >= len(s.tokens) {
		n += common(s.pending[n-len(s.tokens):], prompt[n:])
	}
	return n
}

// add appends rows of a sequence to the batch. Where cells are short, sequences that came later give theirs up; if that
// is not enough, s itself waits or fails, and add reports false. A prompt that must keep its cells waits as long as others
// have rows in the step: theirs will be free some day.
func (e *Engine) add(s *sequence, rows, outputs int) (added bool) {
	b := &e.batch
	row, results, runs, portions := len(b.Tokens), len(b.OutRows), len(b.Seqs), len(e.plan)
	defer e.guard(s)
	defer func() {
		if !added { // or not whole
			b.Tokens, b.Positions, b.Cells = b.Tokens[:row], b.Positions[:row], b.Cells[:row]
			b.OutRows, b.Seqs, e.plan = b.OutRows[:results], b.Seqs[:runs], e.plan[:portions]
		}
	}()
	e.reach(atAdd)
	at := s.cells.Len()
	for {
		e.reclaim(rows)
		e.openTiles(s, at, rows)
		err := s.cells.Append(rows)
		if err == nil {
			break
		}
		if !full(err) || !e.giveWay(s) {
			if full(err) && s.prefills() && len(e.plan) > 0 {
				return false
			}
			e.finish(s, ReasonFailure, err)
			return false
		}
		if !s.runs {
			return false
		}
	}
	cells := s.cells.Cells()
	b.Tokens = append(b.Tokens, s.pending[:rows]...)
	b.Cells = append(b.Cells, cells[at:]...)
	for i := range rows {
		b.Positions = append(b.Positions, int32(at+i))
	}
	e.reach(atAdded)
	for i := rows - outputs; i < rows; i++ {
		b.OutRows = append(b.OutRows, int32(row+i))
	}
	b.Seqs = append(b.Seqs, backend.SeqRun{Row: row, Rows: rows, Cells: cells})
	e.plan = append(e.plan, portion{seq: s, rows: rows, outputs: outputs})
	return true
}

// openTiles gives up kept prefixes, the least recently used first, where rows that follow at cells of s would fill tiles, or
// begin one that it goes on to fill as it generates, and whole tiles are not free: in what is left between the cells of
// others keys would lie in pieces, and attention would gather them in every step from then on. It stops at a prefix whose
// end opens no tile.
func (e *Engine) openTiles(s *sequence, at, rows int) {
	need := rows / kv.TileCells
	if s.decoding && at%kv.TileCells == 0 {
		need = max(need, 1)
	}
	for open := e.arena.OpenTiles(); open < need && len(e.prefixes.kept) > 0; {
		e.prefixes.drop(0)
		had := open
		if open = e.arena.OpenTiles(); open == had {
			return
		}
	}
}

// giveWay sends the latest sequence that may wait back to the queue, its cells freed: s itself if none came later. The
// tokens it has are evaluated again when it returns, with the same result. It reports whether one was found.
func (e *Engine) giveWay(s *sequence) bool {
	for i := len(e.running) - 1; i >= 0; i-- {
		v := e.running[i]
		if v.pinned() || e.planned(v) {
			continue
		}
		if v == s && len(e.running) == 1 {
			return false // nobody is left to take cells from
		}
		e.goBack(v)
		return true
	}
	return false
}

// goBack makes a running sequence one that waits, without cells.
func (e *Engine) goBack(v *sequence) {
	defer e.guard(v)
	e.reach(atGiveWay)
	e.leave(v)
	v.cells.Free()
	e.reach(atGone)
	v.pending = slices.Concat(v.tokens, v.pending)
	v.tokens, v.cells, v.looked, v.behind = v.tokens[:0], e.arena.NewSeq(), false, nil
	for _, s := range e.running { // v returns after them
		if s.behind == v {
			s.behind = nil
		}
	}
	e.waiting = append(e.waiting, v)
	e.counters.gaveWay()
}

// planned reports whether a sequence has rows in the batch already.
func (e *Engine) planned(s *sequence) bool {
	for _, p := range e.plan {
		if p.seq == s {
			return true
		}
	}
	return false
}

// reclaim frees cells that nobody runs on until n are free: those kept of ended sequences first, then those of idle
// sessions. A save that holds on to cells ends.
func (e *Engine) reclaim(n int) {
	e.reach(atReclaim)
	if e.arena.Free() < n {
		e.abort(e.saving)
	}
	e.prefixes.release(e.arena, n)
	e.evict(n)
}
