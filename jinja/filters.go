package jinja

import (
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
)

// filter is a filter or a test. v is what it is applied to.
type filter struct {
	call func(vm *machine, name string, v Value, a args) Value
}

// filters are the built-in filters.
var filters map[string]*filter

// addFilter registers a filter with a signature whose first parameter is what it
// is applied to.
func addFilter(name, spec string, f func(vm *machine, a []Value) Value) {
	if filters == nil {
		filters = map[string]*filter{}
	}
	p := newParams(spec)
	filters[name] = &filter{func(vm *machine, name string, v Value, a args) Value {
		return f(vm, bind(vm, name, p, withFirst(v, a)))
	}}
}

func filterArgError(format string, args ...any) {
	raise(ErrRuntime, "FilterArgumentError", format, args...)
}

func init() {
	addFilter("abs", "x, /", func(vm *machine, a []Value) Value {
		use(a[0])
		switch v := a[0]; {
		case v.kind == kFloat:
			return floatVal(math.Abs(v.float())).withData(v.data)
		case v.isInt():
			chargeBig(vm, v)
			return bigVal(new(big.Int).Abs(v.big())).withData(v.data)
		}
		typeError("bad operand type for abs(): '%s'", typeName(a[0]))
		return none
	})
	addFilter("default", "value, default_value='', boolean=False", func(_ *machine, a []Value) Value {
		if a[0].kind == kUndef || truth(a[2]) && !truth(a[0]) {
			return a[1]
		}
		return a[0]
	})
	filters["d"] = filters["default"]
	addFilter("attr", "obj, name", func(vm *machine, a []Value) Value {
		name := argText("attr", a[1])
		vm.charge(len(name.s))
		if a[0].kind == kUndef && strings.HasPrefix(name.s, "__") && strings.HasSuffix(name.s, "__") {
			return undefAttr(a[0], a[1]) // Python asks an undefined value for these without failing
		}
		use(a[0])
		if v := attribute(vm, a[0], name.s); !v.missing() {
			return v
		}
		return undefAttr(a[0], a[1])
	})
	addFilter("int", "value, default=0, base=10", func(vm *machine, a []Value) Value {
		vm.chargeNumber(a[0])
		return toInt(a[0], a[1], a[2])
	})
	addFilter("float", "value, default=0.0", func(vm *machine, a []Value) Value {
		vm.chargeNumber(a[0])
		use(a[0])
		switch v := a[0]; {
		case v.isNumber():
			return floatVal(toFloat(v)).withData(v.data)
		case v.kind == kStr:
			if f, ok := floatOf(v.text().s); ok {
				return floatVal(f).withData(!v.text().allOwn())
			}
		}
		return a[1]
	})
	addFilter("round", "value, precision=0, method='common'", func(vm *machine, a []Value) Value {
		return round(vm, a[0], a[1], a[2])
	})
	addFilter("filesizeformat", "value, binary=False", func(vm *machine, a []Value) Value {
		vm.chargeNumber(a[0])
		return fileSize(a[0], truth(a[1]))
	})
	addFilter("tojson", "x, ensure_ascii=False, indent=None, separators=None, sort_keys=False", toJSON)
	addFilter("items", "value", func(_ *machine, a []Value) Value {
		v := a[0]
		var it *iter
		return iterVal(newIter("generator", iterDepth(v), func(vm *machine) Value {
			if it == nil {
				switch v.kind {
				case kUndef:
					it = sliceIter("", nil)
				case kDict:
					it = tryIterate(Value{kind: kView, data: v.data, ref: &view{"items", v.dict()}})
				default:
					typeError("Can only get item pairs from a mapping.")
				}
			}
			return it.next(vm)
		}))
	})
	addFilter("dictsort", "value, case_sensitive=False, by='key', reverse=False", func(vm *machine, a []Value) Value {
		use(a[0])
		pos := 0
		switch by := a[2]; {
		case by.kind == kStr && by.text().s == "key":
		case by.kind == kStr && by.text().s == "value":
			pos = 1
		default:
			filterArgError("You can only sort by either \"key\" or \"value\"")
		}
		if a[0].kind != kDict {
			typeError("'%s' object has no attribute 'items'", typeName(a[0]))
		}
		d := a[0].dict()
		keys := d.keys
		if pos == 1 {
			keys = d.vals
		}
		if !truth(a[1]) {
			keys = foldCase(vm, keys)
		}
		vm.room(d.len())
		vm.step(itemSteps * d.len())
		idx := make([]int, d.len())
		items := make([]Value, d.len())
		for i := range idx {
			idx[i] = i
		}
		sortBy(vm, idx, keys, truth(a[3]))
		for i, k := range idx {
			items[i] = tupleVal([]Value{d.keys[k], d.vals[k]}).withData(a[0].data)
		}
		return listVal(items).withData(a[0].data)
	})
}

