package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// toText is str(v).
func toText(vm *machine, v Value) *text {
	switch v.kind {
	case kStr:
		return v.text()
	case kUndef:
		return emptyStr.text()
	case kNone:
		return newText("None", !v.data)
	case kBool:
		if v.num == 1 {
			return newText("True", !v.data)
		}
		return newText("False", !v.data)
	case kInt, kBig:
		chargeBig(vm, v)
		return newText(formatInt(v), !v.data)
	case kFloat:
		return newText(formatFloat(v.float()), !v.data)
	}
	var b builder
	appendRepr(vm, &b, v, 0)
	return b.text()
}

func toRepr(vm *machine, v Value) *text {
	var b builder
	appendRepr(vm, &b, v, 0)
	return b.text()
}

// appendRepr writes repr(v). The punctuation of a container belongs to the data
// where the container does.
func appendRepr(vm *machine, b *builder, v Value, depth int) {
	vm.step(valueSteps)
	vm.fits(len(b.buf))
	if depth > MaxValueDepth {
		limitError("repr", "a value nested more than %d deep", MaxValueDepth)
	}
	mine := !v.data
	list := func(open, end string, items []Value) {
		b.add(open, mine)
		for i, x := range items {
			if i > 0 {
				b.add(", ", mine)
			}
			appendRepr(vm, b, x, depth+1)
		}
		b.add(end, mine)
	}
	switch v.kind {
	case kStr:
		vm.scan(len(v.text().s))
		if v.text().safe {
			b.add("Markup(", true)
			b.addText(reprText(v.text()))
			b.add(")", true)
			return
		}
		b.addText(reprText(v.text()))
	case kUndef:
		b.add("Undefined", mine)
	case kNone, kBool, kInt, kBig, kFloat:
		b.addText(toText(vm, v))
	case kList:
		list("[", "]", v.items())
	case kTuple:
		if len(v.tuple()) == 1 {
			list("(", ",)", v.tuple())
		} else {
			list("(", ")", v.tuple())
		}
	case kDict:
		d := v.dict()
		b.add("{", mine)
		for i, k := range d.keys {
			if i > 0 {
				b.add(", ", mine)
			}
			appendRepr(vm, b, k, depth+1)
			b.add(": ", mine)
			appendRepr(vm, b, d.vals[i], depth+1)
		}
		b.add("}", mine)
	case kRange:
		r := v.rng()
		s := fmt.Sprintf("range(%d, %d)", r.start, r.stop)
		if r.step != 1 {
			s = fmt.Sprintf("range(%d, %d, %d)", r.start, r.stop, r.step)
		}
		b.add(s, mine)
	case kView:
		w := v.ref.(*view)
		b.add("dict_"+w.what+"(", mine)
		appendRepr(vm, b, listVal(toItems(vm, v)).withData(v.data), depth+1)
		b.add(")", mine)
	case kNamespace:
		b.add("<Namespace ", mine)
		appendRepr(vm, b, dictVal(v.ref.(*namespace).attrs), depth+1)
		b.add(">", mine)
	case kMacro:
		name := "anonymous"
		if n := v.ref.(*macro).def.name; n != "" {
			name = quote(n)
		}
		b.add("<Macro "+name+">", mine)
	case kLoop:
		l := v.ref.(*loopState)
		b.add(fmt.Sprintf("<LoopContext %d/%d>", l.index0+1, l.length(vm)), mine)
	case kFunc:
		f := v.ref.(*function)
		switch {
		case f.alias:
			b.add(f.name, mine)
		case f.class:
			b.add("<class '"+f.name+"'>", mine)
		default:
			b.add("<built-in function "+f.name+">", mine)
		}
	case kBlocks:
		b.add("<TemplateReference None>", mine)
	default:
		b.add("<"+typeName(v)+" object>", mine)
	}
}

// reprText is repr() of a string: single quotes, unless it has some and no
// double ones.
func reprText(t *text) *text {
	q := byte('\'')
	if strings.IndexByte(t.s, '\'') >= 0 && strings.IndexByte(t.s, '"') < 0 {
		q = '"'
	}
	body := t.mapRunes(func(dst []byte, _ int, r rune) []byte {
		switch {
		case r == rune(q) || r == '\\':
			return append(dst, '\\', byte(r))
		case r == '\n':
			return append(dst, '\\', 'n')
		case r == '\r':
			return append(dst, '\\', 'r')
		case r == '\t':
			return append(dst, '\\', 't')
		case isPrintable(r):
			return utf8.AppendRune(dst, r)
		case r < 0x100:
			return appendHex(append(dst, '\\', 'x'), r, 2)
		case r < 0x10000:
			return appendHex(append(dst, '\\', 'u'), r, 4)
		}
		return appendHex(append(dst, '\\', 'U'), r, 8)
	})
	body.safe = false
	var b builder
	b.add(string(q), t.ownAt(0))
	b.addText(body)
	b.add(string(q), t.ownAt(len(t.s)))
	return b.text()
}

// quote is repr() of a string of this package's own.
func quote(s string) string { return reprText(newText(s, true)).s }

// shortRepr names a value in an error.
func shortRepr(v Value) string {
	switch v.kind {
	case kStr:
		return quote(v.text().s)
	case kInt:
		return formatInt(v)
	case kFloat:
		return formatFloat(v.float())
	}
	return typeName(v)
}

// markup marks text as HTML that needs no escaping.
func markup(t *text) Value { return strVal(safeText(t)) }

func safeText(t *text) *text {
	c := *t
	c.safe = true
	return &c
}

func unsafeText(t *text) *text {
	if !t.safe {
		return t
	}
	c := *t
	c.safe = false
	return &c
}

// escapeHTML is markupsafe's escape(v).
func escapeHTML(vm *machine, v Value) *text {
	t := toText(vm, v)
	if t.safe {
		return t
	}
	vm.scan(len(t.s))
	if !strings.ContainsAny(t.s, "&<>'\"") {
		return safeText(t)
	}
	vm.fits(len(t.s) + 4*strings.Count(t.s, "&") + 3*(strings.Count(t.s, "<")+strings.Count(t.s, ">")) +
		4*(strings.Count(t.s, "'")+strings.Count(t.s, "\"")))
	return safeText(t.mapRunes(func(dst []byte, _ int, r rune) []byte {
		switch r {
		case '&':
			return append(dst, "&amp;"...)
		case '<':
			return append(dst, "&lt;"...)
		case '>':
			return append(dst, "&gt;"...)
		case '\'':
			return append(dst, "&#39;"...)
		case '"':
			return append(dst, "&#34;"...)
		}
		return utf8.AppendRune(dst, r)
	}))
}
