package graph

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// randomGraph draws a legal graph over two backends: any op on any earlier values that fit it, any outputs.
func randomGraph(t *rapid.T) *Graph {
	b := NewBuilder(params(4, 2))
	n := rapid.IntRange(1, 24).Draw(t, "ops")
	values := []Value{b.Node("x", Embed{matrix("e", 16, 9)}, b.Input(Tokens))}
	pick := func(fits func(Tensor) bool) (Value, bool) {
		var from []Value
		for _, v := range values {
			if fits(b.Tensor(v)) {
				from = append(from, v)
			}
		}
		if len(from) == 0 {
			return Value{}, false
		}
		return rapid.SampledFrom(from).Draw(t, "value"), true
	}
	isRows := func(t Tensor) bool { return t.Type == F32 && t.Rows() }
	for i := range n {
		name := fmt.Sprint("n", i)
		x, _ := pick(isRows)
		tx := b.Tensor(x)
		y, _ := pick(func(t Tensor) bool { return isRows(t) && t.Shape == tx.Shape })
		d, tokens := tx.Shape[0], tx.Shape[1]
		add := func(op Op, in ...Value) {
			v := b.Node(name, op, in...)
			for out := range b.g.Nodes[v.Node].Out {
				if b.g.Nodes[v.Node].Out[out].Type == F32 {
					values = append(values, Value{v.Node, out})
				}
			}
		}
		width := rapid.SampledFrom([]int{8, 16, 48})
		switch rapid.IntRange(0, 14).Draw(t, "op") {
		case 0:
			add(Silu{}, x)
		case 1:
			add(Scale{2}, x)
		case 2:
			add(Add{}, x, y)
		case 3:
			add(Mul{}, x, y)
		case 4:
			add(SwiGLU{}, x, y)
		case 5:
			add(RMSNorm{vector("w", d), 1e-6}, x)
		case 6:
			add(AddRMSNorm{vector("w", d), 1e-6}, x, y)
		case 7:
			add(MatMul{matrix("w", d, width.Draw(t, "out"))}, x)
		case 8:
			add(MultiMatMul{[4]Weight{matrix("a", d, width.Draw(t, "a")), matrix("b", d, width.Draw(t, "b")), matrix("c", d, 8)}, 3}, x)
		case 9:
			if d > 1 {
				from := rapid.IntRange(0, d-1).Draw(t, "from")
				add(Slice{0, from, rapid.IntRange(from+1, d).Draw(t, "to")}, x)
			}
		case 10:
			if tokens > 1 {
				add(Slice{1, 1, tokens}, x)
			}
		case 11:
			if tx.Contiguous() {
				add(Reshape{[4]int{1, d * tokens}}, x)
			}
		case 12:
			add(Copy{}, b.Node(name+"p", Permute{[4]int{1, 0, 2, 3}}, x))
		case 13:
			add(Rows{}, x, b.Input(OutRows))
		case 14:
			if tokens == 4 {
				kv := b.Node(name+"s", StoreKV{0}, x, y, b.Input(Cells))
				add(Attention{0, 1, 1, d, 1}, x, kv, b.Input(Positions))
			}
		}
	}
	for range rapid.IntRange(1, 3).Draw(t, "outputs") {
		b.Output(rapid.SampledFrom(values).Draw(t, "output"))
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; isView(n.Op) {
			n.Backend = g.Nodes[n.In[0].Node].Backend
		} else {
			n.Backend = rapid.IntRange(0, 1).Draw(t, "backend")
		}
	}
	if err := Check(g); err != nil {
		t.Fatal(err)
	}
	return g
}

// A memory stamps every byte with the value that was written to it last.
type memory map[[2]int]Value // backend, unit of 64 bytes

func (m memory) write(b Buffer, v Value) {
	for at := b.Offset; at < b.Offset+b.Bytes; at += Alignment {
		m[[2]int{b.Backend, at}] = v
	}
}

func (m memory) holds(b Buffer, bytes int, v Value) bool {
	for at := b.Offset; at < b.Offset+bytes; at += Alignment {
		if m[[2]int{b.Backend, at}] != v {
			return false
		}
	}
	return true
}

// Running any graph by its plan, every node finds its inputs as they were made, inputs and outputs are there after the
// run, and the numbers in the plan are what the run shows.
func TestPlanRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkPlan(t, randomGraph(t)) })
}

