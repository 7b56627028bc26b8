package tokenizer

import (
	"slices"
	"testing"
)

func TestSpecialTokens(t *testing.T) {
	d := with(typeControl, "<|x|>", "<|x", "<a>")
	for _, s := range []string{"<think>", "<th", "   "} {
		d.tokens = append(d.tokens, s)
		d.types = append(d.types, int64(typeUserDefined))
	}
	d.tokens = append(d.tokens, "<unk>")
	d.types = append(d.types, int64(typeUnknown))
	const x, xOpen, a, think, th, gap, unk = 257, 258, 259, 260, 261, 262, 263
	tok := build(t, d)
	for _, c := range []struct {
		text  string
		parse bool
		want  []int32
	}{
		{"<|x|>", true, []int32{x}},
		{"<|x|>", false, []int32{'<', '|', 'x', '|', '>'}},
		{"<|x|", true, []int32{xOpen, '|'}}, // the longest that is there
		{"<<|x|>>", true, []int32{'<', x, '>'}},
		{"<|x|><|x<a>", true, []int32{x, xOpen, a}},
		{"<unk>", true, []int32{unk}},
		{"<unk>", false, []int32{'<', 'u', 'n', 'k', '>'}},
		{"ab<a>ab", true, []int32{256, a, 256}}, // merges do not cross a token
		{"a<a>b", true, []int32{'a', a, 'b'}},
		{"<think>", false, []int32{think}}, // user-defined tokens match in any text
		{"<think>", true, []int32{think}},
		{"<thin", false, []int32{th, 'i', 'n'}},
		{"     ", false, []int32{gap, ' ', ' '}},
		{"      ", false, []int32{gap, gap}},
		{"", true, nil},
	} {
		if got := tok.Encode(c.text, c.parse); !slices.Equal(got, c.want) {
			t.Errorf("%q, parseSpecial %v: got %v, want %v", c.text, c.parse, got, c.want)
		}
	}
	for id, want := range map[int32]bool{x: true, a: true, unk: true, think: false, 256: false, -1: false, 264: false} {
		if got := tok.IsControl(id); got != want {
			t.Errorf("IsControl(%d) = %v", id, got)
		}
	}
	if tok.Piece(x) != nil || string(tok.PieceSpecial(x)) != "<|x|>" || string(tok.Piece(think)) != "<think>" {
		t.Error("pieces of special tokens")
	}
	if tok.Piece(-1) != nil || tok.PieceSpecial(1<<20) != nil || tok.Text(-1) != "" {
		t.Error("pieces of ids outside the vocabulary")
	}
	for _, text := range []string{"<|x|>", "<think>", "ab", "Ġ", "Ā"} {
		if id, ok := tok.ID(text); !ok || tok.Text(id) != text {
			t.Errorf("ID(%q) = %d, %v", text, id, ok)
		}
	}
	for _, text := range []string{"", "abc", "日本", "a b"} {
		if id, ok := tok.ID(text); ok {
			t.Errorf("ID(%q) = %d", text, id)
		}
	}
}

// TestControlStaysText: neither a merge nor a whole piece makes a control token
// of plain text.
func TestControlStaysText(t *testing.T) {
	for _, pre := range []string{"gpt-2", "llama-bpe"} {
		d := with(typeControl, "xy", "cd")
		d.pre = pre
		d.merges = append(d.merges, "x y")
		tok := build(t, d)
		if got := tok.Encode("xycd", false); !slices.Equal(got, []int32{'x', 'y', 'c', 'd'}) {
			t.Errorf("%s: got %v", pre, got)
		}
		if got := tok.Encode("xycd", true); !slices.Equal(got, []int32{257, 258}) {
			t.Errorf("%s: got %v", pre, got)
		}
	}
}

func TestEndOfGeneration(t *testing.T) {
	// Whatever their types say, these are control tokens.
	for _, typ := range []tokenType{typeNormal, typeControl, typeUserDefined} {
		var all []string
		all = append(all, eogTexts...)
		all = append(all, fimEndTexts...)
		all = append(all, fimTexts...)
		d := with(typ, all...)
		tok := build(t, d)
		for i, text := range all {
			id := int32(257 + i)
			ends := i < len(eogTexts)+len(fimEndTexts)
			switch text {
			case "<|end|>", "</s>": // not where <|call|> and <|tool_response> are
				ends = false
			}
			control := text != "</s>" || typ == typeControl
			if tok.IsEOG(id) != ends || tok.IsControl(id) != control {
				t.Errorf("%q: IsEOG %v, IsControl %v", text, tok.IsEOG(id), tok.IsControl(id))
			}
		}
		if got := tok.Encode("<|im_end|>", false); len(got) == 1 {
			t.Errorf("type %d: user text became <|im_end|>", typ)
		}
	}
	for _, text := range []string{"<|end|>", "</s>"} {
		tok := build(t, with(typeNormal, text))
		if !tok.IsEOG(257) || !tok.IsControl(257) {
			t.Errorf("%q alone does not end a generation", text)
		}
	}
	d := with(typeControl, "<stop>", "<turn>", "<msg>", "<pad>", "<rep>", "<sep>", "<bos>", "<other>")
	d.eos, d.eot, d.eom, d.fimPad, d.fimRep, d.fimSep, d.bos, d.unk, d.pad = 257, 258, 259, 260, 261, 262, 263, 264, 264
	tok := build(t, d)
	for id := range int32(tok.VocabSize()) {
		if want := id >= 257 && id <= 262; tok.IsEOG(id) != want {
			t.Errorf("IsEOG(%d) = %v", id, !want)
		}
	}
	for _, c := range []struct {
		name string
		get  func() (int32, bool)
		want int32
	}{
		{"BOS", tok.BOS, 263},
		{"EOS", tok.EOS, 257},
		{"EOT", tok.EOT, 258},
		{"Unknown", tok.Unknown, 264},
		{"Padding", tok.Padding, 264},
	} {
		if id, ok := c.get(); !ok || id != c.want {
			t.Errorf("%s = %d, %v", c.name, id, ok)
		}
	}
	if id, ok := build(t, base()).BOS(); ok {
		t.Errorf("BOS = %d without a key", id)
	}
}

func TestTrieFirstBytes(t *testing.T) {
	tr := newTrie()
	if _, _, id := tr.find("abc"); id != noToken {
		t.Error("an empty trie found something")
	}
	tr.add("<a", 1)
	tr.add("[b", 2)
	tr.add("<abc", 3)
	for _, c := range []struct {
		s      string
		pos, n int
		id     int32
	}{
		{"x<ab", 1, 2, 1},
		{"x[<abcd", 2, 4, 3},
		{"[b<a", 0, 2, 2},
		{"<[", 2, 0, noToken},
	} {
		if pos, n, id := tr.find(c.s); pos != c.pos || n != c.n || id != c.id {
			t.Errorf("find(%q) = %d %d %d", c.s, pos, n, id)
		}
	}
}
