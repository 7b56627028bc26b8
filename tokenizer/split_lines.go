package tokenizer

// Stages and matchers of rules that treat line ends, or the words that they part,
// in ways of their own.

// beforeLines is the stage of (?:\r?\n)+(?!\r?\n) whose matches are joined to what
// follows: a cut before every run of line ends.
func beforeLines(s string, base int, ends []int) []int {
	for i := 0; i < len(s); {
		end := lineRun(s, i)
		if end == i {
			i++
			continue
		}
		if i > 0 {
			ends = append(ends, base+i)
		}
		i = end
	}
	return append(ends, base+len(s))
}

// lineRun returns the end of (?:\r?\n)+ at i, or i.
func lineRun(s string, i int) int {
	for {
		switch {
		case i < len(s) && s[i] == '\n':
			i++
		case i+1 < len(s) && s[i] == '\r' && s[i+1] == '\n':
			i += 2
		default:
			return i
		}
	}
}

// matchSpark25 is matchDeepSeek3 with line ends one by one, wherever they are not
// inside other white space:
//
//	ASCII-PUNCT[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|
//	[\r\n]|\s+(?!\S)|\s+
func matchSpark25(s string) int {
	if n := deepSeekWord(s); n > 0 {
		return n
	}
	if n := deepSeekPunct(s); n > 0 {
		return n
	}
	if n := matchLineEnd(s); n > 0 {
		return n
	}
	return spaces(s)
}

// matchK2Horizon is wordRule{cL, 3, newlines} whose words also have marks and the
// joiners U+200C and U+200D:
//
//	CONTRACTION|[^\r\n\p{L}\p{N}]?(?:\p{L}|\p{M}|\x{200C}|\x{200D})+|\p{N}{1,3}|
//	 ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func matchK2Horizon(s string) int {
	if n := contractionFold(s); n > 0 {
		return n
	}
	if end := skipRunes(s, 0, inK2Word); end > 0 {
		return end
	}
	c, n := at(s, 0)
	if c&(cL|cN|cNL) == 0 {
		if end := skipRunes(s, n, inK2Word); end > n {
			return end
		}
	}
	if c&cN != 0 {
		return atMost(s, cN, 3)
	}
	if n := punctuation(s, cWS|cN|cL, newlines); n > 0 {
		return n
	}
	return linesOrSpaces(s)
}

func inK2Word(r rune) bool {
	return r == 0x200C || r == 0x200D || classOf(r)&(cL|cM) != 0
}
