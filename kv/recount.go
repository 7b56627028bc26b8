package kv

import "fmt"

// Reset frees all cells. The sequences of before must not be used again: what they hold means nothing.
func (a *Arena) Reset() {
	a.free, a.shared, a.nOpen, a.seqs = a.cells, 0, 0, 0
	clear(a.refs)
	clear(a.open)
	clear(a.some)
	clear(a.held)
	for t := range a.tiles {
		n := min(a.cells-t*TileCells, TileCells)
		a.mask[t] = uint16(1<<n - 1)
		a.mark(t)
	}
}

// Recount makes the arena hold what the given sequences hold, each of which may be named more than once, and nothing
// else: after a panic in the middle of an operation on another sequence the counts may be wrong. Sequences that are not
// named must not be used again. The error wraps ErrRange, ErrFreed or ErrArena when a sequence is none of this arena, or
// holds what cannot be; the arena is of no use then until Reset.
func (a *Arena) Recount(seqs []*Seq) error {
	a.Reset()
	seen := make(map[*Seq]bool, len(seqs))
	last := make([]*Seq, a.cells) // the sequence that was last found to hold a cell
	for _, s := range seqs {
		switch {
		case s == nil || s.a == nil:
			return ErrFreed
		case s.a != a:
			return ErrArena
		case seen[s]:
			continue
		}
		seen[s] = true
		a.seqs++
		for pos, c := range s.cells {
			switch {
			case c < 0 || int(c) >= a.cells:
				return fmt.Errorf("%w: position %d is in cell %d of %d", ErrRange, pos, c, a.cells)
			case last[c] == s:
				return fmt.Errorf("%w: position %d is in cell %d, as is another", ErrRange, pos, c)
			}
			last[c] = s
			if a.refs[c] > 0 {
				a.share(c)
				continue
			}
			a.refs[c] = 1
			a.mask[int(c)/TileCells] &^= 1 << (c % TileCells)
			a.mark(int(c) / TileCells)
			a.free--
		}
		s.spans = s.spans[:0]
		s.extendSpans(0)
		s.holdFrom, s.holdTo = 0, 0
	}
	for _, s := range seqs {
		s.hold()
	}
	return nil
}

// Check reports whether the arena holds exactly what the given sequences do, each of which may be named more than once:
// nil, or an error that names the first difference.
func (a *Arena) Check(seqs []*Seq) error {
	refs, used, shared := make([]uint32, a.cells), 0, 0
	seen := make(map[*Seq]bool, len(seqs))
	for _, s := range seqs {
		if s.a != a {
			return ErrArena
		}
		if seen[s] {
			continue
		}
		seen[s] = true
		for _, c := range s.cells {
			switch refs[c]++; refs[c] {
			case 1:
				used++
			case 2:
				shared++
			}
		}
	}
	for c, n := range refs {
		if n != a.refs[c] || (n == 0) != a.isFree(c) {
			return fmt.Errorf("%w: cell %d is held by %d sequences, the arena counts %d", ErrRange, c, n, a.refs[c])
		}
	}
	if used != a.cells-a.free || shared != a.shared || len(seen) != a.seqs {
		return fmt.Errorf("%w: %d cells are used, %d shared, by %d sequences; the arena counts %d, %d, %d", ErrRange,
			used, shared, len(seen), a.cells-a.free, a.shared, a.seqs)
	}
	return nil
}
