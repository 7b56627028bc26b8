package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decoder turns a stream of ids into text. It holds back the bytes of a
// character until it is complete, so that what it returns is always valid UTF-8
// and U+FFFD stands only for bytes that can no longer become a character (one
// for each maximal part of a broken sequence, as Unicode recommends). The
// concatenation of its output does not depend on how the ids arrive.
//
// A Decoder belongs to one stream and is not safe for concurrent use.
type Decoder struct {
	t       *Tokenizer
	special bool
	pending [utf8.UTFMax - 1]byte // the start of a character
	n       int
}

// NewDecoder returns a Decoder that leaves control tokens out.
func (t *Tokenizer) NewDecoder() *Decoder { return &Decoder{t: t} }

// NewSpecialDecoder returns a Decoder that shows control tokens by their text.
func (t *Tokenizer) NewSpecialDecoder() *Decoder { return &Decoder{t: t, special: true} }

// Push returns the text that becomes complete with id; often empty.
func (d *Decoder) Push(id int32) string {
	if !d.t.valid(id) || !d.special && !d.t.plain(id) {
		return ""
	}
	piece := d.t.piece(id)
	if d.n == 0 && utf8.ValidString(piece) {
		return piece
	}
	return d.push(string(d.pending[:d.n]) + piece)
}

// push takes the held bytes and the new ones.
func (d *Decoder) push(s string) string {
	var out strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if r != utf8.RuneError || n > 1 {
			out.WriteString(s[:n])
			s = s[n:]
			continue
		}
		if !utf8.FullRuneInString(s) {
			break
		}
		out.WriteRune(utf8.RuneError)
		s = s[brokenPart(s):]
	}
	d.n = copy(d.pending[:], s)
	return out.String()
}

// brokenPart returns the length of the longest start of s, at least 1, that a
// valid character could start with. s starts with no valid character.
func brokenPart(s string) int {
	n := 1
	for n < len(s) && !utf8.FullRuneInString(s[:n+1]) {
		n++
	}
	return n
}

// Flush ends the stream: bytes still held become one U+FFFD. The Decoder is
// then ready for another stream.
func (d *Decoder) Flush() string {
	if d.n == 0 {
		return ""
	}
	d.n = 0
	return string(utf8.RuneError)
}

// Decode returns the text of ids without control tokens. Broken bytes become
// U+FFFD as in [Decoder].
func (t *Tokenizer) Decode(ids []int32) string {
	d := t.NewDecoder()
	var out strings.Builder
	for _, id := range ids {
		out.WriteString(d.Push(id))
	}
	out.WriteString(d.Flush())
	return out.String()
}
