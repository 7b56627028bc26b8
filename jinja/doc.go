// Package jinja is a template engine for chat templates. It renders the Jinja2
// language as Python's Jinja2 3.1 does in the set-up that the transformers
// library gives it: the immutable sandbox, trim_blocks and lstrip_blocks on,
// the loop controls, the generation tag, a tojson filter that is json.dumps
// with ensure_ascii off, and the globals raise_exception and strftime_now.
// The output is the same byte for byte, and a template that fails there fails
// here.
//
//	t, err := jinja.Parse("chat", source)
//	data, err := jinja.FromJSON(request)
//	prompt, err := t.Render(ctx, data)
//
// # Untrusted templates
//
// A template may come from a stranger's file. Nothing it does reaches the
// outside: there is no include, import or extends. Work is bounded by [Limits]
// (source size, nesting, steps, call depth, value size, output size) and by the
// context given to Render. Every failure is an [*Error] that wraps one of the
// sentinels of this package and names the line of the template.
//
// # Ownership of text
//
// Text that a template prints has one of two owners. Template text is what its
// author wrote: literal text, string literals in expressions, and what the
// template computes from those alone. Everything that comes from the data given
// to Render, or depends on its characters, belongs to the data. [Template.Segments] keeps the two apart, so that
// a caller may read control tokens in the first and never in the second.
// Ownership follows each character through slices, methods, filters, macros and
// formatting; where one result mixes both and cannot be told apart it belongs
// to the data. Counts that a template makes itself, such as loop.index or the
// length of a list, are template text.
//
// # Values
//
// [FromJSON] keeps the order of object keys. Strings are sequences of code
// points, integers have any size up to [MaxIntBits], floats print as Python
// prints them.
//
// A Template is immutable after Parse and may be used by many goroutines.
package jinja
