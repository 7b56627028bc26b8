package jinja

import (
	"strings"
	"unicode/utf8"
)

func init() {
	m := methods{}
	strMethods = m
	textMethod := func(name string, f func(t *text) *text) {
		m.add(name, "/", func(vm *machine, self Value, _ []Value) Value {
			vm.scan(len(self.text().s))
			return vm.made(f(self.text()))
		})
	}
	textMethod("lower", lowerText)
	textMethod("upper", upperText)
	textMethod("casefold", func(t *text) *text {
		return t.mapRunes(func(dst []byte, _ int, r rune) []byte { return appendFold(dst, r) })
	})
	textMethod("capitalize", capitalize)
	textMethod("title", titleText)
	textMethod("swapcase", func(t *text) *text {
		return t.mapRunes(func(dst []byte, i int, r rune) []byte {
			if isUpper(r) {
				return appendLower(dst, t.s, i, r)
			} else if isLower(r) {
				return appendUpper(dst, r)
			}
			return utf8.AppendRune(dst, r)
		})
	})
	m.add("strip", "chars=None, /", func(vm *machine, self Value, a []Value) Value {
		return strVal(strip(vm, self.text(), a[0], true, true))
	})
	m.add("lstrip", "chars=None, /", func(vm *machine, self Value, a []Value) Value {
		return strVal(strip(vm, self.text(), a[0], true, false))
	})
	m.add("rstrip", "chars=None, /", func(vm *machine, self Value, a []Value) Value {
		return strVal(strip(vm, self.text(), a[0], false, true))
	})
	m.add("removeprefix", "prefix, /", func(vm *machine, self Value, a []Value) Value {
		t, p := self.text(), argText("removeprefix", a[0]).s
		vm.cut(t, len(p))
		if strings.HasPrefix(t.s, p) {
			return strVal(t.sub(len(p), len(t.s)))
		}
		return self
	})
	m.add("removesuffix", "suffix, /", func(vm *machine, self Value, a []Value) Value {
		t, p := self.text(), argText("removesuffix", a[0]).s
		vm.cut(t, len(p))
		if strings.HasSuffix(t.s, p) {
			return strVal(t.sub(0, len(t.s)-len(p)))
		}
		return self
	})
	for name, before := range map[string]bool{"ljust": false, "rjust": true} {
		m.add(name, "width, fillchar=' ', /", func(vm *machine, self Value, a []Value) Value {
			n, fill := argSize(name, a[0])-self.text().length(), fillChar(name, a[1])
			if before {
				return pad(vm, self.text(), fill, n, 0)
			}
			return pad(vm, self.text(), fill, 0, n)
		})
	}
	m.add("center", "width, fillchar=' ', /", func(vm *machine, self Value, a []Value) Value {
		return center(vm, self.text(), argSize("center", a[0]), fillChar("center", a[1]))
	})
	m.add("zfill", "width, /", func(vm *machine, self Value, a []Value) Value {
		t := self.text()
		n := argSize("zfill", a[0]) - t.length()
		sign := 0
		if t.s != "" && (t.s[0] == '-' || t.s[0] == '+') {
			sign = 1
		}
		zeros := pad(vm, t.sub(sign, len(t.s)), newText("0", t.ownAt(0)), n, 0).text()
		return vm.made(concat(t.sub(0, sign), zeros))
	})
	m.add("expandtabs", "tabsize=8", func(vm *machine, self Value, a []Value) Value {
		return expandTabs(vm, self.text(), argSize("expandtabs", a[0]))
	})
	m.add("replace", "old, new, count=-1, /", func(vm *machine, self Value, a []Value) Value {
		return replaceText(vm, self.text(), argText("replace", a[0]), argText("replace", a[1]), argSize("replace", a[2]))
	})
	m.add("join", "iterable, /", func(vm *machine, self Value, a []Value) Value {
		use(a[0])
		items := toItems(vm, a[0])
		vm.step(len(items))
		for i, x := range items {
			if x.kind != kStr {
				use(x)
				typeError("sequence item %d: expected str instance, %s found", i, typeName(x))
			}
		}
		if self.text().safe {
			safe := make([]Value, len(items))
			for i, x := range items {
				safe[i] = strVal(escapeHTML(vm, x))
			}
			return markup(join(vm, self.text(), safe))
		}
		return strVal(unsafeText(join(vm, self.text(), items)))
	})
	m.add("encode", "encoding='utf-8', errors='strict'", func(*machine, Value, []Value) Value {
		raise(ErrUnsupported, "encode", "bytes")
		return none
	})
	m["format"] = &method{"format", func(vm *machine, self Value, a args) Value {
		return formatBraces(vm, self.text(), a)
	}}
	m.add("format_map", "mapping, /", func(vm *machine, self Value, a []Value) Value {
		use(a[0])
		if a[0].kind != kDict && strings.Contains(self.text().s, "{") {
			typeError("'%s' object is not a mapping", typeName(a[0]))
		}
		return formatMap(vm, self.text(), a[0])
	})
	addSearchMethods(m)
	addPredicates(m)
	addTranslate(m)
}

