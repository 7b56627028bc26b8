package jinja

import (
	"math"
	"math/big"
)

type kind uint8

const (
	kMissing kind = iota // no value: an unset variable or argument
	kUndef
	kNone
	kBool
	kInt // num holds an int64
	kBig // ref holds a *big.Int that does not fit an int64
	kFloat
	kStr
	kList
	kTuple
	kDict
	kRange
	kView // keys, values or items of a dict
	kIter // an iterator, used up by reading it
	kFunc
	kMacro
	kLoop
	kNamespace
	kCycler
	kJoiner
	kBlocks // self
)

// Value is a value of the template language: what FromJSON and the constructors
// make and Render takes. The zero Value is no value. Values are immutable and
// may be shared.
type Value struct {
	kind kind
	// data: the value came from outside the template, so that what is printed
	// of it belongs to the data. Strings carry owners in their text instead.
	data bool
	num  uint64
	ref  any
}

var (
	none     = Value{kind: kNone}
	pyTrue   = Value{kind: kBool, num: 1}
	pyFalse  = Value{kind: kBool}
	emptyStr = strVal(&text{own: true})
)

type undefined struct {
	hint  string
	obj   Value // kMissing: a variable
	name  Value
	error error // the sentinel raised on use; nil: ErrUndefined
}

type list struct{ items []Value }

// tuple is also a group of groupby, whose two items have names.
type tuple struct {
	items []Value
	group bool
}

type pyRange struct{ start, stop, step, n int64 }

type view struct {
	what string // "keys", "values", "items"
	d    *dict
}

// iter is a Python iterator. next gives kMissing at the end.
type iter struct {
	name  string // the type, for errors
	depth int    // iterators that read iterators, for a bound on the stack
	next  func(vm *machine) Value
}

type namespace struct{ attrs *dict }

type cycler struct {
	items []Value
	pos   int
}

type joiner struct {
	sep  Value
	used bool
}

type function struct {
	name  string
	class bool
	alias bool // a class with an item: dict['x']
	call  func(vm *machine, a args) Value
}

func strVal(t *text) Value { return Value{kind: kStr, ref: t} }
func own(s string) Value   { return strVal(newText(s, true)) }
func boolVal(b bool) Value {
	if b {
		return pyTrue
	}
	return pyFalse
}
func intVal(i int) Value           { return Value{kind: kInt, num: uint64(int64(i))} }
func int64Val(i int64) Value       { return Value{kind: kInt, num: uint64(i)} }
func floatVal(f float64) Value     { return Value{kind: kFloat, num: math.Float64bits(f)} }
func listVal(items []Value) Value  { return Value{kind: kList, ref: &list{items}} }
func tupleVal(items []Value) Value { return Value{kind: kTuple, ref: &tuple{items: items}} }
func dictVal(d *dict) Value        { return Value{kind: kDict, ref: d} }

func bigVal(b *big.Int) Value {
	if b.IsInt64() {
		return int64Val(b.Int64())
	}
	if b.BitLen() > MaxIntBits {
		limitError("int", "an integer of %d bits; the limit is %d", b.BitLen(), MaxIntBits)
	}
	return Value{kind: kBig, ref: b}
}

func (v Value) text() *text    { return v.ref.(*text) }
func (v Value) int() int64     { return int64(v.num) }
func (v Value) float() float64 { return math.Float64frombits(v.num) }
func (v Value) items() []Value { return v.ref.(*list).items }
func (v Value) tuple() []Value { return v.ref.(*tuple).items }
func (v Value) dict() *dict    { return v.ref.(*dict) }
func (v Value) rng() *pyRange  { return v.ref.(*pyRange) }
func (v Value) isInt() bool    { return v.kind == kInt || v.kind == kBig || v.kind == kBool }
func (v Value) isNumber() bool { return v.isInt() || v.kind == kFloat }
func (v Value) isSeq() bool    { return v.kind == kList || v.kind == kTuple }
func (v Value) missing() bool  { return v.kind == kMissing }
func (v Value) isTrue() bool   { return v.kind == kBool && v.num == 1 }
func (v Value) withData(d bool) Value {
	v.data = v.data || d
	return v
}

// seq is the items of a list or tuple.
func (v Value) seq() []Value {
	if v.kind == kTuple {
		return v.tuple()
	}
	return v.items()
}

// big is an integer or bool as a big.Int; the result must not be changed.
func (v Value) big() *big.Int {
	if v.kind == kBig {
		return v.ref.(*big.Int)
	}
	return big.NewInt(v.int())
}

