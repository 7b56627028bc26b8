package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func mustGBNF(t testing.TB, src string) *Grammar {
	t.Helper()
	g, err := ParseGBNF(src)
	if err != nil {
		t.Fatalf("ParseGBNF(%q): %v", src, err)
	}
	return g
}

const jsonGBNF = `
# JSON, as the notation's users write it
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
`

func TestGBNFMatches(t *testing.T) {
	tests := []struct {
		src     string
		yes, no []string
	}{
		{`root ::= "abc"`, []string{"abc"}, []string{"", "ab", "abcd", "abd"}},
		{`root ::= ""`, []string{""}, []string{"a"}},
		{`root ::=`, []string{""}, []string{"a"}},
		{"root ::=\n\nx ::= \"a\"", []string{""}, []string{"a"}},
		{"root ::= x\nx ::=\n  \"a\" |\n  \"b\"", []string{"a", "b"}, []string{"ab", ""}},
		{"root ::= \"a\"\n  | \"b\"\n  | \"c\"\n", []string{"a", "b", "c"}, []string{"d"}},
		{"root ::= (\n\"a\"\n\"b\"\n)+ # tail", []string{"ab", "abab"}, []string{"a", ""}},
		{"root ::= \"a\" | ", []string{"a", ""}, []string{"b"}},
		{"root ::= \"a\n\" [b\n]", []string{"a\nb", "a\n\n"}, []string{"a", "a\n", "ab"}},
		{`root ::= "\x41\u00e9\U0001F600\t\r\n\\\"\[\]"`, []string{"Aé😀\t\r\n\\\"[]"}, []string{"A"}},
		{`root ::= [a-cx\]\-]`, []string{"a", "b", "c", "x", "]", "-"}, []string{"d", "", "ab", "\\"}},
		{`root ::= [a-]`, []string{"a", "-"}, []string{"b"}},
		{`root ::= [^a-c]`, []string{"d", "é", "漢", "😀", "\n"}, []string{"a", "", "dd"}},
		{`root ::= [\u00e0-\u00ff\U0001F600-\U0001F64F]+`, []string{"éà", "😀😁"}, []string{"a", "\xc3", "ß\x80"}},
		{`root ::= .`, []string{"a", "é", "漢", "😀", "\n", "\x00"}, []string{"", "\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80"}},
		{`root ::= "ab"*`, []string{"", "ab", "abab"}, []string{"abb", "a"}},
		{`root ::= "ab"+ "c"?`, []string{"ab", "ababc"}, []string{"", "c"}},
		{`root ::= "a"{3}`, []string{"aaa"}, []string{"aa", "aaaa"}},
		{`root ::= "a"{2,}`, []string{"aa", "aaaaa"}, []string{"a"}},
		{`root ::= "a"{ 1 , 3 }`, []string{"a", "aa", "aaa"}, []string{"", "aaaa"}},
		{`root ::= "a"{0} "b"`, []string{"b"}, []string{"ab"}},
		{`root ::= ("a"?)*`, []string{"", "a", "aaa"}, []string{"b"}},
		{`root ::= (("a"*)* "b"?)*`, []string{"", "aab", "baab"}, []string{"c"}},
		{`root ::= "a" root "b" | "x"`, []string{"x", "axb", "aaxbb"}, []string{"axbb", "ab"}},
		{`root ::= "a" root | "b"`, []string{"b", strings.Repeat("a", 5000) + "b"}, []string{"a", "ba"}},
		{`root ::= e* "x"
e ::= "" | "y"`, []string{"x", "yyx"}, []string{"y"}},
		{`root ::= a a a a a a a a "!"
a ::= "z" | "zz" | "zzz"`, []string{"zzzzzzzzzzzz!"}, []string{"zzzzzzz!", strings.Repeat("z", 25) + "!"}},
		{`root ::= "a" dead | "b"
dead ::= "c" dead`, []string{"b"}, []string{"a", "ac"}},
		{`Root-1_x ::= "q"
root ::= Root-1_x`, []string{"q"}, []string{"r"}},
		{jsonGBNF, []string{`{}`, `{"a": [1, -2.5e3, "x\u00e9\n", {"b": null}], "c":true}`, "{\n  \"k\": \"漢字\"\n}"}, []string{`{"a":}`, `{"a" 1}`, `[]`, `{"a":01}`, "{\"\x01\":1}"}},
	}
	for _, tt := range tests {
		g := mustGBNF(t, tt.src)
		for _, s := range tt.yes {
			if err := g.Check([]byte(s)); err != nil {
				t.Errorf("%s\nrejects %.60q: %v", tt.src, s, err)
			}
		}
		for _, s := range tt.no {
			if g.Match([]byte(s)) {
				t.Errorf("%s\naccepts %q", tt.src, s)
			}
		}
	}
}

