package grammar

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSchemaMatches(t *testing.T) {
	tests := []struct {
		src     string
		yes, no []string
	}{
		{
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`,
			[]string{`{"a":1}`, `{"a":1,"b":true}`, `{"b":false, "a":-7}`, "{\n  \"a\": 1,\n  \"b\": true\n}", `{ "a":1 }`},
			[]string{`{}`, `{"b":true}`, `{"a":1,"a":2}`, `{"a":1,"c":2}`, `{"a":"1"}`, `{"a":1,}`, `{"a":1 ,"b":true}`, `{"a" :1}`, `{"a":  1}`, ` {"a":1}`, `{"a":1} `, "{\"a\":1\n\n}", `{"\u0061":1}`},
		},
		{
			`{"properties":{"a":{"type":"integer"}}}`,
			[]string{`{}`, `{"b":[]}`, `{"b":1,"a":2,"c":null}`, `[]`, `"x"`, `{"ab":"x","":1}`, `{"\u00e9":1}`},
			[]string{`{"a":"x"}`, `{"b":1,"a":"x"}`},
		},
		{
			`{"type":"string"}`,
			[]string{`""`, `"a\"\\\/\b\f\n\r\té漢😀"`, `"\u0000\u00e9\uD83D\ude00"`},
			[]string{`"`, "\"\n\"", "\"\x00\"", `"\x"`, `"\ud83d"`, `"\ude00"`, `"\ud83dA"`, `"\u12"`, "\"\xff\"", "\"\xed\xa0\x80\""},
		},
		{
			`{"type":"string","minLength":2,"maxLength":3}`,
			[]string{`"ab"`, `"é漢😀"`, `"\u0041\n"`, `"\ud83d\ude00x"`},
			[]string{`"a"`, `"abcd"`, `"😀"`, `"\ud83d\ude00"`},
		},
		{
			`{"type":"string","pattern":"^[a-é]+$"}`,
			[]string{`"a"`, `"é"`, `"\u00e9"`, `"\u0061\u00E9z"`},
			[]string{`"A"`, `"ê"`, `"\u0041"`, `""`, `"\u00ea"`},
		},
		{
			`{"type":"string","pattern":"^😀|[\\n\"/]$"}`,
			[]string{`"😀"`, `"\ud83d\ude00..."`, `"x\n"`, `"x\""`, `"/"`, `"\/"`},
			[]string{`"😁"`, `"\ud83d\ude01"`, `"x"`},
		},
		{
			`{"enum":["a\"b","é\n",1.50,null,true,[1,{"k":"v"}]]}`,
			[]string{`"a\"b"`, `"é\n"`, `"\u00e9\n"`, `1.5`, `1.500`, `null`, `true`, `[1,{"k":"v"}]`, `[1.0, { "k": "v" }]`},
			[]string{`"a"`, `1.51`, `false`, `[1]`, `[1,{"k":"v","k":"v"}]`, `[1,{"k":"w"}]`},
		},
		{
			`{"type":"integer","minimum":-5,"exclusiveMaximum":10,"multipleOf":3}`,
			[]string{`-3`, `0`, `-0`, `9`, `6.0`},
			[]string{`-6`, `12`, `10`, `1`, `3.5`, `3e0`, `03`},
		},
		{
			`{"type":"number","minimum":0.25,"maximum":1.5}`,
			[]string{`0.25`, `1`, `1.5`, `1.50`, `0.9999`},
			[]string{`0.2`, `0.2499`, `1.5001`, `2`, `-1`, `1e0`},
		},
		{`{"type":"number"}`, []string{`1e5`, `-1.5E-3`, `0`, `1e+2`}, []string{`1e`, `01`, `.5`, `1.`, `+1`, `1e1234`}},
		{
			`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1,"maxItems":3}`,
			[]string{`[1]`, `[1,"a"]`, `[1,"a",null]`, "[\n  1, \"a\"\n]"},
			[]string{`[]`, `["a"]`, `[1,2]`, `[1,"a",1]`, `[1,"a",null,null]`},
		},
		{
			`{"type":"array","contains":{"const":"x"},"minContains":1,"maxContains":2,"maxItems":4}`,
			[]string{`["x"]`, `[1,"x","x",2]`, `["y","x"]`},
			[]string{`[]`, `[1]`, `["x","x","x"]`, `[1,2,3,4,"x"]`},
		},
		{
			`{"type":"array","items":{"enum":["a","b",null]},"uniqueItems":true,"minItems":2}`,
			[]string{`["a","b"]`, `[null,"a","b"]`},
			[]string{`["a"]`, `["a","a"]`, `["a","b","a"]`},
		},
		{
			`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"],"additionalProperties":false}}}`,
			[]string{`{"v":1}`, `{"v":1,"kids":[{"v":2,"kids":[]},{"kids":[{"v":4}],"v":3}]}`},
			[]string{`{"kids":[]}`, `{"v":1,"kids":[{}]}`},
		},
		{
			`{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"]},{"type":"object","properties":{"kind":{"const":"b"}},"required":["kind"]}]}`,
			[]string{`{"kind":"a","x":1}`, `{"x":1,"kind":"a"}`, `{"kind":"b","x":"any"}`, `{"x":"any","kind":"b"}`},
			[]string{`{"kind":"a"}`, `{"x":"any","kind":"a"}`, `{"kind":"c"}`, `{}`},
		},
		{
			`{"type":"object","minProperties":2,"maxProperties":3,"additionalProperties":{"type":"integer"}}`,
			[]string{`{"a":1,"b":2}`, `{"ab":1,"a":2,"abc":3}`, `{"é":1,"\n":2}`},
			[]string{`{"a":1}`, `{"a":1,"a":2}`, `{"a":1,"b":2,"c":3,"d":4}`, `{"a":1,"b":"x"}`},
		},
		{
			`{"type":"object","patternProperties":{"^n_":{"type":"integer"},"_s$":{"type":"string"}},"additionalProperties":false}`,
			[]string{`{"n_1":1,"x_s":"y"}`, `{}`},
			[]string{`{"n_1":"x"}`, `{"x":1}`, `{"n_s":1}`, `{"n_s":"x"}`},
		},
		{
			`{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]},"type":"object"}`,
			[]string{`{"a":1,"b":0}`, `{"b":0,"a":1}`, `{"a":2,"c":0}`, `{"c":0}`},
			[]string{`{"a":1}`, `{"a":1,"c":0}`, `{"a":2,"b":0}`, `{}`},
		},
		{
			`{"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}],"discriminator":{"propertyName":"k","mapping":{"a":"#/$defs/A","b":"#/$defs/B"}},"example":{"k":"a"},"externalDocs":{"url":"x"},"xml":{"name":"y"},
			"$defs":{"A":{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},"B":{"type":"object","properties":{"k":{"const":"b"},"n":{"type":"integer"}},"required":["k","n"]}}}`,
			[]string{`{"k":"a"}`, `{"n":1,"k":"b"}`},
			[]string{`{"k":"b"}`, `{"k":"c"}`},
		},
		{`true`, []string{`{"a":[1,"x",null,{"b":{}}]}`, `3`}, []string{``, `nope`, `{"a"}`}},
		{`{"type":"string","format":"date"}`, []string{`"2024-02-29"`, `"2000-02-29"`, `"2023-12-31"`}, []string{`"2023-02-29"`, `"1900-02-29"`, `"2023-13-01"`, `"2023-04-31"`}},
	}
	for _, tt := range tests {
		g := mustSchema(t, tt.src)
		for _, s := range tt.yes {
			if err := g.Check([]byte(s)); err != nil {
				t.Errorf("%s\nrejects %s: %v", tt.src, s, err)
			}
		}
		for _, s := range tt.no {
			if g.Match([]byte(s)) {
				t.Errorf("%s\naccepts %s", tt.src, s)
			}
		}
	}
}