// String makes a string that belongs to the data.
func String(s string) Value { return fresh(s, false) }

// Trusted makes a string that belongs to the template, such as the text of a
// begin-of-sequence token that the caller vouches for.
func Trusted(s string) Value { return fresh(s, true) }

func fresh(s string, own bool) Value {
	t := newText(cleanUTF8(s), own)
	t.length() // counted now, so that reading a shared value never writes
	return strVal(t)
}

// Bool makes a bool.
func Bool(b bool) Value { return boolVal(b).withData(true) }

// Int makes an integer.
func Int(i int64) Value { return int64Val(i).withData(true) }

// Float makes a float.
func Float(f float64) Value { return floatVal(f).withData(true) }

// None is the value None.
func None() Value { return none.withData(true) }

// List makes a list; it takes over the slice.
func List(items ...Value) Value { return listVal(items).withData(true) }

// Pair is a key of an Object and its value.
type Pair struct {
	Key   string
	Value Value
}

// Object makes a dict with the keys in this order; a later pair with the same
// key replaces the value of the earlier.
func Object(pairs ...Pair) Value {
	d := newDict(len(pairs))
	for _, p := range pairs {
		d.set(String(p.Key), p.Value)
	}
	return dictVal(d).withData(true)
}

// Get is the value of a key of an object.
func (v Value) Get(key string) (Value, bool) {
	if v.kind != kDict {
		return Value{}, false
	}
	r := v.dict().get(hkey{k: kStr, s: key})
	return r, !r.missing()
}

// With is a copy of an object with one more key, or with the value of a key
// replaced. A value that is no object becomes one of this key alone.
func (v Value) With(key string, val Value) Value {
	d := newDict(1)
	if v.kind == kDict {
		d = v.dict().copy()
	}
	d.set(String(key), val)
	return dictVal(d).withData(true)
}

func typeName(v Value) string {
	switch v.kind {
	case kUndef:
		return "Undefined"
	case kNone:
		return "NoneType"
	case kBool:
		return "bool"
	case kInt, kBig:
		return "int"
	case kFloat:
		return "float"
	case kStr:
		if v.text().safe {
			return "Markup"
		}
		return "str"
	case kList:
		return "list"
	case kTuple:
		return "tuple"
	case kDict:
		return "dict"
	case kRange:
		return "range"
	case kView:
		return "dict_" + v.ref.(*view).what
	case kIter:
		return v.ref.(*iter).name
	case kFunc:
		switch f := v.ref.(*function); {
		case f.alias:
			return "types.GenericAlias"
		case f.class:
			return "type"
		}
		return "builtin_function_or_method"
	case kMacro:
		return "Macro"
	case kLoop:
		return "LoopContext"
	case kNamespace:
		return "Namespace"
	case kCycler:
		return "Cycler"
	case kJoiner:
		return "Joiner"
	case kBlocks:
		return "TemplateReference"
	}
	return "missing"
}

// objectName is how an undefined attribute names its object.
func objectName(v Value) string {
	switch v.kind {
	case kNone:
		return "None"
	case kNamespace, kCycler, kJoiner:
		return "jinja2.utils." + typeName(v) + " object"
	case kMacro, kLoop, kBlocks:
		return "jinja2.runtime." + typeName(v) + " object"
	}
	return typeName(v) + " object"
}

func undefVar(name string) Value {
	return Value{kind: kUndef, ref: &undefined{name: own(name)}}
}

func undefHint(hint string) Value {
	return Value{kind: kUndef, ref: &undefined{hint: hint}}
}

func undefAttr(obj, name Value) Value {
	return Value{kind: kUndef, ref: &undefined{obj: obj, name: name}}
}

func unsafeAttr(obj Value, name string) Value {
	return Value{kind: kUndef, ref: &undefined{
		hint:  "access to attribute " + quote(name) + " of '" + typeName(obj) + "' object is unsafe.",
		error: ErrSecurity,
	}}
}

// use fails if v is undefined: it is about to be used as a value.
func use(v Value) {
	if v.kind != kUndef {
		return
	}
	u := v.ref.(*undefined)
	kind := u.error
	if kind == nil {
		kind = ErrUndefined
	}
	switch {
	case u.hint != "":
		raise(kind, "", "%s", u.hint)
	case u.obj.missing():
		raise(kind, "", "%s is undefined", quote(u.name.text().s))
	case u.name.kind != kStr:
		raise(kind, "", "%s has no element %s", objectName(u.obj), shortRepr(u.name))
	}
	raise(kind, "", "'%s' has no attribute %s", objectName(u.obj), quote(u.name.text().s))
}
