package graph

import (
	"fmt"
	"math/bits"
	"strings"
)

// Alignment of every buffer, in bytes: a cache line, and the widest vector load.
const Alignment = 64

// A Buffer is memory that values with disjoint lifetimes share.
type Buffer struct {
	Backend int
	Bytes   int // a size class
	Offset  int // from the start of the backend's pool
}

// NoBuffer is the place of a value without bytes.
const NoBuffer = -1

// A Lifetime is one value's place and the nodes between which it lives.
type Lifetime struct {
	Value     Value
	Buffer    int // index into Plan.Buffers
	Bytes     int
	From, To  int   // made by node From, last read at node To; len(nodes) for what outlives the run
	InPlaceOf Value // the input whose memory it took over; Node is -1 where it has its own
}

// A Plan says where every value of a graph lies. It is a pure function of the graph.
type Plan struct {
	Buffers   []Buffer
	Lifetimes []Lifetime // in the order of their nodes; views have none of their own
	Pool      []int      // bytes of each backend's pool
	Live      int        // bytes that inputs and outputs hold between runs
	Peak      int        // largest sum of bytes of values alive at one node

	place [][]int // node, output → index into Lifetimes, or -1
}

// Place is the buffer of a value's root and whether it has one.
func (p *Plan) Place(g *Graph, v Value) (Buffer, bool) {
	r := g.Root(v)
	if k := p.place[r.Node][r.Out]; k >= 0 {
		return p.Buffers[p.Lifetimes[k].Buffer], true
	}
	return Buffer{Offset: NoBuffer}, false
}

// SizeClass rounds bytes up so that buffers of about equal size can stand in for each other: to a multiple of
// Alignment, and of an eighth of the power of two below for larger ones (waste at most 12.5%).
func SizeClass(bytes int) int {
	step := Alignment
	if bytes > 8*Alignment {
		step = max(step, 1<<(bits.Len(uint(bytes))-1)/8)
	}
	return (bytes + step - 1) / step * step
}

// NewPlan assigns buffers by liveness in execution order. Values die after their last reader; their buffers then serve
// later values of the same backend, the best-fitting one first. Inputs and outputs are never freed within a run. An op
// that can work in place takes over an input that dies with it.
func NewPlan(g *Graph) *Plan {
	p := &planner{g: g, plan: &Plan{place: make([][]int, len(g.Nodes))}}
	p.lastReads()
	backends := 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		p.plan.place[i] = make([]int, len(n.Out))
		for out := range n.Out {
			p.plan.place[i][out] = -1
		}
		if n.Dead || isView(n.Op) {
			continue
		}
		backends = max(backends, n.Backend+1)
		p.allocate(i)
		p.plan.Peak = max(p.plan.Peak, p.live)
		p.release(i)
	}
	p.plan.Live = p.live
	p.plan.Pool = make([]int, backends)
	for i := range p.plan.Buffers {
		b := &p.plan.Buffers[i]
		b.Offset = p.plan.Pool[b.Backend]
		p.plan.Pool[b.Backend] += b.Bytes
	}
	return p.plan
}

type planner struct {
	g    *Graph
	plan *Plan
	last [][]int // node, output → last reader of the value or of a view of it
	free []int   // buffers without a live value
	held []int   // lifetimes alive
	live int     // their bytes
}

func (p *planner) lastReads() {
	g := p.g
	p.last = make([][]int, len(g.Nodes))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		p.last[i] = make([]int, len(n.Out))
		for out := range n.Out {
			p.last[i][out] = i
			if _, leaf := n.Op.(Input); leaf {
				p.last[i][out] = len(g.Nodes)
			}
		}
		if n.Dead || isView(n.Op) {
			continue
		}
		for _, v := range n.In {
			r := g.Root(v)
			p.last[r.Node][r.Out] = max(p.last[r.Node][r.Out], i)
		}
	}
	for _, v := range g.Outputs {
		r := g.Root(v)
		p.last[r.Node][r.Out] = len(g.Nodes)
	}
}

func (p *planner) allocate(i int) {
	n := &p.g.Nodes[i]
	var taken []Value
	for out, t := range n.Out {
		if t.Type == KV || t.Elements() == 0 {
			continue
		}
		l := Lifetime{Value: Value{i, out}, Bytes: 4 * t.Elements(), From: i, To: p.last[i][out], InPlaceOf: Value{Node: -1}}
		if v, ok := p.inPlace(i, out, taken); ok {
			taken = append(taken, v)
			old := p.plan.place[v.Node][v.Out]
			l.InPlaceOf, l.Buffer = v, p.plan.Lifetimes[old].Buffer
			p.drop(old)
		} else {
			l.Buffer = p.buffer(n.Backend, SizeClass(l.Bytes))
		}
		p.plan.place[i][out] = len(p.plan.Lifetimes)
		p.held = append(p.held, len(p.plan.Lifetimes))
		p.plan.Lifetimes = append(p.plan.Lifetimes, l)
		p.live += l.Bytes
	}
}

