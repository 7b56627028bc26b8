package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// base is a minimal vocabulary: the 256 bytes, "ab" and its merge.
func base() *vocabData {
	d := &vocabData{
		file: "x.gguf", model: "gpt2", pre: "gpt-2", merges: []string{"a b"},
		bos: -1, eos: -1, eot: -1, eom: -1, unk: -1, pad: -1, fimPad: -1, fimRep: -1, fimSep: -1,
	}
	for b := range 256 {
		d.tokens = append(d.tokens, byteText(byte(b)))
	}
	d.tokens = append(d.tokens, "ab")
	return d
}

// with returns base with tokens of one type added; the first added id is 257.
func with(typ tokenType, texts ...string) *vocabData {
	d := base()
	d.types = slices.Repeat([]int64{1}, len(d.tokens))
	for _, s := range texts {
		d.tokens = append(d.tokens, s)
		d.types = append(d.types, int64(typ))
	}
	return d
}

func build(t testing.TB, d *vocabData) *Tokenizer {
	t.Helper()
	tok, err := newTokenizer(d)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestRefusals(t *testing.T) {
	yes := true
	long := strings.Repeat("a", MaxTokenBytes+1)
	for _, c := range []struct {
		name string
		edit func(d *vocabData)
		want error
		says []string // what the message must name
	}{
		{"model", func(d *vocabData) { d.model = "llama" }, ErrModel, []string{keyModel, `"llama"`}},
		{"no model", func(d *vocabData) { d.model = "" }, ErrModel, []string{keyModel}},
		{"unknown rule", func(d *vocabData) { d.pre = "qwen99" }, ErrPre, []string{keyPre, `"qwen99"`}},
		{"no rule", func(d *vocabData) { d.pre = "" }, ErrPre, []string{keyPre, "missing"}},
		{"no tokens", func(d *vocabData) { d.tokens = nil }, ErrVocab, []string{keyTokens}},
		{"types short", func(d *vocabData) { d.types = make([]int64, 3) }, ErrVocab, []string{keyTypes, "3 types for 257"}},
		{"type", func(d *vocabData) { d.types = make([]int64, 257); d.types[7] = 9 }, ErrVocab, []string{"token 7", "type 9"}},
		{"negative type", func(d *vocabData) { d.types = make([]int64, 257); d.types[7] = -1 }, ErrVocab, []string{"token 7"}},
		{"twice", func(d *vocabData) { d.tokens = append(d.tokens, "ab") }, ErrVocab, []string{"256 and 257", `"ab"`}},
		{"twice, special", func(d *vocabData) { d.tokens = append(d.tokens, "a b", "a b") }, ErrVocab, []string{"257 and 258"}},
		{"long token", func(d *vocabData) { d.tokens = append(d.tokens, long) }, ErrVocab, []string{"token 257", "65537"}},
		{"byte", func(d *vocabData) { d.tokens[0x41] = "<A>" }, ErrByteTokens, []string{keyTokens, "1 of 256", "0x41"}},
		{"bytes", func(d *vocabData) { d.tokens = d.tokens[200:] }, ErrByteTokens, []string{"200 of 256", "0x00", "..."}},
		{"byte is control", func(d *vocabData) { d.types = slices.Repeat([]int64{1}, 257); d.types[0x41] = 3 }, ErrByteTokens, []string{"0x41"}},
		{"no merges", func(d *vocabData) { d.merges = nil }, ErrMerges, []string{keyMerges, "no merges"}},
		{"one part", func(d *vocabData) { d.merges = []string{"a b", "ab"} }, ErrMerges, []string{"merge 1", `"ab"`}},
		{"empty left", func(d *vocabData) { d.merges[0] = " b" }, ErrMerges, []string{"merge 0"}},
		{"empty right", func(d *vocabData) { d.merges[0] = "a " }, ErrMerges, []string{"merge 0"}},
		{"three parts", func(d *vocabData) { d.merges[0] = "a b c" }, ErrMerges, []string{"merge 0"}},
		{"no token", func(d *vocabData) { d.merges[0] = "a c" }, ErrMerges, []string{"merge 0", `"a c"`}},
		{"alphabet", func(d *vocabData) { d.merges[0] = "日 本" }, ErrMerges, []string{"alphabet"}},
		{"bos", func(d *vocabData) { d.bos = 257 }, ErrSpecial, []string{keyBOS, "257"}},
		{"eos", func(d *vocabData) { d.eos = 1 << 30 }, ErrSpecial, []string{keyEOS}},
		{"pad", func(d *vocabData) { d.pad = -2 }, ErrSpecial, []string{keyPAD, "-2"}},
		{"add bos", func(d *vocabData) { d.addBOS = &yes }, ErrSpecial, []string{keyAddBOS, keyBOS}},
		{"too many tokens", func(d *vocabData) { d.tokens = make([]string, MaxVocab+1) }, ErrVocab, []string{"2097153"}},
		{"too many merges", func(d *vocabData) { d.merges = make([]string, MaxMerges+1) }, ErrMerges, []string{"2097153"}},
		{"too much text", func(d *vocabData) {
			d.tokens = slices.Repeat([]string{long[:MaxTokenBytes]}, MaxTextBytes/MaxTokenBytes+1)
		}, ErrVocab, []string{"bytes of text"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := base()
			c.edit(d)
			_, err := newTokenizer(d)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			for _, s := range append(c.says, "x.gguf") {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			if len(err.Error()) > 1000 {
				t.Errorf("message of %d bytes", len(err.Error()))
			}
		})
	}
}

// TestLimits loads what is exactly at each limit.
func TestLimits(t *testing.T) {
	d := base()
	d.tokens = append(d.tokens, strings.Repeat("a", MaxTokenBytes))
	d.tokens = append(d.tokens, make([]string, MaxVocab-len(d.tokens))...) // holes
	d.merges = slices.Repeat([]string{"a b"}, MaxMerges)
	tok := build(t, d)
	if tok.VocabSize() != MaxVocab {
		t.Errorf("%d tokens", tok.VocabSize())
	}
	if got := tok.Encode("ab", false); !slices.Equal(got, []int32{256}) {
		t.Errorf("got %v", got)
	}
	if got := tok.Piece(MaxVocab - 1); len(got) != 0 {
		t.Errorf("a hole decodes to %q", got)
	}
	if _, ok := tok.ID(""); ok {
		t.Error("a hole has an id by its text")
	}

	d = base()
	piece := strings.Repeat("a", MaxTokenBytes-4)
	total := 0
	for _, s := range d.tokens {
		total += len(s)
	}
	for i := 0; total < MaxTextBytes; i++ {
		s := string([]byte{'a' + byte(i>>12&15), 'a' + byte(i>>8&15), 'a' + byte(i>>4&15), 'a' + byte(i&15)}) + piece
		s = s[:min(len(s), MaxTextBytes-total)]
		total += len(s)
		d.tokens = append(d.tokens, s)
	}
	build(t, d)
}

func TestSmolLMLacksBytes(t *testing.T) {
	d := base()
	d.pre = "smollm"
	d.tokens[0xFF], d.tokens[0x04] = "<a b>", "<c d>"
	tok := build(t, d)
	if got := tok.Encode("!\x04!\xff", false); !slices.Equal(got, []int32{'!', '!'}) {
		t.Errorf("got %v", got)
	}
	d.tokens[0x41] = "<e f>"
	if _, err := newTokenizer(d); !errors.Is(err, ErrByteTokens) {
		t.Errorf("got %v, want %v", err, ErrByteTokens)
	}
}

func TestAddBOS(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		pre  string
		bos  int32
		key  *bool
		want bool
	}{
		{"gpt-2", 0, nil, false},
		{"gpt-2", 0, &yes, true},
		{"llama-bpe", 0, nil, true},
		{"llama-bpe", 0, &no, false},
		{"llama-bpe", -1, nil, false},
		{"tekken", 0, nil, true},
		{"qwen2", 0, nil, false},
	} {
		d := base()
		d.pre, d.bos, d.addBOS = c.pre, c.bos, c.key
		if got := build(t, d).AddBOS(); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

func TestIgnoreMerges(t *testing.T) {
	d := base()
	d.tokens = append(d.tokens, "xyz") // no merges lead to it
	for pre, want := range map[string][]int32{"llama-bpe": {257}, "gpt-2": {'x', 'y', 'z'}} {
		d.pre = pre
		tok := build(t, d)
		for range 2 { // the second time from what the first found out
			if got := tok.Encode("xyz", false); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", pre, got, want)
			}
		}
	}
}

// FuzzLoad feeds damaged vocabularies: an error or a working tokenizer, never a
// panic.
func FuzzLoad(f *testing.F) {
	f.Add("gpt-2", "<x>", int64(3), "a b", int32(0))
	f.Add("qwen2", "Ġt", int64(1), "Ġ t", int32(300))
	f.Add("smollm", "", int64(4), "  ", int32(-1))
	f.Add("llama-bpe", "\xff\xfe", int64(2), "\xff \xfe", int32(5))
	f.Fuzz(func(t *testing.T, pre, token string, typ int64, merge string, special int32) {
		d := with(typeControl, token)
		d.types[257] = typ
		d.pre, d.eos = pre, special
		d.merges = append(d.merges, merge)
		tok, err := newTokenizer(d)
		if err != nil {
			return
		}
		text := "ab" + token + merge + pre
		for _, parse := range []bool{false, true} {
			ids := tok.Encode(text, parse)
			for _, id := range ids {
				if !tok.valid(id) || !parse && tok.IsControl(id) {
					t.Fatalf("id %d", id)
				}
			}
			tok.Decode(ids)
		}
	})
}

func TestRulesSorted(t *testing.T) {
	names := Rules()
	if !slices.IsSorted(names) || len(names) != len(rules) {
		t.Errorf("%v", names)
	}
	for _, name := range []string{"qwen2", "deepseek-r1-qwen", "qwen35", "smollm", "llama-bpe", "gpt-2", "default"} {
		if !slices.Contains(names, name) {
			t.Errorf("no %s", name)
		}
	}
}
