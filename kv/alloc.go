package kv

import "math/bits"

// alloc appends to dst the cells for positions [pos, pos+n) of s. prev is the cell of position pos-1, or -1. There must
// be n free cells. The ways are tried from the best to the worst: on from prev; in what s holds; in runs of free tiles that
// nobody holds; in any free tiles; in free ends of tiles at the right offset; on from prev whatever the offset; anywhere, longer runs first.
func (a *Arena) alloc(dst []int32, s *Seq, pos, n, prev int) []int32 {
	g := grower{a: a, s: s, dst: dst, pos: pos, left: n, prev: prev}
	g.inPlace()
	g.ahead()
	if g.left > 0 {
		s.release() // The run that the hold follows has come to its end.
		g.tiles(false)
		g.tiles(true)
		g.ends(false)
		g.ends(true)
		g.onFrom()
		g.anywhere(TileCells / 4)
		g.anywhere(1)
	}
	return g.dst
}

// grower is an allocation under way.
type grower struct {
	a               *Arena
	s               *Seq
	dst             []int32
	pos, left, prev int // the next position, how many are still wanted, the cell of pos-1 or -1
}

// take uses up to n free cells from cell on, all in one tile.
func (g *grower) take(cell, n int) {
	n = min(n, g.left)
	g.dst = g.a.take(g.dst, cell, n)
	g.pos += n
	g.left -= n
	g.prev = cell + n - 1
}

// inPlace goes on from the last cell. An aligned sequence goes to the end of its tile and then into the next tiles while
// they are free. One that is not aligned ends where an aligned tile can begin.
func (g *grower) inPlace() {
	a := g.a
	for g.left > 0 && g.prev >= 0 && a.isFree(g.prev+1) {
		cell := g.prev + 1
		tile, offset, phase := cell/TileCells, cell%TileCells, g.pos%TileCells
		switch {
		case offset != phase && (offset == 0 || phase == 0):
			return
		case offset != phase:
			g.take(cell, min(a.freeRun(cell), TileCells-phase))
		case offset != 0:
			g.take(cell, a.freeRun(cell))
		case hasBit(a.open, tile):
			g.take(cell, TileCells)
		default:
			return
		}
	}
}

// ahead takes the free tiles that the sequence holds after the one of the last cell.
func (g *grower) ahead() {
	if g.prev < 0 {
		return
	}
	first := g.prev/TileCells + 1
	end := first
	for g.s.holds(end) && hasBit(g.a.open, end) {
		end++
	}
	g.tileRun(first, end-first)
	g.inPlace()
}

// tiles takes runs of free tiles: those that nobody holds, or with held set all. One run for everything if there is one:
// the shortest that leaves room to grow, or else the longest. If not, the longest runs, in the order of their cells.
func (g *grower) tiles(held bool) {
	a := g.a
	for g.left > 0 && a.nOpen > 0 {
		need := (g.pos%TileCells + g.left + TileCells - 1) / TileCells
		roomy := need + g.s.ahead()
		fitStart, fitLen, longStart, longLen := 0, 0, 0, 0
		for start, end := a.run(0, held); start < end; start, end = a.run(end, held) {
			n := end - start
			if n >= roomy && (fitLen == 0 || n < fitLen) {
				fitStart, fitLen = start, n
			}
			if n > longLen {
				longStart, longLen = start, n
			}
		}
		switch {
		case longLen == 0:
			return
		case fitLen > 0:
			g.tileRun(fitStart, fitLen)
		case longLen >= need:
			g.tileRun(longStart, longLen)
		default:
			// All runs of at least half the longest in one sweep: so the number of sweeps is logarithmic.
			for start, end := a.run(0, held); start < end && g.left > 0; start, end = a.run(end, held) {
				if end-start >= (longLen+1)/2 {
					g.tileRun(start, end-start)
				}
			}
		}
	}
}

// tileRun takes cells of n free tiles, the first at the offset of the position.
func (g *grower) tileRun(tile, n int) {
	for t := tile; t < tile+n && g.left > 0; t++ {
		phase := g.pos % TileCells
		g.take(t*TileCells+phase, TileCells-phase)
	}
}

