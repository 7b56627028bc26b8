package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// tokKind is the kind of a token; operators have their own text as kind.
type tokKind string

const (
	tkData       tokKind = "template data"
	tkVarBegin   tokKind = "begin of print statement"
	tkVarEnd     tokKind = "end of print statement"
	tkBlockBegin tokKind = "begin of statement block"
	tkBlockEnd   tokKind = "end of statement block"
	tkName       tokKind = "name"
	tkString     tokKind = "string"
	tkInt        tokKind = "integer"
	tkFloat      tokKind = "float"
	tkEOF        tokKind = "end of template"
)

type token struct {
	kind tokKind
	val  string // the text; of a string its value
	line int
}

// lexer cuts a source into tokens. The rules are those of Jinja2 with the
// default delimiters; strip and lstrip are applied here.
type lexer struct {
	src      string
	pos      int
	line     int
	lineAt   int // the position that line was counted up to
	toks     []token
	brackets []byte // closing brackets that are awaited
	trim     bool
	lstrip   bool
	start    bool // the last match ended with a newline, or nothing was matched
}

func newlines(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func lex(src string, c *config) []token {
	src = newlines(src)
	if !c.keepNewline {
		src = strings.TrimSuffix(src, "\n")
	}
	lx := &lexer{src: src, line: 1, trim: !c.noTrim, lstrip: !c.noLstrip, start: true}
	for lx.pos < len(src) {
		lx.root()
	}
	lx.pos = len(src)
	lx.emit(tkEOF, "")
	return lx.toks
}

// lineNo is the line of the current position.
func (lx *lexer) lineNo() int {
	lx.line += strings.Count(lx.src[lx.lineAt:lx.pos], "\n")
	lx.lineAt = lx.pos
	return lx.line
}

func (lx *lexer) emit(k tokKind, val string) {
	lx.toks = append(lx.toks, token{k, val, lx.lineNo()})
}

func (lx *lexer) fail(format string, args ...any) {
	line := lx.lineNo()
	defer setLine(line)
	raise(ErrSyntax, "", format, args...)
}

// refuse is fail for what a string may not hold here though Python reads it.
func (lx *lexer) refuse(what string) {
	defer setLine(lx.lineNo())
	raise(ErrUnsupported, "string", "%s", what)
}

// setLine, deferred, adds a line to a failure that passes through.
func setLine(line int) {
	if r := recover(); r != nil {
		if f, ok := r.(failure); ok && f.err.Line == 0 {
			f.err.Line = line
		}
		panic(r)
	}
}

// move sets the position to the end of a match.
func (lx *lexer) move(end int) {
	lx.start = end > 0 && lx.src[end-1] == '\n'
	lx.pos = end
}

func (lx *lexer) has(at int, s string) bool { return strings.HasPrefix(lx.src[at:], s) }

// spaces is the end of the white space from at.
func (lx *lexer) spaces(at int) int {
	for at < len(lx.src) {
		r, w := utf8.DecodeRuneInString(lx.src[at:])
		if !isSpace(r) {
			break
		}
		at += w
	}
	return at
}

// root reads the data up to the next tag and then the tag.
func (lx *lexer) root() {
	at := lx.pos
	for {
		i := strings.IndexByte(lx.src[at:], '{')
		if i < 0 || at+i+1 >= len(lx.src) {
			lx.emit(tkData, lx.src[lx.pos:])
			lx.move(len(lx.src))
			return
		}
		at += i
		if c := lx.src[at+1]; c == '{' || c == '%' || c == '#' {
			break
		}
		at++
	}
	opener := lx.src[at+1]
	end, sign := at+2, byte(0)
	if end < len(lx.src) && (lx.src[end] == '-' || lx.src[end] == '+') {
		sign = lx.src[end]
		end++
	}
	raw := -1
	if opener == '%' {
		raw = lx.tagNamed(end, "raw", false)
	}
	lx.data(at, sign, opener == '{')
	if raw >= 0 {
		lx.move(raw)
		lx.raw()
		return
	}
	lx.pos = at
	switch opener {
	case '{':
		lx.emit(tkVarBegin, "")
		lx.move(end)
		lx.expr(false)
	case '%':
		lx.emit(tkBlockBegin, "")
		lx.move(end)
		lx.expr(true)
	default:
		lx.move(end)
		lx.comment()
	}
}

// data emits the text before the tag at a position, stripped as asked.
func (lx *lexer) data(at int, sign byte, variable bool) {
	text := lx.src[lx.pos:at]
	if sign == '-' {
		text = strings.TrimRightFunc(text, isSpace)
	} else if sign != '+' && lx.lstrip && !variable {
		l := strings.LastIndexByte(text, '\n') + 1
		if (l > 0 || lx.start) && strings.TrimLeftFunc(text[l:], isSpace) == "" {
			text = text[:l]
		}
	}
	if text != "" {
		lx.emit(tkData, text)
	}
}

// tagNamed is the end of a tag with only this name, whose text begins at a
// position, or -1. closing tags may strip and trim behind them.
func (lx *lexer) tagNamed(at int, name string, closing bool) int {
	at = lx.spaces(at)
	if !lx.has(at, name) {
		return -1
	}
	at = lx.spaces(at + len(name))
	if !closing {
		switch {
		case lx.has(at, "-%}"):
			return lx.spaces(at + 3)
		case lx.has(at, "%}"):
			return at + 2
		}
		return -1
	}
	return lx.tagEnd(at, "%}")
}

// tagEnd is the end of a closing delimiter at a position, with what it strips
// or trims, or -1.
func (lx *lexer) tagEnd(at int, delim string) int {
	switch {
	case lx.has(at, "+"+delim):
		return at + 1 + len(delim)
	case lx.has(at, "-"+delim):
		return lx.spaces(at + 1 + len(delim))
	case lx.has(at, delim):
		at += len(delim)
		if lx.trim && lx.has(at, "\n") {
			at++
		}
		return at
	}
	return -1
}

func (lx *lexer) comment() {
	for at := lx.pos; at < len(lx.src); at++ {
		if end := lx.tagEnd(at, "#}"); end >= 0 {
			lx.move(end)
			return
		}
	}
	if lx.pos < len(lx.src) {
		lx.fail("Missing end of comment tag")
	}
}

func (lx *lexer) raw() {
	for at := lx.pos; at < len(lx.src); at++ {
		i := strings.Index(lx.src[at:], "{%")
		if i < 0 {
			break
		}
		at += i
		name, sign := at+2, byte(0)
		if name < len(lx.src) && (lx.src[name] == '-' || lx.src[name] == '+') {
			sign = lx.src[name]
			name++
		}
		if end := lx.tagNamed(name, "endraw", true); end >= 0 {
			lx.data(at, sign, false)
			lx.move(end)
			return
		}
	}
	if lx.pos < len(lx.src) {
		lx.fail("Missing end of raw directive")
	}
}

// expr reads the inside of a tag up to its end.
func (lx *lexer) expr(block bool) {
	for lx.pos < len(lx.src) {
		if len(lx.brackets) == 0 {
			if block {
				if end := lx.tagEnd(lx.pos, "%}"); end >= 0 {
					lx.emit(tkBlockEnd, "")
					lx.move(end)
					return
				}
			} else if lx.has(lx.pos, "-}}") {
				lx.emit(tkVarEnd, "")
				lx.move(lx.spaces(lx.pos + 3))
				return
			} else if lx.has(lx.pos, "}}") {
				lx.emit(tkVarEnd, "")
				lx.move(lx.pos + 2)
				return
			}
		}
		lx.item()
	}
}

var operators = []string{
	"//", "**", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";",
}

// item reads one token inside a tag.
func (lx *lexer) item() {
	if end := lx.spaces(lx.pos); end > lx.pos {
		lx.move(end)
		return
	}
	if end, isFloat := lx.number(); end > lx.pos {
		k := tkInt
		if isFloat {
			k = tkFloat
		}
		lx.emit(k, strings.ReplaceAll(lx.src[lx.pos:end], "_", ""))
		lx.move(end)
		return
	}
	end := lx.pos
	for end < len(lx.src) {
		r, w := utf8.DecodeRuneInString(lx.src[end:])
		if !isWord(r) && !isIdentPart(r) {
			break
		}
		end += w
	}
	if end > lx.pos {
		name := lx.src[lx.pos:end]
		if !isIdentifier(name) {
			lx.fail("Invalid character in identifier")
		}
		lx.emit(tkName, name)
		lx.move(end)
		return
	}
	if c := lx.src[lx.pos]; c == '\'' || c == '"' {
		for end = lx.pos + 1; end < len(lx.src) && lx.src[end] != c; end++ {
			if lx.src[end] == '\\' {
				end++
			}
		}
		if end < len(lx.src) {
			lx.emit(tkString, lx.unescape(lx.src[lx.pos+1:end]))
			lx.move(end + 1)
			return
		}
	}
	for _, op := range operators {
		if lx.has(lx.pos, op) {
			lx.balance(op[0])
			lx.emit(tokKind(op), op)
			lx.move(lx.pos + len(op))
			return
		}
	}
	r, _ := utf8.DecodeRuneInString(lx.src[lx.pos:])
	lx.fail("unexpected char %s", quote(string(r)))
}

func (lx *lexer) balance(c byte) {
	switch c {
	case '(':
		lx.brackets = append(lx.brackets, ')')
	case '[':
		lx.brackets = append(lx.brackets, ']')
	case '{':
		lx.brackets = append(lx.brackets, '}')
	case ')', ']', '}':
		n := len(lx.brackets) - 1
		if n < 0 {
			lx.fail("unexpected '%c'", c)
		}
		if lx.brackets[n] != c {
			lx.fail("unexpected '%c', expected '%c'", c, lx.brackets[n])
		}
		lx.brackets = lx.brackets[:n]
	}
}

// number is the end of the number at the position; the position itself where
// there is none.
func (lx *lexer) number() (end int, isFloat bool) {
	s, at := lx.src, lx.pos
	if !isDigit(s[at]) {
		return at, false
	}
	if at == 0 || s[at-1] != '.' {
		if e := digits(s, at); e > at {
			f := e
			if f < len(s) && s[f] == '.' {
				if g := digits(s, f+1); g > f+1 {
					f = g
				}
			}
			if f < len(s) && s[f]|0x20 == 'e' {
				g := f + 1
				if g < len(s) && (s[g] == '+' || s[g] == '-') {
					g++
				}
				if h := digits(s, g); h > g {
					return h, true
				}
			}
			if f > e {
				return f, true
			}
		}
	}
	if s[at] != '0' {
		return run1(s, at+1, "0123456789"), false
	}
	if at+1 < len(s) {
		set := map[byte]string{'b': "01", 'o': "01234567", 'x': "0123456789abcdefABCDEF"}[s[at+1]|0x20]
		if set != "" {
			if e := run1(s, at+2, set); e > at+2 {
				return e, false
			}
		}
	}
	return run1(s, at+1, "0"), false
}

// digits is the end of digits that single underscores may separate.
func digits(s string, at int) int {
	e := at
	for e < len(s) && isDigit(s[e]) {
		e++
		if e+1 < len(s) && s[e] == '_' && isDigit(s[e+1]) {
			e++
		}
	}
	return e
}

// run1 is the end of characters of a set, each with an underscore before it or
// not.
func run1(s string, at int, set string) int {
	for at < len(s) {
		if strings.IndexByte(set, s[at]) >= 0 {
			at++
		} else if s[at] == '_' && at+1 < len(s) && strings.IndexByte(set, s[at+1]) >= 0 {
			at += 2
		} else {
			break
		}
	}
	return at
}

// unescape reads the backslash escapes of a string as Python's unicode-escape
// codec does after it has escaped what is not ASCII: so a backslash before such
// a character stands for itself and leaves the escape as text.
func (lx *lexer) unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b []byte
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b = append(b, s[i])
			i++
			continue
		}
		i++
		c := s[i]
		if c >= 0x80 {
			r, w := utf8.DecodeRuneInString(s[i:])
			b = append(b, '\\')
			switch {
			case r <= 0xff:
				b = appendHex(append(b, 'x'), r, 2)
			case r <= 0xffff:
				b = appendHex(append(b, 'u'), r, 4)
			default:
				b = appendHex(append(b, 'U'), r, 8)
			}
			i += w
			continue
		}
		i++
		n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		switch {
		case n > 0:
			if i+n > len(s) {
				lx.fail("truncated \\%c escape", c)
			}
			x, err := strconv.ParseUint(s[i:i+n], 16, 32)
			if err != nil || x > utf8.MaxRune || s[i] == '+' || s[i] == '-' {
				lx.fail("bad \\%c escape", c)
			}
			if x >= 0xd800 && x < 0xe000 {
				lx.refuse("a surrogate escape")
			}
			b = utf8.AppendRune(b, rune(x))
			i += n
		case c >= '0' && c <= '7':
			x := rune(c - '0')
			for k := 0; k < 2 && i < len(s) && s[i] >= '0' && s[i] <= '7'; k++ {
				x = x*8 + rune(s[i]-'0')
				i++
			}
			b = utf8.AppendRune(b, x)
		case c == 'N':
			lx.refuse("a \\N escape")
		default:
			if k := strings.IndexByte("\n\\'\"abfnrtv", c); k > 0 {
				b = append(b, "\n\\'\"\a\b\f\n\r\t\v"[k])
			} else if k < 0 {
				b = append(b, '\\', c)
			}
		}
	}
	return string(b)
}
