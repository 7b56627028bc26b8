package jinja

// base is what every expression carries: its line and the height of its tree,
// which bounds the depth of its evaluation.
type base struct {
	line   int32
	height int32
}

func (b *base) info() *base { return b }

// expr is an expression. After Parse its names are resolved to slots.
type expr interface {
	info() *base
	eval(vm *machine, f *frame) Value
}

// stmt is a statement.
type stmt interface {
	exec(vm *machine, f *frame) flow
}

// flow says how a statement ended.
type flow uint8

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

// escMode says whether printed values are escaped: it is known from the source
// or asked of the running template.
type escMode uint8

const (
	escOff escMode = iota
	escOn
	escAsk
)

type (
	constE struct {
		base
		v Value
	}
	// nameE reads a variable, or is a target where one is assigned.
	nameE struct {
		base
		name string
		ref  slotRef
	}
	// nsE is the target ns.attr of an assignment.
	nsE struct {
		base
		name, attr string
		ref        slotRef
	}
	tupleE struct {
		base
		items []expr
	}
	listE struct {
		base
		items []expr
	}
	dictE struct {
		base
		keys, vals []expr
	}
	condE struct {
		base
		test, yes, no expr // no may be nil
	}
	binE struct {
		base
		op   string
		l, r expr
	}
	unaryE struct {
		base
		op string // "-", "+", "not"
		x  expr
	}
	logicE struct {
		base
		or   bool
		l, r expr
	}
	compareE struct {
		base
		first expr
		ops   []string // ==, !=, <, <=, >, >=, in, not in
		rest  []expr
	}
	concatE struct {
		base
		items []expr
		esc   escMode
	}
	attrE struct {
		base
		x    expr
		name string
		attr Value // the name as a string
	}
	itemE struct {
		base
		x, arg expr
	}
	sliceE struct {
		base
		x                 expr // nil inside a subscript of several parts
		start, stop, step expr // nil: left out
	}
	filterE struct {
		base
		x    expr // nil in filter blocks and set blocks: the text captured
		name string
		args callArgs
		f    *filter // nil: unknown, an error when it is reached
	}
	testE struct {
		base
		x    expr
		name string
		args callArgs
		f    *filter
	}
	callE struct {
		base
		fn   expr
		args callArgs
	}
)

type callArgs struct {
	pos      []expr
	names    []string
	vals     []expr
	star     expr // *args
	starstar expr // **kwargs
}

func (a *callArgs) exprs() []expr {
	l := append(append([]expr{}, a.pos...), a.vals...)
	if a.star != nil {
		l = append(l, a.star)
	}
	if a.starstar != nil {
		l = append(l, a.starstar)
	}
	return l
}

type (
	textS struct {
		t *text
	}
	printS struct {
		x   expr
		esc escMode
	}
	ifS struct {
		tests  []expr
		bodies [][]stmt
		els    []stmt
	}
	forS struct {
		line      int
		target    expr
		iter      expr
		test      expr // nil: none
		body      []stmt
		els       []stmt
		hasElse   bool
		recursive bool
		esc       escMode

		extended bool
		loopRef  slotRef
		scope    scope
		elseIn   scope
		fn       *funcInfo // of a recursive loop
		testFn   *funcInfo
		testIn   scope
		testTo   expr // target inside the filter function
	}
	setS struct {
		line   int
		target expr
		val    expr
		spaces []*nsE // the namespaces to check
		public []string
	}
	setBlockS struct {
		line   int
		target expr
		filter *filterE // nil: none
		body   []stmt
		scope  scope
		esc    escMode
		spaces []*nsE
		public []string
	}
	// macroDef is a macro, or the body of a call block.
	macroDef struct {
		line     int
		name     string // empty for a call block
		params   []string
		refs     []slotRef
		defaults []expr // of the last parameters
		body     []stmt

		fn                      *funcInfo
		scope                   scope
		caller, kwargs, varargs bool
		callerTo, kwTo, varTo   slotRef
		explicit                bool // a parameter is named caller
	}
	macroS struct {
		def    *macroDef
		ref    slotRef
		public []string
	}
	callBlockS struct {
		def  *macroDef
		call *callE // nil: a generation block
		esc  escMode
	}
	filterBlockS struct {
		filter *filterE
		body   []stmt
		scope  scope
		esc    escMode
	}
	withS struct {
		line    int
		targets []expr
		vals    []expr
		body    []stmt
		scope   scope
	}
	escapeS struct {
		val   expr
		body  []stmt
		scope scope
	}
	blockS struct {
		line     int
		name     string
		scoped   bool
		required bool
		body     []stmt

		fn    *funcInfo
		scope scope
		vis   []visible // the variables a scoped block sees
	}
	loopCtlS struct {
		line int
		flow flow
	}
)

type visible struct {
	name string
	ref  slotRef
}

// slotRef is a variable: the slot of the function so many levels out.
type slotRef struct {
	hops, slot int
}

// funcInfo is what one activation needs: the number of its slots.
type funcInfo struct {
	slots int
}

// scope is what happens to the variables on entering a frame of names.
type scope struct {
	loads []load
}

type loadKind uint8

const (
	loadParam loadKind = iota
	loadResolve
	loadAlias
	loadUnset
)

// load gives a slot its first value.
type load struct {
	kind loadKind
	slot int
	name string  // loadResolve
	from slotRef // loadAlias
}
