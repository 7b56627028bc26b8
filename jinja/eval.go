package jinja

func (x *constE) eval(vm *machine, _ *frame) Value {
	vm.step(1)
	return x.v
}

func (x *nameE) eval(vm *machine, f *frame) Value {
	vm.step(1)
	v := f.get(x.ref)
	if v.missing() {
		return undefVar(x.name)
	}
	return v
}

func (x *nsE) eval(*machine, *frame) Value { return none }

func evalAll(vm *machine, f *frame, xs []expr) []Value {
	vals := make([]Value, len(xs))
	for i, x := range xs {
		vals[i] = x.eval(vm, f)
	}
	return vals
}

func (x *tupleE) eval(vm *machine, f *frame) Value {
	vm.step(len(x.items) + itemSteps)
	return tupleVal(evalAll(vm, f, x.items))
}

func (x *listE) eval(vm *machine, f *frame) Value {
	vm.step(len(x.items) + itemSteps)
	return listVal(evalAll(vm, f, x.items))
}

func (x *dictE) eval(vm *machine, f *frame) Value {
	vm.step(keySteps * (len(x.keys) + 1))
	d := newDict(len(x.keys))
	for i := range x.keys {
		k := x.keys[i].eval(vm, f)
		v := x.vals[i].eval(vm, f)
		vm.line = int(x.line)
		d.set(vm.key(k), v)
	}
	return dictVal(d)
}

func (x *condE) eval(vm *machine, f *frame) Value {
	vm.step(1)
	if truth(x.test.eval(vm, f)) {
		return x.yes.eval(vm, f)
	}
	if x.no == nil {
		return undefHint("the inline if-expression evaluated to false and no else section was defined.")
	}
	return x.no.eval(vm, f)
}

func (x *logicE) eval(vm *machine, f *frame) Value {
	vm.step(1)
	l := x.l.eval(vm, f)
	if truth(l) == x.or {
		return l
	}
	return x.r.eval(vm, f)
}

func (x *unaryE) eval(vm *machine, f *frame) Value {
	vm.step(1)
	v := x.x.eval(vm, f)
	if x.op == "not" {
		return boolVal(!truth(v))
	}
	chargeBig(vm, v)
	vm.line = int(x.line)
	use(v)
	if !v.isNumber() {
		typeError("bad operand type for unary %s: '%s'", x.op, typeName(v))
	}
	if v.kind == kFloat {
		if x.op == "-" {
			return floatVal(-v.float()).withData(v.data)
		}
		return v
	}
	if x.op == "-" {
		return arith("-", intVal(0), v).withData(v.data)
	}
	return arith("+", intVal(0), v).withData(v.data)
}

func (x *binE) eval(vm *machine, f *frame) Value {
	l := x.l.eval(vm, f)
	r := x.r.eval(vm, f)
	vm.step(1)
	vm.line = int(x.line)
	return binary(vm, x.op, l, r)
}

func (x *compareE) eval(vm *machine, f *frame) Value {
	l := x.first.eval(vm, f)
	for i, op := range x.ops {
		r := x.rest[i].eval(vm, f)
		vm.step(1)
		vm.line = int(x.line)
		if !compare(vm, op, l, r) {
			return pyFalse
		}
		l = r
	}
	return pyTrue
}

func (x *concatE) eval(vm *machine, f *frame) Value {
	vals := evalAll(vm, f, x.items)
	vm.line = int(x.line)
	if vm.escaping(x.esc) {
		safe := false
		for _, v := range vals {
			safe = safe || v.kind == kStr && v.text().safe
		}
		if safe {
			for i, v := range vals {
				vals[i] = strVal(escapeHTML(vm, v))
			}
			return markup(join(vm, emptyStr.text(), vals))
		}
	}
	return strVal(join(vm, emptyStr.text(), vals))
}

// join is sep.join of the texts of values.
func join(vm *machine, sep *text, vals []Value) *text {
	var b builder
	for i, v := range vals {
		vm.step(valueSteps)
		t := toText(vm, v)
		vm.fits(len(b.buf) + len(t.s) + len(sep.s))
		vm.charge(len(t.s) + len(sep.s))
		if i > 0 {
			b.addText(sep)
		}
		b.addText(t)
	}
	return b.text()
}

func (x *attrE) eval(vm *machine, f *frame) Value {
	v := x.x.eval(vm, f)
	vm.step(1)
	vm.line = int(x.line)
	return getAttr(vm, v, x.attr)
}

func (x *itemE) eval(vm *machine, f *frame) Value {
	v := x.x.eval(vm, f)
	k := x.arg.eval(vm, f)
	vm.step(1)
	vm.line = int(x.line)
	return getItem(vm, v, k)
}

func (x *sliceE) eval(vm *machine, f *frame) Value {
	v := x.x.eval(vm, f)
	part := func(e expr) Value {
		if e == nil {
			return none
		}
		return e.eval(vm, f)
	}
	a, b, c := part(x.start), part(x.stop), part(x.step)
	vm.line = int(x.line)
	return slice(vm, v, a, b, c)
}

