package graph

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// The tensors that the legality table is asked about.
var (
	x8   = dense(F32, 8, 3)                                         // 3 tokens of 8 features
	x4   = dense(F32, 4, 3)                                         //
	y8   = dense(F32, 8, 2)                                         // 2 tokens
	ids  = dense(I32, 3)                                            //
	two  = dense(I32, 2)                                            //
	cell = dense(KV)                                                //
	cols = Tensor{F32, [4]int{4, 3, 1, 1}, [4]int{1, 8, 24, 24}, 4} // features 4–7 of x8
	turn = Tensor{F32, [4]int{3, 8, 1, 1}, [4]int{8, 1, 24, 24}, 0} // x8 transposed
	cube = dense(F32, 4, 2, 3)                                      //
	grid = dense(I32, 3, 2)                                         //
	rot4 = Rope{HeadDim: 4, Rot: 4, Base: 10000}
)

func rope(change func(*Rope)) Rope {
	r := rot4
	change(&r)
	return r
}

// legality holds, for every op, what it accepts with the shapes that come out, and every refusal.
var legality = []struct {
	name string
	op   Op
	in   []Tensor
	out  []Tensor // if accepted
	err  string   // if refused
}{
	{"input made by hand", Input{Tokens}, nil, nil, "made by Builder.Input"},

	{"embed", Embed{matrix("w", 8, 5)}, []Tensor{ids}, []Tensor{x8}, ""},
	{"embed nothing", Embed{matrix("w", 8, 5)}, nil, nil, "takes 1 inputs, got 0"},
	{"embed floats", Embed{matrix("w", 8, 5)}, []Tensor{x8}, nil, "input 0 must be an i32 vector, is f32[8 3]"},
	{"embed a grid", Embed{matrix("w", 8, 5)}, []Tensor{grid}, nil, "must be an i32 vector"},
	{"embed without table", Embed{}, []Tensor{ids}, nil, "needs a weight"},
	{"embed of width 0", Embed{matrix("w", 0, 5)}, []Tensor{ids}, nil, "weight w"},
	{"embed of no rows", Embed{matrix("w", 8, 0)}, []Tensor{ids}, nil, "weight w"},

	{"norm", RMSNorm{vector("w", 8), 1e-6}, []Tensor{x8}, []Tensor{x8}, ""},
	{"norm of columns", RMSNorm{vector("w", 4), 1e-6}, []Tensor{cols}, []Tensor{x4}, ""},
	{"norm of two", RMSNorm{vector("w", 8), 1e-6}, []Tensor{x8, x8}, nil, "takes 1 inputs, got 2"},
	{"norm of ids", RMSNorm{vector("w", 3), 1e-6}, []Tensor{ids}, nil, "must be an f32 matrix"},
	{"norm of strided features", RMSNorm{vector("w", 3), 1e-6}, []Tensor{turn}, nil, "contiguous rows"},
	{"norm of three dimensions", RMSNorm{vector("w", 4), 1e-6}, []Tensor{cube}, nil, "contiguous rows"},
	{"norm of another width", RMSNorm{vector("w", 7), 1e-6}, []Tensor{x8}, nil, "weight w must be a vector of 8, is [7, 1]"},
	{"norm by a matrix", RMSNorm{matrix("w", 8, 2), 1e-6}, []Tensor{x8}, nil, "must be a vector of 8"},
	{"norm without weight", RMSNorm{}, []Tensor{x8}, nil, "needs a weight"},

	{"head norm", HeadNorm{vector("w", 4), 1e-6}, []Tensor{x8}, []Tensor{x8}, ""},
	{"head norm of uneven heads", HeadNorm{vector("w", 3), 1e-6}, []Tensor{x8}, nil, "8 features are no whole number of heads of 3"},
	{"head norm without weight", HeadNorm{}, []Tensor{x8}, nil, "heads of 0"},
	{"head norm by a matrix", HeadNorm{matrix("w", 4, 2), 1e-6}, []Tensor{x8}, nil, "must be a vector of 4"},
	{"head norm of ids", HeadNorm{vector("w", 1), 1e-6}, []Tensor{ids}, nil, "f32 matrix"},

	{"product", MatMul{matrix("w", 8, 5)}, []Tensor{x8}, []Tensor{dense(F32, 5, 3)}, ""},
	{"product of columns", MatMul{matrix("w", 4, 5)}, []Tensor{cols}, []Tensor{dense(F32, 5, 3)}, ""},
	{"product of another width", MatMul{matrix("w", 7, 5)}, []Tensor{x8}, nil, "input 0 must have 7 features, has 8"},
	{"product of a transpose", MatMul{matrix("w", 3, 5)}, []Tensor{turn}, nil, "contiguous rows"},
	{"product without weight", MatMul{}, []Tensor{x8}, nil, "must have 0 features"},
	{"product of nothing", MatMul{matrix("w", 8, 5)}, nil, nil, "takes 1 inputs"},
	{"product without outputs", MatMul{matrix("w", 8, 0)}, []Tensor{x8}, nil, "weight w must have 8 inputs, is [8, 0]"},

	{"bias", Bias{vector("w", 8)}, []Tensor{x8}, []Tensor{x8}, ""},
	{"bias of another width", Bias{vector("w", 9)}, []Tensor{x8}, nil, "must be a vector of 8, is [9, 1]"},
	{"bias without weight", Bias{}, []Tensor{x8}, nil, "needs a weight"},

	{"rope", RoPE{rot4}, []Tensor{x8, ids}, []Tensor{x8}, ""},
	{"rope of part", RoPE{rope(func(r *Rope) { r.Rot = 2 })}, []Tensor{x8, ids}, []Tensor{x8}, ""},
	{"rope with factors", RoPE{rope(func(r *Rope) { r.Factors = vector("f", 2) })}, []Tensor{x8, ids}, []Tensor{x8}, ""},
	{"rope with wrong factors", RoPE{rope(func(r *Rope) { r.Factors = vector("f", 4) })}, []Tensor{x8, ids}, nil, "vector of 2"},
	{"rope of uneven heads", RoPE{rope(func(r *Rope) { r.HeadDim = 6 })}, []Tensor{x8, ids}, nil, "no whole number of heads of 6"},
	{"rope of single features", RoPE{rope(func(r *Rope) { r.HeadDim = 1 })}, []Tensor{x8, ids}, nil, "heads of 1"},
	{"rope of nothing", RoPE{rope(func(r *Rope) { r.Rot = 0 })}, []Tensor{x8, ids}, nil, "cannot rotate 0 of 4"},
	{"rope of an odd part", RoPE{rope(func(r *Rope) { r.Rot = 3 })}, []Tensor{x8, ids}, nil, "cannot rotate 3 of 4"},
	{"rope of more than a head", RoPE{rope(func(r *Rope) { r.Rot = 6 })}, []Tensor{x8, ids}, nil, "cannot rotate 6 of 4"},
	{"rope without base", RoPE{rope(func(r *Rope) { r.Base = 0 })}, []Tensor{x8, ids}, nil, "base 0 is not positive"},
	{"rope of a NaN base", RoPE{rope(func(r *Rope) { r.Base = float32(math.NaN()) })}, []Tensor{x8, ids}, nil, "base NaN"},
	{"rope without positions", RoPE{rot4}, []Tensor{x8}, nil, "takes 2 inputs, got 1"},
	{"rope of few positions", RoPE{rot4}, []Tensor{x8, two}, nil, "input 1 must have 3 elements, has 2"},
	{"rope of float positions", RoPE{rot4}, []Tensor{x8, x8}, nil, "input 1 must be an i32 vector"},

	{"store", StoreKV{0}, []Tensor{x8, x8, ids}, []Tensor{cell}, ""},
	{"store of columns", StoreKV{7}, []Tensor{cols, x4, ids}, []Tensor{cell}, ""},
	{"store of unequal widths", StoreKV{0}, []Tensor{x8, x4, ids}, nil, "input 1 must have 8 features, has 4"},
	{"store of unequal tokens", StoreKV{0}, []Tensor{x8, y8, ids}, nil, "input 1 has 2 tokens, input 0 has 3"},
	{"store to few cells", StoreKV{0}, []Tensor{x8, x8, two}, nil, "input 2 must have 3 elements, has 2"},
	{"store in a negative layer", StoreKV{-1}, []Tensor{x8, x8, ids}, nil, "layer -1 is negative"},
	{"store of two", StoreKV{0}, []Tensor{x8, x8}, nil, "takes 3 inputs"},

	{"attention", Attention{0, 2, 1, 4, 1}, []Tensor{x8, cell, ids}, []Tensor{x8}, ""},
	{"attention of uneven heads", Attention{0, 3, 2, 4, 1}, []Tensor{x8, cell, ids}, nil, "3 heads cannot share 2 KV heads evenly"},
	{"attention of no heads", Attention{0, 0, 1, 4, 1}, []Tensor{x8, cell, ids}, nil, "0 heads cannot share"},
	{"attention of no KV heads", Attention{0, 2, 0, 4, 1}, []Tensor{x8, cell, ids}, nil, "cannot share 0 KV heads"},
	{"attention of empty heads", Attention{0, 2, 1, 0, 1}, []Tensor{x8, cell, ids}, nil, "head dimension 0"},
	{"attention without scale", Attention{0, 2, 1, 4, 0}, []Tensor{x8, cell, ids}, nil, "scale 0 is not positive"},
	{"attention in a negative layer", Attention{-2, 2, 1, 4, 1}, []Tensor{x8, cell, ids}, nil, "layer -2"},
	{"attention to floats", Attention{0, 2, 1, 4, 1}, []Tensor{x8, x8, ids}, nil, "input 1 must be a kv handle, is f32"},
	{"attention of another width", Attention{0, 4, 1, 4, 1}, []Tensor{x8, cell, ids}, nil, "input 0 must have 16 features, has 8"},
	{"attention at few positions", Attention{0, 2, 1, 4, 1}, []Tensor{x8, cell, two}, nil, "input 2 must have 3 elements"},
	{"attention of two", Attention{0, 2, 1, 4, 1}, []Tensor{x8, cell}, nil, "takes 3 inputs"},

	{"rows", Rows{}, []Tensor{x8, two}, []Tensor{y8}, ""},
	{"rows of columns", Rows{}, []Tensor{cols, two}, []Tensor{dense(F32, 4, 2)}, ""},
	{"rows by floats", Rows{}, []Tensor{x8, x8}, nil, "input 1 must be an i32 vector"},
	{"rows of ids", Rows{}, []Tensor{ids, two}, nil, "input 0 must be an f32 matrix"},
	{"rows of one", Rows{}, []Tensor{x8}, nil, "takes 2 inputs"},

	{"add", Add{}, []Tensor{x8, x8}, []Tensor{x8}, ""},
	{"add columns", Add{}, []Tensor{cols, x4}, []Tensor{x4}, ""},
	{"add unequal", Add{}, []Tensor{x8, y8}, nil, "shapes differ"},
	{"add one", Add{}, []Tensor{x8}, nil, "takes 2 inputs"},
	{"add ids", Add{}, []Tensor{ids, ids}, nil, "input 0 must be an f32 matrix"},
	{"add a transpose", Add{}, []Tensor{dense(F32, 3, 8), turn}, nil, "input 1 must be an f32 matrix"},
	{"mul", Mul{}, []Tensor{x8, x8}, []Tensor{x8}, ""},
	{"mul unequal", Mul{}, []Tensor{x8, x4}, nil, "shapes differ"},
	{"swiglu", SwiGLU{}, []Tensor{x8, x8}, []Tensor{x8}, ""},
	{"swiglu unequal", SwiGLU{}, []Tensor{x8, y8}, nil, "shapes differ"},
	{"scale", Scale{2}, []Tensor{cols}, []Tensor{x4}, ""},
	{"scale ids", Scale{2}, []Tensor{ids}, nil, "f32 matrix"},
	{"scale two", Scale{2}, []Tensor{x8, x8}, nil, "takes 1 inputs"},
	{"silu", Silu{}, []Tensor{x8}, []Tensor{x8}, ""},
	{"silu of a handle", Silu{}, []Tensor{cell}, nil, "f32 matrix"},

	{"copy", Copy{}, []Tensor{x8}, []Tensor{x8}, ""},
	{"copy a transpose", Copy{}, []Tensor{turn}, []Tensor{dense(F32, 3, 8)}, ""},
	{"copy ids", Copy{}, []Tensor{ids}, nil, "input 0 must be f32, is i32"},
	{"copy two", Copy{}, []Tensor{x8, x8}, nil, "takes 1 inputs"},

	{"slice features", Slice{0, 4, 8}, []Tensor{x8}, []Tensor{cols}, ""},
	{"slice tokens", Slice{1, 1, 3}, []Tensor{x8}, []Tensor{{F32, [4]int{8, 2, 1, 1}, [4]int{1, 8, 24, 24}, 8}}, ""},
	{"slice ids", Slice{0, 1, 3}, []Tensor{ids}, []Tensor{{I32, [4]int{2, 1, 1, 1}, [4]int{1, 3, 3, 3}, 1}}, ""},
	{"slice a slice", Slice{0, 1, 2}, []Tensor{cols}, []Tensor{{F32, [4]int{1, 3, 1, 1}, [4]int{1, 8, 24, 24}, 5}}, ""},
	{"slice nothing", Slice{0, 4, 4}, []Tensor{x8}, nil, "slice [4, 4) of dimension 0 is outside [8 3]"},
	{"slice backwards", Slice{0, 4, 2}, []Tensor{x8}, nil, "outside"},
	{"slice before", Slice{0, -1, 2}, []Tensor{x8}, nil, "outside"},
	{"slice beyond", Slice{0, 4, 9}, []Tensor{x8}, nil, "outside"},
	{"slice dimension -1", Slice{-1, 0, 1}, []Tensor{x8}, nil, "dimension -1"},
	{"slice dimension 4", Slice{4, 0, 1}, []Tensor{x8}, nil, "dimension 4"},
	{"slice a handle", Slice{0, 0, 1}, []Tensor{cell}, nil, "a kv handle has no views"},
	{"slice two", Slice{0, 0, 1}, []Tensor{x8, x8}, nil, "takes 1 inputs"},

	{"reshape", Reshape{[4]int{4, 2, 3}}, []Tensor{x8}, []Tensor{cube}, ""},
	{"reshape to one more", Reshape{[4]int{5, 5}}, []Tensor{x8}, nil, "cannot reshape [8 3]"},
	{"reshape a transpose", Reshape{[4]int{24}}, []Tensor{turn}, nil, "cannot reshape"},
	{"reshape columns", Reshape{[4]int{12}}, []Tensor{cols}, nil, "cannot reshape"},
	{"reshape to nothing", Reshape{}, []Tensor{x8}, nil, "dimension below 1"},
	{"reshape to less than nothing", Reshape{[4]int{-8, -3}}, []Tensor{x8}, nil, "dimension below 1"},
	{"reshape a handle", Reshape{[4]int{1}}, []Tensor{cell}, nil, "no views"},

	{"permute", Permute{[4]int{1, 0, 2, 3}}, []Tensor{x8}, []Tensor{turn}, ""},
	{"permute twice the same", Permute{[4]int{0, 0, 2, 3}}, []Tensor{x8}, nil, "no permutation"},
	{"permute beyond", Permute{[4]int{0, 1, 2, 4}}, []Tensor{x8}, nil, "no permutation"},
	{"permute below", Permute{[4]int{-1, 1, 2, 3}}, []Tensor{x8}, nil, "no permutation"},
	{"permute a handle", Permute{[4]int{0, 1, 2, 3}}, []Tensor{cell}, nil, "no views"},

	{"products", MultiMatMul{[4]Weight{matrix("a", 8, 5), matrix("b", 8, 2)}, 2}, []Tensor{x8}, []Tensor{dense(F32, 5, 3), dense(F32, 2, 3)}, ""},
	{"no products", MultiMatMul{}, []Tensor{x8}, nil, "0 weights, takes 1 to 4"},
	{"five products", MultiMatMul{N: 5}, []Tensor{x8}, nil, "5 weights, takes 1 to 4"},
	{"products with a hole", MultiMatMul{[4]Weight{matrix("a", 8, 5)}, 2}, []Tensor{x8}, nil, "needs a weight"},
	{"products of another width", MultiMatMul{[4]Weight{matrix("a", 8, 5), matrix("b", 9, 5)}, 2}, []Tensor{x8}, nil, "weight b must have 8 inputs, is [9, 5]"},
	{"products of two", MultiMatMul{[4]Weight{matrix("a", 8, 5)}, 1}, []Tensor{x8, x8}, nil, "takes 1 inputs"},

	{"gate and up", GateUp{matrix("g", 8, 5), matrix("u", 8, 5)}, []Tensor{x8}, []Tensor{dense(F32, 5, 3)}, ""},
	{"gate and up of unequal outputs", GateUp{matrix("g", 8, 5), matrix("u", 8, 6)}, []Tensor{x8}, nil, "gate has 5 outputs, up 6"},
	{"gate of another width", GateUp{matrix("g", 7, 5), matrix("u", 8, 5)}, []Tensor{x8}, nil, "must have 7 features, has 8"},
	{"up of another width", GateUp{matrix("g", 8, 5), matrix("u", 7, 5)}, []Tensor{x8}, nil, "weight u must have 8 inputs"},
	{"gate without up", GateUp{Gate: matrix("g", 8, 5)}, []Tensor{x8}, nil, "needs a weight"},

	{"add and norm", AddRMSNorm{vector("w", 8), 1e-6}, []Tensor{x8, x8}, []Tensor{x8, x8}, ""},
	{"add and norm of another width", AddRMSNorm{vector("w", 4), 1e-6}, []Tensor{x8, x8}, nil, "must be a vector of 8"},
	{"add and norm unequal", AddRMSNorm{vector("w", 8), 1e-6}, []Tensor{x8, y8}, nil, "shapes differ"},

	{"qkv store", QKVStore{Rope: rot4}, []Tensor{x8, x4, x4, ids, ids}, []Tensor{x8, cell}, ""},
	{
		"qkv store with everything",
		QKVStore{0, vector("q", 8), vector("k", 4), vector("v", 4), vector("nq", 4), vector("nk", 4), 1e-6, rot4},
		[]Tensor{x8, x4, x4, ids, ids},
		[]Tensor{x8, cell},
		"",
	},
	{"qkv store of four", QKVStore{Rope: rot4}, []Tensor{x8, x4, x4, ids}, nil, "takes 5 inputs, got 4"},
	{"qkv store of unequal k and v", QKVStore{Rope: rot4}, []Tensor{x8, x4, x8, ids, ids}, nil, "k has 4 features, v 8"},
	{"qkv store of unequal tokens", QKVStore{Rope: rot4}, []Tensor{x8, x4, dense(F32, 4, 2), ids, ids}, nil, "input 2 has 2 tokens"},
	{"qkv store with a wrong q bias", QKVStore{BiasQ: vector("b", 4), Rope: rot4}, []Tensor{x8, x4, x4, ids, ids}, nil, "weight b must be a vector of 8"},
	{"qkv store with a wrong k bias", QKVStore{BiasK: vector("b", 8), Rope: rot4}, []Tensor{x8, x4, x4, ids, ids}, nil, "weight b must be a vector of 4"},
	{"qkv store with a wrong v bias", QKVStore{BiasV: vector("b", 8), Rope: rot4}, []Tensor{x8, x4, x4, ids, ids}, nil, "weight b must be a vector of 4"},
	{"qkv store with a wrong q norm", QKVStore{NormQ: vector("n", 8), Rope: rot4}, []Tensor{x8, x4, x4, ids, ids}, nil, "weight n must be a vector of 4"},
	{"qkv store with a wrong k norm", QKVStore{NormK: vector("n", 2), Rope: rot4}, []Tensor{x8, x4, x4, ids, ids}, nil, "weight n must be a vector of 4"},
	{"qkv store without rope", QKVStore{}, []Tensor{x8, x4, x4, ids, ids}, nil, "heads of 0"},
	{"qkv store of uneven k heads", QKVStore{Rope: rope(func(r *Rope) { r.HeadDim = 8 })}, []Tensor{x8, x4, x4, ids, ids}, nil, "4 features are no whole number of heads of 8"},
	{"qkv store at few positions", QKVStore{Rope: rot4}, []Tensor{x8, x4, x4, two, ids}, nil, "input 3 must have 3 elements"},
	{"qkv store to few cells", QKVStore{Rope: rot4}, []Tensor{x8, x4, x4, ids, two}, nil, "input 4 must have 3 elements"},
	{"qkv store in a negative layer", QKVStore{Layer: -1, Rope: rot4}, []Tensor{x8, x4, x4, ids, ids}, nil, "layer -1"},
}

