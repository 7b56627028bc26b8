package jinja

import "strings"

// truth is bool(v).
func truth(v Value) bool {
	switch v.kind {
	case kUndef, kNone, kMissing:
		return false
	case kBool, kInt:
		return v.num != 0
	case kFloat:
		return v.float() != 0
	case kLoop:
		return true
	}
	n, ok := length(v)
	return !ok || n > 0
}

// length is len(v) where there is one without reading an iterator.
func length(v Value) (int, bool) {
	switch v.kind {
	case kUndef:
		return 0, true
	case kStr:
		return v.text().length(), true
	case kList, kTuple:
		return len(v.seq()), true
	case kDict:
		return v.dict().len(), true
	case kRange:
		return int(v.rng().n), true
	case kView:
		return v.ref.(*view).d.len(), true
	}
	return 0, false
}

func newIter(name string, depth int, next func(vm *machine) Value) *iter {
	if depth++; depth > MaxValueDepth {
		limitError("iterator", "iterators nested more than %d deep", MaxValueDepth)
	}
	return &iter{name: name, depth: depth, next: next}
}

func sliceIter(name string, items []Value) *iter {
	i := 0
	return &iter{name: name, next: func(*machine) Value {
		if i >= len(items) {
			return Value{}
		}
		i++
		return items[i-1]
	}}
}

// iterate is iter(v); it fails where v cannot be iterated.
func iterate(_ *machine, v Value) *iter {
	it := tryIterate(v)
	if it == nil {
		typeError("'%s' object is not iterable", typeName(v))
	}
	return it
}

func tryIterate(v Value) *iter {
	switch v.kind {
	case kUndef:
		return sliceIter("generator", nil)
	case kList, kTuple:
		return sliceIter(typeName(v)+"_iterator", v.seq())
	case kDict:
		return sliceIter("dict_keyiterator", v.dict().keys)
	case kIter:
		return v.ref.(*iter)
	case kStr:
		t, at := unsafeText(v.text()), 0
		return &iter{name: "str_iterator", next: func(vm *machine) Value {
			if at >= len(t.s) {
				return Value{}
			}
			w := runeLen(t.s[at])
			at += w
			vm.step(textSteps)
			return strVal(t.sub(at-w, at))
		}}
	case kRange:
		r, i := v.rng(), int64(0)
		return &iter{name: "range_iterator", next: func(*machine) Value {
			if i >= r.n {
				return Value{}
			}
			i++
			return int64Val(r.start + (i-1)*r.step).withData(v.data)
		}}
	case kLoop:
		l := v.ref.(*loopState)
		return &iter{name: "LoopContext", next: func(vm *machine) Value {
			x := l.advance(vm)
			if x.missing() {
				return x
			}
			return tupleVal([]Value{x, v})
		}}
	case kView:
		w := v.ref.(*view)
		switch w.what {
		case "keys":
			return sliceIter("dict_keyiterator", w.d.keys)
		case "values":
			return sliceIter("dict_valueiterator", w.d.vals)
		}
		i := 0
		return &iter{name: "dict_itemiterator", next: func(vm *machine) Value {
			if i >= w.d.len() {
				return Value{}
			}
			i++
			vm.step(2 * textSteps)
			return tupleVal([]Value{w.d.keys[i-1], w.d.vals[i-1]}).withData(v.data)
		}}
	}
	return nil
}

// runeLen is the length of a rune by its first byte; the text is valid UTF-8.
func runeLen(c byte) int {
	switch {
	case c < 0x80:
		return 1
	case c < 0xe0:
		return 2
	case c < 0xf0:
		return 3
	}
	return 4
}

// collect reads an iterator to its end.
func collect(vm *machine, it *iter) []Value {
	items := []Value{}
	for {
		x := it.next(vm)
		if x.missing() {
			return items
		}
		vm.grow(len(items))
		items = append(items, x)
	}
}

// toItems is list(v), which may share its items with v.
func toItems(vm *machine, v Value) []Value {
	if v.isSeq() {
		return v.seq()
	}
	if v.kind == kRange {
		r := v.rng()
		vm.room(int(r.n))
		items := make([]Value, r.n)
		for i := range items {
			items[i] = int64Val(r.start + int64(i)*r.step).withData(v.data)
		}
		return items
	}
	return collect(vm, iterate(vm, v))
}

