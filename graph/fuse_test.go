package graph

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// fired lists rules and the nodes they ended at, by name.
func fired(g *Graph, fs []Firing) []string {
	var all []string
	for _, f := range fs {
		all = append(all, f.Rule+" "+g.Nodes[f.Node].Name)
	}
	return all
}

// fuse assigns to one backend that runs all rules, fuses by the given ones and checks.
func fuse(t testing.TB, g *Graph, on Rules) []string {
	t.Helper()
	onBackend0(t, g)
	g.Params.Fuse = on
	all := fired(g, Fuse(g, []Target{fake{name: "a", fuses: AllRules}}))
	mustCheck(t, g)
	return all
}

// What each rule alone does to a whole decoder: what fired where, and the kinds that are left.
func TestRulesOnDecoder(t *testing.T) {
	plain, biased, normed := small(), small(), small()
	biased.bias, normed.norms = true, true
	for _, c := range []struct {
		name  string
		d     decoder
		rules Rules
		fired string
		kinds map[string]int // changed counts only
	}{
		{"nothing", plain, 0, "", nil},
		{"swiglu", plain, RuleSwiGLU, "swiglu blk.0.act, swiglu blk.1.act", map[string]int{"silu": 0, "mul": 0, "swiglu": 2}},
		{"ffn needs swiglu", plain, RuleFFN, "", nil},
		{
			"ffn", plain, RuleSwiGLU | RuleFFN, "swiglu blk.0.act, swiglu blk.1.act, ffn blk.0.act, ffn blk.1.act",
			map[string]int{"silu": 0, "mul": 0, "gate_up": 2, "matmul": 11},
		},
		{"rope", plain, RuleRope, "rope blk.0.store, rope blk.1.store", map[string]int{"rope": 0, "store_kv": 0, "qkv_store": 2}},
		{"rope with biases", biased, RuleRope, "rope blk.0.store, rope blk.1.store", map[string]int{"rope": 0, "bias": 0, "store_kv": 0, "qkv_store": 2}},
		{"rope of normed heads", normed, RuleRope, "", nil},
		{
			"norm_rope", normed, RuleNormRope, "norm_rope blk.0.store, norm_rope blk.1.store",
			map[string]int{"rope": 0, "head_norm": 0, "store_kv": 0, "qkv_store": 2},
		},
		{"norm_rope without norms", plain, RuleNormRope, "", nil},
		{
			"qkv", plain, RuleQKV, "qkv blk.0.q, qkv blk.0.gate, qkv blk.1.q, qkv blk.1.gate",
			map[string]int{"matmul": 5, "multi_matmul": 4},
		},
		{
			"add_norm", plain, RuleAddNorm, "add_norm blk.0.attn_res, add_norm blk.0.ffn_res, add_norm blk.1.attn_res, add_norm blk.1.ffn_res",
			map[string]int{"add": 0, "rms_norm": 1, "add_rms_norm": 4},
		},
		{
			"everything", biased, AllRules,
			"swiglu blk.0.act, swiglu blk.1.act, ffn blk.0.act, ffn blk.1.act, rope blk.0.store, rope blk.1.store, qkv blk.0.q, qkv blk.1.q, " +
				"add_norm blk.0.attn_res, add_norm blk.0.ffn_res, add_norm blk.1.attn_res, add_norm blk.1.ffn_res",
			map[string]int{
				"silu": 0, "mul": 0, "gate_up": 2, "rope": 0, "bias": 0, "store_kv": 0, "qkv_store": 2, "multi_matmul": 2, "matmul": 5,
				"add": 0, "rms_norm": 1, "add_rms_norm": 4,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := c.d.build(params(3, 3))
			if err != nil {
				t.Fatal(err)
			}
			want := kinds(g)
			for k, n := range c.kinds {
				if want[k] = n; n == 0 {
					delete(want, k)
				}
			}
			if have := strings.Join(fuse(t, g, c.rules), ", "); have != c.fired {
				t.Errorf("fired %s\nwant  %s", have, c.fired)
			}
			if have := kinds(g); !maps.Equal(have, want) {
				t.Errorf("kinds %v\nwant  %v", have, want)
			}
		})
	}
}

