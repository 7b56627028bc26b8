package grammar

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// exprKind tells what an expr is.
type exprKind uint8

const (
	exprSeq    exprKind = iota // kids in order; empty: the empty text
	exprAlt                    // one of kids
	exprChars                  // one code point of ranges
	exprRef                    // the rule with index rule
	exprRepeat                 // kids[0], min to max times (max < 0: no bound)
	exprBegin                  // the empty text at the beginning (patterns only)
	exprEnd                    // the empty text at the end (patterns only)
)

// expr is a node of a GBNF rule body.
type expr struct {
	kind     exprKind
	kids     []*expr
	ranges   []runeRange
	rule     int
	min, max int
}

// gbnfRule is one rule; body is nil until defined. line is that of the definition or first use.
type gbnfRule struct {
	name string
	body *expr
	line int
}

type gbnfParser struct {
	src   string
	pos   int
	line  int
	depth int
	rules []gbnfRule
	index map[string]int
}

// ParseGBNF compiles a grammar in llama.cpp's GBNF notation; the text of the language is what the rule
// named root derives. Left recursion, undefined or repeated rules, token references and rules from which
// no text can be derived are refused by name; errors wrap [ErrSyntax], [ErrUnsupported], [ErrEmpty] or
// [ErrLimit] and tell the line.
func ParseGBNF(src string) (*Grammar, error) {
	if len(src) > MaxSource {
		return nil, fmt.Errorf("grammar: GBNF source of %d bytes, limit %d: %w (MaxSource)", len(src), MaxSource, ErrLimit)
	}
	if i := firstInvalidUTF8(src); i >= 0 {
		return nil, fmt.Errorf("grammar: GBNF source is not UTF-8 at offset %d: %w", i, ErrSyntax)
	}
	p := &gbnfParser{src: src, line: 1, index: map[string]int{}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	a, err := compileGBNF(p.rules, p.index["root"])
	if err != nil {
		return nil, err
	}
	return &Grammar{a: a, source: src}, nil
}

func firstInvalidUTF8(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return -1
}

func (p *gbnfParser) errorf(sentinel error, format string, args ...any) error {
	return fmt.Errorf("grammar: GBNF line %d: %s: %w", p.line, fmt.Sprintf(format, args...), sentinel)
}

func (p *gbnfParser) parse() error {
	p.space(true)
	for p.pos < len(p.src) {
		if err := p.rule(); err != nil {
			return err
		}
		if len(p.rules) > MaxRules {
			return p.errorf(ErrLimit, "over %d rules (MaxRules)", MaxRules)
		}
		p.space(true)
	}
	if r, ok := p.index["root"]; !ok || p.rules[r].body == nil {
		return fmt.Errorf("grammar: GBNF has no rule named root: %w", ErrSyntax)
	}
	for _, r := range p.rules {
		if r.body == nil {
			return fmt.Errorf("grammar: GBNF line %d: rule %q is not defined: %w", r.line, r.name, ErrSyntax)
		}
	}
	return nil
}

// space skips blanks and comments, and line ends too if newlines is true.
func (p *gbnfParser) space(newlines bool) {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '#':
			for p.pos < len(p.src) && p.src[p.pos] != '\n' && p.src[p.pos] != '\r' {
				p.pos++
			}
		case c == ' ' || c == '\t':
			p.pos++
		case newlines && (c == '\n' || c == '\r'):
			if c == '\n' {
				p.line++
			}
			p.pos++
		default:
			return
		}
	}
}

func (p *gbnfParser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// name reads a rule name, or returns "".
func (p *gbnfParser) name() string {
	start := p.pos
	for p.pos < len(p.src) && isWordByte(p.src[p.pos]) {
		p.pos++
	}
	return p.src[start:p.pos]
}

func (p *gbnfParser) lookup(name string) int {
	i, ok := p.index[name]
	if !ok {
		i = len(p.rules)
		p.index[name] = i
		p.rules = append(p.rules, gbnfRule{name: name, line: p.line})
	}
	return i
}

func (p *gbnfParser) unexpected(want string) error {
	if p.pos >= len(p.src) {
		return p.errorf(ErrSyntax, "%s expected, found the end", want)
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.pos:])
	if r == '<' || r == '!' {
		return p.errorf(ErrUnsupported, "token reference (%q)", r)
	}
	return p.errorf(ErrSyntax, "%s expected, found %q", want, r)
}

