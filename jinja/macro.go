package jinja

// macro is a macro with the variables around its definition.
type macro struct {
	def   *macroDef
	frame *frame
}

func (s *macroS) exec(vm *machine, f *frame) flow {
	v := Value{kind: kMacro, ref: &macro{s.def, f}}
	f.set(s.ref, v)
	if s.public != nil && len(vm.t.blocks) > 0 {
		vm.export(f, s.def.name, v)
	}
	return flowNext
}

func (s *callBlockS) exec(vm *machine, f *frame) flow {
	caller := Value{kind: kMacro, ref: &macro{s.def, f}}
	var v Value
	if s.call == nil {
		v = callMacro(vm, caller.ref.(*macro), args{})
	} else {
		v = s.call.call(vm, f, caller)
	}
	vm.printText("call", v)
	return flowNext
}

// callMacro binds the arguments as Jinja2 does and renders the body.
func callMacro(vm *machine, m *macro, a args) Value {
	d := m.def
	vm.call("macro")
	vm.step(callSteps + d.fn.slots + len(a.names)*(len(d.params)+keySteps))
	g := &frame{slots: make([]Value, d.fn.slots), parent: m.frame, root: m.frame.root}
	used := make([]bool, len(a.names))
	take := func(name string) Value {
		for i, n := range a.names {
			if n == name && !used[i] {
				used[i] = true
				return a.vals[i]
			}
		}
		return Value{}
	}
	found := d.explicit && len(a.pos) >= len(d.params)
	for i, p := range d.params {
		if i < len(a.pos) {
			g.set(d.refs[i], a.pos[i])
			continue
		}
		g.set(d.refs[i], take(p))
		found = found || p == "caller"
	}
	if d.caller && !found {
		c := take("caller")
		if c.missing() || c.kind == kNone {
			c = undefHint("No caller defined")
		}
		g.set(d.callerTo, c)
	}
	if d.kwargs {
		kw := newDict(len(a.names))
		for i := range a.names {
			if !used[i] {
				kw.set(a.key(i), a.vals[i])
			}
		}
		g.set(d.kwTo, dictVal(kw))
	} else {
		for i, n := range a.names {
			if used[i] {
				continue
			}
			if n == "caller" {
				typeError("macro %s was invoked with two values for the special caller argument. This is most likely a bug.", quote(d.name))
			}
			typeError("macro %s takes no keyword argument %s", quote(d.name), quote(n))
		}
	}
	if len(a.pos) > len(d.params) {
		if !d.varargs {
			typeError("macro %s takes not more than %d argument(s)", quote(d.name), len(d.params))
		}
		g.set(d.varTo, tupleVal(a.pos[len(d.params):]))
	} else if d.varargs {
		g.set(d.varTo, tupleVal(nil))
	}
	escape := vm.escape
	t := vm.capture(func() {
		vm.enter(g, &d.scope)
		for i := range d.params {
			if !g.get(d.refs[i]).missing() {
				continue
			}
			if k := i - (len(d.params) - len(d.defaults)); k >= 0 {
				g.set(d.refs[i], d.defaults[k].eval(vm, g))
			} else {
				g.set(d.refs[i], undefHint("parameter "+quote(d.params[i])+" was not provided"))
			}
		}
		vm.run(g, d.body)
	})
	vm.uncall()
	if escape {
		return markup(t)
	}
	return strVal(t)
}

// callLoop is loop(iterable), the next level of a recursive loop.
func callLoop(vm *machine, l *loopState, a args) Value {
	v := bind(vm, "loop", newParams("iterable"), a)[0]
	if !l.stmt.recursive {
		typeError("The loop must have the 'recursive' marker to be called recursively.")
	}
	return vm.capturedValue(vm.loopBody(l.frame, l.stmt, v, l.depth0+1), l.stmt.esc)
}
