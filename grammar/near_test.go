package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// TestRealSchemas: schemas as programs and libraries write them for structured output and tools decide as they should.
func TestRealSchemas(t *testing.T) {
	for _, group := range readGroups(t, "testdata/real.json") {
		if !runGroup(t, "real.json", group) {
			_, err := FromJSONSchema(group.Schema)
			t.Errorf("%s: %v", group.Description, err)
		}
	}
}

// lenient are the parts of schemas under which the other validator decides differently from the specification: Go's
// regular expressions read \s and \S by ASCII, and its mail addresses and times may be malformed.
var lenient = []string{`"\\s"`, `^\\s`, `^\\S`, `"email"`, `"date-time"`, `"time"`}

func isLenient(schema []byte) bool {
	return slices.ContainsFunc(lenient, func(part string) bool { return strings.Contains(string(schema), part) })
}

// narrow reports whether text is one of those that are valid and do not match: a number of more digits than
// MaxDigits or an exponent in it.
func narrow(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return len(v) > MaxDigits || strings.ContainsAny(v.String(), "eE")
	case []any:
		return slices.ContainsFunc(v, narrow)
	case object:
		for _, x := range v {
			if narrow(x) {
				return true
			}
		}
	}
	return false
}

// checkNear compares g with an independent validator on values that differ from v in one or two places, and returns how
// many of them are valid.
func checkNear(t rapid.TB, g *Grammar, check *jsonschema.Schema, rng *rand.Rand, v any, n int, schema []byte) (yes int) {
	for range n {
		x := mutate(rng, v)
		if rng.IntN(3) == 0 {
			x = mutate(rng, x)
		}
		text := encode(x)
		got, want := g.Match(text), valid(t, check, text)
		if got != want && !(want && narrow(x)) {
			t.Fatalf("%s: %v, want %v under\n%s", text, got, want, schema)
		}
		yes += int(b2i(want))
	}
	return yes
}

// TestNearlyValid: values that differ in a place from what is valid, and from what random tokens spell, are accepted
// exactly if an independent validator finds them valid, for all supported schemas of testdata.
func TestNearlyValid(t *testing.T) {
	v := smallVocab()
	groups := append(readGroups(t, "testdata/real.json"), readGroups(t, "testdata/suite/*.json")...)
	schemas, spelt, values, yes := 0, 0, 0, 0
	for i, group := range groups {
		schema := []byte(group.Schema)
		g, err := FromJSONSchema(schema)
		if err != nil || isLenient(schema) {
			continue
		}
		check, err := compileOther(schema)
		if err != nil {
			continue // it has stricter ideas of a pattern
		}
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		var seeds [][]byte
		for _, test := range group.Tests {
			if test.Valid {
				seeds = append(seeds, test.Data)
			}
		}
		m, ends := g.Bind(v), 0
		for range 2 {
			text := randomRun(t, m, rng, rng.IntN(40), 0)
			if text == nil {
				continue
			}
			if ends++; !valid(t, check, text) {
				t.Fatalf("generated %q, which is not valid under\n%s", text, schema)
			}
			seeds = append(seeds, text)
		}
		spelt += int(b2i(ends > 0))
		schemas++
		for _, seed := range seeds {
			x, ok := decode(seed)
			if !ok {
				t.Fatalf("%q does not parse", seed)
			}
			values += 6
			yes += checkNear(t, g, check, rng, x, 6, schema)
		}
	}
	t.Logf("%d schemas, %d spelt by random tokens, %d values, %d of them valid", schemas, spelt, values, yes)
	if spelt < schemas*95/100 {
		t.Errorf("random tokens come to an end under %d of %d schemas only", spelt, schemas)
	}
	if schemas < 300 || yes < values/5 || yes > values*9/10 {
		t.Errorf("%d schemas, %d values of which %d are valid: too one-sided to tell much", schemas, values, yes)
	}
}