// ends takes the free ends of partly used tiles, where they reach back to the offset of the position: of those that
// nobody holds, or with held set of all.
func (g *grower) ends(held bool) {
	a := g.a
	for w := 0; w < len(a.some) && g.left > 0; w++ {
		set := a.some[w]
		if !held {
			set &^= a.held[w]
		}
		for ; set != 0 && g.left > 0; set &= set - 1 {
			cell := (w*64+bits.TrailingZeros64(set))*TileCells + g.pos%TileCells
			if n := a.freeRun(cell); n >= min(g.left, TileCells-g.pos%TileCells) {
				g.take(cell, n)
			}
		}
	}
}

// onFrom goes on from the last cell, aligned or not, held or not.
func (g *grower) onFrom() {
	for g.left > 0 && g.prev >= 0 && g.a.isFree(g.prev+1) {
		g.take(g.prev+1, g.a.freeRun(g.prev+1))
	}
}

// anywhere takes any runs of free cells within a tile that have at least the given length.
func (g *grower) anywhere(atLeast int) {
	a := g.a
	for w := 0; w < len(a.some) && g.left > 0; w++ {
		for set := a.some[w]; set != 0; set &= set - 1 {
			tile := w*64 + bits.TrailingZeros64(set)
			if m := a.mask[tile]; atLeast > 1 && m&(m>>1)&(m>>(atLeast-1)) == 0 {
				continue // The common case of crumbs, told at once.
			}
			first := tile * TileCells
			for offset := 0; offset < TileCells && g.left > 0; {
				n := a.freeRun(first + offset)
				if n >= atLeast {
					g.take(first+offset, n)
				}
				offset += n + 1
			}
		}
	}
}

// run returns the first run of open tiles at or after tile from, as [start, end), those that are held left out unless
// asked for. Empty if there is none.
func (a *Arena) run(from int, held bool) (start, end int) {
	start = a.scan(from, held, 0)
	return start, a.scan(start, held, ^uint64(0))
}

// scan returns the first tile at or after from that is available (flip 0) or is not (flip all ones), or the number of
// tiles.
func (a *Arena) scan(from int, held bool, flip uint64) int {
	for w := from / 64; w < len(a.open); w++ {
		set := a.open[w]
		if !held {
			set &^= a.held[w]
		}
		set ^= flip
		if w == from/64 {
			set &= ^uint64(0) << (from % 64)
		}
		if set != 0 {
			return min(w*64+bits.TrailingZeros64(set), a.tiles)
		}
	}
	return a.tiles
}

const (
	// minAhead and maxAhead bound the tiles that a sequence holds after its last one.
	minAhead = 4
	maxAhead = 64
)

// ahead returns how many tiles s wants to hold after its last: half its length, so that the number of its spans grows
// with the logarithm of its length, but no more than its share of the free tiles.
func (s *Seq) ahead() int {
	n := min(max(len(s.cells)/(2*TileCells), minAhead), maxAhead)
	return min(n, s.a.nOpen/s.a.seqs)
}

// holds reports whether the tile is in the hold of s.
func (s *Seq) holds(tile int) bool { return s.holdFrom <= tile && tile < s.holdTo }

// hold renews the hold of s after its last cell changed: the tile of that cell and the free tiles after it.
func (s *Seq) hold() {
	if len(s.cells) == 0 {
		s.release()
		return
	}
	a := s.a
	tile := int(s.cells[len(s.cells)-1]) / TileCells
	if s.holds(tile) && (tile == s.holdFrom || tile+1 < s.holdTo) {
		for ; s.holdFrom < tile; s.holdFrom++ {
			a.held[s.holdFrom/64] &^= 1 << (s.holdFrom % 64)
		}
		return
	}
	s.release()
	if hasBit(a.held, tile) {
		return // Another's last tile.
	}
	s.holdFrom, s.holdTo = tile, tile
	for end := tile + 1 + s.ahead(); ; {
		a.held[s.holdTo/64] |= 1 << (s.holdTo % 64)
		s.holdTo++
		if s.holdTo >= min(end, a.tiles) || !hasBit(a.open, s.holdTo) || hasBit(a.held, s.holdTo) {
			return
		}
	}
}

// release gives up the hold of s.
func (s *Seq) release() {
	for t := s.holdFrom; t < s.holdTo; t++ {
		s.a.held[t/64] &^= 1 << (t % 64)
	}
	s.holdFrom, s.holdTo = 0, 0
}
