package grammar

import "fmt"

// productive reports whether a term is known to hold a value.
func (c *compiler) productive(t termID) bool { return t == trueTerm || c.terms[t].productive }

// dependencies returns the terms whose members matter for whether s has a value, and all that a text of
// s may contain.
func (c *compiler) dependencies(s *shape) ([]termID, error) {
	var out []termID
	for _, a := range s.arrs {
		if a.unique {
			values, err := c.distinct(a)
			if err != nil {
				return nil, err
			}
			out = append(out, values...)
			continue
		}
		// Every way to count an item depends on its position only up to the last position that differs.
		last := len(a.prefix)
		for _, r := range a.contains {
			last = max(last, r.from)
		}
		for pos := range last + 1 {
			// A zero count leaves every choice open.
			list, err := c.choices(a, arrState{pos: pos})
			if err != nil {
				return nil, err
			}
			for _, ch := range list {
				out = append(out, ch.term)
			}
			more, err := c.uncounted(a, pos)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	}
	for _, o := range s.objs {
		for _, p := range o.named {
			out = append(out, p.term)
		}
		for _, k := range o.classes {
			list, err := c.memberChoices(k, o.some)
			if err != nil {
				return nil, err
			}
			for _, m := range list {
				out = append(out, m.term)
			}
		}
	}
	return out, nil
}

// uncounted returns the terms of item pos once some contains rules are satisfied and no longer count.
func (c *compiler) uncounted(a *arrShape, pos int) ([]termID, error) {
	if len(a.contains) == 0 || a.max >= 0 && pos >= a.max {
		return nil, nil
	}
	var out []termID
	for mask := 1; mask < 1<<len(a.contains); mask++ {
		s := arrState{pos: pos}
		for j, r := range a.contains {
			if mask>>j&1 != 0 {
				s.counts[j] = max(r.min, r.max)
			}
		}
		list, err := c.choices(a, s)
		if err != nil {
			return nil, err
		}
		for _, ch := range list {
			out = append(out, ch.term)
		}
	}
	return out, nil
}

// hasValue reports whether s has a value, as far as terms are known to be productive.
func (c *compiler) hasValue(s *shape) (bool, error) {
	if s.null || s.yes || s.no || !s.num.empty() || len(s.strs) > 0 {
		return true, nil
	}
	for _, a := range s.arrs {
		if ok, err := c.arrayHasValue(a); ok || err != nil {
			return ok, err
		}
	}
	for _, o := range s.objs {
		if ok, err := c.objectHasValue(o); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (c *compiler) arrayHasValue(a *arrShape) (bool, error) {
	if a.unique {
		values, err := c.distinct(a)
		return len(values) >= a.min, err
	}
	if len(a.contains) > 0 {
		live, err := c.liveStates(a)
		return live[arrState{}], err
	}
	for i := range min(a.min, len(a.prefix)+1) {
		if !c.productive(a.at(i)) {
			return false, nil
		}
	}
	return a.max < 0 || a.min <= a.max, nil
}

// objectHasValue reports whether o has a value. Where the number of members is bounded, a member is
// counted for each some rule.
func (c *compiler) objectHasValue(o *objShape) (bool, error) {
	required, possible := 0, 0
	for _, p := range o.named {
		ok := c.productive(p.term)
		if p.required {
			if !ok {
				return false, nil
			}
			required++
		}
		if ok {
			possible++
		}
	}
	if o.max >= 0 && max(o.min, required+len(o.some)) > o.max {
		return false, nil
	}
	for j := range o.some {
		found := false
		for _, k := range o.classes {
			list, err := c.memberChoices(k, o.some)
			if err != nil {
				return false, err
			}
			for _, m := range list {
				found = found || m.satisfies>>j&1 != 0 && c.productive(m.term)
			}
		}
		if !found {
			return false, nil
		}
	}
	if possible >= o.min {
		return true, nil
	}
	for _, k := range o.classes {
		if c.productive(k.term) {
			return true, nil
		}
	}
	return false, nil
}

// MaxSome bounds the rules about some member that one object must satisfy together.
const MaxSome = 4

// memberChoice is one way in which a member of a class counts: names that d accepts (nil: all) with a
// value in term satisfy the some rules in the set satisfies.
type memberChoice struct {
	d         *dfa
	term      termID
	satisfies uint8
}

// memberChoices returns the ways in which a member of class k can satisfy some rules.
func (c *compiler) memberChoices(k nameClass, some []someRule) ([]memberChoice, error) {
	if len(some) > MaxSome {
		return nil, fmt.Errorf("an object must satisfy over %d rules about some member: %w (MaxSome)", MaxSome, ErrLimit)
	}
	out := []memberChoice{{k.d, k.term, 0}}
	for j, r := range some {
		for _, m := range out {
			d, ok, err := c.intersectNames(m.d, r.d)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			t, err := c.and(m.term, r.term)
			if err != nil {
				return nil, err
			}
			if t != falseTerm {
				out = append(out, memberChoice{d, t, m.satisfies | 1<<j})
			}
		}
	}
	return out, nil
}

// maxDistinct bounds the values among which the items of an array with uniqueItems are chosen.
const maxDistinct = 64

// distinct returns a term for each value that an item of a may have. Only finite sets of strings,
// booleans and null can be told apart while they are written.
func (c *compiler) distinct(a *arrShape) ([]termID, error) {
	refuse := func(why string) ([]termID, error) {
		return nil, fmt.Errorf("uniqueItems %s: %w", why, ErrUnsupported)
	}
	if len(a.prefix) > 0 || len(a.contains) > 0 {
		return refuse("beside prefixItems or contains")
	}
	s, err := c.shapeOf(a.rest)
	if err != nil {
		return nil, err
	}
	var values []jsonValue
	if s.null {
		values = append(values, jsonValue{kind: jsonNull})
	}
	if s.no {
		values = append(values, jsonValue{kind: jsonFalse})
	}
	if s.yes {
		values = append(values, jsonValue{kind: jsonTrue})
	}
	for _, p := range s.strs {
		list := p.list
		if list == nil {
			d, err := c.stringDFA(p)
			if err != nil {
				return nil, err
			}
			ok := d != nil
			if ok {
				list, ok = d.finite(d.start, maxDistinct)
			}
			if !ok {
				return refuse("over strings without a finite list")
			}
		}
		for _, text := range list {
			values = append(values, jsonValue{kind: jsonString, text: text})
		}
	}
	if !s.num.empty() || len(s.arrs) > 0 || len(s.objs) > 0 {
		return refuse("over numbers, arrays or objects")
	}
	var out []termID
	for _, v := range values {
		key := fmt.Sprintf("u%d%s", v.kind, v.text)
		t, err := c.intern(key, term{})
		if err != nil {
			return nil, err
		}
		if c.terms[t].node == nil {
			n := &jsonValue{kind: jsonObject, names: []string{"const"}, items: []*jsonValue{&v}, index: map[string]*jsonValue{"const": &v}}
			c.where[n] = c.where[c.doc]
			c.terms[t] = term{kind: termNode, node: n}
		}
		if !containsTerm(out, t) {
			out = append(out, t)
		}
	}
	if len(out) > maxDistinct {
		return refuse(fmt.Sprintf("over more than %d values", maxDistinct))
	}
	return out, nil
}

func containsTerm(list []termID, t termID) bool {
	for _, x := range list {
		if x == t {
			return true
		}
	}
	return false
}
