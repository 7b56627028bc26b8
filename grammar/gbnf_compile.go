package grammar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// gbnfCompiler turns rule bodies into automaton nodes.
type gbnfCompiler struct {
	a     *automaton
	rules []gbnfRule
	entry []int32 // first node of each rule
	alive []bool  // rules from which some text derives

	// Transitions that exist only at the beginning or end of the text; of patterns only.
	begin, end map[int32][]int32
}

func compileGBNF(rules []gbnfRule, root int) (*automaton, error) {
	c := &gbnfCompiler{a: newAutomaton(), rules: rules, alive: make([]bool, len(rules))}
	c.fixpoint(c.alive, c.productive)
	if !c.alive[root] {
		return nil, fmt.Errorf("grammar: GBNF line %d: rule \"root\" can never be completed: %w", rules[root].line, ErrEmpty)
	}
	if err := c.checkLeftRecursion(); err != nil {
		return nil, err
	}
	for range rules {
		c.entry = append(c.entry, c.a.addNode())
	}
	for i, r := range rules {
		if !c.alive[i] {
			continue
		}
		end := c.a.addNode()
		c.a.nodes[end].accept = true
		if err := c.compile(r.body, c.entry[i], end); err != nil {
			return nil, fmt.Errorf("grammar: GBNF line %d: rule %q: %w", r.line, r.name, err)
		}
	}
	c.a.start = c.entry[root]
	return c.a, nil
}

// fixpoint sets known of every rule for whose body holds is true, which may ask for what is known of other rules. A rule
// is looked at again when one that it names becomes known.
func (c *gbnfCompiler) fixpoint(known []bool, holds func(*expr) bool) {
	users := make([][]int, len(c.rules))
	var note func(e *expr, i int)
	note = func(e *expr, i int) {
		if e.kind == exprRef {
			users[e.rule] = append(users[e.rule], i)
		}
		for _, k := range e.kids {
			note(k, i)
		}
	}
	var todo []int
	for i, r := range c.rules {
		note(r.body, i)
		todo = append(todo, i)
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !known[i] && holds(c.rules[i].body) {
			known[i] = true
			todo = append(todo, users[i]...)
		}
	}
}

// productive reports whether some text derives from e, given what is known of the rules.
func (c *gbnfCompiler) productive(e *expr) bool {
	switch e.kind {
	case exprSeq:
		for _, k := range e.kids {
			if !c.productive(k) {
				return false
			}
		}
		return true
	case exprAlt:
		for _, k := range e.kids {
			if c.productive(k) {
				return true
			}
		}
		return false
	case exprRef:
		return c.alive[e.rule]
	case exprRepeat:
		return e.min == 0 || c.productive(e.kids[0])
	}
	for _, r := range e.ranges {
		if r.lo < surrogateLo || r.hi > surrogateHi {
			return true
		}
	}
	return false
}

// checkLeftRecursion refuses rules that can call themselves before consuming a byte.
func (c *gbnfCompiler) checkLeftRecursion() error {
	nullable := make([]bool, len(c.rules))
	var empty func(e *expr) bool
	empty = func(e *expr) bool {
		switch e.kind {
		case exprSeq:
			for _, k := range e.kids {
				if !empty(k) {
					return false
				}
			}
			return true
		case exprAlt:
			for _, k := range e.kids {
				if empty(k) {
					return true
				}
			}
			return false
		case exprRef:
			return nullable[e.rule]
		case exprRepeat:
			return e.min == 0 || empty(e.kids[0])
		}
		return false
	}
	c.fixpoint(nullable, empty)
	var first func(e *expr, out map[int]bool)
	first = func(e *expr, out map[int]bool) {
		switch e.kind {
		case exprSeq:
			for _, k := range e.kids {
				first(k, out)
				if !empty(k) {
					return
				}
			}
		case exprAlt, exprRepeat:
			for _, k := range e.kids {
				first(k, out)
			}
		case exprRef:
			out[e.rule] = true
		}
	}
	return c.findCycle(first)
}