func iterVal(it *iter) Value { return Value{kind: kIter, ref: it} }

// iterDepth is how many iterators lie below an iterator over v.
func iterDepth(v Value) int {
	if v.kind == kIter {
		return v.ref.(*iter).depth
	}
	return 0
}

// foldCase lowers the strings among values, for comparing.
func foldCase(vm *machine, vals []Value) []Value {
	out := make([]Value, len(vals))
	for i, v := range vals {
		out[i] = ignoreCase(vm, v)
	}
	return out
}

func ignoreCase(vm *machine, v Value) Value {
	if v.kind != kStr {
		return v
	}
	vm.scan(len(v.text().s))
	return own(lowerString(v.text().s))
}

// sortBy sorts indexes by their keys; equal ones keep their order.
func sortBy(vm *machine, idx []int, keys []Value, reverse bool) {
	sort.SliceStable(idx, func(i, j int) bool {
		vm.step(1)
		if reverse {
			i, j = j, i
		}
		return order(vm, "<", keys[idx[i]], keys[idx[j]], 0)
	})
}

// chargeNumber counts the reading of a number, which grows with the square of its
// length up to the longest integer.
func (vm *machine) chargeNumber(v Value) {
	vm.step(floatSteps)
	chargeBig(vm, v)
	if v.kind == kStr {
		n := len(v.text().s)
		vm.step(2 * floatSteps)
		vm.scan(4 * n)
		words := min(n, MaxIntBits) / 16
		vm.step(words * words / 64)
	}
}

// toInt is the filter int.
func toInt(v, def, base Value) Value {
	use(v)
	switch v.kind {
	case kInt, kBig, kBool:
		return arith("+", v, intVal(0)).withData(v.data)
	case kFloat:
		if math.IsNaN(v.float()) {
			return def
		}
		return truncFloat(v.float()).withData(v.data)
	case kStr:
		data := !v.text().allOwn()
		if base.isInt() {
			if i, ok := intOf(v.text().s, argIndex("int", base)); ok {
				return i.withData(data)
			}
		}
		if f, ok := floatOf(v.text().s); ok && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return truncFloat(f).withData(data)
		}
	}
	return def
}

// roundSteps is what rounding costs at least: it makes a power of ten.
const roundSteps = 100

func round(vm *machine, v, precision, method Value) Value {
	m := ""
	if method.kind == kStr {
		m = method.text().s
	}
	switch m {
	case "common":
		vm.step(roundSteps)
		chargeBig(vm, v)
		chargeBig(vm, v)
		use(v)
		if !v.isNumber() {
			typeError("type %s doesn't define __round__ method", typeName(v))
		}
		if v.kind == kFloat {
			if precision.kind == kNone {
				return roundInt(v.float()).withData(v.data)
			}
			return floatVal(roundFloat(v.float(), argIndex("round", precision))).withData(v.data)
		}
		v = arith("+", v, intVal(0)).withData(v.data)
		if precision.kind == kNone {
			return v
		}
		return roundTens(v, argIndex("round", precision)).withData(v.data)
	case "ceil", "floor":
		scale := binary(vm, "**", intVal(10), precision)
		x := binary(vm, "*", v, scale)
		if !x.isNumber() {
			typeError("must be real number, not %s", typeName(x))
		}
		if x.kind == kFloat {
			f := x.float()
			if m == "ceil" {
				f = math.Ceil(f)
			} else {
				f = math.Floor(f)
			}
			x = truncFloat(f)
		}
		return binary(vm, "/", x, scale).withData(v.data)
	}
	filterArgError("method must be common, ceil or floor")
	return none
}

