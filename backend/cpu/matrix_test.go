package cpu

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/internal/testmodel"
	"github.com/minfer-go/minfer/quant"
)

// Tolerances of the matrix, relative to the largest number of a result unless said otherwise.
const (
	exact       = 0    // copies and decoded numbers
	tight       = 2e-6 // element-wise work, norms, rotation: a few roundings to float32
	tightKV     = 2e-5 // attention: sums of many float32 products, an exponential
	tightF32    = 1e-5 // float products, relative to Σ|w·x|: one float32 rounding per input
	reducedPath = 1e-6 // the reference path: products and sums in float64
)

// vectorTypes are what norms and biases may be.
var vectorTypes = []quant.Type{quant.F32, quant.F16, quant.BF16}

// inputs are the layouts in which an op may find its input: values of the given width and tokens made from tables.
var inputs = []struct {
	name string
	make func(r *rig, b *graph.Builder, id string, width, tokens int) graph.Value
}{
	{"whole", func(r *rig, b *graph.Builder, id string, width, _ int) graph.Value {
		return b.Node("x"+id, graph.Embed{W: r.table("t"+id, width)}, b.Input(graph.Tokens))
	}},
	{"columns", func(r *rig, b *graph.Builder, id string, width, _ int) graph.Value { // an offset and a pitch
		x := b.Node("x"+id, graph.Embed{W: r.table("t"+id, width+37)}, b.Input(graph.Tokens))
		return b.Node("cut"+id, graph.Slice{From: 21, To: 21 + width}, x)
	}},
	{"a part of columns", func(r *rig, b *graph.Builder, id string, width, _ int) graph.Value { // a view of a view
		x := b.Node("x"+id, graph.Embed{W: r.table("t"+id, width+40)}, b.Input(graph.Tokens))
		x = b.Node("cut"+id, graph.Slice{From: 5, To: 20 + width}, x)
		return b.Node("part"+id, graph.Slice{From: 11, To: 11 + width}, x)
	}},
	{"reshaped", func(r *rig, b *graph.Builder, id string, width, tokens int) graph.Value {
		x := b.Node("x"+id, graph.Embed{W: r.table("t"+id, width)}, b.Input(graph.Tokens))
		x = b.Node("flat"+id, graph.Reshape{Shape: [4]int{width * tokens}}, x)
		return b.Node("back"+id, graph.Reshape{Shape: [4]int{width, tokens}}, x)
	}},
}

