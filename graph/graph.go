package graph

import (
	"errors"
	"fmt"
	"slices"
)

// Errors of building and passes; the wrapped text names node, op and shapes.
var (
	ErrIllegal = errors.New("graph: illegal node")           // an op got inputs that the legality table does not accept
	ErrAssign  = errors.New("graph: no backend runs a node") // no participating backend supports it
	ErrBudget  = errors.New("graph: over the memory budget") // the plan needs more than it may use
)

// DType is the element type of a value in flight. Weights have quant types of their own.
type DType uint8

// The types of values.
const (
	F32 DType = iota
	I32
	KV // a handle that orders reads of a layer's KV cells after their writes; it holds no bytes
)

// String is the name that exports show.
func (t DType) String() string { return [...]string{"f32", "i32", "kv"}[t] }

// A Value is one output of a node.
type Value struct{ Node, Out int }

// A Tensor is the type, shape and layout of a value: element (i0,i1,i2,i3) lies Offset + Σ i·Stride elements into the
// storage of the value's root (see Graph.Root).
type Tensor struct {
	Type   DType
	Shape  [4]int // feature-major, unused trailing dimensions are 1
	Stride [4]int // in elements
	Offset int    // in elements
}

// Elements is the number of elements.
func (t Tensor) Elements() int { return t.Shape[0] * t.Shape[1] * t.Shape[2] * t.Shape[3] }

// Contiguous reports whether the elements lie in shape order without gaps.
func (t Tensor) Contiguous() bool { return t.Stride == contiguous(t.Shape) }

// Rows reports whether t is a matrix of contiguous rows at a constant pitch, the layout that row kernels read.
func (t Tensor) Rows() bool {
	return t.Stride[0] == 1 && t.Shape[2] == 1 && t.Shape[3] == 1
}

func contiguous(shape [4]int) (stride [4]int) {
	n := 1
	for i, d := range shape {
		stride[i] = n
		n *= d
	}
	return stride
}

func dense(t DType, dims ...int) Tensor {
	shape := [4]int{1, 1, 1, 1}
	copy(shape[:], dims)
	return Tensor{Type: t, Shape: shape, Stride: contiguous(shape)}
}

// Unassigned is the backend of a node before Assign.
const Unassigned = -1

// A Node is one operation. Nodes are values of the Graph that holds them and are not changed after building, except by
// passes.
type Node struct {
	Name    string // unique where it matters to people, such as "blk.3.attn_q"; views and inputs too
	Op      Op
	In      []Value
	Out     []Tensor
	Backend int  // index into the backends given to Assign, or Unassigned
	Dead    bool // a pass has replaced it; kept so that values keep their numbers
}

// A Graph is a forward pass: nodes in execution order, and the values that the caller reads afterwards.
type Graph struct {
	Nodes   []Node
	Outputs []Value
	Params  Params
}

// Tensor is the type and layout of a value.
func (g *Graph) Tensor(v Value) Tensor { return g.Nodes[v.Node].Out[v.Out] }

// isView reports whether an op only gives its input another layout.
func isView(op Op) bool {
	switch op.(type) {
	case Slice, Reshape, Permute:
		return true
	}
	return false
}

// Root is the value whose storage v lives in: v itself unless a chain of views leads elsewhere.
func (g *Graph) Root(v Value) Value {
	for isView(g.Nodes[v.Node].Op) {
		v = g.Nodes[v.Node].In[0]
	}
	return v
}

// Weights lists the weights that live nodes read, each once, in first-use order.
func (g *Graph) Weights() []Weight {
	seen := map[string]bool{}
	var all []Weight
	for i := range g.Nodes {
		if g.Nodes[i].Dead {
			continue
		}
		for _, w := range WeightsOf(g.Nodes[i].Op) {
			if !seen[w.Name] {
				seen[w.Name] = true
				all = append(all, w)
			}
		}
	}
	return all
}

// Equal reports whether two graphs have the same nodes, values, layouts, assignment and outputs. Names are part of it.
func (g *Graph) Equal(h *Graph) bool {
	if len(g.Nodes) != len(h.Nodes) || !slices.Equal(g.Outputs, h.Outputs) || g.Params != h.Params {
		return false
	}
	for i := range g.Nodes {
		a, b := &g.Nodes[i], &h.Nodes[i]
		if a.Name != b.Name || a.Op != b.Op || a.Backend != b.Backend || a.Dead != b.Dead ||
			!slices.Equal(a.In, b.In) || !slices.Equal(a.Out, b.Out) {
			return false
		}
	}
	return true
}

// Describe names a node for errors: its name, op and shapes.
func (g *Graph) Describe(i int) string {
	n := &g.Nodes[i]
	s := fmt.Sprintf("node %d %q (%s", i, n.Name, n.Op.Kind())
	for _, v := range n.In {
		t := g.Tensor(v)
		s += fmt.Sprintf(" %s%v", t.Type, dims(t.Shape))
	}
	s += " →"
	for _, t := range n.Out {
		s += fmt.Sprintf(" %s%v", t.Type, dims(t.Shape))
	}
	return s + ")"
}

// dims drops trailing ones of a shape, for people.
func dims(shape [4]int) []int {
	n := 4
	for n > 1 && shape[n-1] == 1 {
		n--
	}
	return shape[:n]
}
