package jinja_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/minfer-go/minfer/jinja"
)

func parse(t *testing.T, src string, opts ...jinja.Option) *jinja.Template {
	t.Helper()
	tm, err := jinja.Parse("t", src, opts...)
	if err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	return tm
}

// owners renders with every string of the data being data, and writes the text
// of the data between square brackets of a kind that no template here prints.
func owners(t *testing.T, src, data string) string {
	t.Helper()
	v, err := jinja.FromJSON([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	segs, err := parse(t, src, jinja.WithClock(clock)).Segments(context.Background(), v)
	if err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	var b strings.Builder
	for i, s := range segs {
		if s.Text == "" {
			t.Errorf("%q: segment %d is empty", src, i)
		}
		if i > 0 && segs[i-1].Trusted == s.Trusted {
			t.Errorf("%q: segments %d and %d have one owner", src, i-1, i)
		}
		if s.Trusted {
			b.WriteString(s.Text)
		} else {
			b.WriteString("⟦" + s.Text + "⟧")
		}
	}
	return b.String()
}

func TestOwnership(t *testing.T) {
	const data = `{"u":"aXb","v":" Xy ","n":7,"f":1.5,"t":true,"l":["p","q"],"o":{"k":"w","b":[1,"z"]}}`
	for _, c := range []struct{ src, want string }{
		{"<s>{{ u }}</s>", "<s>⟦aXb⟧</s>"},
		{"{{ '<s>' + u + '</s>' }}", "<s>⟦aXb⟧</s>"},
		{"{{ '<s>' ~ u ~ n ~ t ~ f }}", "<s>⟦aXb7True1.5⟧"},
		{"{{ '<|' ~ loop ~ (1 + 2) ~ '|>' }}", "<|3|>"},
		{"{{ 1 + n }}{{ n * 2.0 }}{{ -n }}{{ n // 2 }}{{ n|string }}", "⟦814.0-737⟧"},
		{"{{ u|length }}{{ l|length }}{{ u.find('X') }}", "321"},
		{"{% for x in l %}{{ loop.index }}{{ x }}{% endfor %}", "1⟦p⟧2⟦q⟧"},
		{"{{ ('<' ~ u ~ '>')[0:3] }}|{{ ('<' ~ u ~ '>')[::-1] }}|{{ ('<' ~ u ~ '>')[-1] }}", "<⟦aX⟧|>⟦bXa⟧<|>"},
		{"{{ ('<S>' ~ v).strip() }}|{{ ('<S>' ~ v)|trim }}|{{ (v ~ '<S> ').lstrip() }}", "<S>⟦ Xy⟧|<S>⟦ Xy⟧|⟦Xy ⟧<S> "},
		{"{{ ('<S>' ~ u).lower() }}{{ ('<s>' ~ u)|upper }}{{ ('<s>' ~ u)|title }}{{ ('s' ~ u)|capitalize }}", "<s>⟦axb⟧<S>⟦AXB⟧<S>⟦axb⟧S⟦axb⟧"},
		{"{{ ('<' ~ u ~ '>').split('X') }}", "['<⟦a'⟧, ⟦'b⟧>']"},
		{"{{ ('<' ~ u).split('X')|join('<sep>') }}", "<⟦a⟧<sep>⟦b⟧"},
		{"{{ u.replace('X', '<s>') }}{{ '<s>'.replace('s', u) }}{{ u|replace('X', '|') }}", "⟦a⟧<s>⟦b⟧<⟦aXb⟧>⟦a⟧|⟦b⟧"},
		{"{{ '<%s|%d>' % (u, n) }}{{ '<%s>'|format(u) }}", "<⟦aXb⟧|⟦7⟧><⟦aXb⟧>"},
		{"{{ '<{}|{:>5}|{x}>'.format(u, u, x='q') }}{{ u.format() }}", "<⟦aXb⟧|  ⟦aXb⟧|q>⟦aXb⟧"},
		{"{{ l|tojson }}{{ o|tojson }}{{ ['<s>', u, n]|tojson }}", "⟦[\"p\", \"q\"]{\"k\": \"w\", \"b\": [1, \"z\"]}⟧[\"<s>\", ⟦\"aXb\"⟧, ⟦7⟧]"},
		{"{{ l }}{{ ['<s>', u] }}{{ {'k': u} }}", "⟦['p', 'q']⟧['<s>', ⟦'aXb'⟧]{'k': ⟦'aXb'⟧}"},
		{"{{ o.k }}{{ o['b'][1] }}{% for k, v in o.items() %}{{ k }}{% endfor %}", "⟦wzkb⟧"},
		{"{% macro m(x) %}<m>{{ x }}{{ caller() }}{% endmacro %}{% call m(u) %}<c>{{ n }}{% endcall %}", "<m>⟦aXb⟧<c>⟦7⟧"},
		{"{% set b %}<b>{{ u }}{% endset %}{{ b }}{% filter upper %}s{{ u }}{% endfilter %}", "<b>⟦aXb⟧S⟦AXB⟧"},
		{"{{ u * 2 }}{{ '<s>' * 2 }}{{ ('<' ~ u) * 2 }}", "⟦aXbaXb⟧<s><s><⟦aXb⟧<⟦aXb⟧"},
		{"{{ ('<s>\\n' ~ u)|indent(2) }}{{ u|center(7) }}{{ u.zfill(5) }}", "<s>\n  ⟦aXb⟧  ⟦aXb⟧  ⟦00aXb⟧"},
		{"{{ (u ~ '<s>')|truncate(5, true, '') }}{{ (u ~ ' <s>')|wordwrap(4) }}", "⟦aXb⟧<s>⟦aXb⟧\n<s>"},
		{"{{ ('<' ~ u)|e }}{{ ('<' ~ u)|list }}{{ ('<' ~ u)|reverse }}", "&lt;⟦aXb⟧['<', ⟦'a'⟧, ⟦'X'⟧, ⟦'b'⟧]⟦bXa⟧<"},
		{"{{ ('<b>' ~ u)|striptags }}{{ ('a ' ~ u)|urlize }}{{ ('a' ~ u)|pprint }}", "⟦aXba aXb'aaXb'⟧"},
		{"{{ '5'|int }}{{ u|int(3) }}{{ '%Y' and strftime_now('%Y') }}{{ strftime_now(u ~ '%Y') }}", "532026⟦aXb2026⟧"},
		{"{{ [u, '<s>']|first }}{{ [u, '<s>']|last }}{{ [u, '<s>']|join }}{{ l|map('upper')|join('|') }}", "⟦aXb⟧<s>⟦aXb⟧<s>⟦P⟧|⟦Q⟧"},
		{
			"{{ dict(a=1, **o)|list }}{% macro m() %}{{ kwargs|join }}{% endmacro %}{{ m(x=1, **o) }}{{ namespace(**o) }}",
			"['a', ⟦'k'⟧, ⟦'b'⟧]x⟦kb⟧<Namespace {⟦'k'⟧: ⟦'w'⟧, ⟦'b'⟧: ⟦[1, 'z']⟧}>",
		},
		{"{{ u|default('<d>') }}{{ zz|default('<d>') }}{{ u.partition('X')[1] }}{{ u.translate({97: '<s>'}) }}", "⟦aXb⟧<d>⟦X⟧<s>⟦Xb⟧"},
	} {
		if got := owners(t, c.src, data); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.src, got, c.want)
		}
	}
}

