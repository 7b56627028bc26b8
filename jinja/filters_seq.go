package jinja

import (
	"sort"
	"strings"
)

// getter is how attribute arguments of filters read an item: names and indexes
// joined by dots.
type getter struct {
	parts []Value
	fold  bool  // lower the strings
	def   Value // instead of an undefined part; None for none
}

func newGetter(vm *machine, attr Value, fold bool, def Value) *getter {
	g := &getter{fold: fold, def: def}
	switch attr.kind {
	case kNone:
	case kStr:
		s := attr.text().s
		vm.scan(len(s))
		vm.room(strings.Count(s, "."))
		vm.step(textSteps * strings.Count(s, "."))
		for _, p := range strings.Split(s, ".") {
			vm.chargeNumber(own(p))
			g.parts = append(g.parts, attrPart(p))
		}
	default:
		g.parts = []Value{attr}
	}
	return g
}

func attrPart(s string) Value {
	digit := s != "" && strings.IndexFunc(s, func(r rune) bool { return digitValue(r) < 0 }) < 0
	if digit {
		if i, ok := intOf(s, 10); ok {
			return i
		}
	}
	return own(s)
}

func (g *getter) get(vm *machine, v Value) Value {
	for _, p := range g.parts {
		vm.step(valueSteps)
		v = getItem(vm, v, p)
		if v.kind == kUndef && g.def.kind != kNone {
			v = g.def
		}
	}
	if g.fold {
		v = ignoreCase(vm, v)
	}
	return v
}

func init() {
	for _, n := range []string{"length", "count"} {
		addFilter(n, "obj, /", func(vm *machine, a []Value) Value {
			if a[0].kind == kLoop {
				return intVal(a[0].ref.(*loopState).length(vm))
			}
			n, ok := length(a[0])
			if !ok {
				typeError("object of type '%s' has no len()", typeName(a[0]))
			}
			return intVal(n)
		})
	}
	addFilter("list", "value", func(vm *machine, a []Value) Value {
		return listVal(toItems(vm, a[0])).withData(a[0].data)
	})
	addFilter("first", "seq", func(vm *machine, a []Value) Value {
		if v := iterate(vm, a[0]).next(vm); !v.missing() {
			return v
		}
		return undefHint("No first item, sequence was empty.")
	})
	addFilter("last", "seq", func(vm *machine, a []Value) Value {
		if v := reversed(vm, a[0]).next(vm); !v.missing() {
			return v
		}
		return undefHint("No last item, sequence was empty.")
	})
	addFilter("random", "seq", func(vm *machine, a []Value) Value {
		n, ok := length(a[0])
		if !ok || a[0].kind == kDict || a[0].kind == kView {
			typeError("'%s' object is not subscriptable", typeName(a[0]))
		}
		if n == 0 {
			return undefHint("No random item, sequence was empty.")
		}
		if vm.rand == nil {
			vm.rand = newRand(vm.t.cfg.seed)
		}
		return itemAt(vm, a[0], vm.rand.IntN(n))
	})
	addFilter("reverse", "value", func(vm *machine, a []Value) Value {
		switch v := a[0]; v.kind {
		case kStr:
			t := v.text()
			vm.scan(len(t.s))
			return strVal(pick(t, t.length()-1, -1, t.length()))
		case kIter:
			items := collect(vm, v.ref.(*iter))
			for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
				items[i], items[j] = items[j], items[i]
			}
			return listVal(items)
		}
		if tryIterate(a[0]) == nil {
			filterArgError("argument must be iterable")
		}
		return iterVal(reversed(vm, a[0]))
	})
	addFilter("sort", "value, reverse=False, case_sensitive=False, attribute=None", func(vm *machine, a []Value) Value {
		return sortFilter(vm, a[0], truth(a[1]), !truth(a[2]), a[3])
	})
	addFilter("unique", "value, case_sensitive=False, attribute=None", func(vm *machine, a []Value) Value {
		g := newGetter(vm, a[2], !truth(a[1]), none)
		seen := map[hkey]bool{}
		return lazy(a[0], false, func(vm *machine, v Value) (Value, bool) {
			h := mustHash(vm.key(g.get(vm, v)))
			if seen[h] {
				return v, false
			}
			vm.step(keySteps)
			seen[h] = true
			return v, true
		})
	})
	extreme := func(name, op string) {
		addFilter(name, "value, case_sensitive=False, attribute=None", func(vm *machine, a []Value) Value {
			it := iterate(vm, a[0])
			best := it.next(vm)
			if best.missing() {
				return undefHint("No aggregated item, sequence was empty.")
			}
			g := newGetter(vm, a[2], !truth(a[1]), none)
			key := g.get(vm, best)
			for {
				vm.step(1)
				v := it.next(vm)
				if v.missing() {
					return best
				}
				if k := g.get(vm, v); order(vm, op, k, key, 0) {
					best, key = v, k
				}
			}
		})
	}
	extreme("min", "<")
	extreme("max", ">")
	addFilter("sum", "iterable, attribute=None, start=0", func(vm *machine, a []Value) Value {
		g := newGetter(vm, a[1], false, none)
		it := iterate(vm, a[0])
		sum := a[2]
		if sum.kind == kStr {
			typeError("sum() can't sum strings [use ''.join(seq) instead]")
		}
		for {
			vm.step(1)
			v := it.next(vm)
			if v.missing() {
				return sum
			}
			sum = binary(vm, "+", sum, g.get(vm, v))
		}
	})
	addFilter("join", "value, d='', attribute=None", func(vm *machine, a []Value) Value {
		items := toItems(vm, a[0])
		if a[2].kind != kNone {
			g := newGetter(vm, a[2], false, none)
			vm.room(len(items))
			vals := make([]Value, len(items))
			for i, v := range items {
				vals[i] = g.get(vm, v)
			}
			items = vals
		}
		sep := toText(vm, a[1])
		if !vm.escape {
			return strVal(unsafeText(join(vm, unsafeText(sep), items)))
		}
		safe := sep.safe
		for _, v := range items {
			safe = safe || v.kind == kStr && v.text().safe
		}
		if !safe {
			return strVal(join(vm, sep, items))
		}
		vals := make([]Value, len(items))
		for i, v := range items {
			vals[i] = strVal(escapeHTML(vm, v))
		}
		return markup(join(vm, escapeHTML(vm, strVal(sep)), vals))
	})
	addFilter("batch", "value, linecount, fill_with=None", batch)
	addFilter("slice", "value, slices, fill_with=None", slices)
	addFilter("groupby", "value, attribute, default=None, case_sensitive=False", groupBy)
	addMapFilters()
}

