package cpu

import (
	"errors"
	"fmt"
	"math"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/quant"
)

// A reference evaluates graphs in float64, straight from what package graph says of each op. It shares nothing with the
// backend but the decoding of weights.
type reference struct {
	g       *graph.Graph
	weights source
	kvType  quant.Type
	k, v    map[[2]int][]float64 // layer, cell → row
	storage map[graph.Value][]float64
	batch   *backend.Batch
}

func newReference(weights source, kvType quant.Type) *reference {
	return &reference{weights: weights, kvType: kvType, k: map[[2]int][]float64{}, v: map[[2]int][]float64{}}
}

// weight is a tensor's elements, row-major.
func (r *reference) weight(w graph.Weight) []float64 {
	x := make([]float32, w.In*w.Out)
	if err := quant.Decode(w.Type, x, r.weights[w.Name]); err != nil {
		panic(err)
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// get reads a value in shape order, through its views.
func (r *reference) get(v graph.Value) []float64 {
	t := r.g.Tensor(v)
	data := r.storage[r.g.Root(v)]
	out := make([]float64, 0, t.Elements())
	for i3 := range t.Shape[3] {
		for i2 := range t.Shape[2] {
			for i1 := range t.Shape[1] {
				for i0 := range t.Shape[0] {
					out = append(out, data[t.Offset+i0*t.Stride[0]+i1*t.Stride[1]+i2*t.Stride[2]+i3*t.Stride[3]])
				}
			}
		}
	}
	return out
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

// normed is RMSNorm of every run of len(w) elements.
func normed(x, w []float64, eps float32) []float64 {
	out := make([]float64, len(x))
	for at := 0; at < len(x); at += len(w) {
		sum := 0.0
		for i := range w {
			sum += x[at+i] * x[at+i]
		}
		scale := 1 / math.Sqrt(sum/float64(len(w))+float64(eps))
		for i := range w {
			out[at+i] = x[at+i] * scale * w[i]
		}
	}
	return out
}

// times is W·x for every token.
func times(w, x []float64, in, out int) []float64 {
	n := len(x) / in
	y := make([]float64, n*out)
	for t := range n {
		for o := range out {
			sum := 0.0
			for i := range in {
				sum += w[o*in+i] * x[t*in+i]
			}
			y[t*out+o] = sum
		}
	}
	return y
}

// rotate turns the heads of every token by its position.
func (r *reference) rotate(rope graph.Rope, x []float64) []float64 {
	out := append([]float64(nil), x...)
	n := len(r.batch.Positions)
	d := len(x) / n
	var factors []float64
	if rope.Factors.Present() {
		factors = r.weight(rope.Factors)
	}
	for t := range n {
		for head := t * d; head < (t+1)*d; head += rope.HeadDim {
			for i := range rope.Rot / 2 {
				freq := math.Pow(float64(rope.Base), -2*float64(i)/float64(rope.Rot))
				if factors != nil {
					freq /= factors[i]
				}
				scale := 1.0
				switch s := rope.Scaling; s.Kind {
				case "linear":
					freq /= float64(s.Factor)
				case "yarn":
					freq, scale = yarn(rope, i, freq)
				}
				angle := float64(r.batch.Positions[t]) * freq
				a, b := head+i, head+i+rope.Rot/2
				if rope.Style == graph.RopeNorm {
					a, b = head+2*i, head+2*i+1
				}
				out[a] = scale * (x[a]*math.Cos(angle) - x[b]*math.Sin(angle))
				out[b] = scale * (x[a]*math.Sin(angle) + x[b]*math.Cos(angle))
			}
		}
	}
	return out
}

// yarn is the frequency of a pair and the magnitude after YaRN (Peng et al. 2023, §3.2–3.4): by how often the pair turns
// within the trained context it keeps its frequency, has it divided, or something between.
func yarn(rope graph.Rope, pair int, freq float64) (f, scale float64) {
	s := rope.Scaling
	index := func(turns float64) float64 { // the pair that turns so often, as a real number
		return float64(rope.Rot) / 2 * math.Log(float64(s.Original)/(2*math.Pi*turns)) / math.Log(float64(rope.Base))
	}
	low, high := math.Floor(index(float64(s.BetaFast))), math.Ceil(index(float64(s.BetaSlow)))
	low, high = max(low, 0), min(high, float64(rope.Rot-1))
	ramp := min(1, max(0, (float64(pair)-low)/max(high-low, 0.001)))
	return freq/float64(s.Factor)*ramp + freq*(1-ramp), float64(s.Attention) * (1 + 0.1*math.Log(float64(s.Factor)))
}

// stored is a row as KV cells keep it.
func (r *reference) stored(x []float64) []float64 {
	row, out := make([]float32, len(x)), make([]float64, len(x))
	for i, v := range x {
		row[i] = float32(v)
	}
	size, err := r.kvType.RowBytes(len(row))
	if err != nil {
		panic(err)
	}
	b := make([]byte, size)
	if err := errors.Join(quant.Encode(r.kvType, b, row), quant.Decode(r.kvType, row, b)); err != nil {
		panic(err)
	}
	for i, v := range row {
		out[i] = float64(v)
	}
	return out
}

func (r *reference) store(layer int, k, v []float64) {
	n := len(r.batch.Cells)
	d := len(k) / n
	for t, cell := range r.batch.Cells {
		r.k[[2]int{layer, int(cell)}] = r.stored(k[t*d : (t+1)*d])
		r.v[[2]int{layer, int(cell)}] = r.stored(v[t*d : (t+1)*d])
	}
}

func (r *reference) attend(op graph.Attention, q []float64) []float64 {
	out := make([]float64, len(q))
	hd, width := op.HeadDim, op.Heads*op.HeadDim
	for _, seq := range r.batch.Seqs {
		for i := range seq.Rows {
			cells := seq.Cells[:len(seq.Cells)-seq.Rows+i+1]
			for h := range op.Heads {
				at := (seq.Row+i)*width + h*hd
				kvAt := h / (op.Heads / op.KVHeads) * hd
				score := make([]float64, len(cells))
				top := math.Inf(-1)
				for c, cell := range cells {
					k := r.k[[2]int{op.Layer, int(cell)}]
					for j := range hd {
						score[c] += q[at+j] * k[kvAt+j]
					}
					score[c] *= float64(op.Scale)
					top = max(top, score[c])
				}
				sum := 0.0
				for c := range score {
					score[c] = math.Exp(score[c] - top)
					sum += score[c]
				}
				for c, cell := range cells {
					v := r.v[[2]int{op.Layer, int(cell)}]
					for j := range hd {
						out[at+j] += score[c] / sum * v[kvAt+j]
					}
				}
			}
		}
	}
	return out
}

func plus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + b[i%len(b)]
	}
	return out
}

// run evaluates a graph for a batch and returns its first output.
func (r *reference) run(g *graph.Graph, b *backend.Batch) []float64 {
	r.g, r.batch, r.storage = g, b, map[graph.Value][]float64{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Dead {
			continue
		}
		var in [][]float64
		for _, v := range n.In {
			if g.Tensor(v).Type == graph.F32 {
				in = append(in, r.get(v))
			} else {
				in = append(in, nil)
			}
		}
		for k, out := range r.node(n.Op, in) {
			r.storage[graph.Value{Node: i, Out: k}] = out
		}
	}
	if len(g.Outputs) == 0 {
		return nil
	}
	return r.get(g.Outputs[0])
}

func (r *reference) node(op graph.Op, in [][]float64) [][]float64 {
	one := func(f func(i int) float64) [][]float64 {
		out := make([]float64, len(in[0]))
		for i := range out {
			out[i] = f(i)
		}
		return [][]float64{out}
	}
	switch op := op.(type) {
	case graph.Input, graph.Slice, graph.Reshape, graph.Permute:
		return nil
	case graph.Embed:
		w := r.weight(op.W)
		var out []float64
		for _, id := range r.batch.Tokens {
			out = append(out, w[int(id)*op.W.In:(int(id)+1)*op.W.In]...)
		}
		return [][]float64{out}
	case graph.RMSNorm:
		return [][]float64{normed(in[0], r.weight(op.W), op.Eps)}
	case graph.HeadNorm:
		return [][]float64{normed(in[0], r.weight(op.W), op.Eps)}
	case graph.MatMul:
		return [][]float64{times(r.weight(op.W), in[0], op.W.In, op.W.Out)}
	case graph.MultiMatMul:
		var out [][]float64
		for _, w := range op.Ws[:op.N] {
			out = append(out, times(r.weight(w), in[0], w.In, w.Out))
		}
		return out
	case graph.GateUp:
		g, u := times(r.weight(op.Gate), in[0], op.Gate.In, op.Gate.Out), times(r.weight(op.Up), in[0], op.Up.In, op.Up.Out)
		for i := range g {
			g[i] = silu(g[i]) * u[i]
		}
		return [][]float64{g}
	case graph.Bias:
		return [][]float64{plus(in[0], r.weight(op.W))}
	case graph.RoPE:
		return [][]float64{r.rotate(op.Rope, in[0])}
	case graph.StoreKV:
		r.store(op.Layer, in[0], in[1])
		return nil
	case graph.Attention:
		return [][]float64{r.attend(op, in[0])}
	case graph.Rows:
		d := len(in[0]) / len(r.batch.Tokens)
		var out []float64
		for _, row := range r.batch.OutRows {
			out = append(out, in[0][int(row)*d:(int(row)+1)*d]...)
		}
		return [][]float64{out}
	case graph.Add:
		return one(func(i int) float64 { return in[0][i] + in[1][i] })
	case graph.Mul:
		return one(func(i int) float64 { return in[0][i] * in[1][i] })
	case graph.SwiGLU:
		return one(func(i int) float64 { return silu(in[0][i]) * in[1][i] })
	case graph.Scale:
		return one(func(i int) float64 { return in[0][i] * float64(op.By) })
	case graph.Silu:
		return one(func(i int) float64 { return silu(in[0][i]) })
	case graph.Copy:
		return one(func(i int) float64 { return in[0][i] })
	case graph.AddRMSNorm:
		sum := plus(in[0], in[1])
		return [][]float64{sum, normed(sum, r.weight(op.W), op.Eps)}
	case graph.QKVStore:
		prepare := func(x []float64, bias, norm graph.Weight) []float64 {
			if bias.Present() {
				x = plus(x, r.weight(bias))
			}
			if norm.Present() {
				x = normed(x, r.weight(norm), op.Eps)
			}
			return x
		}
		q := r.rotate(op.Rope, prepare(in[0], op.BiasQ, op.NormQ))
		k := r.rotate(op.Rope, prepare(in[1], op.BiasK, op.NormK))
		r.store(op.Layer, k, prepare(in[2], op.BiasV, graph.Weight{}))
		return [][]float64{q}
	}
	panic(fmt.Sprintf("the reference has no op %T", op))
}
