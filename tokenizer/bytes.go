package tokenizer

import "unicode/utf8"

// Byte-level vocabularies write each byte as one printable character: the
// printable bytes of Latin-1 as themselves, the others in order from U+0100 on.
// This alphabet is GPT-2's.

var (
	byteToRune [256]rune
	// runeToByte is indexed by the character; -1 where it stands for no byte.
	runeToByte [0x144]int16
)

func init() {
	for i := range runeToByte {
		runeToByte[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !('!' <= r && r <= '~' || 0xA1 <= r && r <= 0xAC || 0xAE <= r && r <= 0xFF) {
			r = next
			next++
		}
		byteToRune[b] = r
		runeToByte[r] = int16(b)
	}
}

// appendBytes appends the bytes that text stands for in the alphabet. ok is
// false, and dst comes back as it was, when a character is not in the alphabet.
func appendBytes(dst []byte, text string) (out []byte, ok bool) {
	start := len(dst)
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		if r >= rune(len(runeToByte)) || runeToByte[r] < 0 {
			return dst[:start], false
		}
		dst = append(dst, byte(runeToByte[r]))
		i += n
	}
	return dst, true
}

// byteText returns the token text of one byte.
func byteText(b byte) string { return string(byteToRune[b]) }
