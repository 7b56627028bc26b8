package grammar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// A term denotes a set of JSON values: a schema of the document, a conjunction of terms, or a complement.
// Terms are interned, so that recursion through $ref comes back to the same term.
type termID int32

const (
	falseTerm termID = 0 // no value
	trueTerm  termID = 1 // every value
)

type termKind uint8

const (
	termFalse termKind = iota
	termTrue
	termNode
	termAnd
	termNot
)

type term struct {
	kind termKind
	node *jsonValue // of termNode
	kids []termID   // of termAnd (two or more, sorted) and termNot (one)

	shape      *shape // once known
	open       bool   // its shape is being worked out
	solved     bool
	productive bool // some value is in the set; meaningful when solved
	empty      bool // proven to hold no value
}

// compiler turns a schema document into terms, their shapes, and an automaton.
type compiler struct {
	doc       *jsonValue
	where     map[*jsonValue]location
	resources map[string]*jsonValue // by URI without fragment
	anchors   map[string]*jsonValue // by URI with fragment

	terms    []term
	termIDs  map[string]termID
	patterns map[string]*dfa
	work     int // automaton states built so far
	depth    int // nesting of shape computations
	root     termID
	m        *machine
}

// maxWork bounds the automaton transitions that are built for one schema, temporary ones included, and
// the steps of merging subschemas.
const maxWork = 1 << 22

// spend adds the size of a built automaton to the work done.
func (c *compiler) spend(d *dfa, err error) (*dfa, error) {
	if err != nil {
		return nil, err
	}
	if c.work += d.cost; c.work > maxWork {
		return nil, fmt.Errorf("constraints need over %d transitions in all: %w", maxWork, ErrLimit)
	}
	return d, nil
}

func (c *compiler) intern(key string, t term) (termID, error) {
	if id, ok := c.termIDs[key]; ok {
		return id, nil
	}
	if len(c.terms) >= MaxTerms {
		return 0, fmt.Errorf("over %d combinations of subschemas: %w (MaxTerms)", MaxTerms, ErrLimit)
	}
	id := termID(len(c.terms))
	c.terms = append(c.terms, t)
	c.termIDs[key] = id
	return id, nil
}

// nodeTerm returns the term of a schema in the document.
func (c *compiler) nodeTerm(v *jsonValue) (termID, error) {
	switch {
	case v.kind == jsonTrue || v.kind == jsonObject && len(v.items) == 0:
		return trueTerm, nil
	case v.kind == jsonFalse:
		return falseTerm, nil
	case v.kind != jsonObject:
		return 0, fmt.Errorf("%s: a schema is an object or a boolean: %w", c.where[v].path, ErrSyntax)
	}
	return c.intern(fmt.Sprintf("n%p", v), term{kind: termNode, node: v})
}

func (c *compiler) and(ts ...termID) (termID, error) {
	var kids []termID
	for _, t := range ts {
		switch {
		case t == falseTerm:
			return falseTerm, nil
		case t == trueTerm:
		case c.terms[t].kind == termAnd:
			kids = append(kids, c.terms[t].kids...)
		default:
			kids = append(kids, t)
		}
	}
	slices.Sort(kids)
	kids = slices.Compact(kids)
	for _, k := range kids {
		if c.terms[k].kind == termNot && slices.Contains(kids, c.terms[k].kids[0]) {
			return falseTerm, nil
		}
	}
	switch len(kids) {
	case 0:
		return trueTerm, nil
	case 1:
		return kids[0], nil
	}
	key := []byte{'&'}
	for _, k := range kids {
		key = binary.LittleEndian.AppendUint32(key, uint32(k))
	}
	return c.intern(string(key), term{kind: termAnd, kids: kids})
}

func (c *compiler) not(t termID) (termID, error) {
	switch {
	case t == falseTerm:
		return trueTerm, nil
	case t == trueTerm:
		return falseTerm, nil
	case c.terms[t].kind == termNot:
		return c.terms[t].kids[0], nil
	}
	return c.intern(fmt.Sprintf("!%d", t), term{kind: termNot, kids: []termID{t}})
}

