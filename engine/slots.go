package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/minfer-go/minfer/kv"
)

// ErrSlotsBusy says that running requests needed cells that were being saved.
var ErrSlotsBusy = errors.New("engine: cells that were being saved were needed")

// slotsHost marks a session file that holds kept prefixes, and not a conversation.
const slotsHost = "minfer slots"

// saving is a save in progress: its forks keep cells from being freed, until they are needed.
type saving struct {
	prefixes []prefix
	aborted  bool
}

// SlotBytes is about how many bytes SaveSlots writes when all cells are in use.
func (e *Engine) SlotBytes() int {
	h, err := e.header()
	if err != nil {
		return 0
	}
	return h.Cells * h.Layers * 2 * h.RowBytes
}

// SaveSlots writes the prefixes that are kept for later requests, the most recently used ones as far as they fit the
// arena, as a session file. Requests run meanwhile: their steps wait for the copy of one layer at a time. Where they need
// the cells, the save ends with ErrSlotsBusy and what was written is of no use.
func (e *Engine) SaveSlots(ctx context.Context, w io.Writer) error {
	var s *saving
	if err := e.call(context.WithoutCancel(ctx), func() error {
		if e.saving != nil {
			return fmt.Errorf("%w: another save runs", ErrRequest)
		}
		s = e.fork()
		return nil
	}); err != nil {
		return err
	}
	defer func() {
		_ = e.call(context.WithoutCancel(ctx), func() error { // a closed engine has freed them
			e.abort(s)
			return nil
		})
	}()
	h, err := e.header()
	if err != nil {
		return err
	}
	var k, v []byte
	seqs := make([]kv.SessionSeq, len(s.prefixes))
	for i, p := range s.prefixes {
		n := len(p.tokens) * h.RowBytes
		seqs[i] = kv.SessionSeq{Tokens: p.tokens, Rows: func(layer int) ([]byte, []byte, error) {
			k, v = slices.Grow(k[:0], n)[:n], slices.Grow(v[:0], n)[:n]
			return k, v, e.call(ctx, func() error {
				if s.aborted {
					return ErrSlotsBusy
				}
				return e.cells.Read(layer, p.cells.Cells(), k, v)
			})
		}}
	}
	return kv.WriteSession(w, h, seqs, []byte(slotsHost))
}

// fork starts a save: it holds on to the kept prefixes.
func (e *Engine) fork() *saving {
	s := &saving{}
	left := e.options.Context
	for _, p := range slices.Backward(e.prefixes.kept) {
		if len(p.tokens) > left || len(s.prefixes) == kv.MaxSessionSeqs {
			break
		}
		left -= len(p.tokens)
		s.prefixes = append(s.prefixes, prefix{tokens: slices.Clone(p.tokens), cells: p.cells.Fork()})
	}
	slices.Reverse(s.prefixes) // the least recently used first, as they are kept
	e.saving = s
	return s
}

// abort lets a save's cells go.
func (e *Engine) abort(s *saving) {
	if s == nil || s.aborted {
		return
	}
	s.aborted = true
	for _, p := range s.prefixes {
		p.cells.Free()
	}
	e.saving = nil
}

// LoadSlots reads what SaveSlots wrote and keeps it for later requests. It returns how many prefixes and tokens that were.
// A file of another run or a damaged one is refused with the reason, and nothing of it is kept.
func (e *Engine) LoadSlots(ctx context.Context, r io.Reader) (prefixes, tokens int, err error) {
	if err := context.Cause(ctx); err != nil {
		return 0, 0, err
	}
	err = e.call(context.WithoutCancel(ctx), func() error {
		prefixes, tokens, err = e.loadSlots(r)
		return err
	})
	return prefixes, tokens, err
}

func (e *Engine) loadSlots(r io.Reader) (n, tokens int, err error) {
	if e.prefixes.off {
		return 0, 0, fmt.Errorf("%w: prompts are not kept (MINFER_NO_PREFIX_REUSE)", ErrRequest)
	}
	var read []prefix
	h, err := e.header()
	if err != nil {
		return 0, 0, err
	}
	row := h.RowBytes
	host, err := kv.ReadSession(r, h, func(ids []int32) (kv.SessionSink, error) {
		if err := e.validTokens(ids); err != nil {
			return nil, fmt.Errorf("%w: %w", kv.ErrSessionDamaged, err)
		}
		p := prefix{tokens: ids, cells: e.arena.NewSeq()}
		shared := 0
		for _, have := range read { // rows that an earlier prefix brought already
			if e.prefixes.copies {
				break
			}
			if c := common(have.tokens, ids); c > shared {
				p.cells.Free()
				p.cells = e.arena.NewSeq()
				if err := p.cells.SharePrefix(have.cells, c); err != nil {
					return nil, err
				}
				shared = c
			}
		}
		read = append(read, p)
		e.reclaim(len(ids) - shared)
		if err := p.cells.Append(len(ids) - shared); err != nil {
			return nil, err
		}
		return func(layer int, k, v []byte) error {
			return e.cells.Write(layer, p.cells.Cells()[shared:], k[shared*row:], v[shared*row:])
		}, nil
	})
	if err == nil && string(host) != slotsHost {
		err = fmt.Errorf("%w: it holds a conversation, not slots", kv.ErrSessionMismatch)
	}
	for _, p := range read {
		if err != nil {
			p.cells.Free()
			continue
		}
		tokens += len(p.tokens)
		e.prefixes.keep(p.tokens, p.cells)
	}
	if err != nil {
		return 0, 0, err
	}
	return len(read), tokens, nil
}
