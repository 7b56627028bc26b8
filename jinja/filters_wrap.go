package jinja

import "strings"

func isWrapSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// wordwrap wraps each line as Python's textwrap does.
func wordwrap(vm *machine, a []Value) Value {
	t := argText("wordwrap", a[0])
	width := argIndex("wordwrap", a[1])
	sep := newText("\n", true)
	if a[3].kind != kNone {
		sep = argText("wordwrap", a[3])
	}
	w := wrapper{vm: vm, width: width, breakLong: truth(a[2]), hyphens: truth(a[4]), splitHyphens: a[4].isTrue()}
	vm.scan(4 * len(t.s))
	var b builder
	n := 0
	for _, l := range splitLines(vm, t, false) {
		lines := w.wrap(l)
		if len(lines) == 0 {
			lines = []*text{{own: true}}
		}
		for _, l := range lines {
			if n > 0 {
				b.addText(sep)
			}
			n++
			b.addText(l)
			vm.fits(len(b.buf))
		}
	}
	return vm.made(b.text())
}

type wrapper struct {
	vm                               *machine
	width                            int
	breakLong, hyphens, splitHyphens bool
}

// chunks cuts text into words and white space; words also after hyphens between
// letters and before dashes.
func (w *wrapper) chunks(t *text) []*text {
	var out []*text
	s := t.s
	for at := 0; at < len(s); {
		end := at
		switch {
		case isWrapSpace(s[at]):
			for end < len(s) && isWrapSpace(s[end]) {
				end++
			}
		case !w.splitHyphens:
			for end < len(s) && !isWrapSpace(s[end]) {
				end++
			}
		case punctBefore(s, at) && dashEnd(s, at) > 0:
			end = dashEnd(s, at)
		default:
			end = wordEnd(s, at)
		}
		out = append(out, t.sub(at, end))
		at = end
	}
	return out
}

// dashEnd is the end of two or more hyphens at a byte that a word follows, or 0.
func dashEnd(s string, at int) int {
	e := at
	for e < len(s) && s[e] == '-' {
		e++
	}
	if e-at < 2 || !isWord(firstRune(s[e:])) {
		return 0
	}
	return e
}

func punctBefore(s string, at int) bool {
	r := lastRune(s[:at])
	return r >= 0 && (isWord(r) || strings.ContainsRune("!\"'&.,?", r))
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return -1
}

func lastRune(s string) rune {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] < 0x80 || s[i] >= 0xc0 {
			return firstRune(s[i:])
		}
	}
	return -1
}

func isLetter(r rune) bool { return r >= 0 && isWord(r) && digitValue(r) < 0 }

// wordEnd is the end of the shortest word from a byte on.
func wordEnd(s string, at int) int {
	for e := at; ; {
		e += runeLen(s[e])
		if e >= len(s) || isWrapSpace(s[e]) || s[e] == '-' && punctBefore(s, e) && dashEnd(s, e) > 0 {
			return e
		}
		if s[e] == '-' && hyphenated(s, e) {
			return e + 1
		}
	}
}

// hyphenated says whether the hyphen at a byte joins the parts of a word.
func hyphenated(s string, at int) bool {
	r1 := lastRune(s[:at])
	if !isLetter(r1) {
		return false
	}
	before := s[:at-len(string(r1))]
	r2 := lastRune(before)
	if !isLetter(r2) && (r2 != '-' || !isLetter(lastRune(before[:len(before)-1]))) {
		return false
	}
	after := s[at+1:]
	a := firstRune(after)
	if !isLetter(a) {
		return false
	}
	after = strings.TrimPrefix(after[len(string(a)):], "-")
	return isLetter(firstRune(after))
}

// wrap is the lines of one paragraph.
func (w *wrapper) wrap(t *text) []*text {
	if w.width <= 0 {
		valueError("invalid width %d (must be > 0)", w.width)
	}
	blank := func(t *text) bool { return strings.TrimFunc(t.s, isSpace) == "" }
	chunks := w.chunks(t)
	var lines []*text
	for len(chunks) > 0 {
		w.vm.grow(len(lines))
		var line []*text
		n := 0
		if blank(chunks[0]) && len(lines) > 0 {
			chunks = chunks[1:]
		}
		for len(chunks) > 0 && n+chunks[0].length() <= w.width {
			n += chunks[0].length()
			line = append(line, chunks[0])
			chunks = chunks[1:]
		}
		if len(chunks) > 0 && chunks[0].length() > w.width {
			if c := chunks[0]; w.breakLong {
				if c.runs != nil || !c.ascii() {
					w.vm.charge(len(c.s)) // the rest of the word is gone through
				}
				end := w.width - n
				if w.hyphens && c.length() > end {
					head := c.points(0, end).s
					if h := strings.LastIndexByte(head, '-'); h > 0 && strings.Trim(head[:h], "-") != "" {
						end = c.index(h) + 1
					}
				}
				line = append(line, c.points(0, end))
				chunks[0] = c.points(end, c.length())
			} else if len(line) == 0 {
				line = append(line, c)
				chunks = chunks[1:]
			}
		}
		if len(line) > 0 && blank(line[len(line)-1]) {
			line = line[:len(line)-1]
		}
		if len(line) > 0 {
			var b builder
			for _, c := range line {
				b.addText(c)
			}
			lines = append(lines, b.text())
		}
	}
	return lines
}
