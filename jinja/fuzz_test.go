package jinja_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/minfer-go/minfer/jinja"
)

// FuzzRender parses and renders anything: it must never panic nor report a fault
// of its own, every failure is an Error with a known kind, and the segments are
// the text.
func FuzzRender(f *testing.F) {
	const data = `{"messages":[{"role":"user","content":"héllo <b>"},{"role":"assistant","content":null}],"n":3,"f":2.5,"s":"añ🙂","t":true,"d":{"b":1,"a":{"c":[1,2]}}}`
	for _, r := range readRows(f, filepath.Join("testdata", "rows.jsonl")) {
		if r.Template != "" {
			f.Add(r.Template, data)
		}
	}
	kinds := []error{jinja.ErrSyntax, jinja.ErrUnsupported, jinja.ErrRuntime, jinja.ErrRaised, jinja.ErrLimit, jinja.ErrData}
	limits := jinja.Limits{Steps: 100_000, TextBytes: 1 << 16, OutputBytes: 1 << 16, Items: 1 << 12}
	f.Fuzz(func(t *testing.T, src, data string) {
		fail := func(err error) {
			var e *jinja.Error
			if !errors.As(err, &e) {
				t.Fatalf("%q: %v is no *Error", src, err)
			}
			for _, k := range kinds {
				if errors.Is(err, k) {
					return
				}
			}
			t.Fatalf("%q: %v has no known kind", src, err)
		}
		tm, err := jinja.Parse("fuzz", src, jinja.WithLimits(limits), jinja.WithClock(clock))
		if err != nil {
			fail(err)
			return
		}
		v, err := jinja.FromJSON([]byte(data))
		if err != nil {
			v = jinja.Value{}
		}
		out, err := tm.Render(context.Background(), v)
		if err != nil {
			fail(err)
			return
		}
		if !utf8.ValidString(out) {
			t.Fatalf("%q: the output %q is no UTF-8", src, out)
		}
		segs, err := tm.Segments(context.Background(), v)
		if err != nil {
			t.Fatalf("%q: rendered once, then %v", src, err)
		}
		text := ""
		for i, s := range segs {
			text += s.Text
			if s.Text == "" || i > 0 && segs[i-1].Trusted == s.Trusted {
				t.Fatalf("%q: bad segments %v", src, segs)
			}
		}
		if text != out {
			t.Fatalf("%q: segments %q, text %q", src, text, out)
		}
	})
}
