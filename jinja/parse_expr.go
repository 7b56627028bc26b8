package jinja

import (
	"math/big"
	"strconv"
	"strings"
)

// tupleRules says how to read expressions that commas may join.
type tupleRules struct {
	simple bool   // names and literals only, as targets are
	cond   bool   // conditional expressions are allowed
	ns     bool   // targets may be attributes of namespaces
	parens bool   // inside parentheses, where an empty tuple is allowed
	end    string // a name that ends the tuple
}

func (p *parser) tuple(r tupleRules) expr {
	line := p.cur().line
	var items []expr
	is := false
	for {
		if items != nil {
			p.expect(",")
		}
		t := p.cur()
		if t.kind == tkVarEnd || t.kind == tkBlockEnd || t.kind == ")" || r.end != "" && t.isName(r.end) {
			break
		}
		if r.simple {
			items = append(items, p.primary(r.ns))
		} else {
			items = append(items, p.expression(r.cond))
		}
		if p.cur().kind != "," {
			break
		}
		is = true
	}
	if !is {
		if items != nil {
			return items[0]
		}
		if !r.parens {
			p.fail("Expected an expression, got %s", quote(describe(p.cur())))
		}
	}
	return &tupleE{p.base(line, items...), items}
}

func (p *parser) expression(cond bool) expr {
	p.enter()
	defer p.leave()
	if !cond {
		return p.or()
	}
	line := p.cur().line
	x := p.or()
	for p.skipName("if") {
		test := p.or()
		var no expr
		if p.skipName("else") {
			no = p.expression(true)
		}
		x = &condE{p.base(line, test, x, no), test, x, no}
		line = p.cur().line
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for p.cur().isName("or") {
		line := p.next().line
		r := p.and()
		x = &logicE{p.base(line, x, r), true, x, r}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.cur().isName("and") {
		line := p.next().line
		r := p.not()
		x = &logicE{p.base(line, x, r), false, x, r}
	}
	return x
}

func (p *parser) not() expr {
	if t := p.cur(); t.isName("not") {
		p.next()
		p.enter()
		defer p.leave()
		x := p.not()
		return &unaryE{p.base(t.line, x), "not", x}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	line := p.cur().line
	c := &compareE{first: p.sum()}
	for {
		op := ""
		switch t := p.cur(); {
		case t.kind == "==" || t.kind == "!=" || t.kind == "<" || t.kind == "<=" || t.kind == ">" || t.kind == ">=":
			op = string(t.kind)
		case t.isName("in"):
			op = "in"
		case t.isName("not") && p.look().isName("in"):
			p.next()
			op = "not in"
		}
		if op == "" {
			break
		}
		p.next()
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.sum())
	}
	if c.ops == nil {
		return c.first
	}
	c.base = p.base(line, append([]expr{c.first}, c.rest...)...)
	return c
}

func (p *parser) sum() expr {
	x := p.concat()
	for p.cur().kind == "+" || p.cur().kind == "-" {
		t := p.next()
		r := p.concat()
		x = &binE{p.base(t.line, x, r), string(t.kind), x, r}
	}
	return x
}

func (p *parser) concat() expr {
	line := p.cur().line
	items := []expr{p.product()}
	for p.skip("~") {
		items = append(items, p.product())
	}
	if len(items) == 1 {
		return items[0]
	}
	return &concatE{base: p.base(line, items...), items: items}
}

func (p *parser) product() expr {
	x := p.power()
	for {
		switch p.cur().kind {
		case "*", "/", "//", "%":
			t := p.next()
			r := p.power()
			x = &binE{p.base(t.line, x, r), string(t.kind), x, r}
			continue
		}
		return x
	}
}

func (p *parser) power() expr {
	x := p.unary(true)
	for p.cur().kind == "**" {
		line := p.next().line
		r := p.unary(true)
		x = &binE{p.base(line, x, r), "**", x, r}
	}
	return x
}

func (p *parser) unary(filters bool) expr {
	var x expr
	if t := p.cur(); t.kind == "-" || t.kind == "+" {
		p.next()
		p.enter()
		x = p.unary(false)
		p.leave()
		x = &unaryE{p.base(t.line, x), string(t.kind), x}
	} else {
		x = p.primary(false)
	}
	x = p.postfix(x)
	if filters {
		x = p.filterExpr(x)
	}
	return x
}

func (p *parser) constant(line int, v Value) expr { return &constE{p.base(line), v} }

func (p *parser) primary(ns bool) expr {
	t := p.cur()
	switch t.kind {
	case tkName:
		p.next()
		switch t.val {
		case "true", "True":
			return p.constant(t.line, pyTrue)
		case "false", "False":
			return p.constant(t.line, pyFalse)
		case "none", "None":
			return p.constant(t.line, none)
		}
		if ns && p.skip(".") {
			return &nsE{base: p.base(t.line), name: t.val, attr: p.expect(tkName).val}
		}
		return &nameE{base: p.base(t.line), name: t.val}
	case tkString:
		var s strings.Builder
		for p.cur().kind == tkString {
			s.WriteString(p.next().val)
		}
		return p.constant(t.line, Trusted(s.String()))
	case tkInt:
		p.next()
		return p.constant(t.line, p.integer(t))
	case tkFloat:
		p.next()
		f, _ := parseFloat(t.val)
		return p.constant(t.line, floatVal(f))
	case "(":
		p.next()
		p.enter()
		defer p.leave()
		x := p.tuple(tupleRules{cond: true, parens: true})
		p.expect(")")
		return x
	case "[":
		p.next()
		l := &listE{}
		for p.cur().kind != "]" {
			if l.items != nil {
				p.expect(",")
				if p.cur().kind == "]" {
					break
				}
			}
			l.items = append(l.items, p.expression(true))
		}
		p.expect("]")
		l.base = p.base(t.line, l.items...)
		return l
	case "{":
		p.next()
		d := &dictE{}
		for p.cur().kind != "}" {
			if d.keys != nil {
				p.expect(",")
				if p.cur().kind == "}" {
					break
				}
			}
			d.keys = append(d.keys, p.expression(true))
			p.expect(":")
			d.vals = append(d.vals, p.expression(true))
		}
		p.expect("}")
		d.base = p.base(t.line, append(append([]expr{}, d.keys...), d.vals...)...)
		return d
	}
	p.fail("unexpected %s", quote(describe(t)))
	return nil
}

func (p *parser) integer(t *token) Value {
	if len(t.val) <= 18 {
		if i, err := strconv.ParseInt(t.val, 0, 64); err == nil && (t.val[0] != '0' || len(t.val) > 1 && t.val[1] > '9') {
			return int64Val(i)
		}
	}
	if len(t.val) > maxIntDigits {
		p.failAt(t.line, ErrSyntax, "", "Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	base := 0
	if t.val[0] == '0' && (len(t.val) == 1 || t.val[1] <= '9') {
		base = 10
	}
	b, _ := new(big.Int).SetString(t.val, base)
	return bigVal(b)
}

func (p *parser) postfix(x expr) expr {
	for {
		switch p.cur().kind {
		case ".", "[":
			x = p.subscript(x)
		case "(":
			x = p.call(x)
		default:
			return x
		}
	}
}

func (p *parser) filterExpr(x expr) expr {
	for {
		switch t := p.cur(); {
		case t.kind == "|":
			x = p.filters(x, false)
		case t.isName("is"):
			x = p.test(x)
		case t.kind == "(":
			x = p.call(x)
		default:
			return x
		}
	}
}

func (p *parser) subscript(x expr) expr {
	t := p.next()
	if t.kind == "." {
		a := p.next()
		switch a.kind {
		case tkName:
			return &attrE{p.base(t.line, x), x, a.val, Trusted(a.val)}
		case tkInt:
			arg := p.constant(a.line, p.integer(a))
			return &itemE{p.base(t.line, x, arg), x, arg}
		}
		p.failAt(a.line, ErrSyntax, "", "expected name or number")
	}
	var args []expr
	for p.cur().kind != "]" {
		if args != nil {
			p.expect(",")
		}
		args = append(args, p.subscribed())
	}
	p.expect("]")
	if len(args) == 1 {
		if s, ok := args[0].(*sliceE); ok && s.x == nil {
			s.x = x
			s.base = p.base(t.line, x, s)
			return s
		}
		return &itemE{p.base(t.line, x, args[0]), x, args[0]}
	}
	for _, a := range args {
		if s, ok := a.(*sliceE); ok && s.x == nil {
			p.failAt(t.line, ErrSyntax, "", "a slice among several subscripts")
		}
	}
	arg := &tupleE{p.base(t.line, args...), args}
	return &itemE{p.base(t.line, x, arg), x, arg}
}

func (p *parser) subscribed() expr {
	line := p.cur().line
	s := &sliceE{}
	if !p.skip(":") {
		s.start = p.expression(true)
		if !p.skip(":") {
			return s.start
		}
	}
	rest := func() expr {
		if k := p.cur().kind; k == "]" || k == "," {
			return nil
		}
		return p.expression(true)
	}
	if p.cur().kind != ":" {
		s.stop = rest()
	}
	if p.skip(":") {
		s.step = rest()
	}
	s.base = p.base(line, s.start, s.stop, s.step)
	return s
}

func (p *parser) callArgs() (a callArgs) {
	line := p.expect("(").line
	bad := func(b bool) {
		if b {
			p.failAt(line, ErrSyntax, "", "invalid syntax for function call expression")
		}
	}
	for comma := false; p.cur().kind != ")"; comma = true {
		if comma {
			p.expect(",")
			if p.cur().kind == ")" {
				break
			}
		}
		switch t := p.cur(); {
		case t.kind == "*":
			bad(a.star != nil || a.starstar != nil)
			p.next()
			a.star = p.expression(true)
		case t.kind == "**":
			bad(a.starstar != nil)
			p.next()
			a.starstar = p.expression(true)
		case t.kind == tkName && p.look().kind == "=":
			bad(a.starstar != nil)
			p.next()
			p.next()
			for _, n := range a.names {
				if n == t.val {
					p.failAt(t.line, ErrSyntax, "", "keyword argument repeated: %s", n)
				}
			}
			a.names = append(a.names, t.val)
			a.vals = append(a.vals, p.expression(true))
		default:
			bad(a.star != nil || a.starstar != nil || a.names != nil)
			a.pos = append(a.pos, p.expression(true))
		}
	}
	p.expect(")")
	return a
}

func (p *parser) call(x expr) expr {
	line := p.cur().line
	a := p.callArgs()
	return &callE{p.base(line, append(a.exprs(), x)...), x, a}
}

// dotted reads a name that may have dots, as filters and tests have.
func (p *parser) dotted() *token {
	t := *p.expect(tkName)
	for p.skip(".") {
		t.val += "." + p.expect(tkName).val
	}
	return &t
}

// filters reads the filters applied to x; bare says that the first has no bar.
func (p *parser) filters(x expr, bare bool) expr {
	for bare || p.cur().kind == "|" {
		if !bare {
			p.next()
		}
		bare = false
		t := p.dotted()
		var a callArgs
		if p.cur().kind == "(" {
			a = p.callArgs()
		}
		parts := a.exprs()
		if x != nil {
			parts = append(parts, x)
		}
		x = &filterE{base: p.base(t.line, parts...), x: x, name: t.val, args: a}
	}
	return x
}

func (p *parser) test(x expr) expr {
	line := p.next().line
	negated := p.skipName("not")
	t := p.dotted()
	var a callArgs
	switch c := p.cur(); c.kind {
	case "(":
		a = p.callArgs()
	case tkName, tkString, tkInt, tkFloat, "[", "{":
		if c.isName("else") || c.isName("or") || c.isName("and") {
			break
		}
		if c.isName("is") {
			p.fail("You cannot chain multiple tests with is")
		}
		a.pos = []expr{p.postfix(p.primary(false))}
	}
	var r expr = &testE{base: p.base(line, append(a.exprs(), x)...), x: x, name: t.val, args: a}
	if negated {
		r = &unaryE{p.base(line, r), "not", r}
	}
	return r
}
