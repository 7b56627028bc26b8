package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/internal/testmodel"
	"github.com/minfer-go/minfer/quant"
)

// tinyRig is a model of one layer on the best kernels.
func tinyRig(t testing.TB, o backend.Options) *modelRig {
	c := testmodel.Default("qwen2")
	c.Layers, c.Type = 1, quant.Q4_0
	return newModelRig(t, simd.Best(), o, c, quant.F16, 101)
}

// What does not fit the program is refused before anything is written, with the numbers; the program goes on.
func TestRunRefusesBatches(t *testing.T) {
	r := tinyRig(t, backend.Options{Threads: 1})
	program := r.program(r.graph(5, 2, graph.AllRules))
	good := func() *backend.Batch {
		return &backend.Batch{
			Tokens: []int32{1, 2, 3, 4, 5}, Positions: []int32{3, 4, 0, 1, 2}, Cells: []int32{60, 61, 7, 8, 9}, OutRows: []int32{1, 4},
			Seqs: []backend.SeqRun{{Row: 0, Rows: 2, Cells: []int32{10, 11, 12, 60, 61}}, {Row: 2, Rows: 3, Cells: []int32{7, 8, 9}}},
		}
	}
	before, err := program.Run(good())
	if err != nil {
		t.Fatal(err)
	}
	want := append([]float32(nil), before.Data...)
	for _, c := range []struct {
		name string
		harm func(b *backend.Batch)
		text string
	}{
		{"few tokens", func(b *backend.Batch) { b.Tokens = b.Tokens[:4] }, "batch of 4 tokens"},
		{"many tokens", func(b *backend.Batch) { b.Tokens = append(b.Tokens, 1) }, "batch of 6 tokens"},
		{"few positions", func(b *backend.Batch) { b.Positions = b.Positions[:4] }, "4 positions"},
		{"few cells", func(b *backend.Batch) { b.Cells = b.Cells[:1] }, "1 cells"},
		{"few outputs", func(b *backend.Batch) { b.OutRows = b.OutRows[:1] }, "1 outputs for a program of 5 tokens, 2 outputs"},
		{"nothing", func(b *backend.Batch) { *b = backend.Batch{} }, "batch of 0 tokens"},
		{"a negative token", func(b *backend.Batch) { b.Tokens[2] = -1 }, "token id -1 of row 2 is outside the vocabulary of 96"},
		{"a token beyond", func(b *backend.Batch) { b.Tokens[4] = 96 }, "token id 96 of row 4"},
		{"a negative cell", func(b *backend.Batch) { b.Cells[0] = -5 }, "cell -5 of row 0 is outside the arena of 101"},
		{"a cell beyond", func(b *backend.Batch) { b.Cells[3] = 101 }, "cell 101 of row 3"},
		{"a negative output", func(b *backend.Batch) { b.OutRows[0] = -1 }, "output 0 asks for row -1 of 5"},
		{"an output beyond", func(b *backend.Batch) { b.OutRows[1] = 5 }, "output 1 asks for row 5 of 5"},
		{"no sequences", func(b *backend.Batch) { b.Seqs = nil }, "sequences cover 0 of 5 rows"},
		{"a sequence less", func(b *backend.Batch) { b.Seqs = b.Seqs[:1] }, "sequences cover 2 of 5 rows"},
		{"a gap between sequences", func(b *backend.Batch) { b.Seqs[1].Row = 3 }, "expected rows from 2"},
		{"an overlap of sequences", func(b *backend.Batch) { b.Seqs[1].Row = 1 }, "expected rows from 2"},
		{"a sequence without rows", func(b *backend.Batch) { b.Seqs[0].Rows = 0 }, "expected rows from 0"},
		{"a sequence of negative rows", func(b *backend.Batch) { b.Seqs[0].Rows = -2 }, "expected rows from 0"},
		{"a sequence beyond the rows", func(b *backend.Batch) { b.Seqs[1].Rows = 4; b.Seqs[1].Cells = []int32{1, 7, 8, 9} }, "rows [2, 6)"},
		{"rows beyond a sequence", func(b *backend.Batch) { b.Seqs[1].Cells = b.Seqs[1].Cells[:2] }, "2 positions"},
		{"more positions than cells", func(b *backend.Batch) { b.Seqs[0].Cells = make([]int32, 102) }, "102 positions"},
		{"a position of another row", func(b *backend.Batch) { b.Positions[1] = 5 }, "row 1 has position 5"},
		{"a cell of another row", func(b *backend.Batch) { b.Cells[0], b.Cells[1] = 61, 60 }, "row 0 has position 3 in cell 61"},
		{"an earlier cell beyond", func(b *backend.Batch) { b.Seqs[0].Cells[1] = 101 }, "cell 101 of position 1 of sequence 0"},
		{"an earlier cell below", func(b *backend.Batch) { b.Seqs[0].Cells[0] = -1 }, "cell -1 of position 0 of sequence 0"},
	} {
		b := good()
		c.harm(b)
		if _, err := program.Run(b); !errors.Is(err, backend.ErrRun) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: error %v, want ErrRun with %q", c.name, err, c.text)
		}
	}
	after, err := program.Run(good())
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "after all refusals", after.Data, want)
}