func TestSchemaRefusals(t *testing.T) {
	tests := []struct {
		src  string
		want error
		text string
	}{
		{`{"type":"object"`, ErrSyntax, "JSON at offset"},
		{`{} {}`, ErrSyntax, "after the value"},
		{`{"type":1}`, ErrSyntax, "#/type"},
		{`{"type":"text"}`, ErrSyntax, `"text"`},
		{`{"type":"string","type":"null"}`, ErrSyntax, `"type" is repeated`},
		{`[1]`, ErrSyntax, "object or a boolean"},
		{`{"items":3}`, ErrSyntax, "#/items"},
		{`{"enum":3}`, ErrSyntax, "#/enum"},
		{`{"required":"a"}`, ErrSyntax, "#/required"},
		{`{"minLength":-1}`, ErrSyntax, "#/minLength"},
		{`{"minLength":1.5}`, ErrSyntax, "#/minLength"},
		{`{"multipleOf":0}`, ErrSyntax, "positive"},
		{`{"pattern":"("}`, ErrSyntax, "not closed"},
		{`{"allOf":[]}`, ErrSyntax, "#/allOf"},
		{`{"$ref":"#/nothing"}`, ErrSyntax, "names nothing"},
		{`{"$ref":"https://example.com/x"}`, ErrUnsupported, "outside the schema"},
		{`{"properties":{"a":{"maxlength":3}}}`, ErrUnsupported, `#/properties/a: unknown keyword "maxlength"`},
		{`{"$dynamicRef":"#a"}`, ErrUnsupported, "$dynamicRef"},
		{`{"$recursiveRef":"#"}`, ErrUnsupported, "$recursiveRef"},
		{`{"dependencies":{}}`, ErrUnsupported, "dependencies"},
		{`{"additionalItems":false}`, ErrUnsupported, "additionalItems"},
		{`{"items":[{}]}`, ErrUnsupported, "prefixItems"},
		{`{"$vocabulary":{}}`, ErrUnsupported, "$vocabulary"},
		{`{"$schema":"http://json-schema.org/draft-04/schema#"}`, ErrUnsupported, "draft-04"},
		{`{"format":"uri"}`, ErrUnsupported, `format "uri"`},
		{`{"pattern":"^(?!a)"}`, ErrUnsupported, "lookahead"},
		{`{"pattern":"(a)\\1"}`, ErrUnsupported, "back reference"},
		{`{"type":"array","uniqueItems":true}`, ErrUnsupported, "uniqueItems"},
		{`{"not":{"type":"array","uniqueItems":true}}`, ErrUnsupported, "uniqueItems"},
		{`{"anyOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, ErrUnsupported, "unevaluatedProperties: beside anyOf"},
		{`{"contains":{"const":1},"unevaluatedItems":false}`, ErrUnsupported, "unevaluatedItems: beside contains"},
		{`{"$ref":"#"}`, ErrUnsupported, "refers to itself"},
		{`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}`, ErrUnsupported, "refers to itself"},
		{`{"minProperties":3,"patternProperties":{"^[ab]$":true},"additionalProperties":false,"type":"object"}`, ErrUnsupported, "minProperties"},
		{`false`, ErrEmpty, "no value"},
		{`{"type":"string","const":1}`, ErrEmpty, "no value"},
		{`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, ErrEmpty, "no value"},
		{`{"type":"integer","minimum":5,"maximum":4}`, ErrEmpty, "no value"},
	}
	for _, tt := range tests {
		_, err := FromJSONSchema([]byte(tt.src))
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v naming %q", tt.src, err, tt.want, tt.text)
		}
	}
}

