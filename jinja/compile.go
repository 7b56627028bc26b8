package jinja

// The analyses of nested bodies walk them once per level; nesting is bounded, so
// the work is at most the source times the depth.

// funcScope is one activation at run time: the template, a macro, a recursive
// loop, the filter of a loop, a block. Its slots hold the identifiers that were
// defined at its levels.
type funcScope struct {
	level  int // the first level of names that lives here
	parent *funcScope
	info   *funcInfo
	slots  map[string]int
}

func newFunc(parent *funcScope, level int) *funcScope {
	return &funcScope{level: level, parent: parent, info: &funcInfo{}, slots: map[string]int{}}
}

// cframe is where a statement stands: its names, its function, and what Jinja2
// tracks besides.
type cframe struct {
	sym  *symbols
	fn   *funcScope
	top  bool // at the top level, ifs included
	soft bool // in an if, where unknown filters and tests are found out late
	loop bool // break and continue are possible
	esc  *escState
}

type escState struct{ mode escMode }

func (f *cframe) inner() *cframe {
	return &cframe{sym: newSymbols(f.sym), fn: f.fn, loop: f.loop, esc: f.esc}
}

func (f *cframe) softer() *cframe {
	c := *f
	c.soft = true
	return &c
}

type compiler struct {
	blocks map[string]*blockS
}

func (c *compiler) fail(line int, format string, args ...any) {
	defer setLine(line)
	raise(ErrSyntax, "", format, args...)
}

// slot is the place of an identifier in its function.
func (f *cframe) slot(id string) slotRef {
	level := 0
	for _, ch := range id {
		if ch == ' ' {
			break
		}
		level = level*10 + int(ch-'0')
	}
	hops, fn := 0, f.fn
	for fn.parent != nil && fn.level > level {
		fn = fn.parent
		hops++
	}
	i, ok := fn.slots[id]
	if !ok {
		i = fn.info.slots
		fn.slots[id] = i
		fn.info.slots++
	}
	return slotRef{hops, i}
}

func (c *compiler) ref(f *cframe, name string, line int) slotRef {
	id := f.sym.find(name)
	if id == "" {
		c.fail(line, "the name %s cannot be resolved here", quote(name))
	}
	return f.slot(id)
}

// enter is what happens to the variables of a frame on entering it. Parameters
// are set by whoever enters.
func (f *cframe) enter() scope {
	var s scope
	for _, id := range f.sym.order {
		l := f.sym.loads[id]
		out := load{kind: l.kind, slot: f.slot(id).slot}
		switch l.kind {
		case loadResolve:
			out.name = l.from
		case loadAlias:
			out.from = f.slot(l.from)
		}
		s.loads = append(s.loads, out)
	}
	return s
}

func (c *compiler) stmts(f *cframe, list []stmt) {
	for _, s := range list {
		c.stmt(f, s)
	}
}

func (c *compiler) stmt(f *cframe, st stmt) {
	switch t := st.(type) {
	case *printS:
		c.expr(f, t.x)
		t.esc = f.esc.mode
	case *ifS:
		soft := f.softer()
		for i := range t.tests {
			c.expr(soft, t.tests[i])
			c.stmts(soft, t.bodies[i])
		}
		c.stmts(soft, t.els)
	case *forS:
		c.forStmt(f, t)
	case *setS:
		t.spaces = c.target(f, t.target)
		c.expr(f, t.val)
		t.public = c.public(f, t.target)
	case *setBlockS:
		in := f.inner()
		in.sym.stmts(t.body)
		c.stmts(in, t.body)
		t.spaces = c.target(f, t.target)
		t.esc = f.esc.mode
		if t.filter != nil {
			c.expr(in, t.filter)
		}
		t.scope = in.enter()
		t.public = c.public(f, t.target)
	case *macroS:
		c.macro(f, t.def)
		t.ref = c.ref(f, t.def.name, t.def.line)
		if f.top {
			t.public = []string{t.def.name}
		}
	case *callBlockS:
		c.macro(f, t.def)
		t.esc = f.esc.mode
		if t.call != nil {
			c.expr(f, t.call)
			if t.call.args.has("caller") {
				c.fail(t.def.line, "keyword argument repeated: caller")
			}
		}
	case *filterBlockS:
		in := f.inner()
		in.sym.stmts(t.body)
		in.sym.expr(t.filter)
		t.scope = in.enter()
		c.stmts(in, t.body)
		c.expr(in, t.filter)
		t.esc = f.esc.mode
	case *withS:
		in := f.inner()
		for _, x := range t.targets {
			in.sym.target(x, true)
		}
		in.sym.stmts(t.body)
		t.scope = in.enter()
		for i := range t.targets {
			c.target(in, t.targets[i])
			c.expr(f, t.vals[i])
		}
		c.stmts(in, t.body)
	case *escapeS:
		in := f.inner()
		in.sym.expr(t.val)
		in.sym.stmts(t.body)
		t.scope = in.enter()
		c.expr(in, t.val)
		old := *f.esc
		f.esc.mode = escAsk
		if k, ok := t.val.(*constE); ok {
			f.esc.mode = escOff
			if truth(k.v) {
				f.esc.mode = escOn
			}
		}
		c.stmts(in, t.body)
		*f.esc = old
	case *blockS:
		c.block(f, t)
	case *loopCtlS:
		if !f.loop {
			c.fail(t.line, "'%s' outside loop", map[flow]string{flowBreak: "break", flowContinue: "continue"}[t.flow])
		}
	}
}