// A program without outputs gives none, and writes its cells.
func TestRunWithoutOutputs(t *testing.T) {
	r := tinyRig(t, backend.Options{Threads: 2})
	b := r.single(6)
	whole, err := r.program(r.graph(6, 6, graph.AllRules)).Run(b)
	if err != nil {
		t.Fatal(err)
	}
	want := append([]float32(nil), whole.Row(5)...)
	other := tinyRig(t, backend.Options{Threads: 2})
	first := *b
	first.Tokens, first.Positions, first.Cells, first.OutRows = b.Tokens[:5], b.Positions[:5], b.Cells[:5], nil
	first.Seqs = []backend.SeqRun{{Rows: 5, Cells: b.Cells[:5]}}
	if l, err := other.program(other.graph(5, 0, graph.AllRules)).Run(&first); err != nil || len(l.Data) != 0 {
		t.Fatalf("%d logits, %v", len(l.Data), err)
	}
	last := &backend.Batch{
		Tokens: b.Tokens[5:], Positions: b.Positions[5:], Cells: b.Cells[5:], OutRows: []int32{0}, Seqs: []backend.SeqRun{{Rows: 1, Cells: b.Cells}},
	}
	l, err := other.program(other.graph(1, 1, graph.AllRules)).Run(last)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "the last row after a chunk without outputs", l.Data, want)
}

