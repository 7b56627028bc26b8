package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// patternParser reads the ECMA-262 regular expressions that JSON Schema's pattern uses.
type patternParser struct {
	src   string
	pos   int
	depth int
}

// patternDFA returns the automaton of the texts in which the pattern is found. Lookaround, back
// references and word boundaries are refused by name.
func patternDFA(src string) (*dfa, error) {
	e, err := parsePattern(src)
	if err != nil {
		return nil, err
	}
	rest := &expr{kind: exprRepeat, max: -1, kids: []*expr{anyChar}}
	d, err := exprDFA(&expr{kind: exprSeq, kids: []*expr{rest, e, rest}})
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", shown(src), err)
	}
	return d, nil
}

func parsePattern(src string) (*expr, error) {
	p := &patternParser{src: src}
	e, err := p.alternatives()
	if err == nil && p.pos < len(src) {
		err = p.errorf(ErrSyntax, "unmatched ')'")
	}
	return e, err
}

func (p *patternParser) errorf(sentinel error, format string, args ...any) error {
	return fmt.Errorf("pattern %s at offset %d: %s: %w", shown(p.src), p.pos, fmt.Sprintf(format, args...), sentinel)
}

// maxShown bounds the bytes of a text that an error quotes.
const maxShown = 100

// shown returns text in quotes, cut if it is long.
func shown(text string) string {
	if len(text) <= maxShown {
		return strconv.Quote(text)
	}
	return strconv.Quote(strings.ToValidUTF8(text[:maxShown], "")) + "..."
}

func (p *patternParser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *patternParser) rune() rune {
	r, n := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += n
	return r
}

func (p *patternParser) alternatives() (*expr, error) {
	if p.depth++; p.depth > MaxNesting {
		return nil, p.errorf(ErrLimit, "groups nest deeper than %d (MaxNesting)", MaxNesting)
	}
	defer func() { p.depth-- }()
	alt := &expr{kind: exprAlt}
	for {
		seq := &expr{kind: exprSeq}
		for p.pos < len(p.src) && p.peek() != '|' && p.peek() != ')' {
			item, err := p.term()
			if err != nil {
				return nil, err
			}
			seq.kids = append(seq.kids, item)
		}
		alt.kids = append(alt.kids, seq)
		if p.peek() != '|' {
			return alt, nil
		}
		p.pos++
	}
}

func (p *patternParser) term() (*expr, error) {
	var e *expr
	var err error
	switch c := p.peek(); c {
	case '^':
		p.pos++
		return &expr{kind: exprBegin}, nil
	case '$':
		p.pos++
		return &expr{kind: exprEnd}, nil
	case '(':
		e, err = p.group()
	case '.':
		p.pos++
		e = &expr{kind: exprChars, ranges: negateRanges([]runeRange{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}})}
	case '[':
		e, err = p.class()
	case '\\':
		e, err = p.escape()
	case '*', '+', '?':
		return nil, p.errorf(ErrSyntax, "%q repeats nothing", c)
	case '{':
		if _, _, ok := p.braces(); ok {
			return nil, p.errorf(ErrSyntax, "repetition of nothing")
		}
		e = oneRune(p.rune())
	default:
		e = oneRune(p.rune())
	}
	if err != nil {
		return nil, err
	}
	return p.quantified(e)
}

func oneRune(r rune) *expr { return &expr{kind: exprChars, ranges: []runeRange{{r, r}}} }

func (p *patternParser) quantified(e *expr) (*expr, error) {
	lo, hi := 0, -1
	switch p.peek() {
	case '*':
		p.pos++
	case '+':
		lo = 1
		p.pos++
	case '?':
		hi = 1
		p.pos++
	case '{':
		var ok bool
		at := p.pos
		if lo, hi, ok = p.braces(); !ok {
			return e, nil
		}
		if lo > MaxRepeat || hi > MaxRepeat {
			p.pos = at
			return nil, p.errorf(ErrLimit, "repetition bound over %d (MaxRepeat)", MaxRepeat)
		}
		if hi >= 0 && hi < lo {
			p.pos = at
			return nil, p.errorf(ErrSyntax, "repetition {%d,%d} is reversed", lo, hi)
		}
	default:
		return e, nil
	}
	if p.peek() == '?' {
		p.pos++ // a lazy quantifier finds the same texts
	}
	if c := p.peek(); c == '*' || c == '+' || c == '?' {
		return nil, p.errorf(ErrSyntax, "%q repeats a repetition", c)
	}
	return &expr{kind: exprRepeat, kids: []*expr{e}, min: lo, max: hi}, nil
}

