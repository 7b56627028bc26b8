package jinja

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// addPredicates adds the is-methods of strings.
func addPredicates(m methods) {
	all := func(name string, f func(r rune) bool) {
		m.add(name, "/", func(vm *machine, self Value, _ []Value) Value {
			s := self.text().s
			vm.scan(len(s))
			return boolVal(s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0)
		})
	}
	all("isalpha", isAlpha)
	all("isalnum", func(r rune) bool { return isWord(r) && r != '_' })
	all("isdecimal", func(r rune) bool { return digitValue(r) >= 0 })
	all("isdigit", func(r rune) bool { return digitValue(r) >= 0 || inTable(digitTable, r) })
	all("isnumeric", func(r rune) bool { return digitValue(r) >= 0 || inTable(numericTable, r) })
	all("isspace", isSpace)
	whole := func(name string, f func(s string) bool) {
		m.add(name, "/", func(vm *machine, self Value, _ []Value) Value {
			vm.scan(len(self.text().s))
			return boolVal(f(self.text().s))
		})
	}
	whole("isprintable", func(s string) bool {
		return strings.IndexFunc(s, func(r rune) bool { return !isPrintable(r) }) < 0
	})
	whole("isascii", func(s string) bool {
		return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
	})
	whole("isidentifier", isIdentifier)
	whole("islower", isLowerString)
	whole("isupper", isUpperString)
	whole("istitle", func(s string) bool {
		in, some := false, false
		for _, r := range s {
			switch {
			case isUpper(r) || inTable(titleTable, r):
				if in {
					return false
				}
				in, some = true, true
			case isLower(r):
				if !in {
					return false
				}
				some = true
			default:
				in = false
			}
		}
		return some
	})
}

// isLowerString is str.islower: a lower-case character and no other cased one.
func isLowerString(s string) bool {
	some := false
	for _, r := range s {
		if isUpper(r) || r >= 0x80 && inTable(titleTable, r) {
			return false
		}
		some = some || isLower(r)
	}
	return some
}

func isUpperString(s string) bool {
	some := false
	for _, r := range s {
		if isLower(r) || r >= 0x80 && inTable(titleTable, r) {
			return false
		}
		some = some || isUpper(r)
	}
	return some
}

// addTranslate adds str.translate and str.maketrans.
func addTranslate(m methods) {
	m.add("translate", "table, /", func(vm *machine, self Value, a []Value) Value {
		use(a[0])
		var b builder
		t := self.text()
		for i, r := range t.s {
			vm.step(4)
			vm.fits(len(b.buf))
			w := runeLen(t.s[i])
			k := intVal(int(r))
			var v Value
			if a[0].kind == kDict {
				v = a[0].dict().get(mustHash(vm.key(k)))
			} else if n, ok := length(a[0]); !ok || a[0].kind == kView {
				typeError("'%s' object is not subscriptable", typeName(a[0]))
			} else if int(r) < n {
				v = itemAt(vm, a[0], int(r))
			}
			switch v.kind {
			case kMissing:
				b.addSub(t, i, i+w)
			case kNone:
			case kStr:
				b.addText(v.text())
			case kInt, kBool:
				if v.int() < 0 || v.int() > 0x10ffff {
					valueError("character mapping must be in range(0x110000)")
				}
				b.add(string(rune(v.int())), !v.data && t.ownAt(i))
			default:
				typeError("character mapping must return integer, None or str")
			}
		}
		return vm.made(b.text())
	})
	m.add("maketrans", "x, y?, z?, /", func(vm *machine, _ Value, a []Value) Value {
		d := newDict(8)
		if a[1].missing() {
			if a[0].kind != kDict {
				typeError("if you give only one argument to maketrans it must be a dict")
			}
			for i, k := range a[0].dict().keys {
				vm.step(keySteps)
				if k.kind == kStr {
					if k.text().length() != 1 {
						valueError("string keys in translate table must be of length 1")
					}
					k = runeVals(vm, k.text())[0]
				} else if !k.isInt() {
					typeError("keys in translate table must be strings or integers")
				}
				d.set(k, a[0].dict().vals[i])
			}
			return dictVal(d)
		}
		from, to := runeVals(vm, argText("maketrans", a[0])), runeVals(vm, argText("maketrans", a[1]))
		if len(from) != len(to) {
			valueError("the first two maketrans arguments must have equal length")
		}
		for i := range from {
			d.set(from[i], to[i])
		}
		if !a[2].missing() {
			for _, k := range runeVals(vm, argText("maketrans", a[2])) {
				d.set(k, none)
			}
		}
		return dictVal(d)
	})
}

// runeVals is the code points of a text, charged as the keys of a new dict.
func runeVals(vm *machine, t *text) []Value {
	vm.room(t.length())
	vm.step(keySteps * t.length())
	vals := make([]Value, 0, t.length())
	for i, r := range t.s {
		vals = append(vals, intVal(int(r)).withData(!t.ownAt(i)))
	}
	return vals
}

