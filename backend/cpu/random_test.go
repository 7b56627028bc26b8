package cpu

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/quant"
)

// A mason builds random graphs of a rig's weights.
type mason struct {
	t      *rapid.T
	r      *rig
	b      *graph.Builder
	values []graph.Value
	n      int // nodes so far, for names
}

func (m *mason) pick(fits func(graph.Tensor) bool) graph.Value {
	var from []graph.Value
	for _, v := range m.values {
		if fits(m.b.Tensor(v)) {
			from = append(from, v)
		}
	}
	return rapid.SampledFrom(from).Draw(m.t, "value")
}

func (m *mason) node(op graph.Op, in ...graph.Value) graph.Value {
	m.n++
	return m.b.Node(fmt.Sprint("n", m.n), op, in...)
}

// add appends a node all of whose matrices later nodes may read.
func (m *mason) add(op graph.Op, in ...graph.Value) {
	v := m.node(op, in...)
	m.values = append(m.values, v)
	switch op := op.(type) {
	case graph.MultiMatMul:
		for i := 1; i < op.N; i++ {
			m.values = append(m.values, graph.Value{Node: v.Node, Out: i})
		}
	case graph.AddRMSNorm:
		m.values = append(m.values, graph.Value{Node: v.Node, Out: 1})
	}
}

func isRows(t graph.Tensor) bool { return t.Type == graph.F32 && t.Rows() }

// lay appends one random op.
func (m *mason) lay(tokens int) {
	r, b := m.r, m.b
	x := m.pick(isRows)
	tx := b.Tensor(x)
	d := tx.Shape[0]
	alike := func() graph.Value {
		return m.pick(func(t graph.Tensor) bool { return isRows(t) && t.Shape == tx.Shape })
	}
	width := func() int { return rapid.SampledFrom([]int{16, 64, 80}).Draw(m.t, "width") }
	vector := func(n int) graph.Weight { return r.vector(fmt.Sprint("v", m.n, "_", len(r.all)), quant.F32, n) }
	matrix := func(out int) graph.Weight {
		return r.matrix(fmt.Sprint("m", m.n, "_", len(r.all)), quant.F32, d, out)
	}
	switch rapid.IntRange(0, 14).Draw(m.t, "op") {
	case 0:
		m.add(graph.Silu{}, x)
	case 1:
		m.add(graph.Scale{By: -0.7}, x)
	case 2:
		m.add(graph.Add{}, x, alike())
	case 3:
		m.add(graph.Mul{}, x, m.node(graph.RMSNorm{W: vector(d), Eps: 0.1}, alike())) // bounded
	case 4:
		m.add(graph.SwiGLU{}, m.node(graph.RMSNorm{W: vector(d), Eps: 0.1}, x), alike())
	case 5:
		m.add(graph.RMSNorm{W: vector(d), Eps: 0.1}, x)
	case 6:
		m.add(graph.AddRMSNorm{W: vector(d), Eps: 0.1}, x, alike())
	case 7:
		m.add(graph.MatMul{W: matrix(width())}, x)
	case 8:
		m.add(graph.MultiMatMul{Ws: [4]graph.Weight{matrix(width()), matrix(width()), matrix(16)}, N: 3}, x)
	case 9:
		if d > 1 {
			from := rapid.IntRange(0, d-1).Draw(m.t, "from")
			m.add(graph.Slice{From: from, To: rapid.IntRange(from+1, d).Draw(m.t, "to")}, x)
		}
	case 10:
		if n := tx.Shape[1]; n > 1 {
			from := rapid.IntRange(0, n-1).Draw(m.t, "from")
			m.add(graph.Slice{Dim: 1, From: from, To: rapid.IntRange(from+1, n).Draw(m.t, "to")}, x)
		}
	case 11:
		if tx.Contiguous() {
			shape := rapid.SampledFrom([][4]int{{d * tx.Shape[1]}, {1, d * tx.Shape[1]}, {tx.Shape[1], d}}).Draw(m.t, "shape")
			m.add(graph.Reshape{Shape: shape}, x)
		}
	case 12:
		dims := rapid.SampledFrom([][4]int{{1, 0, 2, 3}, {2, 1, 0, 3}, {0, 2, 1, 3}, {3, 2, 1, 0}}).Draw(m.t, "dims")
		v := m.node(graph.Copy{}, m.node(graph.Permute{Dims: dims}, x))
		m.values = append(m.values, m.node(graph.Reshape{Shape: [4]int{d, tx.Shape[1]}}, v))
	case 13:
		if tx.Shape[1] == tokens {
			m.add(graph.Rows{}, x, b.Input(graph.OutRows))
		}
	case 14:
		if tx.Shape[1] == tokens {
			q, k, v := m.node(graph.MatMul{W: matrix(128)}, x), m.node(graph.MatMul{W: matrix(64)}, x), m.node(graph.MatMul{W: matrix(64)}, x)
			rope := graph.RoPE{Rope: graph.Rope{HeadDim: 32, Rot: 32, Base: 100}}
			if rapid.Bool().Draw(m.t, "rope") {
				q, k = m.node(rope, q, b.Input(graph.Positions)), m.node(rope, k, b.Input(graph.Positions))
			}
			kv := m.node(graph.StoreKV{}, k, v, b.Input(graph.Cells))
			m.add(graph.Attention{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.2}, q, kv, b.Input(graph.Positions))
		}
	}
}

