package graph

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// where lists the backends of the live nodes that take part, one digit a node.
func where(g *Graph) string {
	s := ""
	for i := range g.Nodes {
		if n := &g.Nodes[i]; !n.Dead && !isView(n.Op) {
			s += fmt.Sprint(n.Backend)
		}
	}
	return s
}

// chainOf builds a graph of unary ops one after another on an embedding: "s" is Silu, "x" Scale, "v" a view.
func chainOf(t testing.TB, ops string) *Graph {
	b := NewBuilder(params(3, 3))
	x := b.Node("x", Embed{matrix("e", 8, 5)}, b.Input(Tokens))
	for i, op := range ops {
		name := fmt.Sprint("n", i)
		switch op {
		case 's':
			x = b.Node(name, Silu{}, x)
		case 'x':
			x = b.Node(name, Scale{2}, x)
		case 'v':
			x = b.Node(name, Slice{1, 0, b.Tensor(x).Shape[1]}, x)
		}
	}
	b.Output(x)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAssignChoosesByPriorityAndCrossings(t *testing.T) {
	all := fake{name: "all"}
	for _, c := range []struct {
		name    string
		ops     string
		targets []Target
		want    string // tokens, embed, then the ops that are no views
	}{
		{"one target", "xsx", []Target{all}, "00000"},
		{"the first that runs everything", "xsx", []Target{all, fake{name: "b"}}, "00000"},
		{"the second where the first runs nothing", "xsx", []Target{fake{name: "a", refuse: only()}, all}, "11111"},
		// Silu between short runs: two crossings (8) and one rank (1) cost more than five ranks.
		{"a short detour is not worth two crossings", "xsx", []Target{fake{name: "a", refuse: except("silu")}, all}, "11111"},
		// Ten ranks on one side of the crossing, so that it is worth it there.
		{"a long way is worth a crossing", "xxxxxxxxxxs", []Target{fake{name: "a", refuse: except("silu")}, all}, "0000000000001"},
		{"a long way on both sides", "xxxxxxxxxxsxxxxxxxxxx", []Target{fake{name: "a", refuse: except("silu")}, all}, "00000000000010000000000"},
		{"the end is too short to come back", "xxxxxxxxxxsxx", []Target{fake{name: "a", refuse: except("silu")}, all}, "000000000000111"},
		{"views go with their input", "xvsvx", []Target{fake{name: "a", refuse: except("silu")}, all}, "11111"},
		{
			"three ranks", "xsx", []Target{fake{name: "a", refuse: except("silu")}, fake{name: "b", refuse: except("scale")}, all}, "22222",
		},
	} {
		g := chainOf(t, c.ops)
		if err := Assign(g, c.targets); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		// The input leaf costs nothing anywhere and takes the side of its first reader.
		if have := where(g); have != c.want {
			t.Errorf("%s: %s, want %s", c.name, have, c.want)
		}
		for i := range g.Nodes {
			if n := &g.Nodes[i]; isView(n.Op) && n.Backend != g.Nodes[g.Root(Value{i, 0}).Node].Backend {
				t.Errorf("%s: view %s is not with its input", c.name, n.Name)
			}
		}
	}
}

// cost is what Assign minimises, by its definition.
func cost(at []int, leaf []bool) int {
	sum := 0
	for i, t := range at {
		if !leaf[i] {
			sum += rankCost * t
		}
		if i > 0 && at[i-1] != t {
			sum += crossCost
		}
	}
	return sum
}

// No assignment is cheaper than the one that Assign makes.
func TestAssignIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := rapid.StringMatching(`[sxv]{0,6}`).Draw(t, "ops")
		sets := [][]string{{}, {"silu"}, {"scale"}, {"embed"}, {"silu", "embed"}}
		targets := []Target{}
		var refused [][]string
		for i := range 2 {
			r := rapid.SampledFrom(sets).Draw(t, "refused")
			refused = append(refused, r)
			targets = append(targets, fake{name: fmt.Sprint(i), refuse: except(r...)})
		}
		targets, refused = append(targets, fake{name: "all"}), append(refused, nil)
		b := NewBuilder(params(3, 3))
		x := b.Node("x", Embed{matrix("e", 8, 5)}, b.Input(Tokens))
		for i, op := range ops {
			ops := map[rune]Op{'s': Silu{}, 'x': Scale{2}, 'v': Slice{0, 0, 8}}
			x = b.Node(fmt.Sprint(i), ops[op], x)
		}
		b.Output(x)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := Assign(g, targets); err != nil {
			t.Fatal(err)
		}
		var have []int
		var leaf []bool
		var can [][]int
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if isView(n.Op) {
				continue
			}
			_, input := n.Op.(Input)
			var able []int
			for k := range targets {
				if input || targets[k].Supports(g, i) == nil {
					able = append(able, k)
				} else if k == n.Backend {
					t.Fatalf("%s went to a target that refuses it", g.Describe(i))
				}
			}
			have, leaf, can = append(have, n.Backend), append(leaf, input), append(can, able)
		}
		best := cost(have, leaf)
		try := make([]int, len(have))
		var search func(i int)
		search = func(i int) {
			if i == len(try) {
				if c := cost(try, leaf); c < best {
					t.Fatalf("assignment %v costs %d, %v only %d (refused: %v)", have, best, try, c, refused)
				}
				return
			}
			for _, k := range can[i] {
				try[i] = k
				search(i + 1)
			}
		}
		search(0)
	})
}