func TestLegality(t *testing.T) {
	accepted, refused := map[string]bool{}, map[string]bool{}
	for _, c := range legality {
		out, err := infer(c.op, c.in)
		if c.err == "" {
			accepted[c.op.Kind()] = true
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			} else if len(out) != len(c.out) {
				t.Errorf("%s: outputs %v, want %v", c.name, out, c.out)
			} else {
				for i := range out {
					if out[i] != c.out[i] {
						t.Errorf("%s: output %d is %+v, want %+v", c.name, i, out[i], c.out[i])
					}
				}
			}
			continue
		}
		refused[c.op.Kind()] = true
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.err)
		}
	}
	for _, op := range AllOps() {
		if _, leaf := op.(Input); !leaf && !accepted[op.Kind()] || !refused[op.Kind()] {
			t.Errorf("the table has no accepted and refused case of %s", op.Kind())
		}
	}
}

// The builder names the node, its op and the shapes it got.
func TestIllegalNodeIsNamed(t *testing.T) {
	b := NewBuilder(params(3, 3))
	x := b.Node("embed", Embed{matrix("w", 8, 5)}, b.Input(Tokens))
	x = b.Node("blk.7.ffn_down", MatMul{matrix("w", 9, 5)}, x)
	x = b.Node("later", Silu{}, x)
	b.Output(x)
	_, err := b.Build()
	if !errors.Is(err, ErrIllegal) {
		t.Fatalf("error %v, want ErrIllegal", err)
	}
	for _, part := range []string{`"blk.7.ffn_down"`, "matmul", "f32[8 3]", "9 features"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	if strings.Contains(err.Error(), "later") {
		t.Errorf("%q tells of a later node", err)
	}
}

// Check finds what a pass may do wrong.
func TestCheckFinds(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(g *Graph)
		want string
	}{
		{"an output of another shape", func(g *Graph) { g.Nodes[find(t, g, "embed")].Out[0].Shape[0]++ }, "should be"},
		{"an output of another layout", func(g *Graph) { g.Nodes[find(t, g, "embed")].Out[0].Offset = 1 }, "should be"},
		{"a later input", func(g *Graph) { n := &g.Nodes[find(t, g, "blk.0.q")]; n.In[0].Node = len(g.Nodes) - 1 }, "earlier live node"},
		{"an input that is not there", func(g *Graph) { g.Nodes[find(t, g, "blk.0.q")].In[0].Out = 1 }, "earlier live node"},
		{"a negative input", func(g *Graph) { g.Nodes[find(t, g, "blk.0.q")].In[0].Node = -1 }, "earlier live node"},
		{"an input that died", func(g *Graph) { g.Nodes[find(t, g, "embed")].Dead = true }, "earlier live node"},
		{"an output that died", func(g *Graph) { g.Nodes[find(t, g, "logits")].Dead = true }, "not the value of a live node"},
		{"an output that is not there", func(g *Graph) { g.Outputs[0].Out = 1 }, "not the value of a live node"},
		{"an output beyond", func(g *Graph) { g.Outputs[0].Node = len(g.Nodes) }, "not the value of a live node"},
		{"another op", func(g *Graph) { g.Nodes[find(t, g, "blk.0.act")].Op = Silu{} }, "takes 1 inputs"},
		{"a longer input", func(g *Graph) { g.Nodes[find(t, g, "tokens")].Out[0].Shape[0]++ }, "should be"},
		{"an input that reads", func(g *Graph) { n := &g.Nodes[find(t, g, "tokens")]; n.In = []Value{{0, 0}} }, "Builder.Input"},
	} {
		g := small().mustBuild(t, params(4, 2))
		c.harm(g)
		if err := Check(g); !errors.Is(err, ErrIllegal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want ErrIllegal with %q", c.name, err, c.want)
		}
	}
}