// Random graphs give what the reference gives: whatever the ops, the views between them, the buffers that the plan lets
// them share and the regions that the compiler makes of them; and fusing them changes no bit.
func TestRandomGraphs(t *testing.T) {
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		r := newRig(t, set, backend.Options{Threads: 3, F32Activations: true}, spec(quant.F32))
		tables := []graph.Weight{r.table("t64", 64), r.table("t16", 16)}
		rapid.Check(t, func(rt *rapid.T) {
			const tokens = 6
			outputs := rapid.IntRange(1, tokens).Draw(rt, "outputs")
			build := func(rules graph.Rules) *mason {
				p := r.params(tokens, outputs)
				p.Fuse = rules
				m := &mason{t: rt, r: r, b: graph.NewBuilder(p)}
				for i, w := range tables {
					m.values = append(m.values, m.b.Node(fmt.Sprint("x", i), graph.Embed{W: w}, m.b.Input(graph.Tokens)))
				}
				return m
			}
			m := build(graph.AllRules)
			for range rapid.IntRange(1, 16).Draw(rt, "ops") {
				m.lay(tokens)
			}
			out := rapid.SampledFrom(m.values).Draw(rt, "output")
			m.b.Output(m.node(graph.Copy{}, out))
			if !m.b.Tensor(out).Rows() {
				rt.Skip("no matrix")
			}
			g, err := m.b.Build()
			if err != nil {
				rt.Fatal(err)
			}
			batch := r.single(tokens)
			batch.OutRows = batch.OutRows[:outputs]
			want := r.ref.run(g, batch)
			plain := *g // passes write to nodes
			plain.Nodes = append([]graph.Node(nil), g.Nodes...)
			for i := range plain.Nodes {
				plain.Nodes[i].In = append([]graph.Value(nil), g.Nodes[i].In...)
			}
			plain.Params.Fuse = 0
			compare := func(g *graph.Graph) []float32 {
				targets := []graph.Target{Backend{}}
				if err := graph.Assign(g, targets); err != nil {
					rt.Fatal(err)
				}
				fired := graph.Fuse(g, targets)
				p, err := r.d.Compile(g, graph.NewPlan(g), r.kv)
				if err != nil {
					rt.Fatal(err)
				}
				l, err := p.Run(batch)
				if err != nil {
					rt.Fatal(err)
				}
				top := 1e-3
				for _, w := range want {
					top = max(top, math.Abs(w))
				}
				for i := range want {
					if d := math.Abs(float64(l.Data[i]) - want[i]); !(d <= 1e-3*top) {
						text := ""
						for k := range g.Nodes {
							if !g.Nodes[k].Dead {
								text += fmt.Sprintln(g.Describe(k), g.Nodes[k].In)
							}
						}
						rt.Fatalf("number %d is %g, want %g (fired: %v)\n%s%s", i, l.Data[i], want[i], fired, text, graph.NewPlan(g))
					}
				}
				return append([]float32(nil), l.Data...)
			}
			unfused := compare(&plain)
			for i, v := range compare(g) {
				if math.Float32bits(v) != math.Float32bits(unfused[i]) {
					rt.Fatalf("fused number %d is %g, unfused %g", i, v, unfused[i])
				}
			}
		})
	})
}

// Rows of one value that lie across rows of another in the same memory are computed after all of those, whichever worker
// is the first.
func TestRowsAcrossRows(t *testing.T) {
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		const n = 40
		r := newRig(t, set, backend.Options{Threads: 3}, spec(quant.F32))
		g := r.build(n, n, func(b *graph.Builder) graph.Value {
			x := b.Node("x", graph.Embed{W: r.table("t", 64)}, b.Input(graph.Tokens))
			y := b.Node("y", graph.Silu{}, x)                                           // row i of 64
			half := b.Node("half", graph.Reshape{Shape: [4]int{32, 2 * n}}, y)          // rows 2i and 2i+1 of 32
			late := b.Node("late", graph.Slice{Dim: 1, From: n, To: 2 * n}, half)       // its row i lies in row n/2+i/2 of y
			early := b.Node("early", graph.Slice{Dim: 1, From: 0, To: n}, half)         //
			z := b.Node("z", graph.Add{}, b.Node("s", graph.Scale{By: 3}, late), early) //
			wide := b.Node("wide", graph.Reshape{Shape: [4]int{16, 2 * n}}, z)
			return b.Node("out", graph.Scale{By: 2}, b.Node("tail", graph.Slice{Dim: 1, From: n, To: 2 * n}, wide))
		})
		for range 20 {
			have, want := r.run(g, r.single(n))
			mustBeClose(t, "rows across rows", have, want, tight)
		}
	})
}
