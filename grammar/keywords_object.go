package grammar

// arrays handles the keywords about arrays.
func (s *scope) arrays() (*shape, error) {
	c := s.c
	a := &arrShape{rest: trueTerm}
	var err error
	if a.min, err = s.count("minItems", 0, MaxItems); err != nil {
		return nil, err
	}
	if a.max, err = s.count("maxItems", -1, MaxItems); err != nil {
		return nil, err
	}
	if s.v.get("prefixItems") != nil {
		list, err := s.list("prefixItems")
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			t, err := s.sub(v)
			if err != nil {
				return nil, err
			}
			a.prefix = append(a.prefix, t)
		}
	}
	if v := s.v.get("items"); v != nil {
		if v.kind == jsonArray {
			return nil, s.errorf(ErrUnsupported, "items", "an array of schemas (of draft 2019-09): use prefixItems")
		}
		if a.rest, err = s.sub(v); err != nil {
			return nil, err
		}
	}
	if v := s.v.get("uniqueItems"); v != nil {
		if v.kind != jsonTrue && v.kind != jsonFalse {
			return nil, s.errorf(ErrSyntax, "uniqueItems", "boolean expected")
		}
		a.unique = v.kind == jsonTrue
	}
	if v := s.v.get("contains"); v != nil {
		r := containsRule{}
		if r.term, err = s.sub(v); err != nil {
			return nil, err
		}
		if r.min, err = s.count("minContains", 1, MaxItems); err != nil {
			return nil, err
		}
		if r.max, err = s.count("maxContains", -1, MaxItems); err != nil {
			return nil, err
		}
		a.contains = append(a.contains, r)
	}
	out := anyShape()
	out.arrs = nil
	if a, err = c.tidyArray(a); err != nil {
		return nil, err
	}
	if a != nil {
		if a.key() == anyArray.key() {
			a = anyArray
		}
		out.arrs = []*arrShape{a}
	}
	if v := s.v.get("unevaluatedItems"); v != nil && v.kind != jsonTrue {
		t, err := s.sub(v)
		if err != nil {
			return nil, err
		}
		e := &evaluated{}
		if err := s.evaluatedBy(e, "unevaluatedItems", 0); err != nil {
			return nil, err
		}
		if !e.allItems {
			rest := &arrShape{rest: t, max: -1}
			for range e.items {
				rest.prefix = append(rest.prefix, trueTerm)
			}
			if rest, err = c.tidyArray(rest); err != nil {
				return nil, err
			}
			return c.intersect(out, &shape{
				null: true, yes: true, no: true, num: allNumbers(), strs: out.strs, objs: out.objs, arrs: []*arrShape{rest},
			})
		}
	}
	return out, nil
}

// schemas returns the members of a keyword whose value is an object of schemas.
func (s *scope) schemas(keyword string) (*jsonValue, error) {
	v := s.v.get(keyword)
	if v == nil {
		return &jsonValue{kind: jsonObject}, nil
	}
	if v.kind != jsonObject {
		return nil, s.errorf(ErrSyntax, keyword, "object of schemas expected")
	}
	return v, nil
}

