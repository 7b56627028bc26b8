package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/kv"
)

// A Session keeps the cells of one sequence between requests: a conversation. Its cells are not shared with requests of
// others, so that it may be changed in place. When running requests need its cells while it is idle, it is emptied; the
// next request then evaluates its prompt anew.
type Session struct {
	engine *Engine
	// owned by the loop
	cells  *kv.Seq
	tokens []int32 // those in the cells
	user   *Job    // the request that runs on it; nil for none
	closed bool
}

// NewSession makes an empty session.
func (e *Engine) NewSession() *Session {
	s := &Session{engine: e}
	_ = e.call(context.Background(), func() error { // a closed engine refuses the session's first request
		s.cells = e.arena.NewSeq()
		e.sessions = append(e.sessions, s)
		return nil
	})
	return s
}

// call runs f on the loop, between steps, and returns its error. A panic of f is returned too, once what is known of cells
// has been counted anew.
func (e *Engine) call(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	if err := e.enqueueCall(func() { e.serve(done, f) }); err != nil {
		return err
	}
	e.nudge()
	select {
	case err := <-done:
		return err
	case <-e.done:
		select {
		case err := <-done: // the loop's last
			return err
		default:
			return e.Err()
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Engine) enqueueCall(f func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refusal(); err != nil {
		return err
	}
	e.calls = append(e.calls, f)
	return nil
}

// serve runs a call. Whoever waits for it is answered, however it ends.
func (e *Engine) serve(done chan<- error, f func() error) {
	err := fmt.Errorf("%w: the call ended its goroutine", ErrInternal)
	defer func() { done <- err }()
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
			e.distrust(nil)
		}
	}()
	e.reach(atCall)
	err = f()
}

// answer runs what call has queued so far.
func (e *Engine) answer() {
	e.mu.Lock()
	n := len(e.calls)
	e.mu.Unlock()
	for range n {
		e.mu.Lock()
		f := e.calls[0]
		e.calls = slices.Delete(e.calls, 0, 1)
		e.mu.Unlock()
		f()
	}
}

// idle refuses work on a session that a request runs on.
func (s *Session) idle() error {
	switch {
	case s.closed || s.cells == nil:
		return fmt.Errorf("%w: the session is closed", ErrRequest)
	case s.user != nil:
		return fmt.Errorf("%w: a request runs on the session", ErrRequest)
	}
	return nil
}

// empty forgets the session's tokens and frees their cells.
func (s *Session) empty() {
	s.cells.Truncate(0)
	s.tokens = s.tokens[:0]
}

// reset makes the session an empty one without touching the cells it had, which the arena counts anew.
func (s *Session) reset() {
	s.user, s.tokens = nil, nil
	if !s.closed {
		s.cells = s.engine.arena.NewSeq()
	}
}

// change runs what changes the session in place; if it panics, nothing of the session is left.
func (s *Session) change(ctx context.Context, f func() error) error {
	return s.engine.call(ctx, func() error {
		whole := false
		defer func() {
			if !whole {
				s.reset()
			}
		}()
		err := f()
		whole = true
		return err
	})
}

// Tokens is a copy of the tokens that the session holds.
func (s *Session) Tokens() []int32 {
	var ids []int32
	_ = s.engine.call(context.Background(), func() error { // a closed engine holds none
		ids = slices.Clone(s.tokens)
		return nil
	})
	return ids
}

// Close frees the session's cells. A request that runs on it goes on without it.
func (s *Session) Close() {
	_ = s.engine.call(context.Background(), func() error { // a closed engine has freed them
		if s.closed || s.cells == nil {
			return nil
		}
		s.closed = true
		if s.user == nil {
			s.free()
		}
		s.engine.sessions = slices.DeleteFunc(s.engine.sessions, func(have *Session) bool { return have == s })
		return nil
	})
}

// Remove drops the tokens at positions [from, to) in place: later ones move down, their keys turned to their new
// positions. What they computed from the dropped tokens stays in them, so that the continuation is close to, but not the
// same as, that of a sequence that never had those tokens.
func (s *Session) Remove(ctx context.Context, from, to int) error {
	return s.change(ctx, func() error {
		if err := s.idle(); err != nil {
			return err
		}
		e := s.engine
		e.prefixes.release(e.arena, min(len(s.tokens), e.options.Context))
		shift, err := s.cells.Remove(from, to)
		if err != nil {
			return err
		}
		s.tokens = slices.Delete(s.tokens, from, to)
		if err := e.apply(shift); err != nil {
			s.empty()
			return err
		}
		return nil
	})
}

// apply carries out what a removal asks of the device.
func (e *Engine) apply(shift kv.Shift) error {
	var moves []backend.CellCopy
	for _, c := range shift.Copies {
		moves = append(moves, backend.CellCopy{Src: int(c.Src), Dst: int(c.Dst), Len: int(c.Len)})
	}
	if err := e.cells.Copy(moves); err != nil {
		return err
	}
	var turns []backend.CellTurn
	for _, r := range shift.Rotations {
		turns = append(turns, backend.CellTurn{Cell: int(r.Cell), Len: int(r.Len), Delta: int(r.Delta)})
	}
	return e.cells.Rotate(turns, e.model.Config().Rope)
}

