package tokenizer

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// Errors of loading; each is wrapped with the file, the key and the value.
var (
	// ErrModel: tokenizer.ggml.model is not "gpt2".
	ErrModel = errors.New("unsupported tokenizer model")
	// ErrPre: tokenizer.ggml.pre is missing or names no known pre-tokenizer.
	ErrPre = errors.New("unknown pre-tokenizer")
	// ErrVocab: the token list is empty, too long or contradicts itself.
	ErrVocab = errors.New("bad vocabulary")
	// ErrByteTokens: a byte has no token.
	ErrByteTokens = errors.New("missing byte tokens")
	// ErrMerges: the merge table is empty, too long or names no tokens.
	ErrMerges = errors.New("bad merge table")
	// ErrSpecial: a special token id lies outside the vocabulary.
	ErrSpecial = errors.New("bad special token")
)

// Limits on what a file may hold; they are checked before any allocation.
const (
	// MaxVocab is the largest number of tokens.
	MaxVocab = 1 << 21
	// MaxMerges is the largest number of merges.
	MaxMerges = 1 << 21
	// MaxTokenBytes is the largest length of a token's text in bytes.
	MaxTokenBytes = 1 << 16
	// MaxTextBytes is the largest length of all tokens' texts together.
	MaxTextBytes = 1 << 26
)

// tokenType is the type of a token as GGUF files store it.
type tokenType uint8

const (
	typeNormal      tokenType = 1
	typeUnknown     tokenType = 2
	typeControl     tokenType = 3
	typeUserDefined tokenType = 4
	typeUnused      tokenType = 5
	typeByte        tokenType = 6
)

// noToken stands for an absent special token.
const noToken = int32(-1)

// vocabData is what a file says about its tokenizer, before any check.
type vocabData struct {
	file   string // for errors
	model  string
	pre    string
	tokens []string
	types  []int64 // nil: all normal
	merges []string

	bos, eos, eot, eom, unk, pad int32 // noToken where absent
	fimPad, fimRep, fimSep       int32
	addBOS                       *bool // nil where absent
}

// The metadata keys, for errors too.
const (
	keyModel  = "tokenizer.ggml.model"
	keyPre    = "tokenizer.ggml.pre"
	keyTokens = "tokenizer.ggml.tokens"
	keyTypes  = "tokenizer.ggml.token_type"
	keyMerges = "tokenizer.ggml.merges"
	keyAddBOS = "tokenizer.ggml.add_bos_token"
	keyBOS    = "tokenizer.ggml.bos_token_id"
	keyEOS    = "tokenizer.ggml.eos_token_id"
	keyEOT    = "tokenizer.ggml.eot_token_id"
	keyEOM    = "tokenizer.ggml.eom_token_id"
	keyUNK    = "tokenizer.ggml.unknown_token_id"
	keyPAD    = "tokenizer.ggml.padding_token_id"
	keyFIMPad = "tokenizer.ggml.fim_pad_token_id"
	keyFIMRep = "tokenizer.ggml.fim_rep_token_id"
	keyFIMSep = "tokenizer.ggml.fim_sep_token_id"
)

// fail makes an error that names the file and the key.
func (d *vocabData) fail(key string, sentinel error, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w: %s", d.file, key, sentinel, fmt.Sprintf(format, args...))
}

// newTokenizer checks d and builds the tokenizer. It keeps the strings of d.
func newTokenizer(d *vocabData) (*Tokenizer, error) {
	if d.model != "gpt2" {
		return nil, d.fail(keyModel, ErrModel, "%q (only gpt2, byte-level BPE, is supported)", d.model)
	}
	r, ok := rules[d.pre]
	if !ok {
		if d.pre == "" {
			return nil, d.fail(keyPre, ErrPre, "the key is missing or empty, and no rule is assumed")
		}
		return nil, d.fail(keyPre, ErrPre, "%q", d.pre)
	}
	initClasses()
	t := &Tokenizer{rule: r, pre: d.pre}
	if err := t.loadTokens(d); err != nil {
		return nil, err
	}
	if err := t.loadSpecials(d); err != nil {
		return nil, err
	}
	if err := t.loadBytes(d); err != nil {
		return nil, err
	}
	if err := t.loadMerges(d); err != nil {
		return nil, err
	}
	t.buildTries()
	return t, nil
}

