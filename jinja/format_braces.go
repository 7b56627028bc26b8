package jinja

import "strings"

// formatBraces is str.format.
func formatBraces(vm *machine, t *text, a args) Value {
	f := &braces{vm: vm, safe: t.safe, get: func(k Value) Value {
		if k.kind == kStr {
			vm.step(len(a.names)/4 + 1)
			if v, ok := a.get(k.text().s); ok {
				return v
			}
			raise(ErrRuntime, "KeyError", "%s", shortRepr(k))
		}
		if k.kind != kInt || k.int() >= int64(len(a.pos)) {
			raise(ErrRuntime, "IndexError", "Replacement index %s out of range for positional args tuple", shortRepr(k))
		}
		return a.pos[k.int()]
	}}
	return f.run(t)
}

// formatMap is str.format_map.
func formatMap(vm *machine, t *text, m Value) Value {
	f := &braces{vm: vm, safe: t.safe, get: func(k Value) Value {
		if k.kind != kStr {
			raise(ErrRuntime, "IndexError", "tuple index out of range")
		}
		return subscript(vm, m, k)
	}}
	return f.run(t)
}

// fieldSteps is what a field costs at least.
const fieldSteps = 16

// braces is one call of format.
type braces struct {
	vm   *machine
	get  func(k Value) Value
	auto int  // the next automatic number; -1 where numbers are given
	safe bool // Markup: what is inserted is escaped
}

func (f *braces) run(t *text) Value {
	r := f.format(t, 2)
	r.safe = t.safe
	return f.vm.made(r)
}

// format fills in the fields of t; depth bounds the nesting of specifications.
func (f *braces) format(t *text, depth int) *text {
	if depth < 0 {
		valueError("Max string recursion exceeded")
	}
	var b builder
	s := t.s
	f.vm.charge(len(s))
	for i := 0; i < len(s); {
		j := strings.IndexAny(s[i:], "{}")
		if j < 0 {
			b.addSub(t, i, len(s))
			break
		}
		j += i
		f.vm.step(valueSteps)
		if j+1 < len(s) && s[j+1] == s[j] {
			b.addSub(t, i, j+1)
			i = j + 2
			continue
		}
		b.addSub(t, i, j)
		if s[j] == '}' {
			valueError("Single '}' encountered in format string")
		}
		if j+1 == len(s) {
			valueError("Single '{' encountered in format string")
		}
		end := fieldEnd(s, j+1)
		f.vm.step(fieldSteps)
		b.addText(f.field(t, j+1, end, depth))
		f.vm.fits(len(b.buf))
		i = end + 1
	}
	return b.text()
}

// fieldEnd is the position of the brace that closes the field that begins at
// byte i.
func fieldEnd(s string, i int) int {
	for depth := 1; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	valueError("expected '}' before end of string")
	return 0
}

// field formats the field [i, end): name, conversion and specification.
func (f *braces) field(t *text, i, end, depth int) *text {
	s := t.s
	j, bracket := i, false
	for ; j < end; j++ {
		c := s[j]
		if bracket {
			bracket = c != ']'
			continue
		}
		if c == '[' {
			bracket = true
		} else if c == '{' {
			valueError("unexpected '{' in field name")
		} else if c == ':' || c == '!' {
			break
		}
	}
	v := f.value(t.sub(i, j))
	conv := byte(0)
	if j < end && s[j] == '!' {
		if j+1 >= end {
			valueError("end of string while looking for conversion specifier")
		}
		w := runeLen(s[j+1])
		conv = s[j+1]
		if j += 1 + w; j < end && s[j] != ':' {
			valueError("expected ':' after conversion specifier")
		}
	}
	switch conv {
	case 0:
	case 's':
		v = strVal(unsafeText(toText(f.vm, v)))
	case 'r':
		v = strVal(toRepr(f.vm, v))
	case 'a':
		r := toRepr(f.vm, v)
		f.vm.scan(len(r.s))
		v = strVal(asciiText(r))
	default:
		valueError("Unknown conversion specifier")
	}
	spec := newText("", true)
	if j < end {
		spec = f.format(t.sub(j+1, end), depth-1)
	}
	r := formatValue(f.vm, v, spec.s, spec.allOwn())
	if f.safe && depth == 2 {
		return escapeHTML(f.vm, strVal(r))
	}
	return r
}

// value is what a field name stands for.
func (f *braces) value(name *text) Value {
	s := name.s
	n := strings.IndexAny(s, ".[")
	if n < 0 {
		n = len(s)
	}
	var v Value
	first := s[:n]
	isNum := first != "" && strings.Trim(first, "0123456789") == ""
	switch {
	case s == "":
		if f.auto < 0 {
			valueError("cannot switch from manual field specification to automatic field numbering")
		}
		v = f.get(intVal(f.auto))
		f.auto++
	case isNum:
		// A number with attributes or items after it does not count as manual:
		// Python looks at the field as a whole.
		if n == len(s) {
			if f.auto > 0 {
				valueError("cannot switch from automatic field numbering to manual field specification")
			}
			f.auto = -1
		}
		v = f.get(numberKey(first))
	default:
		v = f.get(own(first))
	}
	for n < len(s) {
		f.vm.step(1)
		if s[n] == '.' {
			e := strings.IndexAny(s[n+1:], ".[")
			if e < 0 {
				e = len(s) - n - 1
			}
			if e == 0 {
				valueError("Empty attribute in format string")
			}
			v = getAttr(f.vm, v, strVal(name.sub(n+1, n+1+e)))
			n += 1 + e
			continue
		}
		if s[n] != '[' {
			valueError("Only '.' or '[' may follow ']' in format field specifier")
		}
		e := strings.IndexByte(s[n:], ']')
		if e < 0 {
			valueError("Missing ']' in format string")
		}
		key := s[n+1 : n+e]
		if key == "" {
			valueError("Empty attribute in format string")
		}
		k := strVal(name.sub(n+1, n+e))
		if strings.Trim(key, "0123456789") == "" {
			k = numberKey(key)
		}
		v = getItem(f.vm, v, k)
		n += e + 1
	}
	return v
}

func numberKey(s string) Value {
	if len(s) > 18 {
		valueError("Too many decimal digits in format string")
	}
	v, _ := intOf(s, 10)
	return v
}