func TestSchemaLimits(t *testing.T) {
	list := func(n int, f func(i int) string) string {
		var out []string
		for i := range n {
			out = append(out, f(i))
		}
		return strings.Join(out, ",")
	}
	props := func(n int) string {
		return `{"type":"object","properties":{` + list(n, func(i int) string { return fmt.Sprintf(`"p%d":true`, i) }) + `},"additionalProperties":false}`
	}
	objects := func(n int) string {
		return `{"enum":[` + list(n, func(i int) string { return fmt.Sprintf(`{"p%d":1}`, i) }) + `]}`
	}
	contains := func(n int) string {
		return `{"type":"array","allOf":[` + list(n, func(i int) string { return fmt.Sprintf(`{"contains":{"const":%d}}`, i) }) + `]}`
	}
	nest := func(n int) string { return strings.Repeat(`{"not":`, n) + `true` + strings.Repeat("}", n) }
	pad := func(n int) string { return `{"title":"` + strings.Repeat("x", n-12) + `"}` }
	some := func(n int) string {
		return `{"type":"object","allOf":[` + list(n, func(i int) string {
			return fmt.Sprintf(`{"not":{"additionalProperties":{"const":%d}}}`, i)
		}) + `]}`
	}
	chain := func(n int) string { // a definition per level, each naming the next
		return `{"$ref":"#/$defs/d0","$defs":{` + list(n, func(i int) string {
			if i == n-1 {
				return fmt.Sprintf(`"d%d":{"type":"null"}`, i)
			}
			return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1)
		}) + `}}`
	}
	tests := []struct {
		name     string
		ok, over string
	}{
		{"MaxSource", pad(MaxSource), pad(MaxSource + 1)},
		{"MaxNesting", nest(MaxNesting), nest(MaxNesting + 1)},
		{"MaxProperties", props(MaxProperties), props(MaxProperties + 1)},
		{"MaxShapes", objects(MaxShapes), objects(MaxShapes + 1)},
		{"MaxContains", contains(MaxContains), contains(MaxContains + 1)},
		{"MaxSome", some(MaxSome), some(MaxSome + 1)},
		{"minItems", fmt.Sprintf(`{"type":"array","minItems":%d}`, MaxItems), fmt.Sprintf(`{"type":"array","minItems":%d}`, MaxItems+1)},
		{"maxLength", fmt.Sprintf(`{"maxLength":%d}`, MaxLength), fmt.Sprintf(`{"maxLength":%d}`, MaxLength+1)},
		{"MaxDigits", `{"const":1` + strings.Repeat("0", MaxDigits-1) + `}`, `{"const":1` + strings.Repeat("0", MaxDigits) + `}`},
		{"MaxDFA", `{"multipleOf":1024}`, `{"multipleOf":0.123456789}`},
		{"MaxDFA", `{"maxLength":1000,"pattern":"a"}`, `{"maxLength":100000,"pattern":"a"}`},
		{"exponent", `{"minimum":-1e400}`, `{"minimum":-1e401}`},
		{"nest deeper", chain(4*MaxNesting - 1), chain(4 * MaxNesting)},
	}
	for _, tt := range tests {
		if _, err := FromJSONSchema([]byte(tt.ok)); err != nil {
			t.Errorf("%s: at the limit: %.300v", tt.name, err)
		}
		if _, err := FromJSONSchema([]byte(tt.over)); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("%s: past the limit: %.300v", tt.name, err)
		}
	}
}

