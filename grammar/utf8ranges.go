package grammar

import "unicode/utf8"

// byteRange is an inclusive range of bytes.
type byteRange struct{ lo, hi byte }

// runeRange is an inclusive range of code points.
type runeRange struct{ lo, hi rune }

const (
	surrogateLo = 0xD800
	surrogateHi = 0xDFFF
)

// utf8Sequences calls emit with sequences of byte ranges whose concatenations are exactly the UTF-8
// encodings of the code points lo..hi, surrogates excluded. emit must not keep its argument.
func utf8Sequences(lo, hi rune, emit func([]byteRange)) {
	if lo > hi {
		return
	}
	if lo <= surrogateHi && hi >= surrogateLo {
		utf8Sequences(lo, surrogateLo-1, emit)
		utf8Sequences(surrogateHi+1, hi, emit)
		return
	}
	for _, last := range [...]rune{0x7F, 0x7FF, 0xFFFF} {
		if lo <= last && hi > last {
			utf8Sequences(lo, last, emit)
			utf8Sequences(last+1, hi, emit)
			return
		}
	}
	if hi > 0x7F {
		// Split until all but the leading differing byte span their full continuation range.
		for i := uint(1); i < 4; i++ {
			m := rune(1)<<(6*i) - 1
			if lo&^m == hi&^m {
				continue
			}
			if lo&m != 0 {
				utf8Sequences(lo, lo|m, emit)
				utf8Sequences((lo|m)+1, hi, emit)
				return
			}
			if hi&m != m {
				utf8Sequences(lo, (hi&^m)-1, emit)
				utf8Sequences(hi&^m, hi, emit)
				return
			}
		}
	}
	var a, b [4]byte
	n := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(b[:], hi)
	var seq [4]byteRange
	for i := range n {
		seq[i] = byteRange{a[i], b[i]}
	}
	emit(seq[:n])
}

// normalizeRanges sorts ranges and joins those that overlap or touch.
func normalizeRanges(rs []runeRange) []runeRange {
	sortRanges(rs)
	var out []runeRange
	for _, r := range rs {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

// negateRanges returns the code points that the normalized ranges leave out, surrogates included.
func negateRanges(rs []runeRange) []runeRange {
	var out []runeRange
	next := rune(0)
	for _, r := range rs {
		if r.lo > next {
			out = append(out, runeRange{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, runeRange{next, utf8.MaxRune})
	}
	return out
}
