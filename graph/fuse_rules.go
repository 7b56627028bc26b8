package graph

// fuseSwiGLU: Mul(Silu(gate), up), with Silu on either side.
func fuseSwiGLU(f *fuser, i int) bool {
	mul := &f.g.Nodes[i]
	if _, ok := mul.Op.(Mul); !ok {
		return false
	}
	for side := range 2 {
		silu, only := f.inner(mul.In[side], mul.Backend)
		if _, ok := silu.Op.(Silu); ok && only {
			return f.replace(i, SwiGLU{}, []Value{silu.In[0], mul.In[1-side]}, mul.In[side].Node)
		}
	}
	return false
}

// fuseFFN: SwiGLU(MatMul(x), MatMul(x)).
func fuseFFN(f *fuser, i int) bool {
	act := &f.g.Nodes[i]
	if _, ok := act.Op.(SwiGLU); !ok {
		return false
	}
	gate, onlyGate := f.inner(act.In[0], act.Backend)
	up, onlyUp := f.inner(act.In[1], act.Backend)
	g, isGate := gate.Op.(MatMul)
	u, isUp := up.Op.(MatMul)
	if !onlyGate || !onlyUp || !isGate || !isUp || gate.In[0] != up.In[0] {
		return false
	}
	return f.replace(i, GateUp{Gate: g.W, Up: u.W}, []Value{gate.In[0]}, act.In[0].Node, act.In[1].Node)
}

// fuseQKV: the next products of a product's own input join it as one node; it stands where the first one stood.
func fuseQKV(f *fuser, i int) bool {
	first := &f.g.Nodes[i]
	m, ok := first.Op.(MatMul)
	if !ok {
		return false
	}
	op := MultiMatMul{Ws: [4]Weight{m.W}, N: 1}
	var joined []int
	for k := i + 1; k < len(f.g.Nodes) && op.N < len(op.Ws); k++ {
		n := &f.g.Nodes[k]
		o, ok := n.Op.(MatMul)
		if !ok || n.Dead || n.Backend != first.Backend || n.In[0] != first.In[0] {
			continue
		}
		op.Ws[op.N] = o.W
		op.N++
		joined = append(joined, k)
	}
	if len(joined) == 0 {
		return false
	}
	if !f.replace(i, op, first.In, joined...) {
		return false
	}
	for out, k := range joined {
		f.rewire(Value{Node: k}, Value{Node: i, Out: out + 1})
	}
	return true
}

// fuseAddNorm: the first RMSNorm that reads a residual sum moves up to the sum.
func fuseAddNorm(f *fuser, i int) bool {
	add := &f.g.Nodes[i]
	if _, ok := add.Op.(Add); !ok {
		return false
	}
	sum := Value{Node: i}
	for k := i + 1; k < len(f.g.Nodes); k++ {
		n := &f.g.Nodes[k]
		norm, ok := n.Op.(RMSNorm)
		if !ok || n.Dead || n.Backend != add.Backend || n.In[0] != sum {
			continue
		}
		if !f.replace(i, AddRMSNorm(norm), add.In, k) {
			return false
		}
		f.rewire(Value{Node: k}, Value{Node: i, Out: 1})
		return true
	}
	return false
}

// chain is a projection on its way to the KV cells or to attention: product [+ bias] [→ head norm] [→ RoPE].
type chain struct {
	source Value // the product
	bias   Weight
	norm   Weight
	eps    float32
	rope   Rope
	pos    Value
	roped  bool
	nodes  []int // bias, norm and rope nodes, which vanish
}

// follow walks a chain backwards from its last value; only nodes that nobody else reads belong to it.
func (f *fuser) follow(v Value, backend int) chain {
	var c chain
	if n, only := f.inner(v, backend); only {
		if r, ok := n.Op.(RoPE); ok {
			c.rope, c.pos, c.roped = r.Rope, n.In[1], true
			c.nodes = append(c.nodes, v.Node)
			v = n.In[0]
		}
	}
	if n, only := f.inner(v, backend); only && c.roped {
		if h, ok := n.Op.(HeadNorm); ok {
			c.norm, c.eps = h.W, h.Eps
			c.nodes = append(c.nodes, v.Node)
			v = n.In[0]
		}
	}
	if n, only := f.inner(v, backend); only {
		if b, ok := n.Op.(Bias); ok {
			c.bias = b.W
			c.nodes = append(c.nodes, v.Node)
			v = n.In[0]
		}
	}
	c.source = v
	return c
}

// fuseStore: StoreKV with the chains of K, V and of the Q that attends to it. It stands where the store stood, so
// nobody may read the rotated Q before that.
func fuseStore(f *fuser, i int, norms bool) bool {
	store := &f.g.Nodes[i]
	op, ok := store.Op.(StoreKV)
	if !ok || f.uses[i] != 1 {
		return false
	}
	attn := -1
	for k := i + 1; k < len(f.g.Nodes) && attn < 0; k++ {
		if _, ok := f.g.Nodes[k].Op.(Attention); ok && !f.g.Nodes[k].Dead && f.g.Nodes[k].In[1] == (Value{Node: i}) {
			attn = k
		}
	}
	if attn < 0 {
		return false
	}
	rotated := f.g.Nodes[attn].In[0]
	q, k, v := f.follow(rotated, store.Backend), f.follow(store.In[0], store.Backend), f.follow(store.In[1], store.Backend)
	switch {
	case !q.roped || !k.roped || v.roped || q.rope != k.rope || q.pos != k.pos:
		return false
	case q.norm.Present() != norms || k.norm.Present() != norms || q.eps != k.eps:
		return false
	case f.readBefore(rotated, i):
		return false
	case q.source.Node >= i || q.pos.Node >= i:
		return false
	case !f.own(k.source) || !f.own(v.source): // the fused kernel changes them in place
		return false
	}
	fused := QKVStore{
		Layer: op.Layer, BiasQ: q.bias, BiasK: k.bias, BiasV: v.bias, NormQ: q.norm, NormK: k.norm, Eps: q.eps, Rope: q.rope,
	}
	dead := append(append(q.nodes, k.nodes...), v.nodes...)
	if !f.replace(i, fused, []Value{q.source, k.source, v.source, q.pos, store.In[2]}, dead...) {
		return false
	}
	f.rewire(Value{Node: i}, Value{Node: i, Out: 1}) // the handle
	f.rewire(rotated, Value{Node: i})
	return true
}

// own reports whether v is memory of its own that one node alone reads.
func (f *fuser) own(v Value) bool {
	n := &f.g.Nodes[v.Node]
	_, leaf := n.Op.(Input)
	return !leaf && !isView(n.Op) && f.uses[v.Node] == 1
}