// TestHostileSchemas: schemas made to multiply are refused or compiled quickly.
func TestHostileSchemas(t *testing.T) {
	var overlap, double []string
	for i := range 40 {
		overlap = append(overlap, fmt.Sprintf(`{"properties":{"a%d":{"type":"integer"},"b":{"type":"string"}},"additionalProperties":{"minLength":%d}}`, i, i))
		double = append(double, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	var patterns, deps []string
	for i := range 30 {
		patterns = append(patterns, fmt.Sprintf(`"%c.*%c":{"minLength":%d}`, 'a'+i%26, 'b'+i%25, i))
		deps = append(deps, fmt.Sprintf(`"d%d":["e%d"]`, i, i))
	}
	for name, src := range map[string]string{
		"oneOf":    `{"oneOf":[` + strings.Join(overlap, ",") + `]}`,
		"doubling": `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(double, ",") + `,"d40":{"type":"null"}}}`,
		"patterns": `{"type":"object","patternProperties":{` + strings.Join(patterns, ",") + `}}`,
		"deps":     `{"type":"object","dependentRequired":{` + strings.Join(deps, ",") + `}}`,
		"anyOf":    `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"anyOf":[{"required":["a"]},{"required":["b"]},{"minProperties":2},{"items":{"type":"null"}}]},`, 50), ",") + `]}`,
		"not":      strings.Repeat(`{"not":{"properties":{"a":`, 60) + `{"type":"string"}` + strings.Repeat(`}}}`, 60),
	} {
		begin := time.Now()
		_, err := FromJSONSchema([]byte(src))
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("%s: %v", name, d)
		} else {
			t.Logf("%s: %v: %.200v", name, d, err)
		}
		if err != nil && !errors.Is(err, ErrLimit) && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestErrorsAreShort: what an untrusted schema holds is quoted in part, and no text that it does not hold.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("é(", 5000)
	var numbers []string
	for i := range 5000 {
		numbers = append(numbers, fmt.Sprintf("%d.%03d", i, i*7%1000))
	}
	for _, src := range []string{
		`{"pattern":"` + long + `"}`,
		`{"pattern":"^(` + strings.Repeat("a|", 5000) + `a{2000}){2000}$"}`,
		`{"format":"` + long + `"}`,
		`{"type":"` + long + `"}`,
		`{"` + long + `":1}`,
		`{"$ref":"x:` + long + `"}`,
		`{"$schema":"` + long + `"}`,
		`{"enum":[` + strings.Join(numbers, ",") + `]}`,
	} {
		_, err := FromJSONSchema([]byte(src))
		if err == nil || len(err.Error()) > 500 || strings.Contains(err.Error(), "0{0,") {
			t.Errorf("%.60s: %.600v", src, err)
		}
	}
}

func TestLazyStateLimit(t *testing.T) {
	g := mustSchema(t, `{"type":"string","maxLength":1000}`)
	text := []byte(`"` + strings.Repeat("a", 900) + `"`)
	if err := g.Check(text); err != nil {
		t.Fatal(err)
	}
	g = mustSchema(t, `{"type":"string","maxLength":1000}`)
	g.a.maxNodes = 500
	if err := g.Check(text); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "MaxLazyStates") {
		t.Errorf("past the limit: %v", err)
	}
}

func FuzzFromJSONSchema(f *testing.F) {
	f.Add([]byte(personSchema), []byte(`{"name":"Mia","age":7}`))
	f.Add([]byte(`{"oneOf":[{"type":"integer"},{"minimum":2}],"not":{"const":5}}`), []byte(`3`))
	f.Fuzz(func(t *testing.T, src, text []byte) {
		g, err := FromJSONSchema(src)
		if err != nil {
			return
		}
		match := generates(g, text)
		if match && !g.Match(text) {
			t.Fatal("what is generated does not match")
		}
		s := g.Bind(smallVocab()).Start()
		checkMask(t, s)
		if s.AcceptBytes(text) == nil && s.Complete() != match {
			t.Fatalf("generates says %v, the state of the same text %v", match, s.Complete())
		}
		printed := g.GBNF()
		if p, err := ParseGBNF(printed); err == nil && !strings.Contains(printed, "# ") && p.Match(text) != match {
			t.Fatalf("generates says %v, the printed grammar %v", match, !match)
		}
	})
}
