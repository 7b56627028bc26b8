package engine

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/minfer-go/minfer/kv"
)

// ErrBroken says that an engine has given up: its turns panicked faultLimit times in a row, each time after it had
// started from an empty state. Only Close is of use then.
var ErrBroken = errors.New("engine: broken")

// faultLimit is how many turns in a row may panic, those before each having failed all its requests, until the engine
// gives up.
const faultLimit = 8

// A place is a point of the loop at which tests let it panic.
type place string

// The places.
const (
	atCall    place = "call"
	atSweep   place = "sweep"
	atFits    place = "fits"
	atStart   place = "start"
	atPublish place = "publish"
	atReap    place = "reap"
	atCompose place = "compose"
	atReady   place = "ready"
	atTake    place = "take"
	atAdd     place = "add"
	atAdded   place = "added"
	atGiveWay place = "give way"
	atGone    place = "gone" // cells have been freed, nobody knows yet
	atReclaim place = "reclaim"
	atCompute place = "compute"
	atAdvance place = "advance"
	atFinish  place = "finish"
	atKeep    place = "keep"
	atKept    place = "kept" // the store of prefixes is half done
)

// reach is called at the places where bookkeeping is done.
func (e *Engine) reach(p place) {
	if e.inject != nil {
		e.inject(p)
	}
}

// panicked is the error of a recovered panic.
func panicked(p any) error {
	return fmt.Errorf("%w: %v\n%s", ErrInternal, p, debug.Stack())
}

// guard is deferred by what the loop does for one request. A panic ends that request; what is known of cells is counted
// anew from the others.
func (e *Engine) guard(s *sequence) {
	if p := recover(); p != nil {
		e.drop(s.job, s.stats, panicked(p))
	}
}

// drop ends a request in the middle of whatever was done for it.
func (e *Engine) drop(j *Job, stats Stats, err error) {
	e.pop(j)
	remove := func(from []*sequence) []*sequence {
		left := from[:0]
		for _, s := range from {
			if s.job != j {
				left = append(left, s)
				continue
			}
			s.runs = false
		}
		return left
	}
	e.running, e.waiting = remove(e.running), remove(e.waiting)
	e.end(j, stats, ReasonFailure, err)
	e.distrust(j)
}

// distrust is called after a panic in the bookkeeping of cells. It forgets what the panic may have left half done: the
// session of the request, if there is one, the kept prefixes and a save of them. The arena is counted from the sequences
// that are left. If those cannot be either, it panics, and everything starts anew.
func (e *Engine) distrust(j *Job) {
	e.counters.fault()
	if j != nil {
		if session := j.request.Session; session != nil && session.user == j {
			session.reset()
		}
	}
	e.prefixes.forget()
	if e.saving != nil {
		e.saving.aborted = true
		e.saving = nil
	}
	if err := e.arena.Recount(e.holders()); err != nil {
		panic(err)
	}
}

// holders are the sequences that hold cells. Some may be named twice. The result is valid until the next call.
func (e *Engine) holders() []*kv.Seq {
	seqs := e.seqs[:0]
	for _, s := range e.running {
		seqs = append(seqs, s.cells)
	}
	for _, s := range e.waiting {
		seqs = append(seqs, s.cells)
	}
	for _, p := range e.prefixes.kept {
		seqs = append(seqs, p.cells)
	}
	for _, s := range e.sessions {
		seqs = append(seqs, s.cells)
	}
	if e.saving != nil {
		for _, p := range e.saving.prefixes {
			seqs = append(seqs, p.cells)
		}
	}
	e.seqs = seqs
	return seqs
}

// restart ends every request that has started, with err, and begins again with all cells free. Queued requests stay.
func (e *Engine) restart(err error) {
	e.counters.fault()
	started := append(append([]*sequence(nil), e.running...), e.waiting...)
	e.running, e.waiting, e.plan, e.prompts, e.order = nil, nil, nil, nil, nil
	e.stalled, e.marked, e.mark, e.seqs = 0, nil, 0, nil
	if e.saving != nil {
		e.saving.aborted = true
		e.saving = nil
	}
	e.prefixes.forget()
	e.arena.Reset()
	for _, s := range e.sessions {
		s.reset()
	}
	for _, s := range started {
		s.runs = false
		if session := s.job.request.Session; session != nil && session.user == s.job { // one that was closed meanwhile
			session.reset()
		}
		e.end(s.job, s.stats, ReasonFailure, err)
	}
}

// giveUp ends the engine because of err.
func (e *Engine) giveUp(err error) {
	err = fmt.Errorf("%w: %d turns in a row failed: %w", ErrBroken, faultLimit, err)
	e.mu.Lock()
	e.broken = err
	e.mu.Unlock()
	e.refuseQueue(err)
}

// Err is nil while the engine takes requests; otherwise it wraps ErrClosed, or ErrBroken and the reason.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusal()
}

// refusal is why no request is taken. The caller holds e.mu.
func (e *Engine) refusal() error {
	switch {
	case e.broken != nil:
		return e.broken
	case e.closed:
		return ErrClosed
	}
	return nil
}