func TestGBNFRefusals(t *testing.T) {
	tests := []struct {
		src  string
		want error
		text string
	}{
		{``, ErrSyntax, "root"},
		{`x ::= "a"`, ErrSyntax, "root"},
		{`root ::= y`, ErrSyntax, `"y" is not defined`},
		{"root ::= \"a\"\nroot ::= \"b\"", ErrSyntax, "defined again"},
		{`root := "a"`, ErrSyntax, "::="},
		{`root ::= "a`, ErrSyntax, "not closed"},
		{`root ::= [a`, ErrSyntax, "not closed"},
		{"root ::= \"a\" x\nx ::= \"b\ny\n", ErrSyntax, "line 2: literal is not closed"},
		{"root ::= \"a\n\" [\n\n] x", ErrSyntax, "line 4: rule \"x\""},
		{`root ::= []`, ErrSyntax, "empty"},
		{`root ::= [z-a]`, ErrSyntax, "reversed"},
		{`root ::= ("a"`, ErrSyntax, "')'"},
		{`root ::= "a")`, ErrSyntax, "end of rule"},
		{`root ::= "\q"`, ErrSyntax, `\q`},
		{`root ::= "\x4"`, ErrSyntax, `\x`},
		{`root ::= "\U00110000"`, ErrSyntax, "10FFFF"},
		{`root ::= "\ud800"`, ErrSyntax, "surrogate"},
		{`root ::= *`, ErrSyntax, "repeats nothing"},
		{`root ::= "a"{}`, ErrSyntax, "number"},
		{`root ::= "a"{3,2}`, ErrSyntax, "reversed"},
		{`root ::= "a"{2`, ErrSyntax, "'}'"},
		{`root ::= <[12]>`, ErrUnsupported, "token reference"},
		{`root ::= !<think>`, ErrUnsupported, "token reference"},
		{"root ::= a\na ::= b \"x\" | \"y\"\nb ::= a", ErrUnsupported, "left recursion a -> b -> a"},
		{"root ::= n root | \"x\"\nn ::= \"\" | \"k\"", ErrUnsupported, "left recursion root -> root"},
		{`root ::= "a" root`, ErrEmpty, `"root" can never be completed`},
		{"root ::= \"\xff\"", ErrSyntax, "UTF-8"},
		{`root ::= "a" %`, ErrSyntax, "'%'"},
	}
	for _, tt := range tests {
		_, err := ParseGBNF(tt.src)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("ParseGBNF(%q) = %v, want %v naming %q", tt.src, err, tt.want, tt.text)
		}
	}
}

