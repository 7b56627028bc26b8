package tokenizer

// A stage cuts one stretch of text further: it appends the end of every piece,
// as offsets into s plus base, to ends and returns it. The last end is always
// base+len(s). A rule runs its stages in order, each on the pieces of the one
// before, so a stage sees a piece as if it were the whole text: look-ahead stops
// at its end. An empty s has no pieces.
type stage func(s string, base int, ends []int) []int

// A matcher returns the length of its match at the start of the non-empty s,
// or 0. Its time is linear in the match plus a constant, or amortised so over
// successive calls on one text.
type matcher func(s string) int

// isolate makes a stage of a matcher: every match is a piece, and so is every
// longest stretch without one.
func isolate(match matcher) stage {
	return func(s string, base int, ends []int) []int {
		gap := 0 // start of the stretch without a match
		for i := 0; i < len(s); {
			n := match(s[i:])
			if n == 0 {
				_, size := at(s, i)
				i += size
				continue
			}
			if gap < i {
				ends = append(ends, base+i)
			}
			i += n
			gap = i
			ends = append(ends, base+i)
		}
		if gap < len(s) {
			ends = append(ends, base+len(s))
		}
		return ends
	}
}

// splitter holds the buffers that splitting reuses.
type splitter struct {
	a, b []int
}

// split returns the ends of the pieces that the stages make of s. The result is
// valid until the next call.
func (sp *splitter) split(stages []stage, s string) []int {
	if s == "" {
		return nil
	}
	cur := stages[0](s, 0, sp.a[:0])
	next := sp.b
	for _, st := range stages[1:] {
		next = next[:0]
		start := 0
		for _, end := range cur {
			next = st(s[start:end], start, next)
			start = end
		}
		cur, next = next, cur
	}
	sp.a, sp.b = cur, next
	return cur
}

// contraction returns the length of the English contraction that s starts with
// ('s 't 're 've 'm 'll 'd, lower case only), or 0.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2] == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2] == 'l' {
			return 3
		}
	}
	return 0
}

// contractionFold is contraction in any case. Case folding includes U+017F, the
// long s.
func contractionFold(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	const longS = "ſ"
	if len(s) > 2 && s[1:3] == longS {
		return 3
	}
	return 0
}

// spaces matches \s+(?!\S)|\s+ : a run of white space without its last
// character, unless the text ends with the run or the run has only one.
func spaces(s string) int {
	end, last := 0, 0
	for end < len(s) {
		c, n := at(s, end)
		if c&cWS == 0 {
			break
		}
		last, end = n, end+n
	}
	if end < len(s) && end > last {
		return end - last
	}
	return end
}

// linesOrSpaces matches \s*[\r\n]+|\s+(?!\S)|\s+ : a run of white space up to
// its last line end if it has one, or else what spaces matches.
func linesOrSpaces(s string) int {
	end, last, line := 0, 0, 0
	for end < len(s) {
		c, n := at(s, end)
		if c&cWS == 0 {
			break
		}
		last, end = n, end+n
		if c&cNL != 0 {
			line = end
		}
	}
	switch {
	case line > 0:
		return line
	case end < len(s) && end > last:
		return end - last
	}
	return end
}

// atMost returns the end of a run of at most limit characters of the class mask
// (any number when limit is 0).
func atMost(s string, mask class, limit int) int {
	end := 0
	for k := 0; limit == 0 || k < limit; k++ {
		c, n := at(s, end)
		if c&mask == 0 {
			break
		}
		end += n
	}
	return end
}

// run makes a matcher of [mask]{1,limit}, or [mask]+ when limit is 0.
func run(mask class, limit int) matcher {
	return func(s string) int { return atMost(s, mask, limit) }
}
