package jinja

import (
	"math"
	"math/big"
)

// dict is an ordered dict. Templates cannot change one, so it only grows while
// it is made.
type dict struct {
	keys, vals []Value
	index      map[hkey]int // nil while the dict is small
}

// hkey identifies a key: equal keys have equal hkeys, 1 and 1.0 and True too.
type hkey struct {
	k kind
	n uint64
	s string
	p any
}

// smallDict is the number of keys up to which a scan is faster than a map.
const smallDict = 8

func newDict(n int) *dict {
	return &dict{keys: make([]Value, 0, n), vals: make([]Value, 0, n)}
}

// hash is the identity of a key; ok is false for values that cannot be keys.
func hash(v Value, depth int) (key hkey, ok bool) {
	switch v.kind {
	case kStr:
		return hkey{k: kStr, s: v.text().s}, true
	case kBool, kInt:
		return hkey{k: kInt, n: v.num}, true
	case kBig:
		return bigKey(v.big()), true
	case kFloat:
		f := v.float()
		if f == math.Trunc(f) && !math.IsInf(f, 0) {
			b, _ := big.NewFloat(f).Int(nil)
			if b.IsInt64() {
				return hkey{k: kInt, n: uint64(b.Int64())}, true
			}
			return bigKey(b), true
		}
		return hkey{k: kFloat, n: v.num}, true
	case kNone, kUndef:
		return hkey{k: v.kind}, true
	case kTuple:
		if depth > MaxValueDepth {
			limitError("hash", "a value nested more than %d deep", MaxValueDepth)
		}
		var b []byte
		for _, x := range v.tuple() {
			h, ok := hash(x, depth+1)
			if !ok {
				return h, false
			}
			if h.p != nil {
				return hkey{k: kTuple, p: v.ref}, true
			}
			b = append(b, byte(h.k))
			b = appendUint(b, h.n)
			b = appendUint(b, uint64(len(h.s)))
			b = append(b, h.s...)
			if len(b) > maxKeyBytes {
				limitError("hash", "a key of more than %d bytes", maxKeyBytes)
			}
		}
		return hkey{k: kTuple, s: string(b)}, true
	case kRange:
		r := *v.rng()
		if r.n == 0 {
			r.start = 0
		}
		if r.n < 2 {
			r.step = 0
		}
		var b []byte
		b = appendUint(appendUint(appendUint(b, uint64(r.n)), uint64(r.start)), uint64(r.step))
		return hkey{k: kRange, s: string(b)}, true
	case kList, kDict:
		return hkey{}, false
	case kView:
		if v.ref.(*view).what != "values" {
			return hkey{}, false
		}
	}
	return hkey{k: v.kind, p: v.ref}, true
}

func bigKey(b *big.Int) hkey {
	return hkey{k: kBig, n: uint64(int64(b.Sign())), s: string(b.Bytes())}
}

func appendUint(b []byte, n uint64) []byte {
	for i := range 8 {
		b = append(b, byte(n>>(8*i)))
	}
	return b
}

func mustHash(v Value) hkey {
	h, ok := hash(v, 0)
	if !ok {
		typeError("unhashable type: '%s'", typeName(v))
	}
	return h
}

// key charges the work of looking a key up.
func (vm *machine) key(v Value) Value {
	switch v.kind {
	case kStr:
		vm.charge(len(v.text().s))
	case kBig:
		vm.charge(v.big().BitLen() / 4)
	case kFloat:
		vm.step(keySteps)
	case kTuple:
		vm.charge(maxKeyBytes)
	}
	return v
}

func (d *dict) find(h hkey) int {
	if d.index != nil {
		if i, ok := d.index[h]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if h.k == kStr {
			if k.kind == kStr && k.text().s == h.s {
				return i
			}
			continue
		}
		if k.kind != kStr && (k.kind == kTuple) == (h.k == kTuple) {
			if x, _ := hash(k, 0); x == h {
				return i
			}
		}
	}
	return -1
}

// get is the value of a key, or kMissing.
func (d *dict) get(h hkey) Value {
	if i := d.find(h); i >= 0 {
		return d.vals[i]
	}
	return Value{}
}

func (d *dict) getStr(s string) Value { return d.get(hkey{k: kStr, s: s}) }

// set adds a key or replaces its value; a key keeps its place.
func (d *dict) set(k, v Value) {
	h := mustHash(k)
	if i := d.find(h); i >= 0 {
		d.vals[i] = v
		return
	}
	d.keys = append(d.keys, k)
	d.vals = append(d.vals, v)
	if d.index != nil {
		d.index[h] = len(d.keys) - 1
		return
	}
	if len(d.keys) > smallDict || k.kind == kTuple { // a tuple is costly to compare
		d.index = make(map[hkey]int, 2*len(d.keys))
		for i, k := range d.keys {
			h, _ := hash(k, 0)
			d.index[h] = i
		}
	}
}

func (d *dict) len() int { return len(d.keys) }

func (d *dict) copy() *dict {
	c := newDict(len(d.keys) + 1)
	for i, k := range d.keys {
		c.set(k, d.vals[i])
	}
	return c
}
