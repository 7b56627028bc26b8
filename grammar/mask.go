package grammar

import (
	"math"
	"math/bits"
)

// Bitset is a set of token ids: id is in it if bit id%64 of word id/64 is set.
type Bitset []uint64

// Has reports whether id is in the set.
func (b Bitset) Has(id int32) bool {
	return id >= 0 && int(id)>>6 < len(b) && b[id>>6]>>(uint(id)&63)&1 != 0
}

// Count returns the number of ids in the set.
func (b Bitset) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

func (b Bitset) add(id int32) { b[id>>6] |= 1 << (uint(id) & 63) }

func (b Bitset) or(c Bitset) {
	for i, w := range c {
		b[i] |= w
	}
}

// openMask is what a node allows whatever its stack: tokens that stay inside its rule, and the trie
// nodes at which the rule can return.
type openMask struct {
	tokens  Bitset
	returns []int32
}

// Bounds on remembered masks (about 19 KiB each for a vocabulary of 152k); beyond one its cache starts anew.
const (
	maxOpenMasks = 2048
	maxMasks     = 512
)

// Matcher joins a Grammar with a Vocab and remembers what was computed for the pair.
// It is safe for concurrent use.
type Matcher struct {
	g     *Grammar
	v     *Vocab
	open  map[int32]*openMask
	masks map[*position]Bitset
	stack []*position
}

// Bind joins the grammar with a vocabulary.
func (g *Grammar) Bind(v *Vocab) *Matcher {
	return &Matcher{
		g: g, v: v,
		open:  map[int32]*openMask{},
		masks: map[*position]Bitset{},
		stack: make([]*position, v.deep+1),
	}
}

func (m *Matcher) newSet() Bitset { return make(Bitset, (len(m.v.pieces)+63)/64) }

// walk visits the descendants of trie node n (-1: all) that stay alive from position p, adds their
// tokens to set, and appends the nodes at which the hole frame returned to returns, if not nil.
func (m *Matcher) walk(n int32, p *position, set Bitset, returns *[]int32) {
	v, a := m.v, m.g.a
	lo, hi, base := int32(0), int32(len(v.byte)), int32(0)
	if n >= 0 {
		lo, hi, base = n+1, v.end[n], v.depth[n]
	}
	m.stack[0] = p
	for i := lo; i < hi; {
		d := v.depth[i] - base
		from := m.stack[d-1]
		var q *position
		if from.next != nil {
			q = from.next[v.byte[i]]
		}
		if q == nil {
			q = a.step(from, v.byte[i])
		}
		if q == a.deadPos || q.dead() {
			i = v.end[i]
			continue
		}
		if q.escaped && returns != nil {
			*returns = append(*returns, i)
		}
		if len(q.configs) > 0 || q.complete {
			for _, id := range v.ended(i) {
				set.add(id)
			}
		}
		m.stack[d] = q
		i++
	}
}

// openMask returns what node id allows whatever its stack.
func (m *Matcher) openMask(id int32) *openMask {
	if m.g.a.canonical != nil {
		id = m.g.a.canonical(id, m.v.deep)
	}
	if o := m.open[id]; o != nil {
		return o
	}
	if len(m.open) >= maxOpenMasks {
		m.open = map[int32]*openMask{}
	}
	o := &openMask{tokens: m.newSet()}
	m.g.a.at(id)
	start := m.g.a.intern(position{configs: []config{{id, m.g.a.hole}}})
	m.walk(-1, start, o.tokens, &o.returns)
	m.open[id] = o
	return o
}

// mask returns the set of tokens allowed at p. The caller must not change it.
func (m *Matcher) mask(p *position) Bitset {
	if b := m.masks[p]; b != nil {
		return b
	}
	if len(m.masks) >= maxMasks {
		m.masks = map[*position]Bitset{}
	}
	set := m.newSet()
	for _, c := range p.configs {
		o := m.openMask(c.node)
		set.or(o.tokens)
		for _, n := range o.returns {
			if c.f == nil {
				for _, id := range m.v.ended(n) {
					set.add(id)
				}
				continue
			}
			q := m.g.a.pop(c.f)
			if q.dead() {
				continue
			}
			for _, id := range m.v.ended(n) {
				set.add(id)
			}
			m.walk(n, q, set, nil)
		}
	}
	if p.complete {
		for _, id := range m.v.eog {
			set.add(id)
		}
	}
	m.masks[p] = set
	return set
}

// forbid sets the logits of the tokens outside set to -Inf and reports whether any token is left.
func (b Bitset) forbid(logits []float32) bool {
	inf := float32(math.Inf(-1))
	left := false
	for w := 0; w*64 < len(logits); w++ {
		part := logits[w*64 : min(w*64+64, len(logits))]
		word := uint64(0)
		if w < len(b) {
			word = b[w]
		}
		if word != 0 {
			left = true
		}
		if word == math.MaxUint64 {
			continue
		}
		for i := range part {
			if word>>uint(i)&1 == 0 {
				part[i] = inf
			}
		}
	}
	return left
}
