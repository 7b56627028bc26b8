package kv

import (
	"errors"
	"fmt"
	"math/bits"
)

const (
	// TileCells is the number of cells in a tile, the unit that placement aligns to.
	TileCells = 16
	// MaxCells is the largest arena. Positions and cells are int32 and take 4 bytes of bookkeeping each per sequence.
	MaxCells = 1 << 24

	tileFree = 1<<TileCells - 1 // mask of a tile whose cells are all free
)

var (
	// ErrFull is wrapped by the error of an operation that needs more cells than are free: a *FullError.
	ErrFull = errors.New("kv: not enough free cells")
	// ErrFreed is returned by operations on a sequence after Free.
	ErrFreed = errors.New("kv: sequence was freed")
	// ErrRange is wrapped by errors about counts or positions out of range.
	ErrRange = errors.New("kv: out of range")
	// ErrNotEmpty is wrapped by the error of SharePrefix into a sequence that holds positions.
	ErrNotEmpty = errors.New("kv: sequence is not empty")
	// ErrArena is returned by SharePrefix between sequences of different arenas.
	ErrArena = errors.New("kv: sequences of different arenas")
)

// A FullError says how many cells were wanted and how many were free. It wraps ErrFull.
type FullError struct{ Want, Free int }

// Error gives both counts.
func (e *FullError) Error() string {
	return fmt.Sprintf("%v: want %d, free %d", ErrFull, e.Want, e.Free)
}

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }

// An Arena owns a fixed number of cells. See the package comment for the rules.
type Arena struct {
	cells  int
	tiles  int // the last may be cut short: its missing cells are never free
	free   int // cells
	shared int // cells with more than one reference
	nOpen  int // tiles with all cells free
	seqs   int // not yet freed
	copied int64

	refs []uint32 // per cell: how many sequences hold it
	mask []uint16 // per tile: bit i is set when its cell i is free
	// One bit per tile.
	open []uint64 // all cells free
	some []uint64 // some cell free
	held []uint64 // within the hold of one sequence
}

// NewArena returns an arena of the given number of cells, 1 to MaxCells; the error wraps ErrRange. It takes about 4.2
// bytes a cell.
func NewArena(cells int) (*Arena, error) {
	if cells < 1 || cells > MaxCells {
		return nil, fmt.Errorf("%w: %d cells, limit 1 to %d", ErrRange, cells, MaxCells)
	}
	tiles := (cells + TileCells - 1) / TileCells
	words := (tiles + 63) / 64
	a := &Arena{
		cells: cells, tiles: tiles,
		refs: make([]uint32, cells), mask: make([]uint16, tiles),
		open: make([]uint64, words), some: make([]uint64, words), held: make([]uint64, words),
	}
	a.Reset()
	return a, nil
}

// Free returns the number of free cells: an Append of as many succeeds.
func (a *Arena) Free() int { return a.free }

// OpenTiles returns the number of tiles whose cells are all free.
func (a *Arena) OpenTiles() int { return a.nOpen }

// Stats describes an arena at one moment.
type Stats struct {
	Total, Free, Used int   // cells; a shared one is used once
	Shared            int   // cells held by more than one sequence
	Seqs              int   // sequences not freed
	FreeExtents       int   // maximal runs of free cells
	LargestExtent     int   // cells in the longest of them
	Copied            int64 // cells copied on write since NewArena
}

// Stats counts; it takes time in proportion to the arena's size.
func (a *Arena) Stats() Stats {
	s := Stats{Total: a.cells, Free: a.free, Used: a.cells - a.free, Shared: a.shared, Seqs: a.seqs, Copied: a.copied}
	run := 0
	end := func() {
		if run > 0 {
			s.FreeExtents++
			s.LargestExtent = max(s.LargestExtent, run)
		}
		run = 0
	}
	for _, m := range a.mask {
		switch m {
		case tileFree:
			run += TileCells
		case 0:
			end()
		default:
			for i := range TileCells {
				if m>>i&1 == 0 {
					end()
				} else {
					run++
				}
			}
		}
	}
	end()
	return s
}

// mark sets the tile's bits from its mask.
func (a *Arena) mark(tile int) {
	w, b := tile/64, uint64(1)<<(tile%64)
	m := a.mask[tile]
	if was, is := a.open[w]&b != 0, m == tileFree; is && !was {
		a.open[w] |= b
		a.nOpen++
	} else if was && !is {
		a.open[w] &^= b
		a.nOpen--
	}
	if m != 0 {
		a.some[w] |= b
	} else {
		a.some[w] &^= b
	}
}

// take makes n free cells of one tile used, with one reference each, and appends them to dst.
func (a *Arena) take(dst []int32, cell, n int) []int32 {
	tile := cell / TileCells
	a.mask[tile] &^= uint16((1<<n - 1) << (cell % TileCells))
	a.mark(tile)
	a.free -= n
	for c := cell; c < cell+n; c++ {
		a.refs[c] = 1
		dst = append(dst, int32(c))
	}
	return dst
}

// share adds a reference to a used cell.
func (a *Arena) share(cell int32) {
	if a.refs[cell]++; a.refs[cell] == 2 {
		a.shared++
	}
}

// drop removes a reference; the last one frees the cell.
func (a *Arena) drop(cell int32) {
	a.refs[cell]--
	switch a.refs[cell] {
	case 1:
		a.shared--
	case 0:
		tile := int(cell) / TileCells
		a.mask[tile] |= 1 << (cell % TileCells)
		a.mark(tile)
		a.free++
	}
}

// isFree reports whether the cell exists and is free.
func (a *Arena) isFree(cell int) bool {
	return cell < a.cells && a.mask[cell/TileCells]>>(cell%TileCells)&1 != 0
}

// freeRun returns the number of free cells from cell on, within its tile.
func (a *Arena) freeRun(cell int) int {
	return bits.TrailingZeros16(^(a.mask[cell/TileCells] >> (cell % TileCells)))
}

func hasBit(set []uint64, i int) bool { return set[i/64]>>(i%64)&1 != 0 }
