package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// An attnCase is one layer filled with a sequence whose positions lie in cells; every other cell holds NaN.
type attnCase struct {
	layer KVLayer
	cells []int32
	k, v  [][]float32 // by position, [kvHeads*headDim], as stored
}

func f32s(n int, r *rand.Rand) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// place chooses cells for n positions: "aligned" and "shifted" are runs, "spans" are runs of random lengths, "random"
// is any permutation.
func place(r *rand.Rand, how string, n, cells int) []int32 {
	out := make([]int32, 0, n)
	switch how {
	case "aligned", "shifted":
		shift := 0
		if how == "shifted" {
			shift = 5
		}
		for p := range n {
			out = append(out, int32(p+shift))
		}
	case "spans":
		perm := r.Perm(cells / 24)
		for i := 0; len(out) < n; i++ {
			start := perm[i] * 24
			for c := start; c < start+24 && len(out) < n; c++ {
				out = append(out, int32(c))
			}
		}
	default:
		for _, c := range r.Perm(cells)[:n] {
			out = append(out, int32(c))
		}
	}
	return out
}

// newAttnCase stores kv (positions of [kvHeads*headDim] keys and values) at the given cells.
func newAttnCase(t testing.TB, s *Set, typ KVType, kvHeads, headDim, cells int, at []int32, k, v [][]float32) *attnCase {
	t.Helper()
	kb, vb := KVLayerBytes(typ, kvHeads, headDim, cells)
	c := &attnCase{cells: at, layer: KVLayer{
		Type: typ, KVHeads: kvHeads, HeadDim: headDim, Cells: KVCells(cells),
		K: guarded(t, make([]byte, kb)), V: guarded(t, make([]byte, vb)),
	}}
	for i := range c.layer.K { // 0xff.. is a NaN of each type
		c.layer.K[i], c.layer.V[i] = 0xff, 0xff
	}
	for p, cell := range at {
		s.StoreKV(&c.layer, int(cell), k[p], v[p])
		ks, vs := make([]float32, len(k[p])), make([]float32, len(v[p]))
		s.LoadKV(&c.layer, int(cell), ks, vs)
		c.k, c.v = append(c.k, ks), append(c.v, vs)
	}
	return c
}

func randomRows(r *rand.Rand, n, width int) [][]float32 {
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = f32s(width, r)
	}
	return rows
}

// naive is the attention of one query over positions [first, limit) in float64.
func (c *attnCase) naive(q []float32, head, first, limit int, scale float32) []float64 {
	hd := c.layer.HeadDim
	w, top := make([]float64, limit), math.Inf(-1)
	for p := first; p < limit; p++ {
		for d, x := range q {
			w[p] += float64(x) * float64(c.k[p][head*hd+d])
		}
		w[p] *= float64(scale)
		top = max(top, w[p])
	}
	out, sum := make([]float64, hd), 0.0
	for p := first; p < limit; p++ {
		e := math.Exp(w[p] - top)
		sum += e
		for d := range out {
			out[d] += e * float64(c.v[p][head*hd+d])
		}
	}
	for d := range out {
		out[d] /= sum
	}
	return out
}

// job makes a job over rows whose limits are given; queries are [rows][heads of all KV heads][headDim].
func (c *attnCase) job(q []float32, kvHead, heads int, first, limit []int32) *AttnJob {
	hd := c.layer.HeadDim
	return &AttnJob{
		KV: &c.layer, KVHead: kvHead, Cells: c.cells,
		Q: q[kvHead*heads*hd:], QStride: c.layer.KVHeads * heads * hd,
		Rows: len(limit), Heads: heads, First: first, Limit: limit, Scale: float32(1 / math.Sqrt(float64(hd))),
	}
}

func attend(t testing.TB, s *Set, job *AttnJob) []float32 {
	t.Helper()
	hd := job.KV.HeadDim
	g := *job
	g.Q = guarded(t, job.Q[:(job.Rows-1)*job.QStride+job.Heads*hd])
	g.Cells = guarded(t, job.Cells[:slices.Max(job.Limit)])
	job = &g
	out := guarded(t, make([]float32, job.Rows*job.Heads*hd))
	s.Attend(out, job.Heads*hd, job, NewAttnScratch(job.Rows*job.Heads, hd))
	return out
}