func fillChar(fn string, v Value) *text {
	t := argText(fn, v)
	if t.length() != 1 {
		typeError("The fill character must be exactly one character long")
	}
	return t
}

// pad puts copies of fill on both sides.
func pad(vm *machine, t, fill *text, left, right int) Value {
	left, right = max(left, 0), max(right, 0)
	if left > vm.limits.TextBytes || right > vm.limits.TextBytes {
		vm.fits(1 << 62)
	}
	vm.fits(len(t.s) + (left+right)*len(fill.s))
	vm.charge(2 * (len(t.s) + (left+right)*len(fill.s)))
	var b builder
	b.addText(fill.repeat(left))
	b.addText(t)
	b.addText(fill.repeat(right))
	r := b.text()
	r.safe = t.safe
	return vm.made(r)
}

func center(vm *machine, t *text, width int, fill *text) Value {
	n := width - t.length()
	if n <= 0 {
		return strVal(t)
	}
	left := n/2 + n&width&1
	return pad(vm, t, fill, left, n-left)
}

func capitalize(t *text) *text {
	return t.mapRunes(func(dst []byte, i int, r rune) []byte {
		if i == 0 {
			return appendTitle(dst, r)
		}
		return appendLower(dst, t.s, i, r)
	})
}

func titleText(t *text) *text {
	in := false
	return t.mapRunes(func(dst []byte, i int, r rune) []byte {
		if in {
			dst = appendLower(dst, t.s, i, r)
		} else {
			dst = appendTitle(dst, r)
		}
		in = isCased(r)
		return dst
	})
}

// strip removes characters from the ends: white space where chars is None.
func strip(vm *machine, t *text, chars Value, left, right bool) *text {
	drop := func(r rune) bool {
		vm.step(1)
		return isSpace(r)
	}
	use(chars)
	if chars.kind != kNone {
		s := argText("strip", chars).s
		drop = func(r rune) bool {
			vm.charge(len(s))
			return strings.ContainsRune(s, r)
		}
	}
	i, j := 0, len(t.s)
	if left {
		i = j - len(strings.TrimLeftFunc(t.s, drop))
	}
	if right {
		j = i + len(strings.TrimRightFunc(t.s[i:], drop))
	}
	if t.runs != nil {
		vm.charge(j - i)
	}
	return t.sub(i, j)
}

// cut charges the comparison of n bytes with an end of t, and the copy of the rest
// where its owners differ.
func (vm *machine) cut(t *text, n int) {
	vm.charge(min(n, len(t.s)))
	if t.runs != nil {
		vm.charge(len(t.s))
	}
}

func expandTabs(vm *machine, t *text, size int) Value {
	if size > vm.limits.TextBytes || size > 0 && strings.Count(t.s, "\t") > vm.limits.TextBytes/size {
		vm.fits(1 << 62)
	}
	vm.scan(len(t.s))
	col := 0
	return vm.made(t.mapRunes(func(dst []byte, _ int, r rune) []byte {
		switch r {
		case '\t':
			if size > 0 {
				n := size - col%size
				col += n
				for ; n > 0; n-- {
					dst = append(dst, ' ')
				}
			}
			return dst
		case '\n', '\r':
			col = 0
		default:
			col++
		}
		return utf8.AppendRune(dst, r)
	}))
}

// replaceText is str.replace; a negative count means all.
func replaceText(vm *machine, t, old, new *text, count int) Value {
	vm.charge(len(t.s))
	n := strings.Count(t.s, old.s)
	if count >= 0 && count < n {
		n = count
	}
	if n == 0 {
		return strVal(t)
	}
	vm.step(4 * n)
	if grow := len(new.s) - len(old.s); grow > 0 && n > vm.limits.TextBytes/grow {
		vm.fits(1 << 62)
	}
	vm.fits(len(t.s) + n*(len(new.s)-len(old.s)))
	if t.safe {
		old, new = escapeHTML(vm, strVal(old)), escapeHTML(vm, strVal(new))
	}
	var b builder
	at := 0
	if old.s == "" {
		// An empty string stands before each character and at the end.
		for ; n > 0; n-- {
			b.addText(new)
			if at < len(t.s) {
				w := runeLen(t.s[at])
				b.addSub(t, at, at+w)
				at += w
			}
		}
	} else {
		for ; n > 0; n-- {
			i := strings.Index(t.s[at:], old.s)
			if i < 0 {
				break
			}
			b.addSub(t, at, at+i)
			b.addText(new)
			at += i + len(old.s)
		}
	}
	b.addSub(t, at, len(t.s))
	r := b.text()
	r.safe = t.safe
	return vm.made(r)
}