// same is the identity of two values, as far as templates can tell.
func same(a, b Value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case kNone:
		return true
	case kBool, kInt, kFloat:
		return a.num == b.num
	case kStr:
		return a.ref == b.ref || a.text().s == b.text().s
	}
	return a.ref == b.ref
}

// equal is a == b.
func equal(vm *machine, a, b Value, depth int) bool {
	vm.step(1)
	if depth > MaxValueDepth {
		limitError("==", "a value nested more than %d deep", MaxValueDepth)
	}
	if a.isNumber() && b.isNumber() {
		vm.chargeCompare(a, b)
		return compareNumbers(a, b) == 0
	}
	if a.kind != b.kind {
		if a.kind == kView && b.kind == kView {
			return a.ref == b.ref
		}
		return false
	}
	switch a.kind {
	case kNone, kUndef:
		return true
	case kStr:
		x, y := a.text().s, b.text().s
		vm.charge(min(len(x), len(y)))
		return x == y
	case kList, kTuple:
		x, y := a.seq(), b.seq()
		if a.ref == b.ref {
			return true
		}
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(vm, x[i], y[i], depth+1) {
				return false
			}
		}
		return true
	case kDict:
		x, y := a.dict(), b.dict()
		if x.len() != y.len() {
			return false
		}
		for i, k := range x.keys {
			h, _ := hash(vm.key(k), 0)
			vm.step(keySteps)
			v := y.get(h)
			if v.missing() || !equal(vm, x.vals[i], v, depth+1) {
				return false
			}
		}
		return true
	case kRange:
		x, _ := hash(a, 0)
		y, _ := hash(b, 0)
		return x == y
	case kView:
		x, y := a.ref.(*view), b.ref.(*view)
		if x.what == "values" || y.what == "values" || x.what != y.what || x.d.len() != y.d.len() {
			return x == y
		}
		for i, k := range x.d.keys {
			h, _ := hash(vm.key(k), 0)
			vm.step(keySteps)
			v := y.d.get(h)
			if v.missing() || x.what == "items" && !equal(vm, x.d.vals[i], v, depth+1) {
				return false
			}
		}
		return true
	}
	return a.ref == b.ref
}

// chargeCompare counts the comparison of long integers; with a float they become
// one of their length.
func (vm *machine) chargeCompare(a, b Value) {
	for _, v := range [2]Value{a, b} {
		if v.kind == kBig {
			vm.step(v.big().BitLen()/256 + 1)
		}
	}
	if a.kind != b.kind && (a.kind == kFloat || b.kind == kFloat) {
		vm.step(MaxIntBits / 256)
	}
}