// A scene is a graph of a few nodes on one input of 8 features, and what a rule does to it.
type scene struct {
	name  string
	rules Rules
	build func(b *Builder, x Value)
	fired string
}

// act is Mul(Silu(g), u), which two rules want.
func act(b *Builder, g, u Value) Value {
	return b.Node("act", Mul{}, b.Node("silu", Silu{}, g), u)
}

func product(b *Builder, name string, x Value, out int) Value {
	return b.Node(name, MatMul{matrix("w_"+name, b.Tensor(x).Shape[0], out)}, x)
}

// attend is the projections, rotations and store of one layer; change may read values before they vanish.
func attend(b *Builder, x Value, change func(q, k, v, rq, rk Value)) {
	q, k, v := product(b, "q", x, 8), product(b, "k", x, 8), product(b, "v", x, 8)
	pos := b.Input(Positions)
	cells := b.Input(Cells)
	rq, rk := b.Node("rq", RoPE{rot4}, q, pos), b.Node("rk", RoPE{rot4}, k, pos)
	if change != nil {
		change(q, k, v, rq, rk)
	}
	kv := b.Node("store", StoreKV{0}, rk, v, cells)
	b.Output(b.Node("attn", Attention{0, 2, 2, 4, 1}, rq, kv, pos))
}

// attendWith makes Q, K and V by the given functions from their products.
func attendWith(b *Builder, x Value, rq, rk, rv func(y, pos Value) Value) {
	pos, cells := b.Input(Positions), b.Input(Cells)
	q, k, v := rq(product(b, "q", x, 8), pos), rk(product(b, "k", x, 8), pos), rv(product(b, "v", x, 8), pos)
	kv := b.Node("store", StoreKV{0}, k, v, cells)
	b.Output(b.Node("attn", Attention{0, 2, 2, 4, 1}, q, kv, pos))
}

