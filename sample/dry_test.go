package sample

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// dryPenalties is the definition, by trying every position and length: the
// penalty of each token in a vocabulary of n.
func dryPenalties(c Config, history []int32, n int) []float64 {
	w := history[max(0, len(history)-c.DryPenaltyLastN):]
	out := make([]float64, n)
	if len(w) <= c.DryAllowedLength {
		return out
	}
	limit := len(w)
	if c.DryBreakers != nil {
	search:
		for after := range w { // tokens after the breaker's head
			i := len(w) - 1 - after
			for _, tail := range c.DryBreakers.tails[w[i]] {
				if len(tail) <= after && equal(tail, w[i+1:i+1+len(tail)]) {
					limit = after - len(tail)
					break search
				}
			}
		}
	}
	if limit < c.DryAllowedLength {
		return out
	}
	best := make(map[int32]int)
	for end := 1; end < len(w); end++ { // w[end] follows the repetition that ends before it
		length := 0
		for length < end && length < limit && w[end-1-length] == w[len(w)-1-length] {
			length++
		}
		if old, ok := best[w[end]]; length >= c.DryAllowedLength && (!ok || length > old) {
			best[w[end]] = length
		}
	}
	for id, length := range best {
		if !c.DryBreakers.single(id) {
			out[id] = c.DryMultiplier * math.Pow(c.DryBase, float64(length-c.DryAllowedLength))
		}
	}
	return out
}

func equal(a, b []int32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestDryAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 4
		token := rapid.Int32Range(0, n-1)
		c := Neutral()
		c.DryMultiplier = rapid.Float64Range(0.1, 3).Draw(t, "multiplier")
		c.DryBase = rapid.Float64Range(1, 2).Draw(t, "base")
		c.DryAllowedLength = rapid.IntRange(0, 4).Draw(t, "allowed length")
		c.DryPenaltyLastN = rapid.IntRange(1, 40).Draw(t, "last n")
		if rapid.Bool().Draw(t, "breakers on") {
			b, err := NewBreakers(rapid.SliceOfN(rapid.SliceOfN(token, 1, 3), 0, 3).Draw(t, "breakers"))
			if err != nil {
				t.Fatal(err)
			}
			c.DryBreakers = b
		}
		history := rapid.SliceOfN(token, rapid.IntRange(0, 50).Draw(t, "length"), 60).Draw(t, "history")
		s := newSampler(t, c, n)
		for _, id := range history {
			s.Accept(id)
		}
		l := make([]float32, n)
		s.adjust(l)
		for id, want := range dryPenalties(c, history, n) {
			if got := -float64(l[id]); math.Abs(got-want) > 1e-5*(1+want) {
				t.Fatalf("token %d is lowered by %v, want %v", id, got, want)
			}
		}
	})
}

func TestDryExample(t *testing.T) {
	c := Neutral()
	c.DryMultiplier, c.DryBase = 0.8, 1.75
	s := newSampler(t, c, 10)
	for _, id := range []int32{1, 2, 3, 4, 5, 1, 2, 3} {
		s.Accept(id)
	}
	l := make([]float32, 10)
	s.adjust(l)
	for id, v := range l {
		want := float32(0)
		if id == 4 { // would extend "1 2 3"
			want = -0.8 * 1.75
		}
		if math.Abs(float64(v-want)) > 1e-6 {
			t.Errorf("token %d has logit %v, want %v", id, v, want)
		}
	}
}

func TestDryPenaltyStaysFinite(t *testing.T) {
	c := Neutral()
	c.DryMultiplier, c.DryBase, c.DryPenaltyLastN = 100, 4, 5000
	s := newSampler(t, c, 3)
	for range 5000 {
		s.Accept(1)
	}
	l := []float32{0, 0, float32(math.Inf(1))}
	if id := mustSample(t, s, l, nil); id != 2 {
		t.Errorf("token %d, want 2", id)
	}
	l[2], l[1] = 0, float32(math.Inf(1))
	if id := mustSample(t, s, l, nil); id != 1 {
		t.Errorf("token %d, want the repeated one at +Inf", id)
	}
}

