package grammar

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// qwenVocab returns the 151,936 pieces of Qwen2.5's vocabulary; the test is skipped without shared data.
func qwenVocab(t testing.TB) *Vocab {
	t.Helper()
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			if filepath.Dir(root) == root {
				t.Skip("no go.mod above the test, so no shared data beside it")
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(root, "..", "shared")
	}
	b, err := os.ReadFile(filepath.Join(dir, "golden", "vocab", "qwen2.5-vocab.gguf"))
	if err != nil {
		t.Skip("shared vocabulary is absent: ", err)
	}
	const eos = 151645
	pieces := ggufPieces(t, b)
	return NewVocab(pieces, func(id int32) bool { return id == eos || id == 151643 })
}

// ggufPieces reads tokenizer.ggml.tokens of a GGUF file as bytes; control tokens have none.
func ggufPieces(t testing.TB, b []byte) [][]byte {
	t.Helper()
	pos := 8
	u32 := func() uint32 { pos += 4; return binary.LittleEndian.Uint32(b[pos-4:]) }
	u64 := func() uint64 { pos += 8; return binary.LittleEndian.Uint64(b[pos-8:]) }
	str := func() string { n := int(u64()); pos += n; return string(b[pos-n : pos]) }
	size := map[uint32]int{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
	u64()
	keys := u64()
	var tokens []string
	var types []int32
	for range keys {
		key, kind := str(), u32()
		if kind == 8 {
			str()
			continue
		}
		if kind != 9 {
			pos += size[kind]
			continue
		}
		elem, n := u32(), int(u64())
		for range n {
			switch {
			case elem == 8 && key == "tokenizer.ggml.tokens":
				tokens = append(tokens, str())
			case elem == 8:
				str()
			case key == "tokenizer.ggml.token_type":
				types = append(types, int32(u32()))
			default:
				pos += size[elem]
			}
		}
	}
	// The byte-level alphabet: printable Latin-1 stands for itself, other bytes for U+0100 onwards.
	fromRune := map[rune]byte{}
	extra := rune(0x100)
	for c := range rune(256) {
		if c > ' ' && c < 0x7F || c >= 0xA1 && c <= 0xAC || c >= 0xAE {
			fromRune[c] = byte(c)
		} else {
			fromRune[extra] = byte(c)
			extra++
		}
	}
	pieces := make([][]byte, len(tokens))
	for i, tok := range tokens {
		if types[i] == 3 {
			continue
		}
		for _, r := range tok {
			pieces[i] = append(pieces[i], fromRune[r])
		}
	}
	return pieces
}

// smallVocab has single bytes, pieces of many bytes, parts of characters, duplicates, a control token
// and two end-of-generation tokens.
func smallVocab() *Vocab {
	pieces := [][]byte{{}, []byte("</s>"), []byte("<eot>")}
	for b := range 256 {
		pieces = append(pieces, []byte{byte(b)})
	}
	for _, s := range []string{
		"true", "false", "null", "{\"", "\":", "\", \"", "\"}", "\"}]", "[{", "}, {", "]]", "12", "123", "0.5",
		"e+", "abc", "abcdef", "abc", " abc", "\n  ", "\\n", "\\u00", "\xc3", "\xc3\xa9", "\xa9t", "\xe6\xbc",
		"\xa2\xe5", "漢字", "😀", "\xf0\x9f", "\x98\x80", "\":\"", "\",\"", "a\":1,\"b", "2026-", "-01", "::=", "\xff",
	} {
		pieces = append(pieces, []byte(s))
	}
	return NewVocab(pieces, func(id int32) bool { return id == 1 || id == 2 })
}

func ids(v *Vocab, s string) []int32 {
	var out []int32
	for i, p := range v.pieces {
		if string(p) == s {
			out = append(out, int32(i))
		}
	}
	return out
}

// checkMask compares the mask with the definition: one token at a time, from the bytes alone.
func checkMask(t rapid.TB, s *State) {
	t.Helper()
	mask := s.Mask()
	for id := range int32(len(s.m.v.pieces)) {
		if got, want := mask.Has(id), s.Allowed(id); got != want {
			t.Fatalf("token %d (%q): mask says %v, Allowed says %v", id, s.m.v.pieces[id], got, want)
		}
	}
}

// someEnd searches for text that completes what led to p, within a bound: breadth first among few bytes that end
// values, and then depth first, where the names and values that the schema writes out go first.
func someEnd(g *Grammar, p *position) ([]byte, bool) {
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	for _, alphabet := range []string{"\"}]:,0", "\"}]:,{[0125abx-.\\n"} {
		if end, ok := searchEnd(g.a, p, strings.Split(alphabet, ""), 8000/len(alphabet), false); ok {
			return end, true
		}
	}
	pieces := []string{"}", "]", `"`, ":"}
	if g.schema != nil {
		// Where names are told apart each name has states of its own, and a search meets more than MaxLazyStates.
		if slices.ContainsFunc(g.schema.m.objects, func(o *objectInfo) bool { return o.tracked }) {
			return nil, false
		}
		pieces = append([]string{"}", "]", ","}, written(g.schema.doc)...)
		pieces = append(pieces, "null", "false", "0", "1", `"`, ":", "[", "{")
	}
	for b := '0'; b < 0x7F; b++ {
		pieces = append(pieces, string(b))
	}
	for b := ' '; b < '0'; b++ {
		pieces = append(pieces, string(b))
	}
	for b := 0x80; b < 0xF5; b += 3 {
		pieces = append(pieces, string([]byte{byte(b)}))
	}
	return searchEnd(g.a, p, pieces, 120, true)
}

// written returns the texts of the strings of a schema, names and values.
func written(v *jsonValue) []string {
	var out []string
	for _, name := range v.names {
		out = append(out, quoteJSON(name, false))
	}
	if v.kind == jsonString {
		out = append(out, quoteJSON(v.text, false))
	}
	for _, item := range v.items {
		out = append(out, written(item)...)
	}
	return out
}

// searchEnd visits at most limit positions that pieces reach from p, until one is complete: breadth first; or depth
// first, where earlier pieces go before, but no deeper into values than is needed.
func searchEnd(a *automaton, p *position, pieces []string, limit int, depthFirst bool) ([]byte, bool) {
	type step struct {
		p     *position
		back  int
		piece string
	}
	steps := []step{{p: p}}
	seen := map[*position]bool{}
	open := [][]int{{0}} // indices of steps that are to be looked at, by depth
	for deep := 0; len(seen) < limit && deep < len(open); {
		list := open[deep]
		if len(list) == 0 {
			deep++
			continue
		}
		i := list[0]
		if depthFirst {
			i = list[len(list)-1]
			open[deep] = list[:len(list)-1]
		} else {
			open[deep] = list[1:]
		}
		if seen[steps[i].p] {
			continue
		}
		seen[steps[i].p] = true
		if steps[i].p.complete {
			var out []string
			for k := i; k > 0; k = steps[k].back {
				out = append(out, steps[k].piece)
			}
			slices.Reverse(out)
			return []byte(strings.Join(out, "")), true
		}
		for k := range pieces {
			piece := pieces[k]
			if depthFirst {
				piece = pieces[len(pieces)-1-k]
			}
			q := steps[i].p
			for b := 0; b < len(piece) && !q.dead(); b++ {
				q = a.step(q, piece[b])
			}
			if q.dead() || seen[q] {
				continue
			}
			at := deep
			if depthFirst && (piece == "[" || piece == "{") {
				if at++; at == len(open) {
					open = append(open, nil)
				}
			}
			steps = append(steps, step{q, i, piece})
			open[at] = append(open[at], len(steps)-1)
		}
	}
	return nil, false
}

// randomRun accepts random allowed tokens, checking masks on the way, and returns the text; after n
// tokens it goes to the nearest end. It fails on a dead end and returns nil if no end is found.
func randomRun(t rapid.TB, m *Matcher, rng *rand.Rand, n, check int) []byte {
	t.Helper()
	s := m.Start()
	var text []byte
	for i := 0; ; i++ {
		if s.Complete() && (i >= n || rng.IntN(8) == 0) {
			return text
		}
		if i < check {
			checkMask(t, s)
		}
		mask := s.Mask()
		var allowed []int32
		for id := range int32(len(m.v.pieces)) {
			if mask.Has(id) && !m.v.isEOG[id] {
				allowed = append(allowed, id)
			}
		}
		if len(allowed) == 0 {
			if s.Complete() {
				return text
			}
			t.Fatalf("dead end after %q", text)
		}
		id := allowed[rng.IntN(len(allowed))]
		if i >= n && i%10 == 0 {
			if rest, ok := someEnd(m.g, s.p); ok {
				if err := s.AcceptBytes(rest); err != nil || !s.Complete() {
					t.Fatalf("after %q: %q should end it: %v", text, rest, err)
				}
				return append(text, rest...)
			}
		}
		if i > n+60 {
			return nil // the search for an end is bounded
		}
		if err := s.Accept(id); err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		text = append(text, m.v.pieces[id]...)
	}
}

func TestMaskAgreesWithAllowed(t *testing.T) {
	v := smallVocab()
	for _, src := range []string{
		jsonGBNF,
		`root ::= [a-zé漢😀]+ | "x" root "y" | "12" | "é"`,
		`root ::= .{2,5} "abc"?`,
		`root ::= (word " "?)+
word ::= [a-f]+ | "é"`,
		`root ::= ""`,
	} {
		m := mustGBNF(t, src).Bind(v)
		for seed := range uint64(6) {
			rng := rand.New(rand.NewPCG(seed, 1))
			text := randomRun(t, m, rng, 12, 12)
			if !m.g.Match(text) {
				t.Errorf("%s\nrandom run gave %q, which does not match", src, text)
			}
		}
	}
}

func TestStateTokens(t *testing.T) {
	v := smallVocab()
	m := mustGBNF(t, `root ::= "é" [0-9]{2} "abc"*`).Bind(v)
	s := m.Start()
	one := func(piece string) int32 { return ids(v, piece)[0] }
	if s.Allowed(1) || s.Mask().Has(1) {
		t.Error("end of generation allowed before the text is complete")
	}
	if s.Allowed(0) || s.Mask().Has(0) {
		t.Error("control token allowed")
	}
	if s.Allowed(-1) || s.Allowed(int32(v.Size())) {
		t.Error("token outside the vocabulary allowed")
	}
	if err := s.Accept(one("abc")); !errors.Is(err, ErrRejected) {
		t.Errorf("Accept of a forbidden token: %v", err)
	}
	for _, p := range []string{"\xc3", "\xa9"} {
		if err := s.Accept(one(p)); err != nil {
			t.Fatal(err)
		}
	}
	fork := s.Clone()
	if err := s.Accept(one("12")); err != nil {
		t.Fatal(err)
	}
	if !s.Complete() || fork.Complete() {
		t.Errorf("complete: %v and %v, want true and false", s.Complete(), fork.Complete())
	}
	if !s.Allowed(1) || !s.Allowed(2) || s.Mask().Count() != 2+1+2 {
		t.Errorf("allowed at a complete text: %d tokens, want 2 ends, a and 2 abc", s.Mask().Count())
	}
	if err := s.Accept(one("abcdef")); !errors.Is(err, ErrRejected) {
		t.Errorf("a token that goes past the language: %v", err)
	}
	if err := s.Accept(2); err != nil {
		t.Fatal(err)
	}
	if s.Allowed(1) || s.Allowed(one("abc")) || s.Mask().Count() != 0 || s.Accept(1) == nil {
		t.Error("something is allowed after the end of generation")
	}
	logits := make([]float32, v.Size())
	if !fork.Apply(logits) {
		t.Error("Apply says that nothing is left")
	}
	for id := range logits {
		if got := !math.IsInf(float64(logits[id]), -1); got != fork.Allowed(int32(id)) {
			t.Errorf("Apply leaves token %d: %v", id, got)
		}
	}
	if s.Apply(logits) {
		t.Error("Apply says that something is left after the end")
	}
}

func TestForced(t *testing.T) {
	m := mustGBNF(t, `root ::= "abc" ("de" | "df") "x"`).Bind(smallVocab())
	s := m.Start()
	if got := s.Forced(); string(got) != "abcd" {
		t.Errorf("Forced() = %q, want abcd", got)
	}
	if err := s.AcceptBytes([]byte("abcde")); err != nil {
		t.Fatal(err)
	}
	if got := s.Forced(); string(got) != "x" {
		t.Errorf("Forced() = %q, want x", got)
	}
}

func TestVocabTrie(t *testing.T) {
	v := smallVocab()
	var got []int32
	for n := range int32(len(v.byte)) {
		for _, id := range v.ended(n) {
			if int(v.depth[n]) != len(v.pieces[id]) {
				t.Errorf("token %q ends at depth %d", v.pieces[id], v.depth[n])
			}
			got = append(got, id)
		}
	}
	slices.Sort(got)
	var want []int32
	for id, p := range v.pieces {
		if len(p) > 0 {
			want = append(want, int32(id))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("trie holds %d tokens, want %d", len(got), len(want))
	}
}

func BenchmarkNewVocab(b *testing.B) {
	v := qwenVocab(b)
	for b.Loop() {
		NewVocab(v.pieces, nil)
	}
}

// BenchmarkMask measures masks on the real vocabulary: cold finds everything anew, warm has the
// per-state masks but meets a new position, as inside a deeper array of the same grammar.
func BenchmarkMask(b *testing.B) {
	v := qwenVocab(b)
	prefixes := map[string]string{"value": `{"a":`, "string": `{"a":"b`, "number": `{"a":1`, "key": `{"a`}
	for name, text := range prefixes {
		b.Run(name+"/cold", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := mustGBNF(b, jsonGBNF).Bind(v).Start()
				if err := s.AcceptBytes([]byte(text)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				s.Mask()
			}
		})
		b.Run(name+"/warm", func(b *testing.B) {
			m := mustGBNF(b, jsonGBNF).Bind(v)
			s := m.Start()
			if err := s.AcceptBytes([]byte(text)); err != nil {
				b.Fatal(err)
			}
			s.Mask()
			for b.Loop() {
				clear(m.masks)
				s.Mask()
			}
		})
	}
}

func BenchmarkToken(b *testing.B) {
	v := qwenVocab(b)
	m := mustGBNF(b, jsonGBNF).Bind(v)
	s := m.Start()
	if err := s.AcceptBytes([]byte(`{"a":"b`)); err != nil {
		b.Fatal(err)
	}
	hello := ids(v, " hello")[0]
	b.Run("Allowed", func(b *testing.B) {
		for b.Loop() {
			s.Allowed(hello)
		}
	})
	b.Run("Accept", func(b *testing.B) {
		for b.Loop() {
			if err := s.Accept(hello); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Apply", func(b *testing.B) {
		logits := make([]float32, v.Size())
		for b.Loop() {
			s.Apply(logits)
		}
	})
}