func checkPlan(t *rapid.T, g *Graph) {
	p := NewPlan(g)
	if again := NewPlan(g); again.String() != p.String() {
		t.Fatal("two plans of one graph differ")
	}
	show := func(format string, a ...any) {
		t.Helper()
		t.Fatalf("%s\n%s\n%s", fmt.Sprintf(format, a...), listing(g), p)
	}
	life := map[Value]Lifetime{}
	for _, l := range p.Lifetimes {
		life[l.Value] = l
	}
	mem := memory{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Dead {
			for out := range n.Out {
				if _, ok := life[Value{i, out}]; ok {
					show("dead node %d has memory", i)
				}
			}
			continue
		}
		if isView(n.Op) {
			continue
		}
		for _, v := range n.In {
			r := g.Root(v)
			b, ok := p.Place(g, v)
			if g.Tensor(r).Type == KV {
				continue
			}
			if !ok || !mem.holds(b, life[r].Bytes, r) {
				show("node %d reads %v, whose memory is not its own any more", i, v)
			}
			if life[r].To < i {
				show("node %d reads %v beyond its lifetime", i, v)
			}
		}
		for out, tensor := range n.Out {
			v := Value{i, out}
			if tensor.Type == KV {
				continue
			}
			b, ok := p.Place(g, v)
			l := life[v]
			if !ok || b.Backend != n.Backend || l.Bytes != 4*tensor.Elements() || b.Bytes < l.Bytes || b.Bytes > 2*SizeClass(l.Bytes) {
				show("%v of %d bytes lies in %+v", v, 4*tensor.Elements(), b)
			}
			if b.Offset%Alignment != 0 || b.Offset+b.Bytes > p.Pool[b.Backend] {
				show("buffer %+v is outside the pool of %d or unaligned", b, p.Pool[b.Backend])
			}
			if o := l.InPlaceOf; o.Node >= 0 {
				if o.Out < 0 || !contains(n.In, o) || isView(g.Nodes[o.Node].Op) || g.Tensor(o).Elements() != tensor.Elements() ||
					life[o].To != i || life[o].Buffer != l.Buffer {
					show("%v cannot take the place of %v", v, o)
				}
			}
			mem.write(b, v)
		}
		for out, tensor := range n.Out { // outputs of one node do not lie on each other
			if b, ok := p.Place(g, Value{i, out}); ok && !mem.holds(b, 4*tensor.Elements(), Value{i, out}) {
				show("outputs of node %d overlap", i)
			}
		}
	}
	kept := map[Value]bool{}
	for i := range g.Nodes {
		if _, leaf := g.Nodes[i].Op.(Input); leaf && !g.Nodes[i].Dead {
			kept[Value{i, 0}] = true
		}
	}
	for _, v := range g.Outputs {
		kept[g.Root(v)] = true
	}
	live := 0
	for v := range kept {
		b, _ := p.Place(g, v)
		if !mem.holds(b, life[v].Bytes, v) || life[v].To != len(g.Nodes) {
			show("%v does not outlive the run", v)
		}
		live += life[v].Bytes
	}
	if live != p.Live {
		show("%d bytes outlive the run, the plan says %d", live, p.Live)
	}
	if peak := peakOf(g, p); peak != p.Peak {
		show("the peak is %d, the plan says %d", peak, p.Peak)
	}
}

// peakOf is the largest sum of lifetimes that cover one node; what a value takes over counts once.
func peakOf(g *Graph, p *Plan) int {
	peak := 0
	for i := range g.Nodes {
		sum := 0
		for _, l := range p.Lifetimes {
			if l.From <= i && i <= l.To {
				sum += l.Bytes
			}
			if l.From == i && l.InPlaceOf.Node >= 0 {
				sum -= l.Bytes
			}
		}
		if n := &g.Nodes[i]; !n.Dead && !isView(n.Op) {
			peak = max(peak, sum)
		}
	}
	return peak
}

// Fusing any graph keeps it legal and plannable, and never makes its plan hold more values.
func TestFuseThenPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		before := len(NewPlan(g).Lifetimes)
		g.Params.Fuse = Rules(rapid.Uint32Range(0, uint32(AllRules)).Draw(t, "rules"))
		Fuse(g, []Target{fake{name: "a", fuses: AllRules}, fake{name: "b", fuses: AllRules}})
		if err := Check(g); err != nil {
			t.Fatalf("%v\n%s", err, listing(g))
		}
		checkPlan(t, g)
		if after := len(NewPlan(g).Lifetimes); after > before {
			t.Fatalf("%d values, %d before", after, before)
		}
	})
}
