package grammar

import (
	"fmt"
	"strings"
)

// array returns the body of an array's rule.
func (p *printer) array(id int32) string {
	a := p.m.arrays[id]
	ws := p.space()
	start := lazyNode{kind: lazyArray, a: id}
	if a.distinct == nil && len(a.prefix) == 0 && len(a.contains) == 0 {
		if a.max == 0 || !p.m.c.productive(a.rest) {
			return fmt.Sprintf(`"[" %s "]"`, ws)
		}
		item := p.term(a.rest)
		items := item + " " + repeated(fmt.Sprintf(`("," %s %s)`, ws, item), max(a.min-1, 0), max(a.max-1, min(a.max, 0))) + " " + ws
		if a.min == 0 {
			items = "(" + items + ")?"
		}
		return fmt.Sprintf(`"[" %s %s "]"`, ws, items)
	}
	alts := p.items(start)
	if a.complete(start) {
		alts = append(alts, `"]"`)
	}
	return fmt.Sprintf(`"[" %s (%s)`, ws, p.either(alts))
}

// items returns the alternatives for an item in state k and all that follows it.
func (p *printer) items(k lazyNode) []string {
	var alts []string
	for _, s := range p.m.steps(k) {
		alts = append(alts, p.term(s.term)+" "+p.afterItem(s.next))
	}
	return alts
}

func (p *printer) afterItem(k lazyNode) string {
	return p.rule(fmt.Sprint("A", k), "items", func() string {
		var alts []string
		if more := p.items(k); len(more) > 0 {
			alts = append(alts, fmt.Sprintf(`"," %s (%s)`, p.space(), strings.Join(more, " | ")))
		}
		if p.m.arrays[k.a].complete(k) {
			alts = append(alts, p.space()+` "]"`)
		}
		return p.either(alts)
	})
}

// memberOrder tells how the members of an object are printed: in any order, or (ordered) with properties
// in the order of their declaration, last being the one before (-1: none).
type memberOrder struct {
	ordered bool
	last    int
}

// object returns the body of an object's rule.
func (p *printer) object(o *objectInfo) string {
	comment := ""
	order := memberOrder{last: -1}
	if o.tracked {
		comment = "# repeated names are not noticed here"
	}
	if p.objectStates(o) > maxPrinted {
		order.ordered = true
		if comment != "" {
			comment += "; "
		} else {
			comment = "# "
		}
		comment += "narrowed: properties in the order of their declaration"
	}
	if comment != "" {
		comment += "\n"
	}
	s := o.begin()
	alts := p.members(o, s, order)
	if o.complete(s) {
		alts = append(alts, `"}"`)
	}
	return fmt.Sprintf(`%s"{" %s (%s)`, comment, p.space(), p.either(alts))
}

// objectStates counts the states of an object, up to just over maxPrinted.
func (p *printer) objectStates(o *objectInfo) int {
	if len(o.names) > 32 {
		return maxPrinted + 1 // too many even if only two may occur
	}
	seen := map[objectState]bool{}
	work := []objectState{o.begin()}
	for len(work) > 0 && len(seen) <= maxPrinted {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		for i := range o.names {
			if next, ok := o.afterName(s, i); ok {
				work = append(work, next)
			}
		}
		for j := range o.members {
			if next, ok := o.afterMember(s, j); ok {
				work = append(work, next)
			}
		}
	}
	return len(seen)
}

// member returns the text of property i and the rule of what follows in state next.
func (p *printer) member(o *objectInfo, i int, next objectState, order memberOrder) string {
	names := spellings(o.names[i].name)
	for k := range names {
		names[k] = gbnfLiteral(names[k])
	}
	name := names[0]
	if len(names) > 1 {
		name = "(" + strings.Join(names, " | ") + ")"
	}
	if order.ordered {
		order.last = i
		next = next.through(i)
	}
	return fmt.Sprintf(`%s ":" %s %s %s`, name, p.space(), p.term(o.names[i].term), p.afterMember(o, next, order))
}

// through returns s with the properties up to i taken as seen: what an order skips cannot come later.
func (s objectState) through(i int) objectState {
	seen := []byte(s.seen)
	for k := range i + 1 {
		seen[k/8] |= 1 << (k % 8)
	}
	s.seen = string(seen)
	return s
}

// classMembers returns the alternatives for a member without an entry of its own.
func (p *printer) classMembers(o *objectInfo, s objectState, order memberOrder) []string {
	var alts []string
	for j, mc := range o.members {
		if next, ok := o.afterMember(s, j); ok {
			d := p.m.dfaID(mc.d)
			alts = append(alts, fmt.Sprintf(`"\"" %s ":" %s %s %s`, p.text(d, mc.d.start), p.space(), p.term(mc.term), p.afterMember(o, next, order)))
		}
	}
	return alts
}

// members returns the alternatives for a member in state s and all that follows it.
func (p *printer) members(o *objectInfo, s objectState, order memberOrder) []string {
	var alts []string
	for i, prop := range o.names {
		if next, ok := o.afterName(s, i); ok {
			alts = append(alts, p.member(o, i, next, order))
		}
		if order.ordered && prop.required {
			return alts
		}
	}
	if order.ordered {
		order.last = len(o.names) - 1
		s = s.through(order.last)
	}
	return append(alts, p.classMembers(o, s, order)...)
}

func (p *printer) afterMember(o *objectInfo, s objectState, order memberOrder) string {
	key := fmt.Sprintf("O%d %d %q %d %v", o.id, s.count, s.seen, s.satisfied, order)
	return p.rule(key, "members", func() string {
		ws := p.space()
		comma := func(alts []string) []string {
			if len(alts) == 0 {
				return nil
			}
			return []string{fmt.Sprintf(`"," %s (%s)`, ws, strings.Join(alts, " | "))}
		}
		var alts []string
		switch i := order.last + 1; {
		case !order.ordered:
			alts = comma(p.members(o, s, order))
		case i < len(o.names):
			// One property at a time, so that the text grows with their number and not its square.
			if next, ok := o.afterName(s, i); ok {
				alts = comma([]string{p.member(o, i, next, order)})
			}
			if !o.names[i].required {
				order.last = i
				alts = append(alts, p.afterMember(o, s.through(i), order))
			}
			return p.either(alts)
		default:
			alts = comma(p.classMembers(o, s, order))
		}
		if o.complete(s) {
			alts = append(alts, ws+` "}"`)
		}
		return p.either(alts)
	})
}

// either joins alternatives; without any, it names a rule that nothing completes.
func (p *printer) either(alts []string) string {
	if len(alts) == 0 {
		return p.rule("dead", "dead", func() string { return `"-" dead` })
	}
	return strings.Join(alts, " | ")
}
