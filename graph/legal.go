package graph

import (
	"fmt"
	"slices"
)

// infer is the legality table: what each op accepts, and the types, shapes and layouts of its outputs. Outputs of
// computing ops are contiguous; views keep their input's memory.
func infer(op Op, in []Tensor) ([]Tensor, error) {
	c := checker{op: op, in: in}
	out := c.infer()
	if c.err != nil {
		return nil, c.err
	}
	return out, nil
}

// Check verifies every live node of a graph against the legality table, and that inputs come before their readers.
// It holds after building and after every pass.
func Check(g *Graph) error {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Dead {
			continue
		}
		in := make([]Tensor, len(n.In))
		for j, v := range n.In {
			if v.Node < 0 || v.Node >= i || v.Out < 0 || v.Out >= len(g.Nodes[v.Node].Out) || g.Nodes[v.Node].Dead {
				return fmt.Errorf("%w: node %d %q (%s): input %d is %v, not the value of an earlier live node", ErrIllegal, i, n.Name, n.Op.Kind(), j, v)
			}
			in[j] = g.Tensor(v)
		}
		var want []Tensor
		var err error
		if leaf, ok := n.Op.(Input); ok && len(in) == 0 {
			want = []Tensor{g.Params.input(leaf.Which)}
		} else if want, err = infer(n.Op, in); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrIllegal, g.Describe(i), err)
		}
		if !slices.Equal(want, n.Out) {
			return fmt.Errorf("%w: %s: outputs should be %v", ErrIllegal, g.Describe(i), want)
		}
	}
	for _, v := range g.Outputs {
		if v.Node < 0 || v.Node >= len(g.Nodes) || v.Out < 0 || v.Out >= len(g.Nodes[v.Node].Out) || g.Nodes[v.Node].Dead {
			return fmt.Errorf("%w: output %v is not the value of a live node", ErrIllegal, v)
		}
	}
	return nil
}

// A checker collects the first complaint about one op.
type checker struct {
	op  Op
	in  []Tensor
	err error
}

func (c *checker) fail(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, a...)
	}
}

// arity demands n inputs.
func (c *checker) arity(n int) bool {
	if len(c.in) != n {
		c.fail("takes %d inputs, got %d", n, len(c.in))
	}
	return c.err == nil
}

// rows demands that input i is an f32 matrix of contiguous rows of d features; d < 0 stands for any.
func (c *checker) rows(i, d int) {
	t := c.in[i]
	if t.Type != F32 || !t.Rows() {
		c.fail("input %d must be an f32 matrix of contiguous rows, is %s%v with strides %v", i, t.Type, dims(t.Shape), t.Stride)
	} else if d >= 0 && t.Shape[0] != d {
		c.fail("input %d must have %d features, has %d", i, d, t.Shape[0])
	}
}

// ids demands that input i is a contiguous i32 vector of n elements; n < 0 stands for any.
func (c *checker) ids(i, n int) {
	t := c.in[i]
	if t.Type != I32 || !t.Contiguous() || t.Elements() != t.Shape[0] {
		c.fail("input %d must be an i32 vector, is %s%v", i, t.Type, dims(t.Shape))
	} else if n >= 0 && t.Shape[0] != n {
		c.fail("input %d must have %d elements, has %d", i, n, t.Shape[0])
	}
}

// tokens demands that input i has as many tokens as input 0.
func (c *checker) tokens(i int) {
	if c.in[i].Shape[1] != c.in[0].Shape[1] {
		c.fail("input %d has %d tokens, input 0 has %d", i, c.in[i].Shape[1], c.in[0].Shape[1])
	}
}

// vector demands that w is a vector of n elements.
func (c *checker) vector(w Weight, n int) {
	if !w.Present() {
		c.fail("needs a weight")
	} else if w.In != n || w.Out != 1 {
		c.fail("weight %s must be a vector of %d, is [%d, %d]", w.Name, n, w.In, w.Out)
	}
}

// optional demands that w is absent or a vector of n elements.
func (c *checker) optional(w Weight, n int) {
	if w.Present() {
		c.vector(w, n)
	}
}

// matrix demands a weight of in inputs.
func (c *checker) matrix(w Weight, in int) {
	if !w.Present() {
		c.fail("needs a weight")
	} else if w.In != in || w.In < 1 || w.Out < 1 {
		c.fail("weight %s must have %d inputs, is [%d, %d]", w.Name, in, w.In, w.Out)
	}
}

