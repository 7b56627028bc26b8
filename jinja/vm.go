package jinja

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Template is a parsed template. It is immutable and may be rendered by many
// goroutines at once.
type Template struct {
	name   string
	cfg    config
	body   []stmt
	fn     *funcInfo
	scope  scope
	blocks map[string]*blockS
}

// Segment is a stretch of rendered text with one owner.
type Segment struct {
	Text string
	// Trusted: the text belongs to the template. Text that is not trusted came
	// from the data; no control token may be read in it.
	Trusted bool
}

// Parse reads a template; name is for errors. The error is an *Error.
func Parse(name, src string, opts ...Option) (t *Template, err error) {
	cfg := config{now: time.Now}
	for _, o := range opts {
		o(&cfg)
	}
	cfg.limits = cfg.limits.filled()
	defer catch(name, func() int { return 0 }, &err)
	if len(src) > cfg.limits.SourceBytes {
		limitError("source", "%d bytes; the limit is %d", len(src), cfg.limits.SourceBytes)
	}
	p := &parser{toks: lex(cleanUTF8(src), &cfg), max: cfg.limits.Depth}
	t = &Template{name: name, cfg: cfg, body: p.statements(nil)}
	c := &compiler{blocks: map[string]*blockS{}}
	root := &cframe{sym: newSymbols(nil), fn: newFunc(nil, 0), top: true, esc: &escState{}}
	t.fn = root.fn.info
	usesSelf := undeclared(t.body, "self")["self"]
	if usesSelf {
		root.sym.param("self")
	}
	root.slot("0 self")
	root.sym.stmts(t.body)
	c.stmts(root, t.body)
	t.scope = root.enter()
	t.blocks = c.blocks
	return t, nil
}

// Name is the name given to Parse.
func (t *Template) Name() string { return t.name }

// Render renders the template with an object of variables; the zero Value means
// none. The error is an *Error, with ctx.Err() as its kind where ctx ended.
func (t *Template) Render(ctx context.Context, data Value) (string, error) {
	r, err := t.render(ctx, data)
	if err != nil {
		return "", err
	}
	return r.s, nil
}

// Segments renders the template and says who owns each stretch of the text.
// Neighbours differ in their owner, none is empty; together they are what
// Render gives.
func (t *Template) Segments(ctx context.Context, data Value) ([]Segment, error) {
	r, err := t.render(ctx, data)
	if err != nil || r.s == "" {
		return nil, err
	}
	if r.runs == nil {
		return []Segment{{r.s, r.own}}, nil
	}
	segs := make([]Segment, 0, len(r.runs))
	at := 0
	for _, x := range r.runs {
		segs = append(segs, Segment{r.s[at:x.end], x.own})
		at = x.end
	}
	return segs, nil
}

func (t *Template) render(ctx context.Context, data Value) (out *text, err error) {
	vm := &machine{t: t, ctx: ctx, limits: &t.cfg.limits, left: t.cfg.limits.Steps, vars: data, out: &builder{}}
	defer catch(t.name, func() int { return vm.line }, &err)
	if !data.missing() && data.kind != kDict {
		raise(ErrData, "", "the variables must be an object, not %s", typeName(data))
	}
	vm.poll()
	f := &frame{slots: make([]Value, t.fn.slots)}
	f.root = f
	vm.top = f
	f.slots[0] = Value{kind: kBlocks, ref: f}
	vm.enter(f, &t.scope)
	vm.run(f, t.body)
	return vm.out.text(), nil
}

// machine is one rendering.
type machine struct {
	t        *Template
	ctx      context.Context
	limits   *Limits
	left     int64 // steps
	nextPoll int64 // the context is asked when left falls below
	depth    int   // of calls
	line     int   // being worked on
	vars     Value // the data
	out      *builder
	captured int  // bytes in the buffers below out
	escape   bool // what autoescape set, where that is known only now
	rand     *rand.Rand
	top      *frame // of the template
}

// frame is an activation of a function.
type frame struct {
	slots  []Value
	parent *frame
	root   *frame
	vars   *dict // of a root: the variables set at the top level
}

const (
	// pollSteps is how many steps pass between looks at the context.
	pollSteps = 4096
	// stepBytes is how many bytes of text cost one step.
	stepBytes = 16
	// scanBytes is how many bytes of text cost one step where each character is
	// looked up in a table or rewritten.
	scanBytes = 2
	// itemSteps and keySteps are the steps of an item of a new list and of a key
	// of a copied dict, which cost memory and hashing.
	itemSteps = 2
	keySteps  = 12
	// textSteps is the steps of a part that a string is split into, which has a
	// header of its own.
	textSteps = 6
	// callSteps is the steps of a call or of starting a loop.
	callSteps = 8
	// valueSteps is the steps of writing one value as text or of reading one
	// attribute of an item.
	valueSteps = 4
)

