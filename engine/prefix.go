package engine

import (
	"os"
	"slices"
	"sort"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/kv"
)

// markEvery is how many tokens lie between two marks of a kept prefix.
const markEvery = 64

// keptFactor bounds what kept prefixes remember: tokens per cell of the arena, those of shared cells counted each time.
const keptFactor = 64

// A prefix is the tokens of a sequence and the cells that hold them, kept after its request ended so that a later
// request with the same beginning need not evaluate it again.
type prefix struct {
	tokens []int32
	cells  *kv.Seq
	marks  []uint64
}

// prefixes keeps ended sequences, the least recently used first; none is the beginning of another. Their cells are given
// up when others need them.
type prefixes struct {
	kept   []*prefix
	tokens int  // of all kept
	most   int  // tokens kept at once
	off    bool // MINFER_NO_PREFIX_REUSE: nothing is kept or found
	copies bool // MINFER_NO_KV_SHARE: what is found is copied
}

func newPrefixes(cells int) prefixes {
	return prefixes{
		most: keptFactor * cells, off: os.Getenv("MINFER_NO_PREFIX_REUSE") != "", copies: os.Getenv("MINFER_NO_KV_SHARE") != "",
	}
}

// keep takes over the cells of an ended sequence that holds the given tokens. A kept sequence that the new one contains
// goes; one that contains it stays in its place.
func (p *prefixes) keep(tokens []int32, cells *kv.Seq) {
	if p.off || len(tokens) == 0 {
		cells.Free()
		return
	}
	marks := marksOf(tokens)
	for i := 0; i < len(p.kept); i++ {
		have := p.kept[i]
		least := min(len(have.tokens), len(tokens))
		if have.alike(tokens, marks) < least || common(have.tokens, tokens) < least {
			continue
		}
		if least < len(have.tokens) {
			p.use(i)
			cells.Free()
			return
		}
		p.drop(i)
		i--
	}
	if cap(tokens) > 2*len(tokens) {
		tokens = slices.Clone(tokens) // room for a reply that ended early
	}
	p.kept = append(p.kept, &prefix{tokens, cells, marks})
	p.tokens += len(tokens)
	for p.tokens > p.most {
		p.drop(0)
	}
}

// drop gives a kept sequence up.
func (p *prefixes) drop(i int) {
	p.tokens -= len(p.kept[i].tokens)
	p.kept[i].cells.Free()
	p.kept = slices.Delete(p.kept, i, i+1)
}

// use makes a kept sequence the most recently used one.
func (p *prefixes) use(i int) {
	hit := p.kept[i]
	p.kept = append(slices.Delete(p.kept, i, i+1), hit)
}

// longest returns the cells with the longest common beginning with a prompt, and its length, at most limit tokens. It
// looks at kept sequences, which a hit makes the most recently used, and at running ones. They are told apart by their
// hashes; only the tokens of the best are compared.
func (p *prefixes) longest(prompt []int32, marks []uint64, running []*sequence, limit int) (*kv.Seq, int) {
	if p.off {
		return nil, 0
	}
	n, at := 0, -1
	var best *sequence
	for i, have := range p.kept {
		if c := min(have.alike(prompt, marks), limit); c > n {
			n, at = c, i
		}
	}
	for _, s := range running {
		if !s.shares() || min(len(s.tokens), limit) <= n {
			continue
		}
		if c := min(s.alike(prompt, marks), len(s.tokens), limit); c > n {
			n, best = c, s
		}
	}
	switch {
	case best != nil:
		return best.cells, min(common(best.tokens, prompt), limit)
	case at >= 0:
		hit := p.kept[at]
		p.use(at)
		return hit.cells, min(common(hit.tokens, prompt), limit)
	}
	return nil, 0
}

// release frees kept sequences, the least recently used first, until the arena has n free cells or none is left.
func (p *prefixes) release(arena *kv.Arena, n int) {
	for arena.Free() < n && len(p.kept) > 0 {
		p.drop(0)
	}
}

// forget gives everything up without touching the cells, which the arena counts anew.
func (p *prefixes) forget() { p.kept, p.tokens = nil, 0 }

// marks are hashes of a growing list of tokens: of its first markEvery, of twice as many, and so on (FNV-1a on whole
// ids). The zero value is that of an empty list.
type marks struct {
	at   []uint64
	hash uint64
	n    int // tokens
}

// add appends tokens to the list.
func (m *marks) add(ids ...int32) {
	if m.n == 0 {
		m.hash = 14695981039346656037
	}
	for _, id := range ids {
		m.hash = (m.hash ^ uint64(uint32(id))) * 1099511628211
		if m.n++; m.n%markEvery == 0 {
			m.at = append(m.at, m.hash)
		}
	}
}

// marksOf are the marks of a list.
func marksOf(tokens []int32) []uint64 {
	m := marks{at: make([]uint64, 0, len(tokens)/markEvery)}
	m.add(tokens...)
	return m.at
}

// same is how many tokens two lists begin alike with, in steps of markEvery, as far as their marks tell.
func same(a, b []uint64) int {
	return markEvery * sort.Search(min(len(a), len(b)), func(i int) bool { return a[i] != b[i] })
}

// alike is the length of the common beginning with a token list, as far as the hashes tell.
func (p *prefix) alike(tokens []int32, marks []uint64) int {
	n := same(p.marks, marks)
	return n + common(p.tokens[n:], tokens[n:])
}

// common is the length of the common beginning of two token lists.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// take gives an empty sequence the first n cells of another, or a copy of them under MINFER_NO_KV_SHARE. After an error
// it is empty still.
func (e *Engine) take(s *sequence, from *kv.Seq, n int) error {
	e.reach(atTake)
	if !e.prefixes.copies {
		return s.cells.SharePrefix(from, n)
	}
	held := from.Fork() // making room may give it up
	defer held.Free()
	e.reclaim(n)
	if err := s.cells.Append(n); err != nil {
		return err
	}
	src, dst := held.Cells(), s.cells.Cells()
	var moves []backend.CellCopy
	for i := range n {
		if last := len(moves) - 1; i > 0 && src[i] == src[i-1]+1 && dst[i] == dst[i-1]+1 {
			moves[last].Len++
			continue
		}
		moves = append(moves, backend.CellCopy{Src: int(src[i]), Dst: int(dst[i]), Len: 1})
	}
	if err := e.cells.Copy(moves); err != nil {
		s.cells.Truncate(0)
		return err
	}
	return nil
}
