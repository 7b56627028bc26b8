package graph

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// Equal Params give equal graphs, before and after the passes; a change of any of them that matters shows.
func TestEqualParamsEqualGraphs(t *testing.T) {
	d := small()
	d.bias = true
	targets := []Target{fake{name: "a", fuses: AllRules}}
	passes := func(p Params) *Graph {
		g := d.mustBuild(t, p)
		Fuse(g, targets)
		mustCheck(t, g)
		return g
	}
	for _, p := range []Params{params(1, 1), params(7, 7), params(7, 1), params(7, 0)} {
		a, b := passes(p), passes(p)
		if !a.Equal(b) || !b.Equal(a) {
			t.Errorf("%+v: equal params built unequal graphs", p)
		}
		if NewPlan(a).String() != NewPlan(b).String() {
			t.Errorf("%+v: equal graphs have unequal plans", p)
		}
		if a.Equal(passes(params(8, 1))) {
			t.Errorf("%+v: equal to the graph of 8 tokens", p)
		}
	}
	// Every field of Params is part of equality, and comparable.
	base := params(7, 1)
	for i := range reflect.TypeFor[Params]().NumField() {
		p := base
		f := reflect.ValueOf(&p).Elem().Field(i)
		if f.Kind() == reflect.Bool {
			f.SetBool(!f.Bool())
		} else if f.CanInt() {
			f.SetInt(f.Int() + 1)
		} else {
			f.SetUint(f.Uint() + 1)
		}
		g, h := d.mustBuild(t, base), d.mustBuild(t, base)
		h.Params = p
		if p == base || g.Equal(h) {
			t.Errorf("Params.%s makes no difference", reflect.TypeFor[Params]().Field(i).Name)
		}
	}
}

// Equal sees every part of a node.
func TestEqualSeesEverything(t *testing.T) {
	for name, change := range map[string]func(g *Graph){
		"name":    func(g *Graph) { g.Nodes[3].Name += "x" },
		"op":      func(g *Graph) { g.Nodes[find(t, g, "blk.0.attn_norm")].Op = RMSNorm{vector("blk.0.an", 64), 1e-5} },
		"weight":  func(g *Graph) { g.Nodes[find(t, g, "blk.0.attn_norm")].Op = RMSNorm{vector("blk.1.an", 64), 1e-6} },
		"input":   func(g *Graph) { n := &g.Nodes[find(t, g, "blk.0.k")]; n.In = []Value{{find(t, g, "embed"), 0}} },
		"layout":  func(g *Graph) { g.Nodes[3].Out[0].Stride[1]++ },
		"backend": func(g *Graph) { g.Nodes[3].Backend++ },
		"life":    func(g *Graph) { g.Nodes[3].Dead = true },
		"outputs": func(g *Graph) { g.Outputs = append(g.Outputs, Value{}) },
		"nodes":   func(g *Graph) { g.Nodes = g.Nodes[:len(g.Nodes)-1] },
	} {
		g, h := small().mustBuild(t, params(4, 4)), small().mustBuild(t, params(4, 4))
		change(h)
		if g.Equal(h) || h.Equal(g) {
			t.Errorf("a graph with another %s is equal", name)
		}
	}
}

// Building allocates for nodes alone, not for tensors: a graph over huge tensors costs what one over small ones costs,
// whatever the number of tokens.
func TestBuildingIsPure(t *testing.T) {
	cost := func(d decoder, tokens int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		g, err := d.build(params(tokens, 1))
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(g)
		return after.TotalAlloc - before.TotalAlloc
	}
	huge := small()
	huge.width, huge.headDim, huge.ffn, huge.vocab = 1<<20, 1<<18, 1<<22, 1<<24
	few, many := cost(small(), 2), cost(huge, 1<<16)
	if many > 2*few+1<<16 {
		t.Errorf("building over huge tensors allocates %d bytes, over small ones %d", many, few)
	}
}

func TestBuilderParams(t *testing.T) {
	for _, c := range []struct {
		tokens, outputs int
		legal           bool
	}{{1, 1, true}, {1, 0, true}, {4, 4, true}, {0, 0, false}, {-1, 0, false}, {4, 5, false}, {4, -1, false}} {
		p := params(c.tokens, c.outputs)
		b := NewBuilder(p)
		if b.Params() != p {
			t.Error("Params changed")
		}
		b.Input(Tokens)
		if _, err := b.Build(); (err == nil) != c.legal || err != nil && !errors.Is(err, ErrIllegal) {
			t.Errorf("%d tokens, %d outputs: error %v", c.tokens, c.outputs, err)
		}
	}
}

