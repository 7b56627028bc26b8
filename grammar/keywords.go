package grammar

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// scope is a schema whose keywords are being read.
type scope struct {
	c    *compiler
	v    *jsonValue
	path string
}

func (s *scope) errorf(sentinel error, keyword, format string, args ...any) error {
	return fmt.Errorf("%s/%s: %s: %w", s.path, escapePointer(keyword), fmt.Sprintf(format, args...), sentinel)
}

// wrap adds the place of a keyword to an error.
func (s *scope) wrap(keyword string, err error) error {
	return fmt.Errorf("%s/%s: %w", s.path, escapePointer(keyword), err)
}

// keywordGroup is the keywords of one subject and the function that turns them into a set of values.
type keywordGroup struct {
	keywords []string
	shape    func(*scope) (*shape, error)
}

// keywordGroups returns the enforced keywords.
func keywordGroups() []keywordGroup {
	return []keywordGroup{
		{[]string{"$ref"}, (*scope).ref},
		{[]string{"type"}, (*scope).types},
		{[]string{"enum", "const"}, (*scope).values},
		{[]string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}, (*scope).numbers},
		{[]string{"minLength", "maxLength", "pattern", "format"}, (*scope).strings},
		{[]string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"}, (*scope).arrays},
		{[]string{"properties", "patternProperties", "additionalProperties", "required", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"}, (*scope).objects},
		{[]string{"dependentRequired", "dependentSchemas"}, (*scope).dependents},
		{[]string{"allOf"}, (*scope).allOf},
		{[]string{"anyOf"}, (*scope).anyOf},
		{[]string{"oneOf"}, (*scope).oneOf},
		{[]string{"not"}, (*scope).not},
		{[]string{"if", "then", "else"}, (*scope).conditional},
	}
}

func knownKeyword(name string) bool {
	return slices.ContainsFunc(keywordGroups(), func(g keywordGroup) bool { return slices.Contains(g.keywords, name) })
}

var knownDialects = []string{
	"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
	"http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema",
}

// nodeShape returns the values that are valid under a schema object.
func (c *compiler) nodeShape(v *jsonValue) (*shape, error) {
	s := &scope{c, v, c.where[v].path}
	for i, name := range v.names {
		if why, bad := refused[name]; bad {
			if why != "" {
				name += " (" + why + ")"
			}
			return nil, fmt.Errorf("%s: keyword %s: %w", s.path, name, ErrUnsupported)
		}
		if !knownKeyword(name) && !annotations[name] && !strings.HasPrefix(name, "x-") {
			return nil, fmt.Errorf("%s: unknown keyword %s: %w", s.path, shown(name), ErrUnsupported)
		}
		if name == "$schema" && !slices.Contains(knownDialects, strings.TrimSuffix(v.items[i].text, "#")) {
			return nil, s.errorf(ErrUnsupported, name, "dialect %s", shown(v.items[i].text))
		}
	}
	all := anyShape()
	for _, g := range keywordGroups() {
		if !slices.ContainsFunc(g.keywords, func(k string) bool { return v.get(k) != nil }) {
			continue
		}
		part, err := g.shape(s)
		if err != nil {
			return nil, err
		}
		if all, err = c.intersect(all, part); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return all, nil
}

// sub returns the term of the subschema at the given keyword path.
func (s *scope) sub(v *jsonValue) (termID, error) { return s.c.nodeTerm(v) }

func (s *scope) subShape(v *jsonValue) (*shape, error) {
	t, err := s.sub(v)
	if err != nil {
		return nil, err
	}
	return s.c.shapeOf(t)
}

func (s *scope) ref() (*shape, error) {
	r := s.v.get("$ref")
	if r.kind != jsonString {
		return nil, s.errorf(ErrSyntax, "$ref", "string expected")
	}
	target, err := s.c.resolve(s.v, r.text)
	if err != nil {
		return nil, err
	}
	return s.subShape(target)
}

func (s *scope) types() (*shape, error) {
	v := s.v.get("type")
	list := v.items
	if v.kind == jsonString {
		list = []*jsonValue{v}
	} else if v.kind != jsonArray || len(list) == 0 {
		return nil, s.errorf(ErrSyntax, "type", "name or list of names expected")
	}
	out := &shape{}
	for _, t := range list {
		switch t.text {
		case "null":
			out.null = true
		case "boolean":
			out.yes, out.no = true, true
		case "number":
			out.num = allNumbers()
		case "integer":
			if out.num == nil {
				out.num = &numSet{allIntegers(), expSome}
			}
		case "string":
			out.strs = []strPart{anyString}
		case "array":
			out.arrs = []*arrShape{anyArray}
		case "object":
			out.objs = []*objShape{anyObject}
		default:
			return nil, s.errorf(ErrSyntax, "type", "unknown type %s", shown(t.text))
		}
	}
	return out, nil
}

// values handles enum and const.
func (s *scope) values() (*shape, error) {
	out := anyShape()
	if v := s.v.get("const"); v != nil {
		sh, err := s.enumShape("const", []*jsonValue{v})
		if err != nil {
			return nil, err
		}
		out = sh
	}
	if v := s.v.get("enum"); v != nil {
		if v.kind != jsonArray {
			return nil, s.errorf(ErrSyntax, "enum", "array expected")
		}
		sh, err := s.enumShape("enum", v.items)
		if err != nil {
			return nil, err
		}
		return s.c.intersect(out, sh)
	}
	return out, nil
}

// enumShape returns the set of the given values.
func (s *scope) enumShape(keyword string, list []*jsonValue) (*shape, error) {
	out := &shape{}
	var numbers []string
	var names []string
	for _, v := range list {
		switch v.kind {
		case jsonNull:
			out.null = true
		case jsonTrue:
			out.yes = true
		case jsonFalse:
			out.no = true
		case jsonString:
			names = append(names, v.text)
		case jsonNumber:
			d, err := parseDecimal(v.text)
			if err != nil {
				return nil, s.wrap(keyword, err)
			}
			if len(d.whole) > MaxDigits || len(d.fra) > MaxDigits {
				return nil, s.errorf(ErrLimit, keyword, "number %s has over %d digits on one side of the point (MaxDigits)", v.text, MaxDigits)
			}
			numbers = append(numbers, numberPattern(d))
		case jsonArray:
			a := &arrShape{min: len(v.items), max: len(v.items)}
			for _, item := range v.items {
				t, err := s.valueTerm(item)
				if err != nil {
					return nil, err
				}
				a.prefix = append(a.prefix, t)
			}
			out.arrs = append(out.arrs, a)
		case jsonObject:
			o := &objShape{max: -1}
			for i, item := range v.items {
				t, err := s.valueTerm(item)
				if err != nil {
					return nil, err
				}
				o.named = append(o.named, property{v.names[i], t, true})
			}
			out.objs = append(out.objs, o)
		}
	}
	if len(names) > 0 {
		out.strs = []strPart{{list: dedupe(names, func(s string) string { return s })}}
	}
	if len(numbers) > 0 {
		e, err := parsePattern(strings.Join(numbers, "|"))
		if err != nil {
			return nil, s.wrap(keyword, err)
		}
		d, err := s.c.spend(exprDFA(e))
		if err != nil {
			return nil, s.wrap(keyword, fmt.Errorf("%d numbers: %w", len(numbers), err))
		}
		out.num = &numSet{d, expSome}
	}
	return out.tidy()
}

// numberPattern returns a pattern of the decimal texts whose value is d.
func numberPattern(d decimal) string {
	text := strings.ReplaceAll(d.text(), ".", `\.`)
	switch {
	case d.isZero():
		text = "-?" + text
		fallthrough
	case d.fra == "":
		return text + fmt.Sprintf(`(?:\.0{1,%d})?`, MaxDigits)
	}
	return text + fmt.Sprintf("0{0,%d}", MaxDigits-len(d.fra))
}

// valueTerm returns the term of exactly one value, as if it were written as a const.
func (s *scope) valueTerm(v *jsonValue) (termID, error) {
	t, err := s.c.intern(fmt.Sprintf("v%p", v), term{})
	if err != nil || s.c.terms[t].node != nil {
		return t, err
	}
	n := &jsonValue{kind: jsonObject, names: []string{"const"}, items: []*jsonValue{v}, index: map[string]*jsonValue{"const": v}}
	s.c.where[n] = s.c.where[s.v]
	s.c.terms[t] = term{kind: termNode, node: n}
	return t, nil
}

func (s *scope) number(keyword string) (decimal, bool, error) {
	v := s.v.get(keyword)
	if v == nil {
		return decimal{}, false, nil
	}
	if v.kind != jsonNumber {
		return decimal{}, false, s.errorf(ErrSyntax, keyword, "number expected")
	}
	d, err := parseDecimal(v.text)
	if err != nil {
		return d, false, s.wrap(keyword, err)
	}
	return d, true, nil
}

func (s *scope) numbers() (*shape, error) {
	out := anyShape()
	restrict := func(d *dfa, err error) error {
		if d, err = s.c.spend(d, err); err == nil {
			out.num, err = intersectNum(out.num, &numSet{d, expSome})
		}
		return err
	}
	bounds := []struct {
		keyword string
		keep    func(int) bool
	}{
		{"minimum", func(sign int) bool { return sign >= 0 }},
		{"maximum", func(sign int) bool { return sign <= 0 }},
		{"exclusiveMinimum", func(sign int) bool { return sign > 0 }},
		{"exclusiveMaximum", func(sign int) bool { return sign < 0 }},
	}
	for _, b := range bounds {
		d, ok, err := s.number(b.keyword)
		if err != nil {
			return nil, err
		}
		if ok {
			if err := restrict(compareDFA(d, b.keep)); err != nil {
				return nil, s.wrap(b.keyword, err)
			}
		}
	}
	d, ok, err := s.number("multipleOf")
	if err != nil {
		return nil, err
	}
	if ok {
		if d.neg || d.isZero() {
			return nil, s.errorf(ErrSyntax, "multipleOf", "must be positive")
		}
		if err := restrict(multipleDFA(d)); err != nil {
			return nil, s.wrap("multipleOf", err)
		}
	}
	return out, nil
}

// count reads a keyword whose value is a whole number of at most limit.
func (s *scope) count(keyword string, missing, limit int) (int, error) {
	d, ok, err := s.number(keyword)
	if err != nil || !ok {
		return missing, err
	}
	if d.neg || d.fra != "" {
		return 0, s.errorf(ErrSyntax, keyword, "whole number expected")
	}
	n, err := strconv.Atoi("0" + d.whole)
	if err != nil || n > limit {
		return 0, s.errorf(ErrLimit, keyword, "%s is over %d", d.text(), limit)
	}
	return n, nil
}

func (s *scope) strings() (*shape, error) {
	c := s.c
	lo, err := s.count("minLength", 0, MaxLength)
	if err != nil {
		return nil, err
	}
	hi, err := s.count("maxLength", -1, MaxLength)
	if err != nil {
		return nil, err
	}
	out := anyShape()
	out.strs = []strPart{{min: lo, max: hi}}
	if hi >= 0 && lo > hi {
		out.strs = nil
	}
	for _, keyword := range []string{"pattern", "format"} {
		v := s.v.get(keyword)
		if v == nil {
			continue
		}
		if v.kind != jsonString {
			return nil, s.errorf(ErrSyntax, keyword, "string expected")
		}
		d, err := c.textDFA(keyword, v.text)
		if err != nil {
			return nil, s.wrap(keyword, err)
		}
		var both []strPart
		for _, p := range out.strs {
			q, ok, err := c.intersectStrings(p, strPart{d: d})
			if err != nil {
				return nil, s.wrap(keyword, err)
			}
			if ok {
				both = append(both, q)
			}
		}
		out.strs = both
	}
	return out, nil
}

// textDFA returns the automaton of a pattern or format.
func (c *compiler) textDFA(keyword, text string) (*dfa, error) {
	key := keyword + ":" + text
	if d := c.patterns[key]; d != nil {
		return d, nil
	}
	var d *dfa
	var err error
	if keyword == "format" {
		src, ok := formats[text]
		if !ok {
			return nil, fmt.Errorf("format %s: %w", shown(text), ErrUnsupported)
		}
		d, err = c.spend(formatDFA(text, src))
	} else {
		d, err = c.spend(patternDFA(text))
	}
	if err != nil {
		return nil, err
	}
	c.patterns[key] = d
	return d, nil
}
