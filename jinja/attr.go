package jinja

import "strings"

// method is a method of a built-in type.
type method struct {
	name string
	call func(vm *machine, self Value, a args) Value
}

type methods map[string]*method

func (m methods) add(name, spec string, f func(vm *machine, self Value, a []Value) Value) {
	p := newParams(spec)
	m[name] = &method{name, func(vm *machine, self Value, a args) Value {
		return f(vm, self, bind(vm, name, p, a))
	}}
}

var (
	strMethods, listMethods, tupleMethods, dictMethods methods
	intMethods, floatMethods, rangeMethods             methods
	viewMethods, loopMethods, cyclerMethods            methods
)

func methodsOf(v Value) methods {
	switch v.kind {
	case kStr:
		return strMethods
	case kList:
		return listMethods
	case kTuple:
		return tupleMethods
	case kDict:
		return dictMethods
	case kInt, kBig, kBool:
		return intMethods
	case kFloat:
		return floatMethods
	case kRange:
		return rangeMethods
	case kView:
		return viewMethods
	case kLoop:
		return loopMethods
	case kCycler:
		return cyclerMethods
	}
	return nil
}

// findMethod is a method that the sandbox allows to call, or nil.
func findMethod(v Value, name string) *method {
	if m := methodsOf(v); m != nil {
		return m[name]
	}
	return nil
}

// mutators are the methods that the immutable sandbox hides.
var mutators = map[kind]map[string]bool{
	kList: set("append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"),
	kDict: set("clear", "pop", "popitem", "setdefault", "update"),
}

// dunders are names that every Python object has and the sandbox hides.
var dunders = set("__class__", "__delattr__", "__dir__", "__doc__", "__eq__", "__format__", "__ge__",
	"__getattribute__", "__getstate__", "__gt__", "__hash__", "__init__", "__init_subclass__", "__le__",
	"__lt__", "__ne__", "__new__", "__reduce__", "__reduce_ex__", "__repr__", "__setattr__", "__sizeof__",
	"__str__", "__subclasshook__")

// containerDunders are those of objects with a length.
var containerDunders = set("__len__", "__contains__", "__getitem__", "__iter__", "__add__", "__mul__", "__rmul__",
	"__getnewargs__", "__setitem__", "__delitem__", "__reversed__", "__iadd__", "__imul__", "__class_getitem__",
	"__mod__", "__rmod__", "__or__", "__ior__", "__ror__")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// attribute is getattr(v, name) as the sandbox lets a template see it, or
// kMissing.
func attribute(vm *machine, v Value, name string) Value {
	if v.kind == kNamespace {
		x := v.ref.(*namespace).attrs.getStr(name)
		if !x.missing() && strings.HasPrefix(name, "_") {
			return unsafeAttr(v, name)
		}
		return x
	}
	if m := findMethod(v, name); m != nil {
		return Value{kind: kFunc, ref: &function{name: name, call: func(vm *machine, a args) Value {
			return m.call(vm, v, a)
		}}}
	}
	if isDictClass(v) {
		return dictMethod(name)
	}
	if mutators[v.kind][name] {
		return unsafeAttr(v, name)
	}
	if strings.HasPrefix(name, "__") {
		_, sized := length(v)
		if dunders[name] || sized && containerDunders[name] {
			return unsafeAttr(v, name)
		}
	}
	return property(vm, v, name)
}

// property is an attribute that is no method.
func property(vm *machine, v Value, name string) Value {
	switch v.kind {
	case kInt, kBig, kBool:
		switch name {
		case "real", "numerator":
			chargeBig(vm, v)
			return arith("+", v, intVal(0)).withData(v.data)
		case "imag":
			return intVal(0)
		case "denominator":
			return intVal(1)
		}
	case kFloat:
		switch name {
		case "real":
			return v
		case "imag":
			return floatVal(0)
		}
	case kTuple:
		if t := v.ref.(*tuple); t.group {
			switch name {
			case "grouper":
				return t.items[0]
			case "list":
				return t.items[1]
			}
		}
	case kRange:
		r := v.rng()
		switch name {
		case "start":
			return int64Val(r.start)
		case "stop":
			return int64Val(r.stop)
		case "step":
			return int64Val(r.step)
		}
	case kLoop:
		return v.ref.(*loopState).property(vm, name)
	case kCycler:
		c := v.ref.(*cycler)
		switch name {
		case "current":
			return c.items[c.pos]
		case "items":
			return tupleVal(c.items)
		case "pos":
			return intVal(c.pos)
		}
	case kJoiner:
		j := v.ref.(*joiner)
		switch name {
		case "sep":
			return j.sep
		case "used":
			return boolVal(j.used)
		}
	case kMacro:
		return macroProperty(v.ref.(*macro).def, name)
	case kBlocks:
		b := vm.t.blocks[name]
		if b == nil {
			return Value{}
		}
		at := v.ref.(*frame)
		return Value{kind: kFunc, ref: &function{name: name, call: func(vm *machine, a args) Value {
			bind(vm, name, noParams, a)
			return strVal(vm.capture(func() { vm.block(at, b, false) }))
		}}}
	}
	return Value{}
}