// reversed is reversed(v).
func reversed(vm *machine, v Value) *iter {
	switch v.kind {
	case kUndef:
		return sliceIter("reversed", nil)
	case kStr, kRange:
		n, _ := length(v)
		return newIter("reversed", 0, func(*machine) Value {
			if n == 0 {
				return Value{}
			}
			n--
			return itemAt(vm, v, n)
		})
	case kList, kTuple, kDict, kView:
		items := toItems(vm, v)
		n := len(items)
		return newIter("list_reverseiterator", 0, func(*machine) Value {
			if n == 0 {
				return Value{}
			}
			n--
			return items[n]
		})
	}
	typeError("'%s' object is not reversible", typeName(v))
	return nil
}

func sortFilter(vm *machine, v Value, reverse, fold bool, attr Value) Value {
	items := toItems(vm, v)
	vm.room(len(items))
	var gs []*getter
	if attr.kind == kStr {
		vm.charge(len(attr.text().s))
		vm.room(strings.Count(attr.text().s, ","))
		vm.step(2 * textSteps * strings.Count(attr.text().s, ","))
		for _, p := range strings.Split(attr.text().s, ",") {
			gs = append(gs, newGetter(vm, own(p), fold, none))
		}
	} else {
		gs = []*getter{newGetter(vm, attr, fold, none)}
	}
	keys := make([]Value, len(items))
	idx := make([]int, len(items))
	for i, x := range items {
		idx[i] = i
		if len(gs) == 1 {
			keys[i] = gs[0].get(vm, x)
			continue
		}
		vm.room(len(gs))
		k := make([]Value, len(gs))
		for j, g := range gs {
			k[j] = g.get(vm, x)
		}
		keys[i] = listVal(k)
	}
	if len(gs) == 1 {
		// Python compares lists of one key: equal keys are never ordered, so
		// that undefined ones do not fail.
		sort.SliceStable(idx, func(i, j int) bool {
			vm.step(1)
			if reverse {
				i, j = j, i
			}
			x, y := keys[idx[i]], keys[idx[j]]
			return !equal(vm, x, y, 0) && order(vm, "<", x, y, 0)
		})
	} else {
		sortBy(vm, idx, keys, reverse)
	}
	out := make([]Value, len(items))
	for i, k := range idx {
		out[i] = items[k]
	}
	return listVal(out).withData(v.data)
}

