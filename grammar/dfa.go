package grammar

import "fmt"

// dfa is a deterministic automaton over bytes. State 0 is dead; every other state can reach acceptance.
// A dfa is immutable once built.
type dfa struct {
	class  [256]uint8 // bytes of one class behave alike in every state
	nc     int        // number of classes
	trans  []int32    // [state*nc+class]
	accept []bool
	start  int32
	cost   int // states times classes that were built before minimizing
}

func (d *dfa) step(s int32, b byte) int32 { return d.trans[int(s)*d.nc+int(d.class[b])] }

func (d *dfa) states() int { return len(d.accept) }

func (d *dfa) empty() bool { return d.start == 0 }

func (d *dfa) match(text string) bool {
	s := d.start
	for i := 0; i < len(text) && s != 0; i++ {
		s = d.step(s, text[i])
	}
	return d.accept[s]
}

// dfaBuilder explores states identified by comparable keys.
type dfaBuilder[S comparable] struct {
	d    *dfa
	ids  map[S]int32
	keys []S
}

// buildDFA builds the automaton whose states are reached from start by next, which is asked for one
// representative byte of each class; next's second result is false where there is no transition.
func buildDFA[S comparable](class [256]uint8, nc int, start S, next func(S, byte) (S, bool), accept func(S) bool) (*dfa, error) {
	d := &dfa{class: class, nc: nc, trans: make([]int32, nc), accept: []bool{false}}
	b := &dfaBuilder[S]{d: d, ids: map[S]int32{}, keys: make([]S, 1)}
	var rep [256]byte
	for c := 255; c >= 0; c-- {
		rep[class[c]] = byte(c)
	}
	id := func(s S) int32 {
		if i, ok := b.ids[s]; ok {
			return i
		}
		i := int32(len(b.keys))
		b.ids[s] = i
		b.keys = append(b.keys, s)
		d.accept = append(d.accept, accept(s))
		d.trans = append(d.trans, make([]int32, nc)...)
		return i
	}
	d.start = id(start)
	for i := 1; i < len(b.keys); i++ {
		// What is found counts, not what is gone through: it may be many times as much.
		if len(b.keys)-1 > MaxDFA {
			return nil, fmt.Errorf("constraint needs over %d states: %w (MaxDFA)", MaxDFA, ErrLimit)
		}
		for c := range nc {
			if s, ok := next(b.keys[i], rep[c]); ok {
				to := id(s)
				d.trans[i*nc+c] = to
			}
		}
	}
	m := d.minimize()
	m.cost = len(d.trans)
	return m, nil
}

type pair struct{ a, b int32 }

// combine returns the automaton that accepts where op holds of what a and b accept.
func combine(a, b *dfa, op func(a, b bool) bool) (*dfa, error) {
	var class [256]uint8
	ids := map[pair]uint8{}
	for c := range 256 {
		k := pair{int32(a.class[c]), int32(b.class[c])}
		id, ok := ids[k]
		if !ok {
			id = uint8(len(ids))
			ids[k] = id
		}
		class[c] = id
	}
	keepDead := op(false, true) || op(true, false)
	return buildDFA(class, len(ids), pair{a.start, b.start}, func(s pair, c byte) (pair, bool) {
		t := pair{a.step(s.a, c), b.step(s.b, c)}
		if t == (pair{}) || !keepDead && (t.a == 0 || t.b == 0) {
			return t, false
		}
		return t, true
	}, func(s pair) bool { return op(a.accept[s.a], b.accept[s.b]) })
}

func intersectDFA(a, b *dfa) (*dfa, error) {
	return combine(a, b, func(x, y bool) bool { return x && y })
}

func unionDFA(a, b *dfa) (*dfa, error) {
	return combine(a, b, func(x, y bool) bool { return x || y })
}

// subtractDFA returns what a accepts and b does not.
func subtractDFA(a, b *dfa) (*dfa, error) {
	return combine(a, b, func(x, y bool) bool { return x && !y })
}

// finite returns all texts that d accepts from state s if there are at most limit, and whether so.
func (d *dfa) finite(s int32, limit int) ([]string, bool) {
	var out []string
	onPath := make([]bool, d.states())
	var walk func(s int32, text []byte) bool
	walk = func(s int32, text []byte) bool {
		if s == 0 {
			return true
		}
		if onPath[s] {
			return false // every state is productive, so a cycle means infinitely many
		}
		if d.accept[s] {
			if len(out) >= limit {
				return false
			}
			out = append(out, string(text))
		}
		onPath[s] = true
		defer func() { onPath[s] = false }()
		for c := range 256 {
			if !walk(d.step(s, byte(c)), append(text, byte(c))) {
				return false
			}
		}
		return true
	}
	ok := walk(s, nil)
	return out, ok
}

// runeEdge says that each code point of lo..hi leads to one state.
type runeEdge struct {
	lo, hi rune
	to     int32
}

// runeEdges returns the transitions on whole code points from state s, in order, leaving out dead ones.
// d must accept UTF-8 only and s must lie between characters.
func (d *dfa) runeEdges(s int32) []runeEdge {
	var out []runeEdge
	add := func(lo, hi rune, to int32) {
		if n := len(out); n > 0 && out[n-1].hi+1 == lo && out[n-1].to == to {
			out[n-1].hi = hi
			return
		}
		out = append(out, runeEdge{lo, hi, to})
	}
	// Below a lead byte the rest of the tree is walked in runs of bytes that lead to one state.
	type memoKey struct {
		s    int32
		rest int
	}
	memo := map[memoKey][]runeEdge{}
	var tails func(s int32, rest int) []runeEdge
	tails = func(s int32, rest int) []runeEdge {
		if rest == 0 {
			return []runeEdge{{0, 0, s}}
		}
		k := memoKey{s, rest}
		if t, ok := memo[k]; ok {
			return t
		}
		var t []runeEdge
		for b := rune(0); b < 64; b++ {
			to := d.step(s, byte(0x80+b))
			if to == 0 {
				continue
			}
			for _, e := range tails(to, rest-1) {
				base := b << (6 * (rest - 1))
				lo, hi := base+e.lo, base+e.hi
				if n := len(t); n > 0 && t[n-1].hi+1 == lo && t[n-1].to == e.to {
					t[n-1].hi = hi
				} else {
					t = append(t, runeEdge{lo, hi, e.to})
				}
			}
		}
		memo[k] = t
		return t
	}
	for b := range 0xF5 {
		to := d.step(s, byte(b))
		if to == 0 {
			continue
		}
		rest, lead := 0, rune(b)
		switch {
		case b >= 0xF0:
			rest, lead = 3, rune(b&7)
		case b >= 0xE0:
			rest, lead = 2, rune(b&15)
		case b >= 0xC0:
			rest, lead = 1, rune(b&31)
		}
		for _, e := range tails(to, rest) {
			add(lead<<(6*rest)+e.lo, lead<<(6*rest)+e.hi, e.to)
		}
	}
	return out
}
