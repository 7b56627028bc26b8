package grammar

import (
	"bytes"
	"slices"
)

// Vocab is a vocabulary prepared for masking: a trie over the tokens' bytes. It is immutable and may be
// shared by any number of grammars and goroutines.
type Vocab struct {
	pieces [][]byte // as given, nil for tokens that are no text
	eog    []int32  // end-of-generation tokens
	isEOG  []bool

	// The trie in depth-first order. Node i adds byte[i] at depth[i] (from 1); its descendants are
	// i+1 up to end[i]; the tokens that end at it are tokens[first[i]:first[i+1]].
	byte   []byte
	depth  []int32
	end    []int32
	first  []int32
	tokens []int32
	deep   int // longest piece in bytes
}

// NewVocab prepares a vocabulary: pieces[id] holds the bytes that token id decodes to, empty for tokens
// that never are text (control tokens); eog reports the end-of-generation tokens, whose bytes are
// ignored. The pieces are kept, not copied.
func NewVocab(pieces [][]byte, eog func(id int32) bool) *Vocab {
	v := &Vocab{pieces: slices.Clone(pieces), isEOG: make([]bool, len(pieces))}
	var ids []int32
	for i := range pieces {
		id := int32(i)
		if eog != nil && eog(id) {
			v.eog = append(v.eog, id)
			v.isEOG[i] = true
			v.pieces[i] = nil
		} else if len(pieces[i]) > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int32) int {
		if c := bytes.Compare(pieces[a], pieces[b]); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
	v.build(ids)
	return v
}

// build fills the trie from the token ids in the order of their bytes.
func (v *Vocab) build(ids []int32) {
	v.tokens = ids
	var open []int32 // the nodes of the previous piece
	var prev []byte
	for rank, id := range ids {
		p := v.pieces[id]
		v.deep = max(v.deep, len(p))
		common := 0
		for common < len(prev) && common < len(p) && prev[common] == p[common] {
			common++
		}
		for _, n := range open[common:] {
			v.end[n] = int32(len(v.byte))
		}
		open = open[:common]
		for i := common; i < len(p); i++ {
			open = append(open, int32(len(v.byte)))
			v.byte = append(v.byte, p[i])
			v.depth = append(v.depth, int32(i+1))
			v.end = append(v.end, 0)
			v.first = append(v.first, int32(rank))
		}
		prev = p
	}
	for _, n := range open {
		v.end[n] = int32(len(v.byte))
	}
	v.first = append(v.first, int32(len(ids)))
}

// Size returns the number of tokens.
func (v *Vocab) Size() int { return len(v.pieces) }

// ended returns the tokens that end at trie node n.
func (v *Vocab) ended(n int32) []int32 {
	// Tokens are in depth-first order too: those from first[n] on belong to n until the next node begins.
	return v.tokens[v.first[n]:v.first[n+1]]
}
