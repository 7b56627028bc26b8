package kv

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRecount: whatever an operation left half done, the arena counts what the named sequences hold and goes on from there.
func TestRecount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		a, err := NewArena(100 + r.IntN(200))
		if err != nil {
			t.Fatal(err)
		}
		var seqs []*Seq
		for range 2 + r.IntN(6) {
			s := a.NewSeq()
			if len(seqs) > 0 && r.IntN(2) == 0 {
				from := seqs[r.IntN(len(seqs))]
				if err := s.SharePrefix(from, r.IntN(from.Len()+1)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Append(min(r.IntN(40), a.Free())); err != nil {
				t.Fatal(err)
			}
			seqs = append(seqs, s)
		}
		if err := a.Check(seqs); err != nil {
			t.Fatal(err)
		}
		gone := r.IntN(len(seqs))
		left := slices.Delete(slices.Clone(seqs), gone, gone+1)
		if err := a.Check(left); !errors.Is(err, ErrRange) {
			t.Fatalf("a sequence is missing: %v", err)
		}
		for range r.IntN(20) { // half of something
			c := r.IntN(a.cells)
			a.refs[c] += uint32(r.IntN(2))
			a.mask[c/TileCells] ^= 1 << (c % TileCells)
			a.free--
		}
		var cells [][]int32
		var spans [][]Span
		for _, s := range left {
			cells, spans = append(cells, slices.Clone(s.Cells())), append(spans, slices.Clone(s.Spans()))
		}
		if err := a.Recount(slices.Concat(left, left[:1])); err != nil {
			t.Fatal(err)
		}
		if err := a.Check(left); err != nil {
			t.Fatal(err)
		}
		for i, s := range left {
			if !slices.Equal(s.Cells(), cells[i]) || !slices.Equal(s.Spans(), spans[i]) {
				t.Fatalf("sequence %d has changed", i)
			}
		}
		for a.Free() > 0 { // every cell can be had
			if err := left[r.IntN(len(left))].Append(min(a.Free(), 1+r.IntN(30))); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Check(left); err != nil {
			t.Fatal(err)
		}
		for _, s := range left {
			s.Free()
		}
		if s := a.Stats(); s.Free != s.Total || s.Shared != 0 || s.Seqs != 0 {
			t.Fatalf("%+v", s)
		}
	}
}

// TestRecountRefusals: sequences that cannot be are named, and Reset makes the arena an empty one.
func TestRecountRefusals(t *testing.T) {
	a, err := NewArena(50)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewArena(50)
	if err != nil {
		t.Fatal(err)
	}
	one := func(change func(s *Seq)) *Seq {
		s := a.NewSeq()
		if err := s.Append(5); err != nil {
			t.Fatal(err)
		}
		change(s)
		return s
	}
	for _, c := range []struct {
		name string
		s    *Seq
		want error
	}{
		{"none", nil, ErrFreed},
		{"a freed one", one(func(s *Seq) { s.Free() }), ErrFreed},
		{"one of another arena", other.NewSeq(), ErrArena},
		{"a cell twice", one(func(s *Seq) { s.cells[1] = s.cells[0] }), ErrRange},
		{"a cell before the first", one(func(s *Seq) { s.cells[1] = -1 }), ErrRange},
		{"the cell after the last", one(func(s *Seq) { s.cells[1] = 50 }), ErrRange},
	} {
		if err := a.Recount([]*Seq{a.NewSeq(), c.s}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		a.Reset()
		if s := a.Stats(); s.Free != 50 || s.Used != 0 || s.Shared != 0 || s.Seqs != 0 || s.LargestExtent != 50 {
			t.Errorf("after %s the empty arena has %+v", c.name, s)
		}
	}
}
