//go:build (amd64 || arm64) && !purego

package simd

import "unsafe"

// attnASM are the assembly kernels of one set. They see only addresses; the methods check the lengths.
type attnASM struct {
	scores, scoresHalf func(s *float32, k *byte, q *float32, koff, qoff *int, n, hd int)
	values, valuesHalf func(acc, alpha, p *float32, v *byte, cells *int32, n, count, hd int)
	gather, gatherHalf func(dst *float32, src *byte, lanes *int32, mask, hd int)
	pair, pairHalf     func(dst *float32, a, b *byte, lanes *int32, hd int) // optional: gather for one or two tiles
	softmax            func(s, m, sum, alpha *float32, lo, hi *int32, n int, scale float32)
	axpby              func(acc, x *float32, n int, a, b float32)
	scale              func(dst, x *float32, n int, s float32)
	widen              func(dst *float32, x *uint16, n int)

	// KVQ8: a tile of keys, or a row of values, of blocks·32 elements as float32; and scores and values that read cells
	// as they are stored, for jobs of at most packedQ8 queries.
	widenKeys, widenValues func(dst *float32, src *byte, blocks int)
	scoresQ8               func(s *float32, k *byte, q *float32, koff, qoff *int, n, hd int)
	valuesQ8               func(acc, alpha, p *float32, v *byte, cells *int32, n, count, hd int)
	packedQ8               int
}

// install makes k use the kernels.
func (asm *attnASM) install(k *attnKernels) {
	k.load = asm.load
	k.scores = asm.blockScores
	k.values = asm.blockValues
	k.softmax = func(s, m, sum []float32, t *attnTile, scale float32) {
		_, _, _ = s[t.n*attnBlock-1], m[t.n-1], sum[t.n*KVTile-1]
		asm.softmax(&s[0], &m[0], &sum[0], &t.alpha[0], &t.lo[0], &t.hi[0], t.n, scale)
	}
	k.axpby = func(acc, x []float32, f, g float32) { asm.axpby(&acc[0], &x[:len(acc)][0], len(acc), f, g) }
	k.scale = func(dst, x []float32, f float32) { asm.scale(&dst[0], &x[:len(dst)][0], len(dst), f) }
}

// identity are the rows of a block of values that was brought together.
var identity = func() (rows [attnBlock]int32) {
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}()

// gatherFrom is the number of queries from which a block of halves is converted once. Conversion shares
// the ports of the multiplications on some processors, and is almost free on others.
const gatherFrom = 64

func (asm *attnASM) load(s *AttnScratch, job *AttnJob, at, from, to, nq int) {
	l, b, cells := job.KV, &s.block, job.Cells[at:at+to]
	region := l.Cells * l.Type.RowBytes(l.HeadDim)
	b.hd, b.typ, b.k, b.v = l.HeadDim, l.Type, nil, nil
	b.layerK, b.layerV = l.K[job.KVHead*region:][:region], l.V[job.KVHead*region:][:region]
	b.cells = cells
	// Whether keys and values are converted once, not with every pass over them.
	convert := b.typ == KVQ8 && nq > asm.packedQ8 || b.typ == KVF16 && nq >= gatherFrom
	if convert {
		asm.convertValues(s, from, to)
	} else if b.locateTiles(from, to) {
		return
	}
	b.check(cells[from:])
	b.k = s.k
	s.wideTile = [2]int32{-1, -1}
	for p := from - from%KVTile; p < to; p += KVTile {
		asm.gatherTile(s, p, max(from, p), min(to, p+KVTile))
	}
}

// convertValues brings the values of the positions from <= p < to of the block together as float32.
func (asm *attnASM) convertValues(s *AttnScratch, from, to int) {
	b, n := &s.block, s.block.rowBytes()
	for p := from; p < to; p++ {
		row, dst := b.layerV[int(b.cells[p])*n:][:n], s.v[p*b.hd:(p+1)*b.hd]
		if b.typ == KVQ8 {
			asm.widenValues(&dst[0], &row[0], b.hd/BlockLen)
		} else {
			asm.widen(&dst[0], (*uint16)(unsafe.Pointer(&row[0])), b.hd)
		}
	}
	b.v = s.v
}

// locateTiles finds the block's tiles of keys in the layer; it fails if some are not tiles there. The kernels take
// addresses, so that cells outside of the layer must be caught here (tiles) or in check (all else).
func (b *attnView) locateTiles(from, to int) bool {
	for t := range blockTiles {
		lo, hi := max(t*KVTile, from), min((t+1)*KVTile, to)
		if lo >= hi { // not needed, but read
			b.tiles[t] = 0
			continue
		}
		base := b.cells[lo] - int32(lo%KVTile)
		differ, want := base%KVTile, b.cells[lo]
		for _, c := range b.cells[lo:hi] {
			differ |= c ^ want
			want++
		}
		if differ != 0 {
			return false
		}
		b.tiles[t] = int(base) * b.rowBytes()
		_ = b.layerV[b.tiles[t]:][:KVTile*b.rowBytes()]
	}
	return true
}

// check panics on a cell outside of the layer.
func (b *attnView) check(cells []int32) {
	n := b.rowBytes()
	for _, c := range cells {
		_ = b.layerV[int(c)*n:][:n]
	}
}

// rowBytes is the size in bytes of a stored key or value.
func (b *attnView) rowBytes() int { return b.typ.RowBytes(b.hd) }

