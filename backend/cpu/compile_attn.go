package cpu

import (
	"fmt"
	"sync/atomic"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/internal/team"
)

// storeKV compiles the write of K and V rows.
func (c *compiler) storeKV(op graph.StoreKV, k, v view) error {
	layer, err := c.layer(op.Layer, k.d)
	if err != nil {
		return err
	}
	p, kernels := c.p, c.d.kernels
	c.rows(k.n, func(r int) { kernels.StoreKV(layer, int(p.batch.Cells[r]), k.row(r), v.row(r)) }, k, v)
	return nil
}

// layer is the cells of a layer, whose rows must have d features.
func (c *compiler) layer(l, d int) (*simd.KVLayer, error) {
	s := c.p.kv.spec
	if l >= s.Layers || d != s.KVHeads*s.HeadDim {
		return nil, fmt.Errorf("%w: layer %d with K and V rows of %d features; the cells have %d layers of %d heads of %d",
			backend.ErrUnsupported, l, d, s.Layers, s.KVHeads, s.HeadDim)
	}
	return &c.p.kv.layers[l], nil
}

// qkvStore compiles the epilogue of the Q, K and V products as row work. K and V die with this node, so it works on them
// in place.
func (c *compiler) qkvStore(op graph.QKVStore, in []view, out view) error {
	layer, err := c.layer(op.Layer, in[1].d)
	if err != nil {
		return err
	}
	turn, err := c.rope(op.Rope)
	if err != nil {
		return err
	}
	p, kernels := c.p, c.d.kernels
	prepare := func(bias, norm graph.Weight) (func(x []float32), error) {
		b, err := c.d.vector(bias)
		if err != nil {
			return nil, err
		}
		w, err := c.d.vector(norm)
		if err != nil {
			return nil, err
		}
		return func(x []float32) {
			if b != nil {
				kernels.Add(x, x, b)
			}
			if w != nil {
				kernels.HeadRMSNorm(x, w, op.Rope.HeadDim, op.Eps)
			}
		}, nil
	}
	prepareQ, err := prepare(op.BiasQ, op.NormQ)
	if err != nil {
		return err
	}
	prepareK, err := prepare(op.BiasK, op.NormK)
	if err != nil {
		return err
	}
	prepareV, err := prepare(op.BiasV, graph.Weight{})
	if err != nil {
		return err
	}
	q, k, v := in[0], in[1], in[2]
	c.rows(q.n, func(r int) {
		y := out.row(r)
		copyUnlessSame(y, q.row(r))
		prepareQ(y)
		turn(r, y)
		prepareK(k.row(r))
		turn(r, k.row(r))
		prepareV(v.row(r))
		kernels.StoreKV(layer, int(p.batch.Cells[r]), k.row(r), v.row(r))
	}, q, k, v, out)
	return nil
}

// splitRows is the most rows of a step whose attention is split among workers by chunks of positions too. Steps of more
// rows have enough tasks without that.
const splitRows = 8

// tileQueries is about how many queries (rows times heads of a group) share the work of reading K and V in one task.
const tileQueries = 96

// An attnStep is attention of one layer. A task is a (sequence, KV head, tile of rows), and in steps of few rows one
// chunk of positions of it; the worker that finishes the last chunk combines them. Kernels define a row's result as the
// ordered combination of its chunks either way, so that the bits are the same.
type attnStep struct {
	p       *Program
	kernels *simd.Set
	op      graph.Attention
	layer   *simd.KVLayer
	q, out  view
	rows    int // rows of a tile
	workers []attnWorker
	next    *simd.Acts // where the result goes besides out, if a product reads it
	limits  []int32    // limits[i] = i+1 … so that any row's limits are a slice of it
	// Of a split step: parts of every (row, head, chunk), and per (sequence, KV head) how many chunks are open.
	chunks int
	parts  []float32
	open   []atomic.Int32
}

// An attnWorker is one worker's working memory.
type attnWorker struct {
	scratch *simd.AttnScratch
	job     simd.AttnJob
	parts   []simd.AttnPart
}