// What cannot be compiled is refused with node, op, shapes and the reason.
func TestCompileRefusals(t *testing.T) {
	r := newRig(t, simd.Best(), backend.Options{Threads: 1}, spec(quant.F32))
	table := r.table("t", 64)
	other := newRig(t, simd.Best(), backend.Options{Threads: 1}, spec(quant.F32))
	x := func(b *graph.Builder) graph.Value { return b.Node("x", graph.Embed{W: table}, b.Input(graph.Tokens)) }
	for _, c := range []struct {
		name  string
		kv    backend.KV
		build func(b *graph.Builder)
		want  []string
	}{
		{"cells of another device", other.kv, func(b *graph.Builder) { b.Output(x(b)) }, []string{"not this device's"}},
		{"no cells", nil, func(b *graph.Builder) { b.Output(x(b)) }, []string{"not this device's"}},
		{"a matrix that is not loaded", r.kv, func(b *graph.Builder) {
			b.Output(b.Node("far", graph.MatMul{W: graph.Weight{Name: "gone", Type: quant.Q4_0, In: 64, Out: 8}}, x(b)))
		}, []string{`"far"`, "matmul f32[64 3] → f32[8 3]", "gone"}},
		{"a vector that is not loaded", r.kv, func(b *graph.Builder) {
			b.Output(b.Node("near", graph.RMSNorm{W: graph.Weight{Name: "gone", Type: quant.F32, In: 64, Out: 1}}, x(b)))
		}, []string{`"near"`, "rms_norm f32[64 3]", "gone"}},
		{"a layer beyond the cells", r.kv, func(b *graph.Builder) {
			kv := b.Node("deep", graph.StoreKV{Layer: 1}, b.Node("k", graph.Slice{To: 32}, x(b)), b.Node("v", graph.Slice{To: 32}, x(b)), b.Input(graph.Cells))
			b.Output(b.Node("a", graph.Attention{Layer: 1, Heads: 4, KVHeads: 2, HeadDim: 16, Scale: 1}, x(b), kv, b.Input(graph.Positions)))
		}, []string{`"deep"`, "store_kv f32[32 3]", "layer 1", "1 layers of 2 heads of 32"}},
		{"rows of another width than the cells", r.kv, func(b *graph.Builder) {
			k := b.Node("k", graph.Slice{To: 32}, x(b))
			kv := b.Node("thin", graph.StoreKV{}, k, k, b.Input(graph.Cells))
			b.Output(b.Node("a", graph.Attention{Heads: 2, KVHeads: 1, HeadDim: 32, Scale: 1}, x(b), kv, b.Input(graph.Positions)))
		}, []string{`"thin"`, "rows of 32 features"}},
		{"heads of another width than the cells", r.kv, func(b *graph.Builder) {
			kv := b.Node("store", graph.StoreKV{}, x(b), x(b), b.Input(graph.Cells))
			b.Output(b.Node("odd", graph.Attention{Heads: 4, KVHeads: 4, HeadDim: 16, Scale: 1}, x(b), kv, b.Input(graph.Positions)))
		}, []string{`"odd"`, "attention"}},
		{"rope of an unknown scaling", r.kv, func(b *graph.Builder) {
			rope := graph.Rope{HeadDim: 16, Rot: 16, Base: 10000, Scaling: graph.RopeScaling{Kind: "longer"}}
			b.Output(b.Node("turn", graph.RoPE{Rope: rope}, x(b), b.Input(graph.Positions)))
		}, []string{`"turn"`, "rope", "'longer'"}},
		{"two outputs", r.kv, func(b *graph.Builder) { b.Output(x(b)); b.Output(x(b)) }, []string{"output 1"}},
		{"an output that is a part", r.kv, func(b *graph.Builder) { b.Output(b.Node("part", graph.Slice{To: 32}, x(b))) }, []string{"output 0", `"part"`}},
		{"an output of ids", r.kv, func(b *graph.Builder) { b.Output(b.Input(graph.Tokens)) }, []string{"output 0"}},
	} {
		b := graph.NewBuilder(r.params(3, 3))
		c.build(b)
		g, err := b.Build()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		_, err = r.d.Compile(g, r.pass(g), c.kv)
		if !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("%s: error %v, want ErrUnsupported", c.name, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", c.name, err, part)
			}
		}
	}
}

