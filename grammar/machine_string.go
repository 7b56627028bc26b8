package grammar

// A lazyString node is inside a string literal: a is the automaton of the string's value, b its state,
// lo and hi the code points that must and may still follow (hi < 0: any number), phase what was read of
// an escape. Only the automaton of all texts is combined with lengths.
const (
	inText    int32 = iota
	afterBack       // after a backslash
	inHex           // after \u and n>>16 digits of value n&0xFFFF; n>>32 is the high surrogate before it
	anyHex          // n more hexadecimal digits, then text from state b
	anyHigh         // n more digits of a high surrogate, then any low surrogate to state b
	lowBack         // a backslash of a low surrogate must follow; n>>32 is the high one
	lowU            // its u
	anyLow          // step n of \uDC00 to \uDFFF, then state b
)

func (m *machine) stringStart(p strPart) lazyNode {
	d := p.d
	if d == nil {
		d = anyText()
	}
	return lazyNode{kind: lazyString, a: m.dfaID(d), b: d.start, lo: int32(p.min), hi: int32(p.max)*b2i(p.d == nil) - b2i(p.d != nil)}
}

func b2i(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// edgesOf returns the transitions on code points from a state.
func (m *machine) edgesOf(d, s int32) []runeEdge {
	k := pair{d, s}
	e, ok := m.runes[k]
	if !ok {
		e = m.dfas[d].runeEdges(s)
		m.runes[k] = e
	}
	return e
}

// target returns the state after code points lo..hi if all of them lead to one, and whether any of them
// leads anywhere.
func target(edges []runeEdge, lo, hi rune) (to int32, some bool) {
	for _, e := range edges {
		if e.hi < lo || e.lo > hi {
			continue
		}
		if e.lo <= lo && hi <= e.hi {
			return e.to, true
		}
		some = true
	}
	return 0, some
}

// between reports whether s lies between characters: no continuation byte can follow.
func (d *dfa) between(s int32) bool {
	for b := 0x80; b < 0xC0; b++ {
		if d.step(s, byte(b)) != 0 {
			return false
		}
	}
	return true
}

// textAfter returns the node after a whole character that leads to state s.
func (m *machine) textAfter(k lazyNode, s int32) int32 {
	next := lazyNode{kind: lazyString, a: k.a, b: s, lo: max(k.lo-1, 0), hi: k.hi}
	if k.hi > 0 {
		next.hi--
	}
	return m.id(next)
}

func (m *machine) stringNode(k lazyNode) node {
	d := m.dfas[k.a]
	var n node
	at := func(phase int32, extra uint64) int32 {
		next := k
		next.phase, next.n = phase, extra
		return m.id(next)
	}
	switch k.phase {
	case inText:
		between := d.between(k.b)
		for b := 0x20; b < 256; b++ {
			if b == '"' || b == '\\' || between && k.hi == 0 {
				continue
			}
			s := d.step(k.b, byte(b))
			switch {
			case s == 0:
			case d.between(s):
				n.addByte(byte(b), m.textAfter(k, s))
			default:
				next := k
				next.b = s
				n.addByte(byte(b), m.id(next))
			}
		}
		if d.accept[k.b] && k.lo == 0 {
			n.edges = append(n.edges, edge{'"', '"', m.done})
		}
		if _, some := target(m.edgesIfBetween(k, between), 0, 0x10FFFF); some {
			n.edges = append(n.edges, edge{'\\', '\\', at(afterBack, 0)})
		}
	case afterBack:
		edges := m.edgesOf(k.a, k.b)
		for _, e := range jsonEscapes {
			if s, _ := target(edges, e.char, e.char); s != 0 {
				n.edges = append(n.edges, edge{e.letter, e.letter, m.textAfter(k, s)})
			}
		}
		n.edges = append(n.edges, edge{'u', 'u', at(inHex, 0)})
	case inHex:
		m.hexNode(&n, k, at)
	case anyHex, anyHigh:
		var to int32
		switch {
		case k.n > 1:
			to = at(k.phase, k.n-1)
		case k.phase == anyHigh:
			to = at(anyLow, 0)
		default:
			to = m.textAfter(k, k.b)
		}
		n.edges = append(n.edges, edge{'0', '9', to}, edge{'A', 'F', to}, edge{'a', 'f', to})
	case lowBack:
		n.edges = append(n.edges, edge{'\\', '\\', at(lowU, k.n)})
	case lowU:
		n.edges = append(n.edges, edge{'u', 'u', at(inHex, k.n)})
	case anyLow:
		next := at(anyLow, k.n+1)
		switch k.n {
		case 0:
			n.edges = append(n.edges, edge{'\\', '\\', next})
		case 1:
			n.edges = append(n.edges, edge{'u', 'u', next})
		case 2:
			n.edges = append(n.edges, edge{'D', 'D', next}, edge{'d', 'd', next})
		default:
			next = at(anyHex, 2)
			n.edges = append(n.edges, edge{'C', 'F', next}, edge{'c', 'f', next})
		}
	}
	return n
}

func (m *machine) edgesIfBetween(k lazyNode, between bool) []runeEdge {
	if !between || k.hi == 0 {
		return nil
	}
	return m.edgesOf(k.a, k.b)
}

// jsonEscape is a letter after a backslash and what both stand for.
type jsonEscape struct {
	letter byte
	char   rune
}

var jsonEscapes = []jsonEscape{{'"', '"'}, {'/', '/'}, {'\\', '\\'}, {'b', '\b'}, {'f', '\f'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}}

// hexNode adds the digits that may follow in \uXXXX. Once all code points that begin alike lead to one
// state, the value of further digits is not kept.
func (m *machine) hexNode(n *node, k lazyNode, at func(int32, uint64) int32) {
	edges := m.edgesOf(k.a, k.b)
	digits, value, high := int(k.n>>16&0xFFFF), rune(k.n&0xFFFF), rune(k.n>>32)
	rest := 3 - digits
	for h := rune(0); h < 16; h++ {
		lo := (value<<4 | h) << (4 * rest)
		hi := lo + 1<<(4*rest) - 1
		to := int32(-1)
		keep := at(inHex, uint64(high)<<32|uint64(digits+1)<<16|uint64(value<<4|h))
		if high != 0 {
			lo, hi := max(lo, 0xDC00), min(hi, surrogateHi)
			if lo > hi {
				continue
			}
			base := 0x10000 + (high-0xD800)<<10 - 0xDC00
			s, some := target(edges, base+lo, base+hi)
			switch {
			case s != 0 && rest == 0:
				to = m.textAfter(k, s)
			case some:
				to = keep
			}
		} else {
			to = m.unitNode(k, edges, lo, hi, rest, keep)
		}
		if to < 0 {
			continue
		}
		b := "0123456789ABCDEF"[h]
		n.edges = append(n.edges, edge{b, b, to})
		if h >= 10 {
			n.edges = append(n.edges, edge{b + 'a' - 'A', b + 'a' - 'A', to})
		}
	}
}

// unitNode returns the node after digits that leave the code units lo..hi, or -1 if none is possible;
// keep is the node that remembers the digits.
func (m *machine) unitNode(k lazyNode, edges []runeEdge, lo, hi rune, rest int, keep int32) int32 {
	jump := func(phase int32, s int32, n uint64) int32 {
		next := k
		next.phase, next.b, next.n = phase, s, n
		return m.id(next)
	}
	if hi < surrogateLo || lo > surrogateHi {
		s, some := target(edges, lo, hi)
		switch {
		case s != 0 && rest == 0:
			return m.textAfter(k, s)
		case s != 0:
			return jump(anyHex, s, uint64(rest))
		case some:
			return keep
		}
		return -1
	}
	some := false
	if lo < surrogateLo {
		_, some = target(edges, lo, surrogateLo-1)
	}
	if hi > surrogateHi && !some {
		_, some = target(edges, surrogateHi+1, hi)
	}
	highLo, highHi := max(lo, surrogateLo), min(hi, 0xDBFF)
	if highLo <= highHi {
		s, any := target(edges, 0x10000+(highLo-0xD800)<<10, 0x10000+(highHi-0xD800)<<10+0x3FF)
		switch {
		case s != 0 && lo >= surrogateLo && hi <= 0xDBFF && rest == 0:
			return jump(anyLow, s, 0)
		case s != 0 && lo >= surrogateLo && hi <= 0xDBFF:
			return jump(anyHigh, s, uint64(rest))
		case any && rest == 0:
			return jump(lowBack, k.b, uint64(lo)<<32)
		}
		some = some || any
	}
	if some {
		return keep
	}
	return -1
}

// canonical returns a node with the same token mask for a vocabulary whose longest piece has deep
// bytes: a count of characters that no token can use up is as good as any other.
func (m *machine) canonical(id int32, deep int) int32 {
	k, ok := m.descr[id]
	switch {
	case ok && k.kind == lazyTracked && k.phase == nameExact:
		k.phase = nameUsed
		return m.id(k.loosened())
	case !ok || k.kind != lazyString:
		return id
	}
	if int(k.hi) > deep+1 {
		k.hi = -1
	}
	k.lo = min(k.lo, int32(deep)+2)
	return m.id(k)
}
