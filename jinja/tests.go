package jinja

// tests are the built-in tests, what follows "is".
var tests map[string]*filter

func init() {
	tests = map[string]*filter{}
	add := func(name, spec string, f func(vm *machine, a []Value) bool) {
		p := newParams(spec)
		tests[name] = &filter{func(vm *machine, name string, v Value, a args) Value {
			return boolVal(f(vm, bind(vm, name, p, withFirst(v, a))))
		}}
	}
	one := func(name string, f func(v Value) bool) {
		add(name, "value", func(_ *machine, a []Value) bool { return f(a[0]) })
	}
	mod := func(name string, want int64) {
		add(name, "value", func(vm *machine, a []Value) bool {
			return equal(vm, binary(vm, "%", a[0], intVal(2)), int64Val(want), 0)
		})
	}
	mod("odd", 1)
	mod("even", 0)
	add("divisibleby", "value, num", func(vm *machine, a []Value) bool {
		return equal(vm, binary(vm, "%", a[0], a[1]), intVal(0), 0)
	})
	one("defined", func(v Value) bool { return v.kind != kUndef })
	one("undefined", func(v Value) bool { return v.kind == kUndef })
	one("none", func(v Value) bool { return v.kind == kNone })
	one("boolean", func(v Value) bool { return v.kind == kBool })
	one("true", Value.isTrue)
	one("false", func(v Value) bool { return v.kind == kBool && v.num == 0 })
	one("integer", func(v Value) bool { return v.kind == kInt || v.kind == kBig })
	one("float", func(v Value) bool { return v.kind == kFloat })
	one("number", Value.isNumber)
	one("string", func(v Value) bool { return v.kind == kStr })
	one("mapping", func(v Value) bool { return v.kind == kDict })
	one("sequence", func(v Value) bool {
		_, ok := length(v)
		return ok && v.kind != kView
	})
	one("iterable", func(v Value) bool { return tryIterate(v) != nil })
	one("callable", func(v Value) bool {
		return v.kind == kFunc || v.kind == kMacro || v.kind == kLoop || v.kind == kJoiner || v.kind == kUndef
	})
	one("escaped", func(v Value) bool { return v.kind == kStr && v.text().safe })
	add("lower", "value", func(vm *machine, a []Value) bool { return isLowerString(vm.scanned(a[0])) })
	add("upper", "value", func(vm *machine, a []Value) bool { return isUpperString(vm.scanned(a[0])) })
	add("sameas", "value, other", func(vm *machine, a []Value) bool {
		if a[0].kind == kStr && a[1].kind == kStr {
			vm.charge(min(len(a[0].text().s), len(a[1].text().s)))
		}
		return same(a[0], a[1])
	})
	add("in", "value, seq", func(vm *machine, a []Value) bool { return contains(vm, a[1], a[0]) })
	add("filter", "value", func(vm *machine, a []Value) bool {
		return mustHash(vm.key(a[0])).k == kStr && filters[a[0].text().s] != nil
	})
	add("test", "value", func(vm *machine, a []Value) bool {
		return mustHash(vm.key(a[0])).k == kStr && tests[a[0].text().s] != nil
	})
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		for _, n := range names {
			add(n, "a, b, /", func(vm *machine, a []Value) bool { return compare(vm, op, a[0], a[1]) })
		}
	}
}

// scanned is the text of a value, whose characters are about to be gone through.
func (vm *machine) scanned(v Value) string {
	s := toText(vm, v).s
	vm.scan(len(s))
	return s
}

// withFirst puts a value before the positional arguments.
func withFirst(v Value, a args) args {
	a.pos = append([]Value{v}, a.pos...)
	return a
}