// inPlace finds an input of node i whose memory its output may take over: whole and contiguous, of the same size and
// backend, read for the last time here, neither an input nor an output of the graph, and not taken by another output.
func (p *planner) inPlace(i, out int, taken []Value) (Value, bool) {
	n := &p.g.Nodes[i]
	for _, k := range inPlaceInputs(n.Op, out) {
		v := n.In[k]
		made := &p.g.Nodes[v.Node]
		at := p.plan.place[v.Node][v.Out]
		if at < 0 || isView(made.Op) || p.last[v.Node][v.Out] != i || contains(taken, v) || made.Backend != n.Backend {
			continue
		}
		if t := p.g.Tensor(v); t.Elements() == n.Out[out].Elements() && t.Contiguous() {
			return v, true
		}
	}
	return Value{}, false
}

// inPlaceInputs lists the inputs whose memory an output may take over, by op: those where output element i depends, of
// that input, on the same token's elements alone and kernels read a token before they write it.
func inPlaceInputs(op Op, out int) []int {
	switch op.(type) {
	case RMSNorm, HeadNorm, Bias, RoPE, Scale, Silu:
		return []int{0}
	case QKVStore:
		if out == 0 {
			return []int{0}
		}
	case Add, Mul, SwiGLU, AddRMSNorm:
		return []int{0, 1}
	}
	return nil
}

// buffer takes the smallest free buffer of the backend that holds class bytes without being more than twice as large,
// or makes one.
func (p *planner) buffer(backend, class int) int {
	best := -1
	for k, b := range p.free {
		buf := p.plan.Buffers[b]
		if buf.Backend == backend && buf.Bytes >= class && buf.Bytes <= 2*class &&
			(best < 0 || buf.Bytes < p.plan.Buffers[p.free[best]].Bytes) {
			best = k
		}
	}
	if best >= 0 {
		b := p.free[best]
		p.free = append(p.free[:best], p.free[best+1:]...)
		return b
	}
	p.plan.Buffers = append(p.plan.Buffers, Buffer{Backend: backend, Bytes: class})
	return len(p.plan.Buffers) - 1
}

// release returns the buffers of values that nobody reads after node i.
func (p *planner) release(i int) {
	kept := p.held[:0]
	for _, k := range p.held {
		if l := p.plan.Lifetimes[k]; l.To <= i {
			p.free = append(p.free, l.Buffer)
			p.live -= l.Bytes
		} else {
			kept = append(kept, k)
		}
	}
	p.held = kept
}

// drop ends a lifetime whose buffer another value takes over.
func (p *planner) drop(k int) {
	for j, h := range p.held {
		if h == k {
			p.held = append(p.held[:j], p.held[j+1:]...)
			p.live -= p.plan.Lifetimes[k].Bytes
			return
		}
	}
}

// String is the plan as a table, for people and for tests.
func (p *Plan) String() string {
	var b strings.Builder
	for i, buf := range p.Buffers {
		fmt.Fprintf(&b, "buffer %d: backend %d, offset %d, %d bytes\n", i, buf.Backend, buf.Offset, buf.Bytes)
	}
	for _, l := range p.Lifetimes {
		fmt.Fprintf(&b, "node %d.%d: buffer %d, %d bytes, alive %d-%d", l.Value.Node, l.Value.Out, l.Buffer, l.Bytes, l.From, l.To)
		if l.InPlaceOf.Node >= 0 {
			fmt.Fprintf(&b, ", in place of %d.%d", l.InPlaceOf.Node, l.InPlaceOf.Out)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "pool %v, live %d, peak %d\n", p.Pool, p.Live, p.Peak)
	return b.String()
}

// Memory is what a model needs on one backend, in bytes.
type Memory struct {
	Weights  int // as the backend keeps them
	KV       int // cells of every layer
	Pool     int // activations of the largest step
	Scratch  int // what kernels need beside them
	Live     int // of the pool, held between runs
	Peak     int // of the pool, alive at once
	Budget   int // what may be used, 0 for no limit
	Headroom int // Budget − Total, 0 without a limit
}

// Total is the sum that counts against the budget.
func (m Memory) Total() int { return m.Weights + m.KV + m.Pool + m.Scratch }

// Memory reports what the plan needs on a backend beside the given weights, cells and scratch memory, and refuses with
// ErrBudget what exceeds a budget above 0.
func (p *Plan) Memory(backend, weights, kv, scratch, budget int) (Memory, error) {
	m := Memory{Weights: weights, KV: kv, Scratch: scratch, Live: p.Live, Peak: p.Peak, Budget: budget}
	if backend < len(p.Pool) {
		m.Pool = p.Pool[backend]
	}
	if budget > 0 {
		m.Headroom = budget - m.Total()
		if m.Headroom < 0 {
			return m, fmt.Errorf("%w: weights %d + KV cells %d + activations %d + scratch %d = %d bytes, allowed are %d", ErrBudget,
				m.Weights, m.KV, m.Pool, m.Scratch, m.Total(), budget)
		}
	}
	return m, nil
}
