package cpu

import (
	"slices"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/internal/team"
)

// needs is the memory of each kind of activations, and of those that their producer stores: what the largest product of
// the graph takes.
func (d *Device) needs(g *graph.Graph) (need [actsKinds]int, direct, total int) {
	for i := range g.Nodes {
		if g.Nodes[i].Dead {
			continue
		}
		if kind, _, ok := d.feeds(g, i); ok {
			out := g.Nodes[i].Out[0]
			direct = max(direct, d.actsBytes(int(kind), out.Shape[0], out.Shape[1]))
		}
		for _, w := range matrices(g.Nodes[i].Op) {
			kind := d.kind(w)
			need[kind] = max(need[kind], d.actsBytes(kind, w.In, g.Tensor(g.Nodes[i].In[0]).Shape[1]))
		}
	}
	for k := range need {
		need[k] = align(need[k])
		total += need[k]
	}
	direct = align(direct)
	return need, direct, total + direct
}

// ScratchBytes is what a program of the graph needs beyond its plan: inputs of products in the form that kernels read,
// and what workers keep for attention and for fused feed-forwards.
func (d *Device) ScratchBytes(g *graph.Graph, kv backend.KVSpec) int {
	_, _, total := d.needs(g)
	attn, gate := 0, 0
	for i := range g.Nodes {
		if g.Nodes[i].Dead {
			continue
		}
		switch op := g.Nodes[i].Op.(type) {
		case graph.Attention:
			attn = max(attn, d.attnBytes(op, g.Tensor(g.Nodes[i].In[0]).Shape[1], kv.Cells))
		case graph.GateUp:
			gate = d.team.Size() * 2 * gateScratch
		}
	}
	return total + attn + gate
}

// reserve gives each kind of activations its memory.
func (c *compiler) reserve() error {
	need, direct, total := c.d.needs(c.g)
	if len(c.d.scratch) < total {
		mem, err := c.d.allocate(total)
		if err != nil {
			return err
		}
		c.d.scratch = mem
	}
	at := 0
	for k := range need {
		c.acts[k] = actsSlot{value: graph.Value{Node: -1}, mem: c.d.scratch[at : at+need[k]]}
		at += need[k]
	}
	c.direct = directSlot{actsSlot: actsSlot{value: graph.Value{Node: -1}, mem: c.d.scratch[at : at+direct]}, last: -1}
	return nil
}

// The kinds of memory that hold a product's input: simd's two, and plain rows for the reference path.
const (
	actsPlain = 2
	actsKinds = 3
)

// kind is the form in which a weight wants its input.
func (d *Device) kind(w graph.Weight) int {
	if d.options.F32Activations {
		return actsPlain
	}
	return int(simd.KindFor(w.Type))
}

func (d *Device) actsBytes(kind, cols, tokens int) int {
	if kind == actsPlain {
		return 4 * cols * tokens
	}
	return d.kernels.ActsBytes(simd.ActsKind(kind), cols, tokens)
}

// An actsSlot is the memory of one kind of activations and the value that it holds at this point of the program.
type actsSlot struct {
	value graph.Value
	mem   []byte
	acts  *simd.Acts
	plain []float32
}

// rowsAs is rows under another name in timings.
func (c *compiler) rowsAs(op string, n int, f func(row int), views ...view) {
	outer := c.op
	c.op = op
	c.rows(n, f, views...)
	c.op = outer
}

// A directSlot holds a value that its producer stores as activations, so that it never exists as rows.
type directSlot struct {
	actsSlot
	last int // the node that reads the value last
}

// feeds reports whether the output of node i, a fused feed-forward or attention, is read by products alone, all of which
// want it in one form; and which node reads it last.
func (d *Device) feeds(g *graph.Graph, i int) (kind simd.ActsKind, last int, ok bool) {
	switch g.Nodes[i].Op.(type) {
	case graph.GateUp, graph.Attention:
	default:
		return 0, 0, false
	}
	v, found := graph.Value{Node: i}, -1
	for _, o := range g.Outputs {
		if g.Root(o) == v {
			return 0, 0, false
		}
	}
	for j := i + 1; j < len(g.Nodes); j++ {
		n := &g.Nodes[j]
		if n.Dead || !slices.ContainsFunc(n.In, func(in graph.Value) bool { return g.Root(in) == v }) {
			continue
		}
		ws := matrices(n.Op)
		if len(ws) == 0 || n.In[0] != v {
			return 0, 0, false
		}
		for _, w := range ws {
			if k := d.kind(w); k == actsPlain || found >= 0 && k != found {
				return 0, 0, false
			}
			found = d.kind(w)
		}
		last = j
	}
	return simd.ActsKind(max(found, 0)), last, found >= 0
}

// store returns the activations in which the node under way is to store its result, the rows x, in parts of at least the
// given number of features; nil if it has to write rows.
func (c *compiler) store(x view, part int) *simd.Acts {
	kind, last, ok := c.d.feeds(c.g, c.at)
	if !ok || c.direct.last >= c.at || part%kind.Inputs() != 0 {
		return nil
	}
	c.direct.value, c.direct.last, c.direct.acts = graph.Value{Node: c.at}, last, c.lay(kind, x, c.direct.mem)
	return c.direct.acts
}

// lay makes activations for the rows of x in memory.
func (c *compiler) lay(kind simd.ActsKind, x view, mem []byte) *simd.Acts {
	mat := &c.d.kernels.Mat
	acts := mat.Acts(mem[:mat.ActsBytes(kind, x.d, x.n)], kind, x.d, x.n)
	return &acts
}

// input makes the activations of a kind hold a value, unless they do already: as row work, or, for a few tokens that
// share cache lines, part by part.
func (c *compiler) input(v graph.Value, x view, kind int) *actsSlot {
	if c.direct.value == v && int(c.direct.acts.Kind) == kind {
		return &c.direct.actsSlot
	}
	slot := &c.acts[kind]
	if slot.value == v {
		return slot
	}
	slot.value = v
	if kind == actsPlain {
		slot.plain = floats(slot.mem)[:x.n*x.d]
		plain := slot.plain
		c.rowsAs("quantize", x.n, func(r int) { copy(plain[r*x.d:(r+1)*x.d], x.row(r)) }, x)
		return slot
	}
	mat, acts := &c.d.kernels.Mat, c.lay(simd.ActsKind(kind), x, slot.mem)
	slot.acts = acts
	if x.n == 1 || x.n > streamTokens {
		c.rowsAs("quantize", x.n, func(r int) { mat.SetRow(acts, r, x.row(r)) }, x)
		return slot
	}
	c.flush()
	inputs := acts.Kind.Inputs()
	parts := (x.d + inputs - 1) / inputs
	c.emit(&partStep{mat: mat, acts: acts, x: x, per: inputs * max(1, parts/(rowTasksPerWorker*c.d.team.Size()))}, "quantize")
	return slot
}

// A partStep stores rows as activations, a range of features of all rows a task.
type partStep struct {
	mat  *simd.Mat
	acts *simd.Acts
	x    view
	per  int // features a task
}

func (s *partStep) Tasks() int { return (s.x.d + s.per - 1) / s.per }

func (s *partStep) Do(_ *team.Worker, task int) {
	from := task * s.per
	to := min(from+s.per, s.x.d)
	for r := range s.x.n {
		s.mat.SetPart(s.acts, r, from, s.x.row(r)[from:to])
	}
}