var attnShapes = []struct {
	typ              KVType
	kvHeads, heads   int // heads: per KV head
	headDim          int
	positions, cells int
	how              string
}{
	{KVF32, 1, 1, 64, 1, 16, "aligned"},
	{KVF16, 2, 7, 64, 70, 96, "aligned"},
	{KVF16, 2, 7, 64, 150, 160, "shifted"},
	{KVF32, 2, 7, 64, 150, 160, "random"},
	{KVF16, 1, 2, 128, 530, 600, "spans"},
	{KVF16, 1, 2, 128, 1040, 1040, "aligned"},
	{KVF32, 3, 3, 80, 130, 160, "shifted"},
	{KVF16, 2, 4, 96, 65, 80, "random"},
	{KVF32, 1, 8, 256, 64, 64, "aligned"},
	{KVF16, 1, 13, 48, 100, 112, "aligned"},
	{KVF16, 2, 2, 20, 90, 112, "spans"},
	{KVF32, 1, 1, 16, 520, 528, "aligned"},
	{KVF16, 1, 5, 112, 90, 112, "aligned"},
	{KVQ8, 1, 1, 64, 1, 16, "aligned"},
	{KVQ8, 2, 7, 64, 150, 160, "shifted"},
	{KVQ8, 1, 2, 128, 530, 600, "spans"},
	{KVQ8, 2, 4, 96, 65, 80, "random"},
	{KVQ8, 1, 3, 32, 600, 608, "aligned"},
}

func TestAttendMatchesFloat64(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(1, 1))
		for _, sh := range attnShapes {
			width := sh.kvHeads * sh.headDim
			c := newAttnCase(t, s, sh.typ, sh.kvHeads, sh.headDim, sh.cells, place(r, sh.how, sh.positions, sh.cells),
				randomRows(r, sh.positions, width), randomRows(r, sh.positions, width))
			for _, rows := range []int{1, 2, 19, sh.positions} {
				rows = min(rows, sh.positions, 24, 2+1500/sh.positions)
				limit := make([]int32, rows)
				for i := range limit {
					limit[i] = int32(sh.positions - rows + i + 1)
				}
				q := f32s(rows*sh.heads*width, r)
				for head := range sh.kvHeads {
					job := c.job(q, head, sh.heads, nil, limit)
					got := attend(t, s, job)
					for i := range rows * sh.heads {
						row, h := i/sh.heads, i%sh.heads
						qi := job.Q[row*job.QStride+h*sh.headDim:][:sh.headDim]
						want := c.naive(qi, head, 0, int(limit[row]), job.Scale)
						for d, w := range want {
							if g := got[i*sh.headDim+d]; !(math.Abs(float64(g)-w) < 3e-6) {
								t.Fatalf("%+v rows %d: row %d head %d element %d is %g, want %g", sh, rows, row, h, d, g, w)
							}
						}
					}
				}
			}
		}
	})
}

// TestAttendOneBits: a row's bits are the same alone, among others, in any cells, beside other limits, with the chunks
// computed apart, and with unused cells holding anything.
func TestAttendOneBits(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(2, 2))
		for _, sh := range []struct {
			typ                       KVType
			kvHeads, heads, hd, count int
		}{{KVF16, 2, 7, 64, 1100}, {KVF32, 1, 1, 64, 200}, {KVF16, 1, 2, 128, 530}, {KVF32, 1, 3, 80, 90}, {KVF16, 1, 1, 24, 70}, {KVQ8, 2, 7, 64, 600}, {KVQ8, 1, 1, 32, 200}} {
			width, cells := sh.kvHeads*sh.hd, sh.count+200
			k, v := randomRows(r, sh.count, width), randomRows(r, sh.count, width)
			rows := 4 + 1500/sh.count
			q := f32s(rows*sh.heads*width, r)
			limit, first := make([]int32, rows), make([]int32, rows)
			for i := range limit {
				limit[i] = int32(r.IntN(sh.count) + 1)
				if i > rows/2 {
					limit[i] = int32(sh.count - rows + i + 1)
				}
				first[i] = int32(r.IntN(int(limit[i])))
			}
			for _, first := range [][]int32{nil, first} {
				base := newAttnCase(t, s, sh.typ, sh.kvHeads, sh.hd, cells, place(r, "aligned", sh.count, cells), k, v)
				want := make([][]float32, sh.kvHeads)
				for head := range want {
					for row := range rows {
						var f []int32
						if first != nil {
							f = first[row : row+1]
						}
						job := base.job(q[row*sh.heads*width:], head, sh.heads, f, limit[row:row+1])
						want[head] = append(want[head], attend(t, s, job)...)
					}
				}
				for _, how := range []string{"aligned", "shifted", "spans", "random"} {
					c := newAttnCase(t, s, sh.typ, sh.kvHeads, sh.hd, cells, place(r, how, sh.count, cells), k, v)
					for head := range sh.kvHeads {
						name := fmt.Sprintf("%+v %s head %d first %v", sh, how, head, first != nil)
						wantBits(t, name, attend(t, s, c.job(q, head, sh.heads, first, limit)), want[head])
						a, n := r.IntN(rows), r.IntN(9)+1
						n = min(n, rows-a)
						var f []int32
						if first != nil {
							f = first[a : a+n]
						}
						sub := c.job(q[a*sh.heads*width:], head, sh.heads, f, limit[a:a+n])
						part := want[head][a*sh.heads*sh.hd : (a+n)*sh.heads*sh.hd]
						wantBits(t, name+" some rows", attend(t, s, sub), part)
						wantBits(t, name+" by chunk", attendByChunk(s, sub, r), part)
					}
				}
			}
		}
	})
}