var scenes = []scene{
	{"silu on the left", RuleSwiGLU, func(b *Builder, x Value) { b.Output(act(b, x, x)) }, "swiglu act"},
	{"silu on the right", RuleSwiGLU, func(b *Builder, x Value) {
		b.Output(b.Node("act", Mul{}, x, b.Node("silu", Silu{}, x)))
	}, "swiglu act"},
	{"silu of both", RuleSwiGLU, func(b *Builder, x Value) {
		b.Output(b.Node("act", Mul{}, b.Node("s1", Silu{}, x), b.Node("s2", Silu{}, x)))
	}, "swiglu act"},
	{"silu squared", RuleSwiGLU, func(b *Builder, x Value) {
		s := b.Node("silu", Silu{}, x)
		b.Output(b.Node("act", Mul{}, s, s))
	}, ""},
	{"silu read elsewhere", RuleSwiGLU, func(b *Builder, x Value) {
		s := b.Node("silu", Silu{}, x)
		b.Output(b.Node("sum", Add{}, b.Node("act", Mul{}, s, x), s))
	}, ""},
	{"silu is an output", RuleSwiGLU, func(b *Builder, x Value) {
		s := b.Node("silu", Silu{}, x)
		b.Output(s)
		b.Output(b.Node("act", Mul{}, s, x))
	}, ""},
	{"silu through a view", RuleSwiGLU, func(b *Builder, x Value) {
		s := b.Node("cut", Slice{0, 0, 8}, b.Node("silu", Silu{}, x))
		b.Output(b.Node("act", Mul{}, s, x))
	}, ""},
	{"a product without silu", RuleSwiGLU, func(b *Builder, x Value) { b.Output(b.Node("act", Mul{}, x, x)) }, ""},

	{"ffn", RuleSwiGLU | RuleFFN, func(b *Builder, x Value) {
		b.Output(act(b, product(b, "g", x, 6), product(b, "u", x, 6)))
	}, "swiglu act, ffn act"},
	{"ffn of two inputs", RuleSwiGLU | RuleFFN, func(b *Builder, x Value) {
		b.Output(act(b, product(b, "g", x, 6), product(b, "u", b.Node("s", Scale{2}, x), 6)))
	}, "swiglu act"},
	{"ffn whose gate is read elsewhere", RuleSwiGLU | RuleFFN, func(b *Builder, x Value) {
		g := product(b, "g", x, 6)
		b.Output(b.Node("sum", Add{}, act(b, g, product(b, "u", x, 6)), g))
	}, "swiglu act"},
	{"ffn whose up is an output", RuleSwiGLU | RuleFFN, func(b *Builder, x Value) {
		u := product(b, "u", x, 6)
		b.Output(u)
		b.Output(act(b, product(b, "g", x, 6), u))
	}, "swiglu act"},
	{"ffn with a bias", RuleSwiGLU | RuleFFN, func(b *Builder, x Value) {
		g := b.Node("bias", Bias{vector("b", 6)}, product(b, "g", x, 6))
		b.Output(act(b, g, product(b, "u", x, 6)))
	}, "swiglu act"},
	{"ffn of one product", RuleSwiGLU | RuleFFN, func(b *Builder, x Value) {
		g := product(b, "g", x, 6)
		b.Output(act(b, g, g))
	}, "swiglu act"},

	{"store", RuleRope, func(b *Builder, x Value) { attend(b, x, nil) }, "rope store"},
	{"store whose rotated k is read", RuleRope, func(b *Builder, x Value) {
		attend(b, x, func(_, _, _, _, rk Value) { b.Output(rk) })
	}, ""},
	{"store whose rotated q is an output", RuleRope, func(b *Builder, x Value) {
		attend(b, x, func(_, _, _, rq, _ Value) { b.Output(rq) })
	}, ""},
	{"store whose rotated q is read before", RuleRope, func(b *Builder, x Value) {
		attend(b, x, func(_, _, _, rq, _ Value) { b.Output(b.Node("other", Silu{}, rq)) })
	}, ""},
	{"store whose plain k is read", RuleRope, func(b *Builder, x Value) {
		attend(b, x, func(_, k, _, _, _ Value) { b.Output(b.Node("other", Silu{}, k)) })
	}, ""},
	{"store whose v is read", RuleRope, func(b *Builder, x Value) {
		attend(b, x, func(_, _, v, _, _ Value) { b.Output(b.Node("other", Silu{}, v)) })
	}, ""},
	{"store whose v is an output", RuleRope, func(b *Builder, x Value) {
		attend(b, x, func(_, _, v, _, _ Value) { b.Output(v) })
	}, ""},
	{"store whose plain q is read", RuleRope, func(b *Builder, x Value) {
		attend(b, x, func(q, _, _, _, _ Value) { b.Output(b.Node("other", Silu{}, q)) })
	}, "rope store"},
	{"store without rotation", RuleRope, func(b *Builder, x Value) {
		same := func(y, _ Value) Value { return y }
		attendWith(b, x, same, same, same)
	}, ""},
	{"store of an unrotated k", RuleRope, func(b *Builder, x Value) {
		same := func(y, _ Value) Value { return y }
		attendWith(b, x, func(y, pos Value) Value { return b.Node("rq", RoPE{rot4}, y, pos) }, same, same)
	}, ""},
	{"store of a rotated v", RuleRope, func(b *Builder, x Value) {
		turn := func(y, pos Value) Value { return b.Node("r", RoPE{rot4}, y, pos) }
		attendWith(b, x, turn, turn, turn)
	}, ""},
	{"store of different rotations", RuleRope, func(b *Builder, x Value) {
		same := func(y, _ Value) Value { return y }
		turn := func(r Rope) func(y, pos Value) Value {
			return func(y, pos Value) Value { return b.Node("r", RoPE{r}, y, pos) }
		}
		attendWith(b, x, turn(rot4), turn(rope(func(r *Rope) { r.Rot = 2 })), same)
	}, ""},
	{"store of a view", RuleRope, func(b *Builder, x Value) {
		cut := func(y, _ Value) Value { return b.Node("cut", Slice{0, 0, 8}, y) }
		turn := func(y, pos Value) Value { return b.Node("r", RoPE{rot4}, y, pos) }
		attendWith(b, x, turn, turn, cut)
	}, ""},
	{"store of k as v", RuleRope, func(b *Builder, x Value) {
		pos, cells := b.Input(Positions), b.Input(Cells)
		q, k := product(b, "q", x, 8), product(b, "k", x, 8)
		kv := b.Node("store", StoreKV{0}, b.Node("rk", RoPE{rot4}, k, pos), k, cells)
		b.Output(b.Node("attn", Attention{0, 2, 2, 4, 1}, b.Node("rq", RoPE{rot4}, q, pos), kv, pos))
	}, ""},
	{"store with q after it", RuleRope, func(b *Builder, x Value) {
		pos, cells := b.Input(Positions), b.Input(Cells)
		k, v := product(b, "k", x, 8), product(b, "v", x, 8)
		kv := b.Node("store", StoreKV{0}, b.Node("rk", RoPE{rot4}, k, pos), v, cells)
		b.Output(b.Node("attn", Attention{0, 2, 2, 4, 1}, b.Node("rq", RoPE{rot4}, product(b, "q", x, 8), pos), kv, pos))
	}, ""},
	{"store read twice", RuleRope, func(b *Builder, x Value) {
		pos, cells := b.Input(Positions), b.Input(Cells)
		turn := func(name string) Value { return b.Node("r"+name, RoPE{rot4}, product(b, name, x, 8), pos) }
		q1, q2 := turn("q1"), turn("q2")
		kv := b.Node("store", StoreKV{0}, turn("k"), product(b, "v", x, 8), cells)
		b.Output(b.Node("attn1", Attention{0, 2, 2, 4, 1}, q1, kv, pos))
		b.Output(b.Node("attn2", Attention{0, 2, 2, 4, 1}, q2, kv, pos))
	}, ""},
	{"store with one bias and norms of q alone", RuleRope | RuleNormRope, func(b *Builder, x Value) {
		same := func(y, _ Value) Value { return y }
		turn := func(y, pos Value) Value { return b.Node("r", RoPE{rot4}, y, pos) }
		normed := func(y, pos Value) Value { return turn(b.Node("n", HeadNorm{vector("n", 4), 1e-6}, y), pos) }
		attendWith(b, x, normed, turn, same)
	}, ""},
	{"store with norms of different epsilon", RuleNormRope, func(b *Builder, x Value) {
		same := func(y, _ Value) Value { return y }
		normed := func(eps float32) func(y, pos Value) Value {
			return func(y, pos Value) Value {
				return b.Node("r", RoPE{rot4}, b.Node("n", HeadNorm{vector("n", 4), eps}, y), pos)
			}
		}
		attendWith(b, x, normed(1e-5), normed(1e-6), same)
	}, ""},
	{"store with a bias on v alone", RuleRope, func(b *Builder, x Value) {
		turn := func(y, pos Value) Value { return b.Node("r", RoPE{rot4}, y, pos) }
		attendWith(b, x, turn, turn, func(y, _ Value) Value { return b.Node("bias", Bias{vector("b", 8)}, y) })
	}, "rope store"},

	{"qkv", RuleQKV, func(b *Builder, x Value) { attend(b, x, nil) }, "qkv q"},
	{"qkv of one", RuleQKV, func(b *Builder, x Value) { b.Output(product(b, "q", x, 8)) }, ""},
	{"qkv of different inputs", RuleQKV, func(b *Builder, x Value) {
		b.Output(product(b, "q", x, 8))
		b.Output(product(b, "k", b.Node("s", Scale{2}, x), 8))
	}, ""},
	{"qkv of six", RuleQKV, func(b *Builder, x Value) {
		for i := range 6 {
			b.Output(product(b, fmt.Sprint("p", i), x, 4+i))
		}
	}, "qkv p0, qkv p4"},
	{"qkv read between", RuleQKV, func(b *Builder, x Value) {
		q := product(b, "q", x, 8)
		b.Output(b.Node("sum", Add{}, b.Node("s", Silu{}, q), product(b, "k", x, 8)))
	}, "qkv q"},

	{"add and norm", RuleAddNorm, func(b *Builder, x Value) {
		sum := b.Node("sum", Add{}, x, b.Node("s", Scale{2}, x))
		b.Output(b.Node("out", Add{}, sum, b.Node("norm", RMSNorm{vector("n", 8), 1e-6}, sum)))
	}, "add_norm sum"},
	{"add and two norms", RuleAddNorm, func(b *Builder, x Value) {
		sum := b.Node("sum", Add{}, x, b.Node("s", Scale{2}, x))
		b.Output(b.Node("n1", RMSNorm{vector("n1", 8), 1e-6}, sum))
		b.Output(b.Node("n2", RMSNorm{vector("n2", 8), 1e-6}, sum))
	}, "add_norm sum"},
	{"add whose sum is an output", RuleAddNorm, func(b *Builder, x Value) {
		sum := b.Node("sum", Add{}, x, x)
		b.Output(sum)
		b.Output(b.Node("norm", RMSNorm{vector("n", 8), 1e-6}, sum))
	}, "add_norm sum"},
	{"add and norm of a part", RuleAddNorm, func(b *Builder, x Value) {
		sum := b.Node("sum", Add{}, x, x)
		b.Output(b.Node("norm", RMSNorm{vector("n", 4), 1e-6}, b.Node("cut", Slice{0, 0, 4}, sum)))
	}, ""},
	{"norm of something else", RuleAddNorm, func(b *Builder, x Value) {
		b.Output(b.Node("norm", RMSNorm{vector("n", 8), 1e-6}, b.Node("m", Mul{}, x, x)))
	}, ""},
}

