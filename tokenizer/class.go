package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is a set of the character properties that pre-tokenizers ask for.
type class uint16

const (
	cL   class = 1 << iota // \p{L}
	cN                     // \p{N}
	cM                     // \p{M}
	cP                     // \p{P}
	cS                     // \p{S}
	cWS                    // \s: White_Space
	cNL                    // \r or \n
	cU                     // \p{Lu} \p{Lt} \p{Lm} \p{Lo} \p{M}: may stand in the upper part of a word
	cW                     // \p{Ll} \p{Lm} \p{Lo} \p{M}: may stand in the lower part of a word
	cHan                   // \p{Han}
	cNd                    // \p{Nd}, which is \d
)

// classTableLen covers every assigned letter; what lies above is one block of
// marks (variation selectors), tags and private use.
const classTableLen = 0x33480

var (
	classOnce  sync.Once
	classTable []class
)

// initClasses fills the class table; callers run it before any splitting.
func initClasses() {
	classOnce.Do(func() {
		t := make([]class, classTableLen)
		mark := func(table *unicode.RangeTable, c class) {
			eachRange(table, func(lo, hi, stride rune) {
				for r := lo; r <= hi && r < classTableLen; r += stride {
					t[r] |= c
				}
			})
		}
		for _, e := range classSources {
			mark(e.table, e.c)
		}
		for _, e := range unicode16 {
			for r := e.lo; r <= e.hi; r++ {
				t[r] |= e.c
			}
		}
		t['\r'] |= cNL
		t['\n'] |= cNL
		classTable = t
	})
}

// classSources lists the standard library's tables with the bits they set.
var classSources = []struct {
	table *unicode.RangeTable
	c     class
}{
	{unicode.Lu, cL | cU},
	{unicode.Lt, cL | cU},
	{unicode.Ll, cL | cW},
	{unicode.Lm, cL | cU | cW},
	{unicode.Lo, cL | cU | cW},
	{unicode.M, cM | cU | cW},
	{unicode.N, cN},
	{unicode.Nd, cNd},
	{unicode.P, cP},
	{unicode.S, cS},
	{unicode.White_Space, cWS},
	{unicode.Han, cHan},
}

func eachRange(t *unicode.RangeTable, f func(lo, hi, stride rune)) {
	for _, r := range t.R16 {
		f(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		f(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
}

// classOf returns the class of r.
func classOf(r rune) class {
	if uint32(r) < classTableLen {
		return classTable[r]
	}
	var c class
	for _, e := range classSources {
		if unicode.Is(e.table, r) {
			c |= e.c
		}
	}
	return c
}

// at returns the class and the length in bytes of the character that starts at
// s[i], or 0 and 0 at the end. A byte that starts no valid character counts as
// one U+FFFD of length 1.
func at(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return classTable[b], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classOf(r), n
}

// runeAt is at for the code point itself; -1 at the end.
func runeAt(s string, i int) (rune, int) {
	if i >= len(s) {
		return -1, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return rune(b), 1
	}
	return utf8.DecodeRuneInString(s[i:])
}

// skip returns the end of the run of characters from i whose class meets mask.
func skip(s string, i int, mask class) int {
	for i < len(s) {
		c, n := at(s, i)
		if c&mask == 0 {
			break
		}
		i += n
	}
	return i
}

// skipNot returns the end of the run of characters from i that avoid mask.
func skipNot(s string, i int, mask class) int {
	for i < len(s) {
		c, n := at(s, i)
		if c&mask != 0 {
			break
		}
		i += n
	}
	return i
}
