package grammar

import (
	"fmt"
	"slices"
	"sort"
)

// lazyKind tells what a lazily expanded node of a schema's automaton stands for.
type lazyKind uint8

const (
	lazyValue   lazyKind = iota // before a value of term a
	lazyLiteral                 // in the literal trie a, at node b
	lazyNumber                  // in the number automaton a, at state b
	lazyString                  // inside a string; see stringNode
	lazyArray                   // inside array a; see arrayNode
	lazyObject                  // inside object a; see objectNode
	lazyKey                     // inside the name of a property of object a, at trie node lo
	lazyTracked                 // inside a member name that must differ from those before it
)

// lazyNode describes a node; equal descriptions are one node.
type lazyNode struct {
	kind    lazyKind
	phase   int32
	a, b    int32
	lo, hi  int32
	n       uint64
	s, text string
}

// machine expands the shapes of a compiler into automaton nodes as matching meets them.
type machine struct {
	c      *compiler
	a      *automaton
	number func(*numSet) (*dfa, error)
	ids    map[lazyNode]int32
	descr  map[int32]lazyNode

	literals []*literalTrie
	litOf    map[termID]int32
	dfas     []*dfa
	dfaOf    map[*dfa]int32
	runes    map[pair][]runeEdge
	numbers  map[termID]int32
	arrays   []*arrayInfo
	arrayOf  map[*arrShape]int32
	objects  []*objectInfo
	objectOf map[*objShape]int32
	infinite map[*dfa][]int8 // by state: 1 if infinitely many texts follow, -1 if not, 0 if unknown

	done, space, dead int32
}

// maxIndent bounds the blanks after a line end between tokens.
const maxIndent = 20

// machine returns the machine of the compiled schema. Its numbers are those that number makes of the sets of the schema:
// [numSet.written] to generate, [numSet.texts] to match.
func (c *compiler) machine(number func(*numSet) (*dfa, error)) (*machine, error) {
	m := &machine{
		c: c, number: number, a: newAutomaton(), ids: map[lazyNode]int32{}, descr: map[int32]lazyNode{},
		litOf: map[termID]int32{}, dfaOf: map[*dfa]int32{}, runes: map[pair][]runeEdge{}, numbers: map[termID]int32{},
		arrayOf: map[*arrShape]int32{}, objectOf: map[*objShape]int32{}, infinite: map[*dfa][]int8{},
	}
	m.dead = m.a.addNode()
	m.done = m.a.addNode()
	m.a.nodes[m.done].accept = true
	m.space = m.a.addNode()
	// White space: nothing, one blank, or a line end and up to maxIndent blanks.
	line := m.done
	for range maxIndent {
		n := m.a.addNode()
		m.a.nodes[n] = node{expanded: true, accept: true, edges: []edge{{' ', ' ', line}, {'\t', '\t', line}}}
		line = n
	}
	m.a.nodes[m.space] = node{expanded: true, accept: true, edges: []edge{{' ', ' ', m.done}, {'\n', '\n', line}}}
	if err := m.prepare(); err != nil {
		return nil, err
	}
	m.a.expand = m.expand
	m.a.canonical, m.a.resolve = m.canonical, m.resolve
	m.a.start = m.id(lazyNode{kind: lazyValue, a: int32(c.root)})
	return m, nil
}

