package jinja

// run executes statements until one of them leaves a loop.
func (vm *machine) run(f *frame, list []stmt) flow {
	for _, s := range list {
		vm.step(1)
		if fl := s.exec(vm, f); fl != flowNext {
			return fl
		}
	}
	return flowNext
}

func (s *textS) exec(vm *machine, _ *frame) flow {
	vm.print(s.t)
	return flowNext
}

func (s *printS) exec(vm *machine, f *frame) flow {
	v := s.x.eval(vm, f)
	if vm.escaping(s.esc) {
		vm.print(escapeHTML(vm, v))
	} else {
		vm.print(toText(vm, v))
	}
	return flowNext
}

func (s *ifS) exec(vm *machine, f *frame) flow {
	for i, t := range s.tests {
		vm.step(1)
		if truth(t.eval(vm, f)) {
			return vm.run(f, s.bodies[i])
		}
	}
	return vm.run(f, s.els)
}

func (s *setS) exec(vm *machine, f *frame) flow {
	vm.checkSpaces(f, s.line, s.spaces)
	v := s.val.eval(vm, f)
	vm.line = s.line
	vm.assign(f, s.target, v)
	vm.publish(f, s.public, s.target)
	return flowNext
}

// checkSpaces refuses to assign attributes of anything but namespaces.
func (vm *machine) checkSpaces(f *frame, line int, spaces []*nsE) {
	for _, n := range spaces {
		if f.get(n.ref).kind != kNamespace {
			vm.line = line
			raise(ErrRuntime, "set", "cannot assign attribute on non-namespace object")
		}
	}
}

// assign stores a value; tuples take it apart.
func (vm *machine) assign(f *frame, target expr, v Value) {
	switch t := target.(type) {
	case *nameE:
		f.set(t.ref, v)
	case *nsE:
		d := f.get(t.ref).ref.(*namespace).attrs
		vm.room(d.len())
		vm.step(keySteps)
		d.set(own(t.attr), v)
	case *tupleE:
		vals := vm.unpack(v, len(t.items))
		for i, x := range t.items {
			vm.assign(f, x, vals[i])
		}
	}
}

// unpack is the n items of a value, as an assignment to a tuple needs them.
func (vm *machine) unpack(v Value, n int) []Value {
	if v.isSeq() {
		if l := len(v.seq()); l < n {
			valueError("not enough values to unpack (expected %d, got %d)", n, l)
		} else if l > n {
			valueError("too many values to unpack (expected %d)", n)
		}
		return v.seq()
	}
	it := iterate(vm, v)
	vals := make([]Value, 0, n)
	for {
		x := it.next(vm)
		if x.missing() {
			break
		}
		if len(vals) == n {
			valueError("too many values to unpack (expected %d)", n)
		}
		vals = append(vals, x)
	}
	if len(vals) < n {
		valueError("not enough values to unpack (expected %d, got %d)", n, len(vals))
	}
	return vals
}

// publish makes variables set at the top level visible to blocks.
func (vm *machine) publish(f *frame, names []string, target expr) {
	if len(names) == 0 || len(vm.t.blocks) == 0 {
		return
	}
	walkExpr(target, func(x expr) bool {
		if n, ok := x.(*nameE); ok {
			vm.export(f, n.name, f.get(n.ref))
		}
		return true
	})
}

func (vm *machine) export(f *frame, name string, v Value) {
	if f.root.vars == nil {
		f.root.vars = newDict(4)
	}
	f.root.vars.set(own(name), v)
}

func (s *setBlockS) exec(vm *machine, f *frame) flow {
	vm.enter(f, &s.scope)
	var fl flow
	t := vm.capture(func() { fl = vm.run(f, s.body) })
	if fl != flowNext {
		return fl
	}
	vm.line = s.line
	v := vm.capturedValue(t, s.esc)
	if s.filter != nil {
		v = s.filter.applyChain(vm, f, v)
	}
	if vm.escaping(s.esc) {
		v = markup(toText(vm, v))
	}
	vm.checkSpaces(f, s.line, s.spaces)
	vm.assign(f, s.target, v)
	vm.publish(f, s.public, s.target)
	f.exit(&s.scope)
	return flowNext
}

func (vm *machine) capturedValue(t *text, m escMode) Value {
	if vm.escaping(m) {
		return markup(t)
	}
	return strVal(t)
}

func (s *filterBlockS) exec(vm *machine, f *frame) flow {
	vm.enter(f, &s.scope)
	var fl flow
	t := vm.capture(func() { fl = vm.run(f, s.body) })
	if fl != flowNext {
		return fl
	}
	v := s.filter.applyChain(vm, f, vm.capturedValue(t, s.esc))
	vm.printText("filter", v)
	f.exit(&s.scope)
	return flowNext
}

// printText prints what a filter or call block made, which has to be text.
func (vm *machine) printText(block string, v Value) {
	if v.kind != kStr {
		raise(ErrRuntime, block, "TypeError: expected str instance, %s found", typeName(v))
	}
	vm.print(v.text())
}

func (s *withS) exec(vm *machine, f *frame) flow {
	vm.enter(f, &s.scope)
	for i, t := range s.targets {
		v := s.vals[i].eval(vm, f)
		vm.line = s.line
		vm.assign(f, t, v)
	}
	fl := vm.run(f, s.body)
	f.exit(&s.scope)
	return fl
}

func (s *escapeS) exec(vm *machine, f *frame) flow {
	vm.enter(f, &s.scope)
	old := vm.escape
	vm.escape = truth(s.val.eval(vm, f))
	fl := vm.run(f, s.body)
	vm.escape = old
	f.exit(&s.scope)
	return fl
}