func macroProperty(d *macroDef, name string) Value {
	switch name {
	case "name":
		if d.name == "" {
			return none
		}
		return own(d.name)
	case "arguments":
		items := make([]Value, len(d.params))
		for i, p := range d.params {
			items[i] = own(p)
		}
		return tupleVal(items)
	case "catch_kwargs":
		return boolVal(d.kwargs)
	case "catch_varargs":
		return boolVal(d.varargs)
	case "caller":
		return boolVal(d.caller)
	case "explicit_caller":
		return boolVal(d.explicit)
	}
	return Value{}
}

func (l *loopState) property(vm *machine, name string) Value {
	switch name {
	case "index":
		return intVal(l.index0 + 1)
	case "index0":
		return intVal(l.index0)
	case "revindex":
		return intVal(l.length(vm) - l.index0)
	case "revindex0":
		return intVal(l.length(vm) - l.index0 - 1)
	case "first":
		return boolVal(l.index0 == 0)
	case "last":
		return boolVal(l.peek(vm).missing())
	case "length":
		return intVal(l.length(vm))
	case "depth":
		return intVal(l.depth0 + 1)
	case "depth0":
		return intVal(l.depth0)
	case "previtem":
		if l.index0 == 0 {
			return undefHint("there is no previous item")
		}
		return l.before
	case "nextitem":
		if v := l.peek(vm); !v.missing() {
			return v
		}
		return undefHint("there is no next item")
	}
	return Value{}
}

// getAttr is v.name: an attribute, or else an item.
func getAttr(vm *machine, v, name Value) Value {
	s := name.text().s
	if v.kind == kUndef && dunders[s] {
		return unsafeAttr(v, s)
	}
	use(v)
	if x := attribute(vm, v, s); !x.missing() {
		return x
	}
	if v.kind == kDict {
		if x := v.dict().getStr(s); !x.missing() {
			return x
		}
	}
	if isDictClass(v) && !mutators[kDict][s] && !strings.HasPrefix(s, "_") {
		return dictAlias(vm, v, name)
	}
	return undefAttr(v, name)
}

func isDictClass(v Value) bool {
	if v.kind != kFunc {
		return false
	}
	f := v.ref.(*function)
	return f.class && f.name == "dict"
}

// dictAlias is dict[k], an alias of the class that is called like the class. A
// name that dict has not is such an item: published templates count on it with
// dict.from_keys(pairs).
func dictAlias(vm *machine, v, k Value) Value {
	vm.scanned(k)
	return Value{kind: kFunc, ref: &function{
		name: "dict[" + shortRepr(k) + "]", alias: true, call: v.ref.(*function).call,
	}}
}

// dictMethod is a method of the class: fromkeys, or one that takes the dict as its
// first argument.
func dictMethod(name string) Value {
	m := dictMethods[name]
	if m == nil {
		return Value{}
	}
	return Value{kind: kFunc, ref: &function{name: name, call: func(vm *machine, a args) Value {
		if name == "fromkeys" {
			return m.call(vm, dictVal(newDict(0)), a)
		}
		if len(a.pos) == 0 || a.pos[0].kind != kDict {
			typeError("descriptor %s for 'dict' objects needs a dict as its first argument", quote(name))
		}
		self := a.pos[0]
		a.pos = a.pos[1:]
		return m.call(vm, self, a)
	}}}
}

