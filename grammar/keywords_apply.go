package grammar

// list returns the subschemas of a keyword whose value is a non-empty array of schemas.
func (s *scope) list(keyword string) ([]*jsonValue, error) {
	v := s.v.get(keyword)
	if v.kind != jsonArray || len(v.items) == 0 {
		return nil, s.errorf(ErrSyntax, keyword, "non-empty array of schemas expected")
	}
	return v.items, nil
}

func (s *scope) shapes(keyword string) ([]*shape, error) {
	list, err := s.list(keyword)
	if err != nil {
		return nil, err
	}
	var out []*shape
	for _, v := range list {
		sh, err := s.subShape(v)
		if err != nil {
			return nil, err
		}
		out = append(out, sh)
	}
	return out, nil
}

func (s *scope) allOf() (*shape, error) {
	list, err := s.shapes("allOf")
	if err != nil {
		return nil, err
	}
	out := anyShape()
	for _, sh := range list {
		if out, err = s.c.intersect(out, sh); err != nil {
			return nil, s.wrap("allOf", err)
		}
	}
	return out, nil
}

func (s *scope) anyOf() (*shape, error) {
	list, err := s.shapes("anyOf")
	if err != nil {
		return nil, err
	}
	out := &shape{}
	for _, sh := range list {
		if out, err = s.c.union(out, sh); err != nil {
			return nil, s.wrap("anyOf", err)
		}
	}
	return out, nil
}

// oneOf joins the alternatives after taking from each what overlaps with the others. Alternatives that
// are shown to be disjoint, the usual case, need no complement.
func (s *scope) oneOf() (*shape, error) {
	list, err := s.shapes("oneOf")
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*shape, error) {
		return nil, s.wrap("oneOf", err)
	}
	overlaps := make([][]int, len(list))
	for i := range list {
		for j := range i {
			both, err := s.c.intersect(list[i], list[j])
			if err != nil {
				return fail(err)
			}
			if !both.empty() {
				overlaps[i] = append(overlaps[i], j)
				overlaps[j] = append(overlaps[j], i)
			}
		}
	}
	out := &shape{}
	for i, only := range list {
		for _, j := range overlaps[i] {
			other, err := s.c.complement(list[j])
			if err != nil {
				return fail(err)
			}
			if only, err = s.c.intersect(only, other); err != nil {
				return fail(err)
			}
		}
		if out, err = s.c.union(out, only); err != nil {
			return fail(err)
		}
	}
	return out, nil
}

func (s *scope) not() (*shape, error) {
	sh, err := s.subShape(s.v.get("not"))
	if err != nil {
		return nil, err
	}
	if sh, err = s.c.complement(sh); err != nil {
		return nil, s.wrap("not", err)
	}
	return sh, nil
}

// conditional is (if and then) or (not if and else).
func (s *scope) conditional() (*shape, error) {
	if s.v.get("if") == nil {
		return anyShape(), nil
	}
	test, err := s.subShape(s.v.get("if"))
	if err != nil {
		return nil, err
	}
	out := &shape{}
	for _, branch := range []string{"then", "else"} {
		side := test
		if branch == "else" {
			if side, err = s.c.complement(test); err != nil {
				return nil, s.wrap("if", err)
			}
		}
		if v := s.v.get(branch); v != nil {
			sh, err := s.subShape(v)
			if err != nil {
				return nil, err
			}
			if side, err = s.c.intersect(side, sh); err != nil {
				return nil, s.wrap(branch, err)
			}
		}
		if out, err = s.c.union(out, side); err != nil {
			return nil, s.wrap(branch, err)
		}
	}
	return out, nil
}

// dependents handles dependentRequired and dependentSchemas: each is "without the property, or with the
// property and what depends on it".
func (s *scope) dependents() (*shape, error) {
	c := s.c
	out := anyShape()
	for _, keyword := range []string{"dependentRequired", "dependentSchemas"} {
		v := s.v.get(keyword)
		if v == nil {
			continue
		}
		if v.kind != jsonObject {
			return nil, s.errorf(ErrSyntax, keyword, "object expected")
		}
		for i, name := range v.names {
			with := &shape{objs: []*objShape{{named: []property{{name, trueTerm, true}}, classes: anyObject.classes, max: -1}}}
			without := anyShape()
			without.objs = []*objShape{{named: []property{{name, falseTerm, false}}, classes: anyObject.classes, max: -1}}
			var needs *shape
			var err error
			if keyword == "dependentRequired" {
				var o *objShape
				if o, err = s.requiredShape(keyword, v.items[i]); err == nil {
					needs = &shape{objs: []*objShape{o}}
				}
			} else {
				needs, err = s.subShape(v.items[i])
			}
			if err != nil {
				return nil, err
			}
			if with, err = c.intersect(with, needs); err == nil {
				if with, err = c.union(without, with); err == nil {
					out, err = c.intersect(out, with)
				}
			}
			if err != nil {
				return nil, s.wrap(keyword, err)
			}
		}
	}
	return out, nil
}

// requiredShape returns the objects that have the names listed in v.
func (s *scope) requiredShape(keyword string, v *jsonValue) (*objShape, error) {
	if v.kind != jsonArray {
		return nil, s.errorf(ErrSyntax, keyword, "array of names expected")
	}
	o := &objShape{classes: anyObject.classes, max: -1}
	for _, n := range v.items {
		if n.kind != jsonString {
			return nil, s.errorf(ErrSyntax, keyword, "array of names expected")
		}
		if o.find(n.text) < 0 {
			o.named = append(o.named, property{n.text, trueTerm, true})
		}
	}
	return o, nil
}