func TestBuilderInputs(t *testing.T) {
	b := NewBuilder(params(5, 2))
	first := b.Input(Positions)
	if again := b.Input(Positions); again != first || first == b.Input(Cells) {
		t.Error("an input kind has not one value")
	}
	for kind, n := range map[InputKind]int{Tokens: 5, Positions: 5, Cells: 5, OutRows: 2} {
		if have := b.Tensor(b.Input(kind)); have != dense(I32, n) {
			t.Errorf("%s is %+v, want %d ids", kind, have, n)
		}
	}
	x := b.Node("x", Embed{matrix("w", 8, 5)}, b.Input(Tokens))
	if have := b.Tensor(x); have != dense(F32, 8, 5) {
		t.Errorf("embed is %+v", have)
	}
	b.Node("bad", Silu{})
	if b.Tensor(x) != (Tensor{}) || b.Node("y", Silu{}, x) != (Value{}) {
		t.Error("values after an illegal node should mean nothing")
	}
}

// Without outputs the last layer keeps what its KV store needs and nothing else; with fewer outputs than tokens the
// feed-forward, final norm and logits see the asked rows alone.
func TestTailReduction(t *testing.T) {
	d := small()
	g := d.mustBuild(t, params(6, 0))
	if len(g.Outputs) != 0 {
		t.Error("a graph without outputs has some")
	}
	have := kinds(g)
	if have["store_kv"] != d.layers || have["attention"] != d.layers-1 {
		t.Errorf("kinds %v: want %d stores and %d attentions", have, d.layers, d.layers-1)
	}
	last := 0
	for i := range g.Nodes {
		if !g.Nodes[i].Dead {
			last = i
		}
	}
	if g.Nodes[last].Op.Kind() != "store_kv" {
		t.Errorf("the last live node is %s", g.Describe(last))
	}

	g = d.mustBuild(t, params(6, 2))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		tail := strings.HasPrefix(n.Name, "blk.1.ffn") || strings.HasPrefix(n.Name, "blk.1.attn_res") || n.Name == "output_norm" || n.Name == "logits"
		if tail && n.Out[0].Shape[1] != 2 {
			t.Errorf("%s runs on more than the asked rows", g.Describe(i))
		}
		if strings.HasPrefix(n.Name, "blk.0.") && n.Out[0].Type == F32 && n.Out[0].Shape[1] != 6 {
			t.Errorf("%s misses rows", g.Describe(i))
		}
	}
	if g = d.mustBuild(t, params(6, 6)); kinds(g)["rows"] != 0 {
		t.Error("rows are picked where all are asked for")
	}
}

func TestPruneKeepsWhatIsNeeded(t *testing.T) {
	b := NewBuilder(params(3, 3))
	x := b.Node("x", Embed{matrix("w", 8, 5)}, b.Input(Tokens))
	b.Node("loose", Silu{}, x)
	half := b.Node("half", Slice{0, 0, 4}, x)
	y := b.Node("y", Silu{}, half)
	b.Output(y)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Dead != (n.Name == "loose") {
			t.Errorf("%s: dead is %v", n.Name, n.Dead)
		}
	}
}

func TestGraphWeights(t *testing.T) {
	d := small()
	d.bias, d.norms = true, true
	g := d.mustBuild(t, params(2, 2))
	plain := names(g.Weights())
	Fuse(g, []Target{fake{name: "a", fuses: AllRules}})
	fused := names(g.Weights())
	// 2 layers of q k v o g u d, three biases, two head norms and two norms, and embd, on, output.
	if want := 2*(7+3+2+2) + 3; len(plain) != want || len(fused) != want {
		t.Errorf("%d weights, fused %d, want %d", len(plain), len(fused), want)
	}
	for name := range plain {
		if !fused[name] {
			t.Errorf("fusing lost %s", name)
		}
	}
	for name := range fused {
		if !plain[name] {
			t.Errorf("fusing made up %s", name)
		}
	}
}

func names(ws []Weight) map[string]bool {
	m := map[string]bool{}
	for _, w := range ws {
		m[w.Name] = true
	}
	return m
}

func TestRootAndViews(t *testing.T) {
	b := NewBuilder(params(6, 6))
	x := b.Node("x", Embed{matrix("w", 8, 5)}, b.Input(Tokens))
	v := b.Node("cut", Slice{0, 2, 6}, x)
	v = b.Node("cut2", Slice{1, 3, 5}, v)
	v = b.Node("turn", Permute{[4]int{1, 0, 2, 3}}, v)
	b.Output(b.Node("copy", Copy{}, v))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if g.Root(v) != x {
		t.Errorf("the root of a chain of views is %v, want %v", g.Root(v), x)
	}
	want := Tensor{F32, [4]int{2, 4, 1, 1}, [4]int{8, 1, 48, 48}, 2 + 3*8}
	if have := g.Tensor(v); have != want {
		t.Errorf("layout %+v, want %+v", have, want)
	}
}

func TestRulesText(t *testing.T) {
	if have := AllRules.String(); have != "swiglu,ffn,rope,norm_rope,qkv,add_norm" {
		t.Errorf("all rules are %q", have)
	}
	if have := Rules(0).String(); have != "" {
		t.Errorf("no rules are %q", have)
	}
	if Prefill.String() != "prefill" || Decode.String() != "decode" {
		t.Error("phases have other names")
	}
	if quant.Q4_0.String() != "Q4_0" { // exports show it
		t.Error("weight types have other names")
	}
}