// has says whether a keyword argument is given.
func (a *callArgs) has(name string) bool {
	for _, n := range a.names {
		if n == name {
			return true
		}
	}
	return false
}

func (c *compiler) public(f *cframe, target expr) (names []string) {
	if !f.top {
		return nil
	}
	walkExpr(target, func(x expr) bool {
		if n, ok := x.(*nameE); ok {
			names = append(names, n.name)
		}
		return true
	})
	return names
}

// target resolves what is assigned to and returns the namespaces among it.
func (c *compiler) target(f *cframe, x expr) (spaces []*nsE) {
	walkExpr(x, func(x expr) bool {
		switch t := x.(type) {
		case *nameE:
			t.ref = c.ref(f, t.name, int(t.line))
		case *nsE:
			t.ref = c.ref(f, t.name, int(t.line))
			spaces = append(spaces, t)
		}
		return true
	})
	return spaces
}

func (c *compiler) forStmt(f *cframe, t *forS) {
	t.esc = f.esc.mode
	loop, test, els := f.inner(), f.inner(), f.inner()
	loop.loop = true
	t.extended = t.recursive || undeclared(t.body, "loop")["loop"] || hasScopedBlock(t.body) || hasScopedBlock(t.els)
	if t.extended {
		loop.sym.param("loop")
	}
	loop.sym.target(t.target, true)
	loop.sym.stmts(t.body)
	if t.hasElse {
		els.sym.stmts(t.els)
	}
	level := loop.sym.level
	if t.test != nil {
		test.sym.target(t.target, true)
		test.sym.expr(t.test)
		test.fn = newFunc(f.fn, level)
		t.testFn = test.fn.info
		t.testIn = test.enter()
		t.testTo = cloneTarget(t.target)
		c.target(test, t.testTo)
		c.expr(test, t.test)
	}
	if assignsLoop(t) {
		c.fail(t.line, "Can't assign to special loop variable in for-loop target")
	}
	if t.recursive {
		loop.fn = newFunc(f.fn, level)
		els.fn = loop.fn
		els.loop = false
		t.fn = loop.fn.info
	}
	c.expr(f, t.iter)
	c.target(loop, t.target)
	if t.extended {
		t.loopRef = c.ref(loop, "loop", t.line)
	}
	c.stmts(loop, t.body)
	t.scope = loop.enter()
	t.elseIn = els.enter()
	c.stmts(els, t.els)
}

func cloneTarget(x expr) expr {
	switch t := x.(type) {
	case *nameE:
		c := *t
		return &c
	case *tupleE:
		c := *t
		c.items = make([]expr, len(t.items))
		for i := range t.items {
			c.items[i] = cloneTarget(t.items[i])
		}
		return &c
	}
	return x
}

