package tokenizer

// matchGPT2 matches
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// which consumes any text. It is GPT-2's own pattern.
func matchGPT2(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	i := 0
	if s[0] == ' ' && len(s) > 1 {
		i = 1
	}
	c, n := at(s, i)
	switch {
	case c&cL != 0:
		return skip(s, i+n, cL)
	case c&cN != 0:
		return skip(s, i+n, cN)
	case c&cWS == 0:
		return skipNot(s, i+n, cWS|cL|cN)
	}
	return spaces(s)
}

// lineTail says which characters may follow a run of punctuation in its piece.
type lineTail uint8

const (
	noTail    lineTail = iota
	newlines           // [\r\n]*
	linesPath          // [\r\n/]*
)

// skipTail returns the end of the tail that starts at i.
func (t lineTail) skip(s string, i int) int {
	if t == noTail {
		return i
	}
	for i < len(s) && (s[i] == '\r' || s[i] == '\n' || s[i] == '/' && t == linesPath) {
		i++
	}
	return i
}

// wordRule is the family that grew out of the cl100k pattern:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?LETTER+|\p{N}{1,digits}|
//	 ?[^\s LETTER \p{N}]+TAIL|\s*[\r\n]+|\s+(?!\S)|\s+
type wordRule struct {
	letters class // LETTER: cL, or cL|cM
	digits  int   // 0: \p{N}+
	tail    lineTail
	plain   bool // without the contractions
}

func (w wordRule) match(s string) int {
	if !w.plain {
		if n := contractionFold(s); n > 0 {
			return n
		}
	}
	c, n := at(s, 0)
	if c&w.letters != 0 {
		return skip(s, n, w.letters)
	}
	if c&(cL|cN|cNL) == 0 {
		// One character of any other kind may lead a word, a space or a quote say.
		if c2, n2 := at(s, n); c2&w.letters != 0 {
			return skip(s, n+n2, w.letters)
		}
	}
	if c&cN != 0 {
		return atMost(s, cN, w.digits)
	}
	if n := punctuation(s, cWS|cN|w.letters, w.tail); n > 0 {
		return n
	}
	return linesOrSpaces(s)
}

// punctuation matches " ?[^not]+TAIL".
func punctuation(s string, not class, tail lineTail) int {
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	end := skipNot(s, i, not)
	if end == i {
		return 0
	}
	return tail.skip(s, end)
}

// caseRule is the family that grew out of the o200k pattern, which also cuts
// between a lower and an upper letter:
//
//	[^\r\n\p{L}\p{N}]?U*W+S?|[^\r\n\p{L}\p{N}]?U+W*S?|\p{N}{1,digits}|
//	 ?[^\s\p{L}\p{N}]+TAIL|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W is [\p{Ll}\p{Lm}\p{Lo}\p{M}] and
// S is a contraction in any case. With han set, [\p{Han}]+ comes first and U and
// W leave out \p{Han}.
type caseRule struct {
	digits   int
	tail     lineTail
	noSuffix bool // without S
	han      bool
}

func (r caseRule) match(s string) int {
	c, n := at(s, 0)
	if r.han && c&cHan != 0 {
		return skip(s, n, cHan)
	}
	if end := r.word(s, c, n); end > 0 {
		if !r.noSuffix {
			end += contractionFold(s[end:])
		}
		return end
	}
	if c&cN != 0 {
		return atMost(s, cN, r.digits)
	}
	if n := punctuation(s, cWS|cN|cL, r.tail); n > 0 {
		return n
	}
	return linesOrSpaces(s)
}

// word tries the four ways in which a word may start at s, in the pattern's
// order: with and without a leading character, lower part needed and not.
func (r caseRule) word(s string, c class, n int) int {
	lead := c&(cL|cN|cNL) == 0
	if lead {
		if end := r.lower(s, n); end > 0 {
			return end
		}
	}
	if end := r.lower(s, 0); end > 0 {
		return end
	}
	if lead {
		if end := r.upper(s, n); end > n {
			return end
		}
	}
	return r.upper(s, 0)
}

// upper returns the end of the run of U from i.
func (r caseRule) upper(s string, i int) int {
	for i < len(s) {
		c, n := at(s, i)
		if !r.has(c, cU) {
			break
		}
		i += n
	}
	return i
}

// lower matches U*W+ at i. U* takes all it can; where no W follows it gives
// back, and stops at its last character that is also a W: what follows that one
// is no W, so it alone is the lower part.
func (r caseRule) lower(s string, i int) int {
	both := 0 // end of the last character that is U and W
	for i < len(s) {
		c, n := at(s, i)
		if !r.has(c, cU) {
			break
		}
		i += n
		if c&cW != 0 {
			both = i
		}
	}
	start := i
	for i < len(s) {
		c, n := at(s, i)
		if !r.has(c, cW) {
			break
		}
		i += n
	}
	if i > start {
		return i
	}
	return both
}

func (r caseRule) has(c, want class) bool {
	return c&want != 0 && !(r.han && c&cHan != 0)
}
