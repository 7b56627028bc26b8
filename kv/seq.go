package kv

import "fmt"

// A Span is Len consecutive positions from Pos on in Len consecutive cells from Cell on.
type Span struct{ Pos, Cell, Len int32 }

// A Seq is a sequence of positions [0, Len()), each in a cell. It belongs to one arena and is changed only through its
// methods. After Free it is empty for good.
type Seq struct {
	a     *Arena // nil after Free
	cells []int32
	spans []Span
	// Tiles [holdFrom, holdTo) are kept for growth, where possible: the last cell's and free ones after it.
	holdFrom, holdTo int
}

// NewSeq returns an empty sequence. It holds no cells.
func (a *Arena) NewSeq() *Seq {
	a.seqs++
	return &Seq{a: a}
}

// Len returns the number of positions held.
func (s *Seq) Len() int { return len(s.cells) }

// Cells returns the cell of each position; its length is Len(). It must not be changed and is valid until the next
// change of the sequence.
func (s *Seq) Cells() []int32 { return s.cells }

// Spans returns the same as Cells, as maximal spans in the order of positions. It must not be changed and is valid until
// the next change of the sequence.
func (s *Seq) Spans() []Span { return s.spans }

// Append adds n positions at the end, each in a cell that no other sequence holds and whose content is undefined. The
// error is ErrFreed, or wraps ErrRange (n < 0) or ErrFull (a *FullError); then nothing has changed.
func (s *Seq) Append(n int) error {
	switch {
	case s.a == nil:
		return ErrFreed
	case n < 0:
		return fmt.Errorf("%w: append of %d positions", ErrRange, n)
	case n > s.a.free:
		return &FullError{Want: n, Free: s.a.free}
	case n == 0:
		return nil
	}
	from, prev := len(s.cells), -1
	if from > 0 {
		prev = int(s.cells[from-1])
	}
	s.cells = s.a.alloc(s.cells, s, from, n, prev)
	s.extendSpans(from)
	s.hold()
	return nil
}

// extendSpans adds positions from on, which no span covers yet.
func (s *Seq) extendSpans(from int) {
	for pos := from; pos < len(s.cells); pos++ {
		cell := s.cells[pos]
		if n := len(s.spans); n > 0 && s.spans[n-1].Cell+s.spans[n-1].Len == cell {
			s.spans[n-1].Len++
			continue
		}
		s.spans = append(s.spans, Span{Pos: int32(pos), Cell: cell, Len: 1})
	}
}

// cutSpans removes positions n and later from the spans.
func (s *Seq) cutSpans(n int) {
	i := len(s.spans)
	for i > 0 && int(s.spans[i-1].Pos) >= n {
		i--
	}
	s.spans = s.spans[:i]
	if i > 0 {
		last := &s.spans[i-1]
		last.Len = min(last.Len, int32(n)-last.Pos)
	}
}

// Fork returns a new sequence of the same positions in the same cells. Of a freed sequence it returns another freed one.
func (s *Seq) Fork() *Seq {
	if s.a == nil {
		return &Seq{}
	}
	f := s.a.NewSeq()
	f.shareFrom(s, len(s.cells))
	return f
}

// SharePrefix makes s, which must be empty, hold the first n positions of src in the same cells. The error is ErrFreed
// (either sequence), ErrArena, or wraps ErrNotEmpty or ErrRange; then nothing has changed.
func (s *Seq) SharePrefix(src *Seq, n int) error {
	switch {
	case s.a == nil || src == nil || src.a == nil:
		return ErrFreed
	case s.a != src.a:
		return ErrArena
	case len(s.cells) > 0:
		return fmt.Errorf("%w: it holds %d positions", ErrNotEmpty, len(s.cells))
	case n < 0 || n > len(src.cells):
		return fmt.Errorf("%w: prefix of %d positions of %d", ErrRange, n, len(src.cells))
	}
	s.shareFrom(src, n)
	return nil
}

func (s *Seq) shareFrom(src *Seq, n int) {
	s.cells = append(s.cells[:0], src.cells[:n]...)
	for _, c := range s.cells {
		s.a.share(c)
	}
	s.spans = append(s.spans[:0], src.spans...)
	s.cutSpans(n)
}

// Truncate drops positions n and later; n below 0 counts as 0. It does nothing if there are none, or after Free.
func (s *Seq) Truncate(n int) {
	n = max(n, 0)
	if n >= len(s.cells) {
		return
	}
	for _, c := range s.cells[n:] {
		s.a.drop(c)
	}
	s.cells = s.cells[:n]
	s.cutSpans(n)
	s.hold()
}

// Free drops all positions and ends the sequence. Freeing again does nothing.
func (s *Seq) Free() {
	if s.a == nil {
		return
	}
	s.Truncate(0)
	s.a.seqs--
	*s = Seq{}
}
