package jinja

import "strings"

// addSearchMethods adds what finds, counts and splits.
func addSearchMethods(m methods) {
	find := func(name string, last, must bool) {
		m.add(name, "sub, start=None, end=None, /", func(vm *machine, self Value, a []Value) Value {
			t, sub := self.text(), argText(name, a[0])
			vm.charge(len(t.s))
			i, j, ok := window(vm, t, a[1], a[2])
			at := -1
			if ok {
				if last {
					at = strings.LastIndex(t.s[i:j], sub.s)
				} else {
					at = strings.Index(t.s[i:j], sub.s)
				}
			}
			if at >= 0 {
				return intVal(t.index(i + at))
			}
			if must {
				valueError("substring not found")
			}
			return intVal(-1)
		})
	}
	find("find", false, false)
	find("rfind", true, false)
	find("index", false, true)
	find("rindex", true, true)
	m.add("count", "sub, start=None, end=None, /", func(vm *machine, self Value, a []Value) Value {
		t, sub := self.text(), argText("count", a[0])
		vm.charge(len(t.s))
		i, j, ok := window(vm, t, a[1], a[2])
		if !ok {
			return intVal(0)
		}
		if sub.s == "" {
			vm.step((j - i) / scanBytes)
		}
		return intVal(strings.Count(t.s[i:j], sub.s))
	})
	affix := func(name string, has func(s, p string) bool) {
		m.add(name, "prefix, start=None, end=None, /", func(vm *machine, self Value, a []Value) Value {
			i, j, ok := window(vm, self.text(), a[1], a[2])
			test := func(v Value) bool {
				use(v)
				if v.kind != kStr {
					typeError("%s first arg must be str or a tuple of str, not %s", name, typeName(v))
				}
				if ok {
					vm.charge(min(j-i, len(v.text().s)))
				}
				return ok && has(self.text().s[i:j], v.text().s)
			}
			if a[0].kind != kTuple {
				return boolVal(test(a[0]))
			}
			for _, p := range a[0].tuple() {
				vm.step(1)
				if test(p) {
					return pyTrue
				}
			}
			return pyFalse
		})
	}
	affix("startswith", strings.HasPrefix)
	affix("endswith", strings.HasSuffix)
	m.add("split", "sep=None, maxsplit=-1", func(vm *machine, self Value, a []Value) Value {
		return split(vm, self.text(), a[0], argSize("split", a[1]), false)
	})
	m.add("rsplit", "sep=None, maxsplit=-1", func(vm *machine, self Value, a []Value) Value {
		return split(vm, self.text(), a[0], argSize("rsplit", a[1]), true)
	})
	m.add("splitlines", "keepends=False", func(vm *machine, self Value, a []Value) Value {
		keep := 0
		if a[0].kind != kBool {
			keep = argIndex("splitlines", a[0])
		} else {
			keep = int(a[0].num)
		}
		return listVal(textVals(splitLines(vm, self.text(), keep != 0)))
	})
	partition := func(name string, last bool) {
		m.add(name, "sep, /", func(vm *machine, self Value, a []Value) Value {
			t, sep := self.text(), argText(name, a[0])
			if sep.s == "" {
				valueError("empty separator")
			}
			vm.charge(len(t.s))
			at := strings.Index(t.s, sep.s)
			if last {
				at = strings.LastIndex(t.s, sep.s)
			}
			none := t.sub(0, 0)
			parts := []*text{t, none, none}
			if at >= 0 {
				// The separator is the one of the text, with its owner.
				end := at + len(sep.s)
				parts = []*text{t.sub(0, at), t.sub(at, end), t.sub(end, len(t.s))}
			} else if last {
				parts = []*text{none, none, t}
			}
			return tupleVal(textVals(parts))
		})
	}
	partition("partition", false)
	partition("rpartition", true)
}

