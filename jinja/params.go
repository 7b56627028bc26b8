package jinja

import (
	"strconv"
	"strings"
)

// params is the signature of a built-in function.
type params struct {
	names    []string
	defaults []Value // kMissing with opt false: required
	opt      []bool  // may be left out and is then kMissing
	posOnly  bool
}

var noParams = newParams("")

// newParams reads a signature such as "sep=None, maxsplit=-1". "name?" may be
// left out without a default; a final "/" makes all positional only.
func newParams(spec string) *params {
	p := &params{}
	for _, s := range strings.Split(spec, ", ") {
		switch {
		case s == "":
			continue
		case s == "/":
			p.posOnly = true
			continue
		}
		name, def, has := strings.Cut(s, "=")
		opt := strings.HasSuffix(name, "?")
		v := Value{}
		if has {
			switch {
			case def == "None":
				v = none
			case def == "True":
				v = pyTrue
			case def == "False":
				v = pyFalse
			case def[0] == '\'':
				v = Trusted(def[1 : len(def)-1])
			case strings.Contains(def, "."):
				f, _ := strconv.ParseFloat(def, 64)
				v = floatVal(f)
			default:
				i, _ := strconv.Atoi(def)
				v = intVal(i)
			}
		}
		p.names = append(p.names, strings.TrimSuffix(name, "?"))
		p.defaults = append(p.defaults, v)
		p.opt = append(p.opt, opt)
	}
	return p
}

// bind gives each parameter its argument.
func bind(vm *machine, fn string, p *params, a args) []Value {
	if len(a.pos) > len(p.names) {
		typeError("%s() takes at most %d arguments (%d given)", fn, len(p.names), len(a.pos))
	}
	vm.step(len(p.names))
	vals := make([]Value, len(p.names))
	copy(vals, a.pos)
	for i, n := range a.names {
		k := -1
		if !p.posOnly {
			for j, m := range p.names {
				if m == n {
					k = j
				}
			}
		}
		if k < 0 {
			typeError("%s() got an unexpected keyword argument %s", fn, quote(n))
		}
		if !vals[k].missing() {
			typeError("%s() got multiple values for argument %s", fn, quote(n))
		}
		vals[k] = a.vals[i]
	}
	for i := range vals {
		if vals[i].missing() {
			vals[i] = p.defaults[i]
			if vals[i].missing() && !p.opt[i] {
				typeError("%s() missing required argument %s", fn, quote(p.names[i]))
			}
		}
	}
	return vals
}

// The conversions below are those of arguments: they fail as Python does where
// the type is wrong.

func argText(fn string, v Value) *text {
	use(v)
	if v.kind != kStr {
		typeError("%s() argument must be str, not %s", fn, typeName(v))
	}
	return v.text()
}

// argIndex is an integer argument, clamped to what an int holds.
func argIndex(fn string, v Value) int {
	use(v)
	switch v.kind {
	case kInt, kBool:
		return int(v.int())
	case kBig:
		if v.big().Sign() < 0 {
			return -1 << 62
		}
		return 1 << 62
	}
	typeError("%s(): '%s' object cannot be interpreted as an integer", fn, typeName(v))
	return 0
}

// argSize is an integer argument that must fit.
func argSize(fn string, v Value) int {
	i := argIndex(fn, v)
	if v.kind == kBig {
		overflowError("Python int too large to convert to C ssize_t")
	}
	return i
}
