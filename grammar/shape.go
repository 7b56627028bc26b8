package grammar

import (
	"fmt"
	"slices"
	"strings"
)

// shape is a set of JSON values by kind; arrays and objects are unions of alternatives. The terms of
// their members are sets in turn, worked out when needed. Shapes are immutable once built.
type shape struct {
	null, yes, no bool
	num           *numSet // nil: no number
	strs          []strPart
	arrs          []*arrShape
	objs          []*objShape
}

// strPart is a set of strings: those of list if that is not nil; otherwise those with min to max code
// points (max < 0: no bound) if d is nil, and those that d accepts if not.
type strPart struct {
	list     []string
	d        *dfa
	min, max int
}

// arrShape is a set of arrays: item i is in prefix[i], or in rest past the prefix.
type arrShape struct {
	prefix   []termID
	rest     termID
	min, max int // number of items; max < 0: no bound
	contains []containsRule
	unique   bool
}

// containsRule says that min to max (max < 0: no bound) of the items from index from on are in term.
type containsRule struct {
	from     int
	term     termID
	min, max int
}

// objShape is a set of objects. A name has its own entry in named or belongs to at most one class;
// a name in neither is not allowed.
type objShape struct {
	named    []property
	classes  []nameClass
	min, max int // number of members; max < 0: no bound
	some     []someRule
}

type property struct {
	name     string
	term     termID
	required bool
}

// nameClass gives the term of the names that d accepts (nil: all) and no property has.
type nameClass struct {
	d    *dfa
	term termID
}

// someRule says that some member whose name d accepts has a value in term.
type someRule struct {
	d    *dfa
	term termID
}

var (
	anyString = strPart{max: -1}
	anyArray  = &arrShape{rest: trueTerm, max: -1}
	anyObject = &objShape{classes: []nameClass{{nil, trueTerm}}, max: -1}
)

func anyShape() *shape {
	return &shape{
		null: true, yes: true, no: true, num: allNumbers(),
		strs: []strPart{anyString}, arrs: []*arrShape{anyArray}, objs: []*objShape{anyObject},
	}
}

func (s *shape) empty() bool {
	return !s.null && !s.yes && !s.no && s.num.empty() && len(s.strs) == 0 && len(s.arrs) == 0 && len(s.objs) == 0
}

// at returns the term of item i.
func (a *arrShape) at(i int) termID {
	if i < len(a.prefix) {
		return a.prefix[i]
	}
	return a.rest
}

func (a *arrShape) key() string {
	return fmt.Sprint(a.prefix, a.rest, a.min, a.max, a.contains, a.unique)
}

func (o *objShape) key() string {
	var b strings.Builder
	for _, p := range o.named {
		fmt.Fprintf(&b, "%q %d %v ", p.name, p.term, p.required)
	}
	fmt.Fprint(&b, o.classes, o.min, o.max, o.some)
	return b.String()
}

func (o *objShape) find(name string) int {
	return slices.IndexFunc(o.named, func(p property) bool { return p.name == name })
}

// lookup returns the term of the members called name.
func (o *objShape) lookup(name string) termID {
	if i := o.find(name); i >= 0 {
		return o.named[i].term
	}
	for _, k := range o.classes {
		if k.d == nil || k.d.match(name) {
			return k.term
		}
	}
	return falseTerm
}

// dedupe keeps the first of the alternatives with equal keys.
func dedupe[T any](list []T, key func(T) string) []T {
	seen := map[string]bool{}
	var out []T
	for _, x := range list {
		if k := key(x); !seen[k] {
			seen[k] = true
			out = append(out, x)
		}
	}
	return out
}