// order is a < b, a <= b, a > b or a >= b; other types fail.
func order(vm *machine, op string, a, b Value, depth int) bool {
	vm.step(1)
	use(a)
	use(b)
	c := 0
	switch {
	case depth > MaxValueDepth:
		limitError(op, "a value nested more than %d deep", MaxValueDepth)
	case a.isNumber() && b.isNumber():
		vm.chargeCompare(a, b)
		c = compareNumbers(a, b)
		if c == 2 {
			return false
		}
	case a.kind == kStr && b.kind == kStr:
		vm.charge(min(len(a.text().s), len(b.text().s)))
		c = strings.Compare(a.text().s, b.text().s)
	case a.isSeq() && a.kind == b.kind:
		x, y := a.seq(), b.seq()
		for i := 0; i < len(x) && i < len(y); i++ {
			if !equal(vm, x[i], y[i], depth+1) {
				return order(vm, op, x[i], y[i], depth+1)
			}
		}
		c = len(x) - len(y)
	default:
		typeError("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	}
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// contains is x in v.
func contains(vm *machine, v, x Value) bool {
	switch v.kind {
	case kStr:
		if x.kind != kStr {
			typeError("'in <string>' requires string as left operand, not %s", typeName(x))
		}
		vm.charge(len(v.text().s))
		return strings.Contains(v.text().s, x.text().s)
	case kDict:
		return !v.dict().get(mustHash(vm.key(x))).missing()
	case kView:
		if w := v.ref.(*view); w.what == "keys" {
			return !w.d.get(mustHash(vm.key(x))).missing()
		}
	case kRange:
		if x.kind == kInt || x.kind == kBool {
			r, i := v.rng(), x.int()
			d := i - r.start
			return r.n > 0 && d%r.step == 0 && d/r.step >= 0 && d/r.step < r.n
		}
	case kMacro, kFunc, kNamespace, kNone, kBool, kInt, kBig, kFloat, kCycler, kJoiner, kBlocks:
		typeError("argument of type '%s' is not iterable", typeName(v))
	}
	it := iterate(vm, v)
	for {
		vm.step(1)
		y := it.next(vm)
		if y.missing() {
			return false
		}
		if equal(vm, x, y, 0) {
			return true
		}
	}
}

// compare is one comparison of a chain.
func compare(vm *machine, op string, a, b Value) bool {
	switch op {
	case "==":
		return equal(vm, a, b, 0)
	case "!=":
		return !equal(vm, a, b, 0)
	case "in":
		return contains(vm, b, a)
	case "not in":
		return !contains(vm, b, a)
	}
	return order(vm, op, a, b, 0)
}

// binary is an arithmetic operator.
func binary(vm *machine, op string, a, b Value) Value {
	use(a)
	if op == "%" && a.kind == kStr {
		return percent(vm, a.text(), b)
	}
	use(b)
	if a.isNumber() && b.isNumber() {
		chargeBig(vm, a)
		chargeBig(vm, b)
		if op == "**" {
			vm.step(powSteps)
		} else if (op == "%" || op == "//") && (a.kind == kFloat || b.kind == kFloat) {
			vm.step(modSteps)
		}
		r := arith(op, a, b).withData(a.data || b.data)
		chargeBig(vm, r)
		return r
	}
	switch op {
	case "+":
		switch {
		case a.kind == kStr && b.kind == kStr:
			x, y := a.text(), b.text()
			if x.safe != y.safe {
				x, y = escapeHTML(vm, a), escapeHTML(vm, b)
			}
			vm.fits(len(x.s) + len(y.s))
			t := concat(x, y)
			if x.safe {
				return vm.made(safeText(t))
			}
			return vm.made(t)
		case a.isSeq() && a.kind == b.kind:
			x, y := a.seq(), b.seq()
			vm.room(len(x) + len(y))
			items := append(append(make([]Value, 0, len(x)+len(y)), x...), y...)
			return seqVal(a.kind, items).withData(a.data || b.data)
		case a.kind == kStr:
			typeError("can only concatenate str (not \"%s\") to str", typeName(b))
		}
	case "*":
		if a.isInt() && (b.kind == kStr || b.isSeq()) {
			a, b = b, a
		}
		if b.isInt() && (a.kind == kStr || a.isSeq()) {
			return multiply(vm, a, b)
		}
	case "-":
		if a.kind == kView && b.kind == kView {
			raise(ErrUnsupported, op, "sets")
		}
	}
	if op == "**" {
		op = "** or pow()"
	}
	typeError("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
	return none
}

// powSteps is what a power costs at least, and modSteps a remainder of floats.
const (
	powSteps = 1500
	modSteps = 100
)

// chargeBig counts the work on a long integer, which grows with the square of its
// length.
func chargeBig(vm *machine, v Value) {
	if v.kind == kBig {
		words := v.big().BitLen()/64 + 1
		vm.step(words + words*words/16)
	}
}

func seqVal(k kind, items []Value) Value {
	if k == kTuple {
		return tupleVal(items)
	}
	return listVal(items)
}

// multiply repeats a string or sequence.
func multiply(vm *machine, a, times Value) Value {
	size := 0
	if a.kind == kStr {
		size = len(a.text().s)
	} else {
		size = len(a.seq())
	}
	n := 0
	switch {
	case times.kind == kBig:
		overflowError("cannot fit 'int' into an index-sized integer")
	case times.int() <= 0 || size == 0:
	case times.int() > int64(max(vm.limits.TextBytes, vm.limits.Items)):
		limitError("*", "a repetition of %d times", times.int())
	default:
		n = int(times.int())
	}
	if a.kind == kStr {
		vm.fits(size * n)
		return vm.made(a.text().repeat(n))
	}
	vm.room(size * n)
	items := make([]Value, 0, size*n)
	for range n {
		items = append(items, a.seq()...)
	}
	return seqVal(a.kind, items).withData(a.data)
}