// lazy is a generator that keeps or maps the items of v. Where ifTrue is set a
// false v gives nothing, as in map and select.
func lazy(v Value, ifTrue bool, f func(vm *machine, v Value) (Value, bool)) Value {
	var src *iter
	return iterVal(newIter("generator", iterDepth(v), func(vm *machine) Value {
		if src == nil {
			if ifTrue && !truth(v) {
				src = sliceIter("", nil)
			} else {
				src = iterate(vm, v)
			}
		}
		for {
			vm.step(valueSteps)
			x := src.next(vm)
			if x.missing() {
				return x
			}
			if y, ok := f(vm, x); ok {
				return y
			}
		}
	}))
}

func batch(_ *machine, a []Value) Value {
	var src *iter
	var row []Value
	v, lines, fill := a[0], a[1], a[2]
	return iterVal(newIter("generator", iterDepth(v), func(vm *machine) Value {
		if src == nil {
			src = iterate(vm, v)
		}
		for {
			vm.step(valueSteps)
			x := src.next(vm)
			if x.missing() {
				break
			}
			if equal(vm, intVal(len(row)), lines, 0) {
				full := row
				vm.step(keySteps)
				row = []Value{x}
				return listVal(full)
			}
			vm.grow(len(row))
			row = append(row, x)
		}
		vm.step(keySteps)
		if len(row) == 0 {
			return Value{}
		}
		if fill.kind != kNone && order(vm, "<", intVal(len(row)), lines, 0) {
			n := argIndex("batch", lines)
			vm.room(n)
			for len(row) < n {
				row = append(row, fill)
			}
		}
		last := row
		row = nil
		return listVal(last)
	}))
}

func slices(_ *machine, a []Value) Value {
	v, fill := a[0], a[2]
	var items []Value
	n, k, offset := 0, 0, 0
	return iterVal(newIter("generator", iterDepth(v), func(vm *machine) Value {
		if items == nil {
			items = toItems(vm, v)
			if items == nil {
				items = []Value{}
			}
			n = argIndex("slice", a[1])
			if n == 0 {
				raise(ErrRuntime, "ZeroDivisionError", "integer division or modulo by zero")
			}
		}
		if k >= n {
			return Value{}
		}
		per, extra := len(items)/n, len(items)%n
		from := offset + k*per
		if k < extra {
			offset++
		}
		to := offset + (k+1)*per
		row := append([]Value{}, items[from:to]...)
		if fill.kind != kNone && k >= extra {
			row = append(row, fill)
		}
		vm.step(len(row)*itemSteps + keySteps)
		k++
		return listVal(row)
	}))
}

func groupBy(vm *machine, a []Value) Value {
	fold := !truth(a[3])
	g := newGetter(vm, a[1], fold, a[2])
	items := toItems(vm, a[0])
	vm.room(len(items))
	keys := make([]Value, len(items))
	idx := make([]int, len(items))
	for i, x := range items {
		idx[i] = i
		keys[i] = g.get(vm, x)
	}
	sortBy(vm, idx, keys, false)
	var out []Value
	for i := 0; i < len(idx); {
		key := keys[idx[i]]
		vm.step(2 * keySteps)
		var group []Value
		for i < len(idx) && equal(vm, keys[idx[i]], key, 0) {
			group = append(group, items[idx[i]])
			i++
		}
		if group == nil { // NaN
			group = []Value{items[idx[i]]}
			i++
		}
		if fold {
			key = newGetter(vm, a[1], false, a[2]).get(vm, group[0])
		}
		out = append(out, Value{kind: kTuple, ref: &tuple{[]Value{key, listVal(group)}, true}})
	}
	return listVal(out)
}