func (p *gbnfParser) rule() error {
	name := p.name()
	if name == "" {
		return p.unexpected("rule name")
	}
	p.space(false)
	if p.pos+3 > len(p.src) || p.src[p.pos:p.pos+3] != "::=" {
		return p.unexpected(fmt.Sprintf("::= after rule name %q", name))
	}
	p.pos += 3
	i := p.lookup(name)
	if p.rules[i].body != nil {
		return p.errorf(ErrSyntax, "rule %q is defined again (first on line %d)", name, p.rules[i].line)
	}
	p.rules[i].line = p.line
	body, err := p.alternatives(false)
	if err != nil {
		return err
	}
	p.rules[i].body = body
	if c := p.peek(); p.pos < len(p.src) && c != '\n' && c != '\r' && !p.atLineStart() {
		return p.unexpected("end of rule")
	}
	return nil
}

// atLineStart reports whether only blanks stand before the current position in its line.
func (p *gbnfParser) atLineStart() bool {
	before := strings.TrimRight(p.src[:p.pos], " \t")
	return before == "" || before[len(before)-1] == '\n' || before[len(before)-1] == '\r'
}

// alternatives reads a | b | c. Line ends may follow "::=" , "(" and "|", stand before "|", and stand
// anywhere inside parentheses.
func (p *gbnfParser) alternatives(nested bool) (*expr, error) {
	alt := &expr{kind: exprAlt}
	for {
		p.space(true)
		seq, err := p.sequence(nested)
		if err != nil {
			return nil, err
		}
		alt.kids = append(alt.kids, seq)
		pos, line := p.pos, p.line
		p.space(true)
		if p.peek() != '|' {
			p.pos, p.line = pos, line
			break
		}
		p.pos++
	}
	if len(alt.kids) == 1 {
		return alt.kids[0], nil
	}
	return alt, nil
}

func (p *gbnfParser) sequence(nested bool) (*expr, error) {
	seq := &expr{kind: exprSeq}
	stacked := 0
	for p.pos < len(p.src) {
		var item *expr
		var err error
		switch c := p.peek(); {
		case c == '"':
			item, err = p.literal()
		case c == '[':
			item, err = p.class()
		case c == '.':
			p.pos++
			item = &expr{kind: exprChars, ranges: []runeRange{{0, utf8.MaxRune}}}
		case c == '(':
			item, err = p.group()
		case isWordByte(c):
			start := p.pos
			name := p.name()
			end := p.pos
			p.space(false)
			if p.pos+3 <= len(p.src) && p.src[p.pos:p.pos+3] == "::=" {
				// The next rule began inside parentheses or right after an empty body.
				p.pos = start
				return seq, nil
			}
			p.pos = end
			item = &expr{kind: exprRef, rule: p.lookup(name)}
		case c == '*' || c == '+' || c == '?' || c == '{':
			if len(seq.kids) == 0 {
				return nil, p.errorf(ErrSyntax, "%q repeats nothing", c)
			}
			if stacked++; stacked > MaxNesting {
				return nil, p.errorf(ErrLimit, "repetitions of repetitions nest deeper than %d (MaxNesting)", MaxNesting)
			}
			last := &seq.kids[len(seq.kids)-1]
			*last, err = p.repeat(*last)
			if err != nil {
				return nil, err
			}
			p.space(nested)
			continue
		case c == '<' || c == '!':
			return nil, p.unexpected("element")
		default:
			return seq, nil
		}
		if err != nil {
			return nil, err
		}
		stacked = 0
		seq.kids = append(seq.kids, item)
		p.space(nested)
	}
	return seq, nil
}

func (p *gbnfParser) group() (*expr, error) {
	if p.depth++; p.depth > MaxNesting {
		return nil, p.errorf(ErrLimit, "groups nest deeper than %d (MaxNesting)", MaxNesting)
	}
	p.pos++
	e, err := p.alternatives(true)
	if err != nil {
		return nil, err
	}
	p.space(true)
	if p.peek() != ')' {
		return nil, p.unexpected("')'")
	}
	p.pos++
	p.depth--
	return e, nil
}