// A layer's cells live where everything that touches them runs.
func TestKVStaysAtHome(t *testing.T) {
	d := small()
	d.layers = 3
	for _, c := range []struct {
		name   string
		refuse func(op Op) error
		want   []int // home of each layer
	}{
		{"everything runs on the first", nil, []int{0, 0, 0}},
		{"no attention on the first", except("attention"), []int{1, 1, 1}},
		{"no store on the first", except("store_kv"), []int{1, 1, 1}},
		{"attention of layer 1 alone is refused", func(op Op) error {
			if a, ok := op.(Attention); ok && a.Layer == 1 {
				return errFake
			}
			return nil
		}, []int{0, 1, 0}},
	} {
		g, err := d.build(params(3, 3))
		if err != nil {
			t.Fatal(err)
		}
		if err := Assign(g, []Target{fake{name: "a", refuse: c.refuse}, fake{name: "b"}}); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i := range g.Nodes {
			if l, ok := kvLayer(g.Nodes[i].Op); ok && g.Nodes[i].Backend != c.want[l] {
				t.Errorf("%s: %s is on %d, the cells on %d", c.name, g.Describe(i), g.Nodes[i].Backend, c.want[l])
			}
		}
	}
	// A fused store is at home too.
	g := d.mustBuild(t, params(3, 3))
	Fuse(g, []Target{fake{name: "a", fuses: AllRules}})
	if err := Assign(g, []Target{fake{name: "a", refuse: except("attention")}, fake{name: "b"}}); err != nil {
		t.Fatal(err)
	}
	if i := find(t, g, "blk.0.store"); g.Nodes[i].Op.Kind() != "qkv_store" || g.Nodes[i].Backend != 1 {
		t.Errorf("%s is on %d, its cells on 1", g.Describe(i), g.Nodes[i].Backend)
	}
}

// A refusal names node, op and shapes, and why each backend refused.
func TestAssignRefusals(t *testing.T) {
	d := small()
	for _, c := range []struct {
		name    string
		targets []Target
		want    []string
	}{
		{"no targets", nil, []string{"no backend participates"}},
		{
			"nobody runs silu",
			[]Target{fake{name: "gpu", refuse: except("silu")}, fake{name: "cpu", refuse: except("silu", "mul")}},
			[]string{`"blk.0.silu"`, "(silu f32[96 3] → f32[96 3])", "gpu: no kernel for silu", "cpu: no kernel for silu"},
		},
		{
			"nobody runs attention",
			[]Target{fake{name: "gpu", refuse: except("attention")}, fake{name: "cpu", refuse: except("attention")}},
			[]string{"the KV cells of layer 0", `"blk.0.attn"`, "attention f32[64 3] kv[1] i32[3]", "gpu: ", "cpu: ", "no kernel for attention"},
		},
		{
			"store and attention on different ones only",
			[]Target{fake{name: "gpu", refuse: except("attention")}, fake{name: "cpu", refuse: except("store_kv")}},
			[]string{"the KV cells of layer 0", "gpu: ", `"blk.0.attn"`, "cpu: ", `"blk.0.store"`},
		},
	} {
		g, err := d.build(params(3, 3))
		if err != nil {
			t.Fatal(err)
		}
		err = Assign(g, c.targets)
		if !errors.Is(err, ErrAssign) {
			t.Errorf("%s: error %v, want ErrAssign", c.name, err)
			continue
		}
		if len(c.targets) > 0 && !errors.Is(err, errFake) {
			t.Errorf("%s: %v does not wrap the backend's reason", c.name, err)
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", c.name, err, part)
			}
		}
		for range 20 { // no dependence on the order of a map
			if again := Assign(g, c.targets); again.Error() != err.Error() {
				t.Fatalf("%s: refused first with %q, then with %q", c.name, err, again)
			}
		}
	}
}

func TestSplits(t *testing.T) {
	b := NewBuilder(params(3, 3))
	x := b.Node("x", Embed{matrix("e", 8, 5)}, b.Input(Tokens)) // 1
	y := b.Node("y", Silu{}, x)                                 // 2
	half := b.Node("half", Slice{0, 0, 4}, y)                   // 3, a view
	z := b.Node("z", Scale{2}, half)                            // 4
	w := b.Node("w", Mul{}, z, half)                            // 5
	dead := b.Node("dead", Silu{}, w)                           // 6
	v := b.Node("v", Copy{}, half)                              // 7
	out := b.Node("out", Add{}, v, w)                           // 8
	b.Output(out)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []int{0, 0, 0, 0, 1, 1, 0, 0, 0} {
		g.Nodes[i].Backend = at
	}
	if !g.Nodes[dead.Node].Dead {
		t.Fatal("a loose node lives")
	}
	have := Splits(g)
	want := []Split{
		{Backend: 0, From: 0, To: 3},
		{Backend: 1, From: 4, To: 6, In: []Value{y}}, // the root of the view, once
		{Backend: 0, From: 7, To: 9, In: []Value{y, w}},
	}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("splits %v\nwant   %v", have, want)
	}
	for i := range g.Nodes {
		g.Nodes[i].Backend = 0
	}
	if have := Splits(g); len(have) != 1 || have[0].From != 0 || have[0].To != len(g.Nodes) || len(have[0].In) != 0 {
		t.Errorf("one backend has splits %v", have)
	}
}
