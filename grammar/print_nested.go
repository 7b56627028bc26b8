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
	return fmt.Sprintf(`"[" %s (%s)`, ws, strings.Join(alts, " | "))
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
		return strings.Join(alts, " | ")
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
	return fmt.Sprintf(`%s"{" %s (%s)`, comment, p.space(), strings.Join(alts, " | "))
}

// objectStates counts the states of an object, up to just over maxPrinted.
func (p *printer) objectStates(o *objectInfo) int {
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

// members returns the alternatives for a member in state s and all that follows it.
func (p *printer) members(o *objectInfo, s objectState, order memberOrder) []string {
	var alts []string
	ws := p.space()
	for i, prop := range o.names {
		next, ok := o.afterName(s, i)
		if !ok || order.ordered && i <= order.last {
			continue
		}
		names := spellings(prop.name)
		for k := range names {
			names[k] = gbnfLiteral(names[k])
		}
		name := names[0]
		if len(names) > 1 {
			name = "(" + strings.Join(names, " | ") + ")"
		}
		after := order
		after.last = i
		if order.ordered {
			// What was skipped cannot come later, so it is as if it had been seen.
			seen := []byte(next.seen)
			for k := range i {
				seen[k/8] |= 1 << (k % 8)
			}
			next.seen = string(seen)
		}
		alts = append(alts, fmt.Sprintf(`%s ":" %s %s %s`, name, ws, p.term(prop.term), p.afterMember(o, next, after)))
		if order.ordered && prop.required {
			break
		}
	}
	for j, mc := range o.members {
		if next, ok := o.afterMember(s, j); ok {
			d := p.m.dfaID(mc.d)
			alts = append(alts, fmt.Sprintf(`"\"" %s ":" %s %s %s`, p.text(d, mc.d.start), ws, p.term(mc.term), p.afterMember(o, next, order)))
		}
	}
	return alts
}

func (p *printer) afterMember(o *objectInfo, s objectState, order memberOrder) string {
	if !order.ordered {
		order.last = -1
	}
	return p.rule(fmt.Sprintf("O%d %d %q %d %v", o.id, s.count, s.seen, s.satisfied, order), "members", func() string {
		var alts []string
		if more := p.members(o, s, order); len(more) > 0 {
			alts = append(alts, fmt.Sprintf(`"," %s (%s)`, p.space(), strings.Join(more, " | ")))
		}
		if o.complete(s) {
			alts = append(alts, p.space()+` "}"`)
		}
		return strings.Join(alts, " | ")
	})
}