// elementwise are the ops whose weights, if any, are vectors: how to build them on inputs of 64 features.
var elementwise = []struct {
	op        string
	vectors   bool
	tolerance float64
	build     func(r *rig, b *graph.Builder, t quant.Type, in func(id string, width int) graph.Value) graph.Value
}{
	{"embed", false, exact, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.Copy{}, in("a", 64))
	}},
	{"add", false, tight, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.Add{}, in("a", 64), in("b", 64))
	}},
	{"mul", false, tight, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.Mul{}, in("a", 64), in("b", 64))
	}},
	{"swiglu", false, tight, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.SwiGLU{}, in("a", 64), in("b", 64))
	}},
	{"scale", false, tight, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.Scale{By: -0.37}, in("a", 64))
	}},
	{"silu", false, tight, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.Silu{}, in("a", 64))
	}},
	{"copy", false, exact, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.Copy{}, in("a", 64))
	}},
	{"slice", false, exact, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.Copy{}, b.Node("v", graph.Slice{From: 3, To: 50}, in("a", 64)))
	}},
	{"permute", false, exact, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.Copy{}, b.Node("v", graph.Permute{Dims: [4]int{1, 0, 2, 3}}, in("a", 64)))
	}},
	{"reshape", false, exact, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		x := b.Node("c", graph.Copy{}, in("a", 64))
		n := b.Tensor(x).Shape[1]
		x = b.Node("heads", graph.Reshape{Shape: [4]int{16, 4, n}}, x)
		x = b.Node("swap", graph.Permute{Dims: [4]int{0, 2, 1, 3}}, x) // [16, n, 4]: heads apart, as some attention layouts want
		x = b.Node("apart", graph.Copy{}, x)
		return b.Node("y", graph.Copy{}, b.Node("flat", graph.Reshape{Shape: [4]int{16, 4 * n}}, x))
	}},
	{"rms_norm", true, tight, func(r *rig, b *graph.Builder, t quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.RMSNorm{W: r.vector("w", t, 64), Eps: 1e-5}, in("a", 64))
	}},
	{"head_norm", true, tight, func(r *rig, b *graph.Builder, t quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.HeadNorm{W: r.vector("w", t, 16), Eps: 1e-5}, in("a", 64))
	}},
	{"bias", true, tight, func(r *rig, b *graph.Builder, t quant.Type, in func(string, int) graph.Value) graph.Value {
		return b.Node("y", graph.Bias{W: r.vector("w", t, 64)}, in("a", 64))
	}},
	{"add_rms_norm", true, tight, func(r *rig, b *graph.Builder, t quant.Type, in func(string, int) graph.Value) graph.Value {
		y := b.Node("y", graph.AddRMSNorm{W: r.vector("w", t, 64), Eps: 1e-5}, in("a", 64), in("b", 64))
		return b.Node("both", graph.Add{}, y, graph.Value{Node: y.Node, Out: 1}) // both outputs count
	}},
	{"rope", true, tight, func(r *rig, b *graph.Builder, t quant.Type, in func(string, int) graph.Value) graph.Value {
		rope := graph.Rope{HeadDim: 16, Rot: 12, Base: 500, Factors: r.vector("w", t, 6)}
		return b.Node("y", graph.RoPE{Rope: rope}, in("a", 64), b.Input(graph.Positions))
	}},
	{"rope", true, tight, func(r *rig, b *graph.Builder, t quant.Type, in func(string, int) graph.Value) graph.Value {
		rope := graph.Rope{HeadDim: 16, Rot: 16, Base: 500, Style: graph.RopeNorm, Factors: r.vector("w", t, 8)}
		return b.Node("y", graph.RoPE{Rope: rope}, in("a", 64), b.Input(graph.Positions))
	}},
	{"rope", false, tight, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		rope := graph.Rope{HeadDim: 16, Rot: 16, Base: 500, Scaling: graph.RopeScaling{Kind: "linear", Factor: 4}}
		return b.Node("y", graph.RoPE{Rope: rope}, in("a", 64), b.Input(graph.Positions))
	}},
	{"rope", false, tight, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		rope := graph.Rope{HeadDim: 32, Rot: 32, Base: 10000, Scaling: graph.RopeScaling{
			Kind: "yarn", Factor: 4, Original: 64, Attention: 1, BetaFast: 8, BetaSlow: 1,
		}}
		return b.Node("y", graph.RoPE{Rope: rope}, in("a", 64), b.Input(graph.Positions))
	}},
	{"store_kv", false, tightKV, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		kv := b.Node("store", graph.StoreKV{}, in("a", 64), in("b", 64), b.Input(graph.Cells))
		return b.Node("y", graph.Attention{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.3}, in("c", 128), kv, b.Input(graph.Positions))
	}},
	{"attention", false, tightKV, func(_ *rig, b *graph.Builder, _ quant.Type, in func(string, int) graph.Value) graph.Value {
		kv := b.Node("store", graph.StoreKV{}, in("a", 64), in("b", 64), b.Input(graph.Cells))
		return b.Node("y", graph.Attention{Heads: 2, KVHeads: 2, HeadDim: 32, Scale: 1}, in("c", 64), kv, b.Input(graph.Positions))
	}},
	{"qkv_store", true, tightKV, func(r *rig, b *graph.Builder, t quant.Type, in func(string, int) graph.Value) graph.Value {
		own := func(id string, width int) graph.Value { return b.Node("own"+id, graph.Copy{}, in(id, width)) } // it works in place
		op := graph.QKVStore{
			BiasQ: r.vector("bq", t, 128), BiasK: r.vector("bk", t, 64), BiasV: r.vector("bv", t, 64),
			NormQ: r.vector("nq", t, 32), NormK: r.vector("nk", t, 32), Eps: 1e-5,
			Rope: graph.Rope{HeadDim: 32, Rot: 32, Base: 500, Factors: r.vector("f", t, 16)},
		}
		y := b.Node("store", op, own("a", 128), own("b", 64), own("c", 64), b.Input(graph.Positions), b.Input(graph.Cells))
		at := graph.Attention{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.3}
		return b.Node("y", at, y, graph.Value{Node: y.Node, Out: 1}, b.Input(graph.Positions))
	}},
}

