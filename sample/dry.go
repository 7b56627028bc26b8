package sample

import (
	"bytes"
	"fmt"
	"math"
	"slices"
)

// Limits of DRY sequence breakers.
const (
	// MaxBreakers bounds the number of breaker sequences.
	MaxBreakers = 1 << 18
	// MaxBreakerLen bounds the tokens of one breaker sequence.
	MaxBreakerLen = 64
	// MaxBreakerBytes bounds the length of a breaker string.
	MaxBreakerBytes = 40
)

// DefaultBreakers are the breaker strings customary for DRY.
var DefaultBreakers = []string{"\n", ":", "\"", "*"}

// Breakers is a set of token sequences across which DRY sees no repetition. A
// token that is a breaker by itself is never penalised. It is immutable and may
// be shared by any number of samplers.
type Breakers struct {
	// tails maps the first token of a sequence to what follows it, the longest
	// first; an empty tail marks a single-token breaker.
	tails map[int32][][]int32
	maxID int32
	count int
}

// NewBreakers returns the set of the given token sequences. Errors wrap ErrConfig.
func NewBreakers(seqs [][]int32) (*Breakers, error) {
	b := &Breakers{tails: make(map[int32][][]int32), maxID: -1}
	for _, seq := range seqs {
		if len(seq) == 0 || len(seq) > MaxBreakerLen {
			return nil, fmt.Errorf("%w: dry-sequence-breakers: a sequence of %d tokens: allowed is 1 to %d", ErrConfig, len(seq), MaxBreakerLen)
		}
		for _, id := range seq {
			if id < 0 {
				return nil, fmt.Errorf("%w: dry-sequence-breakers token id %d: allowed is 0 and above", ErrConfig, id)
			}
		}
		if err := b.add(seq[0], seq[1:]); err != nil {
			return nil, err
		}
	}
	b.order()
	return b, nil
}

// Vocabulary is what [BreakersFromStrings] needs to know of a tokenizer.
type Vocabulary interface {
	// VocabSize returns the number of token ids.
	VocabSize() int
	// Piece returns the bytes token id stands for; empty for control tokens.
	Piece(id int32) []byte
	// Encode returns the tokens of text.
	Encode(text string, parseSpecial bool) []int32
}

// BreakersFromStrings returns the breakers that the strings amount to in a
// vocabulary: each token that contains a string, and each token whose end is
// the beginning of a string, followed by the tokens of the rest. Errors wrap
// ErrConfig.
func BreakersFromStrings(v Vocabulary, texts []string) (*Breakers, error) {
	b := &Breakers{tails: make(map[int32][][]int32), maxID: -1}
	for _, text := range texts {
		if len(text) == 0 || len(text) > MaxBreakerBytes {
			return nil, fmt.Errorf("%w: dry-sequence-breakers: string %q of %d bytes: allowed is 1 to %d", ErrConfig, text, len(text), MaxBreakerBytes)
		}
		want := []byte(text)
		rest := make([][]int32, len(text)) // tokens of text[i:], as needed
		for id := range int32(v.VocabSize()) {
			piece := v.Piece(id)
			if bytes.Contains(piece, want) {
				if err := b.add(id, nil); err != nil {
					return nil, err
				}
				continue
			}
			for n := min(len(piece), len(text)-1); n > 0; n-- {
				if !bytes.HasSuffix(piece, want[:n]) {
					continue
				}
				if rest[n] == nil {
					rest[n] = v.Encode(text[n:], false)
				}
				if len(rest[n]) == 0 || len(rest[n]) >= MaxBreakerLen {
					return nil, fmt.Errorf("%w: dry-sequence-breakers: string %q: its end %q is %d tokens: allowed is 1 to %d", ErrConfig, text, text[n:], len(rest[n]), MaxBreakerLen-1)
				}
				if err := b.add(id, rest[n]); err != nil {
					return nil, err
				}
			}
		}
	}
	b.order()
	return b, nil
}

