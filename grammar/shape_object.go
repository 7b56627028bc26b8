package grammar

import (
	"fmt"
	"slices"
)

// intersectClass returns the names in both; false: none.
func (c *compiler) intersectNames(a, b *dfa) (*dfa, bool, error) {
	if a == nil || b == nil || a == b {
		if a == nil {
			a = b
		}
		return a, true, nil
	}
	d, err := c.spend(intersectDFA(a, b))
	if err != nil {
		return nil, false, err
	}
	return d, !d.empty(), nil
}

// intersectObjects returns the objects in both a and b as a union of alternatives.
func (c *compiler) intersectObjects(a, b *objShape) ([]*objShape, error) {
	if a == b || b == anyObject {
		return []*objShape{a}, nil
	}
	if a == anyObject {
		return []*objShape{b}, nil
	}
	z := &objShape{min: max(a.min, b.min), max: minBound(a.max, b.max), some: append(slices.Clone(a.some), b.some...)}
	for _, p := range a.named {
		q := property{name: p.name, required: p.required}
		if i := b.find(p.name); i >= 0 {
			q.required = q.required || b.named[i].required
		}
		var err error
		if q.term, err = c.and(p.term, b.lookup(p.name)); err != nil {
			return nil, err
		}
		z.named = append(z.named, q)
	}
	for _, p := range b.named {
		if a.find(p.name) >= 0 {
			continue
		}
		t, err := c.and(p.term, a.lookup(p.name))
		if err != nil {
			return nil, err
		}
		z.named = append(z.named, property{p.name, t, p.required})
	}
	for _, x := range a.classes {
		for _, y := range b.classes {
			t, err := c.and(x.term, y.term)
			if err != nil {
				return nil, err
			}
			d, ok, err := c.intersectNames(x.d, y.d)
			if err != nil {
				return nil, err
			}
			if ok && t != falseTerm {
				z.classes = append(z.classes, nameClass{d, t})
			}
		}
	}
	return c.tidyObject(z)
}

// tidyObject brings o into its simplest form: names that cannot occur lose their term, and a rule about
// some member is split into the cases that a property satisfies it and that a member without entry does.
func (c *compiler) tidyObject(o *objShape) ([]*objShape, error) {
	if err := c.charge(len(o.named) + len(o.classes)); err != nil {
		return nil, err
	}
	if len(o.named) > MaxProperties {
		return nil, fmt.Errorf("an object names over %d properties: %w (MaxProperties)", MaxProperties, ErrLimit)
	}
	required := 0
	for i, p := range o.named {
		if p.term != falseTerm && c.provablyEmpty(p.term, proofLevels) {
			o.named[i].term = falseTerm
		}
		if p.required {
			if required++; o.named[i].term == falseTerm {
				return nil, nil
			}
		}
	}
	o.classes = slices.DeleteFunc(o.classes, func(k nameClass) bool {
		return k.term == falseTerm || c.provablyEmpty(k.term, proofLevels)
	})
	if len(o.classes) > MaxShapes {
		return nil, tooManyShapes()
	}
	if o.max >= 0 && max(o.min, required) > o.max {
		return nil, nil
	}
	for i, r := range o.some {
		at := slices.IndexFunc(o.named, func(p property) bool { return r.d == nil || r.d.match(p.name) })
		if at < 0 {
			continue
		}
		// Cases: property at satisfies the rule; or it is left to the other names.
		rest := o.clone()
		d, err := c.without(r.d, []string{o.named[at].name})
		if err != nil {
			return nil, err
		}
		rest.some[i].d = d
		out, err := c.tidyObject(rest)
		if err != nil {
			return nil, err
		}
		case1 := o.clone()
		case1.some = slices.Delete(case1.some, i, i+1)
		p := &case1.named[at]
		p.required = true
		if p.term, err = c.and(p.term, r.term); err != nil {
			return nil, err
		}
		more, err := c.tidyObject(case1)
		if err != nil {
			return nil, err
		}
		if len(out)+len(more) > MaxShapes {
			return nil, tooManyShapes()
		}
		return append(more, out...), nil
	}
	for _, r := range o.some {
		if ok, err := c.classSatisfies(o, r); err != nil || !ok {
			return nil, err
		}
	}
	return []*objShape{o}, nil
}

