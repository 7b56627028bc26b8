package grammar

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// gbnfLiteral returns s as a GBNF literal.
func gbnfLiteral(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r == '"' {
			b.WriteString(`\"`)
			continue
		}
		b.WriteString(gbnfRune(r))
	}
	b.WriteByte('"')
	return b.String()
}

// gbnfRune returns a code point as it is written in a literal or, for other than ] ^ -, in a class.
func gbnfRune(r rune) string {
	switch {
	case r == '\\':
		return `\\`
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x20 || r == 0x7F:
		return fmt.Sprintf(`\x%02X`, r)
	case r > 0xFFFF:
		return fmt.Sprintf(`\U%08X`, r)
	case r > 0x7E:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return string(r)
}

func classRune(r rune) string {
	switch r {
	case ']', '[':
		return `\` + string(r)
	case '-', '^':
		return fmt.Sprintf(`\x%02X`, r)
	}
	return gbnfRune(r)
}

// gbnfClass returns normalized ranges as a GBNF character class.
func gbnfClass(rs []runeRange) string {
	var b strings.Builder
	b.WriteByte('[')
	for _, r := range rs {
		b.WriteString(classRune(r.lo))
		if r.hi > r.lo {
			b.WriteString("-" + classRune(r.hi))
		}
	}
	b.WriteByte(']')
	return b.String()
}

// scalarRanges returns the ranges without surrogates and cut at the end of the basic plane.
func scalarRanges(rs []runeRange) []runeRange {
	var out []runeRange
	add := func(lo, hi, from, to rune) {
		if lo, hi = max(lo, from), min(hi, to); lo <= hi {
			out = append(out, runeRange{lo, hi})
		}
	}
	for _, r := range rs {
		add(r.lo, r.hi, 0, surrogateLo-1)
		add(r.lo, r.hi, surrogateHi+1, 0xFFFF)
		add(r.lo, r.hi, 0x10000, utf8.MaxRune)
	}
	return out
}

// stringChar returns the GBNF alternatives that write one code point of rs inside a JSON string: itself,
// a short escape, or \uXXXX.
func stringChar(rs []runeRange) string {
	rs = scalarRanges(rs)
	var raw []runeRange
	var alts, short []string
	for _, r := range rs {
		for _, part := range []runeRange{{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, utf8.MaxRune}} {
			if lo, hi := max(r.lo, part.lo), min(r.hi, part.hi); lo <= hi {
				raw = append(raw, runeRange{lo, hi})
			}
		}
		for _, e := range jsonEscapes {
			if r.lo <= e.char && e.char <= r.hi {
				short = append(short, classRune(rune(e.letter)))
			}
		}
	}
	if len(raw) > 0 {
		alts = append(alts, gbnfClass(normalizeRanges(raw)))
	}
	if len(short) > 0 {
		alts = append(alts, `"\\" [`+strings.Join(short, "")+"]")
	}
	var hex []string
	for _, r := range rs {
		if r.hi <= 0xFFFF {
			hex = append(hex, hexRange(uint32(r.lo), uint32(r.hi), 4)...)
			continue
		}
		hex = append(hex, surrogatePairs(r)...)
	}
	if len(hex) > 0 {
		alts = append(alts, `"\\u" (`+strings.Join(hex, " | ")+")")
	}
	return strings.Join(alts, " | ")
}

// surrogatePairs returns the alternatives for a range beyond the basic plane, after the first \u.
func surrogatePairs(r runeRange) []string {
	var out []string
	lo, hi := uint32(r.lo-0x10000), uint32(r.hi-0x10000)
	pair := func(highLo, highHi, lowLo, lowHi uint32) {
		for _, h := range hexRange(0xD800+highLo, 0xD800+highHi, 4) {
			for _, l := range hexRange(0xDC00+lowLo, 0xDC00+lowHi, 4) {
				out = append(out, h+` "\\u" `+l)
			}
		}
	}
	first, last := lo>>10, hi>>10
	if first == last {
		pair(first, first, lo&0x3FF, hi&0x3FF)
		return out
	}
	if lo&0x3FF != 0 {
		pair(first, first, lo&0x3FF, 0x3FF)
		first++
	}
	if hi&0x3FF != 0x3FF {
		pair(last, last, 0, hi&0x3FF)
		last--
	}
	if first <= last {
		pair(first, last, 0, 0x3FF)
	}
	return out
}

// hexRange returns the sequences of digit classes that spell lo..hi with the given number of digits.
func hexRange(lo, hi uint32, digits int) []string {
	if digits == 0 {
		return []string{""}
	}
	shift := 4 * uint(digits-1)
	mask := uint32(1)<<shift - 1
	a, b := lo>>shift, hi>>shift
	if lo&mask == 0 && hi&mask == mask {
		s := hexDigit(a, b)
		if digits > 1 {
			s += " " + hexDigit(0, 15)
		}
		if digits > 2 {
			s += fmt.Sprintf("{%d}", digits-1)
		}
		return []string{s}
	}
	join := func(lo, hi uint32) []string {
		var out []string
		for _, rest := range hexRange(lo&mask, hi&mask, digits-1) {
			out = append(out, strings.TrimSpace(hexDigit(lo>>shift, hi>>shift)+" "+rest))
		}
		return out
	}
	if a == b {
		return join(lo, hi)
	}
	var out []string
	if lo&mask != 0 {
		out = append(out, join(lo, a<<shift|mask)...)
		a++
	}
	var tail []string
	if hi&mask != mask {
		tail = join(b<<shift, hi)
		b--
	}
	if a <= b {
		out = append(out, hexRange(a<<shift, b<<shift|mask, digits)...)
	}
	return append(out, tail...)
}

// hexDigit returns the class of the hexadecimal digits a..b in both cases.
func hexDigit(a, b uint32) string {
	const upper, lower = "0123456789ABCDEF", "0123456789abcdef"
	if a == b && a < 10 {
		return `"` + upper[a:a+1] + `"`
	}
	s := ""
	span := func(digits string, a, b uint32) {
		s += digits[a : a+1]
		if b > a {
			s += "-" + digits[b:b+1]
		}
	}
	if a < 10 {
		span(upper, a, min(b, 9))
	}
	if b >= 10 {
		span(upper, max(a, 10), b)
		span(lower, max(a, 10), b)
	}
	return "[" + s + "]"
}
