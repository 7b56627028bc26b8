package grammar

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// companions are keywords that others need to have an effect.
var companions = map[string]string{
	"minContains": "contains", "maxContains": "contains", "then": "if", "else": "if", "if": "then",
	"additionalProperties": "properties",
}

// drawAround draws a document whose root has the keyword, what the keyword needs, and at most one more.
func drawAround(keyword string) *rapid.Generator[object] {
	return rapid.Custom(func(t *rapid.T) object {
		draws := keywordDraws(t, 2)
		s := object{keyword: draws[keyword]()}
		if k := companions[keyword]; k != "" {
			s[k] = draws[k]()
		}
		if keyword == "uniqueItems" { // over a finite set
			s["type"], s["minItems"] = "array", 2
			s["items"] = object{"enum": []any{"a", "b", nil, true}}
		}
		if rapid.Bool().Draw(t, "more") {
			if k := rapid.SampledFrom(names(draws)).Draw(t, "keyword"); s[k] == nil {
				s[k] = draws[k]()
			}
		}
		s["$defs"] = object{"one": drawSchema(t, 1), "two": object{"type": "array", "items": object{"$ref": "#/$defs/one"}}}
		return s
	})
}

// TestEveryKeywordDecides: for every enforced keyword there are schemas under which it decides: some value is valid under
// the schema and not without the keyword, or the other way round, as an independent validator finds, and the schema with
// the keyword accepts what that validator does.
func TestEveryKeywordDecides(t *testing.T) {
	const schemas, enough = 24, 3
	for _, group := range keywordGroups() {
		for _, keyword := range group.keywords {
			decided := 0
			for seed := range schemas {
				with := drawAround(keyword).Example(seed)
				schema := encode(with)
				g, err := FromJSONSchema(schema)
				if err != nil || isLenient(schema) {
					continue
				}
				check, err := compileOther(schema)
				if err != nil {
					continue
				}
				delete(with, keyword)
				without, err := compileOther(encode(with))
				if err != nil {
					t.Fatalf("%s: %v", encode(with), err)
				}
				rng := rand.New(rand.NewPCG(uint64(seed), 1))
				var values []any
				for i := range 12 {
					values = append(values, rapid.Custom(func(t *rapid.T) any { return drawValue(t, 2) }).Example(100*seed+i))
				}
				// The search meets many states, so it has a grammar to itself.
				other := mustSchema(t, string(schema))
				if text, ok := someEnd(other, other.a.begin()); ok {
					if x, ok := decode(text); ok {
						for range 8 {
							values = append(values, mutate(rng, x))
						}
					}
				}
				decides := false
				for _, x := range values {
					text := encode(x)
					want := valid(t, check, text)
					if got := g.Match(text); got != want && !(want && narrow(x)) {
						t.Fatalf("%s: %s: %v, want %v under\n%s", keyword, text, got, want, schema)
					}
					decides = decides || want != valid(t, without, text)
				}
				decided += int(b2i(decides))
			}
			if decided < enough {
				t.Errorf("%s decides under %d of %d random schemas", keyword, decided, schemas)
			}
		}
	}
}
