package cpu

import (
	"fmt"
	"strings"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/team"
)

// A compiler turns nodes into steps in order. Row-wise nodes join the open region while it admits them; any other step
// closes it.
type compiler struct {
	d    *Device
	g    *graph.Graph
	plan *graph.Plan
	p    *Program

	region *rowStep
	op     string // kind of the node being compiled, for timings
	at     int    // its index
	acts   [actsKinds]actsSlot
	direct directSlot
}

// Compile resolves a graph whose nodes all run here.
func (d *Device) Compile(g *graph.Graph, plan *graph.Plan, kv backend.KV) (backend.Program, error) {
	mem, ok := kv.(*kvMemory)
	if !ok || mem.device != d {
		return nil, fmt.Errorf("%w: the KV cells are not this device's", backend.ErrUnsupported)
	}
	for b, bytes := range plan.Pool {
		if b == 0 && len(d.pool) < bytes/4 {
			mem, err := d.allocate(bytes)
			if err != nil {
				return nil, err
			}
			d.pool = floats(mem)
		}
	}
	c := &compiler{d: d, g: g, plan: plan, p: &Program{device: d, params: g.Params, kv: mem}}
	if err := c.reserve(); err != nil {
		return nil, err
	}
	for i := range g.Nodes {
		if g.Nodes[i].Dead {
			continue
		}
		if err := c.node(i); err != nil {
			return nil, fmt.Errorf("%s: %w", g.Describe(i), err)
		}
	}
	for k, v := range g.Outputs {
		if t := g.Tensor(v); k > 0 || t.Type != graph.F32 || !t.Rows() || !t.Contiguous() {
			return nil, fmt.Errorf("%w: output %d, %s: a program gives one f32 matrix of contiguous rows", backend.ErrUnsupported, k, g.Describe(v.Node))
		}
		c.p.logits = c.view(v)
	}
	if d.timing != nil {
		c.p.steps = d.timing.interleave(c.p.steps, c.p.labels)
	}
	return c.p, nil
}

// flush closes the open region.
func (c *compiler) flush() { c.region = nil }

// view resolves a value to memory.
func (c *compiler) view(v graph.Value) view {
	t := c.g.Tensor(v)
	b, ok := c.plan.Place(c.g, v)
	if !ok {
		return view{buffer: graph.NoBuffer, pitch: 1}
	}
	at := b.Offset/4 + t.Offset
	pitch := t.Stride[1]
	if t.Shape[1] == 1 {
		pitch = max(pitch, t.Shape[0])
	}
	end := at + (t.Shape[1]-1)*pitch + t.Shape[0]
	return view{data: c.d.pool[at:end:end], d: t.Shape[0], n: t.Shape[1], pitch: pitch, buffer: b.Offset, offset: t.Offset}
}

// rowTasksPerWorker is how many tasks a row step aims to give each worker: enough to even out, few enough to be cheap.
const rowTasksPerWorker = 4

// rows appends row-wise work over the given views: f joins the open region if it may.
func (c *compiler) rows(n int, f func(row int), views ...view) {
	if !c.region.admits(n, views) {
		per := max(1, n/(rowTasksPerWorker*c.d.team.Size()))
		c.region = &rowStep{rows: n, per: per}
		c.emit(c.region, "")
	}
	c.label(c.op)
	c.region.chain = append(c.region.chain, f)
	c.region.touched = append(c.region.touched, views...)
}

// emit appends a step that carries a label in timings.
func (c *compiler) emit(s team.Step, label string) {
	c.p.steps = append(c.p.steps, s)
	c.p.labels = append(c.p.labels, label)
}

// label adds an op to the label of the last step.
func (c *compiler) label(op string) {
	have := &c.p.labels[len(c.p.labels)-1]
	if *have == "" {
		*have = op
	} else if *have != op && !strings.HasSuffix(*have, "+"+op) {
		*have += "+" + op
	}
}

// node compiles one live node.
func (c *compiler) node(i int) error {
	n := &c.g.Nodes[i]
	c.op, c.at = n.Op.Kind(), i
	in := make([]view, len(n.In))
	for k, v := range n.In {
		if c.g.Tensor(v).Type == graph.F32 {
			in[k] = c.view(v)
		}
	}
	out := make([]view, len(n.Out))
	for k := range n.Out {
		if n.Out[k].Type == graph.F32 {
			out[k] = c.view(graph.Value{Node: i, Out: k})
		}
	}
	switch op := n.Op.(type) {
	case graph.Input, graph.Slice, graph.Reshape, graph.Permute:
		return nil
	case graph.Embed:
		return c.embed(op, out[0])
	case graph.MatMul:
		return c.matmul(n.In[0], in[0], []graph.Weight{op.W}, out)
	case graph.MultiMatMul:
		return c.matmul(n.In[0], in[0], op.Ws[:op.N], out)
	case graph.GateUp:
		return c.gateUp(n.In[0], in[0], op, out[0])
	case graph.StoreKV:
		return c.storeKV(op, in[0], in[1])
	case graph.QKVStore:
		return c.qkvStore(op, in, out[0])
	case graph.Attention:
		return c.attention(op, in[0], out[0])
	case graph.Rows:
		c.gather(in[0], out[0])
		return nil
	case graph.Copy:
		c.copy(c.g.Tensor(n.In[0]), n.In[0], out[0])
		return nil
	}
	return c.rowwise(n.Op, in, out)
}

