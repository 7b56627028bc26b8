package tokenizer

import "unicode"

// Stages that cut numbers from the right, in groups of three digits.

// digitRun returns the number of \d that s starts with and where they end.
func digitRun(s string) (count, end int) {
	for {
		c, n := at(s, end)
		if c&cNd == 0 {
			return count, end
		}
		end += n
		count++
	}
}

// groupsOfThree appends the ends of the groups of a run of count digits of s
// from i: the first may have one or two.
func groupsOfThree(s string, i, count, base int, ends []int) []int {
	for count > 0 {
		n := count % 3
		if n == 0 {
			n = 3
		}
		count -= n
		for range n {
			_, size := at(s, i)
			i += size
		}
		ends = append(ends, base+i)
	}
	return ends
}

// wordDigits is the stage of \d{1,3}(?=(?:\d{3})*\b): the digits of a run are
// grouped unless a word character follows it.
func wordDigits(s string, base int, ends []int) []int {
	gap := 0
	for i := 0; i < len(s); {
		count, end := digitRun(s[i:])
		if count == 0 {
			_, n := at(s, i)
			i += n
			continue
		}
		end += i
		if r, _ := runeAt(s, end); r < 0 || !isWord(r) {
			if gap < i {
				ends = append(ends, base+i)
			}
			ends = groupsOfThree(s, i, count, base, ends)
			gap = end
		}
		i = end
	}
	if gap < len(s) {
		ends = append(ends, base+len(s))
	}
	return ends
}

// isWord is \w of the reference engine: the alphabetic characters, marks,
// decimal digits, connectors, and the superscripts and fractions of Latin-1.
func isWord(r rune) bool {
	if classOf(r)&(cL|cM|cNd) != 0 {
		return true
	}
	switch r {
	case '²', '³', '¹', '¼', '½', '¾':
		return true
	}
	return unicode.In(r, unicode.Pc, unicode.Nl, unicode.Other_Alphabetic, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

// threesFromRight is the stage of (?=(\d{3})+(?!\d)): a cut before every third
// digit from the end of a run.
func threesFromRight(s string, base int, ends []int) []int {
	for i := 0; i < len(s); {
		count, _ := digitRun(s[i:])
		if count == 0 {
			_, n := at(s, i)
			i += n
			continue
		}
		for step := count % 3; count > 0; step = 3 {
			if step == 3 && i > 0 {
				ends = append(ends, base+i)
			}
			count -= step
			for range step {
				_, n := at(s, i)
				i += n
			}
		}
	}
	return append(ends, base+len(s))
}
