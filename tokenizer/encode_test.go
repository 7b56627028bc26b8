package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// naive merges by scanning for the pair of lowest rank, the leftmost first.
func naive(tok *Tokenizer, piece string) []int32 {
	var ids []int32
	for i := range len(piece) {
		if id := tok.byteID[piece[i]]; id != noToken {
			ids = append(ids, id)
		}
	}
	for {
		best, rank, to := -1, noMerge, noToken
		for i := 0; i+1 < len(ids); i++ {
			if r, id := tok.pairs.find(ids[i], ids[i+1]); r < rank {
				best, rank, to = i, r, id
			}
		}
		if best < 0 {
			return ids
		}
		ids[best] = to
		ids = slices.Delete(ids, best+1, best+2)
	}
}

func TestMergeAgainstNaive(t *testing.T) {
	tok := small(t, "gpt-2")
	ab := build(t, func() *vocabData { // every order of merging matters here
		d := base()
		d.tokens = append(d.tokens, "aa", "aaa", "ba", "aab", "aaaa")
		d.merges = []string{"b a", "a a", "aa a", "a ab", "aa aa", "aa b"}
		d.merges = slices.DeleteFunc(d.merges, func(m string) bool { return m == "a ab" })
		d.tokens = append(d.tokens, "bab")
		return d
	}())
	rapid.Check(t, func(t *rapid.T) {
		tk, alphabet := tok, "etaoin shrdlu\nThe'\u00e9日"
		if rapid.Bool().Draw(t, "ab") {
			tk, alphabet = ab, "ab"
		}
		n := rapid.SampledFrom([]int{4, shortPiece - 1, shortPiece, shortPiece + 1, 200}).Draw(t, "n")
		s := rapid.StringOfN(rapid.SampledFrom([]rune(alphabet)), 0, n, -1).Draw(t, "s")
		var m merger
		want := naive(tk, s)
		if got := tk.merge(nil, &m, s); !slices.Equal(got, want) {
			t.Fatalf("merge(%q) = %v, want %v", s, got, want)
		}
		if got := tk.mergeLong(nil, &m, s); !slices.Equal(got, want) {
			t.Fatalf("mergeLong(%q) = %v, want %v", s, got, want)
		}
		for range 2 {
			if got := tk.appendPiece(nil, &m, s); !slices.Equal(got, want) {
				t.Fatalf("appendPiece(%q) = %v, want %v", s, got, want)
			}
		}
	})
}

// anyText draws text of many kinds, broken bytes included when broken is set.
func anyText(t *rapid.T, broken bool) string {
	parts := rapid.SliceOfN(rapid.OneOf(
		rapid.String(),
		rapid.StringOf(rapid.SampledFrom([]rune("aA1 '\n\r\t!é\u0301日あ/s"))),
		rapid.SampledFrom([]string{"<|im_end|>", "<think>", "<|endoftext|>", "'ll", "    ", "\r\n", "👩‍👩‍👧‍👦"}),
	), 0, 6).Draw(t, "parts")
	s := strings.Join(parts, "")
	if broken {
		for _, b := range rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "bytes") {
			i := rapid.IntRange(0, len(s)).Draw(t, "at")
			s = s[:i] + string([]byte{b}) + s[i:]
		}
	}
	return s
}

// TestRoundTrip: the pieces of the ids give back the text, byte for byte; broken
// UTF-8 too. Where the rule normalizes, they give the normal form.
func TestRoundTrip(t *testing.T) {
	for _, pre := range Rules() {
		tok := small(t, pre)
		t.Run(pre, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := anyText(t, rapid.Bool().Draw(t, "broken"))
				want := s
				if tok.Normalizes() {
					want = nfc(s)
				}
				ids := tok.Encode(s, false)
				var got []byte
				for _, id := range ids {
					if tok.IsControl(id) {
						t.Fatalf("%q became control token %q", s, tok.Text(id))
					}
					got = append(got, tok.Piece(id)...)
				}
				// User-defined tokens are set aside before the normal form is made.
				if string(got) != want && (!tok.Normalizes() || nfc(string(got)) != want) {
					t.Fatalf("%q came back as %q", s, got)
				}
				if tok.rule.mayLack == "" && utf8.ValidString(s) && tok.Decode(ids) != string(got) {
					t.Fatalf("Decode: %q", tok.Decode(ids))
				}
				if join := strings.Join(tok.Pieces(s), ""); join != want {
					t.Fatalf("the pieces of %q join to %q", s, join)
				}
				if again := tok.Append([]int32{-7}, s, false); again[0] != -7 || !slices.Equal(again[1:], ids) {
					t.Fatalf("a second run gives %v, not %v", again[1:], ids)
				}
			})
		})
	}
}