func (p *gbnfParser) literal() (*expr, error) {
	p.pos++
	e := &expr{kind: exprSeq}
	begin := p.line
	for p.peek() != '"' {
		if p.pos >= len(p.src) {
			p.line = begin
			return nil, p.errorf(ErrSyntax, "literal is not closed")
		}
		r, err := p.char()
		if err != nil {
			return nil, err
		}
		if r >= surrogateLo && r <= surrogateHi {
			return nil, p.errorf(ErrSyntax, "literal holds the surrogate U+%04X", r)
		}
		e.kids = append(e.kids, &expr{kind: exprChars, ranges: []runeRange{{r, r}}})
	}
	p.pos++
	return e, nil
}

func (p *gbnfParser) class() (*expr, error) {
	p.pos++
	negated := p.peek() == '^'
	if negated {
		p.pos++
	}
	var rs []runeRange
	begin := p.line
	for p.peek() != ']' {
		if p.pos >= len(p.src) {
			p.line = begin
			return nil, p.errorf(ErrSyntax, "character class is not closed")
		}
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if p.peek() == '-' && p.pos+1 < len(p.src) && p.src[p.pos+1] != ']' {
			p.pos++
			if hi, err = p.char(); err != nil {
				return nil, err
			}
		}
		if lo > hi {
			return nil, p.errorf(ErrSyntax, "character range %q-%q is reversed", lo, hi)
		}
		rs = append(rs, runeRange{lo, hi})
	}
	p.pos++
	if len(rs) == 0 {
		return nil, p.errorf(ErrSyntax, "character class is empty")
	}
	rs = normalizeRanges(rs)
	if negated {
		rs = negateRanges(rs)
	}
	return &expr{kind: exprChars, ranges: rs}, nil
}

var gbnfEscapes = map[byte]rune{
	't': '\t', 'r': '\r', 'n': '\n', '\\': '\\', '"': '"', '[': '[', ']': ']', '-': '-', '^': '^',
}

// char reads one possibly escaped code point of a literal or class.
func (p *gbnfParser) char() (rune, error) {
	if p.peek() != '\\' {
		r, n := utf8.DecodeRuneInString(p.src[p.pos:])
		p.pos += n
		if r == '\n' {
			p.line++
		}
		return r, nil
	}
	p.pos++
	c := p.peek()
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 {
		r, ok := gbnfEscapes[c]
		if !ok {
			return 0, p.errorf(ErrSyntax, "unknown escape \\%c", c)
		}
		p.pos++
		return r, nil
	}
	p.pos++
	r := rune(0)
	for range digits {
		v := hexValue(p.peek())
		if v < 0 {
			return 0, p.errorf(ErrSyntax, "\\%c needs %d hexadecimal digits", c, digits)
		}
		if r = r<<4 | rune(v); r > utf8.MaxRune {
			return 0, p.errorf(ErrSyntax, "escape beyond U+10FFFF")
		}
		p.pos++
	}
	return r, nil
}

func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func (p *gbnfParser) repeat(e *expr) (*expr, error) {
	c := p.peek()
	p.pos++
	lo, hi := 0, -1
	switch c {
	case '+':
		lo = 1
	case '?':
		hi = 1
	case '{':
		p.space(false)
		var err error
		if lo, err = p.number(); err != nil {
			return nil, err
		}
		hi = lo
		p.space(false)
		if p.peek() == ',' {
			p.pos++
			p.space(false)
			hi = -1
			if p.peek() != '}' {
				if hi, err = p.number(); err != nil {
					return nil, err
				}
				p.space(false)
			}
		}
		if p.peek() != '}' {
			return nil, p.unexpected("'}'")
		}
		p.pos++
		if hi >= 0 && hi < lo {
			return nil, p.errorf(ErrSyntax, "repetition {%d,%d} is reversed", lo, hi)
		}
	}
	return &expr{kind: exprRepeat, kids: []*expr{e}, min: lo, max: hi}, nil
}

func (p *gbnfParser) number() (int, error) {
	start := p.pos
	v := 0
	for p.peek() >= '0' && p.peek() <= '9' {
		if v = v*10 + int(p.peek()-'0'); v > MaxRepeat {
			return 0, p.errorf(ErrLimit, "repetition bound over %d (MaxRepeat)", MaxRepeat)
		}
		p.pos++
	}
	if p.pos == start {
		return 0, p.unexpected("number")
	}
	return v, nil
}

func sortRanges(rs []runeRange) {
	slices.SortFunc(rs, func(a, b runeRange) int { return int(a.lo) - int(b.lo) })
}
