package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// reference decodes bytes at once, one U+FFFD for each maximal part of a broken
// sequence, independently of the Decoder: by the table of well-formed sequences.
func reference(b []byte) string {
	var out strings.Builder
	for i := 0; i < len(b); {
		lo, hi, need := byte(0x80), byte(0xBF), 0
		switch c := b[i]; {
		case c < 0x80:
		case c >= 0xC2 && c <= 0xDF:
			need = 1
		case c >= 0xE0 && c <= 0xEF:
			need = 2
			if c == 0xE0 {
				lo = 0xA0
			} else if c == 0xED {
				hi = 0x9F
			}
		case c >= 0xF0 && c <= 0xF4:
			need = 3
			if c == 0xF0 {
				lo = 0x90
			} else if c == 0xF4 {
				hi = 0x8F
			}
		default:
			need = -1
		}
		n := 1
		for n <= need && i+n < len(b) && b[i+n] >= lo && b[i+n] <= hi {
			n++
			lo, hi = 0x80, 0xBF
		}
		if n == need+1 {
			out.Write(b[i : i+n])
		} else {
			out.WriteRune(utf8.RuneError)
		}
		i += n
	}
	return out.String()
}

func TestDecoderHoldsBack(t *testing.T) {
	tok := build(t, base())
	d := tok.NewDecoder()
	for _, c := range []struct {
		b    byte
		want string
	}{
		{'a', "a"},
		{0xF0, ""},
		{0x9F, ""},
		{0x99, ""},
		{0x82, "🙂"}, // one character in four parts
		{0xE2, ""},
		{0x82, ""},
		{'b', "\uFFFDb"}, // a truncated one, once it cannot go on
		{0xC3, ""},
		{0xC3, "\uFFFD"},
		{0xA9, "é"},
		{0xFF, "\uFFFD"},
		{0x80, "\uFFFD"},
		{0xED, ""},
		{0xA0, "\uFFFD\uFFFD"}, // a surrogate: no such start
	} {
		if got := d.Push(int32(c.b)); got != c.want {
			t.Errorf("after %#x: %q, want %q", c.b, got, c.want)
		}
	}
	if got := d.Flush(); got != "" {
		t.Errorf("Flush: %q", got)
	}
	d.Push(0xF0)
	d.Push(0x9F)
	if got := d.Flush(); got != "\uFFFD" {
		t.Errorf("Flush of a truncated character: %q", got)
	}
	if got := d.Push('x'); got != "x" {
		t.Errorf("after Flush: %q", got)
	}
}

func TestDecoderControl(t *testing.T) {
	d := with(typeControl, "<|x|>")
	d.tokens = append(d.tokens, "<é>")
	d.types = append(d.types, int64(typeUserDefined))
	tok := build(t, d)
	ids := []int32{'a', 257, 0xC3, 257, 0xA9, 258, -5, 1 << 20}
	if got := tok.Decode(ids); got != "aé<é>" {
		t.Errorf("got %q", got)
	}
	dec := tok.NewSpecialDecoder()
	var got string
	for _, id := range ids {
		got += dec.Push(id)
	}
	if got += dec.Flush(); got != "a<|x|>\uFFFD<|x|>\uFFFD<é>" {
		t.Errorf("got %q", got)
	}
}

// TestDecoderProperties: over any bytes cut in any way into tokens, the stream
// is valid UTF-8 at every moment, shows nothing of a character before it is
// complete, and sums up to the text decoded at once.
func TestDecoderProperties(t *testing.T) {
	tok := small(t, "gpt-2")
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Int32Range(0, int32(tok.VocabSize())-1), 0, 40).Draw(t, "ids")
		if rapid.Bool().Draw(t, "bytes") {
			ids = ids[:0]
			for _, b := range rapid.SliceOfN(rapid.SampledFrom([]byte("a\x80\x9f\xa0\xbf\xc2\xe0\xe2\xed\xf0\xf4\xf5\xff")), 0, 24).Draw(t, "b") {
				ids = append(ids, tok.byteID[b])
			}
		}
		d := tok.NewDecoder()
		var all []byte
		var out string
		for _, id := range ids {
			s := d.Push(id)
			if !utf8.ValidString(s) {
				t.Fatalf("%q is not valid", s)
			}
			out += s
			all = append(all, tok.Piece(id)...)
			if want := reference(all); !strings.HasPrefix(want, out) {
				t.Fatalf("%q so far, the text is %q", out, want)
			}
			if len(all)-len(out) > 3 && utf8.Valid(all) {
				t.Fatalf("%d bytes held back", len(all)-len(out))
			}
		}
		out += d.Flush()
		if want := reference(all); out != want || tok.Decode(ids) != want {
			t.Fatalf("got %q, want %q", out, want)
		}
	})
}