func (x *filterE) eval(vm *machine, f *frame) Value { return x.apply(vm, f, x.x.eval(vm, f)) }

// apply filters a value that is already there.
func (x *filterE) apply(vm *machine, f *frame, v Value) Value {
	vm.line = int(x.line)
	if x.f == nil {
		raise(ErrRuntime, "filter", "No filter named %s found.", quote(x.name))
	}
	a := x.args.eval(vm, f)
	vm.step(1)
	vm.line = int(x.line)
	return x.f.call(vm, x.name, v, a)
}

// applyChain filters what a block captured: the innermost filter of the chain
// has no operand of its own.
func (x *filterE) applyChain(vm *machine, f *frame, v Value) Value {
	if in, ok := x.x.(*filterE); ok {
		v = in.applyChain(vm, f, v)
	}
	return x.apply(vm, f, v)
}

func (x *testE) eval(vm *machine, f *frame) Value {
	v := x.x.eval(vm, f)
	vm.line = int(x.line)
	if x.f == nil {
		raise(ErrRuntime, "test", "No test named %s found.", quote(x.name))
	}
	a := x.args.eval(vm, f)
	vm.step(1)
	vm.line = int(x.line)
	return x.f.call(vm, x.name, v, a)
}

func (x *callE) eval(vm *machine, f *frame) Value { return x.call(vm, f, Value{}) }

// call evaluates a call; caller is given as a keyword argument where there is
// one.
func (x *callE) call(vm *machine, f *frame, caller Value) Value {
	var fn Value
	var self Value
	var m *method
	if at, ok := x.fn.(*attrE); ok {
		// A method is called without making a value of it first.
		self = at.x.eval(vm, f)
		vm.line = int(x.line)
		if m = findMethod(self, at.name); m == nil {
			fn = getAttr(vm, self, at.attr)
		}
	} else {
		fn = x.fn.eval(vm, f)
	}
	a := x.args.eval(vm, f)
	if !caller.missing() {
		a.names = append(append([]string{}, a.names...), "caller")
		a.vals = append(a.vals, caller)
	}
	vm.step(1)
	vm.line = int(x.line)
	var v Value
	if m != nil {
		v = m.call(vm, self, a)
	} else {
		v = callValue(vm, fn, a)
	}
	vm.line = int(x.line)
	return v
}

// args are the arguments of a call.
type args struct {
	pos   []Value
	names []string
	vals  []Value
	keys  []Value // of the names that a ** argument gave, as long as names or nil
}

// key is a keyword as a value, with its owner.
func (a *args) key(i int) Value {
	if i < len(a.keys) && !a.keys[i].missing() {
		return a.keys[i]
	}
	return own(a.names[i])
}

func (a *callArgs) eval(vm *machine, f *frame) args {
	var r args
	if len(a.pos) > 0 {
		r.pos = evalAll(vm, f, a.pos)
	}
	if len(a.vals) > 0 {
		r.names = a.names
		r.vals = evalAll(vm, f, a.vals)
	}
	if a.star != nil {
		v := a.star.eval(vm, f)
		use(v)
		items := toItems(vm, v)
		vm.room(len(items))
		r.pos = append(r.pos, items...)
	}
	if a.starstar != nil {
		v := a.starstar.eval(vm, f)
		use(v)
		if v.kind != kDict {
			typeError("argument after ** must be a mapping, not %s", typeName(v))
		}
		vm.room(v.dict().len())
		vm.step(keySteps * v.dict().len())
		r.names = append([]string{}, r.names...)
		r.keys = make([]Value, len(r.names))
		for i, k := range v.dict().keys {
			if k.kind != kStr {
				typeError("keywords must be strings")
			}
			vm.step(len(r.names)/4 + 1) // each is compared with those before
			if _, ok := r.get(k.text().s); ok {
				typeError("got multiple values for keyword argument %s", quote(k.text().s))
			}
			r.names = append(r.names, k.text().s)
			r.keys = append(r.keys, k)
			r.vals = append(r.vals, v.dict().vals[i])
		}
	}
	return r
}

func (a *args) get(name string) (Value, bool) {
	for i, n := range a.names {
		if n == name {
			return a.vals[i], true
		}
	}
	return Value{}, false
}

// callValue is fn(*args, **kwargs).
func callValue(vm *machine, fn Value, a args) Value {
	use(fn)
	switch fn.kind {
	case kFunc:
		return fn.ref.(*function).call(vm, a)
	case kMacro:
		return callMacro(vm, fn.ref.(*macro), a)
	case kLoop:
		return callLoop(vm, fn.ref.(*loopState), a)
	case kJoiner:
		bind(vm, "joiner", noParams, a)
		j := fn.ref.(*joiner)
		if !j.used {
			j.used = true
			return emptyStr
		}
		return j.sep
	}
	typeError("'%s' object is not callable", typeName(fn))
	return none
}
