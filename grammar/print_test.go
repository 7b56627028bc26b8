package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustSchema(t testing.TB, src string) *Grammar {
	t.Helper()
	g, err := FromJSONSchema([]byte(src))
	if err != nil {
		t.Fatalf("FromJSONSchema(%s): %v", src, err)
	}
	return g
}

func TestPrintReadable(t *testing.T) {
	g := mustSchema(t, `{"type":"object","properties":{"name":{"type":"string"},"color":{"enum":["red","é"]},
		"tags":{"type":"array","items":{"type":"string","maxLength":5},"minItems":1,"maxItems":3}},
		"required":["name","color"],"additionalProperties":false}`)
	text := g.GBNF()
	for _, part := range []string{
		"root ::= object\n",
		`string ::= "\"" char* "\""`,
		`color ::= "\"\\u00e9\"" | "\"red\"" | "\"\u00E9\""`,
		`items ::= "\"" char{0,5} "\""`,
		`array ::= "[" ws items ("," ws items){0,2} ws "]"`,
		`ws ::= (" " | "\n" [ \t]{0,20})?`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the printed grammar lacks %s\n%s", part, text)
		}
	}
	if strings.Contains(text, "narrowed") {
		t.Error("a small object is narrowed")
	}
	if src := `root ::= "a" # mine`; mustGBNF(t, src).GBNF() != src {
		t.Error("GBNF of a parsed grammar is not its source")
	}
}

func TestPrintWideObject(t *testing.T) {
	var props, required []string
	for i := range 12 {
		props = append(props, fmt.Sprintf(`"p%02d":{"type":"boolean"}`, i))
		if i%3 == 1 {
			required = append(required, fmt.Sprintf(`"p%02d"`, i))
		}
	}
	g := mustSchema(t, `{"type":"object","properties":{`+strings.Join(props, ",")+`},"required":[`+strings.Join(required, ",")+`],"additionalProperties":false}`)
	text := g.GBNF()
	if !strings.Contains(text, "# narrowed: properties in the order of their declaration") {
		t.Errorf("no comment tells the narrowing:\n%s", text)
	}
	p := mustGBNF(t, text)
	for s, want := range map[string][2]bool{ // of the schema and of the printed grammar
		`{"p01":true,"p04":true,"p07":true,"p10":false}`:                         {true, true},
		`{"p00":true,"p01":true,"p04":true,"p07":true,"p10":false,"p11":true}`:   {true, true},
		`{"p04":true,"p01":true,"p07":true,"p10":false}`:                         {true, false},
		`{"p01":true,"p04":true,"p07":true}`:                                     {false, false},
		`{"p01":true,"p04":true,"p07":true,"p10":false,"p10":false}`:             {false, false},
		`{"p01":true,"p04":true,"p07":true,"p10":false,"other":1}`:               {false, false},
		`{"p01":true,"p02":true,"p04":true,"p05":true,"p07":true,"p10":false  }`: {false, false},
	} {
		if got := [2]bool{g.Match([]byte(s)), p.Match([]byte(s))}; got != want {
			t.Errorf("%s: schema and printed grammar say %v, want %v", s, got, want)
		}
	}
}

// TestPrintHugeObject: the text grows with the number of properties, and what no order can complete is
// not entered.
func TestPrintHugeObject(t *testing.T) {
	var props []string
	for i := range MaxProperties {
		props = append(props, fmt.Sprintf(`"p%d":{"type":"null"}`, i))
	}
	g := mustSchema(t, `{"type":"object","properties":{`+strings.Join(props, ",")+`},"minProperties":2,"maxProperties":3,"additionalProperties":false}`)
	text := g.GBNF()
	if len(text) > 1<<20 {
		t.Errorf("%d bytes", len(text))
	}
	p := mustGBNF(t, text)
	for s, want := range map[string]bool{
		`{"p0":null,"p999":null}`: true, `{"p7":null,"p8":null,"p9":null}`: true, `{"p999":null}`: false,
		`{"p8":null,"p7":null}`: false, `{"p1":null,"p2":null,"p3":null,"p4":null}`: false, `{}`: false,
	} {
		if got := p.Match([]byte(s)); got != want {
			t.Errorf("%s: %v, want %v", s, got, want)
		}
	}
}

// TestPrintSuite: the printed grammar of every supported schema of the suite decides as the schema does.
func TestPrintSuite(t *testing.T) {
	checked := 0
	for _, group := range readGroups(t, "testdata/suite/*.json") {
		g, err := FromJSONSchema(group.Schema)
		if err != nil {
			continue
		}
		text := g.GBNF()
		p, err := ParseGBNF(text)
		if err != nil {
			t.Errorf("%s: %s: the printed grammar does not parse: %v\n%.3000s", group.file, group.Description, err, text)
			continue
		}
		for _, test := range group.Tests {
			for _, data := range orders(t, test.Data) {
				checked++
				if got, want := p.Match(data), generates(g, data); got != want {
					t.Errorf("%s: %s: %s: printed %v, schema %v\n%s\n%.3000s", group.file, group.Description, data, got, want, group.Schema, text)
				}
			}
		}
	}
	t.Logf("%d texts", checked)
}

// TestPrintRandom: the printed grammar of random schemas accepts what random tokens spell under the
// schema, and the other way round.
func TestPrintRandom(t *testing.T) {
	v := smallVocab()
	rapid.Check(t, func(t *rapid.T) {
		schema := encode(drawDocument(t))
		g, err := FromJSONSchema(schema)
		if err != nil {
			return
		}
		text := g.GBNF()
		if strings.Contains(text, "# ") {
			return // tells that it is not the same
		}
		p, err := ParseGBNF(text)
		if err != nil {
			t.Fatalf("%v\n%s\n%.3000s", err, schema, text)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range 2 {
			if s := randomRun(t, g.Bind(v), rng, 15, 0); s != nil && !p.Match(s) {
				t.Fatalf("the printed grammar rejects %q\n%s\n%.3000s", s, schema, text)
			}
			if s := randomRun(t, p.Bind(v), rng, 15, 0); s != nil && !generates(g, s) {
				t.Fatalf("the printed grammar gives %q\n%s\n%.3000s", s, schema, text)
			}
		}
	})
}
