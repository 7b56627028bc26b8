package kv

import (
	"fmt"
	"slices"
)

// A Copy is work for the backend: in every layer, cells [Dst, Dst+Len) get the content of [Src, Src+Len), K and V. The
// two never overlap, nor do the Dst of one copy and the Src of another of the same Shift.
type Copy struct{ Src, Dst, Len int32 }

// A Rotation is work for the backend: in every layer, the K of cells [Cell, Cell+Len) is rotated by Delta positions, as
// RoPE would for a token that lies Delta positions later than it did (Delta is negative for an earlier one).
type Rotation struct{ Cell, Len, Delta int32 }

// A Shift is what the backend has to do after a Remove: all Copies, then all Rotations, each in any order.
type Shift struct {
	Copies    []Copy
	Rotations []Rotation
}

// Remove drops positions [from, to); those at to and later move down by to-from, so that their K must be rotated by
// -(to-from). A moved cell that another sequence holds too stays as it is for that one, and s gets a copy in a new cell.
// Removing the end of a sequence or nothing at all leaves no work to do.
//
// The error is ErrFreed, or wraps ErrRange, or ErrFull when the copies do not fit, the cells counted that the removal
// itself frees. Then nothing has changed.
func (s *Seq) Remove(from, to int) (Shift, error) {
	a := s.a
	switch {
	case a == nil:
		return Shift{}, ErrFreed
	case from < 0 || to < from || to > len(s.cells):
		return Shift{}, fmt.Errorf("%w: removal of positions %d to %d of %d", ErrRange, from, to, len(s.cells))
	case from == to:
		return Shift{}, nil
	case to == len(s.cells):
		s.Truncate(from)
		return Shift{}, nil
	}
	want, free := 0, a.free
	for _, c := range s.cells[to:] {
		if a.refs[c] > 1 {
			want++
		}
	}
	for _, c := range s.cells[from:to] {
		if a.refs[c] == 1 {
			free++
		}
	}
	if want > free {
		return Shift{}, fmt.Errorf("kv: copies for a removal: %w", &FullError{Want: want, Free: free})
	}

	for _, c := range s.cells[from:to] {
		a.drop(c)
	}
	moved := slices.Clone(s.cells[to:])
	s.cells = s.cells[:from]
	s.cutSpans(from)
	var work Shift
	for i := 0; i < len(moved); {
		// The run of moved cells from i on that are shared, or that are not.
		shared, end := a.refs[moved[i]] > 1, i+1
		for end < len(moved) && (a.refs[moved[end]] > 1) == shared {
			end++
		}
		if shared {
			work.Copies = s.copyCells(work.Copies, moved[i:end])
		} else {
			s.cells = append(s.cells, moved[i:end]...)
		}
		i = end
	}
	for _, c := range s.cells[from:] {
		if n := len(work.Rotations); n > 0 && work.Rotations[n-1].Cell+work.Rotations[n-1].Len == c {
			work.Rotations[n-1].Len++
			continue
		}
		work.Rotations = append(work.Rotations, Rotation{Cell: c, Len: 1, Delta: int32(from - to)})
	}
	s.extendSpans(from)
	s.hold()
	return work, nil
}

// copyCells appends new cells to s in place of the given shared ones, and the copies to list.
func (s *Seq) copyCells(list []Copy, shared []int32) []Copy {
	pos, prev := len(s.cells), -1
	if pos > 0 {
		prev = int(s.cells[pos-1])
	}
	s.cells = s.a.alloc(s.cells, s, pos, len(shared), prev)
	s.a.copied += int64(len(shared))
	first := len(list)
	for i, src := range shared {
		s.a.drop(src)
		dst := s.cells[pos+i]
		if n := len(list); n > first && list[n-1].Src+list[n-1].Len == src && list[n-1].Dst+list[n-1].Len == dst {
			list[n-1].Len++
			continue
		}
		list = append(list, Copy{Src: src, Dst: dst, Len: 1})
	}
	return list
}