// Every op without a matrix, on every set of kernels, every type of its vectors, every layout of its input, every type
// of cells, for one token and for many.
func TestElementwiseMatrix(t *testing.T) {
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		for _, e := range elementwise {
			types := vectorTypes
			if !e.vectors {
				types = types[:1]
			}
			cells := []quant.Type{quant.F32}
			if e.op == "store_kv" || e.op == "attention" || e.op == "qkv_store" {
				cells = Backend{}.KVTypes()
			}
			for _, typ := range types {
				for _, kv := range cells {
					for _, n := range []int{1, 5, 33} {
						for _, in := range inputs {
							r := newRig(t, set, backend.Options{Threads: 2}, spec(kv))
							g := r.build(n, n, func(b *graph.Builder) graph.Value {
								return e.build(r, b, typ, func(id string, width int) graph.Value { return in.make(r, b, id, width, n) })
							})
							have, want := r.run(g, r.single(n))
							tolerance := e.tolerance
							switch kv { // a number on the border of two codes may be stored as either
							case quant.F16:
								tolerance = 1e-3
							case quant.Q8_0: // queries are codes too: a score is off by some hundredths, its weight by as many parts
								tolerance = 5e-2
							}
							what := fmt.Sprintf("%s, %s vectors, %s cells, %d tokens, input %s", e.op, typ, kv, n, in.name)
							mustBeClose(t, what, have, want, tolerance)
						}
					}
				}
			}
		}
	})
}

// products are the ops with matrices. Their result is compared product by product.
var products = []struct {
	op               string
	weights, outputs int
	build            func(b *graph.Builder, x graph.Value, ws []graph.Weight) []graph.Value
}{
	{"matmul", 1, 1, func(b *graph.Builder, x graph.Value, ws []graph.Weight) []graph.Value {
		return []graph.Value{b.Node("y", graph.MatMul{W: ws[0]}, x)}
	}},
	{"multi_matmul", 3, 3, func(b *graph.Builder, x graph.Value, ws []graph.Weight) []graph.Value {
		y := b.Node("y", graph.MultiMatMul{Ws: [4]graph.Weight{ws[0], ws[1], ws[2]}, N: 3}, x)
		return []graph.Value{{Node: y.Node}, {Node: y.Node, Out: 1}, {Node: y.Node, Out: 2}}
	}},
	{"gate_up", 2, 1, func(b *graph.Builder, x graph.Value, ws []graph.Weight) []graph.Value {
		return []graph.Value{b.Node("y", graph.GateUp{Gate: ws[0], Up: ws[1]}, x)}
	}},
}

// An estimate is a product with the error that it may have.
type estimate struct{ value, worst, expected []float64 }