func minBound(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// charge counts the work of merging alternatives, which hostile schemas multiply.
func (c *compiler) charge(n int) error {
	if c.work += n; c.work > maxWork {
		return fmt.Errorf("merging subschemas takes over %d steps: %w", maxWork, ErrLimit)
	}
	return nil
}

func tooManyShapes() error {
	return fmt.Errorf("over %d alternatives after merging: %w (MaxShapes)", MaxShapes, ErrLimit)
}

// intersect returns the values in both a and b.
func (c *compiler) intersect(a, b *shape) (*shape, error) {
	s := &shape{null: a.null && b.null, yes: a.yes && b.yes, no: a.no && b.no}
	var err error
	if s.num, err = intersectNum(a.num, b.num); err != nil {
		return nil, err
	}
	if s.num != nil && s.num != a.num && s.num != b.num {
		if _, err := c.spend(s.num.plain, err); err != nil {
			return nil, err
		}
	}
	for _, x := range a.strs {
		for _, y := range b.strs {
			p, ok, err := c.intersectStrings(x, y)
			if err != nil {
				return nil, err
			}
			if ok {
				s.strs = append(s.strs, p)
			}
		}
	}
	if err := c.charge(len(a.arrs)*len(b.arrs) + len(a.objs)*len(b.objs) + 1); err != nil {
		return nil, err
	}
	for _, x := range a.arrs {
		for _, y := range b.arrs {
			z, err := c.intersectArrays(x, y)
			if err != nil {
				return nil, err
			}
			if z != nil {
				s.arrs = append(s.arrs, z)
			}
		}
	}
	for _, x := range a.objs {
		for _, y := range b.objs {
			z, err := c.intersectObjects(x, y)
			if err != nil {
				return nil, err
			}
			s.objs = append(s.objs, z...)
		}
	}
	return s.tidy()
}

// union returns the values in a or b.
func (c *compiler) union(a, b *shape) (*shape, error) {
	s := &shape{null: a.null || b.null, yes: a.yes || b.yes, no: a.no || b.no}
	var err error
	if s.num, err = unionNum(a.num, b.num); err != nil {
		return nil, err
	}
	if s.num != nil && s.num != a.num && s.num != b.num {
		if _, err := c.spend(s.num.plain, err); err != nil {
			return nil, err
		}
	}
	s.strs = append(slices.Clone(a.strs), b.strs...)
	s.arrs = append(slices.Clone(a.arrs), b.arrs...)
	s.objs = append(slices.Clone(a.objs), b.objs...)
	return s.tidy()
}

// tidy merges alternatives that are equal or covered by the universal one.
func (s *shape) tidy() (*shape, error) {
	s.strs = tidyStrings(s.strs)
	if slices.ContainsFunc(s.arrs, func(a *arrShape) bool { return a.key() == anyArray.key() }) {
		s.arrs = []*arrShape{anyArray}
	}
	if slices.ContainsFunc(s.objs, func(o *objShape) bool { return o.key() == anyObject.key() }) {
		s.objs = []*objShape{anyObject}
	}
	s.arrs = dedupe(s.arrs, (*arrShape).key)
	s.objs = dedupe(s.objs, (*objShape).key)
	if len(s.arrs) > MaxShapes || len(s.objs) > MaxShapes || len(s.strs) > MaxShapes {
		return nil, tooManyShapes()
	}
	return s, nil
}

// complement returns the values that are not in s.
func (c *compiler) complement(s *shape) (*shape, error) {
	n := &shape{null: !s.null, yes: !s.yes, no: !s.no}
	var err error
	if n.num, err = complementNum(s.num); err != nil {
		return nil, err
	}
	n.strs = []strPart{anyString}
	for _, p := range s.strs {
		not, err := c.complementString(p)
		if err != nil {
			return nil, err
		}
		var both []strPart
		for _, x := range n.strs {
			for _, y := range not {
				z, ok, err := c.intersectStrings(x, y)
				if err != nil {
					return nil, err
				}
				if ok {
					both = append(both, z)
				}
			}
		}
		n.strs = both
	}
	n.arrs = []*arrShape{anyArray}
	for _, a := range s.arrs {
		not, err := c.complementArray(a)
		if err != nil {
			return nil, err
		}
		var both []*arrShape
		for _, x := range n.arrs {
			for _, y := range not {
				z, err := c.intersectArrays(x, y)
				if err != nil {
					return nil, err
				}
				if z != nil {
					both = append(both, z)
				}
			}
		}
		if n.arrs = dedupe(both, (*arrShape).key); len(n.arrs) > MaxShapes {
			return nil, tooManyShapes()
		}
	}
	n.objs = []*objShape{anyObject}
	for _, o := range s.objs {
		not, err := c.complementObject(o)
		if err != nil {
			return nil, err
		}
		var both []*objShape
		for _, x := range n.objs {
			for _, y := range not {
				z, err := c.intersectObjects(x, y)
				if err != nil {
					return nil, err
				}
				both = append(both, z...)
			}
		}
		if n.objs = dedupe(both, (*objShape).key); len(n.objs) > MaxShapes {
			return nil, tooManyShapes()
		}
	}
	return n.tidy()
}