// Products that take their input in different forms do not fuse, and the refusal of one that a caller made says so.
func TestGateUpOfDifferentForms(t *testing.T) {
	r := newRig(t, simd.Best(), backend.Options{Threads: 1}, spec(quant.F32))
	gate, up := r.matrix("gate", quant.F16, 64, 32), r.matrix("up", quant.Q8_0, 64, 32)
	table := r.table("t", 64)
	g := r.build(3, 3, func(b *graph.Builder) graph.Value {
		x := b.Node("x", graph.Embed{W: table}, b.Input(graph.Tokens))
		return b.Node("ffn", graph.GateUp{Gate: gate, Up: up}, x)
	})
	err := graph.Assign(g, []graph.Target{Backend{}})
	if !errors.Is(err, graph.ErrAssign) || !errors.Is(err, backend.ErrUnsupported) {
		t.Fatalf("error %v", err)
	}
	for _, part := range []string{`"ffn"`, "gate", "F16", "up", "Q8_0"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestLoadRefusals(t *testing.T) {
	opened, err := Backend{}.Open(backend.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	w := graph.Weight{Name: "w", Type: quant.Q4_0, In: 64, Out: 3}
	src := source{"w": make([]byte, 36*3), "short": make([]byte, 35), "vec": make([]byte, 3)}
	load := func(w graph.Weight) error { return opened.Load(context.Background(), []graph.Weight{w}, src) }
	if err := load(w); err != nil {
		t.Errorf("a good weight: %v", err)
	}
	for _, c := range []struct {
		w    graph.Weight
		want string
	}{
		{graph.Weight{Name: "gone", Type: quant.Q4_0, In: 64, Out: 3}, "gone"},
		{graph.Weight{Name: "short", Type: quant.Q4_0, In: 64, Out: 1}, "short: 35 bytes"},
		{graph.Weight{Name: "w", Type: quant.Q4_0, In: 64, Out: 4}, "w: 108 bytes for [64, 4] of Q4_0"},
		{graph.Weight{Name: "w", Type: quant.Q4_0, In: 63, Out: 3}, "w"},
		{graph.Weight{Name: "w", Type: quant.IQ1_S, In: 256, Out: 3}, "IQ1_S"},
		{graph.Weight{Name: "vec", Type: quant.F32, In: 7, Out: 1}, "vec"},
	} {
		err := load(c.w)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.w, err, c.want)
		}
		if c.w.Name != "gone" && !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("%+v: error %v is not ErrUnsupported", c.w, err)
		}
		if _, sizeErr := opened.WeightBytes([]graph.Weight{c.w}); c.w.Type == quant.IQ1_S && sizeErr == nil {
			t.Error("WeightBytes accepts a type that Load refuses")
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	if err := opened.Load(ctx, []graph.Weight{w}, src); err == nil {
		t.Error("a cancelled load went on")
	}
}

// WeightBytes and KVBytes say what Load and NewKV then take.
func TestBytesAreHonest(t *testing.T) {
	for _, c := range fusedConfigs() {
		r := newModelRig(t, simd.Best(), backend.Options{Threads: 1}, c, quant.F16, 131)
		want, err := r.d.WeightBytes(r.model.Weights())
		if err != nil {
			t.Fatal(err)
		}
		have := 0
		for _, m := range r.d.matrices {
			have += len(m.Panels)
		}
		for _, v := range r.d.vectors {
			have += 4 * len(v)
		}
		if have != want {
			t.Errorf("%s of %s: %d bytes are kept, WeightBytes says %d", c.Arch, c.Type, have, want)
		}
		bytes := 0
		for _, l := range r.kv.(*kvMemory).layers {
			bytes += len(l.K) + len(l.V)
		}
		if said, err := r.d.KVBytes(r.spec); err != nil || said != bytes || r.kv.Bytes() != bytes || r.kv.Spec() != r.spec {
			t.Errorf("cells take %d bytes, KVBytes says %d (%v), Bytes %d", bytes, said, err, r.kv.Bytes())
		}
	}
}

func TestKVRefusals(t *testing.T) {
	r := newRig(t, simd.Best(), backend.Options{Threads: 1}, spec(quant.F16))
	for _, s := range []backend.KVSpec{
		{Layers: 0, KVHeads: 2, HeadDim: 16, Cells: 8},
		{Layers: 1, KVHeads: 0, HeadDim: 16, Cells: 8},
		{Layers: 1, KVHeads: 2, HeadDim: 0, Cells: 8},
		{Layers: 1, KVHeads: 2, HeadDim: 16, Cells: 0},
		{Layers: -1, KVHeads: -2, HeadDim: 16, Cells: 8},
		{Layers: 1024, KVHeads: 1024, HeadDim: 1024, Cells: 1 << 24},
		{Layers: 1, KVHeads: 1, HeadDim: 1, Cells: math.MaxInt},
		{Layers: 1, KVHeads: 2, HeadDim: 16, Cells: 8, Type: quant.Q4_0},
		{Layers: 1, KVHeads: 2, HeadDim: 16, Cells: 8, Type: quant.Q8_0}, // blocks of 32 do not fit such heads
	} {
		if _, err := r.d.NewKV(s); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("NewKV(%+v): %v", s, err)
		}
		if _, err := r.d.KVBytes(s); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("KVBytes(%+v): %v", s, err)
		}
	}
	at := maxKVBytes / 8
	if _, err := r.d.KVBytes(backend.KVSpec{Layers: 1, KVHeads: 1, HeadDim: 1, Cells: at}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := r.d.KVBytes(backend.KVSpec{Layers: 1, KVHeads: 1, HeadDim: 1, Cells: at + 1}); err == nil {
		t.Error("one past the limit is accepted")
	}
	rope := graph.Rope{HeadDim: 16, Rot: 16, Base: 10000}
	for _, c := range [][2]int{{-1, 1}, {0, -1}, {100, 2}, {101, 1}, {0, 102}, {math.MaxInt, 1}, {1, math.MaxInt}} {
		if err := r.kv.Copy([]backend.CellCopy{{Src: c[0], Dst: 0, Len: c[1]}}); !errors.Is(err, backend.ErrRun) {
			t.Errorf("copy from %v: %v", c, err)
		}
		if err := r.kv.Copy([]backend.CellCopy{{Src: 0, Dst: c[0], Len: c[1]}}); !errors.Is(err, backend.ErrRun) {
			t.Errorf("copy to %v: %v", c, err)
		}
		if err := r.kv.Rotate([]backend.CellTurn{{Cell: c[0], Len: c[1], Delta: 1}}, rope); !errors.Is(err, backend.ErrRun) {
			t.Errorf("rotate %v: %v", c, err)
		}
	}
	rope.Scaling.Kind = "longer"
	if err := r.kv.Rotate([]backend.CellTurn{{Cell: 0, Len: 1, Delta: 1}}, rope); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("rotate by an unknown scaling: %v", err)
	}
}