// product computes W·x in float64, and what quantizing x to 8 bits in blocks of 32 may add to each element: at worst half
// a step for every input, and as a root of the mean square a step/√12 for every input.
func (r *rig) product(w graph.Weight, x []float64, quantized bool) estimate {
	in, out := w.In, w.Out
	weights := r.ref.weight(w)
	e := estimate{value: times(weights, x, in, out)}
	for t := range len(x) / in {
		for o := range out {
			worst, square, sum := 0.0, 0.0, 0.0
			for at := 0; at < in; at += 32 {
				peak := 0.0
				for i := at; i < min(at+32, in); i++ {
					peak = max(peak, math.Abs(x[t*in+i]))
				}
				step := peak / 127
				for i := at; i < min(at+32, in); i++ {
					wi := weights[o*in+i]
					worst += math.Abs(wi) * step / 2
					square += wi * wi * step * step / 12
					sum += math.Abs(wi * x[t*in+i])
				}
			}
			if !quantized {
				worst, square = 0, 0
			}
			e.worst = append(e.worst, worst+tightF32*sum)
			e.expected = append(e.expected, math.Sqrt(square))
		}
	}
	return e
}

// gated is silu(gate)·up with its error; the slope of silu is at most 1.1.
func gated(g, u estimate) estimate {
	var e estimate
	for i := range g.value {
		s := silu(g.value[i])
		e.value = append(e.value, s*u.value[i])
		e.worst = append(e.worst, 1.1*g.worst[i]*(math.Abs(u.value[i])+u.worst[i])+math.Abs(s)*u.worst[i]+tight*math.Abs(s*u.value[i]))
		e.expected = append(e.expected, math.Hypot(1.1*g.expected[i]*u.value[i], s*u.expected[i]))
	}
	return e
}

// mustFit checks a product against its estimate: no element beyond the worst case, and all together no further off than
// independent roundings are (half as much again is allowed for chance).
func mustFit(t testing.TB, what string, have []float32, e estimate) {
	t.Helper()
	if len(have) != len(e.value) {
		t.Fatalf("%s: %d numbers, want %d", what, len(have), len(e.value))
	}
	off, expected, scale := 0.0, 0.0, 0.0
	for i, want := range e.value {
		d := math.Abs(float64(have[i]) - want)
		if !(d <= e.worst[i]) {
			t.Fatalf("%s: number %d is %g, want %g: off by %.3g, at worst %.3g may be", what, i, have[i], want, d, e.worst[i])
		}
		off += d * d
		expected += e.expected[i] * e.expected[i]
		scale += want * want
	}
	if n := float64(len(have)); n >= 100 && math.Sqrt(off/n) > 1.5*math.Sqrt(expected/n)+tight*math.Sqrt(scale/n) {
		t.Fatalf("%s: off by %.3g on the whole, independent roundings are off by %.3g", what, math.Sqrt(off/n), math.Sqrt(expected/n))
	}
}

// Every product, of every weight type, on every set of kernels, for few tokens and many, quantizing its input and not.
// Widths are block and panel borders and what lies beside them.
func TestProductMatrix(t *testing.T) {
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		for i, typ := range testmodel.WeightTypes() {
			if testing.Short() && i%4 != 0 {
				continue
			}
			block := typ.BlockLen()
			for _, c := range []struct{ in, out, n int }{{block, 1, 1}, {3 * max(block, 32), 17, 1}, {2 * max(block, 16), 47, 5}, {block * 2, 33, 26}} {
				for _, f32 := range []bool{false, true} {
					for k, p := range products {
						r := newRig(t, set, backend.Options{Threads: 2, F32Activations: f32}, spec(quant.F32))
						var ws []graph.Weight
						for i := range p.weights {
							out := c.out
							if p.op == "multi_matmul" {
								out += i * 15
							}
							ws = append(ws, r.matrix(fmt.Sprint("w", i), typ, c.in, out))
						}
						layout := inputs[(k+c.n)%len(inputs)]
						var x graph.Value
						for which := range p.outputs {
							r.all = nil
							var ys []graph.Value
							g := r.build(c.n, c.n, func(b *graph.Builder) graph.Value {
								x = layout.make(r, b, fmt.Sprint(which), c.in, c.n)
								ys = p.build(b, x, ws)
								return ys[which]
							})
							have, _ := r.run(g, r.single(c.n))
							in := r.ref.get(x)
							quantized := !f32 && typ != quant.F32 && typ != quant.F16 && typ != quant.BF16
							e := r.product(ws[which], in, quantized)
							if p.op == "gate_up" {
								e = gated(e, r.product(ws[1], in, quantized))
							}
							what := fmt.Sprintf("%s of %s, [%d, %d], output %d, %d tokens, input %s, f32 activations %v", p.op, typ, c.in, c.out, which, c.n, layout.name, f32)
							mustFit(t, what, have, e)
							if f32 {
								mustBeClose(t, what, have, e.value, map[string]float64{"gate_up": tight}[p.op]+reducedPath)
							}
						}
					}
				}
			}
		}
	})
}