// errCycle is returned where the shape of a term is asked for while it is being worked out.
var errCycle = errors.New("the schema refers to itself without a value in between")

// shapeOf returns the shape of a term; the caller must not change it.
func (c *compiler) shapeOf(id termID) (*shape, error) {
	if s := c.terms[id].shape; s != nil {
		return s, nil
	}
	if c.terms[id].open {
		return nil, fmt.Errorf("%w: %w", errCycle, ErrUnsupported)
	}
	if c.depth >= 4*MaxNesting {
		return nil, fmt.Errorf("subschemas nest deeper than %d: %w", 4*MaxNesting, ErrLimit)
	}
	c.terms[id].open = true
	c.depth++
	s, err := c.makeShape(id)
	c.depth--
	c.terms[id].open = false
	if err != nil {
		return nil, err
	}
	c.terms[id].shape = s
	return s, nil
}

func (c *compiler) makeShape(id termID) (*shape, error) {
	t := c.terms[id]
	switch t.kind {
	case termFalse:
		return &shape{}, nil
	case termTrue:
		return anyShape(), nil
	case termNode:
		return c.nodeShape(t.node)
	case termNot:
		s, err := c.shapeOf(t.kids[0])
		if err != nil {
			return nil, err
		}
		return c.complement(s)
	}
	s := anyShape()
	for _, k := range t.kids {
		ks, err := c.shapeOf(k)
		if err != nil {
			return nil, err
		}
		if s, err = c.intersect(s, ks); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// provablyEmpty reports whether a term is shown to hold no value by looking a few levels deep. A false
// answer proves nothing; solve decides exactly.
func (c *compiler) provablyEmpty(id termID, levels int) bool {
	if id == falseTerm || c.terms[id].empty {
		return true
	}
	if id == trueTerm || levels == 0 || c.terms[id].open {
		return false
	}
	if c.terms[id].solved {
		return !c.terms[id].productive
	}
	s, err := c.shapeOf(id)
	if err != nil {
		return false
	}
	c.terms[id].open = true // a term that contains itself is not judged by that
	defer func() { c.terms[id].open = false }()
	if s.null || s.yes || s.no || !s.num.empty() || len(s.strs) > 0 {
		return false
	}
	for _, a := range s.arrs {
		if !c.arrayEmpty(a, levels-1) {
			return false
		}
	}
	for _, o := range s.objs {
		if !c.objectEmpty(o, levels-1) {
			return false
		}
	}
	c.terms[id].empty = true
	return true
}

// proofLevels is how deep provablyEmpty looks when alternatives are dropped early.
const proofLevels = 4

// solve decides for root and every term reachable from it whether some value is in it: the least fixed
// point, so that recursion without an end counts as empty.
func (c *compiler) solve(root termID) error {
	var order []termID
	seen := map[termID]bool{}
	work := []termID{root}
	deps := map[termID][]termID{}
	for len(work) > 0 {
		id := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[id] || c.terms[id].solved {
			continue
		}
		seen[id] = true
		order = append(order, id)
		s, err := c.shapeOf(id)
		if err != nil {
			return err
		}
		kids, err := c.dependencies(s)
		if err != nil {
			return c.placed(id, err)
		}
		deps[id] = kids
		work = append(work, kids...)
	}
	for again := true; again; {
		again = false
		for i := len(order) - 1; i >= 0; i-- {
			t := &c.terms[order[i]]
			if t.productive {
				continue
			}
			ok, err := c.hasValue(t.shape)
			if err != nil {
				return c.placed(order[i], err)
			}
			if ok {
				c.terms[order[i]].productive, again = true, true
			}
		}
	}
	for _, id := range order {
		c.terms[id].solved = true
	}
	return nil
}

// placed adds the place of a term's schema to an error.
func (c *compiler) placed(id termID, err error) error {
	t := c.terms[id]
	for t.node == nil && len(t.kids) > 0 {
		t = c.terms[t.kids[0]]
	}
	if t.node == nil {
		return err
	}
	return fmt.Errorf("%s: %w", c.where[t.node].path, err)
}
