package jinja

// addMapFilters adds map, select and their kin, whose arguments name a filter or
// test that gets the rest.
func addMapFilters() {
	filters["map"] = &filter{func(vm *machine, _ string, v Value, a args) Value {
		vm.step(2 * callSteps)
		var f func(vm *machine, v Value) (Value, bool)
		return lazy(v, true, func(vm *machine, v Value) (Value, bool) {
			if f == nil {
				f = prepareMap(vm, a)
			}
			return f(vm, v)
		})
	}}
	for name, how := range map[string]struct{ keep, attr bool }{
		"select": {true, false}, "reject": {false, false},
		"selectattr": {true, true}, "rejectattr": {false, true},
	} {
		filters[name] = &filter{func(vm *machine, _ string, v Value, a args) Value {
			vm.step(2 * callSteps)
			var f func(vm *machine, v Value) bool
			return lazy(v, true, func(vm *machine, v Value) (Value, bool) {
				if f == nil {
					f = prepareSelect(vm, a, how.attr)
				}
				return v, f(vm, v) == how.keep
			})
		}}
	}
}

func prepareMap(vm *machine, a args) func(vm *machine, v Value) (Value, bool) {
	if attr, ok := a.get("attribute"); ok && len(a.pos) == 0 {
		def := none
		for i, n := range a.names {
			switch n {
			case "attribute":
			case "default":
				def = a.vals[i]
			default:
				filterArgError("Unexpected keyword argument %s", quote(n))
			}
		}
		g := newGetter(vm, attr, false, def)
		return func(vm *machine, v Value) (Value, bool) { return g.get(vm, v), true }
	}
	if len(a.pos) == 0 {
		filterArgError("map requires a filter argument")
	}
	name, rest := a.pos[0], args{a.pos[1:], a.names, a.vals, a.keys}
	f := lookup(filters, "filter", name)
	return func(vm *machine, v Value) (Value, bool) {
		vm.step(callSteps)
		return f.call(vm, name.text().s, v, rest), true
	}
}

func prepareSelect(vm *machine, a args, attr bool) func(vm *machine, v Value) bool {
	var g *getter
	if attr {
		if len(a.pos) == 0 {
			filterArgError("Missing parameter for attribute name")
		}
		g = newGetter(vm, a.pos[0], false, none)
		a.pos = a.pos[1:]
	}
	item := func(vm *machine, v Value) Value {
		if g != nil {
			return g.get(vm, v)
		}
		return v
	}
	if len(a.pos) == 0 {
		return func(vm *machine, v Value) bool { return truth(item(vm, v)) }
	}
	name, rest := a.pos[0], args{a.pos[1:], a.names, a.vals, a.keys}
	f := lookup(tests, "test", name)
	return func(vm *machine, v Value) bool {
		vm.step(callSteps)
		return truth(f.call(vm, name.text().s, item(vm, v), rest))
	}
}

// lookup is the filter or test that an argument names.
func lookup(table map[string]*filter, what string, name Value) *filter {
	if mustHash(name); name.kind == kStr {
		if f := table[name.text().s]; f != nil {
			return f
		}
	}
	raise(ErrRuntime, what, "No %s named %s.", what, shortRepr(name))
	return nil
}