// header describes this run to session files.
func (e *Engine) header() (kv.SessionHeader, error) {
	c := e.model.Config()
	print, err := e.print()
	if err != nil {
		return kv.SessionHeader{}, err
	}
	row, err := e.spec().RowBytes()
	return kv.SessionHeader{
		Backend: e.selected[0].Name(), Model: print, Layers: c.Layers, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		Type: uint32(e.options.CacheType), RowBytes: row, Cells: e.options.Context,
	}, err
}

// fingerprint tells models apart: names, types and shapes of all tensors, and the first bytes of each. It fails where the
// file has become shorter since it was opened.
func (e *Engine) fingerprint() (sum [32]byte, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s cannot be read; has it become shorter? %v", ErrInternal, e.file.Name(), p)
		}
	}()
	h := sha256.New()
	fmt.Fprintf(h, "%+v", *e.model.Config())
	for _, t := range e.file.Tensors() {
		fmt.Fprintf(h, "%s %s %v ", t.Name, t.Type, t.Shape)
		data := t.Data()
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(data))))
		h.Write(data[:min(64, len(data))])
	}
	return [32]byte(h.Sum(nil)), nil
}

// Save writes the session's tokens and cells, and the caller's own state with them, as a session file.
func (s *Session) Save(ctx context.Context, w io.Writer, host []byte) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.engine.call(context.WithoutCancel(ctx), func() error { // w is the caller's again afterwards
		if err := s.idle(); err != nil {
			return err
		}
		e := s.engine
		h, err := e.header()
		if err != nil {
			return err
		}
		k, v := make([]byte, h.RowBytes*len(s.tokens)), make([]byte, h.RowBytes*len(s.tokens))
		return kv.WriteSession(w, h, []kv.SessionSeq{{
			Tokens: s.tokens,
			Rows: func(layer int) ([]byte, []byte, error) {
				return k, v, e.cells.Read(layer, s.cells.Cells(), k, v)
			},
		}}, host)
	})
}

// Load replaces what the session holds by a session file and returns the caller's state from it. A file of another run or
// a damaged one is refused with the reason, and the session is empty then.
func (s *Session) Load(ctx context.Context, r io.Reader) (host []byte, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	err = s.change(context.WithoutCancel(ctx), func() error { // r is the caller's again afterwards
		if err := s.idle(); err != nil {
			return err
		}
		s.empty()
		e, read := s.engine, 0
		h, err := e.header()
		if err != nil {
			return err
		}
		host, err = kv.ReadSession(r, h, func(tokens []int32) (kv.SessionSink, error) {
			if read++; read > 1 {
				return nil, fmt.Errorf("%w: more than one sequence", kv.ErrSessionMismatch)
			}
			if err := e.validTokens(tokens); err != nil {
				return nil, fmt.Errorf("%w: %w", kv.ErrSessionDamaged, err)
			}
			e.prefixes.release(e.arena, len(tokens))
			if err := s.cells.Append(len(tokens)); err != nil {
				return nil, err
			}
			s.tokens = append(s.tokens, tokens...)
			return func(layer int, k, v []byte) error { return e.cells.Write(layer, s.cells.Cells(), k, v) }, nil
		})
		if err != nil {
			s.empty()
			return err
		}
		return nil
	})
	return host, err
}

// validTokens refuses ids outside the vocabulary.
func (e *Engine) validTokens(ids []int32) error {
	vocab := e.model.Config().Vocab
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("%w: token id %d at %d is outside the vocabulary of %d", ErrRequest, id, i, vocab)
		}
	}
	return nil
}

// enter gives a request the cells of its session: those of the longest common beginning stay, the rest is dropped.
func (s *Session) enter(q *sequence) error {
	if err := s.idle(); err != nil {
		return err
	}
	n := min(common(s.tokens, q.job.request.Prompt), len(q.job.request.Prompt)-1)
	s.user = q.job
	s.cells.Truncate(n)
	q.looked = true
	q.cells, q.tokens = s.cells, append(q.tokens, s.tokens[:n]...)
	q.pending, q.stats.Cached = q.job.request.Prompt[n:], n
	return nil
}

// leave takes the cells back when a request ends.
func (s *Session) leave(q *sequence) {
	s.user = nil
	s.tokens = append(s.tokens[:0], q.tokens...)
	s.cells.Truncate(len(s.tokens))
	if s.closed {
		s.free()
	}
}

// free ends a closed session.
func (s *Session) free() {
	s.cells.Free()
	s.tokens = nil
}

// evict empties idle sessions until the arena has n free cells.
func (e *Engine) evict(n int) {
	for _, s := range e.sessions {
		if e.arena.Free() >= n {
			return
		}
		if s.user == nil {
			s.empty()
		}
	}
}
