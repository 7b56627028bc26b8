package grammar

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
)

func dec(t testing.TB, s string) decimal {
	t.Helper()
	d, err := parseDecimal(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestParseDecimal(t *testing.T) {
	for s, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0": "0", "1": "1", "10": "10", "-1.50": "-1.5", "0.0001": "0.0001", "1e3": "1000",
		"1.5e1": "15", "1.25E1": "12.5", "1e-8": "0.00000001", "123e-2": "1.23", "-12.5e-3": "-0.0125", "1e+2": "100",
	} {
		if got := dec(t, s).text(); got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
	if _, err := parseDecimal("1e" + strconv.Itoa(maxExponent)); err != nil {
		t.Error(err)
	}
	if _, err := parseDecimal("1e" + strconv.Itoa(maxExponent+1)); !errors.Is(err, ErrLimit) {
		t.Errorf("past maxExponent: %v", err)
	}
}

// TestNumberAutomata compares bounds and multiples with exact rational arithmetic.
func TestNumberAutomata(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	texts := []string{"0", "-0", "0.0", "-0.0", "0.00", "1", "-1", "1.0", "10", "100", "99999", "0.1", "0.10", "-0.1", "0.01", "-0.000"}
	for range 400 {
		s := strconv.Itoa(rng.IntN([]int{10, 100, 1000, 100000}[rng.IntN(4)]))
		if rng.IntN(2) == 0 {
			s = "-" + s
		}
		if rng.IntN(2) == 0 {
			s += "." + strconv.Itoa(rng.IntN(1000)) + []string{"", "0", "00"}[rng.IntN(3)]
		}
		texts = append(texts, s)
	}
	value := func(s string) *big.Rat {
		r, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("no number: %q", s)
		}
		return r
	}
	for _, b := range append([]string{"5", "-5", "0.5", "-0.25", "100", "1e2", "12.375", "-99.99"}, texts[:60]...) {
		for name, keep := range map[string]func(int) bool{
			"<": func(s int) bool { return s < 0 }, "<=": func(s int) bool { return s <= 0 },
			"==": func(s int) bool { return s == 0 }, ">": func(s int) bool { return s > 0 },
		} {
			d, err := compareDFA(dec(t, b), keep)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range texts {
				if got, want := d.match(s), keep(value(s).Cmp(value(b))); got != want {
					t.Fatalf("%s %s %s: %v, want %v", s, name, b, got, want)
				}
			}
		}
	}
	for _, m := range []string{"1", "2", "3", "7", "10", "100", "2500", "1000000", "24000", "1.5", "0.01", "0.0001", "0.25", "1e-8", "12.5", "5e3"} {
		d, err := multipleDFA(dec(t, m))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range append([]string{"24000", "48000", "-72000", "2500", "7500", "1000000", "3000000.0", "1200000", "4.5", "12.50", "24005"}, texts...) {
			if got, want := d.match(s), new(big.Rat).Quo(value(s), value(m)).IsInt(); got != want {
				t.Fatalf("%s multiple of %s: %v, want %v", s, m, got, want)
			}
		}
	}
	if _, err := multipleDFA(dec(t, "2701")); err != nil {
		t.Errorf("below MaxDFA: %v", err)
	}
	if _, err := multipleDFA(dec(t, "5003")); !errors.Is(err, ErrLimit) {
		t.Errorf("past MaxDFA: %v", err)
	}
	for _, s := range []string{"", "-", "01", "1.", ".5", "+1", "1.-", "--1", "1.2.3"} {
		for _, m := range []string{"1", "0.5"} {
			d, err := multipleDFA(dec(t, m))
			if err != nil {
				t.Fatal(err)
			}
			c, err := compareDFA(dec(t, m), func(int) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			if d.match(s) || c.match(s) {
				t.Errorf("%q is taken for a number", s)
			}
		}
	}
}

// generates reports whether a model may write text as a whole under g: [Grammar.Match] for the narrower language of a
// [Matcher].
func generates(g *Grammar, text []byte) bool {
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	p := g.a.begin()
	for _, b := range text {
		p = g.a.step(p, b)
	}
	return p.complete
}

// TestIntegersWritten: where only integers are valid, a model writes them without a fraction; 4.0 still matches.
func TestIntegersWritten(t *testing.T) {
	for _, c := range []struct {
		schema             string
		both, match, never []string
	}{
		{`{"type":"integer"}`, []string{"4", "0", "-0", "-12"}, []string{"4.0", "-12.000", "0.0"}, []string{"4.5", "4.", "4e0", "04"}},
		{`{"type":"integer","minimum":-3,"maximum":120}`, []string{"-3", "7", "120"}, []string{"7.0", "-3.00", "120.0"}, []string{"-4", "121.0"}},
		{`{"type":"number","multipleOf":2}`, []string{"4", "-2"}, []string{"4.0"}, []string{"3", "3.0", "4.5"}},
		{`{"enum":[1,2.0]}`, []string{"1", "2"}, []string{"1.0", "2.0"}, []string{"3", "1.5"}},
		{`{"type":["integer","string"],"not":{"const":5}}`, []string{"4", `"a"`}, []string{"4.0"}, []string{"5", "5.0"}},
		{`{"type":"array","items":{"type":"integer"}}`, []string{"[]", "[1, 2]"}, []string{"[1, 2.0]"}, []string{"[1.5]"}},
		{`{"type":"number"}`, []string{"4", "4.0", "4.5", "4e0"}, nil, []string{"04"}},
		{`{"enum":[1,2.5]}`, []string{"1", "1.0", "2.5"}, nil, []string{"2"}},
	} {
		g := mustSchema(t, c.schema)
		p := mustGBNF(t, g.GBNF())
		for want, texts := range map[[2]bool][]string{{true, true}: c.both, {true, false}: c.match, {false, false}: c.never} {
			for _, s := range texts {
				if got := [2]bool{g.Match([]byte(s)), generates(g, []byte(s))}; got != want {
					t.Errorf("%s: %s: match and generated %v, want %v", c.schema, s, got, want)
				}
				if p.Match([]byte(s)) != want[1] {
					t.Errorf("%s: %s: the printed grammar says %v", c.schema, s, !want[1])
				}
			}
		}
	}
}
