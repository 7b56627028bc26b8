package simd

import "math"

// AttnChunk computes one chunk of a job. Chunks of a job may be computed by different workers.
func (a *Attn) AttnChunk(part AttnPart, job *AttnJob, chunk int, s *AttnScratch) {
	nq := job.Rows * job.Heads
	clear(part.Acc)
	clear(s.sum[:nq*KVTile])
	for i := range part.Max {
		part.Max[i] = float32(math.Inf(-1))
	}
	first, limit := job.bounds()
	limit = min(limit, (chunk+1)*AttnChunkLen)
	for at := chunk * AttnChunkLen; at < limit; at += attnBlock {
		if end := min(at+attnBlock, limit); end > first {
			a.block(part, job, at, max(first-at, 0), end-at, s)
		}
	}
	for q := range nq {
		part.Sum[q] = foldTile(s.sum[q*KVTile : (q+1)*KVTile])
	}
}

// foldTile adds the partial sums of a query by halves.
func foldTile(x []float32) float32 {
	var lane [KVTile]float32
	copy(lane[:], x)
	for n := KVTile / 2; n > 0; n /= 2 {
		for j := range n {
			lane[j] += lane[j+n]
		}
	}
	return lane[0]
}

// block folds the positions at+from <= p < at+to into the part, for every query.
func (a *Attn) block(part AttnPart, job *AttnJob, at, from, to int, s *AttnScratch) {
	kern, nq := a.kernels(job.KV.HeadDim), job.Rows*job.Heads
	kern.load(s, job, at, from, to, nq)
	most := kern.queries
	if nq <= kern.small {
		most = kern.small
	}
	for q := 0; q < nq; {
		n := tileLen(nq-q, most)
		if s.tile.set(job, at, q, n) {
			kern.tile(part, job, q, s)
		}
		q += n
	}
}

// tileLen is how many of the remaining queries go into the next tile: tiles as even as can be.
func tileLen(queries, most int) int {
	tiles := (queries + most - 1) / most
	return (queries + tiles - 1) / tiles
}

// set describes queries q .. q+n-1 against the block at position at; it reports whether any of them attends to it.
func (t *attnTile) set(job *AttnJob, at, q, n int) bool {
	t.n = n
	row, head, used := q/job.Heads, q%job.Heads, false
	for i := range n {
		lo, hi := job.rowRange(row)
		lo, hi = max(lo-at, 0), min(max(hi-at, 0), attnBlock)
		if lo >= hi {
			lo, hi = 0, 0
		}
		used = used || hi > 0
		t.lo[i], t.hi[i] = int32(lo), int32(hi)
		t.q[i] = row*job.QStride + head*job.KV.HeadDim
		if head++; head == job.Heads {
			row, head = row+1, 0
		}
	}
	return used
}

// tile folds the block of s into the queries of s.tile, which start at query q of the part.
func (kern *attnKernels) tile(part AttnPart, job *AttnJob, q int, s *AttnScratch) {
	t, hd := &s.tile, job.KV.HeadDim
	kern.scores(s.score, job.Q, &s.block, t)
	kern.softmax(s.score, part.Max[q:q+t.n], s.sum[q*KVTile:(q+t.n)*KVTile], t, job.Scale)

	// Every query goes through its own positions in order and no others, so that a row never depends on what lies in
	// positions that only its neighbours see. The common range goes through all queries at once.
	acc := part.Acc[q*hd : (q+t.n)*hd]
	lo, hi := t.lo[0], t.hi[0]
	for i := 1; i < t.n; i++ {
		lo, hi = max(lo, t.lo[i]), min(hi, t.hi[i])
	}
	if lo >= hi {
		for i := range t.n {
			kern.single(acc, s, i, t.lo[i], t.hi[i])
		}
		return
	}
	for i := range t.n {
		kern.single(acc, s, i, t.lo[i], lo)
	}
	kern.values(acc, t.alpha[:], s.score, &s.block, t.n, int(lo), int(hi))
	for i := range t.n {
		t.alpha[i] = 1
		kern.single(acc, s, i, hi, t.hi[i])
	}
}

// single adds the values at lo <= p < hi to query i of the tile alone.
func (kern *attnKernels) single(acc []float32, s *AttnScratch, i int, lo, hi int32) {
	if lo >= hi {
		return
	}
	hd := s.block.hd
	kern.values(acc[i*hd:(i+1)*hd], s.tile.alpha[i:], s.score[i*attnBlock:], &s.block, 1, int(lo), int(hi))
	s.tile.alpha[i] = 1
}

// AttnMerge combines the parts of a job, one per chunk in ascending order, and writes the attention output: head h of row
// r to dst[r*stride+h*headDim:]. A query without any position gets zeros. The parts are used up.
func (a *Attn) AttnMerge(dst []float32, stride int, job *AttnJob, parts []AttnPart) {
	for _, p := range parts[1:] {
		a.combine(parts[0], p, job.KV.HeadDim)
	}
	a.finish(dst, stride, job, parts[0])
}

// combine folds the part of a later chunk into that of the chunks before it. An empty side leaves the other as it is.
func (a *Attn) combine(into, next AttnPart, hd int) {
	kern := a.kernels(hd)
	for q, sum := range next.Sum {
		if sum == 0 {
			continue
		}
		acc, x := into.Acc[q*hd:(q+1)*hd], next.Acc[q*hd:(q+1)*hd]
		if into.Sum[q] == 0 {
			copy(acc, x)
			into.Max[q], into.Sum[q] = next.Max[q], sum
			continue
		}
		m := max(into.Max[q], next.Max[q])
		f, g := exp32(into.Max[q]-m), exp32(next.Max[q]-m)
		into.Sum[q] = float32(into.Sum[q]*f) + float32(sum*g)
		into.Max[q] = m
		kern.axpby(acc, x, f, g)
	}
}

// finish divides by the sums.
func (a *Attn) finish(dst []float32, stride int, job *AttnJob, part AttnPart) {
	hd := job.KV.HeadDim
	kern := a.kernels(hd)
	for r := range job.Rows {
		for h := range job.Heads {
			q := r*job.Heads + h
			out := dst[r*stride+h*hd : r*stride+(h+1)*hd]
			if part.Sum[q] == 0 {
				clear(out)
				continue
			}
			kern.scale(out, part.Acc[q*hd:(q+1)*hd], 1/part.Sum[q])
		}
	}
}

// Attend computes every chunk of a job and writes the output: the bits of AttnChunk for each followed by AttnMerge. dst is
// laid out as for AttnMerge; it may be Q, as a row is written after its last use.
func (a *Attn) Attend(dst []float32, stride int, job *AttnJob, s *AttnScratch) {
	nq, hd := job.Rows*job.Heads, job.KV.HeadDim
	n := AttnPartLen(nq, hd)
	total, next := MakeAttnPart(s.floats[:n], nq, hd), MakeAttnPart(s.floats[n:2*n], nq, hd)
	first, end := job.FirstChunk(), job.Chunks()
	a.AttnChunk(total, job, first, s)
	for c := first + 1; c < end; c++ {
		a.AttnChunk(next, job, c, s)
		a.combine(total, next, hd)
	}
	a.finish(dst, stride, job, total)
}