// braces reads {m}, {m,} or {m,n}; anything else stays unread: there the brace stands for itself.
func (p *patternParser) braces() (lo, hi int, ok bool) {
	i := p.pos + 1
	number := func() (int, bool) {
		start, v := i, 0
		for i < len(p.src) && p.src[i] >= '0' && p.src[i] <= '9' {
			v = min(v*10+int(p.src[i]-'0'), MaxRepeat+1)
			i++
		}
		return v, i > start
	}
	if lo, ok = number(); !ok {
		return 0, 0, false
	}
	hi = lo
	if i < len(p.src) && p.src[i] == ',' {
		i++
		if hi, ok = number(); !ok {
			hi = -1
		}
	}
	if i >= len(p.src) || p.src[i] != '}' {
		return 0, 0, false
	}
	p.pos = i + 1
	return lo, hi, true
}

func (p *patternParser) group() (*expr, error) {
	p.pos++
	if p.peek() == '?' {
		rest := p.src[p.pos:]
		switch {
		case len(rest) > 1 && rest[1] == ':':
			p.pos += 2
		case len(rest) > 1 && (rest[1] == '=' || rest[1] == '!'):
			return nil, p.errorf(ErrUnsupported, "lookahead (?%c", rest[1])
		case len(rest) > 2 && rest[1] == '<' && (rest[2] == '=' || rest[2] == '!'):
			return nil, p.errorf(ErrUnsupported, "lookbehind (?<%c", rest[2])
		case len(rest) > 1 && rest[1] == '<':
			for p.pos < len(p.src) && p.src[p.pos] != '>' {
				p.pos++
			}
			p.pos = min(p.pos+1, len(p.src))
		default:
			return nil, p.errorf(ErrUnsupported, "group modifier (?")
		}
	}
	e, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.peek() != ')' {
		return nil, p.errorf(ErrSyntax, "group is not closed")
	}
	p.pos++
	return e, nil
}

func (p *patternParser) class() (*expr, error) {
	p.pos++
	negated := p.peek() == '^'
	if negated {
		p.pos++
	}
	var rs []runeRange
	for {
		if p.pos >= len(p.src) {
			return nil, p.errorf(ErrSyntax, "character class is not closed")
		}
		if p.peek() == ']' {
			p.pos++
			break
		}
		set, lo, single, err := p.classAtom()
		if err != nil {
			return nil, err
		}
		if !single {
			rs = append(rs, set...)
			continue
		}
		hi := lo
		if p.peek() == '-' && p.pos+1 < len(p.src) && p.src[p.pos+1] != ']' {
			at := p.pos
			p.pos++
			var set2 []runeRange
			set2, hi, single, err = p.classAtom()
			if err != nil {
				return nil, err
			}
			if !single {
				rs = append(append(rs, runeRange{lo, lo}, runeRange{'-', '-'}), set2...)
				continue
			}
			if hi < lo {
				p.pos = at
				return nil, p.errorf(ErrSyntax, "character range %q-%q is reversed", lo, hi)
			}
		}
		rs = append(rs, runeRange{lo, hi})
	}
	rs = normalizeRanges(rs)
	if negated {
		rs = negateRanges(rs)
	}
	return &expr{kind: exprChars, ranges: rs}, nil
}

// classAtom reads one member of a class: a set such as \d, or a single code point.
func (p *patternParser) classAtom() (set []runeRange, r rune, single bool, err error) {
	if p.peek() != '\\' {
		return nil, p.rune(), true, nil
	}
	if p.pos+1 < len(p.src) && p.src[p.pos+1] == 'b' {
		p.pos += 2
		return nil, '\b', true, nil
	}
	e, err := p.escape()
	if err != nil {
		return nil, 0, false, err
	}
	if len(e.ranges) == 1 && e.ranges[0].lo == e.ranges[0].hi {
		return nil, e.ranges[0].lo, true, nil
	}
	return e.ranges, 0, false, nil
}

