package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// content is what a simulated cell holds: a token's K, rotated for a position.
type content struct{ token, pos int }

// world is an arena, the memory of a simulated backend and, for each sequence, the tokens that a naive model holds.
type world struct {
	a      *Arena
	mem    []content
	seqs   []*Seq
	tokens [][]int
	next   int // the next token: all differ
	copied int64
}

func newWorld(t *testing.T, cells int) *world {
	t.Helper()
	a, err := NewArena(cells)
	if err != nil {
		t.Fatal(err)
	}
	return &world{a: a, mem: make([]content, cells)}
}

func (w *world) add(s *Seq, tokens []int) {
	w.seqs = append(w.seqs, s)
	w.tokens = append(w.tokens, tokens)
}

// append appends n tokens to sequence i and writes their cells. It fails exactly when there are fewer free cells.
func (w *world) append(i, n int) error {
	free := w.a.Free()
	err := w.seqs[i].Append(n)
	if n > free {
		var full *FullError
		if !errors.As(err, &full) || *full != (FullError{n, free}) || !errors.Is(err, ErrFull) {
			return fmt.Errorf("append of %d with %d free: %w", n, free, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("append of %d with %d free: %w", n, free, err)
	}
	for range n {
		pos := len(w.tokens[i])
		w.tokens[i] = append(w.tokens[i], w.next)
		w.mem[w.seqs[i].Cells()[pos]] = content{w.next, pos}
		w.next++
	}
	return nil
}

// remove removes [from, to) of sequence i and does the work in memory.
func (w *world) remove(i, from, to int) error {
	s := w.seqs[i]
	want, free := 0, w.a.Free()
	for pos, c := range s.Cells() {
		holders := 0
		for _, o := range w.seqs {
			if slices.Contains(o.Cells(), c) {
				holders++
			}
		}
		if pos >= to && to > from && holders > 1 {
			want++
		}
		if pos >= from && pos < to && holders == 1 {
			free++
		}
	}
	if to == s.Len() {
		want = 0
	}
	shift, err := s.Remove(from, to)
	if want > free {
		var full *FullError
		if !errors.As(err, &full) || *full != (FullError{want, free}) {
			return fmt.Errorf("removal that copies %d with %d free: %w", want, free, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("removal that copies %d with %d free: %w", want, free, err)
	}
	w.tokens[i] = slices.Delete(slices.Clone(w.tokens[i]), from, to)
	isSrc := map[int32]bool{}
	for _, c := range shift.Copies {
		for k := range c.Len {
			isSrc[c.Src+k] = true
		}
	}
	copied := 0
	for _, c := range shift.Copies {
		for k := range c.Len {
			if isSrc[c.Dst+k] {
				return fmt.Errorf("cell %d is the source and the target of copies", c.Dst+k)
			}
			w.mem[c.Dst+k] = w.mem[c.Src+k]
			copied++
		}
	}
	if copied != want {
		return fmt.Errorf("%d cells copied, want %d", copied, want)
	}
	w.copied += int64(copied)
	for _, r := range shift.Rotations {
		for c := r.Cell; c < r.Cell+r.Len; c++ {
			w.mem[c].pos += int(r.Delta)
		}
	}
	return nil
}

// check compares everything with what can be told from the sequences alone.
func (w *world) check() error {
	a := w.a
	refs := make([]uint32, a.cells)
	held := make([]int, a.tiles)
	for i, s := range w.seqs {
		if s.Len() != len(w.tokens[i]) || len(s.Cells()) != s.Len() {
			return fmt.Errorf("sequence %d: length %d, %d cells, want %d", i, s.Len(), len(s.Cells()), len(w.tokens[i]))
		}
		for pos, c := range s.Cells() {
			refs[c]++
			if want := (content{w.tokens[i][pos], pos}); w.mem[c] != want {
				return fmt.Errorf("sequence %d position %d: cell %d holds %v, want %v", i, pos, c, w.mem[c], want)
			}
		}
		var expanded []int32
		for k, sp := range s.Spans() {
			if int(sp.Pos) != len(expanded) || sp.Len < 1 {
				return fmt.Errorf("sequence %d: span %d %v begins at position %d", i, k, sp, len(expanded))
			}
			if k > 0 && s.Spans()[k-1].Cell+s.Spans()[k-1].Len == sp.Cell {
				return fmt.Errorf("sequence %d: spans %d and %d are one", i, k-1, k)
			}
			for d := range sp.Len {
				expanded = append(expanded, sp.Cell+d)
			}
		}
		if !slices.Equal(expanded, s.Cells()) {
			return fmt.Errorf("sequence %d: spans %v, cells %v", i, s.Spans(), s.Cells())
		}
		for t := s.holdFrom; t < s.holdTo; t++ {
			held[t]++
		}
	}
	if !slices.Equal(refs, a.refs) {
		return fmt.Errorf("counts %v, want %v", a.refs, refs)
	}
	want := Stats{Total: a.cells, Seqs: len(w.seqs), Copied: w.copied}
	run, open := 0, 0
	for c := range a.tiles * TileCells {
		free := c < a.cells && refs[c] == 0
		if hasFree := a.mask[c/TileCells]>>(c%TileCells)&1 != 0; hasFree != free {
			return fmt.Errorf("cell %d: free %v in the mask, want %v", c, hasFree, free)
		}
		switch {
		case free:
			want.Free++
			if run++; run == 1 {
				want.FreeExtents++
			}
			want.LargestExtent = max(want.LargestExtent, run)
		case c < a.cells:
			run = 0
			want.Used++
			if refs[c] > 1 {
				want.Shared++
			}
		}
	}
	if got := a.Stats(); got != want || a.Free() != want.Free || want.Free+want.Used != want.Total {
		return fmt.Errorf("stats %+v, Free %d, want %+v", got, a.Free(), want)
	}
	for t := range a.tiles {
		isOpen := a.mask[t] == tileFree
		if isOpen {
			open++
		}
		if hasBit(a.open, t) != isOpen || hasBit(a.some, t) != (a.mask[t] != 0) {
			return fmt.Errorf("tile %d: mask %x, open %v, some %v", t, a.mask[t], hasBit(a.open, t), hasBit(a.some, t))
		}
		if held[t] > 1 || hasBit(a.held, t) != (held[t] == 1) {
			return fmt.Errorf("tile %d: held by %d sequences, bit %v", t, held[t], hasBit(a.held, t))
		}
	}
	if open != a.nOpen {
		return fmt.Errorf("%d open tiles, want %d", a.nOpen, open)
	}
	return nil
}

// step does one random operation and says which.
func (w *world) step(rng *rand.Rand) (string, error) {
	if len(w.seqs) == 0 || (len(w.seqs) < 12 && rng.IntN(12) == 0) {
		w.add(w.a.NewSeq(), nil)
		return "new", nil
	}
	i := rng.IntN(len(w.seqs))
	s, n := w.seqs[i], w.seqs[i].Len()
	// Mostly a few, at times up to more than there is.
	some := func(limit int) int {
		if rng.IntN(4) > 0 {
			limit = min(limit, 5)
		}
		return rng.IntN(limit + 1)
	}
	switch rng.IntN(12) {
	default:
		k := some(w.a.Free() + 2)
		return fmt.Sprintf("append %d to %d", k, i), w.append(i, k)
	case 0:
		if len(w.seqs) < 12 {
			w.add(s.Fork(), slices.Clone(w.tokens[i]))
		}
		return fmt.Sprintf("fork %d", i), nil
	case 1:
		if len(w.seqs) < 12 {
			k := rng.IntN(n + 1)
			f := w.a.NewSeq()
			w.add(f, slices.Clone(w.tokens[i][:k]))
			return fmt.Sprintf("share %d of %d", k, i), f.SharePrefix(s, k)
		}
		return "nothing", nil
	case 2:
		k := n - some(n)
		s.Truncate(k)
		w.tokens[i] = w.tokens[i][:k]
		return fmt.Sprintf("truncate %d to %d", i, k), nil
	case 3, 4, 5:
		from := rng.IntN(n + 1)
		to := from + some(n-from)
		return fmt.Sprintf("remove %d to %d of %d in %d", from, to, n, i), w.remove(i, from, to)
	case 6:
		s.Free()
		w.seqs = slices.Delete(w.seqs, i, i+1)
		w.tokens = slices.Delete(w.tokens, i, i+1)
		return fmt.Sprintf("free %d", i), nil
	}
}

// TestModel runs random operations on many sequences beside a naive model and checks every invariant after each.
// MINFER_TEST_SEED repeats a run; MINFER_LONG=1 makes it 100 times longer.
func TestModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("MINFER_TEST_SEED"); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("MINFER_TEST_SEED=%d", seed)
	rounds := 4
	if os.Getenv("MINFER_LONG") == "1" {
		rounds *= 100
	}
	for round := range rounds {
		for _, cells := range []int{1, 5, 16, 31, 64, 200, 1030, 3000} {
			rng := rand.New(rand.NewPCG(seed, uint64(round*100_000+cells)))
			w := newWorld(t, cells)
			var history []string
			for range 250 {
				what, err := w.step(rng)
				history = append(history, what)
				if err == nil {
					err = w.check()
				}
				if err != nil {
					t.Fatalf("seed %d, round %d, %d cells: after %q: %v", seed, round, cells, history, err)
				}
			}
			for _, s := range w.seqs {
				s.Free()
			}
			w.seqs, w.tokens = nil, nil
			if err := w.check(); err != nil || w.a.Free() != cells {
				t.Fatalf("seed %d, round %d, %d cells: all freed: %v, %d free", seed, round, cells, err, w.a.Free())
			}
		}
	}
}
