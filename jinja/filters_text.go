package jinja

import (
	"html"
	"strings"
)

func init() {
	text := func(name string, f func(t *text) *text) {
		addFilter(name, "s", func(vm *machine, a []Value) Value {
			t := toText(vm, a[0])
			vm.scan(len(t.s))
			return vm.made(f(t))
		})
	}
	text("upper", upperText)
	text("lower", lowerText)
	text("capitalize", capitalize)
	addFilter("title", "s", func(vm *machine, a []Value) Value {
		t := toText(vm, a[0])
		vm.scan(6 * len(t.s)) // each word is a text of its own
		return vm.made(titleFilter(t))
	})
	addFilter("string", "object, /", func(vm *machine, a []Value) Value { return strVal(toText(vm, a[0])) })
	addFilter("trim", "value, chars=None", func(vm *machine, a []Value) Value {
		return strVal(strip(vm, toText(vm, a[0]), a[1], true, true))
	})
	addFilter("center", "value, width=80", func(vm *machine, a []Value) Value {
		return center(vm, toText(vm, a[0]), argSize("center", a[1]), newText(" ", true))
	})
	addFilter("replace", "s, old, new, count=None", func(vm *machine, a []Value) Value {
		n := -1
		if a[3].kind != kNone {
			n = argSize("replace", a[3])
		}
		s, old, repl := toText(vm, a[0]), toText(vm, a[1]), toText(vm, a[2])
		if !vm.escape {
			return replaceText(vm, unsafeText(s), unsafeText(old), unsafeText(repl), n)
		}
		if old.safe || repl.safe && !s.safe {
			s = escapeHTML(vm, strVal(s))
		}
		return replaceText(vm, s, old, repl, n)
	})
	filters["format"] = &filter{func(vm *machine, _ string, v Value, a args) Value {
		if len(a.pos) > 0 && len(a.names) > 0 {
			filterArgError("can't handle positional and keyword arguments at the same time")
		}
		if len(a.names) > 0 {
			return percent(vm, toText(vm, v), kwDict(a))
		}
		return percent(vm, toText(vm, v), tupleVal(a.pos))
	}}
	addFilter("indent", "s, width=4, first=False, blank=False", indent)
	addFilter("truncate", "s, length=255, killwords=False, end='...', leeway=None", truncate)
	addFilter("wordcount", "s", func(vm *machine, a []Value) Value {
		n, in := 0, false
		t := toText(vm, a[0])
		vm.scan(len(t.s))
		for _, r := range t.s {
			w := isWord(r)
			if w && !in {
				n++
			}
			in = w
		}
		return intVal(n)
	})
	addFilter("wordwrap", "s, width=79, break_long_words=True, wrapstring=None, break_on_hyphens=True", wordwrap)
	for _, n := range []string{"e", "escape"} {
		addFilter(n, "s, /", func(vm *machine, a []Value) Value { return vm.made(escapeHTML(vm, a[0])) })
	}
	addFilter("forceescape", "value", func(vm *machine, a []Value) Value {
		return vm.made(escapeHTML(vm, strVal(unsafeText(toText(vm, a[0])))))
	})
	addFilter("safe", "value", func(vm *machine, a []Value) Value { return markup(toText(vm, a[0])) })
	addFilter("striptags", "value", func(vm *machine, a []Value) Value { return stripTags(vm, toText(vm, a[0])) })
	addFilter("urlencode", "value", urlEncode)
	addFilter("xmlattr", "d, autospace=True", xmlAttr)
	addFilter("urlize", "value, trim_url_limit=None, nofollow=False, target=None, rel=None, extra_schemes=None", urlize)
	addFilter("pprint", "value", func(vm *machine, a []Value) Value { return pprint(vm, a[0]) })
}

func kwDict(a args) Value {
	d := newDict(len(a.names))
	for i := range a.names {
		d.set(a.key(i), a.vals[i])
	}
	return dictVal(d)
}

// titleFilter capitalizes after white space and a few opening characters.
func titleFilter(t *text) *text {
	isSep := func(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }
	var b builder
	for at := 0; at < len(t.s); {
		end := strings.IndexFunc(t.s[at:], isSep)
		if end == 0 {
			end = strings.IndexFunc(t.s[at:], func(r rune) bool { return !isSep(r) })
		}
		if end < 0 {
			end = len(t.s) - at
		}
		item := t.sub(at, at+end)
		rest := item.sub(runeLen(item.s[0]), end)
		b.addText(upperText(item.sub(0, runeLen(item.s[0]))))
		b.addText(lowerText(rest))
		at += end
	}
	r := b.text()
	r.safe = t.safe
	return r
}

