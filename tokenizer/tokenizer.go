package tokenizer

import "sync"

// Tokenizer turns text into token ids and back. It is immutable and safe for
// concurrent use.
type Tokenizer struct {
	rule   rule
	pre    string
	addBOS bool

	texts   []string    // as stored
	types   []tokenType // after the well-known texts were settled
	raw     string      // the bytes of all tokens, one after another
	rawEnds []uint32    // token id spans raw[rawEnds[id]:rawEnds[id+1]]
	index   map[string]int32
	other   map[string]int32 // tokens whose text is not in the byte alphabet
	byteID  [256]int32       // noToken where the vocabulary lacks the byte
	pairs   pairTable
	whole   []wholeWord

	owned *trie // matched in text that the caller owns: control, unknown, user-defined
	user  *trie // matched in any text: user-defined
	eog   map[int32]bool

	bos, eos, eot, eom, unk, pad int32

	scratch sync.Pool // *scratch
}

// scratch is what one Append call works with.
type scratch struct {
	splitter
	merger
}

// maxKept bounds, in elements, the buffers that are kept for the next call.
const maxKept = 1 << 17

// Encode returns the ids of text. It adds no BOS or EOS.
//
// With parseSpecial, control tokens written in text become those tokens: for
// text that a chat template or the caller owns. Without it they are plain text,
// whatever they look like. User-defined tokens match in both cases.
func (t *Tokenizer) Encode(text string, parseSpecial bool) []int32 {
	return t.Append(make([]int32, 0, len(text)/4+1), text, parseSpecial)
}

// Append is Encode that appends to dst and returns it.
func (t *Tokenizer) Append(dst []int32, text string, parseSpecial bool) []int32 {
	sc, _ := t.scratch.Get().(*scratch)
	if sc == nil {
		sc = new(scratch)
	}
	special := t.user
	if parseSpecial {
		special = t.owned
	}
	for text != "" {
		pos, n, id := special.find(text)
		dst = t.appendText(dst, sc, text[:pos])
		if id != noToken {
			dst = append(dst, id)
		}
		text = text[pos+n:]
	}
	if cap(sc.a)+cap(sc.b)+cap(sc.long)+cap(sc.heap) <= maxKept {
		t.scratch.Put(sc)
	}
	return dst
}

// appendText appends the ids of text without special tokens.
func (t *Tokenizer) appendText(dst []int32, sc *scratch, text string) []int32 {
	if t.rule.nfc {
		text = nfc(text)
	}
	start := 0
	for _, end := range sc.split(t.rule.stages, text) {
		dst = t.appendPiece(dst, &sc.merger, text[start:end])
		start = end
	}
	return dst
}

// Pieces returns the pieces into which the pre-tokenizer cuts text, special
// tokens and merges aside. Their concatenation is the text in the form that is
// encoded (see [Tokenizer.Normalizes]).
func (t *Tokenizer) Pieces(text string) []string {
	if t.rule.nfc {
		text = nfc(text)
	}
	var sp splitter
	var out []string
	start := 0
	for _, end := range sp.split(t.rule.stages, text) {
		out = append(out, text[start:end])
		start = end
	}
	return out
}

// Pre returns the name of the pre-tokenizer, as the file gives it.
func (t *Tokenizer) Pre() string { return t.pre }

// Normalizes reports whether text is put into Unicode normal form C before it
// is cut.
func (t *Tokenizer) Normalizes() bool { return t.rule.nfc }

// VocabSize returns the number of tokens; ids run from 0 to VocabSize()-1.
func (t *Tokenizer) VocabSize() int { return len(t.texts) }

// BOS returns the token that begins a sequence, and whether there is one.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos != noToken }

// EOS returns the token that ends a sequence, and whether there is one.
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos != noToken }

// EOT returns the token that ends a turn, and whether the file names one.
func (t *Tokenizer) EOT() (int32, bool) { return t.eot, t.eot != noToken }

// Unknown returns the token for unknown text, and whether the file names one.
// Encoding never produces it.
func (t *Tokenizer) Unknown() (int32, bool) { return t.unk, t.unk != noToken }

// Padding returns the padding token, and whether the file names one.
func (t *Tokenizer) Padding() (int32, bool) { return t.pad, t.pad != noToken }

// AddBOS reports whether a sequence starts with BOS: as the file says, or where
// it does not, as the pre-tokenizer's models do. It implies that BOS exists.
func (t *Tokenizer) AddBOS() bool { return t.addBOS }

// IsEOG reports whether id ends a generation: EOS, EOT and EOM of the file, the
// well-known end tokens by their text, and the fill-in-the-middle tokens that
// start another file.
func (t *Tokenizer) IsEOG(id int32) bool { return t.eog[id] }

// IsControl reports whether id is a control token (or the unknown token): one
// that [Decoder] does not show and that user text never becomes.
func (t *Tokenizer) IsControl(id int32) bool { return t.valid(id) && !t.plain(id) }

// Text returns the vocabulary entry as stored, in the byte alphabet where it is
// a byte-level token; empty for an id outside the vocabulary.
func (t *Tokenizer) Text(id int32) string {
	if !t.valid(id) {
		return ""
	}
	return t.texts[id]
}

// ID returns the token whose stored text (see [Tokenizer.Text]) is text.
func (t *Tokenizer) ID(text string) (int32, bool) {
	if text == "" {
		return noToken, false
	}
	if b, ok := appendBytes(nil, text); ok {
		id, found := t.index[string(b)]
		return idOr(id, found)
	}
	id, found := t.other[text]
	return idOr(id, found)
}

func idOr(id int32, found bool) (int32, bool) {
	if !found {
		return noToken, false
	}
	return id, true
}

// Piece returns the bytes that id decodes to: nil for a control token and for
// an id outside the vocabulary.
func (t *Tokenizer) Piece(id int32) []byte {
	if !t.valid(id) || !t.plain(id) {
		return nil
	}
	return []byte(t.piece(id))
}

// PieceSpecial is Piece that gives control tokens by their text.
func (t *Tokenizer) PieceSpecial(id int32) []byte {
	if !t.valid(id) {
		return nil
	}
	return []byte(t.piece(id))
}

// piece returns the bytes of a valid id. Byte-level tokens stand for bytes,
// special and user-defined ones for themselves.
func (t *Tokenizer) piece(id int32) string {
	switch t.types[id] {
	case typeControl, typeUnknown, typeUserDefined:
		return t.texts[id]
	}
	return t.raw[t.rawEnds[id]:t.rawEnds[id+1]]
}

func (t *Tokenizer) valid(id int32) bool { return id >= 0 && int(id) < len(t.texts) }

// plain reports whether id is a token that text may become.
func (t *Tokenizer) plain(id int32) bool {
	typ := t.types[id]
	return typ != typeControl && typ != typeUnknown
}