func (o *objShape) clone() *objShape {
	z := *o
	z.named, z.classes, z.some = slices.Clone(o.named), slices.Clone(o.classes), slices.Clone(o.some)
	return &z
}

// without returns d less the given names.
func (c *compiler) without(d *dfa, names []string) (*dfa, error) {
	if d == nil {
		d = anyText()
	}
	if len(names) == 0 {
		return d, nil
	}
	list, err := c.spend(listDFA(names))
	if err != nil {
		return nil, err
	}
	return c.spend(subtractDFA(d, list))
}

// classSatisfies reports whether a member without an entry of its own can satisfy the rule, as far as is
// shown.
func (c *compiler) classSatisfies(o *objShape, r someRule) (bool, error) {
	for _, k := range o.classes {
		_, ok, err := c.intersectNames(k.d, r.d)
		if err != nil {
			return false, err
		}
		t, err := c.and(k.term, r.term)
		if err != nil {
			return false, err
		}
		if ok && !c.provablyEmpty(t, proofLevels) {
			return true, nil
		}
	}
	return false, nil
}

// complementObject returns the objects that are not in o: those that break one of its rules.
func (c *compiler) complementObject(o *objShape) ([]*objShape, error) {
	var out []*objShape
	add := func(z *objShape) error {
		list, err := c.tidyObject(z)
		out = append(out, list...)
		return err
	}
	base := func() *objShape { return anyObject.clone() }
	if o.min > 0 {
		z := base()
		z.max = o.min - 1
		if err := add(z); err != nil {
			return nil, err
		}
	}
	if o.max >= 0 {
		z := base()
		z.min = o.max + 1
		if err := add(z); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, p := range o.named {
		names = append(names, p.name)
		if p.required {
			z := base()
			z.named = []property{{p.name, falseTerm, false}}
			if err := add(z); err != nil {
				return nil, err
			}
		}
		if p.term != trueTerm {
			n, err := c.not(p.term)
			if err != nil {
				return nil, err
			}
			z := base()
			z.named = []property{{p.name, n, true}}
			if err := add(z); err != nil {
				return nil, err
			}
		}
	}
	outside, err := c.without(nil, names)
	if err != nil {
		return nil, err
	}
	for _, k := range o.classes {
		if k.term != trueTerm {
			d, err := c.without(k.d, names)
			if err != nil {
				return nil, err
			}
			n, err := c.not(k.term)
			if err != nil {
				return nil, err
			}
			z := base()
			z.some = []someRule{{d, n}}
			if err := add(z); err != nil {
				return nil, err
			}
		}
		if k.d == nil {
			outside = nil
		} else if outside != nil {
			if outside, err = c.spend(subtractDFA(outside, k.d)); err != nil {
				return nil, err
			}
		}
	}
	if outside != nil && !outside.empty() {
		z := base()
		z.some = []someRule{{outside, trueTerm}}
		if err := add(z); err != nil {
			return nil, err
		}
	}
	for _, r := range o.some {
		n, err := c.not(r.term)
		if err != nil {
			return nil, err
		}
		z := base()
		z.classes = []nameClass{{r.d, n}}
		if r.d != nil {
			rest, err := c.spend(complementDFA(r.d))
			if err != nil {
				return nil, err
			}
			z.classes = append(z.classes, nameClass{rest, trueTerm})
		}
		if err := add(z); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// objectEmpty reports whether o is shown to hold no object.
func (c *compiler) objectEmpty(o *objShape, levels int) bool {
	possible := 0
	for _, p := range o.named {
		empty := c.provablyEmpty(p.term, levels)
		if p.required && empty {
			return true
		}
		if !empty {
			possible++
		}
	}
	return len(o.classes) == 0 && possible < o.min
}