// rope demands that r fits heads lying in d features.
func (c *checker) rope(r Rope, d int) {
	switch {
	case r.HeadDim < 2 || d%r.HeadDim != 0:
		c.fail("%d features are no whole number of heads of %d", d, r.HeadDim)
	case r.Rot < 2 || r.Rot%2 != 0 || r.Rot > r.HeadDim:
		c.fail("cannot rotate %d of %d elements of a head", r.Rot, r.HeadDim)
	case !(r.Base > 0):
		c.fail("frequency base %g is not positive", r.Base)
	}
	c.optional(r.Factors, r.Rot/2)
}

// same demands two f32 inputs of one shape.
func (c *checker) same() []Tensor {
	if !c.arity(2) {
		return nil
	}
	c.rows(0, -1)
	c.rows(1, -1)
	if c.in[0].Shape != c.in[1].Shape {
		c.fail("shapes differ")
	}
	return like(c.in[0])
}

func (c *checker) unary() []Tensor {
	if !c.arity(1) {
		return nil
	}
	c.rows(0, -1)
	return like(c.in[0])
}

// like is a fresh contiguous f32 tensor of t's shape.
func like(t Tensor) []Tensor { return []Tensor{dense(F32, t.Shape[:]...)} }

func (c *checker) infer() []Tensor {
	switch op := c.op.(type) {
	case Input:
		c.fail("an input is made by Builder.Input, which knows its length")
	case Embed:
		if c.arity(1) {
			c.ids(0, -1)
			c.matrix(op.W, op.W.In)
			return []Tensor{dense(F32, op.W.In, c.in[0].Shape[0])}
		}
	case RMSNorm:
		out := c.unary()
		if c.err == nil {
			c.vector(op.W, c.in[0].Shape[0])
		}
		return out
	case HeadNorm:
		out := c.unary()
		if c.err == nil && (op.W.In < 1 || c.in[0].Shape[0]%op.W.In != 0) {
			c.fail("%d features are no whole number of heads of %d", c.in[0].Shape[0], op.W.In)
		}
		c.vector(op.W, op.W.In)
		return out
	case MatMul:
		if c.arity(1) {
			c.rows(0, op.W.In)
			c.matrix(op.W, c.in[0].Shape[0])
			return []Tensor{dense(F32, op.W.Out, c.in[0].Shape[1])}
		}
	case Bias:
		out := c.unary()
		if c.err == nil {
			c.vector(op.W, c.in[0].Shape[0])
		}
		return out
	case RoPE:
		if c.arity(2) {
			c.rows(0, -1)
			c.ids(1, c.in[0].Shape[1])
			c.rope(op.Rope, c.in[0].Shape[0])
			return like(c.in[0])
		}
	case StoreKV:
		if c.arity(3) {
			c.rows(0, -1)
			c.rows(1, c.in[0].Shape[0])
			c.tokens(1)
			c.ids(2, c.in[0].Shape[1])
			c.layer(op.Layer)
			return []Tensor{dense(KV)}
		}
	case Attention:
		return c.attention(op)
	case Rows:
		if c.arity(2) {
			c.rows(0, -1)
			c.ids(1, -1)
			return []Tensor{dense(F32, c.in[0].Shape[0], c.in[1].Shape[0])}
		}
	case Add, Mul, SwiGLU:
		return c.same()
	case Scale, Silu:
		return c.unary()
	case Copy:
		if c.arity(1) {
			if c.in[0].Type != F32 {
				c.fail("input 0 must be f32, is %s", c.in[0].Type)
			}
			return like(c.in[0])
		}
	case Slice, Reshape, Permute:
		if c.arity(1) {
			return c.view()
		}
	case MultiMatMul:
		if c.arity(1) {
			return c.multi(op)
		}
	case GateUp:
		if c.arity(1) {
			c.rows(0, op.Gate.In)
			c.matrix(op.Gate, c.in[0].Shape[0])
			c.matrix(op.Up, c.in[0].Shape[0])
			if op.Gate.Out != op.Up.Out {
				c.fail("gate has %d outputs, up %d", op.Gate.Out, op.Up.Out)
			}
			return []Tensor{dense(F32, op.Gate.Out, c.in[0].Shape[1])}
		}
	case AddRMSNorm:
		out := c.same()
		if c.err == nil {
			c.vector(op.W, c.in[0].Shape[0])
			return append(out, like(c.in[0])...)
		}
	case QKVStore:
		return c.qkvStore(op)
	default:
		c.fail("unknown op %T", op)
	}
	return nil
}

