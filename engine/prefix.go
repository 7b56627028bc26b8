package engine

import (
	"os"

	"github.com/minfer-go/minfer/kv"
)

// A prefix is the tokens of a sequence and the cells that hold them, kept after its request ended so that a later
// request with the same beginning need not evaluate it again.
type prefix struct {
	tokens []int32
	cells  *kv.Seq
}

// prefixes keeps ended sequences, the least recently used first. Their cells are given up when others need them.
type prefixes struct {
	kept []*prefix
	off  bool
}

func newPrefixes() prefixes { return prefixes{off: os.Getenv("MINFER_NO_PREFIX_REUSE") != ""} }

// keep takes over the cells of an ended sequence that holds the given tokens. A kept sequence that the new one contains
// goes.
func (p *prefixes) keep(tokens []int32, cells *kv.Seq) {
	if p.off || len(tokens) == 0 {
		cells.Free()
		return
	}
	for i := 0; i < len(p.kept); i++ {
		if have := p.kept[i]; common(have.tokens, tokens) == len(have.tokens) {
			have.cells.Free()
			p.kept = append(p.kept[:i], p.kept[i+1:]...)
			i--
		}
	}
	p.kept = append(p.kept, &prefix{tokens, cells})
}

// longest returns the cells with the longest common beginning with a prompt, and its length, at most limit tokens. It
// looks at kept sequences, which a hit makes the most recently used, and at running ones.
func (p *prefixes) longest(prompt []int32, running []*sequence, limit int) (*kv.Seq, int) {
	if p.off {
		return nil, 0
	}
	var from *kv.Seq
	n, at := 0, -1
	for i, have := range p.kept {
		if c := min(common(have.tokens, prompt), limit); c > n {
			from, n, at = have.cells, c, i
		}
	}
	for _, s := range running {
		if !s.shares() {
			continue
		}
		if c := min(common(s.tokens, prompt), limit); c > n {
			from, n, at = s.cells, c, -1
		}
	}
	if at >= 0 {
		hit := p.kept[at]
		p.kept = append(append(p.kept[:at], p.kept[at+1:]...), hit)
	}
	return from, n
}

// release frees kept sequences, the least recently used first, until the arena has n free cells or none is left.
func (p *prefixes) release(arena *kv.Arena, n int) {
	for arena.Free() < n && len(p.kept) > 0 {
		p.kept[0].cells.Free()
		p.kept = append(p.kept[:0], p.kept[1:]...)
	}
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

// cells is about how many cells are kept: those that several sequences share count more than once.
func (p *prefixes) cells() int {
	n := 0
	for _, k := range p.kept {
		n += len(k.tokens)
	}
	return n
}