// TestTrusted checks that a caller can vouch for text of the data.
func TestTrusted(t *testing.T) {
	data := jinja.Object(jinja.Pair{Key: "bos_token", Value: jinja.Trusted("<s>")}, jinja.Pair{Key: "x", Value: jinja.String("<s>")})
	segs, err := parse(t, "{{ bos_token }}{{ x }}").Segments(context.Background(), data)
	if err != nil {
		t.Fatal(err)
	}
	want := []jinja.Segment{{Text: "<s>", Trusted: true}, {Text: "<s>"}}
	if fmt.Sprint(segs) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", segs, want)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		src  string
		kind error
		line int
		text string
	}{
		{"a\n{% if %}", jinja.ErrSyntax, 2, "Expected an expression"},
		{"\n\n{{ 'a }}", jinja.ErrSyntax, 3, "unexpected char"},
		{"{% for x in y %}", jinja.ErrSyntax, 1, "endfor"},
		{"{# x", jinja.ErrSyntax, 1, "comment"},
		{"x\n{{ 1|nope }}", jinja.ErrSyntax, 2, "No filter named 'nope'."},
		{"\n{% include 'x' %}", jinja.ErrUnsupported, 2, "include"},
		{"{% import 'x' as y %}", jinja.ErrUnsupported, 1, "import"},
		{"{% from 'x' import y %}", jinja.ErrUnsupported, 1, "from"},
		{"{% extends 'x' %}", jinja.ErrUnsupported, 1, "extends"},
		{"{{ lipsum() }}", jinja.ErrUnsupported, 1, "lipsum"},
		{"{{ 'a'.encode() }}", jinja.ErrUnsupported, 1, "bytes"},
		{"{% block a %}{{ super() }}{% endblock %}", jinja.ErrUnsupported, 1, "super"},
		{"\n\n{{ x.y }}", jinja.ErrUndefined, 3, "'x' is undefined"},
		{"{{ {}.a.b }}", jinja.ErrRuntime, 1, "'dict object' has no attribute 'a'"},
		{"\n{{ 1 + 'a' }}", jinja.ErrRuntime, 2, "TypeError"},
		{"{{ [].append(1) }}", jinja.ErrSecurity, 1, "unsafe"},
		{"\n{{ raise_exception('no ' ~ 5) }}", jinja.ErrRaised, 2, "no 5"},
		{"{% macro m() %}\n{{ 1/0 }}{% endmacro %}\n{{ m() }}", jinja.ErrRuntime, 2, "ZeroDivisionError"},
	} {
		tm, err := jinja.Parse("t", c.src)
		if err == nil {
			_, err = tm.Render(context.Background(), jinja.Value{})
		}
		var e *jinja.Error
		if !errors.As(err, &e) || !errors.Is(err, c.kind) || e.Line != c.line || !strings.Contains(err.Error(), c.text) || e.Name != "t" {
			t.Errorf("%q: got %v (%+v), want line %d, %v, %q", c.src, err, e, c.line, c.kind, c.text)
		}
	}
	tm := parse(t, "{{ raise_exception('why') }}")
	_, err := tm.Render(context.Background(), jinja.Value{})
	var e *jinja.Error
	if !errors.As(err, &e) || e.Message != "why" {
		t.Errorf("got %v, want the message alone", err)
	}
	if _, err := tm.Render(context.Background(), jinja.String("x")); !errors.Is(err, jinja.ErrData) {
		t.Errorf("a string as data: got %v", err)
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := parse(t, "x").Render(ctx, jinja.Value{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFromJSON(t *testing.T) {
	v, err := jinja.FromJSON([]byte(`{"z":1,"a":{"y":1.0,"b":-0},"z":2,"big":123456789012345678901234567890,"s":"\ud83d\ude42\u2028"}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(t, "{{ d }}").Render(context.Background(), jinja.Value{}.With("d", v))
	want := "{'z': 2, 'a': {'y': 1.0, 'b': 0}, 'big': 123456789012345678901234567890, 's': '🙂\\u2028'}"
	if err != nil || got != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
	if x, ok := v.Get("a"); !ok {
		t.Errorf("no key a: %v", x)
	}
	for _, bad := range []string{"", "{", "[1,]", "1 2", "NaN", "{1:2}", strings.Repeat("[", 600) + strings.Repeat("]", 600), strings.Repeat("9", 5000)} {
		if _, err := jinja.FromJSON([]byte(bad)); !errors.Is(err, jinja.ErrData) {
			t.Errorf("%.20q: got %v", bad, err)
		}
	}
	deep := strings.Repeat("[", jinja.MaxValueDepth) + strings.Repeat("]", jinja.MaxValueDepth)
	if _, err := jinja.FromJSON([]byte(deep)); err != nil {
		t.Errorf("at the limit of depth: %v", err)
	}
}

// TestParallel renders one template with one value from many goroutines; the race
// detector watches.
func TestParallel(t *testing.T) {
	tm := parse(t, "{% for m in ms %}<|{{ m.role|upper }}|>{{ m.content[1:] }}é{{ 'ab'[0] }}{% endfor %}")
	v, err := jinja.FromJSON([]byte(`{"ms":[{"role":"user","content":"héllo"},{"role":"bot","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 20 {
				got, err := tm.Render(context.Background(), v)
				if want := "<|USER|>élloéa<|BOT|>éa"; err != nil || got != want {
					t.Errorf("got %q, %v", got, err)
				}
			}
		}()
	}
	wg.Wait()
}