func TestGBNFLimits(t *testing.T) {
	pad := func(n int) string { return `root ::= "a" #` + strings.Repeat("x", n-len(`root ::= "a" #`)) }
	nest := func(n int) string { return "root ::= " + strings.Repeat("(", n) + `"a"` + strings.Repeat(")", n) }
	rules := func(n int) string {
		var b strings.Builder
		b.WriteString("root ::= \"a\"\n")
		for i := range n - 1 {
			fmt.Fprintf(&b, "r%d ::= \"x\"\n", i)
		}
		return b.String()
	}
	states := func(n int) string { // two nodes per rule, one per repeated character, one per sequence end
		full, rest := (n-2)/MaxRepeat, (n-2)%MaxRepeat
		var b strings.Builder
		b.WriteString("root ::= ")
		for range full {
			fmt.Fprintf(&b, `"a"{%d} `, MaxRepeat)
		}
		fmt.Fprintf(&b, `"a"{%d}`, rest)
		return b.String()
	}
	tests := []struct {
		name     string
		ok, over string
	}{
		{"MaxSource", pad(MaxSource), pad(MaxSource + 1)},
		{"MaxNesting", nest(MaxNesting), nest(MaxNesting + 1)},
		{"MaxNesting", `root ::= "a"` + strings.Repeat("?", MaxNesting), `root ::= "a"` + strings.Repeat("?", MaxNesting+1)},
		{"MaxRepeat", fmt.Sprintf(`root ::= "a"{0,%d}`, MaxRepeat), fmt.Sprintf(`root ::= "a"{0,%d}`, MaxRepeat+1)},
		{"MaxRules", rules(MaxRules), rules(MaxRules + 1)},
		{"MaxStates", states(MaxStates / 2), states(MaxStates + 1)},
		{"MaxStates", `root ::= "a"`, `root ::= ((("a"{2000}){2000}){2000}){2000}`},
	}
	for _, tt := range tests {
		if _, err := ParseGBNF(tt.ok); err != nil {
			t.Errorf("%s: at the limit: %v", tt.name, err)
		}
		if _, err := ParseGBNF(tt.over); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("%s: past the limit: %v", tt.name, err)
		}
	}
}

// TestGBNFManyRules: the work for rules that name one another is in proportion to their number, in whatever order they
// are written.
func TestGBNFManyRules(t *testing.T) {
	chain := func(n int) string {
		var b strings.Builder
		b.WriteString("root ::= r0\n")
		for i := range n {
			fmt.Fprintf(&b, "r%d ::= \"a\"? r%d | \"b\"? r%d\n", i, i+1, i+1)
		}
		fmt.Fprintf(&b, "r%d ::= \"x\"?\n", n)
		return b.String()
	}
	mustGBNF(t, chain(MaxRules-2))
	p := &gbnfParser{src: chain(MaxRules - 2), line: 1, index: map[string]int{}}
	if err := p.parse(); err != nil {
		t.Fatal(err)
	}
	rules, calls := p.rules, 0
	c := &gbnfCompiler{rules: rules, alive: make([]bool, len(rules))}
	c.fixpoint(c.alive, func(e *expr) bool {
		calls++
		return c.productive(e)
	})
	if slices.Contains(c.alive, false) || calls > 3*len(rules) {
		t.Errorf("%d bodies were looked at for %d rules, all alive: %v", calls, len(rules), !slices.Contains(c.alive, false))
	}
}

func TestMatchingLimits(t *testing.T) {
	g := mustGBNF(t, `root ::= "(" root ")" | "x"`)
	nested := func(n int) []byte {
		return []byte(strings.Repeat("(", n) + "x" + strings.Repeat(")", n))
	}
	if err := g.Check(nested(MaxStack)); err != nil {
		t.Errorf("at MaxStack: %v", err)
	}
	if err := g.Check(nested(MaxStack + 1)); !errors.Is(err, ErrLimit) || !errors.Is(err, ErrRejected) {
		t.Errorf("past MaxStack: %v", err)
	}
	// Every way to split a run of letters into two-letter and three-letter words stays one set of parses.
	g = mustGBNF(t, "root ::= (w | w w | w w w)*\nw ::= [a-z] | [a-z] [a-z]")
	if !g.Match([]byte(strings.Repeat("a", 10000))) {
		t.Error("ambiguous grammar rejects its text")
	}
	// Stacks that differ in every level double with each letter.
	g = mustGBNF(t, `root ::= "a" root "a" | "a" root "b" | ""`)
	if err := g.Check([]byte(strings.Repeat("a", 10))); err != nil {
		t.Errorf("below MaxAmbiguity: %v", err)
	}
	if err := g.Check([]byte(strings.Repeat("a", 14))); !errors.Is(err, ErrLimit) {
		t.Errorf("past MaxAmbiguity: %v", err)
	}
	// Palindromes of unknown centre keep a parse per length.
	g = mustGBNF(t, `root ::= "a" root "a" | "b" root "a" | ""`)
	if err := g.Check([]byte(strings.Repeat("a", 400))); err != nil {
		t.Errorf("400 letters: %v", err)
	}
}
