package grammar

import (
	"fmt"
	"slices"
)

// MaxContains bounds the contains rules that one array must satisfy together.
const MaxContains = 4

// tidyArray brings a into its simplest form; nil: no array satisfies it.
func (c *compiler) tidyArray(a *arrShape) (*arrShape, error) {
	rules := a.contains
	a.contains = nil
	for _, r := range rules {
		switch {
		case r.max >= 0 && r.min > r.max:
			return nil, nil
		case r.min <= 0 && r.max < 0:
			continue
		case r.term == trueTerm:
			// Every item counts, so the rule is about the length.
			if r.min > 0 {
				a.min = max(a.min, r.from+r.min)
			}
			if r.max >= 0 {
				a.max = minBound(a.max, r.from+r.max)
			}
			continue
		case c.provablyEmpty(r.term, proofLevels):
			if r.min > 0 {
				return nil, nil
			}
			continue
		}
		if !slices.Contains(a.contains, r) {
			a.contains = append(a.contains, r)
		}
	}
	if len(a.contains) > MaxContains {
		return nil, fmt.Errorf("an array must satisfy over %d contains: %w (MaxContains)", MaxContains, ErrLimit)
	}
	for i, t := range a.prefix {
		if (a.max < 0 || i < a.max) && c.provablyEmpty(t, proofLevels) {
			a.max = i
			break
		}
	}
	if a.max >= 0 && len(a.prefix) >= a.max {
		a.prefix, a.rest = a.prefix[:a.max], falseTerm
	}
	if a.rest == falseTerm || c.provablyEmpty(a.rest, proofLevels) {
		a.rest = falseTerm
		a.max = minBound(a.max, len(a.prefix))
	}
	if a.max == 0 || a.max == 1 {
		a.unique = false
	}
	if a.max >= 0 && a.min > a.max {
		return nil, nil
	}
	return a, nil
}

func (c *compiler) intersectArrays(a, b *arrShape) (*arrShape, error) {
	if a == b || b == anyArray {
		return a, nil
	}
	if a == anyArray {
		return b, nil
	}
	z := &arrShape{
		min: max(a.min, b.min), max: minBound(a.max, b.max), unique: a.unique || b.unique,
		contains: append(slices.Clone(a.contains), b.contains...),
	}
	var err error
	for i := range max(len(a.prefix), len(b.prefix)) {
		t, err := c.and(a.at(i), b.at(i))
		if err != nil {
			return nil, err
		}
		z.prefix = append(z.prefix, t)
	}
	if z.rest, err = c.and(a.rest, b.rest); err != nil {
		return nil, err
	}
	return c.tidyArray(z)
}