func init() {
	listMethods, tupleMethods, dictMethods = methods{}, methods{}, methods{}
	intMethods, floatMethods, rangeMethods = methods{}, methods{}, methods{}
	viewMethods, loopMethods, cyclerMethods = methods{}, methods{}, methods{}
	for _, m := range []methods{listMethods, tupleMethods, rangeMethods} {
		m.add("count", "value, /", func(vm *machine, self Value, a []Value) Value {
			n := 0
			for _, x := range toItems(vm, self) {
				vm.step(1)
				if equal(vm, x, a[0], 0) {
					n++
				}
			}
			return intVal(n)
		})
		m.add("index", "value, start=0, stop=4611686018427387904, /", func(vm *machine, self Value, a []Value) Value {
			items := toItems(vm, self)
			from, to, _ := sliceBounds(len(items), a[1], a[2], none)
			for i := from; i < to; i++ {
				vm.step(1)
				if equal(vm, items[i], a[0], 0) {
					return intVal(i)
				}
			}
			valueError("value is not in %s", typeName(self))
			return none
		})
	}
	listMethods.add("copy", "/", func(_ *machine, self Value, _ []Value) Value {
		return listVal(self.items()).withData(self.data)
	})
	addDictMethods()
	addNumberMethods()
	loopMethods["changed"] = &method{"changed", func(vm *machine, self Value, a args) Value {
		if len(a.names) > 0 {
			typeError("changed() got an unexpected keyword argument %s", quote(a.names[0]))
		}
		l := self.ref.(*loopState)
		if l.asked && equal(vm, tupleVal(l.changed), tupleVal(a.pos), 0) {
			return pyFalse
		}
		l.asked, l.changed = true, a.pos
		return pyTrue
	}}
	loopMethods["cycle"] = &method{"cycle", func(_ *machine, self Value, a args) Value {
		if len(a.pos) == 0 || len(a.names) > 0 {
			typeError("no items for cycling given")
		}
		return a.pos[self.ref.(*loopState).index0%len(a.pos)]
	}}
	cyclerMethods.add("next", "/", func(_ *machine, self Value, _ []Value) Value {
		c := self.ref.(*cycler)
		v := c.items[c.pos]
		c.pos = (c.pos + 1) % len(c.items)
		return v
	})
	cyclerMethods.add("reset", "/", func(_ *machine, self Value, _ []Value) Value {
		self.ref.(*cycler).pos = 0
		return none
	})
}

func addDictMethods() {
	m := dictMethods
	for _, what := range []string{"keys", "values", "items"} {
		m.add(what, "/", func(_ *machine, self Value, _ []Value) Value {
			return Value{kind: kView, data: self.data, ref: &view{what, self.dict()}}
		})
	}
	m.add("get", "key, default=None, /", func(vm *machine, self Value, a []Value) Value {
		if v := self.dict().get(mustHash(vm.key(a[0]))); !v.missing() {
			return v
		}
		return a[1]
	})
	m.add("copy", "/", func(_ *machine, self Value, _ []Value) Value { return self })
	m.add("fromkeys", "iterable, value=None, /", func(vm *machine, _ Value, a []Value) Value {
		use(a[0])
		d := newDict(8)
		for _, k := range toItems(vm, a[0]) {
			vm.step(keySteps)
			d.set(vm.key(k), a[1])
		}
		return dictVal(d)
	})
	viewMethods.add("isdisjoint", "other, /", func(vm *machine, self Value, a []Value) Value {
		if self.ref.(*view).what == "values" {
			typeError("'dict_values' object has no attribute 'isdisjoint'")
		}
		for _, x := range toItems(vm, a[0]) {
			if contains(vm, self, x) {
				return pyFalse
			}
		}
		return pyTrue
	})
}

func addNumberMethods() {
	m := intMethods
	m.add("bit_length", "/", func(_ *machine, self Value, _ []Value) Value { return intVal(self.big().BitLen()) })
	m.add("bit_count", "/", func(_ *machine, self Value, _ []Value) Value {
		n := 0
		for _, w := range self.big().Bits() {
			n += bits.OnesCount(uint(w))
		}
		return intVal(n)
	})
	m.add("conjugate", "/", func(vm *machine, self Value, _ []Value) Value {
		chargeBig(vm, self)
		return arith("+", self, intVal(0))
	})
	m.add("as_integer_ratio", "/", func(vm *machine, self Value, _ []Value) Value {
		chargeBig(vm, self)
		return tupleVal([]Value{arith("+", self, intVal(0)).withData(self.data), intVal(1)})
	})
	for _, name := range []string{"to_bytes", "from_bytes"} {
		m[name] = &method{name, func(*machine, Value, args) Value {
			raise(ErrUnsupported, name, "bytes")
			return none
		}}
	}
	m = floatMethods
	m.add("is_integer", "/", func(_ *machine, self Value, _ []Value) Value {
		return boolVal(self.float() == math.Trunc(self.float()) && !math.IsInf(self.float(), 0))
	})
	m.add("conjugate", "/", func(_ *machine, self Value, _ []Value) Value { return self })
	m.add("as_integer_ratio", "/", func(vm *machine, self Value, _ []Value) Value {
		vm.step(floatSteps)
		f := self.float()
		if math.IsNaN(f) {
			valueError("cannot convert NaN to integer ratio")
		}
		if math.IsInf(f, 0) {
			overflowError("cannot convert Infinity to integer ratio")
		}
		r := new(big.Rat).SetFloat64(f)
		return tupleVal([]Value{bigVal(r.Num()).withData(self.data), bigVal(r.Denom()).withData(self.data)})
	})
	m.add("hex", "/", func(_ *machine, self Value, _ []Value) Value {
		return strVal(newText(floatHex(self.float()), !self.data))
	})
}

// floatHex is float.hex().
func floatHex(f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return formatFloat(f)
	}
	b := math.Float64bits(f)
	sign, exp, frac := "", int(b>>52&0x7ff), b&(1<<52-1)
	if b>>63 != 0 {
		sign = "-"
	}
	if f == 0 {
		return sign + "0x0.0p+0"
	}
	lead := "1"
	if exp == 0 {
		lead, exp = "0", 1
	}
	h := strconv.FormatUint(frac, 16)
	e := strconv.Itoa(exp - 1023)
	if exp >= 1023 {
		e = "+" + e
	}
	return sign + "0x" + lead + "." + strings.Repeat("0", 13-len(h)) + h + "p" + e
}
