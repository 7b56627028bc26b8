package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// edge is a transition on one byte of lo..hi.
type edge struct {
	lo, hi byte
	to     int32
}

// call enters the automaton at state to and continues at state ret when that accepts.
type call struct{ to, ret int32 }

// node is one automaton state. Nodes of schemas are expanded from their description when first met.
type node struct {
	edges    []edge
	eps      []int32
	calls    []call
	accept   bool
	expanded bool
}

// returnsOnly reports whether the node can do nothing but return, so that a call which continues
// there needs no frame of its own.
func (n *node) returnsOnly() bool {
	return n.accept && len(n.edges) == 0 && len(n.eps) == 0 && len(n.calls) == 0
}

// frame is a pending return; nil is the bottom. Frames are interned: equal stacks are equal pointers.
type frame struct {
	ret    int32
	depth  int32
	id     uint64
	parent *frame
	popped *position // where returning through this frame leads, once computed
}

type frameKey struct {
	ret    int32
	parent *frame
}

// config is one parse: an automaton state and its pending returns.
type config struct {
	node int32
	f    *frame
}

// position is an interned set of configs that have byte transitions, closed under calls and returns.
type position struct {
	configs  []config
	complete bool  // the text may end here
	escaped  bool  // a return through the hole frame happened (mask computation only)
	limit    error // of a dead position: the limit that ended its parses, if one did
	next     *[256]*position
}

func (p *position) dead() bool { return len(p.configs) == 0 && !p.complete && !p.escaped }

// automaton holds the nodes and the positions reached so far. Its methods need mu.
type automaton struct {
	mu     sync.Mutex
	nodes  []node
	start  int32
	expand func(a *automaton, id int32) // describes a lazy node; nil for GBNF
	// canonical returns a node with the mask of node id for pieces of up to deep bytes; nil: id itself
	canonical func(id int32, deep int) int32
	resolve   func(id int32, b byte) int32 // the target of a lazyEdge of node id
	maxNodes  int                          // MaxLazyStates; tests lower it
	full      error                        // the limit on lazy nodes, once it was met

	frames    map[frameKey]*frame
	positions map[string]*position
	serial    uint64
	hole      *frame
	deadPos   *position
	startPos  *position

	work []config
	seen map[config]struct{}
	key  []byte
}

// maxCachedPositions bounds the memory of remembered positions; the cache starts anew beyond it.
const maxCachedPositions = 1 << 14

func newAutomaton() *automaton {
	a := &automaton{seen: map[config]struct{}{}, deadPos: &position{}, maxNodes: MaxLazyStates}
	a.hole = &frame{ret: -1, id: 1}
	a.serial = 1
	a.forget()
	return a
}

// forget drops remembered positions; those that runs still hold stay valid.
func (a *automaton) forget() {
	a.frames = map[frameKey]*frame{}
	a.positions = map[string]*position{}
	a.startPos = nil
}

func (a *automaton) addNode() int32 {
	a.nodes = append(a.nodes, node{expanded: true})
	return int32(len(a.nodes) - 1)
}

func (a *automaton) at(id int32) *node {
	if n := &a.nodes[id]; n.expanded {
		return n
	}
	a.nodes[id].expanded = true
	a.expand(a, id)
	return &a.nodes[id]
}

func (a *automaton) push(ret int32, parent *frame) *frame {
	k := frameKey{ret, parent}
	if f := a.frames[k]; f != nil {
		return f
	}
	a.serial++
	f := &frame{ret: ret, parent: parent, id: a.serial, depth: 1}
	if parent != nil {
		f.depth = parent.depth + 1
	}
	a.frames[k] = f
	return f
}

// close builds the position reached from the configs in a.work, following calls and returns.
func (a *automaton) close() *position {
	if len(a.seen) > 256 {
		a.seen = map[config]struct{}{}
	}
	clear(a.seen)
	var limit error
	p := position{}
	for len(a.work) > 0 {
		c := a.work[len(a.work)-1]
		a.work = a.work[:len(a.work)-1]
		if _, ok := a.seen[c]; ok {
			continue
		}
		if len(a.seen) >= 16*MaxAmbiguity || len(p.configs) >= MaxAmbiguity {
			a.work = a.work[:0]
			return &position{limit: fmt.Errorf("more than %d parses of one text: %w (MaxAmbiguity)", MaxAmbiguity, ErrLimit)}
		}
		a.seen[c] = struct{}{}
		n := a.at(c.node)
		if len(n.edges) > 0 {
			p.configs = append(p.configs, c)
		}
		if n.accept {
			switch c.f {
			case nil:
				p.complete = true
			case a.hole:
				p.escaped = true
			default:
				a.work = append(a.work, config{c.f.ret, c.f.parent})
			}
		}
		for _, to := range n.eps {
			a.work = append(a.work, config{to, c.f})
		}
		for _, cl := range n.calls {
			f := c.f
			if !a.at(cl.ret).returnsOnly() {
				if f != nil && f.depth >= MaxStack {
					limit = fmt.Errorf("text nests deeper than %d: %w (MaxStack)", MaxStack, ErrLimit)
					continue
				}
				f = a.push(cl.ret, f)
			}
			a.work = append(a.work, config{cl.to, f})
		}
	}
	if limit == nil {
		limit = a.full
	}
	if limit != nil && p.dead() {
		return &position{limit: limit}
	}
	return a.intern(p)
}

func (a *automaton) intern(p position) *position {
	if p.dead() {
		return a.deadPos
	}
	slices.SortFunc(p.configs, func(x, y config) int {
		if x.node != y.node {
			return int(x.node) - int(y.node)
		}
		return int(int64(x.f.serial()) - int64(y.f.serial()))
	})
	key := a.key[:0]
	flags := byte(0)
	if p.complete {
		flags |= 1
	}
	if p.escaped {
		flags |= 2
	}
	key = append(key, flags)
	for _, c := range p.configs {
		key = binary.LittleEndian.AppendUint32(key, uint32(c.node))
		key = binary.LittleEndian.AppendUint64(key, c.f.serial())
	}
	a.key = key
	if q := a.positions[string(key)]; q != nil {
		return q
	}
	if len(a.positions) >= maxCachedPositions {
		a.forget()
	}
	q := new(position)
	*q = p
	a.positions[string(key)] = q
	return q
}

func (f *frame) serial() uint64 {
	if f == nil {
		return 0
	}
	return f.id
}

// step returns the position after byte b.
func (a *automaton) step(p *position, b byte) *position {
	if p.next != nil {
		if q := p.next[b]; q != nil {
			return q
		}
	} else {
		p.next = new([256]*position)
	}
	a.work = a.work[:0]
	for _, c := range p.configs {
		for _, e := range a.nodes[c.node].edges {
			if e.lo <= b && b <= e.hi {
				to := e.to
				if to == lazyEdge {
					to = a.resolve(c.node, b)
				}
				a.work = append(a.work, config{to, c.f})
			}
		}
	}
	q := a.deadPos
	if len(a.work) > 0 {
		q = a.close()
	}
	p.next[b] = q
	return q
}

// pop returns the position after returning through f, which must be neither nil nor the hole.
func (a *automaton) pop(f *frame) *position {
	if f.popped == nil {
		a.work = append(a.work[:0], config{f.ret, f.parent})
		f.popped = a.close()
	}
	return f.popped
}

// begin returns the position before the first byte.
func (a *automaton) begin() *position {
	if a.startPos == nil {
		a.work = append(a.work[:0], config{a.start, nil})
		a.startPos = a.close()
	}
	return a.startPos
}