func (c *compiler) attention(op graph.Attention, q, out view) error {
	layer, err := c.layer(op.Layer, op.KVHeads*op.HeadDim)
	if err != nil {
		return err
	}
	if k := c.p.kv.spec; op.KVHeads != k.KVHeads || op.HeadDim != k.HeadDim {
		return fmt.Errorf("%w: %d KV heads of %d; the cells have %d of %d", backend.ErrUnsupported, op.KVHeads, op.HeadDim, k.KVHeads, k.HeadDim)
	}
	s := &attnStep{p: c.p, kernels: c.d.kernels, op: op, layer: layer, q: q, out: out}
	cells := c.p.kv.spec.Cells
	if s.rows, s.chunks = attnTiles(op, q.n, cells); s.chunks > 0 {
		s.open = make([]atomic.Int32, q.n*op.KVHeads)
	}
	c.d.share(s, q.n, cells)
	c.flush()
	if q.n == 1 || q.n > streamTokens { // else tasks would share cache lines of the activations
		s.next = c.store(out, op.Heads/op.KVHeads*op.HeadDim)
	}
	c.emit(s, c.op)
	return nil
}

// attnTiles is how attention over n rows is cut into tasks: the rows of one, and, where chunks of positions are tasks of
// their own, how many chunks a sequence can have.
func attnTiles(op graph.Attention, n, cells int) (rows, chunks int) {
	if n <= splitRows {
		return n, (cells + simd.AttnChunkLen - 1) / simd.AttnChunkLen
	}
	return max(1, tileQueries/(op.Heads/op.KVHeads)), 0
}

// attnBytes is the memory of attention over n rows.
func (d *Device) attnBytes(op graph.Attention, n, cells int) int {
	rows, chunks := attnTiles(op, n, cells)
	return d.team.Size()*simd.AttnScratchBytes(rows*op.Heads/op.KVHeads, op.HeadDim) + 4*cells + 4*partsLen(op, n, chunks)
}

// partsLen is the float32 of the parts of all chunks of n rows.
func partsLen(op graph.Attention, n, chunks int) int { return chunks * n * op.Heads * (op.HeadDim + 2) }

// attnMemory is what attention steps share: one runs at a time.
type attnMemory struct {
	workers []attnWorker
	limits  []int32
	parts   []float32
	queries int
	headDim int
	chunks  int
}

// share gives a step the device's attention memory, grown to its needs. Steps compiled before keep what they had.
func (d *Device) share(s *attnStep, tokens, cells int) {
	m := &d.attn
	queries := s.rows * s.op.Heads / s.op.KVHeads
	if queries > m.queries || s.op.HeadDim > m.headDim || s.chunks > m.chunks {
		m.queries, m.headDim, m.chunks = max(queries, m.queries), max(s.op.HeadDim, m.headDim), max(s.chunks, m.chunks)
		m.workers = make([]attnWorker, d.team.Size())
		for i := range m.workers {
			m.workers[i] = attnWorker{scratch: simd.NewAttnScratch(m.queries, m.headDim), parts: make([]simd.AttnPart, m.chunks)}
		}
	}
	if len(m.limits) < cells {
		m.limits = make([]int32, cells)
		for i := range m.limits {
			m.limits[i] = int32(i + 1)
		}
	}
	if n := partsLen(s.op, tokens, s.chunks); len(m.parts) < n {
		m.parts = make([]float32, n)
	}
	s.workers, s.limits, s.parts = m.workers, m.limits, m.parts
}

// chunksOf is the number of chunks of a sequence.
func chunksOf(q *backend.SeqRun) int {
	return (len(q.Cells) + simd.AttnChunkLen - 1) / simd.AttnChunkLen
}