func (s scene) graph(t testing.TB) *Graph {
	b := NewBuilder(params(3, 3))
	s.build(b, b.Node("x", Embed{matrix("e", 8, 5)}, b.Input(Tokens)))
	g, err := b.Build()
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return g
}

// Where each rule fires and where it must not.
func TestScenes(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			g := s.graph(t)
			if have := strings.Join(fuse(t, g, s.rules), ", "); have != s.fired {
				t.Errorf("fired %q, want %q\n%s", have, s.fired, listing(g))
			}
		})
		t.Run(s.name+", switched off", func(t *testing.T) {
			g := s.graph(t)
			onBackend0(t, g)
			before := listing(g)
			g.Params.Fuse = AllRules &^ s.rules
			for _, f := range Fuse(g, []Target{fake{name: "a", fuses: s.rules}}) {
				t.Errorf("%s fired though it is off in the params", f.Rule)
			}
			g.Params.Fuse = s.rules
			for _, f := range Fuse(g, []Target{fake{name: "a", fuses: AllRules &^ s.rules}}) {
				t.Errorf("%s fired though the backend does not run it", f.Rule)
			}
			if listing(g) != before {
				t.Error("the graph changed though no rule fired")
			}
		})
	}
}

// With every rule on, whatever the scene, the result is legal, keeps its outputs' shapes and fires nothing more.
func TestFusedIsLegalAndDone(t *testing.T) {
	for _, s := range scenes {
		g := s.graph(t)
		var shapes []Tensor
		for _, v := range g.Outputs {
			shapes = append(shapes, g.Tensor(v))
		}
		fuse(t, g, AllRules)
		for i, v := range g.Outputs {
			if g.Tensor(v) != shapes[i] {
				t.Errorf("%s: output %d became %+v", s.name, i, g.Tensor(v))
			}
		}
		if again := Fuse(g, []Target{fake{name: "a", fuses: AllRules}}); len(again) > 0 {
			t.Errorf("%s: a second pass fired %v", s.name, fired(g, again))
		}
	}
}