// TestInvalidUTF8: a broken byte is kept, and cuts pieces as U+FFFD does.
func TestInvalidUTF8(t *testing.T) {
	for _, pre := range Rules() {
		tok := small(t, pre)
		for _, s := range []string{"a\xffb", "\xc3", "\xe2\x82 a", " \xff!", "1\xf02\n\xff", "\xed\xa0\x80", "a\xff\xfe\xfd's"} {
			// Each broken byte alone is one U+FFFD: put those in and map the ends back.
			var with strings.Builder
			var back []int // offset in with -> offset in s
			for i := 0; i < len(s); {
				r, n := utf8.DecodeRuneInString(s[i:])
				for range utf8.RuneLen(r) {
					back = append(back, i)
				}
				with.WriteRune(r)
				i += n
			}
			back = append(back, len(s))
			var sp, sq splitter
			got := sp.split(tok.rule.stages, s)
			ref := sq.split(tok.rule.stages, with.String())
			var want []int
			for _, e := range ref {
				want = append(want, back[e])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q is cut at %v, with U+FFFD at %v", pre, s, got, want)
			}
		}
	}
}

func TestConcurrent(t *testing.T) {
	tok := small(t, "qwen2")
	text := benchText("mixed")[:4000]
	want := small(t, "qwen2").Encode(text, true)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if got := tok.Encode(text, true); !slices.Equal(got, want) {
					t.Error("concurrent calls differ")
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestLinear: hostile texts of 128 KB are cut and merged in well under
// the time that anything quadratic would need.
func TestLinear(t *testing.T) {
	if raceEnabled {
		t.Skip("times mean nothing under the race detector")
	}
	initClasses()
	const limit = 20 * time.Second // a few milliseconds on an idle machine
	units := []string{
		"a", " ", "\n", "'", "1", "あ", "aB", "\u0301", "a ", " \t", "Aあ", "\u0301B", "!", "ab12", "\xff", " a", "漢a", "\r\n ", "é", "ʰA", ".\n",
	}
	for pre := range pieceRules {
		for _, unit := range units {
			text := strings.Repeat(unit, 1<<17/len(unit))
			var sp splitter
			start := time.Now()
			ends := sp.split(rules[pre].stages, text)
			if d := time.Since(start); d > limit || len(ends) == 0 || ends[len(ends)-1] != len(text) {
				t.Errorf("%s: %d bytes of %q: %d pieces in %v", pre, len(text), unit, len(ends), d)
			}
		}
	}
	tok := small(t, "gpt-2")
	for _, unit := range []string{"a", "the", "etaoin"} {
		text := strings.Repeat(unit, 1<<18/len(unit))
		start := time.Now()
		ids := tok.Encode(text, false)
		if d := time.Since(start); d > limit || len(ids) == 0 {
			t.Errorf("one word of %d bytes of %q: %d ids in %v", len(text), unit, len(ids), d)
		}
	}
}

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	tok := small(t, "smollm")
	text := benchText("english")[:2000]
	dst := tok.Encode(text, false)
	if n := testing.AllocsPerRun(50, func() { dst = tok.Append(dst[:0], text, false) }); n > 1 {
		t.Errorf("%v allocations per call with buffers at hand", n)
	}
}

func FuzzEncode(f *testing.F) {
	toks := make([]*Tokenizer, 0, len(rules))
	for _, pre := range Rules() {
		toks = append(toks, small(f, pre))
	}
	for i, s := range []string{
		"", "Hello, world!", "I'm can't WE'LL", "  \n\t x\r\n\r\n", "日本語 カナ 한국어", "e\u0301 a\u0302\u0323", "👩‍👩‍👧‍👦 1234567",
		"<|im_start|>user<think>", "\xff\xc3\x28\xe2\x82", "'ſ", strings.Repeat("ab", 64), "aあBあ\u0301C",
	} {
		f.Add(uint8(i*7), s, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, rule uint8, s string, parse bool) {
		tok := toks[int(rule)%len(toks)]
		var sp splitter
		text := s
		if tok.Normalizes() {
			text = nfc(s)
		}
		last := 0
		for _, end := range sp.split(tok.rule.stages, text) {
			if end <= last || end > len(text) {
				t.Fatalf("ends %d after %d", end, last)
			}
			last = end
		}
		if last != len(text) {
			t.Fatalf("pieces cover %d of %d bytes", last, len(text))
		}
		var got []byte
		for _, id := range tok.Encode(s, parse) {
			if !parse && tok.IsControl(id) {
				t.Fatalf("control token %q from text", tok.Text(id))
			}
			got = append(got, tok.PieceSpecial(id)...)
		}
		if string(got) != text && (!tok.Normalizes() || nfc(string(got)) != text) {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}