func (s *attnStep) Tasks() int {
	n := 0
	for i := range s.p.batch.Seqs {
		seq := &s.p.batch.Seqs[i]
		if s.chunks > 0 {
			for h := range s.op.KVHeads {
				s.open[i*s.op.KVHeads+h].Store(int32(chunksOf(seq)))
			}
			n += s.op.KVHeads * chunksOf(seq)
		} else {
			n += s.op.KVHeads * ((seq.Rows + s.rows - 1) / s.rows)
		}
	}
	return n
}

func (s *attnStep) Do(w *team.Worker, task int) {
	for i := range s.p.batch.Seqs {
		seq := &s.p.batch.Seqs[i]
		per := (seq.Rows + s.rows - 1) / s.rows
		if s.chunks > 0 {
			per = chunksOf(seq)
		}
		if task >= per*s.op.KVHeads {
			task -= per * s.op.KVHeads
			continue
		}
		head, part := task/per, per-1-task%per // the longest first
		if s.chunks > 0 {
			s.chunk(w, i, seq, head, part)
		} else {
			from := part * s.rows
			worker := &s.workers[w.ID]
			s.describe(&worker.job, seq, head, from, min(from+s.rows, seq.Rows))
			s.kernels.Attend(s.outAt(seq.Row+from, head), s.out.pitch, &worker.job, worker.scratch)
			s.store(seq.Row+from, worker.job.Rows, head)
		}
		return
	}
}

// describe makes a job of the rows [from, to) of a sequence.
func (s *attnStep) describe(job *simd.AttnJob, seq *backend.SeqRun, head, from, to int) {
	group := s.op.Heads / s.op.KVHeads
	first := len(seq.Cells) - seq.Rows + from // position of the first row
	*job = simd.AttnJob{
		KV: s.layer, KVHead: head, Cells: seq.Cells,
		Q: s.q.data[(seq.Row+from)*s.q.pitch+head*group*s.op.HeadDim:], QStride: s.q.pitch,
		Rows: to - from, Heads: group, Limit: s.limits[first : first+to-from], Scale: s.op.Scale,
	}
}

func (s *attnStep) outAt(row, head int) []float32 {
	return s.out.data[row*s.out.pitch+head*s.op.Heads/s.op.KVHeads*s.op.HeadDim:]
}

// chunk computes one chunk of positions for all rows of a sequence, and combines all chunks if it was the last one open.
func (s *attnStep) chunk(w *team.Worker, i int, seq *backend.SeqRun, head, chunk int) {
	worker := &s.workers[w.ID]
	s.describe(&worker.job, seq, head, 0, seq.Rows)
	s.kernels.AttnChunk(s.part(seq, head, chunk), &worker.job, chunk, worker.scratch)
	if s.open[i*s.op.KVHeads+head].Add(-1) > 0 {
		return
	}
	parts := worker.parts[:chunksOf(seq)]
	for k := range parts {
		parts[k] = s.part(seq, head, k)
	}
	s.kernels.AttnMerge(s.outAt(seq.Row, head), s.out.pitch, &worker.job, parts)
	s.store(seq.Row, seq.Rows, head)
}

// store passes the result of n rows from row on, of the query heads of one KV head, to the product that reads it.
func (s *attnStep) store(row, n, head int) {
	if s.next == nil {
		return
	}
	width := s.op.Heads / s.op.KVHeads * s.op.HeadDim
	for r := row; r < row+n; r++ {
		s.kernels.SetPart(s.next, r, head*width, s.out.row(r)[head*width:(head+1)*width])
	}
}

// part is the memory of one chunk of one KV head of a sequence.
func (s *attnStep) part(seq *backend.SeqRun, head, chunk int) simd.AttnPart {
	group := s.op.Heads / s.op.KVHeads
	n := simd.AttnPartLen(seq.Rows*group, s.op.HeadDim)
	at := s.chunks * s.op.KVHeads * simd.AttnPartLen(seq.Row*group, s.op.HeadDim)
	at += (head*s.chunks + chunk) * n
	return simd.MakeAttnPart(s.parts[at:at+n], seq.Rows*group, s.op.HeadDim)
}