func (c *gbnfCompiler) findCycle(first func(*expr, map[int]bool)) error {
	const (
		unseen = iota
		open
		closed
	)
	mark := make([]uint8, len(c.rules))
	type visit struct {
		rule int
		todo []int
	}
	firsts := func(r int) []int {
		set := map[int]bool{}
		first(c.rules[r].body, set)
		return slices.Sorted(maps.Keys(set))
	}
	for r := range c.rules {
		if mark[r] != unseen {
			continue
		}
		mark[r] = open
		path := []visit{{r, firsts(r)}}
		for len(path) > 0 {
			v := &path[len(path)-1]
			if len(v.todo) == 0 {
				mark[v.rule] = closed
				path = path[:len(path)-1]
				continue
			}
			next := v.todo[0]
			v.todo = v.todo[1:]
			switch mark[next] {
			case unseen:
				mark[next] = open
				path = append(path, visit{next, firsts(next)})
			case open:
				var names []string
				for _, p := range path {
					if len(names) > 0 || p.rule == next {
						names = append(names, c.rules[p.rule].name)
					}
				}
				names = append(names, c.rules[next].name)
				return fmt.Errorf("grammar: GBNF line %d: left recursion %s: %w",
					c.rules[next].line, strings.Join(names, " -> "), ErrUnsupported)
			}
		}
	}
	return nil
}

func (c *gbnfCompiler) node() (int32, error) {
	if len(c.a.nodes) >= MaxStates {
		return 0, fmt.Errorf("grammar needs over %d states: %w (MaxStates)", MaxStates, ErrLimit)
	}
	return c.a.addNode(), nil
}

func (c *gbnfCompiler) eps(from, to int32) {
	c.a.nodes[from].eps = append(c.a.nodes[from].eps, to)
}

// compile adds the paths from node from to node to that spell e.
func (c *gbnfCompiler) compile(e *expr, from, to int32) error {
	switch e.kind {
	case exprSeq:
		if len(e.kids) == 0 {
			c.eps(from, to)
			return nil
		}
		for i, k := range e.kids {
			next := to
			if i < len(e.kids)-1 {
				var err error
				if next, err = c.node(); err != nil {
					return err
				}
			}
			if err := c.compile(k, from, next); err != nil {
				return err
			}
			from = next
		}
		return nil
	case exprAlt:
		for _, k := range e.kids {
			if err := c.compile(k, from, to); err != nil {
				return err
			}
		}
		return nil
	case exprRef:
		if c.alive[e.rule] {
			n := &c.a.nodes[from]
			n.calls = append(n.calls, call{c.entry[e.rule], to})
		}
		return nil
	case exprRepeat:
		return c.repeat(e, from, to)
	case exprBegin:
		c.begin[from] = append(c.begin[from], to)
		return nil
	case exprEnd:
		c.end[from] = append(c.end[from], to)
		return nil
	}
	for _, r := range e.ranges {
		if err := c.a.addRunes(from, to, r.lo, r.hi, c.node); err != nil {
			return err
		}
	}
	return nil
}

// repeat compiles x{min,max} as min copies followed by a loop or by copies that may each end.
func (c *gbnfCompiler) repeat(e *expr, from, to int32) error {
	x := e.kids[0]
	for range e.min {
		next, err := c.node()
		if err != nil {
			return err
		}
		if err := c.compile(x, from, next); err != nil {
			return err
		}
		from = next
	}
	if e.max < 0 {
		loop, err := c.node()
		if err != nil {
			return err
		}
		c.eps(from, loop)
		c.eps(loop, to)
		return c.compile(x, loop, loop)
	}
	for range e.max - e.min {
		c.eps(from, to)
		next, err := c.node()
		if err != nil {
			return err
		}
		if err := c.compile(x, from, next); err != nil {
			return err
		}
		from = next
	}
	c.eps(from, to)
	return nil
}

// addRunes adds the UTF-8 paths of lo..hi between two nodes; newNode makes the nodes between.
func (a *automaton) addRunes(from, to int32, lo, hi rune, newNode func() (int32, error)) error {
	var failed error
	// Paths share their ends: the last bytes of most sequences are full continuation ranges.
	tails := map[string]int32{}
	utf8Sequences(lo, hi, func(seq []byteRange) {
		if failed != nil {
			return
		}
		target := to
		for i := len(seq) - 1; i > 0; i-- {
			key := fmt.Sprint(seq[i:])
			mid, ok := tails[key]
			if !ok {
				var err error
				if mid, err = newNode(); err != nil {
					failed = err
					return
				}
				tails[key] = mid
				a.nodes[mid].edges = append(a.nodes[mid].edges, edge{seq[i].lo, seq[i].hi, target})
			}
			target = mid
		}
		a.nodes[from].edges = append(a.nodes[from].edges, edge{seq[0].lo, seq[0].hi, target})
	})
	return failed
}