func (c *compiler) macro(f *cframe, d *macroDef) {
	in := f.inner()
	in.fn = newFunc(f.fn, in.sym.level)
	in.loop = false
	d.fn = in.fn.info
	analyze := func() {
		for _, p := range d.params {
			in.sym.param(p)
		}
		for _, x := range d.defaults {
			in.sym.expr(x)
		}
		in.sym.stmts(d.body)
	}
	analyze()
	u := undeclared(d.body, "caller", "kwargs", "varargs")
	special := map[string]bool{}
	for i, p := range d.params {
		if p == "caller" {
			d.explicit = true
			if u["caller"] && i < len(d.params)-len(d.defaults) {
				c.fail(d.line, "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a default.")
			}
		}
		special[p] = true
	}
	if u["caller"] {
		d.caller = true
		if !d.explicit {
			in.sym.param("caller")
		}
	}
	if u["kwargs"] && !special["kwargs"] {
		d.kwargs = true
		in.sym.param("kwargs")
	}
	if u["varargs"] && !special["varargs"] {
		d.varargs = true
		in.sym.param("varargs")
	}
	analyze()
	if d.caller {
		d.callerTo = c.ref(in, "caller", d.line)
	}
	if d.kwargs {
		d.kwTo = c.ref(in, "kwargs", d.line)
	}
	if d.varargs {
		d.varTo = c.ref(in, "varargs", d.line)
	}
	for _, p := range d.params {
		d.refs = append(d.refs, c.ref(in, p, d.line))
	}
	for _, x := range d.defaults {
		c.expr(in, x)
	}
	c.stmts(in, d.body)
	d.scope = in.enter()
}

func (c *compiler) block(f *cframe, t *blockS) {
	if c.blocks[t.name] != nil {
		c.fail(t.line, "block %s defined twice", quote(t.name))
	}
	c.blocks[t.name] = t
	if t.scoped {
		seen := map[string]bool{}
		for s := f.sym; s != nil; s = s.parent {
			for _, n := range s.names {
				if !seen[n] {
					seen[n] = true
					t.vis = append(t.vis, visible{n, c.ref(f, n, t.line)})
				}
			}
		}
	}
	in := &cframe{sym: newSymbols(nil), fn: newFunc(nil, 0), esc: &escState{}}
	if undeclared(t.body, "super")["super"] {
		defer setLine(t.line)
		raise(ErrUnsupported, "super", "there is no parent template")
	}
	in.sym.param("self")
	in.slot(in.sym.find("self"))
	in.sym.stmts(t.body)
	t.fn = in.fn.info
	c.stmts(in, t.body)
	t.scope = in.enter()
}

func (c *compiler) expr(f *cframe, x expr) {
	walkExpr(x, func(x expr) bool {
		switch t := x.(type) {
		case *nameE:
			t.ref = c.ref(f, t.name, int(t.line))
		case *concatE:
			t.esc = f.esc.mode
		case *filterE:
			if t.f = filters[t.name]; t.f == nil && !f.soft {
				c.unknown("filter", t.name, t.line)
			}
		case *testE:
			if t.f = tests[t.name]; t.f == nil && !f.soft {
				c.unknown("test", t.name, t.line)
			}
		case *condE:
			soft := f.softer()
			c.expr(soft, t.test)
			c.expr(soft, t.yes)
			c.expr(soft, t.no)
			return false
		}
		return true
	})
}

func (c *compiler) unknown(what, name string, line int32) {
	defer setLine(int(line))
	raise(ErrSyntax, what, "No %s named %s.", what, quote(name))
}

// eachStmt visits statements and all that they contain.
func eachStmt(list []stmt, f func(stmt)) {
	for _, s := range list {
		f(s)
		switch t := s.(type) {
		case *ifS:
			for _, b := range t.bodies {
				eachStmt(b, f)
			}
			eachStmt(t.els, f)
		case *forS:
			eachStmt(t.body, f)
			eachStmt(t.els, f)
		case *setBlockS:
			eachStmt(t.body, f)
		case *macroS:
			eachStmt(t.def.body, f)
		case *callBlockS:
			eachStmt(t.def.body, f)
		case *filterBlockS:
			eachStmt(t.body, f)
		case *withS:
			eachStmt(t.body, f)
		case *escapeS:
			eachStmt(t.body, f)
		case *blockS:
			eachStmt(t.body, f)
		}
	}
}

func hasScopedBlock(list []stmt) (found bool) {
	eachStmt(list, func(s stmt) {
		if b, ok := s.(*blockS); ok && b.scoped {
			found = true
		}
	})
	return found
}

// assignsLoop says whether a loop, or anything in it, assigns to the name loop.
func assignsLoop(t *forS) (found bool) {
	target := func(x expr) {
		walkExpr(x, func(x expr) bool {
			if n, ok := x.(*nameE); ok && n.name == "loop" {
				found = true
			}
			return true
		})
	}
	eachStmt([]stmt{t}, func(s stmt) {
		switch s := s.(type) {
		case *forS:
			target(s.target)
		case *setS:
			target(s.target)
		case *setBlockS:
			target(s.target)
		}
	})
	return found
}
