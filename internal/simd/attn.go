package simd

import "math"

// Attention is computed over blocks of attnBlock positions, grouped in chunks of AttnChunkLen positions, both counted from
// position 0 of the sequence. This partition is part of the definition: within a chunk the blocks are folded in order
// with a running maximum, and the chunks of a row are combined in order. So a row's bits do not depend on which worker
// computes which chunk, on the other rows of a job, or on the cells that hold the positions.
const (
	attnBlock    = 64
	AttnChunkLen = 512
	attnQueries  = 8 // the most queries that share one pass over a block
	blockTiles   = attnBlock / KVTile
)

// An AttnJob is the attention of some rows (tokens) of one sequence over one KV head: every query head of the head's
// group. Query q = row*Heads + head.
type AttnJob struct {
	KV     *KVLayer
	KVHead int
	// Cells[p] is the cell of position p; it covers every position below the largest limit.
	Cells []int32
	// Q holds the queries, after rotary embedding: head h of row r at Q[r*QStride+h*HeadDim].
	Q           []float32
	QStride     int
	Rows, Heads int
	// Row r attends to the positions First[r] <= p < Limit[r]; a nil First is all zeros. Nothing is read from cells
	// outside of the range of any row, and values outside of a row's own range do not reach it.
	First, Limit []int32
	// Scale multiplies the scores, usually 1/sqrt(headDim).
	Scale float32
}

// Chunks is the end of the chunks that the job's rows reach into, FirstChunk the first of them; all chunks before it are
// empty and may be left out. A job without positions has none.
func (j *AttnJob) Chunks() int {
	_, limit := j.bounds()
	return (limit + AttnChunkLen - 1) / AttnChunkLen
}

// FirstChunk is the first chunk that a row reaches into: 0 unless First is set.
func (j *AttnJob) FirstChunk() int {
	first, limit := j.bounds()
	return min(first, limit) / AttnChunkLen
}

// bounds is the smallest first and largest limit of the rows.
func (j *AttnJob) bounds() (first, limit int) {
	first = math.MaxInt
	for r := range j.Rows {
		lo, hi := j.rowRange(r)
		first, limit = min(first, lo), max(limit, hi)
	}
	return first, limit
}

func (j *AttnJob) rowRange(r int) (first, limit int) {
	if j.First != nil {
		first = int(j.First[r])
	}
	return first, int(j.Limit[r])
}

// An AttnPart is attention over one chunk, not yet normalised, per query: Acc [queries][headDim] is the sum of
// exp(score-Max)·value, Sum the sum of exp(score-Max). A query without a position in the chunk has Sum 0.
type AttnPart struct {
	Acc, Max, Sum []float32
}

// AttnPartLen is the number of float32 that a part needs.
func AttnPartLen(queries, headDim int) int { return queries * (headDim + 2) }

// MakeAttnPart lays a part out in buf, which has at least AttnPartLen elements.
func MakeAttnPart(buf []float32, queries, headDim int) AttnPart {
	n := queries * headDim
	return AttnPart{Acc: buf[:n:n], Max: buf[n : n+queries : n+queries], Sum: buf[n+queries : n+2*queries : n+2*queries]}
}

// AttnScratch is one worker's working memory for jobs of at most the given number of queries.
type AttnScratch struct {
	k, v   []float32 // one block of keys [blockTiles][headDim][KVTile] and values [attnBlock][headDim], positions in order
	score  []float32 // [attnQueries][attnBlock]
	sum    []float32 // [queries][KVTile] partial sums
	floats []float32 // two parts

	block attnView
	tile  attnTile
	lanes [KVTile]int32

	wide     [2][]float32 // tiles of KVQ8 keys as float32 [headDim][KVTile], to gather lanes from
	wideTile [2]int32     // which tiles of the layer they are, -1 for none
}

