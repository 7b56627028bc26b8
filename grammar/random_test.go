package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// object is a schema or value under construction.
type object = map[string]any

var (
	someNames    = []string{"a", "b", "ab", "é", "x-1", ""}
	somePatterns = []string{"^a", "b$", "^[a-c]+$", "^x-", "é"}
	someStrings  = []string{"", "a", "ab", "abc", "é", "x-1", "a\"b\\\n", "2024-02-29", "10.0.0.1", "漢字😀"}
	someNumbers  = []string{"0", "1", "-1", "2", "2.5", "0.5", "10", "-3.25", "7", "100", "1.0", "0.07", "-0.125", "12.35"}
	someFormats  = []string{"date", "ipv4", "uuid", "date-time", "time", "email"}
)

func number(t *rapid.T) json.Number {
	return json.Number(rapid.SampledFrom(someNumbers).Draw(t, "number"))
}

// drawValue draws a JSON value from a small world, so that schemas often decide differently.
func drawValue(t *rapid.T, depth int) any {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2, 3:
		return number(t)
	case 4:
		return rapid.SampledFrom(someStrings).Draw(t, "string")
	case 5:
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			out = append(out, drawValue(t, depth-1))
		}
		return out
	}
	out := object{}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		out[rapid.SampledFrom(someNames).Draw(t, "name")] = drawValue(t, depth-1)
	}
	return out
}

// drawSchema draws a schema; depth bounds its nesting.
func drawSchema(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 9).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]any{true, object{"type": "integer"}, object{"type": "string"}, object{"const": "a"}, object{"type": "boolean"}, object{"enum": []any{1, "b", nil}}}).Draw(t, "leaf schema")
	}
	draws := keywordDraws(t, depth)
	s := object{}
	for range rapid.IntRange(1, 4).Draw(t, "keywords") {
		k := rapid.SampledFrom(names(draws)).Draw(t, "keyword")
		if s[k] == nil {
			s[k] = draws[k]()
		}
	}
	return s
}

