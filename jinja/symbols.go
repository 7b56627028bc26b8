package jinja

import "strconv"

// symbols is the names that one frame of a template knows. Jinja2 decides at
// compile time where each name of a template lives, and what a template sees
// follows from that; so the same analysis is made here. A frame is the template,
// a macro, the body of a loop, a with, and the like; an if is none.
type symbols struct {
	level  int
	parent *symbols
	refs   map[string]string // name to identifier
	loads  map[string]symLoad
	order  []string // of loads
	stores map[string]bool
	names  []string // of stores, in order
}

type symLoad struct {
	kind loadKind
	from string // the outer identifier of an alias, the name of a resolve
}

func newSymbols(parent *symbols) *symbols {
	s := &symbols{parent: parent, refs: map[string]string{}, loads: map[string]symLoad{}, stores: map[string]bool{}}
	if parent != nil {
		s.level = parent.level + 1
	}
	return s
}

func (s *symbols) clone() *symbols {
	c := &symbols{level: s.level, parent: s.parent, refs: map[string]string{}, loads: map[string]symLoad{}, stores: map[string]bool{}}
	for k, v := range s.refs {
		c.refs[k] = v
	}
	for _, k := range s.order {
		c.setLoad(k, s.loads[k])
	}
	for _, k := range s.names {
		c.addStore(k)
	}
	return c
}

func (s *symbols) setLoad(id string, l symLoad) {
	if _, ok := s.loads[id]; !ok {
		s.order = append(s.order, id)
	}
	s.loads[id] = l
}

func (s *symbols) addStore(name string) {
	if !s.stores[name] {
		s.stores[name] = true
		s.names = append(s.names, name)
	}
}

func (s *symbols) define(name string, l symLoad) {
	id := strconv.Itoa(s.level) + " " + name
	s.refs[name] = id
	s.setLoad(id, l)
}

func (s *symbols) find(name string) string {
	for ; s != nil; s = s.parent {
		if id, ok := s.refs[name]; ok {
			return id
		}
	}
	return ""
}

func (s *symbols) outer(name string) string {
	if s.parent == nil {
		return ""
	}
	return s.parent.find(name)
}

func (s *symbols) store(name string) {
	s.addStore(name)
	if _, ok := s.refs[name]; ok {
		return
	}
	if id := s.outer(name); id != "" {
		s.define(name, symLoad{loadAlias, id})
		return
	}
	s.define(name, symLoad{kind: loadUnset})
}

func (s *symbols) param(name string) {
	s.addStore(name)
	s.define(name, symLoad{kind: loadParam})
}

func (s *symbols) load(name string) {
	if s.find(name) == "" {
		s.define(name, symLoad{loadResolve, name})
	}
}

// merge takes over what the branches of an if found. A name that only some of
// them set begins as what it is outside.
func (s *symbols) merge(branches ...*symbols) {
	var stored []string
	seen := map[string]bool{}
	for _, b := range branches {
		for _, n := range b.names {
			if !s.stores[n] && !seen[n] {
				seen[n] = true
				stored = append(stored, n)
			}
		}
	}
	for _, b := range branches {
		for _, n := range b.names {
			s.addStore(n)
		}
		for n, id := range b.refs {
			s.refs[n] = id
		}
		for _, id := range b.order {
			s.setLoad(id, b.loads[id])
		}
	}
	for _, n := range stored {
		id := s.find(n)
		if out := s.outer(n); out != "" {
			s.setLoad(id, symLoad{loadAlias, out})
		} else {
			s.setLoad(id, symLoad{loadResolve, n})
		}
	}
}

// expr records the names that an expression reads.
func (s *symbols) expr(x expr) {
	walkExpr(x, func(x expr) bool {
		switch t := x.(type) {
		case *nameE:
			s.load(t.name)
		case *nsE:
			s.load(t.name)
		}
		return true
	})
}

// target records the names that are assigned to; as parameters in loops and
// with.
func (s *symbols) target(x expr, param bool) {
	switch t := x.(type) {
	case *nameE:
		if param {
			s.param(t.name)
		} else {
			s.store(t.name)
		}
	case *nsE:
		s.load(t.name)
	case *tupleE:
		for _, i := range t.items {
			s.target(i, param)
		}
	}
}

// stmts records the names of statements that belong to this frame; the bodies
// of inner frames are left to them.
func (s *symbols) stmts(list []stmt) {
	for _, st := range list {
		s.stmt(st)
	}
}

func (s *symbols) stmt(st stmt) {
	switch t := st.(type) {
	case *printS:
		s.expr(t.x)
	case *ifS:
		s.ifStmt(t)
	case *forS:
		s.expr(t.iter)
	case *setS:
		s.expr(t.val)
		s.target(t.target, false)
	case *setBlockS:
		s.target(t.target, false)
	case *macroS:
		s.store(t.def.name)
	case *callBlockS:
		if t.call != nil {
			s.expr(t.call)
		}
	case *filterBlockS:
		s.expr(t.filter)
	case *withS:
		for _, v := range t.vals {
			s.expr(v)
		}
	}
}