// A window of the longest size is handled in time linear in it.
func TestDryLongHistory(t *testing.T) {
	c := Neutral()
	c.DryMultiplier, c.DryPenaltyLastN = 1, MaxHistory
	s := newSampler(t, c, 3)
	for range 200000 {
		s.Accept(1)
	}
	mustSample(t, s, []float32{0, 0, 0}, nil)
}

// letters is a vocabulary of given pieces that encodes by longest match.
type letters []string

func (v letters) VocabSize() int { return len(v) }

func (v letters) Piece(id int32) []byte { return []byte(v[id]) }

func (v letters) Encode(text string, _ bool) (out []int32) {
	for text != "" {
		best := -1
		for id, p := range v {
			if p != "" && strings.HasPrefix(text, p) && (best < 0 || len(p) > len(v[best])) {
				best = id
			}
		}
		if best < 0 {
			return out
		}
		out = append(out, int32(best))
		text = text[len(v[best]):]
	}
	return out
}

func TestBreakersFromStrings(t *testing.T) {
	v := letters{"", "a", "b", "c", "\n", ".\n", "xab", "za", "ab", "bc", "d"}
	b, err := BreakersFromStrings(v, []string{"\n", "abc"})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int32]bool{0: false, 1: false, 4: true, 5: true, 6: false, 8: false} {
		if b.single(id) != want {
			t.Errorf("token %d (%q) alone is a breaker: %v, want %v", id, v[id], !want, want)
		}
	}
	for _, c := range []struct {
		recent []int32 // newest first
		want   int
	}{
		{[]int32{10, 10, 5, 10}, 2}, // a newline in a token
		{[]int32{10, 3, 6, 10}, 1},  // xab c
		{[]int32{10, 9, 7, 10}, 1},  // za bc
		{[]int32{10, 9, 1, 10}, 1},  // a bc
		{[]int32{10, 3, 8, 10}, 1},  // ab c
		{[]int32{3, 2, 10, 10}, 4},  // b c alone is none
		{[]int32{10, 10, 10}, 3},
	} {
		if got := b.limit(c.recent); got != c.want {
			t.Errorf("%v: %d tokens after the breaker, want %d", c.recent, got, c.want)
		}
	}
	for _, bad := range [][]string{{""}, {strings.Repeat("a", MaxBreakerBytes+1)}, {"aQ"}} {
		if _, err := BreakersFromStrings(v, bad); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := BreakersFromStrings(v, []string{strings.Repeat("a", MaxBreakerBytes)}); err != nil {
		t.Error(err)
	}
	if _, err := BreakersFromStrings(v, DefaultBreakers); err != nil {
		t.Error(err)
	}
}

func TestBreakerLimits(t *testing.T) {
	for _, bad := range [][][]int32{{{}}, {nil}, {{-1}}, {{1, -2}}, {make([]int32, MaxBreakerLen+1)}} {
		if _, err := NewBreakers(bad); !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := NewBreakers([][]int32{make([]int32, MaxBreakerLen)}); err != nil {
		t.Error(err)
	}
	seqs := make([][]int32, MaxBreakers+1)
	for i := range seqs {
		seqs[i] = []int32{int32(i)}
	}
	if _, err := NewBreakers(seqs[:MaxBreakers]); err != nil {
		t.Error(err)
	}
	if _, err := NewBreakers(seqs); !errors.Is(err, ErrConfig) {
		t.Errorf("one breaker too many: %v", err)
	}
	b, err := NewBreakers([][]int32{{1, 2}, {1, 2}, {1}})
	if err != nil || b.Len() != 2 {
		t.Errorf("repeated sequences: %d, %v, want 2", b.Len(), err)
	}
}