// keywordDraws returns a function for each enforced keyword that draws its value; depth bounds the nesting of the schema
// that it stands in.
func keywordDraws(t *rapid.T, depth int) map[string]func() any {
	sub := func() any { return drawSchema(t, depth-1) }
	list := func() []any {
		var out []any
		for range rapid.IntRange(1, 3).Draw(t, "n") {
			out = append(out, sub())
		}
		return out
	}
	small := func() int { return rapid.IntRange(0, 3).Draw(t, "small") }
	name := func() string { return rapid.SampledFrom(someNames).Draw(t, "name") }
	nameList := func() []any {
		out := []any{}
		seen := map[string]bool{}
		for range small() {
			if n := name(); !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
		return out
	}
	return map[string]func() any{
		"type": func() any {
			return rapid.SampledFrom([]any{"object", "array", "string", "number", "integer", "null", []any{"string", "object"}, []any{"array", "number"}}).Draw(t, "type")
		},
		"enum":             func() any { return []any{drawValue(t, 1), drawValue(t, 1)} },
		"const":            func() any { return drawValue(t, 1) },
		"minimum":          func() any { return number(t) },
		"maximum":          func() any { return number(t) },
		"exclusiveMinimum": func() any { return number(t) },
		"exclusiveMaximum": func() any { return number(t) },
		"multipleOf": func() any {
			return json.Number(rapid.SampledFrom([]string{"1", "2", "0.5", "2.5", "3", "0.01", "0.1"}).Draw(t, "multiple"))
		},
		"minLength":   func() any { return small() },
		"maxLength":   func() any { return small() + 1 },
		"pattern":     func() any { return rapid.SampledFrom(somePatterns).Draw(t, "pattern") },
		"format":      func() any { return rapid.SampledFrom(someFormats).Draw(t, "format") },
		"items":       sub,
		"prefixItems": func() any { return list() },
		"minItems":    func() any { return small() },
		"maxItems":    func() any { return small() + 1 },
		"contains":    sub,
		"minContains": func() any { return small() },
		"maxContains": func() any { return small() },
		"uniqueItems": func() any { return true },
		"properties": func() any {
			out := object{}
			for range rapid.IntRange(1, 3).Draw(t, "n") {
				out[name()] = sub()
			}
			return out
		},
		"patternProperties":     func() any { return object{rapid.SampledFrom(somePatterns).Draw(t, "pattern"): sub()} },
		"additionalProperties":  sub,
		"propertyNames":         func() any { return object{"maxLength": small()} },
		"required":              func() any { return nameList() },
		"minProperties":         func() any { return small() },
		"maxProperties":         func() any { return small() },
		"dependentRequired":     func() any { return object{name(): nameList()} },
		"dependentSchemas":      func() any { return object{name(): sub()} },
		"unevaluatedProperties": sub,
		"unevaluatedItems":      sub,
		"allOf":                 func() any { return list() },
		"anyOf":                 func() any { return list() },
		"oneOf":                 func() any { return list() },
		"not":                   sub,
		"if":                    sub,
		"then":                  sub,
		"else":                  sub,
		"$ref":                  func() any { return rapid.SampledFrom([]string{"#/$defs/one", "#/$defs/two"}).Draw(t, "ref") },
	}
}

// drawDocument draws a whole schema with two definitions to refer to.
func drawDocument(t *rapid.T) object {
	doc, ok := drawSchema(t, 3).(object)
	if !ok {
		doc = object{"type": "array", "items": true}
	}
	copied := object{}
	for k, v := range doc {
		copied[k] = v
	}
	copied["$defs"] = object{"one": drawSchema(t, 2), "two": object{"type": "array", "items": object{"$ref": "#/$defs/one"}, "maxItems": 2}}
	return copied
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// compileOther compiles the schema with an independent implementation.
func compileOther(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("test:///schema", doc); err != nil {
		return nil, err
	}
	return c.Compile("test:///schema")
}

func validator(t rapid.TB, schema []byte) *jsonschema.Schema {
	s, err := compileOther(schema)
	if err != nil {
		t.Skip("the other validator refuses the schema: ", err)
	}
	return s
}

func valid(t rapid.TB, s *jsonschema.Schema, text []byte) bool {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%q does not parse: %v", text, err)
	}
	return s.Validate(v) == nil
}

// TestRandomSchemas: for random schemas, random values are accepted exactly if an independent validator
// finds them valid, and whatever random tokens spell parses and validates.
func TestRandomSchemas(t *testing.T) {
	v := smallVocab()
	tried, compiled, refusals := 0, 0, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		tried++
		schema := encode(drawDocument(t))
		g, err := FromJSONSchema(schema)
		check := validator(t, schema)
		if errors.Is(err, ErrEmpty) {
			for range 5 {
				if text := encode(drawValue(t, 2)); valid(t, check, text) {
					t.Fatalf("%v\nbut %s is valid under\n%s", err, text, schema)
				}
			}
			return
		}
		if err != nil {
			if !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrLimit) {
				t.Fatalf("%s\n%v", schema, err)
			}
			refusals[err.Error()[strings.LastIndex(err.Error(), "/")+1:]]++
			return
		}
		compiled++
		for range 10 {
			text := encode(drawValue(t, 2))
			if got, want := g.Match(text), valid(t, check, text); got != want {
				t.Fatalf("%s: %v, want %v under\n%s", text, got, want, schema)
			}
		}
		m := g.Bind(v)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range 2 {
			text := randomRun(t, m, rng, 25, 1)
			if text == nil {
				continue
			}
			if !g.Match(text) || !valid(t, check, text) {
				t.Fatalf("generated %q, which is not valid under\n%s", text, schema)
			}
			if x, ok := decode(text); ok && !isLenient(schema) {
				checkNear(t, g, check, rng, x, 5, schema)
			}
		}
	})
	t.Logf("%d schemas compiled, refused: %v", compiled, refusals)
	if compiled < tried/4 {
		t.Errorf("only %d of %d random schemas compile", compiled, tried)
	}
}
