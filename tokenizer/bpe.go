package tokenizer

import (
	"math"
	"sync/atomic"
)

// noMerge is the rank of a pair that does not merge, above every rank.
const noMerge = int32(math.MaxInt32)

// Whether the merges make a token of its own bytes: found out once per token
// and kept in two bits.
type wholeWord = atomic.Uint32

const (
	wholePerWord        = 16
	wholeYes     uint32 = 1
	wholeNo      uint32 = 2
)

// shortPiece is the length in bytes up to which merging scans an array; above
// it a heap keeps the order. Most pieces are a few bytes long.
const shortPiece = 48

// symbol is a token in the making and the merge with its right neighbour.
type symbol struct {
	id   int32
	rank int32 // of merging with the next, noMerge if none
	to   int32 // what that merge makes
}

// merger holds the buffers of one Encode call.
type merger struct {
	short [shortPiece]symbol
	long  []longSymbol
	heap  []candidate
}

// appendPiece appends the ids of one piece of text.
func (t *Tokenizer) appendPiece(dst []int32, m *merger, piece string) []int32 {
	if id, ok := t.index[piece]; ok && t.plain(id) {
		if t.rule.ignoreMerges || len(piece) == 1 {
			return append(dst, id)
		}
		w, shift := &t.whole[id/wholePerWord], uint(id%wholePerWord)*2
		switch w.Load() >> shift & 3 {
		case wholeYes:
			return append(dst, id)
		case wholeNo:
			return t.merge(dst, m, piece)
		}
		start := len(dst)
		dst = t.merge(dst, m, piece)
		state := wholeNo
		if len(dst) == start+1 && dst[start] == id {
			state = wholeYes
		}
		w.Or(state << shift)
		return dst
	}
	return t.merge(dst, m, piece)
}

// merge appends what the merges make of the bytes of piece: always the pair of
// lowest rank first, the leftmost of equals. A byte without a token is dropped.
func (t *Tokenizer) merge(dst []int32, m *merger, piece string) []int32 {
	if len(piece) > shortPiece {
		return t.mergeLong(dst, m, piece)
	}
	n := 0
	for i := range len(piece) {
		if id := t.byteID[piece[i]]; id != noToken {
			m.short[n].id = id
			n++
		}
	}
	syms := m.short[:n]
	for i := 0; i+1 < n; i++ {
		syms[i].rank, syms[i].to = t.pairs.find(syms[i].id, syms[i+1].id)
	}
	if n > 0 {
		syms[n-1].rank = noMerge
	}
	for {
		best, rank := 0, noMerge
		for i := range syms {
			if syms[i].rank < rank {
				best, rank = i, syms[i].rank
			}
		}
		if rank == noMerge {
			break
		}
		syms[best].id = syms[best].to
		copy(syms[best+1:], syms[best+2:])
		syms = syms[:len(syms)-1]
		t.rerank(syms, best)
		if best > 0 {
			t.rerank(syms, best-1)
		}
	}
	for i := range syms {
		dst = append(dst, syms[i].id)
	}
	return dst
}

// rerank looks up the merge of symbol i with its right neighbour.
func (t *Tokenizer) rerank(syms []symbol, i int) {
	if i+1 == len(syms) {
		syms[i].rank = noMerge
		return
	}
	syms[i].rank, syms[i].to = t.pairs.find(syms[i].id, syms[i+1].id)
}

// longSymbol is a symbol in a doubly linked list over the array.
type longSymbol struct {
	symbol
	prev, next int32 // -1 at the ends
	dead       bool  // merged into its left neighbour
}

// candidate is a merge that the heap holds: stale when the symbol at pos is dead
// or its rank has changed.
type candidate struct {
	rank, pos int32
}

func (c candidate) less(o candidate) bool {
	return c.rank < o.rank || c.rank == o.rank && c.pos < o.pos
}

// mergeLong is merge in O(n log n): each merge adds at most two candidates.
func (t *Tokenizer) mergeLong(dst []int32, m *merger, piece string) []int32 {
	syms, heap := m.long[:0], m.heap[:0]
	for i := range len(piece) {
		if id := t.byteID[piece[i]]; id != noToken {
			k := int32(len(syms))
			syms = append(syms, longSymbol{symbol: symbol{id: id, rank: noMerge}, prev: k - 1, next: k + 1})
		}
	}
	if len(syms) > 0 {
		syms[len(syms)-1].next = -1
	}
	for i := range syms {
		if next := syms[i].next; next >= 0 {
			syms[i].rank, syms[i].to = t.pairs.find(syms[i].id, syms[next].id)
			if syms[i].rank != noMerge {
				heap = append(heap, candidate{syms[i].rank, int32(i)})
			}
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftDown(heap, i)
	}
	for len(heap) > 0 {
		c := heap[0]
		heap[0] = heap[len(heap)-1]
		heap = heap[:len(heap)-1]
		siftDown(heap, 0)
		s := &syms[c.pos]
		if s.dead || s.rank != c.rank {
			continue
		}
		gone := s.next
		s.id = s.to
		s.next = syms[gone].next
		syms[gone].dead = true
		if s.next >= 0 {
			syms[s.next].prev = c.pos
		}
		for _, i := range [2]int32{c.pos, s.prev} {
			if i < 0 {
				continue
			}
			p := &syms[i]
			p.rank = noMerge
			if p.next >= 0 {
				p.rank, p.to = t.pairs.find(p.id, syms[p.next].id)
			}
			if p.rank != noMerge {
				heap = append(heap, candidate{p.rank, i})
				siftUp(heap, len(heap)-1)
			}
		}
	}
	for i := int32(0); i >= 0 && len(syms) > 0; i = syms[i].next {
		dst = append(dst, syms[i].id)
	}
	m.long, m.heap = syms[:0], heap[:0]
	return dst
}

func siftDown(h []candidate, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].less(h[c]) {
			c++
		}
		if !h[c].less(h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

func siftUp(h []candidate, i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !h[i].less(h[p]) {
			return
		}
		h[i], h[p] = h[p], h[i]
		i = p
	}
}