// A rule does not reach across backends: with any one node of its pattern elsewhere it does not fire.
func TestRulesStayOnOneBackend(t *testing.T) {
	targets := []Target{fake{name: "a", fuses: AllRules}, fake{name: "b", fuses: AllRules}}
	for _, c := range []struct{ scene, move, fired string }{
		{"silu on the left", "silu", ""},
		{"ffn", "u", "swiglu act"},
		{"ffn", "g", "swiglu act"},
		{"store", "rk", ""},
		{"store", "rq", ""},
		{"qkv", "q", "qkv k"},
		{"qkv", "v", "qkv q"},
		{"add and norm", "norm", ""},
	} {
		for _, s := range scenes {
			if s.name != c.scene {
				continue
			}
			g := s.graph(t)
			onBackend0(t, g)
			g.Nodes[find(t, g, c.move)].Backend = 1
			g.Params.Fuse = s.rules
			if have := strings.Join(fired(g, Fuse(g, targets)), ", "); have != c.fired {
				t.Errorf("%s with %s elsewhere: fired %q, want %q", c.scene, c.move, have, c.fired)
			}
			mustCheck(t, g)
		}
	}
	// An unassigned graph is left alone.
	g, err := small().build(params(3, 3))
	if err != nil {
		t.Fatal(err)
	}
	if all := Fuse(g, targets); len(all) > 0 {
		t.Errorf("an unassigned graph fused: %v", fired(g, all))
	}
}