func (c *checker) layer(l int) {
	if l < 0 {
		c.fail("layer %d is negative", l)
	}
}

func (c *checker) attention(op Attention) []Tensor {
	if !c.arity(3) {
		return nil
	}
	switch {
	case op.Heads < 1 || op.KVHeads < 1 || op.Heads%op.KVHeads != 0:
		c.fail("%d heads cannot share %d KV heads evenly", op.Heads, op.KVHeads)
	case op.HeadDim < 1:
		c.fail("head dimension %d", op.HeadDim)
	case !(op.Scale > 0):
		c.fail("scale %g is not positive", op.Scale)
	case c.in[1].Type != KV:
		c.fail("input 1 must be a kv handle, is %s", c.in[1].Type)
	}
	c.layer(op.Layer)
	c.rows(0, op.Heads*op.HeadDim)
	c.ids(2, c.in[0].Shape[1])
	return like(c.in[0])
}

func (c *checker) multi(op MultiMatMul) []Tensor {
	if op.N < 1 || op.N > len(op.Ws) {
		c.fail("%d weights, takes 1 to %d", op.N, len(op.Ws))
		return nil
	}
	c.rows(0, -1)
	var out []Tensor
	for _, w := range op.Ws[:op.N] {
		c.matrix(w, c.in[0].Shape[0])
		out = append(out, dense(F32, w.Out, c.in[0].Shape[1]))
	}
	return out
}

func (c *checker) qkvStore(op QKVStore) []Tensor {
	if !c.arity(5) {
		return nil
	}
	for i := range 3 {
		c.rows(i, -1)
		c.tokens(i)
	}
	q, k, v := c.in[0].Shape[0], c.in[1].Shape[0], c.in[2].Shape[0]
	if k != v {
		c.fail("k has %d features, v %d", k, v)
	}
	c.optional(op.BiasQ, q)
	c.optional(op.BiasK, k)
	c.optional(op.BiasV, v)
	c.optional(op.NormQ, op.Rope.HeadDim)
	c.optional(op.NormK, op.Rope.HeadDim)
	c.rope(op.Rope, q)
	c.rope(op.Rope, k)
	c.ids(3, c.in[0].Shape[1])
	c.ids(4, c.in[0].Shape[1])
	c.layer(op.Layer)
	return append(like(c.in[0]), dense(KV))
}

// view computes the layout of a view op.
func (c *checker) view() []Tensor {
	t := c.in[0]
	if t.Type == KV {
		c.fail("a kv handle has no views")
		return nil
	}
	switch op := c.op.(type) {
	case Slice:
		if op.Dim < 0 || op.Dim > 3 || op.From < 0 || op.To <= op.From || op.To > t.Shape[op.Dim] {
			c.fail("slice [%d, %d) of dimension %d is outside %v", op.From, op.To, op.Dim, dims(t.Shape))
			return nil
		}
		t.Offset += op.From * t.Stride[op.Dim]
		t.Shape[op.Dim] = op.To - op.From
	case Reshape:
		shape := op.Shape
		n := 1
		for i, d := range shape {
			if d == 0 && i > 0 {
				shape[i] = 1
			} else if d < 1 {
				c.fail("shape %v has a dimension below 1", op.Shape)
				return nil
			}
			n *= shape[i]
		}
		if n != t.Elements() || !t.Contiguous() {
			c.fail("cannot reshape %v with strides %v to %v", dims(t.Shape), t.Stride, dims(shape))
			return nil
		}
		t.Shape, t.Stride = shape, contiguous(shape)
	case Permute:
		var seen [4]bool
		from := t
		for i, d := range op.Dims {
			if d < 0 || d > 3 || seen[d] {
				c.fail("%v is no permutation of the dimensions", op.Dims)
				return nil
			}
			seen[d] = true
			t.Shape[i], t.Stride[i] = from.Shape[d], from.Stride[d]
		}
	}
	return []Tensor{t}
}
