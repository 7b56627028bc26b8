package jinja_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/minfer-go/minfer/jinja"
)

// outcome parses and renders with limits.
func outcome(src string, l jinja.Limits) error {
	tm, err := jinja.Parse("t", src, jinja.WithLimits(l))
	if err != nil {
		return err
	}
	_, err = tm.Render(context.Background(), jinja.Value{})
	return err
}

// TestLimits meets each limit and passes it by one.
func TestLimits(t *testing.T) {
	nest := func(open, inner, end string) func(n int) string {
		return func(n int) string { return strings.Repeat(open, n) + inner + strings.Repeat(end, n) }
	}
	for _, c := range []struct {
		name  string
		src   func(n int) string
		limit func(n int) jinja.Limits
		n     int // the largest that passes
	}{
		{"source", func(n int) string { return strings.Repeat("x", n) }, func(int) jinja.Limits { return jinja.Limits{SourceBytes: 100} }, 100},
		{"statements", nest("{% if true %}", "", "{% endif %}"), func(int) jinja.Limits { return jinja.Limits{Depth: 10} }, 9},
		{"not", func(n int) string { return "{{ " + strings.Repeat("not ", n) + "1 }}" }, func(int) jinja.Limits { return jinja.Limits{Depth: 10} }, 8},
		{"sum", func(n int) string { return "{{ 1" + strings.Repeat("+1", n) + " }}" }, func(int) jinja.Limits { return jinja.Limits{Depth: 10} }, 9},
		{"filters", func(n int) string { return "{{ 1" + strings.Repeat("|string", n) + " }}" }, func(int) jinja.Limits { return jinja.Limits{Depth: 10} }, 9},
		{"output", func(n int) string { return strings.Repeat("x", n) }, func(int) jinja.Limits { return jinja.Limits{OutputBytes: 100} }, 100},
		{"captured output", func(n int) string {
			return "xx{% set y %}" + strings.Repeat("x", n-2) + "{% endset %}"
		}, func(int) jinja.Limits { return jinja.Limits{OutputBytes: 100} }, 100},
		{"text", func(n int) string { return fmt.Sprintf("{%% set x = 'a' * %d %%}", n) }, func(int) jinja.Limits { return jinja.Limits{TextBytes: 100} }, 100},
		{"padding", func(n int) string { return fmt.Sprintf("{%% set x = 'a'.center(%d) %%}", n) }, func(int) jinja.Limits { return jinja.Limits{TextBytes: 100} }, 100},
		{"width", func(n int) string { return fmt.Sprintf("{%% set x = '%%%dd' %% 5 %%}", n) }, func(int) jinja.Limits { return jinja.Limits{TextBytes: 100} }, 100},
		{"spec", func(n int) string { return fmt.Sprintf("{%% set x = '{:%d}'.format(5) %%}", n) }, func(int) jinja.Limits { return jinja.Limits{TextBytes: 100} }, 100},
		{"items", func(n int) string { return fmt.Sprintf("{%% set x = [0] * %d %%}", n) }, func(int) jinja.Limits { return jinja.Limits{Items: 100} }, 100},
		{"listed", func(n int) string { return fmt.Sprintf("{%% set x = range(%d)|list %%}", n) }, func(int) jinja.Limits { return jinja.Limits{Items: 100} }, 100},
		{"calls", func(n int) string {
			return fmt.Sprintf("{%% macro m(n) %%}{%% if n > 1 %%}{{ m(n-1) }}{%% endif %%}{%% endmacro %%}{{ m(%d) }}", n)
		}, func(int) jinja.Limits { return jinja.Limits{CallDepth: 10} }, 10},
		{"bits", func(n int) string { return fmt.Sprintf("{%% set x = 2 ** %d %%}", n) }, func(int) jinja.Limits { return jinja.Limits{} }, jinja.MaxIntBits - 1},
		{"range", func(n int) string { return fmt.Sprintf("{%% set x = range(%d) %%}", n) }, func(int) jinja.Limits { return jinja.Limits{} }, jinja.MaxRange},
		{"value depth", func(n int) string {
			return fmt.Sprintf("{%% set ns = namespace(x=[]) %%}{%% for i in range(%d) %%}{%% set ns.x = [ns.x] %%}{%% endfor %%}{{ ns.x|string|length }}", n)
		}, func(int) jinja.Limits { return jinja.Limits{} }, jinja.MaxValueDepth},
		{"iterators", func(n int) string {
			return fmt.Sprintf("{%% set ns = namespace(x=[1]) %%}{%% for i in range(%d) %%}{%% set ns.x = ns.x|select %%}{%% endfor %%}{{ ns.x|list }}", n)
		}, func(int) jinja.Limits { return jinja.Limits{} }, jinja.MaxValueDepth},
	} {
		if err := outcome(c.src(c.n), c.limit(c.n)); err != nil {
			t.Errorf("%s: at the limit: %v", c.name, err)
		}
		err := outcome(c.src(c.n+1), c.limit(c.n))
		if c.name == "range" {
			if !errors.Is(err, jinja.ErrRuntime) {
				t.Errorf("%s: one past: %v", c.name, err)
			}
			continue
		}
		if !errors.Is(err, jinja.ErrLimit) {
			t.Errorf("%s: one past the limit: %v", c.name, err)
		}
	}
}

