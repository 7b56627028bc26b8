package kv

import (
	"errors"
	"reflect"
	"slices"
	"testing"
)

func newArena(t testing.TB, cells int) *Arena {
	t.Helper()
	a, err := NewArena(cells)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func grow(t testing.TB, s *Seq, n int) {
	t.Helper()
	if err := s.Append(n); err != nil {
		t.Fatal(err)
	}
}

func aligned(s *Seq) int {
	n := 0
	for pos, c := range s.Cells() {
		if pos%TileCells == int(c)%TileCells {
			n++
		}
	}
	return n
}

func TestArenaLimits(t *testing.T) {
	for _, n := range []int{-1, 0, MaxCells + 1} {
		if _, err := NewArena(n); !errors.Is(err, ErrRange) {
			t.Errorf("NewArena(%d): %v, want ErrRange", n, err)
		}
	}
	for _, n := range []int{1, MaxCells} {
		a := newArena(t, n)
		if a.Free() != n || a.Stats() != (Stats{Total: n, Free: n, FreeExtents: 1, LargestExtent: n}) {
			t.Errorf("NewArena(%d): %+v", n, a.Stats())
		}
	}
}

// TestArguments: every refusal, and that it changes nothing.
func TestArguments(t *testing.T) {
	a, b := newArena(t, 40), newArena(t, 40)
	s, empty, other, freed := a.NewSeq(), a.NewSeq(), b.NewSeq(), a.NewSeq()
	freed.Free()
	freed.Free()
	grow(t, s, 30)
	shared := s.Fork()
	remove := func(s *Seq, from, to int) error {
		_, err := s.Remove(from, to)
		return err
	}
	before := a.Stats()
	cells := slices.Clone(s.Cells())
	for name, c := range map[string]struct {
		err  func() error
		want error
	}{
		"append -1":               {func() error { return s.Append(-1) }, ErrRange},
		"append too many":         {func() error { return s.Append(11) }, ErrFull},
		"append to freed":         {func() error { return freed.Append(0) }, ErrFreed},
		"share into used":         {func() error { return s.SharePrefix(s, 1) }, ErrNotEmpty},
		"share -1":                {func() error { return empty.SharePrefix(s, -1) }, ErrRange},
		"share past the end":      {func() error { return empty.SharePrefix(s, 31) }, ErrRange},
		"share across arenas":     {func() error { return other.SharePrefix(s, 1) }, ErrArena},
		"share of freed":          {func() error { return empty.SharePrefix(freed, 0) }, ErrFreed},
		"share of nil":            {func() error { return empty.SharePrefix(nil, 0) }, ErrFreed},
		"share into freed":        {func() error { return freed.SharePrefix(s, 0) }, ErrFreed},
		"append to fork of freed": {func() error { return freed.Fork().Append(1) }, ErrFreed},
		"remove from freed":       {func() error { return remove(freed, 0, 0) }, ErrFreed},
		"remove from -1":          {func() error { return remove(s, -1, 3) }, ErrRange},
		"remove backwards":        {func() error { return remove(s, 4, 3) }, ErrRange},
		"remove past the end":     {func() error { return remove(s, 4, 31) }, ErrRange},
		"remove without room":     {func() error { return remove(s, 0, 1) }, ErrFull},
	} {
		if err := c.err(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if a.Stats() != before || !slices.Equal(s.Cells(), cells) {
			t.Fatalf("%s: changed something: %+v", name, a.Stats())
		}
	}
	var full *FullError
	if err := remove(s, 0, 1); !errors.As(err, &full) || *full != (FullError{Want: 29, Free: 10}) {
		t.Errorf("removal without room: %v", err)
	}
	freed.Truncate(0)
	s.Truncate(31)
	s.Truncate(30)
	if a.Stats() != before {
		t.Errorf("truncation to the length or more: %+v", a.Stats())
	}
	if shift, err := s.Remove(7, 7); err != nil || !reflect.DeepEqual(shift, Shift{}) {
		t.Errorf("removal of nothing: %+v, %v", shift, err)
	}
	s.Truncate(-5)
	if s.Len() != 0 || len(s.Spans()) != 0 || shared.Len() != 30 {
		t.Errorf("truncation to -5: %d positions, %d in the fork", s.Len(), shared.Len())
	}
}

// TestRemoveWork: the copies and rotations of small cases, written out.
func TestRemoveWork(t *testing.T) {
	a := newArena(t, 128)
	s := a.NewSeq()
	grow(t, s, 40)
	shift, err := s.Remove(4, 10)
	want := Shift{Rotations: []Rotation{{Cell: 10, Len: 30, Delta: -6}}}
	if err != nil || !reflect.DeepEqual(shift, want) {
		t.Fatalf("own cells: %+v, %v, want %+v", shift, err, want)
	}
	if want := []Span{{0, 0, 4}, {4, 10, 30}}; !slices.Equal(s.Spans(), want) {
		t.Fatalf("spans %v, want %v", s.Spans(), want)
	}
	s.Truncate(0)
	grow(t, s, 20)
	f := s.Fork()
	grow(t, f, 2) // cells 20 and 21: only f's
	if shift, err = f.Remove(0, 16); err != nil {
		t.Fatal(err)
	}
	if len(shift.Copies) != 1 || shift.Copies[0].Src != 16 || shift.Copies[0].Len != 4 || shift.Copies[0].Dst%TileCells != 0 {
		t.Fatalf("copies %+v, want cells 16 to 19 to the start of a tile", shift.Copies)
	}
	if want := []Rotation{{shift.Copies[0].Dst, 4, -16}, {20, 2, -16}}; !slices.Equal(shift.Rotations, want) {
		t.Fatalf("rotations %+v, want %+v", shift.Rotations, want)
	}
	if st := a.Stats(); st.Copied != 4 || st.Shared != 0 || st.Used != 26 {
		t.Fatalf("%+v, want 4 copied, none shared, 26 used", st)
	}
	if shift, err = f.Remove(2, 6); err != nil || shift.Copies != nil || shift.Rotations != nil || f.Len() != 2 {
		t.Fatalf("removal of the end: %+v, %v", shift, err)
	}
}

// TestRemoveReusesWhatItFrees: copies may go to the cells that the same removal gives back.
func TestRemoveReusesWhatItFrees(t *testing.T) {
	a := newArena(t, 8)
	s := a.NewSeq()
	grow(t, s, 4)
	f := s.Fork() // shares 0 to 3
	grow(t, f, 4) // and has 4 more; none is free
	g := a.NewSeq()
	if _, err := f.Remove(0, 1); !errors.Is(err, ErrFull) {
		t.Fatalf("3 copies, none free: %v", err)
	}
	if err := g.SharePrefix(f, 4); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Remove(4, 7); err != nil || f.Len() != 5 {
		t.Fatalf("own cells: %v, length %d", err, f.Len())
	}
	if shift, err := f.Remove(0, 1); err != nil || len(shift.Copies) == 0 || a.Free() != 0 {
		t.Fatalf("3 copies, 3 free: %+v, %v, %d free", shift, err, a.Free())
	}
}

// TestNeverRefused: free cells admit as many positions, wherever they lie.
func TestNeverRefused(t *testing.T) {
	for _, keep := range []int{2, 3, 16, 17, 31} {
		const cells = 2051
		a := newArena(t, cells)
		var kept []*Seq
		for range cells {
			s := a.NewSeq()
			grow(t, s, 1)
			kept = append(kept, s)
		}
		for i, s := range kept {
			if i%keep != 0 {
				s.Free()
			}
		}
		free := a.Free()
		s, one := a.NewSeq(), a.NewSeq()
		grow(t, s, free)
		if a.Free() != 0 || s.Len() != free {
			t.Fatalf("keep %d: %d of %d used, %d free", keep, s.Len(), free, a.Free())
		}
		s.Free()
		for range free {
			grow(t, one, 1)
		}
		if err := one.Append(1); !errors.Is(err, ErrFull) {
			t.Fatalf("keep %d: full arena: %v", keep, err)
		}
	}
}

// TestPlacementAlone: one sequence is one span, however it grows.
func TestPlacementAlone(t *testing.T) {
	a := newArena(t, 4096)
	s := a.NewSeq()
	for n := 1; s.Len()+n <= 4096; n = n%37 + 1 {
		grow(t, s, n)
		if want := []Span{{0, 0, int32(s.Len())}}; !slices.Equal(s.Spans(), want) {
			t.Fatalf("length %d: %v", s.Len(), s.Spans())
		}
	}
}

// TestPlacementInterleaved: sequences that grow in turn keep long aligned spans.
func TestPlacementInterleaved(t *testing.T) {
	const seqs, length = 8, 2048
	a := newArena(t, seqs*length*3/2)
	var all []*Seq
	for range seqs {
		all = append(all, a.NewSeq())
	}
	for range length {
		for _, s := range all {
			grow(t, s, 1)
		}
	}
	for i, s := range all {
		if n := len(s.Spans()); n > 16 {
			t.Errorf("sequence %d: %d spans, want at most 16: %v", i, n, s.Spans())
		}
		if n := aligned(s); n != length {
			t.Errorf("sequence %d: %d of %d positions aligned", i, n, length)
		}
	}
}

// TestPlacementChurn: prompts of random length come, generate and go with the arena three quarters full.
func TestPlacementChurn(t *testing.T) {
	a := newArena(t, 16384)
	var live []*Seq
	spans, positions, off := 0, 0, 0
	for i := range 400 {
		s := a.NewSeq()
		grow(t, s, 100+i*7919%1500)
		live = append(live, s)
		for range 40 {
			for _, s := range live {
				grow(t, s, 1)
			}
		}
		for a.Free() < 4096 {
			k := i * 31 % len(live)
			spans += len(live[k].Spans())
			positions += live[k].Len()
			off += live[k].Len() - aligned(live[k])
			live[k].Free()
			live = slices.Delete(live, k, k+1)
		}
	}
	t.Logf("%d positions, %.1f to a span, %d not aligned", positions, float64(positions)/float64(spans), off)
	if positions/spans < 100 || off*100 > positions {
		t.Errorf("%d positions in %d spans, %d not aligned", positions, spans, off)
	}
}

// TestPlacementFork: of two continuations of a prefix one goes on in place, the other in a tile of its own, both aligned.
func TestPlacementFork(t *testing.T) {
	a := newArena(t, 1024)
	s := a.NewSeq()
	grow(t, s, 100)
	f := s.Fork()
	for range 100 {
		grow(t, s, 1)
		grow(t, f, 1)
	}
	if len(s.Spans()) > 2 || len(f.Spans()) > 2 || aligned(s) != 200 || aligned(f) != 200 {
		t.Errorf("spans %v and %v, %d and %d of 200 aligned", s.Spans(), f.Spans(), aligned(s), aligned(f))
	}
	if st := a.Stats(); st.Shared != 100 || st.Used != 300 || st.Seqs != 2 {
		t.Errorf("%+v, want 100 shared, 300 used", st)
	}
}

// TestPlacementBestFit: a new sequence goes to the shortest run of free tiles with room to grow.
func TestPlacementBestFit(t *testing.T) {
	a := newArena(t, 100*TileCells)
	s := a.NewSeq()
	grow(t, s, 100*TileCells)
	// From the end, so that positions before stay what they were: runs of 15, 2, 12 and 30 free tiles.
	for _, r := range [][2]int{{80, 95}, {70, 72}, {50, 62}, {10, 40}} {
		if _, err := s.Remove(r[0]*TileCells, r[1]*TileCells); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ tiles, at int }{
		{6, 50},  // with 4 ahead: in the 12
		{12, 10}, // with 6 ahead: in the 30
		{2, 28},  // after the 6 that those hold, though 2 would just fit in the 2
	} {
		n := a.NewSeq()
		grow(t, n, c.tiles*TileCells)
		if want := []Span{{0, int32(c.at * TileCells), int32(c.tiles * TileCells)}}; !slices.Equal(n.Spans(), want) {
			t.Errorf("%d tiles: %v, want %v", c.tiles, n.Spans(), want)
		}
	}
}

// TestPlacementAfterShift: a sequence that a removal has put out of step goes on in the tiles that it holds, in step.
func TestPlacementAfterShift(t *testing.T) {
	a := newArena(t, 1024)
	s, o := a.NewSeq(), a.NewSeq()
	grow(t, s, 100) // tiles 0 to 6
	grow(t, o, 100)
	if _, err := s.Remove(10, 15); err != nil {
		t.Fatal(err)
	}
	for s.Len() < 130 {
		grow(t, s, 1)
		grow(t, o, 1)
	}
	// 95 positions, then cell 100: position 95 ends a tile's worth, position 96 begins tile 7.
	want := []Span{{0, 0, 10}, {10, 15, 86}, {96, 112, 34}}
	if !slices.Equal(s.Spans(), want) || len(o.Spans()) != 1 {
		t.Errorf("spans %v and %v, want %v and one", s.Spans(), o.Spans(), want)
	}
}

// TestAppendAllocatesNothing: within the capacity of its slices.
func TestAppendAllocatesNothing(t *testing.T) {
	a := newArena(t, 1<<16)
	s, o := a.NewSeq(), a.NewSeq()
	grow(t, s, 3000)
	if n := testing.AllocsPerRun(2000, func() { grow(t, s, 1); grow(t, o, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	a := newArena(b, 1<<18)
	seqs := make([]*Seq, 8)
	for i := range seqs {
		seqs[i] = a.NewSeq()
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s := seqs[i%len(seqs)]
		if s.Len() == 30000 {
			s.Truncate(0)
		}
		grow(b, s, 1)
	}
}

// BenchmarkAppendFragmented appends where every second cell is used.
func BenchmarkAppendFragmented(b *testing.B) {
	a := newArena(b, 1<<16)
	held := make([]*Seq, 1<<16)
	for i := range held {
		held[i] = a.NewSeq()
		grow(b, held[i], 1)
	}
	for _, s := range held {
		if s.Cells()[0]%2 == 1 {
			s.Free()
		}
	}
	one := a.NewSeq()
	b.ReportAllocs()
	for b.Loop() {
		if a.Free() == 0 {
			one.Truncate(0)
		}
		grow(b, one, 1)
	}
}

// BenchmarkRemove drops 256 positions in the middle of 8192 and appends them again.
func BenchmarkRemove(b *testing.B) {
	a := newArena(b, 1<<16)
	s := a.NewSeq()
	grow(b, s, 8192)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Remove(1024, 1280); err != nil {
			b.Fatal(err)
		}
		grow(b, s, 256)
	}
}

// BenchmarkFork shares 8192 positions and lets go of them.
func BenchmarkFork(b *testing.B) {
	a := newArena(b, 1<<16)
	s := a.NewSeq()
	grow(b, s, 8192)
	b.ReportAllocs()
	for b.Loop() {
		s.Fork().Free()
	}
}
