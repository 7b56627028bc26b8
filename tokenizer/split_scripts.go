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

// afterBlank makes a matcher of " ?[ranges]+".
func afterBlank(ranges ...runeRange) matcher {
	ok := func(r rune) bool { return in(ranges, r) }
	return func(s string) int {
		i := 0
		if s[0] == ' ' {
			i = 1
		}
		if end := skipRunes(s, i, ok); end > i {
			return end
		}
		return 0
	}
}

// firstOf makes a matcher of alternatives: the first that matches counts.
func firstOf(matchers ...matcher) matcher {
	return func(s string) int {
		for _, m := range matchers {
			if n := m(s); n > 0 {
				return n
			}
		}
		return 0
	}
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
	if n := deepSeekWord(s); n > 0 {
		return n
	}
	if n := deepSeekPunct(s); n > 0 {
		return newlines.skip(s, n)
	}
	return linesOrSpaces(s)
}

// deepSeekPunct is the part of matchDeepSeek3 that matches punctuation, without the line ends behind it.
func deepSeekPunct(s string) int {
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	if end := skip(s, i, cP|cS); end > i {
		return end
	}
	return 0
}

// deepSeekWord is the part of matchDeepSeek3 that matches words.
func deepSeekWord(s string) int {
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
	return 0
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

// punctOr makes a matcher of [\p{P}EXTRA]+.
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
	for start := i; ; {
		j := i
		if i > start && i < len(s) && s[i] == ' ' {
			j++
		}
		c, n := at(s, j)
		if c&cL == 0 {
			return i
		}
		i = skip(s, j+n, cM)
	}
}

// jais2 is the stage of wordRule{cL, 3} whose white space without line ends comes
// in pieces of 512, 256, ... 4 and 1 or 2 characters, each followed by white
// space or the end, or else in single characters:
//
//	...|\s*[\r\n]+|\s{512}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}
func jais2(s string, base int, ends []int) []int {
	for i := 0; i < len(s); {
		count, line, end := spaceRun(s[i:])
		if line > 0 {
			i += line
			ends = append(ends, base+i)
			continue
		}
		atEnd := i+end == len(s)
		for count > 1 || count == 1 && atEnd {
			n := jais2Step(count, atEnd)
			count -= n
			for range n {
				_, size := at(s, i)
				i += size
			}
			ends = append(ends, base+i)
		}
		if i < len(s) { // the last space may lead a word or punctuation
			i += jais2Words.match(s[i:])
			ends = append(ends, base+i)
		}
	}
	return ends
}

// jais2Step returns how many of the count characters of white space left in a
// run make the next piece; atEnd says that the text ends with the run.
func jais2Step(count int, atEnd bool) int {
	for n := 512; n > 1; n /= 2 {
		if count > n || count == n && atEnd {
			return n
		}
	}
	return 1
}

// spaceRun measures the white space that s starts with: its characters, the end
// of its last line end (0 if none) and its end.
func spaceRun(s string) (count, line, end int) {
	for end < len(s) {
		c, n := at(s, end)
		if c&cWS == 0 {
			break
		}
		end += n
		count++
		if c&cNL != 0 {
			line = end
		}
	}
	return count, line, end
}

var jais2Words = wordRule{letters: cL, digits: 3, tail: newlines}
