package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// regular is a compiled pattern body: nodes of a nondeterministic automaton with the transitions that
// exist only at the beginning or at the end of the text.
type regular struct {
	nodes       []node
	begin, end  map[int32][]int32
	first, last int32
}

// determinize returns the automaton of the texts that lead from r.first to r.last.
func (r *regular) determinize() (*dfa, error) {
	var cut [257]bool
	for _, n := range r.nodes {
		for _, e := range n.edges {
			cut[e.lo], cut[int(e.hi)+1] = true, true
		}
	}
	var class [256]uint8
	nc := 0
	for b := 1; b < 256; b++ {
		if cut[b] {
			nc++
		}
		class[b] = uint8(nc)
	}
	seen := make([]bool, len(r.nodes))
	closure := func(seeds []int32, atBegin, atEnd bool) []int32 {
		var out []int32
		work := slices.Clone(seeds)
		for len(work) > 0 {
			s := work[len(work)-1]
			work = work[:len(work)-1]
			if seen[s] {
				continue
			}
			seen[s] = true
			out = append(out, s)
			work = append(work, r.nodes[s].eps...)
			if atBegin {
				work = append(work, r.begin[s]...)
			}
			if atEnd {
				work = append(work, r.end[s]...)
			}
		}
		for _, s := range out {
			seen[s] = false
		}
		slices.Sort(out)
		return out
	}
	elems := 0
	pack := func(set []int32, atBegin bool) string {
		elems += len(set)
		key := make([]byte, 1, 1+4*len(set))
		if atBegin {
			key[0] = 1
		}
		for _, s := range set {
			key = binary.LittleEndian.AppendUint32(key, uint32(s))
		}
		return string(key)
	}
	unpack := func(key string) []int32 {
		set := make([]int32, 0, len(key)/4)
		for i := 1; i < len(key); i += 4 {
			set = append(set, int32(binary.LittleEndian.Uint32([]byte(key[i:i+4]))))
		}
		return set
	}
	next := func(key string, b byte) (string, bool) {
		var to []int32
		for _, s := range unpack(key) {
			for _, e := range r.nodes[s].edges {
				if e.lo <= b && b <= e.hi {
					to = append(to, e.to)
				}
			}
		}
		if len(to) == 0 || elems > maxSubsets {
			return "", false
		}
		return pack(closure(to, false, false), false), true
	}
	accept := func(key string) bool {
		return slices.Contains(closure(unpack(key), key[0] == 1, true), r.last)
	}
	d, err := buildDFA(class, nc+1, pack(closure([]int32{r.first}, true, false), true), next, accept)
	if err == nil && elems > maxSubsets {
		err = fmt.Errorf("constraint needs over %d states in sets: %w (MaxDFA)", maxSubsets, ErrLimit)
	}
	return d, err
}

// maxSubsets bounds the total size of the state sets that are looked at to make one automaton
// deterministic.
const maxSubsets = 16 * MaxDFA

// exprDFA returns the automaton of the texts that e derives; e has no rule references.
func exprDFA(e *expr) (*dfa, error) {
	c := &gbnfCompiler{a: newAutomaton(), begin: map[int32][]int32{}, end: map[int32][]int32{}}
	first, last := c.a.addNode(), c.a.addNode()
	if err := c.compile(e, first, last); err != nil {
		return nil, err
	}
	r := &regular{nodes: c.a.nodes, begin: c.begin, end: c.end, first: first, last: last}
	return r.determinize()
}

// anyText returns the automaton of all valid UTF-8.
var anyText = sync.OnceValue(func() *dfa {
	d, err := exprDFA(&expr{kind: exprRepeat, max: -1, kids: []*expr{anyChar}})
	if err != nil {
		panic(err) // a constant
	}
	return d
})

var anyChar = &expr{kind: exprChars, ranges: []runeRange{{0, utf8.MaxRune}}}

func complementDFA(d *dfa) (*dfa, error) { return subtractDFA(anyText(), d) }

// lengthDFA returns the automaton of texts with lo to hi code points (hi < 0: no bound).
func lengthDFA(lo, hi int) (*dfa, error) {
	any := anyText()
	type state struct {
		n int
		s int32
	}
	return buildDFA(any.class, any.nc, state{0, any.start}, func(s state, b byte) (state, bool) {
		if hi >= 0 && s.n >= hi && s.s == any.start {
			return s, false
		}
		t := any.step(s.s, b)
		if t == any.start {
			s.n++
			if hi < 0 {
				s.n = min(s.n, lo)
			}
		}
		return state{s.n, t}, t != 0
	}, func(s state) bool { return s.s == any.start && s.n >= lo })
}

// listDFA returns the automaton of exactly the given texts.
func listDFA(list []string) (*dfa, error) {
	var used [256]bool
	for _, s := range list {
		for i := range len(s) {
			used[s[i]] = true
		}
	}
	var class [256]uint8
	nc := 1
	for b, u := range used {
		if u && nc < 255 {
			class[b] = uint8(nc)
			nc++
		}
	}
	// States are intervals of the sorted list that share a prefix.
	list = slices.Clone(list)
	slices.Sort(list)
	list = slices.Compact(list)
	type state struct{ lo, hi, depth int }
	return buildDFA(class, nc, state{0, len(list), 0}, func(s state, b byte) (state, bool) {
		if class[b] == 0 {
			return s, false
		}
		lo, hi := s.lo, s.lo
		for i := s.lo; i < s.hi; i++ {
			if len(list[i]) <= s.depth || list[i][s.depth] < b {
				lo, hi = i+1, i+1
			} else if list[i][s.depth] == b {
				hi = i + 1
			}
		}
		return state{lo, hi, s.depth + 1}, lo < hi
	}, func(s state) bool { return s.lo < s.hi && len(list[s.lo]) == s.depth })
}
