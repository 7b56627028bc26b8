package grammar

import (
	"fmt"
	"strings"
)

// maxPrinted bounds the rules that one object or array is printed as; beyond it, the properties of an
// object are printed in the order of their declaration.
const maxPrinted = 512

// printer writes the GBNF of a compiled schema.
type printer struct {
	m     *machine
	rules []string // in order of discovery; "" until written
	names map[string]int
	used  map[string]bool
	label []string
	todo  []func()
}

// GBNF returns the grammar in GBNF notation: the source of a grammar that was parsed, or the grammar that
// a schema becomes, which [ParseGBNF] reads again. The printed grammar has the language of a [Matcher] with two
// exceptions, each told by a comment in the text: an object with too many orders of its properties is
// printed in the order of their declaration, other members after them, and where minProperties or not makes the names of other
// members matter, the printed grammar does not notice repeated names.
func (g *Grammar) GBNF() string {
	if g.schema == nil {
		return g.source
	}
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	p := &printer{m: g.schema.m, names: map[string]int{}, used: map[string]bool{}}
	p.rule("root", "root", func() string { return p.either(p.value(g.schema.root)) })
	for len(p.todo) > 0 {
		next := p.todo[0]
		p.todo = p.todo[1:]
		next()
	}
	return strings.Join(p.rules, "\n") + "\n"
}

// rule returns the name of the rule with the given key, written by body once.
func (p *printer) rule(key, label string, body func() string) string {
	if i, ok := p.names[key]; ok {
		return p.label[i]
	}
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && isWordByte(byte(r)) && r != '_' {
			return r
		}
		return '-'
	}, label)
	name = strings.Trim(name, "-")
	if name == "" {
		name = "rule"
	}
	for base, n := name, 2; p.used[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	p.used[name] = true
	i := len(p.rules)
	p.names[key] = i
	p.rules = append(p.rules, "")
	p.label = append(p.label, name)
	p.todo = append(p.todo, func() {
		text := body()
		comment := ""
		if strings.HasPrefix(text, "#") {
			comment, text, _ = strings.Cut(text, "\n")
			comment += "\n"
		}
		p.rules[i] = comment + name + " ::= " + text
	})
	return name
}

// term returns the name of the rule of a term.
func (p *printer) term(t termID) string {
	if t == p.m.c.root {
		return "root"
	}
	label := "value"
	if node := p.m.c.terms[t].node; node != nil {
		path := p.m.c.where[node].path
		label = path[strings.LastIndexByte(path, '/')+1:]
		if node.get("const") != nil && len(node.items) == 1 {
			label = "const"
		}
	}
	return p.rule(fmt.Sprint("t", t), label, func() string { return p.either(p.value(t)) })
}

func (p *printer) space() string {
	return p.rule("ws", "ws", func() string { return fmt.Sprintf(`(" " | "\n" [ \t]{0,%d})?`, maxIndent) })
}

// value returns the alternatives of a term.
func (p *printer) value(t termID) []string {
	m := p.m
	var out []string
	s := m.c.terms[t].shape
	if lit, ok := m.litOf[t]; ok {
		for _, text := range m.literals[lit].texts {
			out = append(out, gbnfLiteral(text))
		}
	}
	if d, ok := m.numbers[t]; ok {
		out = append(out, p.number(s.num, d))
	}
	for _, part := range s.strs {
		if part.list == nil {
			out = append(out, p.str(part))
		}
	}
	for _, a := range s.arrs {
		if id, ok := m.arrayOf[a]; ok {
			out = append(out, p.rule(fmt.Sprint("a", id), "array", func() string { return p.array(id) }))
		}
	}
	for _, o := range s.objs {
		if id, ok := m.objectOf[o]; ok {
			out = append(out, p.rule(fmt.Sprint("o", id), "object", func() string { return p.object(m.objects[id]) }))
		}
	}
	return out
}

func (p *printer) number(n *numSet, d int32) string {
	digits := fmt.Sprintf(`"-"? ("0" | [1-9] [0-9]{0,%d})`, MaxDigits-1)
	fraction := fmt.Sprintf(`("." [0-9]{1,%d})?`, MaxDigits)
	switch {
	case n.plain == allPlain() && n.exp == expAll:
		return p.rule("number", "number", func() string { return digits + " " + fraction + ` ([eE] [-+]? [0-9]{1,3})?` })
	case n.plain == allPlain():
		return p.rule("decimal", "decimal", func() string { return digits + " " + fraction })
	case p.m.dfas[d] == wholeIntegers():
		return p.rule("integer", "integer", func() string { return digits })
	}
	return p.digits(d, p.m.dfas[d].start)
}

