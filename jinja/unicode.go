package jinja

import (
	"sort"
	"unicode/utf8"
)

// inTable searches a table of pairs of first and last.
func inTable(t []rune, r rune) bool {
	i := sort.Search(len(t), func(i int) bool { return t[i] > r })
	return i%2 == 1 || i > 0 && t[i-1] == r
}

func isAlpha(r rune) bool {
	if r < 0x80 {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	return inTable(alphaTable, r)
}

func isWord(r rune) bool {
	if r < 0x80 {
		return r == '_' || isAlnum(byte(r))
	}
	return inTable(wordTable, r)
}

// digitValue is the value of a decimal digit of any script, or -1.
func digitValue(r rune) int {
	if r < 0x80 {
		if r >= '0' && r <= '9' {
			return int(r - '0')
		}
		return -1
	}
	i := sort.Search(len(zeroTable), func(i int) bool { return zeroTable[i] > r })
	if i > 0 && r < zeroTable[i-1]+10 {
		return int(r - zeroTable[i-1])
	}
	return -1
}

// isSpace is str.isspace of one character.
func isSpace(r rune) bool {
	switch {
	case r >= 9 && r <= 13, r >= 0x1c && r <= 0x20, r == 0x85, r == 0xa0, r == 0x1680,
		r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

func isPrintable(r rune) bool {
	if r < 0x7f {
		return r >= 0x20
	}
	return inTable(printableTable, r)
}

func isUpper(r rune) bool {
	if r < 0x80 {
		return r >= 'A' && r <= 'Z'
	}
	return inTable(upperTable, r)
}

func isLower(r rune) bool {
	if r < 0x80 {
		return r >= 'a' && r <= 'z'
	}
	return inTable(lowerTable, r)
}

func isCased(r rune) bool {
	if r < 0x80 {
		return isUpper(r) || isLower(r)
	}
	return inTable(casedTable, r)
}

func isIdentStart(r rune) bool {
	if r < 0x80 {
		return r == '_' || isUpper(r) || isLower(r)
	}
	return inTable(identStartTable, r)
}

func isIdentPart(r rune) bool {
	if r < 0x80 {
		return isWord(r)
	}
	return inTable(identTable, r)
}

// isIdentifier is str.isidentifier.
func isIdentifier(s string) bool {
	for i, r := range s {
		if i == 0 && !isIdentStart(r) || i > 0 && !isIdentPart(r) {
			return false
		}
	}
	return s != ""
}

func appendMapped(dst []byte, r rune, m func() map[rune]string) []byte {
	if s, ok := m()[r]; ok {
		return append(dst, s...)
	}
	return utf8.AppendRune(dst, r)
}

func appendUpper(dst []byte, r rune) []byte {
	if r < 0x80 {
		if r >= 'a' && r <= 'z' {
			r -= 'a' - 'A'
		}
		return append(dst, byte(r))
	}
	return appendMapped(dst, r, upperMap)
}

func appendTitle(dst []byte, r rune) []byte {
	if r < 0x80 {
		return appendUpper(dst, r)
	}
	return appendMapped(dst, r, titleMap)
}

// appendLower lowers the rune at byte i of s; a capital sigma at the end of a
// word becomes a final sigma.
func appendLower(dst []byte, s string, i int, r rune) []byte {
	if r < 0x80 {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(dst, byte(r))
	}
	if r == 'Σ' {
		if finalSigma(s, i) {
			return append(dst, "ς"...)
		}
		return append(dst, "σ"...)
	}
	return appendMapped(dst, r, lowerMap)
}

func finalSigma(s string, i int) bool {
	before := false
	for j := i; j > 0; {
		r, w := utf8.DecodeLastRuneInString(s[:j])
		j -= w
		if !isIgnorable(r) {
			before = isCased(r)
			break
		}
	}
	if !before {
		return false
	}
	for _, r := range s[i+len("Σ"):] {
		if !isIgnorable(r) {
			return !isCased(r)
		}
	}
	return true
}

func isIgnorable(r rune) bool { return inTable(ignorableTable, r) }

func appendFold(dst []byte, r rune) []byte {
	if r >= 0x80 {
		if s, ok := foldMap()[r]; ok {
			return append(dst, s...)
		}
		if s, ok := lowerMap()[r]; ok {
			return append(dst, s...)
		}
		return utf8.AppendRune(dst, r)
	}
	return appendLower(dst, "", 0, r)
}

func lowerText(t *text) *text {
	return t.mapRunes(func(dst []byte, i int, r rune) []byte { return appendLower(dst, t.s, i, r) })
}

func upperText(t *text) *text {
	return t.mapRunes(func(dst []byte, _ int, r rune) []byte { return appendUpper(dst, r) })
}

func lowerString(s string) string {
	dst := make([]byte, 0, len(s))
	for i, r := range s {
		dst = appendLower(dst, s, i, r)
	}
	return string(dst)
}
