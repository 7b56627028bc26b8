package jinja

import "strings"

// parser builds the tree; it is a recursive descent whose depth is bounded.
type parser struct {
	toks  []token
	pos   int
	depth int // nesting of statements and expressions being read
	max   int
	ends  [][]string // the tags that end the blocks being read
	open  []string   // the names of the open blocks
}

func (p *parser) cur() *token { return &p.toks[p.pos] }

func (p *parser) look() *token {
	return &p.toks[min(p.pos+1, len(p.toks)-1)]
}

func (p *parser) next() *token {
	t := &p.toks[p.pos]
	if p.pos < len(p.toks)-1 {
		p.pos++
	}
	return t
}

func (t *token) isName(s string) bool { return t.kind == tkName && t.val == s }

func (p *parser) skipName(s string) bool {
	if p.cur().isName(s) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skip(k tokKind) bool {
	if p.cur().kind == k {
		p.next()
		return true
	}
	return false
}

func (p *parser) failAt(line int, kind error, construct, format string, args ...any) {
	defer setLine(line)
	raise(kind, construct, format, args...)
}

func (p *parser) fail(format string, args ...any) {
	p.failAt(p.cur().line, ErrSyntax, "", format, args...)
}

func describe(t *token) string {
	if t.kind == tkName {
		return t.val
	}
	return string(t.kind)
}

func (p *parser) expect(k tokKind) *token {
	if p.cur().kind != k {
		if p.cur().kind == tkEOF {
			p.fail("unexpected end of template, expected %s.", quote(string(k)))
		}
		p.fail("expected token %s, got %s", quote(string(k)), quote(describe(p.cur())))
	}
	return p.next()
}

func (p *parser) expectName(s string) *token {
	if !p.cur().isName(s) {
		p.fail("expected token %s, got %s", quote(s), quote(describe(p.cur())))
	}
	return p.next()
}

// enter counts one more level of nesting.
func (p *parser) enter() {
	if p.depth++; p.depth > p.max {
		p.failAt(p.cur().line, ErrLimit, "nesting", "more than %d levels", p.max)
	}
}

func (p *parser) leave() { p.depth-- }

// base makes the base of an expression with these parts.
func (p *parser) base(line int, parts ...expr) base {
	h := int32(0)
	for _, x := range parts {
		if x != nil {
			h = max(h, x.info().height)
		}
	}
	if h++; int(h) > p.max {
		p.failAt(line, ErrLimit, "nesting", "an expression of more than %d levels", p.max)
	}
	return base{int32(line), h}
}

// body reads statements up to one of the end tags, which stays current.
func (p *parser) body(ends ...string) []stmt {
	p.skip(":")
	p.expect(tkBlockEnd)
	b := p.statements(ends)
	if p.cur().kind == tkEOF {
		p.failTag("", append(p.ends, ends), p.cur().line)
	}
	return b
}

// bodyTo reads statements up to and with the end tag.
func (p *parser) bodyTo(end string) []stmt {
	b := p.body(end)
	p.next()
	return b
}

// failTag reports an unknown tag, or the end of the template where name is
// empty.
func (p *parser) failTag(name string, ends [][]string, line int) {
	msg := "Unexpected end of template."
	if name != "" {
		msg = "Encountered unknown tag " + quote(name) + "."
	}
	if len(ends) > 0 {
		last := ends[len(ends)-1]
		looking := "'" + strings.Join(last, "' or '") + "'"
		known := false
		for _, l := range ends {
			for _, e := range l {
				known = known || e == name
			}
		}
		if name != "" && known {
			msg += " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for " + looking + "."
		} else {
			msg += " Jinja was looking for the following tags: " + looking + "."
		}
	}
	if len(p.open) > 0 {
		msg += " The innermost block that needs to be closed is " + quote(p.open[len(p.open)-1]) + "."
	}
	p.failAt(line, ErrSyntax, "", "%s", msg)
}

// statements reads until one of the end tags, or the end of the template.
func (p *parser) statements(ends []string) []stmt {
	p.enter()
	defer p.leave()
	if ends != nil {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	var out []stmt
	for {
		switch t := p.cur(); t.kind {
		case tkEOF:
			return out
		case tkData:
			p.next()
			tx := newText(t.val, true)
			tx.length()
			out = append(out, &textS{tx})
		case tkVarBegin:
			p.next()
			x := p.tuple(tupleRules{cond: true})
			p.expect(tkVarEnd)
			out = append(out, &printS{x: x})
		case tkBlockBegin:
			p.next()
			for _, e := range ends {
				if p.cur().isName(e) {
					return out
				}
			}
			out = append(out, p.statement()...)
			p.expect(tkBlockEnd)
		default:
			p.fail("unexpected %s", describe(t))
		}
	}
}

func (p *parser) statement() []stmt {
	t := p.cur()
	if t.kind != tkName {
		p.fail("tag name expected")
	}
	p.open = append(p.open, t.val)
	one := func(s stmt) []stmt {
		p.open = p.open[:len(p.open)-1]
		return []stmt{s}
	}
	switch t.val {
	case "for":
		return one(p.forStmt())
	case "if":
		return one(p.ifStmt())
	case "set":
		return one(p.setStmt())
	case "macro":
		return one(p.macroStmt())
	case "call":
		return one(p.callBlock())
	case "generation":
		p.next()
		return one(&callBlockS{def: &macroDef{line: t.line, body: p.bodyTo("endgeneration")}})
	case "filter":
		p.next()
		f := p.filters(nil, true)
		return one(&filterBlockS{filter: f.(*filterE), body: p.bodyTo("endfilter")})
	case "with":
		return one(p.withStmt())
	case "autoescape":
		p.next()
		x := p.expression(true)
		return one(&escapeS{val: x, body: p.bodyTo("endautoescape")})
	case "block":
		return one(p.blockStmt())
	case "print":
		p.next()
		var out []stmt
		for p.cur().kind != tkBlockEnd {
			if out != nil {
				p.expect(",")
			}
			out = append(out, &printS{x: p.expression(true)})
		}
		p.open = p.open[:len(p.open)-1]
		return out
	case "break":
		p.next()
		return one(&loopCtlS{line: t.line, flow: flowBreak})
	case "continue":
		p.next()
		return one(&loopCtlS{line: t.line, flow: flowContinue})
	case "include", "import", "from", "extends":
		p.failAt(t.line, ErrUnsupported, t.val, "a template cannot load another")
	}
	p.open = p.open[:len(p.open)-1]
	p.failTag(t.val, p.ends, t.line)
	return nil
}

func (p *parser) forStmt() stmt {
	s := &forS{line: p.next().line}
	s.target = p.target(false, "in")
	p.expectName("in")
	s.iter = p.tuple(tupleRules{end: "recursive"})
	if p.skipName("if") {
		s.test = p.expression(true)
	}
	s.recursive = p.skipName("recursive")
	s.body = p.body("endfor", "else")
	if p.next().val == "else" {
		s.els = p.bodyTo("endfor")
		s.hasElse = len(s.els) > 0
	}
	return s
}

func (p *parser) ifStmt() stmt {
	p.next()
	s := &ifS{}
	for {
		s.tests = append(s.tests, p.tuple(tupleRules{}))
		s.bodies = append(s.bodies, p.body("elif", "else", "endif"))
		switch p.next().val {
		case "elif":
			continue
		case "else":
			s.els = p.bodyTo("endif")
		}
		return s
	}
}

func (p *parser) setStmt() stmt {
	line := p.next().line
	target := p.target(true, "")
	if p.skip("=") {
		return &setS{line: line, target: target, val: p.tuple(tupleRules{cond: true})}
	}
	s := &setBlockS{line: line, target: target}
	if f := p.filters(nil, false); f != nil {
		s.filter = f.(*filterE)
	}
	s.body = p.bodyTo("endset")
	return s
}

func (p *parser) withStmt() stmt {
	s := &withS{line: p.next().line}
	for p.cur().kind != tkBlockEnd {
		if s.targets != nil {
			p.expect(",")
		}
		s.targets = append(s.targets, p.target(false, ""))
		p.expect("=")
		s.vals = append(s.vals, p.expression(true))
	}
	s.body = p.bodyTo("endwith")
	return s
}

func (p *parser) blockStmt() stmt {
	s := &blockS{line: p.next().line}
	s.name = p.expect(tkName).val
	s.scoped = p.skipName("scoped")
	s.required = p.skipName("required")
	if p.cur().kind == "-" {
		p.fail("Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an underscore instead.")
	}
	s.body = p.bodyTo("endblock")
	if s.required {
		for _, b := range s.body {
			if t, ok := b.(*textS); !ok || strings.TrimFunc(t.t.s, isSpace) != "" {
				p.fail("Required blocks can only contain comments or whitespace")
			}
		}
	}
	p.skipName(s.name)
	return s
}

func (p *parser) macroStmt() stmt {
	d := &macroDef{line: p.next().line}
	d.name = p.nameTarget()
	p.signature(d)
	d.body = p.bodyTo("endmacro")
	return &macroS{def: d}
}

func (p *parser) callBlock() stmt {
	d := &macroDef{line: p.next().line}
	if p.cur().kind == "(" {
		p.signature(d)
	}
	call, ok := p.expression(true).(*callE)
	if !ok {
		p.failAt(d.line, ErrSyntax, "call", "expected call")
	}
	d.body = p.bodyTo("endcall")
	return &callBlockS{def: d, call: call}
}

func (p *parser) signature(d *macroDef) {
	p.expect("(")
	for p.cur().kind != ")" {
		if d.params != nil {
			p.expect(",")
		}
		name := p.nameTarget()
		if p.skip("=") {
			d.defaults = append(d.defaults, p.expression(true))
		} else if d.defaults != nil {
			p.fail("non-default argument follows default argument")
		}
		for _, q := range d.params {
			if q == name {
				p.fail("duplicate argument %s in function definition", quote(name))
			}
		}
		d.params = append(d.params, name)
	}
	p.expect(")")
}

func isConstName(s string) bool {
	switch s {
	case "true", "false", "none", "True", "False", "None":
		return true
	}
	return false
}

func (p *parser) nameTarget() string {
	t := p.expect(tkName)
	if isConstName(t.val) {
		p.failAt(t.line, ErrSyntax, "", "can't assign to 'const'")
	}
	return t.val
}

// target reads what can be assigned to: names and tuples of them, and with ns
// attributes of namespaces too.
func (p *parser) target(ns bool, end string) expr {
	x := p.tuple(tupleRules{simple: true, ns: ns, end: end})
	p.assignable(x)
	return x
}

func (p *parser) assignable(x expr) {
	switch t := x.(type) {
	case *nameE, *nsE:
	case *tupleE:
		for _, i := range t.items {
			p.assignable(i)
		}
	default:
		p.failAt(int(x.info().line), ErrSyntax, "", "can't assign to this expression")
	}
}
