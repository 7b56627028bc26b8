package tokenizer

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// markRun is the number of characters in a row that are no plain starters from
// which composition is done here: golang.org/x/text follows the stream-safe
// format, which inserts U+034F into long runs of marks, and the reference
// normalizers do not.
const markRun = 8

// nfc returns s in Unicode normal form C. Bytes that are no valid UTF-8 stay as
// they are.
func nfc(s string) string {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf {
		i++
	}
	if i == len(s) {
		return s
	}
	i = max(i-1, 0) // a mark may combine with the last ASCII character
	if !longMarks(s[i:]) {
		if norm.NFC.IsNormalString(s[i:]) {
			return s
		}
		return norm.NFC.String(s)
	}
	return composeNFC(s)
}

// longMarks reports whether s has markRun characters in a row of which each may
// combine with what stands before it.
func longMarks(s string) bool {
	count := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			count = 0
			continue
		}
		// The stream-safe count goes by compatibility decompositions.
		p := norm.NFKC.PropertiesString(s[i:])
		n := max(p.Size(), 1)
		if p.LeadCCC() != 0 || p.TrailCCC() != 0 {
			if count++; count >= markRun {
				return true
			}
		} else {
			count = 0
		}
		i += n
	}
	return false
}

// mark is a decomposed character with its canonical combining class.
type mark struct {
	r     rune
	class uint8
}

// composeNFC is the algorithm of Unicode Standard Annex 15: decompose, order
// the marks, compose.
func composeNFC(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	var run []mark // a starter (maybe) and what follows up to the next starter
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			writeMarks(&out, run)
			run = run[:0]
			out.WriteByte(s[i])
			i++
			continue
		}
		p := norm.NFC.PropertiesString(s[i : i+n])
		switch d := p.Decomposition(); {
		case d == nil:
			run = pushMark(&out, run, mark{r, p.CCC()})
		default:
			for len(d) > 0 {
				dr, dn := utf8.DecodeRune(d)
				run = pushMark(&out, run, mark{dr, norm.NFC.Properties(d[:dn]).CCC()})
				d = d[dn:]
			}
		}
		i += n
	}
	writeMarks(&out, run)
	return out.String()
}

// pushMark adds m to the run, in canonical order. A starter that cannot compose
// with the run's starter ends the run.
func pushMark(out *strings.Builder, run []mark, m mark) []mark {
	if m.class == 0 {
		if len(run) == 1 && run[0].class == 0 {
			// Two starters in a row may compose: Hangul, and some Indic vowels.
			if c, ok := compose(run[0].r, m.r); ok {
				run[0].r = c
				return run
			}
		}
		if len(run) > 1 && run[0].class == 0 {
			run = composeRun(run)
			if len(run) == 1 {
				return pushMark(out, run, m)
			}
		}
		if len(run) > 0 && run[0].class != 0 {
			sortMarks(run)
		}
		emit(out, run)
		return append(run[:0], m)
	}
	return append(run, m)
}

func writeMarks(out *strings.Builder, run []mark) { emit(out, composeRun(run)) }

func emit(out *strings.Builder, run []mark) {
	for _, m := range run {
		out.WriteRune(m.r)
	}
}

// composeRun orders the marks of run and composes them with its starter.
func composeRun(run []mark) []mark {
	if len(run) < 2 {
		return run
	}
	first := 0
	if run[0].class == 0 {
		first = 1
	}
	sortMarks(run[first:])
	if first == 0 {
		return run
	}
	kept := run[:1]
	last := uint8(0) // class of the last mark that stays, 0 if none
	for _, m := range run[1:] {
		if last < m.class {
			if c, ok := compose(run[0].r, m.r); ok {
				run[0].r = c
				continue
			}
		}
		last = m.class
		kept = append(kept, m)
	}
	return kept
}

// sortMarks sorts by class and keeps the order of equals, by counting: the run
// may be as long as the text.
func sortMarks(run []mark) {
	var count [257]int
	for _, m := range run {
		count[int(m.class)+1]++
	}
	for c := 1; c < len(count); c++ {
		count[c] += count[c-1]
	}
	sorted := make([]mark, len(run))
	for _, m := range run {
		sorted[count[m.class]] = m
		count[m.class]++
	}
	copy(run, sorted)
}

// compose returns the primary composite of a and b.
func compose(a, b rune) (rune, bool) {
	var buf [2 * utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], a)
	n += utf8.EncodeRune(buf[n:], b)
	var dst [2 * utf8.UTFMax]byte
	c := norm.NFC.Append(dst[:0], buf[:n]...)
	r, size := utf8.DecodeRune(c)
	if size != len(c) {
		return 0, false
	}
	return r, true
}