func (b *Breakers) add(head int32, tail []int32) error {
	if slices.ContainsFunc(b.tails[head], func(t []int32) bool { return slices.Equal(t, tail) }) {
		return nil
	}
	if b.count++; b.count > MaxBreakers {
		return fmt.Errorf("%w: dry-sequence-breakers: more than %d sequences", ErrConfig, MaxBreakers)
	}
	b.tails[head] = append(b.tails[head], slices.Clone(tail))
	b.maxID = max(b.maxID, head)
	for _, id := range tail {
		b.maxID = max(b.maxID, id)
	}
	return nil
}

// order puts the longest tails first.
func (b *Breakers) order() {
	for _, tails := range b.tails {
		slices.SortStableFunc(tails, func(x, y []int32) int { return len(y) - len(x) })
	}
}

// Len returns the number of sequences.
func (b *Breakers) Len() int { return b.count }

// single reports whether id alone is a breaker.
func (b *Breakers) single(id int32) bool {
	if b == nil {
		return false
	}
	tails := b.tails[id]
	return len(tails) > 0 && len(tails[len(tails)-1]) == 0
}

// limit returns how many of the most recent tokens follow the last breaker;
// recent[0] is the newest token. It is len(recent) without a breaker.
func (b *Breakers) limit(recent []int32) int {
	if b == nil {
		return len(recent)
	}
	for i, head := range recent {
		for _, tail := range b.tails[head] {
			if matchesTail(tail, recent[:i]) {
				return i - len(tail)
			}
		}
	}
	return len(recent)
}

// matchesTail reports whether the tokens after a head are tail; newer holds
// them newest first.
func matchesTail(tail, newer []int32) bool {
	if len(tail) > len(newer) {
		return false
	}
	for j, id := range tail {
		if newer[len(newer)-1-j] != id {
			return false
		}
	}
	return true
}

// maxFloat32Log is ln(MaxFloat32): a penalty stops growing there.
const maxFloat32Log = 88.7228391

// dry lowers the logit of each token that would extend a repetition. For every
// earlier position of the window, the length L of the longest sequence that ends
// both there and at the newest token is taken, bounded by the last breaker; the
// token that followed it is penalised by the largest L it has.
func (s *Sampler) dry(l []float32) {
	c := &s.cfg
	window := s.window(c.DryPenaltyLastN)
	if len(window) <= c.DryAllowedLength {
		return
	}
	r := append(s.recent[:0], window...)
	slices.Reverse(r)
	s.recent = r
	limit := c.DryBreakers.limit(r)
	if limit < c.DryAllowedLength {
		return
	}

	// Z function of r: z[k] is how many tokens from r[k] on equal those from r[0].
	if cap(s.z) < len(r) {
		s.z = make([]int32, len(r), cap(r))
	}
	z := s.z[:len(r)]
	repeats := s.repeats[:0]
	lo, hi := 0, 0
	for k := 1; k < len(r); k++ {
		n := 0
		if k < hi {
			n = min(hi-k, int(z[k-lo]))
		}
		for k+n < len(r) && r[n] == r[k+n] {
			n++
		}
		z[k] = int32(n)
		if k+n > hi {
			lo, hi = k, k+n
		}
		if n = min(n, limit); n >= c.DryAllowedLength {
			// By token, the longest first.
			repeats = append(repeats, key(uint32(r[k-1]))<<32|key(^uint32(n)))
		}
	}
	s.repeats = repeats
	slices.Sort(repeats)

	logBase := log(c.DryBase)
	last := int32(-1)
	for _, rep := range repeats {
		id := int32(rep >> 32)
		if id == last {
			continue
		}
		last = id
		if c.DryBreakers.single(id) {
			continue
		}
		n := int(^uint32(rep)) - c.DryAllowedLength
		penalty := float64(c.DryMultiplier * exp(min(float64(float64(n)*logBase), maxFloat32Log)))
		s.patch(l, id, l[id]-float32(min(penalty, math.MaxFloat32)))
	}
}