// objects handles the keywords about objects.
func (s *scope) objects() (*shape, error) {
	c := s.c
	out := anyShape()
	both := func(o *objShape) error {
		list, err := c.tidyObject(o)
		if err != nil {
			return err
		}
		var all []*objShape
		for _, x := range out.objs {
			for _, y := range list {
				z, err := c.intersectObjects(x, y)
				if err != nil {
					return err
				}
				all = append(all, z...)
			}
		}
		out.objs = all
		return nil
	}
	o, err := s.propertiesShape()
	if err != nil {
		return nil, err
	}
	if err := both(o); err != nil {
		return nil, s.wrap("properties", err)
	}
	if v := s.v.get("required"); v != nil {
		o, err := s.requiredShape("required", v)
		if err != nil {
			return nil, err
		}
		if err := both(o); err != nil {
			return nil, s.wrap("required", err)
		}
	}
	if v := s.v.get("propertyNames"); v != nil {
		sh, err := s.subShape(v)
		if err != nil {
			return nil, err
		}
		d, err := c.namesDFA(sh.strs)
		if err != nil {
			return nil, s.wrap("propertyNames", err)
		}
		names := &objShape{max: -1, classes: []nameClass{{d, trueTerm}}}
		if d != nil && d.empty() {
			names.classes = nil
		}
		if err := both(names); err != nil {
			return nil, s.wrap("propertyNames", err)
		}
	}
	if v := s.v.get("unevaluatedProperties"); v != nil && v.kind != jsonTrue {
		if err := s.unevaluatedProperties(v, both); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// propertiesShape joins properties, patternProperties, additionalProperties, minProperties and
// maxProperties: a name is under its property and every pattern that finds it, or else additional.
func (s *scope) propertiesShape() (*objShape, error) {
	c := s.c
	o := &objShape{}
	var err error
	if o.min, err = s.count("minProperties", 0, MaxItems); err != nil {
		return nil, err
	}
	if o.max, err = s.count("maxProperties", -1, MaxItems); err != nil {
		return nil, err
	}
	props, err := s.schemas("properties")
	if err != nil {
		return nil, err
	}
	patterns, err := s.schemas("patternProperties")
	if err != nil {
		return nil, err
	}
	additional := trueTerm
	if v := s.v.get("additionalProperties"); v != nil {
		if additional, err = s.sub(v); err != nil {
			return nil, err
		}
	}
	type class struct {
		nameClass
		matched bool
	}
	classes := []class{{nameClass{nil, trueTerm}, false}}
	var found []*dfa
	for i, src := range patterns.names {
		d, err := c.textDFA("pattern", src)
		if err != nil {
			return nil, s.wrap("patternProperties", err)
		}
		found = append(found, d)
		t, err := s.sub(patterns.items[i])
		if err != nil {
			return nil, err
		}
		var split []class
		for _, k := range classes {
			in, ok, err := c.intersectNames(k.d, d)
			if err != nil {
				return nil, s.wrap("patternProperties", err)
			}
			if ok {
				both, err := c.and(k.term, t)
				if err != nil {
					return nil, err
				}
				split = append(split, class{nameClass{in, both}, true})
			}
			rest := k.d
			if rest == nil {
				rest = anyText()
			}
			out, err := c.spend(subtractDFA(rest, d))
			if err != nil {
				return nil, s.wrap("patternProperties", err)
			}
			if !out.empty() {
				split = append(split, class{nameClass{out, k.term}, k.matched})
			}
		}
		if classes = split; len(classes) > MaxShapes {
			return nil, s.wrap("patternProperties", tooManyShapes())
		}
	}
	for i, name := range props.names {
		t, err := s.sub(props.items[i])
		if err != nil {
			return nil, err
		}
		for k, d := range found {
			if d.match(name) {
				pt, err := s.sub(patterns.items[k])
				if err != nil {
					return nil, err
				}
				if t, err = c.and(t, pt); err != nil {
					return nil, err
				}
			}
		}
		o.named = append(o.named, property{name, t, false})
	}
	for _, k := range classes {
		if !k.matched {
			k.term = additional
		}
		o.classes = append(o.classes, k.nameClass)
	}
	return o, nil
}

// evaluated is what the keywords of a schema, and of those that it applies in place whatever the value,
// say about which members are evaluated.
type evaluated struct {
	allNames, allItems bool
	names              []string
	patterns           []string
	items              int
}

// evaluatedBy adds what s evaluates. Applicators whose effect depends on the value are refused.
func (s *scope) evaluatedBy(e *evaluated, keyword string, depth int) error {
	if depth > MaxNesting {
		return s.errorf(ErrUnsupported, keyword, "a schema that refers to itself")
	}
	conditional := []string{"anyOf", "oneOf", "if", "dependentSchemas"}
	if keyword == "unevaluatedItems" {
		conditional = append(conditional, "contains")
	}
	for _, k := range conditional {
		if s.v.get(k) != nil {
			return s.errorf(ErrUnsupported, keyword, "beside %s", k)
		}
	}
	if props := s.v.get("properties"); props != nil {
		e.names = append(e.names, props.names...)
	}
	if p := s.v.get("patternProperties"); p != nil {
		e.patterns = append(e.patterns, p.names...)
	}
	if s.v.get("additionalProperties") != nil || depth > 0 && s.v.get("unevaluatedProperties") != nil {
		e.allNames = true
	}
	if p := s.v.get("prefixItems"); p != nil {
		e.items = max(e.items, len(p.items))
	}
	if s.v.get("items") != nil || depth > 0 && s.v.get("unevaluatedItems") != nil {
		e.allItems = true
	}
	var inner []*jsonValue
	if all := s.v.get("allOf"); all != nil {
		inner = append(inner, all.items...)
	}
	if r := s.v.get("$ref"); r != nil {
		target, err := s.c.resolve(s.v, r.text)
		if err != nil {
			return err
		}
		inner = append(inner, target)
	}
	for _, v := range inner {
		if v.kind != jsonObject {
			continue
		}
		sub := &scope{s.c, v, s.c.where[v].path}
		if err := sub.evaluatedBy(e, keyword, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *scope) unevaluatedProperties(v *jsonValue, both func(*objShape) error) error {
	t, err := s.sub(v)
	if err != nil {
		return err
	}
	e := &evaluated{}
	if err := s.evaluatedBy(e, "unevaluatedProperties", 0); err != nil || e.allNames {
		return err
	}
	o := &objShape{max: -1}
	for _, name := range e.names {
		if o.find(name) < 0 {
			o.named = append(o.named, property{name, trueTerm, false})
		}
	}
	rest := anyText()
	for _, src := range e.patterns {
		d, err := s.c.textDFA("pattern", src)
		if err == nil {
			rest, err = s.c.spend(subtractDFA(rest, d))
		}
		if err != nil {
			return s.wrap("unevaluatedProperties", err)
		}
		o.classes = append(o.classes, nameClass{d, trueTerm})
	}
	// The classes must not overlap; what several patterns find is allowed all the same.
	if len(o.classes) > 1 {
		all, err := s.c.spend(complementDFA(rest))
		if err != nil {
			return s.wrap("unevaluatedProperties", err)
		}
		o.classes = []nameClass{{all, trueTerm}}
	}
	if !rest.empty() {
		o.classes = append(o.classes, nameClass{rest, t})
	}
	if err := both(o); err != nil {
		return s.wrap("unevaluatedProperties", err)
	}
	return nil
}
