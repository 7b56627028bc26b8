package graph

import (
	"errors"
	"fmt"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// A fake is a Target whose powers a test chooses.
type fake struct {
	name   string
	fuses  Rules
	refuse func(op Op) error // nil runs everything
}

func (f fake) Name() string { return f.name }
func (f fake) Fuses() Rules { return f.fuses }
func (f fake) Supports(g *Graph, i int) error {
	if f.refuse == nil {
		return nil
	}
	return f.refuse(g.Nodes[i].Op)
}

var errFake = errors.New("no kernel")

// only refuses every op but those of the given kinds.
func only(kinds ...string) func(Op) error {
	return func(op Op) error {
		for _, k := range kinds {
			if op.Kind() == k {
				return nil
			}
		}
		return fmt.Errorf("%w for %s", errFake, op.Kind())
	}
}

// except refuses ops of the given kinds.
func except(kinds ...string) func(Op) error {
	allow := only(kinds...)
	return func(op Op) error {
		if allow(op) == nil {
			return fmt.Errorf("%w for %s", errFake, op.Kind())
		}
		return nil
	}
}

func matrix(name string, in, out int) Weight {
	return Weight{Name: name, Type: quant.Q4_0, In: in, Out: out}
}
func vector(name string, n int) Weight { return Weight{Name: name, Type: quant.F32, In: n, Out: 1} }

// A shape of decoder for tests.
type decoder struct {
	layers, width, heads, kvHeads, headDim, ffn, vocab int
	bias, norms                                        bool // of Q, K and V; of the heads of Q and K
}

func small() decoder {
	return decoder{layers: 2, width: 64, heads: 4, kvHeads: 2, headDim: 16, ffn: 96, vocab: 128}
}

func params(tokens, outputs int) Params {
	p := Params{Tokens: tokens, Outputs: outputs, Cells: 256, KVType: quant.F16, Fuse: AllRules, Device: 1, Weights: 1}
	if tokens == 1 {
		p.Phase = Decode
	}
	return p
}

// build makes the decoder's graph for a step.
func (d decoder) build(p Params) (*Graph, error) {
	b := NewBuilder(p)
	pos := b.Input(Positions)
	rope := Rope{HeadDim: d.headDim, Rot: d.headDim, Base: 10000}
	h := b.Node("embed", Embed{matrix("embd", d.width, d.vocab)}, b.Input(Tokens))
	for l := range d.layers {
		name := func(s string) string { return fmt.Sprintf("blk.%d.%s", l, s) }
		project := func(what string, x Value, heads int) Value {
			x = b.Node(name(what), MatMul{matrix(name(what), d.width, heads*d.headDim)}, x)
			if d.bias {
				x = b.Node(name(what+"_bias"), Bias{vector(name(what+"_b"), heads*d.headDim)}, x)
			}
			if d.norms && what != "v" {
				x = b.Node(name(what+"_norm"), HeadNorm{vector(name(what+"_n"), d.headDim), 1e-6}, x)
			}
			if what != "v" {
				x = b.Node(name(what+"_rope"), RoPE{rope}, x, pos)
			}
			return x
		}
		x := b.Node(name("attn_norm"), RMSNorm{vector(name("an"), d.width), 1e-6}, h)
		q, k, v := project("q", x, d.heads), project("k", x, d.kvHeads), project("v", x, d.kvHeads)
		kv := b.Node(name("store"), StoreKV{l}, k, v, b.Input(Cells))
		a := b.Node(name("attn"), Attention{l, d.heads, d.kvHeads, d.headDim, 0.25}, q, kv, pos)
		a = b.Node(name("out"), MatMul{matrix(name("o"), d.heads*d.headDim, d.width)}, a)
		if l == d.layers-1 && p.Outputs < p.Tokens {
			if p.Outputs == 0 {
				return b.Build()
			}
			rows := b.Input(OutRows)
			a, h = b.Node("tail_a", Rows{}, a, rows), b.Node("tail_h", Rows{}, h, rows)
		}
		h = b.Node(name("attn_res"), Add{}, h, a)
		x = b.Node(name("ffn_norm"), RMSNorm{vector(name("fn"), d.width), 1e-6}, h)
		g := b.Node(name("gate"), MatMul{matrix(name("g"), d.width, d.ffn)}, x)
		u := b.Node(name("up"), MatMul{matrix(name("u"), d.width, d.ffn)}, x)
		x = b.Node(name("act"), Mul{}, b.Node(name("silu"), Silu{}, g), u)
		x = b.Node(name("down"), MatMul{matrix(name("d"), d.ffn, d.width)}, x)
		h = b.Node(name("ffn_res"), Add{}, h, x)
	}
	h = b.Node("output_norm", RMSNorm{vector("on", d.width), 1e-6}, h)
	b.Output(b.Node("logits", MatMul{matrix("output", d.width, d.vocab)}, h))
	return b.Build()
}

// mustBuild builds and assigns everything to one backend.
func (d decoder) mustBuild(t testing.TB, p Params) *Graph {
	t.Helper()
	g, err := d.build(p)
	if err != nil {
		t.Fatal(err)
	}
	onBackend0(t, g)
	return g
}

func onBackend0(t testing.TB, g *Graph) {
	t.Helper()
	if err := Assign(g, []Target{fake{name: "a"}}); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, g)
}

func mustCheck(t testing.TB, g *Graph) {
	t.Helper()
	if err := Check(g); err != nil {
		t.Fatalf("%v\n%s", err, listing(g))
	}
}

// listing is the live nodes of a graph, one a line.
func listing(g *Graph) string {
	s := ""
	for i := range g.Nodes {
		if !g.Nodes[i].Dead {
			s += fmt.Sprintf("%s %v on %d\n", g.Describe(i), g.Nodes[i].In, g.Nodes[i].Backend)
		}
	}
	return s
}

// find is the live node of that name.
func find(t testing.TB, g *Graph, name string) int {
	t.Helper()
	for i := range g.Nodes {
		if g.Nodes[i].Name == name && !g.Nodes[i].Dead {
			return i
		}
	}
	t.Fatalf("no live node %q in\n%s", name, listing(g))
	return -1
}

// kinds counts the live nodes by kind.
func kinds(g *Graph) map[string]int {
	m := map[string]int{}
	for i := range g.Nodes {
		if !g.Nodes[i].Dead {
			m[g.Nodes[i].Op.Kind()]++
		}
	}
	return m
}