// embed decodes a table row per token.
func (c *compiler) embed(op graph.Embed, out view) error {
	w, err := c.d.matrix(op.W)
	if err != nil {
		return err
	}
	c.p.vocab = op.W.Out
	p := c.p
	c.rows(out.n, func(r int) { w.DecodeRow(out.row(r), int(p.batch.Tokens[r])) }, out)
	return nil
}

// gather picks rows. Its input rows are not its output rows, so it starts a region and nothing may touch its input there.
func (c *compiler) gather(in, out view) {
	c.flush()
	p := c.p
	apart := in
	apart.pitch = -1
	c.rows(out.n, func(r int) { copy(out.row(r), in.row(int(p.batch.OutRows[r]))) }, apart, out)
}

// copy makes a contiguous copy of a view with any strides, one row of the output at a time.
func (c *compiler) copy(t graph.Tensor, v graph.Value, out view) {
	c.flush()
	b, _ := c.plan.Place(c.g, v)
	src := c.d.pool[b.Offset/4+t.Offset:]
	all := c.d.pool[out.buffer/4:][:t.Elements()] // the output has no offset, and may have more dimensions than a view shows
	width := t.Shape[0]
	c.rows(t.Elements()/width, func(r int) {
		at := r%t.Shape[1]*t.Stride[1] + r/t.Shape[1]%t.Shape[2]*t.Stride[2] + r/t.Shape[1]/t.Shape[2]*t.Stride[3]
		dst := all[r*width : (r+1)*width]
		for i := range dst {
			dst[i] = src[at+i*t.Stride[0]]
		}
	}, view{buffer: b.Offset, pitch: -1}, view{buffer: out.buffer, pitch: -2})
	c.flush()
}

// rowwise compiles the ops in which an output row depends on the same rows of the inputs.
func (c *compiler) rowwise(op graph.Op, in, out []view) error {
	k, y, views := c.d.kernels, out[0], append(append([]view{}, in...), out...)
	var f func(r int)
	x := in[0]
	switch op := op.(type) {
	case graph.Add:
		b := in[1]
		f = func(r int) { k.Add(y.row(r), x.row(r), b.row(r)) }
	case graph.Mul:
		b := in[1]
		f = func(r int) { k.Mul(y.row(r), x.row(r), b.row(r)) }
	case graph.SwiGLU:
		up := in[1]
		f = func(r int) { k.SwiGLU(y.row(r), x.row(r), up.row(r)) }
	case graph.Scale:
		f = func(r int) { k.Scale(y.row(r), x.row(r), op.By) }
	case graph.Silu:
		f = func(r int) { k.Silu(y.row(r), x.row(r)) }
	case graph.RMSNorm:
		w, err := c.d.vector(op.W)
		if err != nil {
			return err
		}
		f = func(r int) { k.RMSNorm(y.row(r), x.row(r), w, op.Eps) }
	case graph.AddRMSNorm:
		w, err := c.d.vector(op.W)
		if err != nil {
			return err
		}
		b, norm := in[1], out[1]
		f = func(r int) { k.AddRMSNorm(y.row(r), norm.row(r), x.row(r), b.row(r), w, op.Eps) }
	case graph.HeadNorm:
		w, err := c.d.vector(op.W)
		if err != nil {
			return err
		}
		f = func(r int) {
			copyUnlessSame(y.row(r), x.row(r))
			k.HeadRMSNorm(y.row(r), w, op.W.In, op.Eps)
		}
	case graph.Bias:
		w, err := c.d.vector(op.W)
		if err != nil {
			return err
		}
		f = func(r int) { k.Add(y.row(r), x.row(r), w) }
	case graph.RoPE:
		turn, err := c.rope(op.Rope)
		if err != nil {
			return err
		}
		f = func(r int) {
			copyUnlessSame(y.row(r), x.row(r))
			turn(r, y.row(r))
		}
		views = []view{x, y}
	default:
		return fmt.Errorf("%w: op %s", backend.ErrUnsupported, op.Kind())
	}
	c.rows(y.n, f, views...)
	return nil
}

// copyUnlessSame brings an op's input to its output where the plan did not put them in one place.
func copyUnlessSame(dst, src []float32) {
	if &dst[0] != &src[0] {
		copy(dst, src)
	}
}

// rope returns the function that rotates a row in place by its position.
func (c *compiler) rope(r graph.Rope) (func(row int, x []float32), error) {
	t := c.d.ropes[r]
	if t == nil {
		var err error
		if t, err = c.d.newRope(r); err != nil {
			return nil, err
		}
		t.reserve(c.p.kv.spec.Cells)
		c.d.ropes[r] = t
	}
	known := false
	for _, have := range c.p.ropes {
		known = known || have == t
	}
	if !known {
		c.p.ropes = append(c.p.ropes, t)
	}
	p, kernel := c.p, c.d.kernels.RopeNeox
	if r.Style == graph.RopeNorm {
		kernel = c.d.kernels.RopeNorm
	}
	return func(row int, x []float32) {
		cos, sin := t.at(p.batch.Positions[row])
		kernel(x, r.HeadDim, r.Rot, cos, sin)
	}, nil
}