// NewAttnScratch allocates scratch for jobs with up to queries queries (rows times heads) and heads of headDim.
func NewAttnScratch(queries, headDim int) *AttnScratch {
	n := AttnPartLen(queries, headDim)
	return &AttnScratch{
		k: make([]float32, attnBlock*headDim), v: make([]float32, attnBlock*headDim),
		score: make([]float32, attnQueries*attnBlock), sum: make([]float32, queries*KVTile),
		floats: make([]float32, 2*n),
		wide:   [2][]float32{make([]float32, KVTile*headDim), make([]float32, KVTile*headDim)},
	}
}

// AttnScratchBytes is about what NewAttnScratch allocates.
func AttnScratchBytes(queries, headDim int) int {
	return 4 * (2*(attnBlock+KVTile)*headDim + attnQueries*attnBlock + queries*KVTile + 2*AttnPartLen(queries, headDim))
}

// An attnView is where the keys and values of a block are: brought together as float32 in the scratch, or, for sets that
// read them where they are stored, in the layer.
type attnView struct {
	hd   int
	k, v []float32 // as in AttnScratch; nil where the layer's are read

	layerK, layerV []byte // the region of the KV head, in stored type
	typ            KVType
	tiles          [blockTiles]int // byte offset of each tile of the block in layerK
	cells          []int32         // cell of each position of the block, a row of layerV
}

// An attnTile is what the kernels share about the queries of one pass over a block.
type attnTile struct {
	n      int                  // queries
	q      [attnQueries]int     // where each query starts in Q
	lo, hi [attnQueries]int32   // the positions of the block, counted from its start, that each query attends to
	alpha  [attnQueries]float32 // factor of what was accumulated before this block
}

// Attn is attention over KV cells with the kernels of one instruction set. Its methods allocate nothing and may be
// called concurrently with distinct scratch and parts.
type Attn struct {
	isa  ISA
	kern attnKernels
	odd  *attnKernels // for heads that are no multiple of 16; nil: the same
}

// attnKernels are the inner loops. Positions of the block that no query of the tile attends to may hold anything.
type attnKernels struct {
	// queries is how many queries share a pass when there are many, small how many may when they all fit in one.
	queries, small int
	// load prepares the view of the positions at+from <= p < at+to of a job; nq is how many queries will use it.
	load func(s *AttnScratch, job *AttnJob, at, from, to, nq int)
	// scores: s[i][p] = q_i · key_p, a chain of additions over d in order; s is [t.n][attnBlock].
	scores func(s, q []float32, b *attnView, t *attnTile)
	// softmax turns scores into exp(score·scale - max) with the new running maximum, 0 outside of [lo, hi), adds them to
	// the KVTile partial sums of each query and sets t.alpha to exp(old max - new max). m is [t.n], sum [t.n][KVTile].
	softmax func(s, m, sum []float32, t *attnTile, scale float32)
	// values: acc[i][d] = acc[i][d]·alpha[i] + Σ p[i][j]·v[j][d] for j from lo up to hi > lo in order; acc is
	// [n][headDim], p [n][attnBlock].
	values func(acc, alpha, p []float32, b *attnView, n, lo, hi int)
	// axpby: acc = acc·a + x·b.
	axpby func(acc, x []float32, a, b float32)
	scale func(dst, x []float32, s float32)
}

func genericAttn() attnKernels {
	return attnKernels{
		queries: 6,
		small:   7,
		load:    loadGeneric,
		scores:  scoresGeneric,
		softmax: softmaxGeneric,
		values:  valuesGeneric,
		axpby:   axpbyGeneric,
		scale:   scaleGeneric,
	}
}

func attnFor(isa ISA) Attn {
	a := Attn{isa: isa, kern: genericAttn()}
	accelerateAttn(isa, &a)
	return a
}

// kernels chooses by head dimension, which is the same for every job of a model.
func (a *Attn) kernels(headDim int) *attnKernels {
	if headDim%KVTile != 0 && a.odd != nil {
		return a.odd
	}
	return &a.kern
}
