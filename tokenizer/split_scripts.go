package tokenizer

import "unicode/utf8"

// Matchers for the rules that cut by script or by punctuation.

// runeRange is a range of code points, both ends included.
type runeRange struct{ lo, hi rune }

// in reports whether r lies in one of a few ranges.
func in(ranges []runeRange, r rune) bool {
	for _, e := range ranges {
		if e.lo <= r && r <= e.hi {
			return true
		}
	}
	return false
}

// inSorted is in for many ranges in ascending order.
func inSorted(ranges []runeRange, r rune) bool {
	lo, hi := 0, len(ranges)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if ranges[m].hi < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo < len(ranges) && ranges[lo].lo <= r
}

// skipRunes returns the end of the run from i of characters that ok accepts. A
// byte that is no valid UTF-8 never belongs to a run.
func skipRunes(s string, i int, ok func(rune) bool) int {
	for i < len(s) {
		r, n := runeAt(s, i)
		if r == utf8.RuneError && n == 1 || !ok(r) {
			break
		}
		i += n
	}
	return i
}

// runOf makes a matcher of [ranges]+.
func runOf(ranges ...runeRange) matcher {
	ok := func(r rune) bool { return in(ranges, r) }
	return func(s string) int { return skipRunes(s, 0, ok) }
}

// afterSpace makes a matcher of \s?X+ where X is given by ok.
func afterSpace(ok func(rune) bool) matcher {
	return func(s string) int {
		i := 0
		if c, n := at(s, 0); c&cWS != 0 {
			i = n
		}
		if end := skipRunes(s, i, ok); end > i {
			return end
		}
		// White space may itself be an X; then the run starts with it.
		return skipRunes(s, 0, ok)
	}
}

// hasClass makes a predicate of a class mask.
func hasClass(mask class) func(rune) bool {
	return func(r rune) bool { return classOf(r)&mask != 0 }
}

func isASCIILetter(b byte) bool { b |= 0x20; return 'a' <= b && b <= 'z' }

// isASCIIPunct reports whether b is one of !"#$%&'()*+,-./:;<=>?@[\]^_`{|}~.
func isASCIIPunct(b byte) bool {
	return '!' <= b && b <= '/' || ':' <= b && b <= '@' || '[' <= b && b <= '`' || '{' <= b && b <= '~'
}

// matchDeepSeek3 matches
//
//	ASCII-PUNCT[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
//	\s*[\r\n]+|\s+(?!\S)|\s+
//
// which leaves numbers and control characters unmatched.
func matchDeepSeek3(s string) int {
	if isASCIIPunct(s[0]) && len(s) > 1 && isASCIILetter(s[1]) {
		i := 2
		for i < len(s) && isASCIILetter(s[i]) {
			i++
		}
		return i
	}
	c, n := at(s, 0)
	if c&(cL|cM) != 0 {
		return skip(s, n, cL|cM)
	}
	if c&(cP|cS|cNL) == 0 {
		if c2, n2 := at(s, n); c2&(cL|cM) != 0 {
			return skip(s, n+n2, cL|cM)
		}
	}
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	if end := skip(s, i, cP|cS); end > i {
		return newlines.skip(s, end)
	}
	return linesOrSpaces(s)
}

// matchLineEnd matches [\r\n].
func matchLineEnd(s string) int {
	if s[0] == '\r' || s[0] == '\n' {
		return 1
	}
	return 0
}

// trailingSpace is the stage of \s+$ : white space at the end of the text is
// one piece.
func trailingSpace(s string, base int, ends []int) []int {
	start := len(s)
	for start > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:start])
		if r == utf8.RuneError && n == 1 || classOf(r)&cWS == 0 {
			break
		}
		start -= n
	}
	if 0 < start && start < len(s) {
		ends = append(ends, base+start)
	}
	return append(ends, base+len(s))
}

// matchNonStop matches " ?[^(\s|.,!?…。，、।۔،)]+", the pattern of BLOOM and its
// kin: the characters inside the class are taken one by one, parentheses and
// bar included.
func matchNonStop(s string) int {
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	end := i
	for end < len(s) {
		r, n := runeAt(s, end)
		if classOf(r)&cWS != 0 || isStop(r) {
			break
		}
		end += n
	}
	if end == i {
		return 0
	}
	return end
}

func isStop(r rune) bool {
	switch r {
	case '(', ')', '|', '.', ',', '!', '?', '…', '。', '，', '、', '।', '۔', '،':
		return true
	}
	return false
}

// matchFalconPunct makes a matcher of [\p{P}EXTRA]+.
func punctOr(extra string) matcher {
	ok := func(r rune) bool {
		if classOf(r)&cP != 0 {
			return true
		}
		for _, e := range extra {
			if e == r {
				return true
			}
		}
		return false
	}
	return func(s string) int { return skipRunes(s, 0, ok) }
}

// matchThreeDigits matches [0-9][0-9][0-9].
func matchThreeDigits(s string) int {
	if len(s) < 3 {
		return 0
	}
	for i := range 3 {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
	}
	return 3
}

// matchExaoneMoE is wordRule{cL, 1} whose words take in the marks after a letter
// and single spaces between letters, and whose punctuation takes one line end or
// slash:
//
//	CONTRACTION|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|
//	 ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+
func matchExaoneMoE(s string) int {
	if n := contractionFold(s); n > 0 {
		return n
	}
	c, n := at(s, 0)
	switch {
	case c&cL != 0:
		return spacedLetters(s, 0)
	case c&(cN|cNL) == 0:
		if end := spacedLetters(s, n); end > n {
			return end
		}
	case c&cN != 0:
		return n
	}
	if end := punctuation(s, cWS|cN|cL, noTail); end > 0 {
		if end < len(s) && (s[end] == '\r' || s[end] == '\n' || s[end] == '/') {
			end++
		}
		return end
	}
	return linesOrSpaces(s)
}

// spacedLetters returns the end of (?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+ at i, or i.
func spacedLetters(s string, i int) int {
	for {
		j := i
		if j > 0 && j < len(s) && s[j] == ' ' {
			j++
		}
		c, n := at(s, j)
		if c&cL == 0 {
			return i
		}
		i = skip(s, j+n, cM)
	}
}

// matchJais2 is wordRule{cL, 3} whose white space comes in pieces of 512, 256,
// ... 4 and 1 or 2 characters, each such piece followed by white space or the
// end, or else one character.
func matchJais2(s string) int {
	n := jais2Words.match(s)
	if c, _ := at(s, 0); c&cWS == 0 || n == 0 {
		return n
	}
	if last, _ := utf8.DecodeLastRuneInString(s[:n]); classOf(last)&cWS == 0 || s[n-1] == '\n' || s[n-1] == '\r' {
		return n // a word or punctuation behind a space, or lines
	}
	// At most 513 characters decide: the longest piece and what follows it.
	var offsets [514]int
	count := 0
	for i := 0; count < 513; {
		c, size := at(s, i)
		if c&cWS == 0 {
			break
		}
		i += size
		count++
		offsets[count] = i
	}
	for _, want := range [...]int{512, 256, 128, 64, 32, 16, 8, 4, 2, 1} {
		if count < want {
			continue
		}
		if end := offsets[want]; count > want || end == len(s) {
			return end
		}
	}
	return offsets[1]
}

var jais2Words = wordRule{letters: cL, digits: 3, tail: newlines}