var (
	digitRanges = []runeRange{{'0', '9'}}
	wordRanges  = []runeRange{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	spaceRanges = []runeRange{
		{'\t', '\r'},
		{' ', ' '},
		{0xA0, 0xA0},
		{0x1680, 0x1680},
		{0x2000, 0x200A},
		{0x2028, 0x2029},
		{0x202F, 0x202F},
		{0x205F, 0x205F},
		{0x3000, 0x3000},
		{0xFEFF, 0xFEFF},
	}
	patternControls = map[rune]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r'}
)

// escape reads a backslash and what follows it.
func (p *patternParser) escape() (*expr, error) {
	start := p.pos
	p.pos++
	if p.pos >= len(p.src) {
		return nil, p.errorf(ErrSyntax, "\\ at the end")
	}
	fail := func(sentinel error, what string) (*expr, error) {
		p.pos = start
		return nil, p.errorf(sentinel, "%s", what)
	}
	c := p.rune()
	set := func(rs []runeRange, negate bool) (*expr, error) {
		if negate {
			rs = negateRanges(rs)
		}
		return &expr{kind: exprChars, ranges: rs}, nil
	}
	switch c {
	case 'd', 'D':
		return set(digitRanges, c == 'D')
	case 'w', 'W':
		return set(wordRanges, c == 'W')
	case 's', 'S':
		return set(spaceRanges, c == 'S')
	case 'p', 'P':
		rs, err := p.property()
		if err != nil {
			return nil, err
		}
		return set(rs, c == 'P')
	case 'b', 'B':
		return fail(ErrUnsupported, "word boundary \\"+string(c))
	case 'k':
		return fail(ErrUnsupported, "back reference \\k")
	case '0':
		if d := p.peek(); d < '0' || d > '9' {
			return oneRune(0), nil
		}
		return fail(ErrSyntax, "octal escape")
	case 'c':
		l := p.peek()
		if l|0x20 < 'a' || l|0x20 > 'z' {
			return fail(ErrSyntax, "\\c needs a letter")
		}
		p.pos++
		return oneRune(rune(l & 31)), nil
	case 'x', 'u':
		r, ok := p.hexEscape(c)
		if !ok {
			return fail(ErrSyntax, "malformed \\"+string(c))
		}
		return oneRune(r), nil
	}
	if r, ok := patternControls[c]; ok {
		return oneRune(r), nil
	}
	if c >= '1' && c <= '9' {
		return fail(ErrUnsupported, "back reference \\"+string(c))
	}
	if c < 0x80 && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
		return fail(ErrSyntax, "unknown escape \\"+string(c))
	}
	return oneRune(c), nil
}

// hexEscape reads what follows \x or \u: two digits, four (with a second \u for a surrogate pair), or
// any number in braces.
func (p *patternParser) hexEscape(kind rune) (rune, bool) {
	digits := func(n int) (rune, bool) {
		r := rune(0)
		for range n {
			v := hexValue(p.peek())
			if v < 0 {
				return 0, false
			}
			r = r<<4 | rune(v)
			p.pos++
		}
		return r, true
	}
	if kind == 'x' {
		return digits(2)
	}
	if p.peek() == '{' {
		p.pos++
		r, n := rune(0), 0
		for ; p.peek() != '}'; n++ {
			v := hexValue(p.peek())
			if r = r<<4 | rune(v); v < 0 || r > utf8.MaxRune {
				return 0, false
			}
			p.pos++
		}
		p.pos++
		return r, n > 0
	}
	r, ok := digits(4)
	if ok && r >= 0xD800 && r < 0xDC00 && p.pos+1 < len(p.src) && p.src[p.pos:p.pos+2] == "\\u" {
		at := p.pos
		p.pos += 2
		if low, ok := digits(4); ok && low >= 0xDC00 && low <= surrogateHi {
			return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), true
		}
		p.pos = at
	}
	return r, ok
}

// property reads {Name} or {Script=Name} after \p.
func (p *patternParser) property() ([]runeRange, error) {
	end := p.pos
	for end < len(p.src) && p.src[end] != '}' {
		end++
	}
	if p.peek() != '{' || end == len(p.src) {
		return nil, p.errorf(ErrSyntax, "\\p needs a name in braces")
	}
	name := p.src[p.pos+1 : end]
	var table *unicode.RangeTable
	key, value := "", name
	for i := range len(name) {
		if name[i] == '=' {
			key, value = name[:i], name[i+1:]
		}
	}
	switch key {
	case "", "General_Category", "gc":
		if alias, ok := unicode.CategoryAliases[value]; ok {
			value = alias
		}
		table = unicode.Categories[value]
		if table == nil && key == "" {
			table = unicode.Properties[value]
		}
	case "Script", "sc":
		table = unicode.Scripts[value]
	}
	if key == "" && value == "ASCII" {
		p.pos = end + 1
		return []runeRange{{0, 0x7F}}, nil
	}
	if key == "" && value == "Any" {
		p.pos = end + 1
		return []runeRange{{0, utf8.MaxRune}}, nil
	}
	if table == nil {
		return nil, p.errorf(ErrUnsupported, "character property \\p{%s}", name)
	}
	p.pos = end + 1
	var rs []runeRange
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			rs = append(rs, runeRange{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			rs = append(rs, runeRange{r, r})
		}
	}
	for _, r := range table.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range table.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return normalizeRanges(rs), nil
}
