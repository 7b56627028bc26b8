package grammar

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// FromJSONSchema compiles a JSON Schema (draft 2020-12) to the language of the JSON texts that are valid
// under it. Keywords are enforced or refused by name; docs/grammar.md lists them, and what is narrowed:
// white space is bounded, numbers have at most MaxDigits digits on either side of the point, and an
// exponent appears only where nothing restricts the number. Errors wrap [ErrSyntax], [ErrUnsupported],
// [ErrEmpty] or [ErrLimit] and name keyword and JSON pointer.
func FromJSONSchema(src []byte) (*Grammar, error) {
	doc, err := parseJSON(src)
	if err != nil {
		return nil, fmt.Errorf("grammar: JSON Schema: %w", err)
	}
	c := newCompiler(doc)
	a, err := c.compile()
	if err != nil {
		return nil, fmt.Errorf("grammar: JSON Schema: %w", err)
	}
	return &Grammar{a: a, schema: c}, nil
}

// annotations are the keywords that do not restrict the value.
var annotations = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "deprecated": true,
	"readOnly": true, "writeOnly": true, "$comment": true, "$schema": true, "$id": true, "$anchor": true,
	"$defs": true, "definitions": true, "$dynamicAnchor": true,
	"contentEncoding": true, "contentMediaType": true, "contentSchema": true,
	"discriminator": true, "example": true, "externalDocs": true, "xml": true, // OpenAPI's own
}

// refused are the keywords of draft 2020-12 and its predecessors that are refused wherever they stand.
var refused = map[string]string{
	"$dynamicRef":      "",
	"$recursiveRef":    "of draft 2019-09",
	"$recursiveAnchor": "of draft 2019-09",
	"$vocabulary":      "",
	"dependencies":     "of draft 7: use dependentRequired or dependentSchemas",
	"additionalItems":  "of draft 2019-09: use prefixItems and items",
	"id":               "of draft 4: use $id",
}

// subschemaKeywords tells where schemas lie inside a schema.
var (
	oneSubschema  = []string{"not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties"}
	listSubschema = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	mapSubschema  = []string{"$defs", "definitions", "properties", "patternProperties", "dependentSchemas"}
)

// location is what the compiler knows of a schema inside the document.
type location struct {
	base *url.URL // of the resource it belongs to
	path string   // JSON pointer, for errors
}

const rootURI = "schema:///"

// locate records location, resource and anchors of v and the schemas below it.
func (c *compiler) locate(v *jsonValue, base *url.URL, path string) error {
	if _, done := c.where[v]; done {
		return nil
	}
	if v.kind == jsonObject {
		if id := v.get("$id"); id != nil {
			if id.kind != jsonString {
				return fmt.Errorf("%s/$id: string expected: %w", path, ErrSyntax)
			}
			u, err := base.Parse(id.text)
			if err != nil {
				return fmt.Errorf("%s/$id: %s is no URI: %w", path, shown(id.text), ErrSyntax)
			}
			if u.Fragment != "" {
				return fmt.Errorf("%s/$id: %s has a fragment: %w", path, shown(id.text), ErrSyntax)
			}
			base = u
			c.resources[u.String()] = v
		}
		for _, k := range []string{"$anchor", "$dynamicAnchor"} {
			if a := v.get(k); a != nil && a.kind == jsonString {
				c.anchors[base.String()+"#"+a.text] = v
			}
		}
	}
	c.where[v] = location{base, path}
	if v.kind != jsonObject {
		return nil
	}
	for i, name := range v.names {
		sub, at := v.items[i], path+"/"+escapePointer(name)
		switch {
		case slices.Contains(oneSubschema, name):
			if err := c.locate(sub, base, at); err != nil {
				return err
			}
		case slices.Contains(listSubschema, name) && sub.kind == jsonArray,
			slices.Contains(mapSubschema, name) && sub.kind == jsonObject:
			for k, s := range sub.items {
				key := fmt.Sprint(k)
				if sub.kind == jsonObject {
					key = escapePointer(sub.names[k])
				}
				if err := c.locate(s, base, at+"/"+key); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func escapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// resolve returns the schema that a $ref in v names.
func (c *compiler) resolve(v *jsonValue, ref string) (*jsonValue, error) {
	loc := c.where[v]
	u, err := loc.base.Parse(ref)
	if err != nil {
		return nil, fmt.Errorf("%s/$ref: %s is no URI: %w", loc.path, shown(ref), ErrSyntax)
	}
	fragment := u.Fragment
	resource := *u
	resource.Fragment, resource.RawFragment = "", ""
	root := c.resources[resource.String()]
	if root == nil {
		return nil, fmt.Errorf("%s/$ref: %s is outside the schema: %w", loc.path, shown(ref), ErrUnsupported)
	}
	var target *jsonValue
	if fragment == "" || strings.HasPrefix(fragment, "/") {
		target = root.pointer(fragment)
	} else {
		target = c.anchors[resource.String()+"#"+fragment]
	}
	if target == nil {
		return nil, fmt.Errorf("%s/$ref: %s names nothing: %w", loc.path, shown(ref), ErrSyntax)
	}
	if _, known := c.where[target]; !known {
		// A pointer into a place where no schema lies by itself; its base is that of the resource.
		if err := c.locate(target, &resource, loc.path+"/$ref("+ref+")"); err != nil {
			return nil, err
		}
	}
	return target, nil
}

func newCompiler(doc *jsonValue) *compiler {
	return &compiler{
		doc:       doc,
		where:     map[*jsonValue]location{},
		resources: map[string]*jsonValue{},
		anchors:   map[string]*jsonValue{},
		termIDs:   map[string]termID{},
		patterns:  map[string]*dfa{},
	}
}

// compile finds the shapes of all values that can be met and the automaton's start.
func (c *compiler) compile() (*automaton, error) {
	base, err := url.Parse(rootURI)
	if err != nil {
		return nil, err
	}
	c.resources[rootURI] = c.doc
	if err := c.locate(c.doc, base, "#"); err != nil {
		return nil, err
	}
	c.terms = []term{{kind: termFalse}, {kind: termTrue}}
	root, err := c.nodeTerm(c.doc)
	if err != nil {
		return nil, err
	}
	if err := c.solve(root); err != nil {
		return nil, err
	}
	if !c.terms[root].productive {
		return nil, fmt.Errorf("no value is valid: %w", ErrEmpty)
	}
	c.root = root
	if c.m, err = c.machine((*numSet).written); err != nil {
		return nil, err
	}
	return c.m.a, nil
}