func (s *loopCtlS) exec(*machine, *frame) flow { return s.flow }

func (s *blockS) exec(vm *machine, f *frame) flow {
	if s.required {
		vm.line = s.line
		raise(ErrRuntime, "block", "Required block %s not found", quote(s.name))
	}
	vm.block(f, s, s.scoped)
	return flowNext
}

// block runs a block with the variables of the top level, or of the block that
// f belongs to. A scoped one has those around it too, where it stands: not where
// self calls it.
func (vm *machine) block(f *frame, s *blockS, scoped bool) {
	vm.call("block")
	vm.step(callSteps + s.fn.slots)
	g := &frame{slots: make([]Value, s.fn.slots), vars: f.root.vars}
	g.root = g
	if scoped {
		vm.step(keySteps * len(s.vis))
		d := newDict(len(s.vis))
		if g.vars != nil {
			vm.step(keySteps * g.vars.len())
			d = g.vars.copy()
		}
		for _, v := range s.vis {
			if x := f.get(v.ref); !x.missing() {
				d.set(own(v.name), x)
			}
		}
		g.vars = d
	}
	g.slots[0] = Value{kind: kBlocks, ref: g}
	vm.enter(g, &s.scope)
	vm.run(g, s.body)
	vm.uncall()
}

// loopState is the variable loop.
type loopState struct {
	stmt    *forS
	frame   *frame // where the statement stands
	it      *iter
	known   int // the length, or -1
	index0  int
	depth0  int
	before  Value
	current Value
	after   Value // read ahead, or kMissing
	ended   bool
	changed []Value
	asked   bool // changed was called
}

func (l *loopState) peek(vm *machine) Value {
	if l.after.missing() && !l.ended {
		l.after = l.it.next(vm)
		l.ended = l.after.missing()
	}
	return l.after
}

func (l *loopState) advance(vm *machine) Value {
	v := l.peek(vm)
	l.after = Value{}
	if !v.missing() {
		l.index0++
		l.before, l.current = l.current, v
	}
	return v
}

func (l *loopState) length(vm *machine) int {
	if l.known < 0 {
		rest := collect(vm, l.it)
		l.it = sliceIter("list_iterator", rest)
		n := 0
		if !l.after.missing() {
			n = 1
		} else if len(rest) > 0 {
			l.ended = false
		}
		l.known = len(rest) + l.index0 + 1 + n
	}
	return l.known
}

func (s *forS) exec(vm *machine, f *frame) flow {
	v := s.iter.eval(vm, f)
	vm.line = s.line
	if s.recursive {
		vm.print(vm.loopBody(f, s, v, 0))
	} else {
		return vm.loop(f, f, s, v, 0)
	}
	return flowNext
}

// loopBody is one call of a recursive loop.
func (vm *machine) loopBody(f *frame, s *forS, v Value, depth int) *text {
	vm.call("loop")
	vm.step(callSteps + s.fn.slots)
	g := &frame{slots: make([]Value, s.fn.slots), parent: f, root: f.root}
	t := vm.capture(func() { vm.loop(f, g, s, v, depth) })
	vm.uncall()
	return t
}

// loop runs a loop over v; f is where it stands and g has its variables. Its
// else part may leave an outer loop.
func (vm *machine) loop(f, g *frame, s *forS, v Value, depth int) flow {
	vm.step(callSteps)
	it := iterate(vm, v)
	known := -1
	if s.test != nil {
		it = vm.filterLoop(f, s, it)
	} else if n, ok := length(v); ok {
		known = n
	}
	var ls *loopState
	var loopVal Value
	if s.extended {
		ls = &loopState{stmt: s, frame: f, it: it, known: known, index0: -1, depth0: depth}
		loopVal = Value{kind: kLoop, ref: ls}
	}
	empty := true
	for {
		vm.step(1)
		var x Value
		if ls != nil {
			x = ls.advance(vm)
		} else {
			x = it.next(vm)
		}
		if x.missing() {
			break
		}
		vm.assign(g, s.target, x)
		if ls != nil {
			g.set(s.loopRef, loopVal)
		}
		vm.enter(g, &s.scope)
		fl := vm.run(g, s.body)
		if fl == flowBreak {
			break
		}
		if fl == flowNext {
			empty = false
		}
		vm.line = s.line
	}
	g.exit(&s.scope)
	if !empty || !s.hasElse {
		return flowNext
	}
	vm.enter(g, &s.elseIn)
	fl := vm.run(g, s.els)
	g.exit(&s.elseIn)
	return fl
}

// filterLoop keeps the items that the condition of a loop accepts.
func (vm *machine) filterLoop(f *frame, s *forS, it *iter) *iter {
	vm.step(callSteps + s.testFn.slots)
	g := &frame{slots: make([]Value, s.testFn.slots), parent: f, root: f.root}
	vm.enter(g, &s.testIn)
	return newIter("generator", it.depth, func(vm *machine) Value {
		for {
			vm.step(1)
			x := it.next(vm)
			if x.missing() {
				return x
			}
			vm.assign(g, s.testTo, x)
			if truth(s.test.eval(vm, g)) {
				return targetValue(g, s.testTo)
			}
		}
	})
}

// targetValue is what was assigned to a target; a tuple is put together anew.
func targetValue(f *frame, target expr) Value {
	switch t := target.(type) {
	case *nameE:
		return f.get(t.ref)
	case *tupleE:
		items := make([]Value, len(t.items))
		for i, x := range t.items {
			items[i] = targetValue(f, x)
		}
		return tupleVal(items)
	}
	return none
}