// Copied cells serve as the first ones did, to the bit; keys turned by a distance are those of tokens so much further.
func TestKVCopyAndRotate(t *testing.T) {
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		for _, typ := range []quant.Type{quant.F32, quant.F16, quant.Q8_0} {
			c := testmodel.Default("llama")
			c.RopeFreqs = true
			r := newModelRig(t, set, backend.Options{Threads: 1, F32Activations: true}, c, typ, 101)
			b := r.single(10)
			if _, err := r.program(r.graph(10, 0, graph.AllRules)).Run(noOutputs(b)); err != nil {
				t.Fatal(err)
			}
			next := func(cells []int32) []float32 {
				step := &backend.Batch{
					Tokens: []int32{42}, Positions: []int32{10}, Cells: []int32{100}, OutRows: []int32{0}, Seqs: []backend.SeqRun{{Rows: 1, Cells: append(cells, 100)}},
				}
				l, err := r.program(r.graph(1, 1, graph.AllRules)).Run(step)
				if err != nil {
					t.Fatal(err)
				}
				return append([]float32(nil), l.Data...)
			}
			want := next(append([]int32(nil), b.Cells...))
			moved := append([]int32(nil), b.Cells...)
			var moves []backend.CellCopy
			for i := range moved {
				to := 80 + i
				moves = append(moves, backend.CellCopy{Src: int(moved[i]), Dst: to, Len: 1})
				moved[i] = int32(to)
			}
			if err := r.kv.Copy(moves); err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "after copies", next(moved), want)
			// There and back again.
			rope := ropeOf(t, r)
			if err := r.kv.Rotate([]backend.CellTurn{{Cell: 80, Len: 10, Delta: 33}}, rope); err != nil {
				t.Fatal(err)
			}
			turned := next(moved)
			if fmt.Sprint(turned) == fmt.Sprint(want) {
				t.Error("turning the keys makes no difference")
			}
			if err := r.kv.Rotate([]backend.CellTurn{{Cell: 80, Len: 10, Delta: -33}}, rope); err != nil {
				t.Fatal(err)
			}
			exactly := make([]float64, len(want))
			for i, v := range want {
				exactly[i] = float64(v)
			}
			tolerance := 1e-5
			switch typ { // keys are rounded twice
			case quant.F16:
				tolerance = 5e-3
			case quant.Q8_0:
				tolerance = 5e-2
			}
			mustBeClose(t, "there and back", next(moved), exactly, tolerance)
		}
	})
}