// getItem is v[k]: an item, or else, for a string, an attribute.
func getItem(vm *machine, v, k Value) Value {
	use(v)
	switch v.kind {
	case kDict:
		if h, ok := hash(vm.key(k), 0); ok {
			if x := v.dict().get(h); !x.missing() {
				return x
			}
		}
	case kList, kTuple, kStr, kRange:
		if k.kind == kInt || k.kind == kBool {
			n, _ := length(v)
			i := k.int()
			if i < 0 {
				i += int64(n)
			}
			if i >= 0 && i < int64(n) {
				return itemAt(vm, v, int(i))
			}
			return undefAttr(v, k)
		}
	case kFunc:
		if isDictClass(v) {
			return dictAlias(vm, v, k)
		}
	}
	if k.kind == kStr {
		vm.charge(len(k.text().s))
		if x := attribute(vm, v, k.text().s); !x.missing() {
			return x
		}
	}
	return undefAttr(v, k)
}

// itemAt is the item at 0 <= i < len(v).
func itemAt(vm *machine, v Value, i int) Value {
	switch v.kind {
	case kStr:
		if !v.text().ascii() {
			vm.charge(i) // the character is counted to
		}
		vm.step(textSteps)
		return strVal(v.text().points(i, i+1))
	case kRange:
		r := v.rng()
		return int64Val(r.start + int64(i)*r.step).withData(v.data)
	}
	return v.seq()[i]
}

// slice is v[start:stop:step].
func slice(vm *machine, v, start, stop, step Value) Value {
	use(v)
	n, sized := length(v)
	if !sized || v.kind == kDict || v.kind == kView {
		if v.kind == kDict {
			typeError("unhashable type: 'slice'")
		}
		typeError("'%s' object is not subscriptable", typeName(v))
	}
	from, to, by := sliceBounds(n, start, stop, step)
	count := 0
	if by > 0 && to > from {
		count = (to-from-1)/by + 1
	} else if by < 0 && from > to {
		count = (from-to-1)/-by + 1
	}
	switch v.kind {
	case kStr:
		t := v.text()
		vm.charge(len(t.s))
		if by == 1 {
			return strVal(t.points(from, from+count))
		}
		vm.scan(len(t.s))
		return strVal(pick(t, from, by, count))
	case kRange:
		r := v.rng()
		return Value{kind: kRange, data: v.data, ref: &pyRange{
			r.start + int64(from)*r.step, r.start + int64(to)*r.step, r.step * int64(by), int64(count),
		}}
	}
	vm.room(count)
	if by == 1 {
		return seqVal(v.kind, v.seq()[from:from+count:from+count]).withData(v.data)
	}
	items := make([]Value, count)
	for i := range items {
		items[i] = v.seq()[from+i*by]
	}
	return seqVal(v.kind, items).withData(v.data)
}

// pick is count code points from one on, by steps.
func pick(t *text, from, by, count int) *text {
	offs := make([]int, 0, t.length()+1)
	for i := range t.s {
		offs = append(offs, i)
	}
	offs = append(offs, len(t.s))
	var b builder
	for ; count > 0; count-- {
		b.addSub(t, offs[from], offs[from+1])
		from += by
	}
	r := b.text()
	r.safe = t.safe
	return r
}

// sliceBounds is Python's slice.indices.
func sliceBounds(n int, start, stop, step Value) (from, to, by int) {
	index := func(v Value, def int) int {
		if v.kind == kNone {
			return def
		}
		if !v.isInt() {
			typeError("slice indices must be integers or None or have an __index__ method")
		}
		return argIndex("slice", v)
	}
	by = index(step, 1)
	if by == 0 {
		valueError("slice step cannot be zero")
	}
	low, high := 0, n
	if by < 0 {
		low, high = -1, n-1
		by = max(by, -1<<31)
	}
	by = min(by, 1<<31)
	clamp := func(i int) int {
		if i < 0 {
			return max(i+n, low)
		}
		return min(i, high)
	}
	if by > 0 {
		from, to = clamp(index(start, 0)), clamp(index(stop, n))
		return from, to, by
	}
	from, to = high, low
	if start.kind != kNone {
		from = clamp(index(start, 0))
	}
	if stop.kind != kNone {
		to = clamp(index(stop, 0))
	}
	return from, to, by
}