// An embedding is the decoded row, bit for bit, of every weight type.
func TestEmbedMatrix(t *testing.T) {
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		for _, typ := range testmodel.WeightTypes() {
			r := newRig(t, set, backend.Options{Threads: 1}, spec(quant.F32))
			w := r.matrix("embd", typ, 256, tableRows)
			g := r.build(9, 9, func(b *graph.Builder) graph.Value { return b.Node("y", graph.Embed{W: w}, b.Input(graph.Tokens)) })
			have, want := r.run(g, r.single(9))
			mustBeClose(t, typ.String(), have, want, exact)
		}
	})
}

// The matrix above is whole: every op is in it, and it has every weight type that the backend accepts.
func TestMatrixIsWhole(t *testing.T) {
	have := map[string]bool{"input": true, "rows": true} // every graph has inputs; TestRows
	for _, e := range elementwise {
		have[e.op] = true
	}
	for _, p := range products {
		have[p.op] = true
	}
	for _, op := range graph.AllOps() {
		if !have[op.Kind()] {
			t.Errorf("no case runs %s", op.Kind())
		}
	}
	tested := map[quant.Type]bool{}
	for _, typ := range testmodel.WeightTypes() {
		tested[typ] = true
	}
	for typ := quant.Type(0); typ < 64; typ++ {
		for _, op := range []graph.Op{
			graph.MatMul{W: graph.Weight{Name: "w", Type: typ, In: 256, Out: 1}},
			graph.Embed{W: graph.Weight{Name: "w", Type: typ, In: 256, Out: 4}},
			graph.RMSNorm{W: graph.Weight{Name: "w", Type: typ, In: 256, Out: 1}},
		} {
			g := &graph.Graph{Nodes: []graph.Node{{Name: "n", Op: op}}}
			err := Backend{}.Supports(g, 0)
			want := tested[typ]
			if op.Kind() == "rms_norm" {
				want = typ == quant.F32 || typ == quant.F16 || typ == quant.BF16
			}
			if (err == nil) != want {
				t.Errorf("%s of %s: supported is %v, tested %v (%v)", op.Kind(), typ, err == nil, want, err)
			}
			if err != nil && (!errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), typ.String()) || !strings.Contains(err.Error(), "w")) {
				t.Errorf("%q does not name weight and type", err)
			}
		}
	}
}

// The tail: rows are picked by the batch, in any order of rows, any number of times.
func TestRows(t *testing.T) {
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		for _, in := range inputs {
			r := newRig(t, set, backend.Options{Threads: 2}, spec(quant.F32))
			g := r.build(9, 4, func(b *graph.Builder) graph.Value {
				x := in.make(r, b, "a", 64, 9)
				rows := b.Input(graph.OutRows)
				y := b.Node("s", graph.Silu{}, b.Node("picked", graph.Rows{}, x, rows))
				return b.Node("sum", graph.Add{}, y, b.Node("again", graph.Rows{}, b.Node("twice", graph.Scale{By: 2}, x), rows))
			})
			b := r.single(9)
			for _, rows := range [][]int32{{0, 1, 2, 3}, {8, 8, 0, 4}, {5, 6, 7, 8}} {
				b.OutRows = rows
				have, want := r.run(g, b)
				mustBeClose(t, in.name, have, want, tight)
			}
		}
	})
}
