package grammar

import "slices"

// tidyStrings merges the lists among the parts, and everything into the part that holds all strings.
func tidyStrings(parts []strPart) []strPart {
	var out []strPart
	list := -1
	for _, p := range parts {
		switch {
		case p.list == nil && p.d == nil && p.min == 0 && p.max < 0:
			return []strPart{p}
		case p.list != nil && list >= 0:
			merged := append(slices.Clone(out[list].list), p.list...)
			out[list].list = dedupe(merged, func(s string) string { return s })
			continue
		case p.list != nil:
			list = len(out)
		case slices.ContainsFunc(out, func(q strPart) bool { return q.list == nil && q.d == p.d && q.min == p.min && q.max == p.max }):
			continue
		}
		out = append(out, p)
	}
	return out
}

// holds reports whether the string s is in the part.
func (p strPart) holds(s string) bool {
	switch {
	case p.list != nil:
		return slices.Contains(p.list, s)
	case p.d != nil:
		return p.d.match(s)
	}
	n := len([]rune(s))
	return n >= p.min && (p.max < 0 || n <= p.max)
}

// automaton returns the part as an automaton over the bytes of the string's value; nil: all strings.
func (c *compiler) stringDFA(p strPart) (*dfa, error) {
	switch {
	case p.list != nil:
		return c.spend(listDFA(p.list))
	case p.d != nil:
		return p.d, nil
	case p.min == 0 && p.max < 0:
		return nil, nil
	}
	return c.spend(lengthDFA(p.min, p.max))
}

// intersectStrings returns the strings in both parts; false: none.
func (c *compiler) intersectStrings(a, b strPart) (strPart, bool, error) {
	if b.list != nil {
		a, b = b, a
	}
	if a.list != nil {
		list := []string{}
		for _, s := range a.list {
			if b.holds(s) {
				list = append(list, s)
			}
		}
		return strPart{list: list}, len(list) > 0, nil
	}
	if a.d == nil && b.d == nil {
		p := strPart{min: max(a.min, b.min), max: minBound(a.max, b.max)}
		return p, p.max < 0 || p.min <= p.max, nil
	}
	if a.d == b.d {
		return a, true, nil
	}
	x, err := c.stringDFA(a)
	if err != nil {
		return strPart{}, false, err
	}
	y, err := c.stringDFA(b)
	if err != nil {
		return strPart{}, false, err
	}
	if x == nil || y == nil {
		if x == nil {
			x = y
		}
		return strPart{d: x}, true, nil
	}
	d, err := c.spend(intersectDFA(x, y))
	if err != nil {
		return strPart{}, false, err
	}
	return strPart{d: d}, !d.empty(), nil
}

// complementString returns the strings that are not in the part.
func (c *compiler) complementString(p strPart) ([]strPart, error) {
	if p.list == nil && p.d == nil {
		var out []strPart
		if p.min > 0 {
			out = append(out, strPart{max: p.min - 1})
		}
		if p.max >= 0 {
			out = append(out, strPart{min: p.max + 1, max: -1})
		}
		return out, nil
	}
	d, err := c.stringDFA(p)
	if err != nil {
		return nil, err
	}
	if d, err = c.spend(complementDFA(d)); err != nil || d.empty() {
		return nil, err
	}
	return []strPart{{d: d}}, nil
}

// namesDFA returns all strings of the parts as one automaton; nil: all strings.
func (c *compiler) namesDFA(parts []strPart) (*dfa, error) {
	var all *dfa
	for i, p := range parts {
		d, err := c.stringDFA(p)
		if err != nil || d == nil {
			return nil, err
		}
		if i == 0 {
			all = d
			continue
		}
		if all, err = c.spend(unionDFA(all, d)); err != nil {
			return nil, err
		}
	}
	if all == nil {
		return c.spend(listDFA(nil))
	}
	return all, nil
}