// loadTokens fills the texts, the types, the bytes of each token and the index
// from bytes to id.
func (t *Tokenizer) loadTokens(d *vocabData) error {
	n := len(d.tokens)
	switch {
	case n == 0:
		return d.fail(keyTokens, ErrVocab, "no tokens")
	case n > MaxVocab:
		return d.fail(keyTokens, ErrVocab, "%d tokens, more than %d", n, MaxVocab)
	case d.types != nil && len(d.types) != n:
		return d.fail(keyTypes, ErrVocab, "%d types for %d tokens", len(d.types), n)
	}
	total := 0
	for id, text := range d.tokens {
		if len(text) > MaxTokenBytes {
			return d.fail(keyTokens, ErrVocab, "token %d has %d bytes, more than %d", id, len(text), MaxTokenBytes)
		}
		total += len(text)
	}
	if total > MaxTextBytes {
		return d.fail(keyTokens, ErrVocab, "%d bytes of text, more than %d", total, MaxTextBytes)
	}

	t.texts = d.tokens
	t.types = make([]tokenType, n)
	for id := range t.types {
		t.types[id] = typeNormal
		if d.types != nil {
			v := d.types[id]
			if v < 0 || v > int64(typeByte) {
				return d.fail(keyTypes, ErrVocab, "token %d (%q) has type %d", id, d.tokens[id], v)
			}
			if v > 0 {
				t.types[id] = tokenType(v)
			}
		}
	}

	// A text within the alphabet yields fewer bytes than it has itself, so one
	// buffer of the whole length never moves.
	buf := make([]byte, 0, total)
	offsets := make([]uint32, n+1)
	level := make([]bool, n) // the text is in the alphabet
	for id, text := range d.tokens {
		buf, level[id] = appendBytes(buf, text)
		if !level[id] {
			buf = append(buf, text...)
		}
		offsets[id+1] = uint32(len(buf))
	}
	raw := string(buf)
	t.raw, t.rawEnds = raw, offsets
	t.index = make(map[string]int32, n)
	t.other = make(map[string]int32)
	for id, text := range d.tokens {
		if text == "" {
			continue // a hole in the vocabulary: never matched
		}
		m, key := t.index, raw[offsets[id]:offsets[id+1]]
		if !level[id] {
			m, key = t.other, text
		}
		if old, dup := m[key]; dup {
			return d.fail(keyTokens, ErrVocab, "tokens %d and %d are both %q", old, id, text)
		}
		m[key] = int32(id)
	}
	t.whole = make([]wholeWord, (n+wholePerWord-1)/wholePerWord)
	return nil
}

// loadBytes finds the token of each byte.
func (t *Tokenizer) loadBytes(d *vocabData) error {
	var missing []string
	for b := range 256 {
		id, ok := t.index[string([]byte{byte(b)})]
		if ok && !t.plain(id) {
			ok = false
		}
		t.byteID[b] = noToken
		switch {
		case ok:
			t.byteID[b] = id
		case strings.IndexByte(t.rule.mayLack, byte(b)) < 0:
			missing = append(missing, fmt.Sprintf("0x%02X (%q)", b, byteText(byte(b))))
		}
	}
	if n := len(missing); n > 0 {
		if n > 8 {
			missing = append(missing[:8], "...")
		}
		return d.fail(keyTokens, ErrByteTokens, "%d of 256: %s", n, strings.Join(missing, ", "))
	}
	return nil
}

// loadMerges turns the merge list into the table of pairs. A merge whose result
// is a control token is left out: text never becomes one.
func (t *Tokenizer) loadMerges(d *vocabData) error {
	n := len(d.merges)
	switch {
	case n == 0:
		return d.fail(keyMerges, ErrMerges, "no merges")
	case n > MaxMerges:
		return d.fail(keyMerges, ErrMerges, "%d merges, more than %d", n, MaxMerges)
	}
	t.pairs = newPairTable(n)
	var buf []byte
	for rank, m := range d.merges {
		// A space stands in no token text, so the first one divides; a part is
		// never empty.
		cut := strings.IndexByte(m, ' ')
		if cut <= 0 || cut == len(m)-1 || len(m) > 2*MaxTokenBytes {
			return d.fail(keyMerges, ErrMerges, "merge %d is %q, not two tokens", rank, clip(m))
		}
		var okL, okR bool
		buf, okL = appendBytes(buf[:0], m[:cut])
		split := len(buf)
		buf, okR = appendBytes(buf, m[cut+1:])
		if !okL || !okR {
			return d.fail(keyMerges, ErrMerges, "merge %d (%q) has a character outside the byte alphabet", rank, clip(m))
		}
		left, okL := t.index[string(buf[:split])]
		right, okR := t.index[string(buf[split:])]
		to, okTo := t.index[string(buf)]
		if !okL || !okR || !okTo {
			return d.fail(keyMerges, ErrMerges, "merge %d (%q): its parts or its result are no tokens", rank, clip(m))
		}
		if t.plain(to) {
			t.pairs.add(left, right, int32(rank), to)
		}
	}
	return nil
}

// clip shortens a string for an error message.
func clip(s string) string {
	const limit = 64
	if len(s) > limit {
		return s[:limit] + "..."
	}
	return s
}

// pairTable maps two adjacent tokens to their merge: open addressing, at most
// half full.
type pairTable struct {
	slots []pairSlot
	shift uint
}

type pairSlot struct {
	key  uint64 // left<<32 | right, plus 1; 0 is free
	rank int32
	to   int32
}

func newPairTable(n int) pairTable {
	log := uint(bits.Len(uint(2*n + 1)))
	return pairTable{slots: make([]pairSlot, 1<<log), shift: 64 - log}
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) + 1 }

func (p *pairTable) slot(key uint64) *pairSlot {
	mask := uint64(len(p.slots) - 1)
	// Fibonacci hashing; the halves are mixed first, so that both reach the top bits.
	for i := (key ^ key>>29) * 0x9E3779B97F4A7C15 >> p.shift; ; i = (i + 1) & mask {
		if s := &p.slots[i&mask]; s.key == key || s.key == 0 {
			return s
		}
	}
}

// add records a merge; of two of the same pair the first one counts.
func (p *pairTable) add(left, right, rank, to int32) {
	key := pairKey(left, right)
	if s := p.slot(key); s.key == 0 {
		*s = pairSlot{key, rank, to}
	}
}

// find returns the rank of merging left and right, and the result; noMerge when
// they do not merge.
func (p *pairTable) find(left, right int32) (rank, to int32) {
	key := pairKey(left, right)
	if s := p.slot(key); s.key == key {
		return s.rank, s.to
	}
	return noMerge, noToken
}