// window is the bytes of t between two code points, as find takes them. It is
// not ok where the start is past the end of the text.
func window(vm *machine, t *text, start, end Value) (i, j int, ok bool) {
	if start.kind == kNone && end.kind == kNone {
		return 0, len(t.s), true
	}
	n := t.length()
	at := func(v Value, def int) int {
		if v.kind == kNone {
			return def
		}
		use(v)
		if !v.isInt() {
			typeError("slice indices must be integers or None or have an __index__ method")
		}
		k := argIndex("find", v)
		if k < 0 {
			k = max(k+n, 0)
		}
		return k
	}
	a, b := at(start, 0), min(at(end, n), n)
	if a > b {
		return 0, 0, false
	}
	if !t.ascii() {
		vm.charge(a + b) // both characters are counted to
	}
	return t.offset(a), t.offset(b), true
}

func textVals(ts []*text) []Value {
	vals := make([]Value, len(ts))
	for i, t := range ts {
		vals[i] = strVal(t)
	}
	return vals
}

// split is str.split and str.rsplit; a negative limit means none.
func split(vm *machine, t *text, sep Value, limit int, right bool) Value {
	vm.charge(len(t.s))
	if limit < 0 {
		limit = 1 << 62
	}
	use(sep)
	var parts []*text
	add := func(i, j int) {
		vm.grow(len(parts))
		vm.step(textSteps)
		parts = append(parts, t.sub(i, j))
	}
	switch {
	case sep.kind == kNone && !right:
		vm.scan(len(t.s))
		splitSpace(t, limit, add)
	case sep.kind == kNone:
		vm.scan(len(t.s))
		rsplitSpace(t, limit, add)
	default:
		s := argText("split", sep).s
		if s == "" {
			valueError("empty separator")
		}
		if right {
			end := len(t.s)
			for ; limit > 0; limit-- {
				i := strings.LastIndex(t.s[:end], s)
				if i < 0 {
					break
				}
				add(i+len(s), end)
				end = i
			}
			add(0, end)
			break
		}
		at := 0
		for ; limit > 0; limit-- {
			i := strings.Index(t.s[at:], s)
			if i < 0 {
				break
			}
			add(at, at+i)
			at += i + len(s)
		}
		add(at, len(t.s))
	}
	if right {
		for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
			parts[i], parts[j] = parts[j], parts[i]
		}
	}
	return listVal(textVals(parts))
}

func splitSpace(t *text, limit int, add func(i, j int)) {
	at := 0
	for {
		at = len(t.s) - len(strings.TrimLeftFunc(t.s[at:], isSpace))
		if at == len(t.s) {
			return
		}
		if limit == 0 {
			add(at, len(t.s))
			return
		}
		limit--
		j := strings.IndexFunc(t.s[at:], isSpace)
		if j < 0 {
			add(at, len(t.s))
			return
		}
		add(at, at+j)
		at += j
	}
}

// rsplitSpace adds the parts from the last to the first.
func rsplitSpace(t *text, limit int, add func(i, j int)) {
	end := len(t.s)
	for {
		end = len(strings.TrimRightFunc(t.s[:end], isSpace))
		if end == 0 {
			return
		}
		if limit == 0 {
			add(0, end)
			return
		}
		limit--
		i := strings.LastIndexFunc(t.s[:end], isSpace)
		if i < 0 {
			add(0, end)
			return
		}
		i += runeLen(t.s[i])
		add(i, end)
		end = i
	}
}

// lineBreak is the length of the line break at a byte, 0 where there is none.
func lineBreak(s string, i int) int {
	switch c := s[i]; {
	case c == '\r' && i+1 < len(s) && s[i+1] == '\n':
		return 2
	case c >= '\n' && c <= '\r', c >= 0x1c && c <= 0x1e:
		return 1
	case c == 0xc2 && s[i+1] == 0x85:
		return 2
	case c == 0xe2 && (s[i:i+3] == "\u2028" || s[i:i+3] == "\u2029"):
		return 3
	}
	return 0
}

func splitLines(vm *machine, t *text, keep bool) []*text {
	vm.charge(len(t.s))
	vm.charge(3 * len(t.s))
	lines := []*text{}
	start := 0
	for i := 0; i < len(t.s); {
		n := lineBreak(t.s, i)
		if n == 0 {
			i++
			continue
		}
		vm.grow(len(lines))
		vm.step(textSteps)
		end := i
		i += n
		if keep {
			end = i
		}
		lines = append(lines, t.sub(start, end))
		start = i
	}
	if start < len(t.s) {
		lines = append(lines, t.sub(start, len(t.s)))
	}
	return lines
}