func noOutputs(b *backend.Batch) *backend.Batch {
	c := *b
	c.OutRows = nil
	return &c
}

// ropeOf is the rotation that the model's graph applies to keys.
func ropeOf(t testing.TB, r *modelRig) graph.Rope {
	g := r.graph(1, 1, 0)
	for i := range g.Nodes {
		if op, ok := g.Nodes[i].Op.(graph.RoPE); ok {
			return op.Rope
		}
	}
	t.Fatal("the model rotates nothing")
	return graph.Rope{}
}

// decodeRig is a model with a prompt in its cells, and a function that runs one decode step further.
func decodeRig(t testing.TB, threads int) func() {
	c := testmodel.Default("qwen3")
	c.Type = quant.Q4_0
	r := newModelRig(t, simd.Best(), backend.Options{Threads: threads}, c, quant.F16, 401)
	prompt := r.single(20)
	if _, err := r.program(r.graph(20, 0, graph.AllRules)).Run(noOutputs(prompt)); err != nil {
		t.Fatal(err)
	}
	cells := make([]int32, 0, r.spec.Cells)
	cells = append(cells, prompt.Cells...)
	program := r.program(r.graph(1, 1, graph.AllRules))
	b := &backend.Batch{Tokens: make([]int32, 1), Positions: make([]int32, 1), Cells: make([]int32, 1), OutRows: []int32{0}, Seqs: make([]backend.SeqRun, 1)}
	return func() {
		if len(cells) == cap(cells) {
			cells = cells[:20]
		}
		pos := len(cells)
		cells = append(cells, int32((pos*7+3)%r.spec.Cells))
		b.Tokens[0], b.Positions[0], b.Cells[0] = int32(pos%90), int32(pos), cells[pos]
		b.Seqs[0] = backend.SeqRun{Rows: 1, Cells: cells}
		if _, err := program.Run(b); err != nil {
			t.Fatal(err)
		}
	}
}

// A decode step with a compiled program allocates nothing, on one thread and on several.
func TestDecodeAllocatesNothing(t *testing.T) {
	for _, threads := range []int{1, 3} {
		step := decodeRig(t, threads)
		if n := testing.AllocsPerRun(200, step); n != 0 {
			t.Errorf("%d threads: %g allocations a step", threads, n)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	step := decodeRig(b, 2)
	if n := testing.AllocsPerRun(100, step); n != 0 {
		b.Fatalf("%g allocations a step, must be none", n)
	}
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}

func TestInfo(t *testing.T) {
	r := tinyRig(t, backend.Options{Threads: 3})
	for _, part := range []string{"cpu", simd.Best().ISA.String(), "3 threads"} {
		if !strings.Contains(r.d.Info(), part) {
			t.Errorf("%q lacks %q", r.d.Info(), part)
		}
	}
	b := Backend{}
	if b.Name() != "cpu" || b.Usable() != nil || b.Fuses() != graph.AllRules || b.KVTypes()[0] != quant.F16 {
		t.Error("the backend describes itself otherwise")
	}
}

// A step ends early when its batch says so; the program goes on with the next.
func TestRunStops(t *testing.T) {
	r := tinyRig(t, backend.Options{Threads: 2})
	program := r.program(r.graph(6, 1, graph.AllRules))
	b := r.single(6)
	b.OutRows = b.OutRows[5:]
	l, err := program.Run(b)
	if err != nil {
		t.Fatal(err)
	}
	want := append([]float32(nil), l.Data...)
	for _, after := range []int32{0, 1, 4} {
		var asked atomic.Int32
		b.Stop = func() bool { return asked.Add(1) > after }
		if _, err := program.Run(b); !errors.Is(err, backend.ErrStopped) || errors.Is(err, backend.ErrRun) || asked.Load() != after+1 {
			t.Errorf("asked %d times, %v; want ErrStopped at time %d", asked.Load(), err, after+1)
		}
	}
	b.Stop = func() bool { return false }
	if l, err = program.Run(b); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "after stops", l.Data, want)
}