func TestSteps(t *testing.T) {
	src := "{% for i in range(1000) %}{{ i }}{% endfor %}"
	if err := outcome(src, jinja.Limits{Steps: 100_000}); err != nil {
		t.Errorf("enough steps: %v", err)
	}
	if err := outcome(src, jinja.Limits{Steps: 500}); !errors.Is(err, jinja.ErrLimit) {
		t.Errorf("too few steps: %v", err)
	}
}

// TestHostile renders what would take very long, very much memory or the stack,
// with few steps, and with the default limits where MINFER_LONG is set.
func TestHostile(t *testing.T) {
	limits := jinja.Limits{Steps: jinja.MaxSteps / 10}
	if os.Getenv("MINFER_LONG") != "" {
		limits = jinja.Limits{}
	}
	loop := "{% for a in range(99999) %}{% for b in range(99999) %}"
	ends := "{% endfor %}{% endfor %}"
	deep := strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000)
	for _, src := range []string{
		loop + "{% for c in range(99999) %}{% endfor %}" + ends,
		loop + "{{ 'x' * 100000 }}" + ends,
		loop + "{% set x = 'ab' * 1000000 %}" + ends,
		loop + "{% set x = range(100000)|list %}" + ends,
		loop + "{% set x = 3 ** 40000 %}" + ends,
		"{% set x = 'é' * 1000000 %}" + loop + "{% if x[900000] %}{% endif %}" + ends,
		"{% set x = 'é' * 1000000 %}" + loop + "{{ x|last }}" + ends,
		"{% set x = 'é' * 1000000 %}" + loop + "{{ x.startswith('a', 900000) }}" + ends,
		"{% set ns = namespace(x='ab') %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"{% set ns = namespace(x='ab') %}{% for a in range(99) %}{% set ns.x = ns.x|replace('a', ns.x) %}{% endfor %}",
		"{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
		"{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}",
		"{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|pprint }}",
		"{% set ns = namespace(x=(1,)) %}{% for a in range(99) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
		"{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{% set y = ns.x %}" +
			"{% set ns.x = [1] %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == y }}",
		"{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
		"{% set ns = namespace(x=[]) %}{% for a in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"{% macro m() %}{{ caller() }}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{% call m() %}{% endcall %}",
		"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		"{% block a %}{{ self.a() }}{% endblock %}",
		"{{ 9 ** (9 ** 9) }}", "{{ 'a' * 10**18 }}", "{{ [0] * 10**9 }}", "{{ '%999999999d' % 1 }}", "{{ '{:999999999}'.format(1) }}",
		"{{ 'a'.center(10**12) }}", "{{ '\t'.expandtabs(10**9) }}", "{{ 'a'|indent(10**9) }}", "{{ [1]|batch(10**9, 0)|list }}",
		"{{ [1]|tojson(indent=10**9) }}", "{{ '%.999999999f' % 1.5 }}", "{{ '1'.zfill(10**15) }}", "{{ 'a'|center(10**10) }}",
		"{{ " + deep + " }}", "{{ " + strings.Repeat("-", 100_000) + "1 }}", "{{ " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + " }}",
		"{{ x" + strings.Repeat(".a", 100_000) + " }}", "{{ x" + strings.Repeat("|e", 100_000) + " }}",
		"{{ 1" + strings.Repeat(" if 1 else 1", 50_000) + " }}", "{{ 1" + strings.Repeat(" and 1", 100_000) + " }}",
		strings.Repeat("{% if 1 %}", 50_000), strings.Repeat("{% for x in y %}", 50_000),
		"{{ ('é' * 1000000)|wordwrap(1)|length }}", "{{ ('ab' * 1000000)|wordwrap(1)|length }}",
		"{{ (['a' * 1000000] * 1000)|map('replace', 'a', 'b')|map('length')|sum }}",
		"{% set ns = namespace(d={}) %}{% for i in range(100000) %}{% set ns.d = dict(ns.d, **{i|string: 1}) %}{% endfor %}",
	} {
		start := time.Now()
		err := outcome(src, limits)
		if !errors.Is(err, jinja.ErrLimit) && !errors.Is(err, jinja.ErrUndefined) {
			t.Errorf("%.80q: got %v, want a limit", src, err)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%.80q: took %v", src, d)
		} else if d > time.Second/2 {
			t.Logf("%.80q: %v", src, d)
		}
	}
}

func BenchmarkChat(b *testing.B) {
	src := "{{- bos_token }}{%- for message in messages %}{%- if message.role == 'user' or message['role'] == 'assistant' %}" +
		"{{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>' + '\\n' }}{%- endif %}{%- endfor %}" +
		"{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
	tm, err := jinja.Parse("chat", src)
	if err != nil {
		b.Fatal(err)
	}
	var ms []jinja.Value
	for i := range 20 {
		role := []string{"user", "assistant"}[i%2]
		ms = append(ms, jinja.Object(jinja.Pair{Key: "role", Value: jinja.String(role)},
			jinja.Pair{Key: "content", Value: jinja.String(strings.Repeat("Some text of a message. ", 20))}))
	}
	data := jinja.Object(jinja.Pair{Key: "messages", Value: jinja.List(ms...)}, jinja.Pair{Key: "add_generation_prompt", Value: jinja.Bool(true)})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tm.Segments(context.Background(), data); err != nil {
			b.Fatal(err)
		}
	}
}