// complementArray returns the arrays that are not in a: those that break one of its rules.
func (c *compiler) complementArray(a *arrShape) ([]*arrShape, error) {
	if a.unique {
		return nil, fmt.Errorf("complement of uniqueItems: %w", ErrUnsupported)
	}
	var out []*arrShape
	add := func(z *arrShape) error {
		z, err := c.tidyArray(z)
		if z != nil {
			out = append(out, z)
		}
		return err
	}
	if a.min > 0 {
		if err := add(&arrShape{rest: trueTerm, max: a.min - 1}); err != nil {
			return nil, err
		}
	}
	if a.max >= 0 {
		if err := add(&arrShape{rest: trueTerm, min: a.max + 1, max: -1}); err != nil {
			return nil, err
		}
	}
	for i, t := range a.prefix {
		if t == trueTerm {
			continue
		}
		n, err := c.not(t)
		if err != nil {
			return nil, err
		}
		prefix := make([]termID, i+1)
		for k := range prefix {
			prefix[k] = trueTerm
		}
		prefix[i] = n
		if err := add(&arrShape{prefix: prefix, rest: trueTerm, min: i + 1, max: -1}); err != nil {
			return nil, err
		}
	}
	// Where the length is bounded to the prefix, a longer array already breaks that bound.
	if a.rest != trueTerm && (a.max < 0 || a.max > len(a.prefix)) {
		n, err := c.not(a.rest)
		if err != nil {
			return nil, err
		}
		if err := add(&arrShape{rest: trueTerm, max: -1, contains: []containsRule{{len(a.prefix), n, 1, -1}}}); err != nil {
			return nil, err
		}
	}
	for _, r := range a.contains {
		if r.min > 0 {
			if err := add(&arrShape{rest: trueTerm, max: -1, contains: []containsRule{{r.from, r.term, 0, r.min - 1}}}); err != nil {
				return nil, err
			}
		}
		if r.max >= 0 {
			if err := add(&arrShape{rest: trueTerm, max: -1, contains: []containsRule{{r.from, r.term, r.max + 1, -1}}}); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// arrayEmpty reports whether a is shown to hold no array.
func (c *compiler) arrayEmpty(a *arrShape, levels int) bool {
	if a.max >= 0 && a.min > a.max {
		return true
	}
	for i := range min(a.min, len(a.prefix)+1) {
		if c.provablyEmpty(a.at(i), levels) {
			return true
		}
	}
	for _, r := range a.contains {
		if r.min > 0 && c.provablyEmpty(r.term, levels) {
			return true
		}
	}
	return false
}

// arrState is a position in an array: the items so far (up to where all are alike) and, for each
// contains rule, the items counted.
type arrState struct {
	pos    int
	counts [MaxContains]int
}

// posCap is the position from which on the count of items does not matter.
func (a *arrShape) posCap() int {
	n := max(len(a.prefix), a.min, a.max)
	for _, r := range a.contains {
		n = max(n, r.from)
	}
	return n
}

// done reports whether the array may end in state s.
func (a *arrShape) done(s arrState) bool {
	if s.pos < a.min {
		return false
	}
	for j, r := range a.contains {
		if s.counts[j] < r.min {
			return false
		}
	}
	return true
}

// itemChoice is one way to go on from a state: an item in term leads to state to.
type itemChoice struct {
	term termID
	to   arrState
}

// choices returns the ways in which the item at s can be counted by the contains rules.
func (c *compiler) choices(a *arrShape, s arrState) ([]itemChoice, error) {
	if a.max >= 0 && s.pos >= a.max {
		return nil, nil
	}
	next := s
	next.pos = min(s.pos+1, a.posCap())
	out := []itemChoice{{a.at(s.pos), next}}
	for j, r := range a.contains {
		if s.pos < r.from || r.max < 0 && s.counts[j] >= r.min {
			continue
		}
		var split []itemChoice
		for _, ch := range out {
			if r.max < 0 || s.counts[j] < r.max {
				counted := ch
				counted.to.counts[j]++
				var err error
				if counted.term, err = c.and(ch.term, r.term); err != nil {
					return nil, err
				}
				split = append(split, counted)
			}
			if r.max >= 0 {
				n, err := c.not(r.term)
				if err != nil {
					return nil, err
				}
				if ch.term, err = c.and(ch.term, n); err != nil {
					return nil, err
				}
			}
			split = append(split, ch)
		}
		out = split
	}
	return out, nil
}

// liveStates returns the states from which the array can end, as far as terms are known to be
// productive. Without contains rules every reachable state is live if the array has a value, and nil is
// returned.
func (c *compiler) liveStates(a *arrShape) (map[arrState]bool, error) {
	if len(a.contains) == 0 {
		return nil, nil
	}
	back := map[arrState][]arrState{}
	seen := map[arrState]bool{{}: true}
	work := []arrState{{}}
	var ends []arrState
	for len(work) > 0 {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		if len(seen) > MaxDFA {
			return nil, fmt.Errorf("an array with contains needs over %d states: %w (MaxDFA)", MaxDFA, ErrLimit)
		}
		if a.done(s) {
			ends = append(ends, s)
		}
		list, err := c.choices(a, s)
		if err != nil {
			return nil, err
		}
		for _, ch := range list {
			if !c.productive(ch.term) {
				continue
			}
			back[ch.to] = append(back[ch.to], s)
			if !seen[ch.to] {
				seen[ch.to] = true
				work = append(work, ch.to)
			}
		}
	}
	live := map[arrState]bool{}
	for len(ends) > 0 {
		s := ends[len(ends)-1]
		ends = ends[:len(ends)-1]
		if !live[s] {
			live[s] = true
			ends = append(ends, back[s]...)
		}
	}
	return live, nil
}
