package jinja

import "math/big"

// globals are the names that every template knows.
var globals map[string]Value

func init() {
	globals = map[string]Value{}
	add := func(name string, class bool, call func(vm *machine, a args) Value) {
		globals[name] = Value{kind: kFunc, ref: &function{name: name, class: class, call: call}}
	}
	add("range", false, func(vm *machine, a args) Value { return makeRange(bind(vm, "range", rangeParams, a)) })
	add("dict", true, func(vm *machine, a args) Value { return dictVal(makeDict(vm, "dict", a)) })
	add("namespace", true, func(vm *machine, a args) Value {
		return Value{kind: kNamespace, ref: &namespace{makeDict(vm, "namespace", a)}}
	})
	add("cycler", true, func(_ *machine, a args) Value {
		if len(a.names) > 0 {
			typeError("cycler() got an unexpected keyword argument %s", quote(a.names[0]))
		}
		if len(a.pos) == 0 {
			raise(ErrRuntime, "RuntimeError", "at least one item has to be provided")
		}
		return Value{kind: kCycler, ref: &cycler{items: a.pos}}
	})
	joinerParams := newParams("sep?")
	joinerParams.defaults[0] = Trusted(", ")
	add("joiner", true, func(vm *machine, a args) Value {
		return Value{kind: kJoiner, ref: &joiner{sep: bind(vm, "joiner", joinerParams, a)[0]}}
	})
	add("lipsum", false, func(*machine, args) Value {
		raise(ErrUnsupported, "lipsum", "random text")
		return none
	})
	messageParams := newParams("message")
	add("raise_exception", false, func(vm *machine, a args) Value {
		raise(ErrRaised, "", "%s", toText(vm, bind(vm, "raise_exception", messageParams, a)[0]).s)
		return none
	})
	formatParams := newParams("format")
	add("strftime_now", false, func(vm *machine, a args) Value {
		f := argText("strftime", bind(vm, "strftime_now", formatParams, a)[0])
		vm.charge(len(f.s))
		return vm.made(newText(strftime(vm, vm.t.cfg.now(), f.s), f.allOwn()))
	})
}

var rangeParams = newParams("start, stop?, step?, /")

func makeRange(a []Value) Value {
	ints := [3]*big.Int{big.NewInt(0), nil, big.NewInt(1)}
	data := false
	for i, v := range a {
		if v.missing() {
			continue
		}
		use(v)
		if !v.isInt() {
			typeError("'%s' object cannot be interpreted as an integer", typeName(v))
		}
		ints[i] = v.big()
		data = data || v.data
	}
	if ints[1] == nil {
		ints[0], ints[1] = big.NewInt(0), ints[0]
	}
	start, stop, step := ints[0], ints[1], ints[2]
	if step.Sign() == 0 {
		valueError("range() arg 3 must not be zero")
	}
	n := new(big.Int).Sub(stop, start)
	if n.Sign() == step.Sign() && n.Sign() != 0 {
		n.Abs(n).Sub(n, big.NewInt(1)).Quo(n, new(big.Int).Abs(step)).Add(n, big.NewInt(1))
	} else {
		n.SetInt64(0)
	}
	if n.Cmp(big.NewInt(MaxRange)) > 0 {
		overflowError("Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", MaxRange)
	}
	if !start.IsInt64() || !stop.IsInt64() || !step.IsInt64() {
		limitError("range", "an end of more than 64 bits")
	}
	return Value{kind: kRange, data: data, ref: &pyRange{start.Int64(), stop.Int64(), step.Int64(), n.Int64()}}
}

// makeDict is dict(*args, **kwargs).
func makeDict(vm *machine, fn string, a args) *dict {
	if len(a.pos) > 1 {
		typeError("%s expected at most 1 argument, got %d", fn, len(a.pos))
	}
	vm.step(keySteps * (len(a.names) + 1))
	d := newDict(len(a.names))
	if len(a.pos) == 1 {
		if a.pos[0].kind == kDict {
			vm.room(a.pos[0].dict().len())
			vm.step(keySteps * a.pos[0].dict().len())
			for _, k := range a.pos[0].dict().keys {
				vm.key(k)
			}
			d = a.pos[0].dict().copy()
		} else {
			for _, x := range toItems(vm, a.pos[0]) {
				vm.step(keySteps)
				kv := vm.unpack(x, 2)
				d.set(vm.key(kv[0]), kv[1])
			}
		}
	}
	for i := range a.names {
		d.set(a.key(i), a.vals[i])
	}
	return d
}