// attendByChunk computes the chunks apart, in random order.
func attendByChunk(s *Set, job *AttnJob, r *rand.Rand) []float32 {
	hd, nq := job.KV.HeadDim, job.Rows*job.Heads
	parts := make([]AttnPart, job.Chunks())
	for _, c := range r.Perm(len(parts)) {
		parts[c] = MakeAttnPart(f32s(AttnPartLen(nq, hd), r), nq, hd)
		s.AttnChunk(parts[c], job, c, NewAttnScratch(nq, hd))
	}
	out := make([]float32, nq*hd)
	s.AttnMerge(out, job.Heads*hd, job, parts)
	return out
}

// TestAttendNeighboursNaN: a token whose own key and value are NaN spoils no earlier row of the same job.
func TestAttendNeighboursNaN(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(3, 3))
		const n, hd, heads = 80, 64, 3
		k, v := randomRows(r, n, hd), randomRows(r, n, hd)
		q := f32s(n*heads*hd, r)
		limit := make([]int32, n)
		for i := range limit {
			limit[i] = int32(i + 1)
		}
		at := place(r, "aligned", n, n)
		nan := make([]float32, hd)
		for i := range nan {
			nan[i] = float32(math.NaN())
		}
		for _, typ := range []KVType{KVF32, KVF16, KVQ8} {
			c := newAttnCase(t, s, typ, 1, hd, n, at, k, v)
			want := attend(t, s, c.job(q, 0, heads, nil, limit))
			const bad = 37
			s.StoreKV(&c.layer, int(at[bad]), nan, nan)
			got := attend(t, s, c.job(q, 0, heads, nil, limit))
			wantBits(t, "rows before", got[:bad*heads*hd], want[:bad*heads*hd])
			for i := bad * heads * hd; i < len(got); i++ {
				if got[i] == got[i] {
					t.Fatalf("%v: element %d of a row that sees the NaN is %g", typ, i, got[i])
				}
			}
		}
	})
}

// TestAttendExtremes: scores far apart, equal, infinite or very negative give what softmax gives.
func TestAttendExtremes(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		const n, hd = 200, 32
		r := rand.New(rand.NewPCG(4, 4))
		v := randomRows(r, n, hd)
		for name, key := range map[string]func(p int) float32{
			"equal":     func(int) float32 { return 1 },
			"falling":   func(p int) float32 { return float32(-p * 40) },
			"rising":    func(p int) float32 { return float32(p * 40) },
			"huge":      func(p int) float32 { return float32(p%3) * 1e30 },
			"very low":  func(int) float32 { return -1e30 },
			"one above": func(p int) float32 { return float32(p/150*(p%150/49)) * 500 },
		} {
			k := make([][]float32, n)
			for p := range k {
				k[p] = make([]float32, hd)
				k[p][3] = key(p)
			}
			q := make([]float32, hd)
			q[3] = 1
			c := newAttnCase(t, s, KVF32, 1, hd, n, place(r, "aligned", n, n), k, v)
			got := attend(t, s, c.job(q, 0, 1, nil, []int32{n}))
			for d, w := range c.naive(q, 0, 0, n, c.job(q, 0, 1, nil, []int32{n}).Scale) {
				if !(math.Abs(float64(got[d])-w) < 3e-6) {
					t.Errorf("%s: element %d is %g, want %g", name, d, got[d], w)
				}
			}
		}
		// A row without positions is zero; so is one whose scores are all -Inf.
		c := newAttnCase(t, s, KVF32, 1, hd, n, place(r, "aligned", n, n), v, v)
		got := attend(t, s, c.job(f32s(2*hd, r), 0, 1, []int32{5, 0}, []int32{5, 7}))
		if slices.ContainsFunc(got[:hd], func(x float32) bool { return x != 0 }) {
			t.Errorf("a row without positions gives %v", got[:hd])
		}
	})
}