// gatherTile brings the keys of positions from <= p < to, which lie in the tile that begins at position at of the block,
// together from the tiles that hold them.
func (asm *attnASM) gatherTile(s *AttnScratch, at, from, to int) {
	b := &s.block
	dst := s.k[at*b.hd : (at+KVTile)*b.hd]
	if b.typ == KVQ8 && isTile(b.cells[from:to], from-at) {
		asm.widenKeys(&dst[0], &b.tile(b.cells[from] / KVTile)[0], b.hd/BlockLen)
		return
	}
	if asm.pair != nil && asm.gatherPair(s, dst, b.cells[from:to], from-at) {
		return
	}
	kernel := asm.gather
	if b.typ == KVF16 {
		kernel = asm.gatherHalf
	}
	for p, done := from, 0; p < to; p++ {
		if done>>(p-at)&1 != 0 {
			continue
		}
		tile, mask := b.cells[p]/KVTile, 0
		for i := p; i < to; i++ {
			if b.cells[i]/KVTile == tile {
				mask |= 1 << (i - at)
				s.lanes[i-at] = b.cells[i] % KVTile
			}
		}
		done |= mask
		kernel(&dst[0], asm.keys(s, tile, tile), &s.lanes[0], mask, b.hd)
	}
}

// gatherPair is gatherTile for cells that lie in at most two tiles, those of the first and the last; it reports whether
// they do. The first cell goes to the given lane.
func (asm *attnASM) gatherPair(s *AttnScratch, dst []float32, cells []int32, lane int) bool {
	x, y := cells[0]/KVTile, cells[len(cells)-1]/KVTile
	for i, c := range cells {
		switch c / KVTile {
		case x:
			s.lanes[lane+i] = c % KVTile
		case y:
			s.lanes[lane+i] = c%KVTile + KVTile
		default:
			return false
		}
	}
	kernel, b := asm.pair, &s.block
	if b.typ == KVF16 {
		kernel = asm.pairHalf
	}
	kernel(&dst[0], asm.keys(s, x, y), asm.keys(s, y, x), &s.lanes[0], b.hd)
	return true
}

// isTile reports whether the cells lie in one tile, the first of them in the given lane and the others after it.
func isTile(cells []int32, lane int) bool {
	if int(cells[0]%KVTile) != lane {
		return false
	}
	for i, c := range cells {
		if c != cells[0]+int32(i) {
			return false
		}
	}
	return true
}

// keys is one tile of keys in a form that the gather kernels read: as stored, or for KVQ8 as float32. The one of tile
// other stays as it is.
func (asm *attnASM) keys(s *AttnScratch, tile, other int32) *byte {
	b := &s.block
	if b.typ != KVQ8 {
		return &b.tile(tile)[0]
	}
	slot := 0
	switch {
	case s.wideTile[0] == tile:
		return floatBytes(s.wide[0])
	case s.wideTile[1] == tile:
		return floatBytes(s.wide[1])
	case s.wideTile[0] == other:
		slot = 1
	}
	asm.widenKeys(&s.wide[slot][:KVTile*b.hd][0], &b.tile(tile)[0], b.hd/BlockLen)
	s.wideTile[slot] = tile
	return floatBytes(s.wide[slot])
}

// tile is one tile of the layer's keys.
func (b *attnView) tile(i int32) []byte {
	n := KVTile * b.rowBytes()
	return b.layerK[int(i)*n:][:n]
}

// floatBytes is the first byte of x.
func floatBytes(x []float32) *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(x))) }

func (asm *attnASM) blockScores(s, q []float32, b *attnView, t *attnTile) {
	_ = s[t.n*attnBlock-1]
	for _, at := range t.q[:t.n] {
		_ = q[at : at+b.hd]
	}
	if b.k != nil {
		for i := range b.tiles {
			b.tiles[i] = i * b.hd * KVTile * 4
		}
		_ = b.k[attnBlock*b.hd-1]
		asm.scores(&s[0], floatBytes(b.k), &q[0], &b.tiles[0], &t.q[0], t.n, b.hd)
		return
	}
	for _, at := range b.tiles {
		_ = b.layerK[at : at+KVTile*b.rowBytes()]
	}
	kernel := asm.scores
	switch b.typ {
	case KVF16:
		kernel = asm.scoresHalf
	case KVQ8:
		kernel = asm.scoresQ8
	}
	kernel(&s[0], &b.layerK[0], &q[0], &b.tiles[0], &t.q[0], t.n, b.hd)
}

func (asm *attnASM) blockValues(acc, alpha, p []float32, b *attnView, n, lo, hi int) {
	_, _, _ = acc[n*b.hd-1], alpha[n-1], p[(n-1)*attnBlock+hi-1]
	if b.v != nil {
		_ = b.v[hi*b.hd-1]
		asm.values(&acc[0], &alpha[0], &p[lo], floatBytes(b.v), &identity[lo], n, hi-lo, b.hd)
		return
	}
	_ = b.cells[lo:hi]
	kernel := asm.values
	switch b.typ {
	case KVF16:
		kernel = asm.valuesHalf
	case KVQ8:
		kernel = asm.valuesQ8
	}
	kernel(&acc[0], &alpha[0], &p[lo], &b.layerV[0], &b.cells[lo], n, hi-lo, b.hd)
}

// narrowRow is F32ToF16 of a set from src to the row of halves at the start of dst.
func narrowRow(isa ISA, dst []byte, src []float32) {
	if len(src) > 0 {
		dst = dst[:2*len(src)]
		narrow(isa, unsafe.Slice((*uint16)(unsafe.Pointer(&dst[0])), len(src)), src)
	}
}