// Each rule has a switch in the environment, and no other rule listens to it.
func TestRuleSwitches(t *testing.T) {
	clear := func() {
		for _, r := range rules {
			t.Setenv(r.env, "")
		}
	}
	clear()
	if RulesFromEnv() != AllRules {
		t.Error("without switches not every rule is on")
	}
	for env, off := range map[string]Rules{
		"MINFER_NO_FUSE_SWIGLU": RuleSwiGLU, "MINFER_NO_FUSE_FFN": RuleFFN, "MINFER_NO_FUSE_ROPE": RuleRope,
		"MINFER_NO_FUSE_NORM_ROPE": RuleNormRope, "MINFER_NO_FUSE_QKV": RuleQKV, "MINFER_NO_FUSE_ADD_NORM": RuleAddNorm,
	} {
		clear()
		t.Setenv(env, "1")
		if have := RulesFromEnv(); have != AllRules&^off {
			t.Errorf("%s leaves %s", env, have)
		}
	}
	if len(rules) != 6 {
		t.Error("a rule is missing from this test")
	}
}

// A rule whose result the backend refuses, for its weights or its shape, leaves everything as it was.
func TestRefusedResultDoesNotFire(t *testing.T) {
	for _, c := range []struct{ scene, refused, fired string }{
		{"silu on the left", "swiglu", ""},
		{"ffn", "gate_up", "swiglu act"},
		{"store", "qkv_store", ""},
		{"qkv", "multi_matmul", ""},
		{"add and norm", "add_rms_norm", ""},
	} {
		for _, s := range scenes {
			if s.name != c.scene {
				continue
			}
			g, untouched := s.graph(t), s.graph(t)
			onBackend0(t, g)
			onBackend0(t, untouched)
			g.Params.Fuse, untouched.Params.Fuse = s.rules, s.rules
			have := strings.Join(fired(g, Fuse(g, []Target{fake{name: "a", fuses: AllRules, refuse: except(c.refused)}})), ", ")
			if have != c.fired {
				t.Errorf("%s: fired %q, want %q", c.scene, have, c.fired)
			}
			mustCheck(t, g)
			if c.fired == "" && !g.Equal(untouched) {
				t.Errorf("%s: the graph changed:\n%s", c.scene, listing(g))
			}
		}
	}
}