// ifStmt: each elif is an if of its own inside one common branch.
func (s *symbols) ifStmt(t *ifS) {
	s.expr(t.tests[0])
	body := s.clone()
	body.stmts(t.bodies[0])
	elifs := s.clone()
	for i := 1; i < len(t.tests); i++ {
		elifs.expr(t.tests[i])
		b := elifs.clone()
		b.stmts(t.bodies[i])
		elifs.merge(b, elifs.clone(), elifs.clone())
	}
	els := s.clone()
	els.stmts(t.els)
	s.merge(body, elifs, els)
}

// walkExpr visits an expression and its parts, parents first, in the order of
// Jinja2's tree; the parts only where f says so.
func walkExpr(x expr, f func(expr) bool) {
	if x == nil || !f(x) {
		return
	}
	all := func(l []expr) {
		for _, i := range l {
			walkExpr(i, f)
		}
	}
	switch t := x.(type) {
	case *tupleE:
		all(t.items)
	case *listE:
		all(t.items)
	case *dictE:
		for i := range t.keys {
			walkExpr(t.keys[i], f)
			walkExpr(t.vals[i], f)
		}
	case *condE:
		walkExpr(t.test, f)
		walkExpr(t.yes, f)
		walkExpr(t.no, f)
	case *binE:
		walkExpr(t.l, f)
		walkExpr(t.r, f)
	case *unaryE:
		walkExpr(t.x, f)
	case *logicE:
		walkExpr(t.l, f)
		walkExpr(t.r, f)
	case *compareE:
		walkExpr(t.first, f)
		all(t.rest)
	case *concatE:
		all(t.items)
	case *attrE:
		walkExpr(t.x, f)
	case *itemE:
		walkExpr(t.x, f)
		walkExpr(t.arg, f)
	case *sliceE:
		all([]expr{t.x, t.start, t.stop, t.step})
	case *filterE:
		walkExpr(t.x, f)
		all(t.args.exprs())
	case *testE:
		walkExpr(t.x, f)
		all(t.args.exprs())
	case *callE:
		walkExpr(t.fn, f)
		all(t.args.exprs())
	}
}

// undeclared says which of some names the statements read before they set them,
// nested bodies included and blocks excluded.
func undeclared(list []stmt, names ...string) map[string]bool {
	u := &undeclaredNames{want: map[string]bool{}, found: map[string]bool{}}
	for _, n := range names {
		u.want[n] = true
	}
	u.stmts(list)
	return u.found
}

type undeclaredNames struct {
	want, found map[string]bool
}

func (u *undeclaredNames) expr(x expr) {
	walkExpr(x, func(x expr) bool {
		if n, ok := x.(*nameE); ok && u.want[n.name] {
			u.found[n.name] = true
		}
		return true
	})
}

func (u *undeclaredNames) target(x expr) {
	switch t := x.(type) {
	case *nameE:
		delete(u.want, t.name)
	case *tupleE:
		for _, i := range t.items {
			u.target(i)
		}
	}
}

func (u *undeclaredNames) def(d *macroDef) {
	for _, p := range d.params {
		delete(u.want, p)
	}
	for _, x := range d.defaults {
		u.expr(x)
	}
	u.stmts(d.body)
}

func (u *undeclaredNames) stmts(list []stmt) {
	for _, st := range list {
		switch t := st.(type) {
		case *printS:
			u.expr(t.x)
		case *ifS:
			u.expr(t.tests[0])
			u.stmts(t.bodies[0])
			for i := 1; i < len(t.tests); i++ {
				u.expr(t.tests[i])
				u.stmts(t.bodies[i])
			}
			u.stmts(t.els)
		case *forS:
			u.target(t.target)
			u.expr(t.iter)
			u.stmts(t.body)
			u.stmts(t.els)
			u.expr(t.test)
		case *setS:
			u.target(t.target)
			u.expr(t.val)
		case *setBlockS:
			u.target(t.target)
			if t.filter != nil {
				u.expr(t.filter)
			}
			u.stmts(t.body)
		case *macroS:
			u.def(t.def)
		case *callBlockS:
			if t.call != nil {
				u.expr(t.call)
			}
			u.def(t.def)
		case *filterBlockS:
			u.stmts(t.body)
			u.expr(t.filter)
		case *withS:
			for _, x := range t.targets {
				u.target(x)
			}
			for _, x := range t.vals {
				u.expr(x)
			}
			u.stmts(t.body)
		case *escapeS:
			u.expr(t.val)
			u.stmts(t.body)
		}
	}
}