// prepare builds what can fail, so that matching cannot.
func (m *machine) prepare() error {
	c := m.c
	for id := range termID(len(c.terms)) {
		t := c.terms[id]
		if id == trueTerm {
			t.shape, t.productive = anyShape(), true
			c.terms[id] = term{kind: termTrue, shape: t.shape, solved: true, productive: true}
		}
		if t.shape == nil || !t.productive {
			continue
		}
		if !t.shape.num.empty() {
			d, err := m.number(t.shape.num)
			if err != nil {
				return err
			}
			m.numbers[id] = m.dfaID(d)
		}
		m.addLiterals(id, t.shape)
		for _, a := range t.shape.arrs {
			if err := m.addArray(a); err != nil {
				return err
			}
		}
		for _, o := range t.shape.objs {
			if err := m.addObject(o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *machine) dfaID(d *dfa) int32 {
	id, ok := m.dfaOf[d]
	if !ok {
		id = int32(len(m.dfas))
		m.dfas = append(m.dfas, d)
		m.dfaOf[d] = id
	}
	return id
}

// id returns the node of a description.
func (m *machine) id(k lazyNode) int32 {
	if id, ok := m.ids[k]; ok {
		return id
	}
	if len(m.a.nodes) >= m.a.maxNodes {
		m.a.full = fmt.Errorf("text needs over %d automaton states: %w (MaxLazyStates)", m.a.maxNodes, ErrLimit)
		return m.dead
	}
	id := int32(len(m.a.nodes))
	m.a.nodes = append(m.a.nodes, node{})
	m.ids[k] = id
	m.descr[id] = k
	return id
}

func (m *machine) value(t termID) int32 { return m.id(lazyNode{kind: lazyValue, a: int32(t)}) }

func (m *machine) expand(a *automaton, id int32) {
	k := m.descr[id]
	var n node
	switch k.kind {
	case lazyValue:
		n = m.valueNode(termID(k.a))
	case lazyLiteral:
		n = m.literalNode(k)
	case lazyNumber:
		n = m.numberNode(k)
	case lazyString:
		n = m.stringNode(k)
	case lazyArray:
		n = m.arrayNode(k)
	case lazyObject:
		n = m.objectNode(k)
	case lazyKey:
		n = m.keyNode(k)
	case lazyTracked:
		n = m.trackedNode(k)
	}
	n.expanded = true
	a.nodes[id] = n
}

// valueNode begins a value of any of the kinds in the term's shape.
func (m *machine) valueNode(t termID) node {
	var n node
	if !m.c.terms[t].productive {
		return n
	}
	s := m.c.terms[t].shape
	if lit, ok := m.litOf[t]; ok {
		n.eps = append(n.eps, m.id(lazyNode{kind: lazyLiteral, a: lit}))
	}
	if d, ok := m.numbers[t]; ok {
		n.eps = append(n.eps, m.id(lazyNode{kind: lazyNumber, a: d, b: m.dfas[d].start}))
	}
	for _, p := range s.strs {
		if p.list == nil {
			n.edges = append(n.edges, edge{'"', '"', m.id(m.stringStart(p))})
		}
	}
	for _, a := range s.arrs {
		if id, ok := m.arrayOf[a]; ok {
			n.edges = append(n.edges, edge{'[', '[', m.id(lazyNode{kind: lazyArray, a: id, phase: arrayOpen})})
		}
	}
	for _, o := range s.objs {
		if id, ok := m.objectOf[o]; ok {
			n.edges = append(n.edges, edge{'{', '{', m.objects[id].node(m, objectOpen, m.objects[id].begin(), 0)})
		}
	}
	return n
}

// literalTrie holds the texts of null, booleans and listed strings.
type literalTrie struct {
	texts []string // sorted
}

func (m *machine) addLiterals(t termID, s *shape) {
	var texts []string
	if s.null {
		texts = append(texts, "null")
	}
	if s.yes {
		texts = append(texts, "true")
	}
	if s.no {
		texts = append(texts, "false")
	}
	for _, p := range s.strs {
		for _, str := range p.list {
			texts = append(texts, spellings(str)...)
		}
	}
	if len(texts) == 0 {
		return
	}
	slices.Sort(texts)
	m.litOf[t] = int32(len(m.literals))
	m.literals = append(m.literals, &literalTrie{slices.Compact(texts)})
}

// literalNode: the texts lo..hi (hi exclusive; 0,0 at the start means all) share their first b bytes.
func (m *machine) literalNode(k lazyNode) node {
	texts := m.literals[k.a].texts
	lo, hi := int(k.lo), int(k.hi)
	if hi == 0 {
		hi = len(texts)
	}
	return m.branch(texts, lo, hi, int(k.b), func(b byte, lo, hi int) int32 {
		return m.id(lazyNode{kind: lazyLiteral, a: k.a, b: k.b + 1, lo: int32(lo), hi: int32(hi)})
	})
}

// branch returns the node of a sorted list of texts lo..hi that share depth bytes.
func (m *machine) branch(texts []string, lo, hi, depth int, child func(b byte, lo, hi int) int32) node {
	var n node
	if len(texts[lo]) == depth {
		n.accept = true
		lo++
	}
	for lo < hi {
		b := texts[lo][depth]
		end := lo + sort.Search(hi-lo, func(i int) bool { return texts[lo+i][depth] > b })
		n.edges = append(n.edges, edge{b, b, child(b, lo, end)})
		lo = end
	}
	return n
}

func (m *machine) numberNode(k lazyNode) node {
	d := m.dfas[k.a]
	n := node{accept: d.accept[k.b]}
	for b := range 256 {
		to := d.step(k.b, byte(b))
		if to == 0 {
			continue
		}
		n.addByte(byte(b), m.id(lazyNode{kind: lazyNumber, a: k.a, b: to}))
	}
	return n
}

// addByte adds a transition on b, widening the last edge where possible. Bytes must come in order.
func (n *node) addByte(b byte, to int32) {
	if k := len(n.edges) - 1; k >= 0 && n.edges[k].to == to && int(n.edges[k].hi)+1 == int(b) {
		n.edges[k].hi = b
		return
	}
	n.edges = append(n.edges, edge{b, b, to})
}
