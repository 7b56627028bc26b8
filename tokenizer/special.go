package tokenizer

import "strings"

// Files often type well-known control tokens as normal or user-defined. These
// texts are control tokens wherever they stand in a vocabulary.

// eogTexts end a generation.
var eogTexts = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "<end_of_turn>",
	"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
	"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>",
}

// The fill-in-the-middle tokens; those of the first group also end a
// generation.
var (
	fimEndTexts = []string{
		"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]",
		"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>",
		"<|file_sep|>",
	}
	fimTexts = []string{
		"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "<|code_prefix|>", "<|prefix|>",
		"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "<|code_suffix|>", "<|suffix|>",
		"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "<|code_middle|>", "<|middle|>",
	}
)

// loadSpecials checks the special ids and settles which tokens are control
// tokens and which end a generation.
func (t *Tokenizer) loadSpecials(d *vocabData) error {
	n := int32(len(t.texts))
	t.bos, t.eos, t.eot, t.eom, t.unk, t.pad = d.bos, d.eos, d.eot, d.eom, d.unk, d.pad
	t.eog = make(map[int32]bool)
	for _, e := range []struct {
		key string
		id  int32
		end bool // ends a generation
	}{
		{keyBOS, d.bos, false},
		{keyEOS, d.eos, true},
		{keyEOT, d.eot, true},
		{keyEOM, d.eom, true},
		{keyUNK, d.unk, false},
		{keyPAD, d.pad, false},
		{keyFIMPad, d.fimPad, true},
		{keyFIMRep, d.fimRep, true},
		{keyFIMSep, d.fimSep, true},
	} {
		if e.id < noToken || e.id >= n {
			return d.fail(e.key, ErrSpecial, "id %d in a vocabulary of %d tokens", e.id, n)
		}
		if e.end && e.id != noToken {
			t.eog[e.id] = true
		}
	}

	t.addBOS = t.rule.addBOS && t.bos != noToken
	if d.addBOS != nil {
		t.addBOS = *d.addBOS
		if t.addBOS && t.bos == noToken {
			return d.fail(keyAddBOS, ErrSpecial, "true, but %s is missing", keyBOS)
		}
	}

	has := func(text string) bool { _, ok := t.ID(text); return ok }
	// In these vocabularies <|end|> ends one message of several, and </s> is plain.
	messageEnd := has("<|return|>") && has("<|call|>") || has("<|calls|>") && has("<|flush|>")
	plainS := has("<|tool_response>")
	for _, text := range eogTexts {
		id, ok := t.ID(text)
		switch {
		case !ok || text == "</s>" && plainS && id != t.eos:
		case text == "<|end|>" && messageEnd && id != t.eos:
			t.types[id] = typeControl
		default:
			t.types[id] = typeControl
			t.eog[id] = true
		}
	}
	for _, text := range fimEndTexts {
		if id, ok := t.ID(text); ok {
			t.types[id] = typeControl
			t.eog[id] = true
		}
	}
	for _, text := range fimTexts {
		if id, ok := t.ID(text); ok {
			t.types[id] = typeControl
		}
	}
	return nil
}

// buildTries collects the tokens that are matched before splitting.
func (t *Tokenizer) buildTries() {
	t.owned, t.user = newTrie(), newTrie()
	for id, typ := range t.types {
		switch text := t.texts[id]; {
		case text == "":
		case typ == typeControl, typ == typeUnknown:
			t.owned.add(text, int32(id))
		case typ == typeUserDefined:
			t.owned.add(text, int32(id))
			t.user.add(text, int32(id))
		}
	}
}

// trie finds the longest of a set of texts at a position.
type trie struct {
	nodes []trieNode
	first [256]bool
	only  int // the one first byte, -1 for several, -2 for none
}

type trieNode struct {
	id    int32 // the text that ends here, noToken if none
	edges []trieEdge
}

type trieEdge struct {
	b    byte
	node int32
}

func newTrie() *trie { return &trie{nodes: []trieNode{{id: noToken}}, only: -2} }

func (t *trie) child(node int32, b byte) int32 {
	for _, e := range t.nodes[node].edges {
		if e.b == b {
			return e.node
		}
	}
	return -1
}

func (t *trie) add(text string, id int32) {
	if b := text[0]; !t.first[b] {
		t.first[b] = true
		if t.only == -2 {
			t.only = int(b)
		} else {
			t.only = -1
		}
	}
	node := int32(0)
	for i := range len(text) {
		next := t.child(node, text[i])
		if next < 0 {
			next = int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{id: noToken})
			t.nodes[node].edges = append(t.nodes[node].edges, trieEdge{text[i], next})
		}
		node = next
	}
	t.nodes[node].id = id
}

// longest returns the longest text that s starts with, and its length.
func (t *trie) longest(s string) (id int32, n int) {
	id = noToken
	node := int32(0)
	for i := range len(s) {
		if node = t.child(node, s[i]); node < 0 {
			break
		}
		if t.nodes[node].id != noToken {
			id, n = t.nodes[node].id, i+1
		}
	}
	return id, n
}

// find returns the leftmost text in s, the longest of those at one place: its
// position, length and id. The id is noToken when there is none.
func (t *trie) find(s string) (pos, n int, id int32) {
	for i := 0; i < len(s); i++ {
		switch {
		case t.only == -2:
			return len(s), 0, noToken
		case t.only >= 0:
			k := strings.IndexByte(s[i:], byte(t.only))
			if k < 0 {
				return len(s), 0, noToken
			}
			i += k
		case !t.first[s[i]]:
			continue
		}
		if id, n := t.longest(s[i:]); id != noToken {
			return i, n, id
		}
	}
	return len(s), 0, noToken
}