func indent(vm *machine, a []Value) Value {
	use(a[0])
	t := argText("indent", a[0])
	var in *text
	if a[1].kind == kStr {
		in = a[1].text()
	} else {
		n := argIndex("indent", a[1])
		vm.fits(n)
		in = newText(strings.Repeat(" ", max(n, 0)), true)
	}
	nl := newText("\n", true)
	first, blank := truth(a[2]), truth(a[3])
	if t.safe {
		in = escapeHTML(vm, strVal(in))
	}
	vm.fits(len(t.s) + 1)
	lines := splitLines(vm, concat(t, nl), false)
	var b builder
	for i, l := range lines {
		vm.fits(len(b.buf) + len(in.s) + len(l.s))
		vm.charge(len(in.s) + len(l.s))
		if i > 0 {
			b.addText(nl)
		}
		if i == 0 && first || i > 0 && (blank || l.s != "") {
			b.addText(in)
		}
		b.addText(l)
	}
	r := b.text()
	r.safe = t.safe
	return vm.made(r)
}

func truncate(vm *machine, a []Value) Value {
	end := argText("truncate", a[3])
	size := argIndex("truncate", a[1])
	leeway := 5
	if a[4].kind != kNone {
		leeway = argIndex("truncate", a[4])
	}
	if size < end.length() {
		raise(ErrRuntime, "AssertionError", "expected length >= %d, got %d", end.length(), size)
	}
	if leeway < 0 {
		raise(ErrRuntime, "AssertionError", "expected leeway >= 0, got %d", leeway)
	}
	n, ok := length(a[0])
	if ok && n <= size+leeway {
		return a[0]
	}
	t := argText("truncate", a[0])
	vm.charge(len(t.s))
	cut := t.points(0, size-end.length())
	if !truth(a[2]) {
		if i := strings.LastIndexByte(cut.s, ' '); i >= 0 {
			cut = cut.sub(0, i)
		}
	}
	return vm.made(concat(cut, end))
}

// stripTags removes comments and tags, joins white space and reads entities.
func stripTags(vm *machine, t *text) Value {
	vm.scan(2 * len(t.s))
	s := t.s
	for {
		i := strings.Index(s, "<!--")
		if i < 0 {
			break
		}
		j := strings.Index(s[i:], "-->")
		if j < 0 {
			break
		}
		s = s[:i] + s[i+j+3:]
		vm.charge(len(s))
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		j := strings.IndexByte(s[i:], '>')
		if j < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[i+j+1:]
	}
	b.WriteString(s)
	s = html.UnescapeString(strings.Join(strings.FieldsFunc(b.String(), isSpace), " "))
	return vm.made(newText(cleanUTF8(s), t.allOwn()))
}

func urlEncode(vm *machine, a []Value) Value {
	v := a[0]
	if v.kind == kStr || tryIterate(v) == nil {
		return vm.made(quoteURL(vm, toText(vm, v), false))
	}
	if v.kind == kDict {
		v = Value{kind: kView, data: v.data, ref: &view{"items", v.dict()}}
	}
	var b builder
	it := iterate(vm, v)
	for n := 0; ; n++ {
		x := it.next(vm)
		if x.missing() {
			return vm.made(b.text())
		}
		kv := vm.unpack(x, 2)
		if n > 0 {
			b.add("&", !v.data)
		}
		b.addText(quoteURL(vm, toText(vm, kv[0]), true))
		b.add("=", !v.data)
		b.addText(quoteURL(vm, toText(vm, kv[1]), true))
		vm.fits(len(b.buf))
	}
}

// quoteURL percent-encodes; in a query a space is a plus and a slash encoded.
func quoteURL(vm *machine, t *text, query bool) *text {
	vm.scan(2 * len(t.s))
	return unsafeText(t.mapRunes(func(dst []byte, _ int, r rune) []byte {
		switch {
		case r < 0x80 && isAlnum(byte(r)), r == '_', r == '.', r == '-', r == '~', r == '/' && !query:
			return append(dst, byte(r))
		case r == ' ' && query:
			return append(dst, '+')
		}
		for _, c := range []byte(string(r)) {
			dst = append(dst, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		}
		return dst
	}))
}

func xmlAttr(vm *machine, a []Value) Value {
	use(a[0])
	if a[0].kind != kDict {
		typeError("'%s' object has no attribute 'items'", typeName(a[0]))
	}
	d := a[0].dict()
	var b builder
	for i, k := range d.keys {
		v := d.vals[i]
		vm.step(keySteps)
		if v.kind == kNone || v.kind == kUndef {
			continue
		}
		key := argText("xmlattr", k)
		vm.scan(len(key.s))
		if strings.ContainsAny(key.s, " \t\n\r\f\v/>=") {
			valueError("Invalid character in attribute name: %s", quote(key.s))
		}
		if len(b.buf) > 0 || truth(a[1]) {
			b.add(" ", true)
		}
		b.addText(escapeHTML(vm, k))
		b.add("=\"", true)
		b.addText(escapeHTML(vm, v))
		b.add("\"", true)
		vm.fits(len(b.buf))
	}
	t := b.text()
	t.safe = vm.escape
	return vm.made(t)
}
