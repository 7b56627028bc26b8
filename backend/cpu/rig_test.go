package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/internal/testmodel"
	"github.com/minfer-go/minfer/quant"
)

// A source holds weights by name. It implements backend.WeightSource.
type source map[string][]byte

func (s source) Weight(w graph.Weight) ([]byte, error) {
	if b, ok := s[w.Name]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("no tensor %s", w.Name)
}
func (source) Done(graph.Weight) {}

// A rig is a device with random weights, cells and the reference beside it.
type rig struct {
	t       testing.TB
	d       *Device
	kv      backend.KV
	ref     *reference
	weights source
	all     []graph.Weight
	rng     *rand.Rand
	spec    backend.KVSpec
}

// newRig opens a device on the given kernels.
func newRig(t testing.TB, set *simd.Set, o backend.Options, spec backend.KVSpec) *rig {
	t.Helper()
	opened, err := Backend{}.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	d := opened.(*Device)
	d.kernels = set
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	kv, err := d.NewKV(spec)
	if err != nil {
		t.Fatal(err)
	}
	w := source{}
	return &rig{t: t, d: d, kv: kv, ref: newReference(w, spec.Type), weights: w, rng: rand.New(rand.NewPCG(1, 2)), spec: spec}
}

// matrix makes a random matrix of the rig's and its name.
func (r *rig) matrix(name string, t quant.Type, in, out int) graph.Weight {
	r.t.Helper()
	b, err := testmodel.Matrix(t, in, out, r.rng)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.add(graph.Weight{Name: name, Type: t, In: in, Out: out}, b)
}

// vector makes a random vector around 1.
func (r *rig) vector(name string, t quant.Type, n int) graph.Weight {
	r.t.Helper()
	x := make([]float32, n)
	for i := range x {
		x[i] = 1 + 0.3*float32(r.rng.NormFloat64())
	}
	b, err := testmodel.Encode(t, x, r.rng)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.add(graph.Weight{Name: name, Type: t, In: n, Out: 1}, b)
}

// table makes a matrix of entries around size 1, to serve as input data through an embedding.
func (r *rig) table(name string, width int) graph.Weight {
	x := make([]float32, width*tableRows)
	for i := range x {
		x[i] = float32(r.rng.NormFloat64())
	}
	b, err := testmodel.Encode(quant.F32, x, r.rng)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.add(graph.Weight{Name: name, Type: quant.F32, In: width, Out: tableRows}, b)
}

const tableRows = 50

func (r *rig) add(w graph.Weight, b []byte) graph.Weight {
	r.weights[w.Name] = b
	r.all = append(r.all, w)
	if err := r.d.Load(context.Background(), []graph.Weight{w}, r.weights); err != nil {
		r.t.Fatal(err)
	}
	return w
}

// program assigns, fuses, plans and compiles.
func (r *rig) program(g *graph.Graph) backend.Program {
	r.t.Helper()
	p, err := r.d.Compile(g, r.pass(g), r.kv)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) pass(g *graph.Graph) *graph.Plan {
	r.t.Helper()
	targets := []graph.Target{Backend{}}
	if err := graph.Assign(g, targets); err != nil {
		r.t.Fatal(err)
	}
	graph.Fuse(g, targets)
	if err := graph.Check(g); err != nil {
		r.t.Fatal(err)
	}
	return graph.NewPlan(g)
}

// run computes a batch on the device and on the reference.
func (r *rig) run(g *graph.Graph, b *backend.Batch) (have []float32, want []float64) {
	r.t.Helper()
	p := r.program(g)
	logits, err := p.Run(b)
	if err != nil {
		r.t.Fatal(err)
	}
	return append([]float32(nil), logits.Data...), r.ref.run(g, b)
}

// params is a step of n tokens with all rows asked for.
func (r *rig) params(n, outputs int) graph.Params {
	return graph.Params{Tokens: n, Outputs: outputs, Cells: r.spec.Cells, KVType: r.spec.Type, Fuse: graph.AllRules, Device: 1, Weights: 1}
}

// build makes a graph with one output.
func (r *rig) build(n, outputs int, f func(b *graph.Builder) graph.Value) *graph.Graph {
	r.t.Helper()
	b := graph.NewBuilder(r.params(n, outputs))
	b.Output(f(b))
	g, err := b.Build()
	if err != nil {
		r.t.Fatal(err)
	}
	return g
}

// single is a batch of one sequence of n random tokens, in cells that lie apart.
func (r *rig) single(n int) *backend.Batch {
	b := &backend.Batch{}
	var cells []int32
	for i := range n {
		b.Tokens = append(b.Tokens, int32(r.rng.IntN(tableRows)))
		b.Positions = append(b.Positions, int32(i))
		b.OutRows = append(b.OutRows, int32(i))
		cells = append(cells, int32((i*7+3)%r.spec.Cells))
	}
	b.Cells, b.Seqs = cells, []backend.SeqRun{{Rows: n, Cells: cells}}
	return b
}

// spec is the cells of most tests.
func spec(t quant.Type) backend.KVSpec {
	return backend.KVSpec{Layers: 1, KVHeads: 2, HeadDim: 32, Cells: 101, Type: t} // 101 is a prime: n·7+3 meets every cell
}

// close reports how far have is from want beyond a tolerance, relative to the largest number; 0 is fine.
func mustBeClose(t testing.TB, what string, have []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(have) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(have), len(want))
	}
	top := 0.0
	for _, w := range want {
		top = max(top, math.Abs(w))
	}
	for i := range want {
		if d := math.Abs(float64(have[i]) - want[i]); !(d <= tolerance*top) {
			t.Fatalf("%s: number %d is %g, want %g: off by %.3g of the largest, allowed is %.3g", what, i, have[i], want[i], d/top, tolerance)
		}
	}
}

// onEachSet runs a test on every set of kernels that this machine has; on the fastest alone if tests are to be short.
func onEachSet(t *testing.T, f func(t *testing.T, set *simd.Set)) {
	sets := simd.Usable()
	if testing.Short() {
		sets = sets[:1]
	}
	for _, set := range sets {
		t.Run(set.ISA.String(), func(t *testing.T) { f(t, set) })
	}
}
