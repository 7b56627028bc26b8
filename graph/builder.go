package graph

import "fmt"

// A Builder appends nodes in execution order. Its methods return the value that a node makes; the first illegal node
// is remembered and reported by Build, so that model code reads without error checks.
type Builder struct {
	g      Graph
	inputs map[InputKind]Value
	err    error
}

// NewBuilder starts the graph of a step with the given Params.
func NewBuilder(p Params) *Builder {
	b := &Builder{g: Graph{Params: p}, inputs: map[InputKind]Value{}}
	if p.Tokens < 1 || p.Outputs < 0 || p.Outputs > p.Tokens {
		b.err = fmt.Errorf("%w: params ask for %d tokens and %d outputs", ErrIllegal, p.Tokens, p.Outputs)
	}
	return b
}

// Params are the ones that the builder started with.
func (b *Builder) Params() Params { return b.g.Params }

// Input is the leaf of the given kind; asking twice gives the same value.
func (b *Builder) Input(kind InputKind) Value {
	if v, ok := b.inputs[kind]; ok {
		return v
	}
	v := b.append(kind.String(), Input{kind}, nil, []Tensor{b.g.Params.input(kind)})
	b.inputs[kind] = v
	return v
}

// Node appends an op and returns its first output. After an illegal node, every later value is meaningless and Build fails.
func (b *Builder) Node(name string, op Op, in ...Value) Value {
	if b.err != nil {
		return Value{}
	}
	tensors := make([]Tensor, len(in))
	for i, v := range in {
		tensors[i] = b.g.Tensor(v)
	}
	out, err := infer(op, tensors)
	if err != nil {
		shapes := ""
		for _, t := range tensors {
			shapes += fmt.Sprintf(" %s%v", t.Type, dims(t.Shape))
		}
		b.err = fmt.Errorf("%w: %q (%s%s): %w", ErrIllegal, name, op.Kind(), shapes, err)
		return Value{}
	}
	return b.append(name, op, in, out)
}

func (b *Builder) append(name string, op Op, in []Value, out []Tensor) Value {
	b.g.Nodes = append(b.g.Nodes, Node{Name: name, Op: op, In: in, Out: out, Backend: Unassigned})
	return Value{Node: len(b.g.Nodes) - 1}
}

// Tensor is the type and layout of a value; zero once a node was illegal.
func (b *Builder) Tensor(v Value) Tensor {
	if b.err != nil {
		return Tensor{}
	}
	return b.g.Tensor(v)
}

// Output marks a value that the caller reads after a run.
func (b *Builder) Output(v Value) { b.g.Outputs = append(b.g.Outputs, v) }

// Build ends building and returns the graph, or the first error. Nodes that neither an output nor a KV store needs are
// dead.
func (b *Builder) Build() (*Graph, error) {
	if b.err != nil {
		return nil, b.err
	}
	prune(&b.g)
	return &b.g, nil
}

// prune marks the nodes dead whose values nobody needs.
func prune(g *Graph) {
	needed := make([]bool, len(g.Nodes))
	for _, v := range g.Outputs {
		needed[v.Node] = true
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		if _, store := n.Op.(StoreKV); !needed[i] && !store {
			n.Dead = true
			continue
		}
		for _, v := range n.In {
			needed[v.Node] = true
		}
	}
}