func (vm *machine) step(n int) {
	vm.left -= int64(n)
	if vm.left < vm.nextPoll {
		vm.poll()
	}
}

func (vm *machine) poll() {
	if vm.left < 0 {
		limitError("steps", "more than %d", vm.limits.Steps)
	}
	vm.nextPoll = max(vm.left-pollSteps, 0)
	if vm.ctx == nil {
		return
	}
	if err := vm.ctx.Err(); err != nil {
		if cause := context.Cause(vm.ctx); cause != nil && !errors.Is(cause, err) {
			raise(err, "", "%v", cause)
		}
		raise(err, "", "")
	}
}

// charge counts the work on n bytes of text.
func (vm *machine) charge(n int) { vm.step(n/stepBytes + 1) }

// scan counts the work on n bytes of text that are gone through by character.
func (vm *machine) scan(n int) { vm.step(n/scanBytes + 1) }

// fits refuses a text longer than the limit, before it is made.
func (vm *machine) fits(n int) {
	if n > vm.limits.TextBytes {
		limitError("text", "a string of more than %d bytes", vm.limits.TextBytes)
	}
}

// made checks and charges a new text.
func (vm *machine) made(t *text) Value {
	vm.fits(len(t.s))
	vm.charge(len(t.s))
	return strVal(t)
}

// room checks and charges a container of n items, before it is made.
func (vm *machine) room(n int) {
	if n > vm.limits.Items {
		limitError("items", "more than %d in one value", vm.limits.Items)
	}
	vm.step(n * itemSteps)
}

// grow checks and charges one more item in a container of n.
func (vm *machine) grow(n int) {
	vm.step(itemSteps)
	if n >= vm.limits.Items {
		limitError("items", "more than %d in one value", vm.limits.Items)
	}
}

// call counts one more level of calls; the caller defers uncall or undoes it on
// return.
func (vm *machine) call(what string) {
	if vm.depth++; vm.depth > vm.limits.CallDepth {
		limitError(what, "calls nested more than %d deep", vm.limits.CallDepth)
	}
}

func (vm *machine) uncall() { vm.depth-- }

// print adds text to the output.
func (vm *machine) print(t *text) {
	vm.charge(len(t.s))
	if vm.captured+len(vm.out.buf)+len(t.s) > vm.limits.OutputBytes {
		limitError("output", "more than %d bytes", vm.limits.OutputBytes)
	}
	vm.out.addText(t)
}

// capture runs f with an output of its own and returns what it printed.
func (vm *machine) capture(f func()) *text {
	old := vm.out
	vm.captured += len(old.buf)
	vm.out = &builder{}
	f()
	t := vm.out.text()
	vm.out = old
	vm.captured -= len(old.buf)
	return t
}

// escaping says whether printed values are escaped.
func (vm *machine) escaping(m escMode) bool { return m == escOn || m == escAsk && vm.escape }

// resolve is a variable that the template did not set here.
func (vm *machine) resolve(f *frame, name string) Value {
	if v := f.root.vars; v != nil {
		if x := v.getStr(name); !x.missing() {
			return x
		}
	}
	if vm.vars.kind == kDict {
		if x := vm.vars.dict().getStr(name); !x.missing() {
			return x
		}
	}
	return globals[name]
}

func (f *frame) get(r slotRef) Value {
	for ; r.hops > 0; r.hops-- {
		f = f.parent
	}
	return f.slots[r.slot]
}

func (f *frame) set(r slotRef, v Value) {
	for ; r.hops > 0; r.hops-- {
		f = f.parent
	}
	f.slots[r.slot] = v
}

// enter gives the variables of a scope their first values.
func (vm *machine) enter(f *frame, s *scope) {
	vm.step(2 * len(s.loads))
	for i := range s.loads {
		switch l := &s.loads[i]; l.kind {
		case loadResolve:
			f.slots[l.slot] = vm.resolve(f, l.name)
		case loadAlias:
			f.slots[l.slot] = f.get(l.from)
		case loadUnset:
			f.slots[l.slot] = Value{}
		}
	}
}

// exit forgets the variables of a scope.
func (f *frame) exit(s *scope) {
	for i := range s.loads {
		f.slots[s.loads[i].slot] = Value{}
	}
}
