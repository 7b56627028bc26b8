package grammar

// Phases of a lazyArray node: a is the array, b the position, n the counts of the contains rules (16
// bits each) or the set of values used with uniqueItems.
const (
	arrayOpen  int32 = iota // after [
	arrayFirst              // after [ and white space
	arrayItem               // an item must follow
	arrayAfter              // after an item
	arrayComma              // after a comma
	arrayClose              // ] must follow
)

// arrayInfo is an array shape made ready for matching.
type arrayInfo struct {
	*arrShape
	live     map[arrState]bool
	distinct []termID
}

func (m *machine) addArray(a *arrShape) error {
	if _, ok := m.arrayOf[a]; ok {
		return nil
	}
	if ok, err := m.c.arrayHasValue(a); err != nil || !ok {
		return err
	}
	info := &arrayInfo{arrShape: a}
	var err error
	if a.unique {
		var all []termID
		all, err = m.c.distinct(a)
		for _, t := range all {
			if m.c.productive(t) {
				info.distinct = append(info.distinct, t)
			}
		}
	} else {
		info.live, err = m.c.liveStates(a)
	}
	if err != nil {
		return err
	}
	m.arrayOf[a] = int32(len(m.arrays))
	m.arrays = append(m.arrays, info)
	return nil
}

// item is one way to go on: a value of term leads to the array node next.
type arrayStep struct {
	term termID
	next lazyNode
}

// steps returns the items that may follow in k.
func (m *machine) steps(k lazyNode) []arrayStep {
	a := m.arrays[k.a]
	after := lazyNode{kind: lazyArray, a: k.a, phase: arrayAfter}
	var out []arrayStep
	if a.distinct != nil {
		if a.max >= 0 && int(k.b) >= a.max {
			return nil
		}
		for i, t := range a.distinct {
			if k.n>>i&1 == 0 {
				next := after
				next.b, next.n = k.b+1, k.n|1<<i
				out = append(out, arrayStep{t, next})
			}
		}
		return out
	}
	list, err := m.c.choices(a.arrShape, a.state(k))
	if err != nil {
		return nil // no new terms arise here: solve has met all of them
	}
	for _, ch := range list {
		if !m.c.productive(ch.term) || a.live != nil && !a.live[ch.to] {
			continue
		}
		next := after
		next.b = int32(ch.to.pos)
		for j, n := range ch.to.counts {
			next.n |= uint64(n) << (16 * j)
		}
		out = append(out, arrayStep{ch.term, next})
	}
	return out
}

func (a *arrayInfo) state(k lazyNode) arrState {
	s := arrState{pos: int(k.b)}
	for j := range s.counts {
		s.counts[j] = int(k.n >> (16 * j) & 0xFFFF)
	}
	return s
}

func (a *arrayInfo) complete(k lazyNode) bool {
	if a.distinct != nil {
		return int(k.b) >= a.min
	}
	return a.done(a.state(k))
}

func (m *machine) arrayNode(k lazyNode) node {
	a := m.arrays[k.a]
	at := func(phase int32) int32 {
		next := k
		next.phase = phase
		return m.id(next)
	}
	var n node
	switch k.phase {
	case arrayOpen:
		n.calls = append(n.calls, call{m.space, at(arrayFirst)})
	case arrayComma:
		n.calls = append(n.calls, call{m.space, at(arrayItem)})
	case arrayFirst, arrayItem:
		if k.phase == arrayFirst && a.complete(k) {
			n.edges = append(n.edges, edge{']', ']', m.done})
		}
		for _, s := range m.steps(k) {
			n.calls = append(n.calls, call{m.value(s.term), m.id(s.next)})
		}
	case arrayAfter:
		if len(m.steps(k)) > 0 {
			n.edges = append(n.edges, edge{',', ',', at(arrayComma)})
		}
		if a.complete(k) {
			n.calls = append(n.calls, call{m.space, at(arrayClose)})
		}
	case arrayClose:
		n.edges = append(n.edges, edge{']', ']', m.done})
	}
	return n
}
