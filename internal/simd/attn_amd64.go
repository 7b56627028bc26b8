//go:build amd64 && !purego

package simd

import "unsafe"

func accelerateAttn(isa ISA, a *Attn) {
	if isa != AVX512 {
		return
	}
	odd := a.kern
	a.odd = &odd
	a.kern = attnKernels{
		queries: 6,
		small:   7,
		load:    loadAVX512,
		scores:  scoresAVX512,
		softmax: softmaxAVX512,
		values:  valuesAVX512,
		axpby: func(acc, x []float32, a, b float32) {
			_ = x[len(acc)-1]
			axpbyAVX512(&acc[0], &x[0], len(acc), a, b)
		},
		scale: func(dst, x []float32, s float32) { scaleAVX512(&dst[0], &x[:len(dst)][0], len(dst), s) },
	}
}

// identity are the rows of a block of values that was brought together.
var identity = func() (rows [attnBlock]int32) {
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}()

// gatherFrom is the number of queries from which it pays to convert a block of halves once.
const gatherFrom = 15

func loadAVX512(s *AttnScratch, job *AttnJob, at, from, to, nq int) {
	l, b, cells := job.KV, &s.block, job.Cells[at:at+to]
	hd, size := l.HeadDim, l.Type.Size()
	region := l.Cells * hd * size
	b.hd, b.half, b.k, b.v = hd, l.Type == KVF16, nil, nil
	b.layerK, b.layerV = l.K[job.KVHead*region:][:region], l.V[job.KVHead*region:][:region]
	b.cells = cells
	convert := b.half && nq >= gatherFrom
	if convert {
		for p := from; p < to; p++ {
			row := b.layerV[int(cells[p])*hd*size:]
			f16ToF32Wide(s.v[p*hd:(p+1)*hd], unsafe.Slice((*uint16)(unsafe.Pointer(&row[0])), hd))
		}
		b.v = s.v
	}
	if !convert && b.locateTiles(from, to) {
		return
	}
	b.k = s.k
	for p := from - from%KVTile; p < to; p += KVTile {
		gatherTileAVX512(s, p, max(from, p), min(to, p+KVTile))
	}
}

// locateTiles finds the block's tiles of keys in the layer; it fails if some are not tiles there.
func (b *attnView) locateTiles(from, to int) bool {
	for t := range blockTiles {
		lo, hi := max(t*KVTile, from), min((t+1)*KVTile, to)
		if lo >= hi { // not needed, but read
			b.tiles[t] = 0
			continue
		}
		base := b.cells[lo] - int32(lo%KVTile)
		if base%KVTile != 0 || base < 0 {
			return false
		}
		for p := lo + 1; p < hi; p++ {
			if b.cells[p] != base+int32(p%KVTile) {
				return false
			}
		}
		b.tiles[t] = int(base) * b.hd * (4 >> b.shift())
	}
	return true
}

// shift is 1 where elements are halves.
func (b *attnView) shift() int {
	if b.half {
		return 1
	}
	return 0
}

// gatherTileAVX512 brings the keys of positions from <= p < to, which lie in the tile that begins at position at of the
// block, together from the tiles that hold them.
func gatherTileAVX512(s *AttnScratch, at, from, to int) {
	b, done := &s.block, 0
	dst := s.k[at*b.hd : (at+KVTile)*b.hd]
	for p := from; p < to; p++ {
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
		src := b.layerK[int(tile)*KVTile*b.hd*(4>>b.shift()):][:KVTile*b.hd*(4>>b.shift())]
		if b.half {
			attnGatherTileF16AVX512(&dst[0], &src[0], &s.lanes[0], mask, b.hd)
		} else {
			attnGatherTileF32AVX512(&dst[0], &src[0], &s.lanes[0], mask, b.hd)
		}
	}
}

// floatBytes is the first byte of x.
func floatBytes(x []float32) *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(x))) }

func scoresAVX512(s, q []float32, b *attnView, t *attnTile) {
	_ = s[t.n*attnBlock-1]
	for _, at := range t.q[:t.n] {
		_ = q[at : at+b.hd]
	}
	if b.k != nil {
		for i := range b.tiles {
			b.tiles[i] = i * b.hd * KVTile * 4
		}
		_ = b.k[attnBlock*b.hd-1]
		attnScoresF32AVX512(&s[0], floatBytes(b.k), &q[0], &b.tiles[0], &t.q[0], t.n, b.hd)
		return
	}
	for _, at := range b.tiles {
		_ = b.layerK[at : at+KVTile*b.hd*(4>>b.shift())]
	}
	if b.half {
		attnScoresF16AVX512(&s[0], &b.layerK[0], &q[0], &b.tiles[0], &t.q[0], t.n, b.hd)
	} else {
		attnScoresF32AVX512(&s[0], &b.layerK[0], &q[0], &b.tiles[0], &t.q[0], t.n, b.hd)
	}
}

func softmaxAVX512(s, m, sum []float32, t *attnTile, scale float32) {
	_, _, _ = s[t.n*attnBlock-1], m[t.n-1], sum[t.n*KVTile-1]
	attnSoftmaxAVX512(&s[0], &m[0], &sum[0], &t.alpha[0], &t.lo[0], &t.hi[0], t.n, scale)
}

func valuesAVX512(acc, alpha, p []float32, b *attnView, n, lo, hi int) {
	_, _, _ = acc[n*b.hd-1], alpha[n-1], p[(n-1)*attnBlock+hi-1]
	if b.v != nil {
		_ = b.v[hi*b.hd-1]
		attnValuesF32AVX512(&acc[0], &alpha[0], &p[lo], floatBytes(b.v), &identity[lo], n, hi-lo, b.hd)
		return
	}
	for _, c := range b.cells[lo:hi] {
		_ = b.layerV[int(c)*b.hd*(4>>b.shift())]
	}
	if b.half {
		attnValuesF16AVX512(&acc[0], &alpha[0], &p[lo], &b.layerV[0], &b.cells[lo], n, hi-lo, b.hd)
	} else {
		attnValuesF32AVX512(&acc[0], &alpha[0], &p[lo], &b.layerV[0], &b.cells[lo], n, hi-lo, b.hd)
	}
}