// digits returns the rule of a state of a number's automaton.
func (p *printer) digits(d, s int32) string {
	return p.rule(fmt.Sprintf("n%d,%d", d, s), "number", func() string {
		a := p.m.dfas[d]
		if class, lo, n, ok := a.run(s); ok {
			return fmt.Sprintf("%s{%d,%d}", class, lo, n)
		}
		var order []int32
		classes := map[int32][]runeRange{}
		for b := range 0x80 {
			to := a.step(s, byte(b))
			if to == 0 {
				continue
			}
			if classes[to] == nil {
				order = append(order, to)
			}
			classes[to] = append(classes[to], runeRange{rune(b), rune(b)})
		}
		var alts []string
		for _, to := range order {
			alts = append(alts, gbnfClass(normalizeRanges(classes[to]))+" "+p.digits(d, to))
		}
		if a.accept[s] {
			alts = append(alts, `""`)
		}
		return p.either(alts)
	})
}

// run reports whether the texts from state s are lo to n repetitions of one class of bytes, lo being 0 or 1.
func (d *dfa) run(s int32) (class string, lo, n int, ok bool) {
	if !d.accept[s] {
		lo = 1
	}
	for {
		var set []runeRange
		to := int32(0)
		for b := range 0x80 {
			if t := d.step(s, byte(b)); t != 0 {
				if to != 0 && t != to {
					return "", 0, 0, false
				}
				to = t
				set = append(set, runeRange{rune(b), rune(b)})
			}
		}
		if to == 0 {
			return class, lo, n, n > 1
		}
		text := gbnfClass(normalizeRanges(set))
		if n++; n > MaxRepeat || to == s || !d.accept[to] || class != "" && class != text {
			return "", 0, 0, false
		}
		class, s = text, to
	}
}

// char returns the rule of any character of a string.
func (p *printer) char() string {
	return p.rule("char", "char", func() string { return stringChar([]runeRange{{0, 0x10FFFF}}) })
}

func (p *printer) str(part strPart) string {
	if part.d != nil {
		d := p.m.dfaID(part.d)
		return `"\"" ` + p.text(d, part.d.start)
	}
	if part.min == 0 && part.max < 0 {
		return p.rule("string", "string", func() string { return `"\"" ` + p.char() + `* "\""` })
	}
	return `"\"" ` + repeated(p.char(), part.min, part.max) + ` "\""`
}

// repeated returns x{min,max}, in portions that ParseGBNF reads.
func repeated(x string, lo, hi int) string {
	var out []string
	for ; lo > MaxRepeat; lo, hi = lo-MaxRepeat, max(hi-MaxRepeat, -1) {
		out = append(out, fmt.Sprintf("%s{%d}", x, MaxRepeat))
	}
	if hi < 0 {
		return strings.Join(append(out, fmt.Sprintf("%s{%d,}", x, lo)), " ")
	}
	for ; hi > MaxRepeat; hi -= MaxRepeat {
		out = append(out, fmt.Sprintf("%s{0,%d}", x, MaxRepeat))
	}
	return strings.Join(append(out, fmt.Sprintf("%s{%d,%d}", x, lo, hi)), " ")
}

// text returns the rule of a state of a string's automaton, up to and with the closing quote.
func (p *printer) text(d, s int32) string {
	return p.rule(fmt.Sprintf("s%d,%d", d, s), "text", func() string {
		var order []int32
		sets := map[int32][]runeRange{}
		for _, e := range p.m.edgesOf(d, s) {
			if sets[e.to] == nil {
				order = append(order, e.to)
			}
			sets[e.to] = append(sets[e.to], runeRange{e.lo, e.hi})
		}
		var alts []string
		for _, to := range order {
			set := sets[to]
			chars := "(" + stringChar(set) + ")"
			if scalar := scalarRanges(set); len(scalar) == len(scalarRanges([]runeRange{{0, 0x10FFFF}})) && scalar[0].lo == 0 && len(normalizeRanges(scalar)) == 2 {
				chars = p.char()
			}
			alts = append(alts, chars+" "+p.text(d, to))
		}
		if p.m.dfas[d].accept[s] {
			alts = append(alts, `"\""`)
		}
		return p.either(alts)
	})
}
