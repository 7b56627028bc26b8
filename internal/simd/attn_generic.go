package simd

import "math"

func loadGeneric(s *AttnScratch, job *AttnJob, at, from, to, _ int) {
	cells := job.Cells[at : at+to]
	gatherKGeneric(s.k, job.KV, job.KVHead, cells, from)
	gatherVGeneric(s.v, job.KV, job.KVHead, cells, from)
	s.block.hd, s.block.k, s.block.v = job.KV.HeadDim, s.k, s.v
}

// gatherKGeneric and gatherVGeneric bring the positions from, from+1, ... of a block to float32 in position order;
// cells[p] is the cell of position p of the block, and len(cells) their end.
func gatherKGeneric(dst []float32, l *KVLayer, head int, cells []int32, from int) {
	for p := from; p < len(cells); p++ {
		l.loadKey(dst[p/KVTile*l.HeadDim*KVTile+p%KVTile:], KVTile, head, int(cells[p]))
	}
}

func gatherVGeneric(dst []float32, l *KVLayer, head int, cells []int32, from int) {
	for p := from; p < len(cells); p++ {
		l.loadValue(dst[p*l.HeadDim:(p+1)*l.HeadDim], head, int(cells[p]))
	}
}

func scoresGeneric(s, q []float32, b *attnView, t *attnTile) {
	hd, k := b.hd, b.k
	for i := range t.n {
		qi := q[t.q[i] : t.q[i]+hd]
		for tile := range blockTiles {
			var acc [KVTile]float32
			kt := k[tile*hd*KVTile : (tile+1)*hd*KVTile]
			for d, x := range qi {
				for lane, y := range kt[d*KVTile : (d+1)*KVTile] {
					acc[lane] += float32(x * y)
				}
			}
			copy(s[i*attnBlock+tile*KVTile:], acc[:])
		}
	}
}

func softmaxGeneric(s, m, sum []float32, t *attnTile, scale float32) {
	for i := range t.n {
		lo, hi := int(t.lo[i]), int(t.hi[i])
		row := s[i*attnBlock : (i+1)*attnBlock]
		top := m[i]
		for p := lo; p < hi; p++ {
			row[p] *= scale
			if row[p] > top {
				top = row[p]
			}
		}
		base := max(top, -math.MaxFloat32) // keeps -Inf - -Inf from making NaN
		alpha := exp32(m[i] - base)
		var add [blockTiles][KVTile]float32
		for p := range row {
			if p < lo || p >= hi {
				row[p] = 0
				continue
			}
			row[p] = exp32(row[p] - base)
			add[p/KVTile][p%KVTile] = row[p]
		}
		for j := range KVTile {
			x := &sum[i*KVTile+j]
			*x = float32(*x*alpha) + ((add[0][j] + add[1][j]) + (add[2][j] + add[3][j]))
		}
		m[i], t.alpha[i] = top, alpha
	}
}

func valuesGeneric(acc, alpha, p []float32, b *attnView, n, lo, hi int) {
	hd, v := b.hd, b.v
	for i := range n {
		out := acc[i*hd : (i+1)*hd]
		for d := range out {
			out[d] *= alpha[i]
		}
		for j := lo; j < hi; j++ {
			w := p[i*attnBlock+j]
			for d, x := range v[j*hd : (j+1)*hd] {
				out[d] += float32(w * x)
			}
		}
	}
}

func axpbyGeneric(acc, x []float32, a, b float32) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] = float32(acc[i]*a) + float32(x[i]*b)
	}
}