func TestKVStore(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(5, 5))
		for _, typ := range []KVType{KVF32, KVF16} {
			for _, hd := range []int{16, 20, 64, 80, 128} {
				const heads, cells = 2, 40
				rows := randomRows(r, 2*cells, heads*hd)
				c := newAttnCase(t, s, typ, heads, hd, cells, place(r, "random", cells, cells), rows[:cells], rows[cells:])
				for p := range cells {
					for i, x := range rows[p] {
						if typ == KVF16 {
							x = quant.F16ToF32(quant.F32ToF16(x))
						}
						if c.k[p][i] != x {
							t.Fatalf("%v hd %d: key %d of position %d is %g, want %g", typ, hd, i, p, c.k[p][i], x)
						}
					}
				}
				k, v := make([]float32, heads*hd), make([]float32, heads*hd)
				s.CopyCell(&c.layer, int(c.cells[3]), int(c.cells[7]))
				s.LoadKV(&c.layer, int(c.cells[3]), k, v)
				wantBits(t, "copied key", k, c.k[7])
				wantBits(t, "copied value", v, c.v[7])
				s.LoadKV(&c.layer, int(c.cells[4]), k, v)
				wantBits(t, "key beside", k, c.k[4])

				rot := hd / 4 * 2
				cos, sin := f32s(rot/2, r), f32s(rot/2, r)
				for _, neox := range []bool{true, false} {
					s.LoadKV(&c.layer, int(c.cells[9]), k, v)
					want, before := slices.Clone(k), slices.Clone(v)
					if neox {
						s.RopeNeox(want, hd, rot, cos, sin)
					} else {
						s.RopeNorm(want, hd, rot, cos, sin)
					}
					if typ == KVF16 {
						for i, x := range want {
							want[i] = quant.F16ToF32(quant.F32ToF16(x))
						}
					}
					s.RotateK(&c.layer, int(c.cells[9]), rot, cos, sin, neox)
					s.LoadKV(&c.layer, int(c.cells[9]), k, v)
					wantBits(t, "rotated key", k, want)
					wantBits(t, "value", v, before)
				}
			}
		}
	})
}

func TestAttendAllocs(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(6, 6))
		const n, hd, heads = 70, 64, 7
		rows := randomRows(r, n, hd)
		for _, typ := range []KVType{KVF16, KVQ8} {
			c := newAttnCase(t, s, typ, 1, hd, n, place(r, "shifted", n, n+16)[:n-16], rows, rows)
			job := c.job(f32s(heads*hd, r), 0, heads, nil, []int32{n - 16})
			out, scratch := make([]float32, heads*hd), NewAttnScratch(heads, hd)
			if a := testing.AllocsPerRun(10, func() {
				s.StoreKV(&c.layer, 3, rows[0], rows[1])
				s.Attend(out, heads*hd, job, scratch)
			}); a != 0 {
				t.Errorf("%v: %v allocations", typ, a)
			}
		}
	})
}

// TestFusedSetsAgree: the AVX2 and AVX-512 kernels do the same operations in the same order.
func TestFusedSetsAgree(t *testing.T) {
	sets := Usable()
	if len(sets) < 3 {
		t.Skip("fewer than two assembly sets are usable here")
	}
	wide, narrow := sets[0], sets[1]
	r := rand.New(rand.NewPCG(7, 7))
	x, y := randoms(r, 1000), randoms(r, 1000)
	got, want := make([]float32, 1000), make([]float32, 1000)
	narrow.SwiGLU(got, x, y)
	wide.SwiGLU(want, x, y)
	wantBits(t, "SwiGLU", got, want)
	for _, sh := range attnShapes {
		width := sh.kvHeads * sh.headDim
		c := newAttnCase(t, wide, sh.typ, sh.kvHeads, sh.headDim, sh.cells, place(r, sh.how, sh.positions, sh.cells),
			randomRows(r, sh.positions, width), randomRows(r, sh.positions, width))
		limit := []int32{int32(sh.positions), int32(sh.positions+1) / 2}
		job := c.job(f32s(2*sh.heads*width, r), 0, sh.heads, nil, limit)
		wantBits(t, fmt.Sprint(sh), attend(t, narrow, job), attend(t, wide, job))
	}
}