// roundInt is round(float) without digits: to the nearest integer, ties to even.
func roundInt(f float64) Value { return truncFloat(math.RoundToEven(f)) }

// roundFloat rounds the exact value to decimal digits, ties to even.
func roundFloat(f float64, digits int) float64 {
	if math.IsInf(f, 0) || math.IsNaN(f) || digits > 323 {
		return f
	}
	if digits < -308 {
		return math.Copysign(0, f)
	}
	if digits >= 0 {
		r, _ := parseFloat(strconv.FormatFloat(f, 'f', digits, 64))
		return r
	}
	b, _ := new(big.Float).SetPrec(2000).SetFloat64(math.Trunc(f)).Int(nil)
	r := roundTens(bigVal(b), digits)
	if math.Trunc(f) != f {
		// A fraction decides what would be a tie.
		half := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
		rem := new(big.Int).Rem(b, half)
		half.Quo(half, big.NewInt(2))
		if rem.CmpAbs(half) == 0 {
			away := new(big.Int).Add(b, big.NewInt(int64(math.Copysign(1, f))))
			r = roundTens(bigVal(away), digits)
		}
	}
	return math.Copysign(toFloat(r), f)
}

// roundTens is round(int, digits).
func roundTens(v Value, digits int) Value {
	if digits >= 0 {
		return v
	}
	if -digits > maxIntDigits*5 {
		return intVal(0)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	q, r := new(big.Int).DivMod(v.big(), unit, new(big.Int))
	switch c := r.Lsh(r, 1).Cmp(unit); {
	case c > 0, c == 0 && q.Bit(0) == 1:
		q.Add(q, big.NewInt(1))
	}
	return bigVal(q.Mul(q, unit))
}

func fileSize(v Value, bin bool) Value {
	use(v)
	data := v.data
	var f float64
	switch {
	case v.isNumber():
		f = toFloat(v)
	case v.kind == kStr:
		var ok bool
		data = !v.text().allOwn()
		if f, ok = floatOf(v.text().s); !ok {
			valueError("could not convert string to float: %s", quote(v.text().s))
		}
	default:
		typeError("float() argument must be a string or a real number, not '%s'", typeName(v))
	}
	base, i := 1000.0, ""
	if bin {
		base, i = 1024.0, "i"
	}
	s := ""
	switch {
	case f == 1:
		s = "1 Byte"
	case f < base:
		s = formatInt(truncFloat(f)) + " Bytes"
	default:
		prefixes := []string{"k", "M", "G", "T", "P", "E", "Z", "Y"}
		if bin {
			prefixes[0] = "K"
		}
		unit := base
		for k, p := range prefixes {
			unit *= base
			if f < unit || k == len(prefixes)-1 {
				s = fixedFloat(base*f/unit, 1) + " " + p + i + "B"
				break
			}
		}
	}
	return strVal(newText(s, !data))
}

// fixedFloat is format(f, ".Nf").
func fixedFloat(f float64, digits int) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return formatFloat(f)
	}
	return strconv.FormatFloat(f, 'f', digits, 64)
}

// toJSON is the filter tojson of transformers: json.dumps.
func toJSON(vm *machine, a []Value) Value {
	st := &jsonStyle{ascii: truth(a[1]), item: newText(", ", true), key: newText(": ", true), sortKeys: truth(a[4])}
	switch ind := a[2]; {
	case ind.kind == kNone:
	case ind.kind == kStr:
		st.indent = ind.text()
	case ind.isInt():
		n := argIndex("indent", ind)
		vm.fits(n)
		st.indent = newText(strings.Repeat(" ", max(n, 0)), true)
	default:
		use(ind)
		typeError("can't multiply sequence by non-int of type '%s'", typeName(ind))
	}
	if st.indent != nil {
		st.item = newText(",", true)
	}
	if a[3].kind != kNone {
		use(a[3])
		seps := vm.unpack(a[3], 2)
		st.item, st.key = argText("separators", seps[0]), argText("separators", seps[1])
	}
	var b builder
	encodeJSON(vm, &b, a[0], st, 0)
	return vm.made(b.text())
}
