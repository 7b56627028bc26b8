package jinja_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/minfer-go/minfer/jinja"
)

// TestWork repeats an operation whose work grows with a value, under a number of
// steps that the repetitions alone do not use up: the work itself has to be charged.
func TestWork(t *testing.T) {
	const (
		linear = 60_000  // below a step for 16 bytes, 100 times over 40 kB
		chars  = 600_000 // below a step for 2 bytes, above one for 16
	)
	text := "{% set x = 'é' * 20000 %}{% set y = 'é' * 20000 %}"
	owners := "{% set x = ('é' ~ data) * 2000 %}"
	blanks := "{% set x = '\u3000' * 13000 %}"
	digits := "{% set x = '1' * 40000 %}"
	big := "{% set x = 2 ** 60000 %}"
	names := "{% macro m() %}{{ kwargs|length }}{% endmacro %}{% set x = dict.fromkeys(range(300)|map('string'), 1) %}"
	dict := "{% set x = dict.fromkeys(range(3000)) %}{% set y = dict.fromkeys(range(3000)) %}"
	tuples := "{% set k = 'é' * 8000 %}{% set x = {(k, 1): 1, (k, 2): 2, (k, 3): 3} %}"
	for _, c := range []struct {
		set, op string
		steps   int64
	}{
		{text, "'%.3s' % x", linear},
		{text, "'{:.3}'.format(x)", linear},
		{text, "x.count('a', 19000)", linear},
		{text, "x is lower", linear},
		{text, "x is upper", linear},
		{blanks, "x.strip()", linear},
		{blanks, "x.lstrip()", linear},
		{blanks, "x.rstrip()", linear},
		{blanks, "x|trim", linear},
		{text, "x.strip('é')", linear},
		{text, "'éa'.strip(x ~ 'a')", linear},
		{owners, "x.lstrip('é')", linear},
		{owners, "x.removeprefix('é')", linear},
		{text, "x.removeprefix(y)", linear},
		{text, "x.removesuffix(y)", linear},
		{text, "x.endswith(y)", linear},
		{text, "x.startswith((y, 'a'))", linear},
		{text, "x.endswith('a', 19000)", linear},
		{text, "x|indent", chars},
		{text, "x.splitlines()", chars},
		{text, "x is sameas y", linear},
		{text, "x|truncate(9000)", linear},
		{text, "x[x] is defined", linear},
		{text, "x|attr(x) is defined", linear},
		{text, "dict[x]", linear},
		{text, "'a'|urlize(rel=x)", linear},
		{text, "x.lower()", chars},
		{text, "x|upper", chars},
		{text, "x|title", chars},
		{text, "x.swapcase()", chars},
		{text, "x.isalpha()", chars},
		{text, "x.islower()", chars},
		{text, "x.isprintable()", chars},
		{text, "x.expandtabs()", chars},
		{text, "x.split()", chars},
		{text, "x.rsplit()", chars},
		{text, "x|wordcount", chars},
		{text, "x|e", chars},
		{text, "x|tojson", chars},
		{text, "{x: 1}|tojson", chars},
		{text, "[x]|string", chars},
		{text, "x|urlencode", chars},
		{text, "x|striptags", chars},
		{text, "[x]|sort", chars},
		{text, "x.count('')", chars},
		{digits, "x|int", linear},
		{digits, "x|float", linear},
		{digits, "[{}]|map(attribute=x)|list", linear},
		{big, "x == 1.5", 4000},
		{big, "x < 1.5", 4000},
		{big, "x|abs", 40_000},
		{big, "-x", 40_000},
		{big, "x.real", 40_000},
		{big, "x.conjugate()", 40_000},
		{big, "x.as_integer_ratio()", 40_000},
		{big, "'%x' % x", 40_000},
		{big, "'{:x}'.format(x)", 40_000},
		{big, "{x: 1}", 40_000},
		{"{% set x = 1e300 %}", "x % 1.7", 5000},
		{"{% set x = 1.5 %}", "'%.5000f' % x", 100_000},
		{"{% set x = 5 %}", "'{:020000,}'.format(x)", 200_000},
		{names, "m(**x)", 300_000},
		{names, "dict(**x)", 300_000},
		{dict, "x == y", 1_000_000},
		{dict, "x.keys() == y.keys()", 1_000_000},
		{dict, "x|dictsort", 1_000_000},
		{dict, "x|xmlattr", 100_000},
		{dict, "x.items()|list", 1_000_000},
		{tuples, "dict(x)", 50_000},
		{"{% macro m(" + params(300) + ") %}{% endmacro %}", "m()", 25_000},
		{"", "1" + repeat(" if 0 else 1", 90), 5000},
		{"", "[1]" + repeat(" and [1]", 90), 15_000},
	} {
		src := c.set + "{% for i in range(100) %}{% set z = " + c.op + " %}{% endfor %}"
		if err := outcomeOf(src, jinja.Limits{Steps: c.steps}); !errors.Is(err, jinja.ErrLimit) {
			t.Errorf("%s: got %v after %d steps, want a limit", c.op, err, c.steps)
		}
		once := c.set + "{% set z = " + c.op + " %}"
		if err := outcomeOf(once, jinja.Limits{}); err != nil {
			t.Errorf("%s once: %v", c.op, err)
		}
	}
}

// outcomeOf renders with a text of the data.
func outcomeOf(src string, l jinja.Limits) error {
	tm, err := jinja.Parse("t", src, jinja.WithLimits(l))
	if err != nil {
		return err
	}
	_, err = tm.Render(context.Background(), jinja.Object(jinja.Pair{Key: "data", Value: jinja.String("some data")}))
	return err
}

// TestWorkConditions repeats a long chain of conditions that are all constants.
func TestWorkConditions(t *testing.T) {
	src := "{% for i in range(100) %}{% if 0 %}" + repeat("{% elif 0 %}", 1000) + "{% endif %}{% endfor %}"
	if err := outcome(src, jinja.Limits{Steps: 50_000}); !errors.Is(err, jinja.ErrLimit) {
		t.Errorf("got %v, want a limit", err)
	}
}

// TestTupleKeys looks keys of every kind up in a dict of a few tuples.
func TestTupleKeys(t *testing.T) {
	src := "{% set d = {(1, 2): 'a', 1: 'b', 'x': 'c', (1,): 'd'} %}" +
		"{{ d[(1, 2)] }}{{ d[1] }}{{ d[1.0] }}{{ d['x'] }}{{ d[(1.0,)] }}{{ (2,) in d }}{{ dict(d) == d }}"
	tm, err := jinja.Parse("t", src)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tm.Render(t.Context(), jinja.Value{})
	if want := "abbcdFalseTrue"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func params(n int) string {
	s := "a"
	for i := range n {
		s += fmt.Sprintf(", a%d=1", i)
	}
	return s
}

func repeat(s string, n int) (r string) {
	for range n {
		r += s
	}
	return r
}
