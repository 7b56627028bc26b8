package main

import (
	"fmt"
	"math"
)

// expConsts are the constants of exp, in the order log2e, magic, ln2 high, ln2 low, c6 .. c2, 1, min, max;
// exp_generic.go of package simd says what they are.
var expConsts = []float32{
	1.44269504088896341, 12582912.0, 0.693359375, -2.12194440e-4,
	0.001381454, 0.008368745, 0.04166839, 0.16666521, 0.49999994, 1,
	-87.33, 88.72283,
}

// An exp emits exponentials of vectors of one width.
type exp struct {
	fn *Func
	c  []string // operands of expConsts: registers, or memory where registers are few
}

// expTable writes the constants, each repeated over a 256-bit register, so that AVX2 can use them as memory operands.
func (f *File) expTable() {
	words := make([]uint32, 0, 8*len(expConsts))
	for _, c := range expConsts {
		for range 8 {
			words = append(words, math.Float32bits(c))
		}
	}
	f.Data32("expConsts", words...)
}

// dataAt is the word at byte offset at of a table.
func dataAt(table string, at int) string { return fmt.Sprintf("%s<>+%d(SB)", table, at) }

// exp512 loads the constants into the 12 registers from first on.
func (f *Func) exp512(first int) *exp {
	f.file.expTable()
	e := &exp{fn: f}
	for i := range expConsts {
		e.c = append(e.c, Z(first+i))
		f.Op("VBROADCASTSS", dataAt("expConsts", 32*i), Z(first+i))
	}
	return e
}

// emit computes p = exp(x) for x <= expMax; x, t and n are used up, as is K7.
func (e *exp) emit(x, p, t, n string) {
	f, c := e.fn, e.c
	f.Op("VCMPPS", Imm(5), c[10], x, "K7") // not x < min
	f.Op("VMOVAPS", x, t)
	f.Op("VFMADD213PS", c[1], c[0], t)
	f.Op("VSUBPS", c[1], t, n)
	f.Op("VFNMADD231PS", c[2], n, x)
	f.Op("VFNMADD231PS", c[3], n, x)
	f.Op("VMOVAPS", c[4], p)
	for _, k := range []int{5, 6, 7, 8, 9, 9} {
		f.Op("VFMADD213PS", c[k], x, p)
	}
	f.Op("VSCALEFPS.Z", n, p, "K7", p)
}

// emitFull computes p = exp(x) for every x; inf holds +Inf, K6 is used up too.
func (e *exp) emitFull(x, p, t, n, inf string) {
	f, c := e.fn, e.c
	f.Op("VCMPPS", Imm(14), c[11], x, "K6") // x > max
	f.Op("VMINPS", x, c[11], x)             // keeps a NaN
	e.emit(x, p, t, n)
	f.Op("VMOVAPS", inf, "K6", p)
}

// exp256 uses the constants from memory, but for the first few, which it loads into registers from first on.
func (f *Func) exp256(first, loaded int) *exp {
	f.file.expTable()
	e := &exp{fn: f}
	for i := range expConsts {
		at := dataAt("expConsts", 32*i)
		if i < loaded {
			f.Op("VMOVUPS", at, Y(first+i))
			at = Y(first + i)
		}
		e.c = append(e.c, at)
	}
	return e
}

// emit256 computes p = exp(x) for x <= expMax; all other registers are used up. Registers loaded: at least the first 2.
func (e *exp) emit256(x, p, t, n, keep, nan string) {
	f, c := e.fn, e.c
	f.Op("VCMPPS", Imm(5), c[10], x, keep) // not x < min
	f.Op("VCMPPS", Imm(3), x, x, nan)
	f.Op("VMOVAPS", x, t)
	f.Op("VFMADD213PS", c[1], c[0], t)
	f.Op("VSUBPS", c[1], t, n)
	f.Op("VFNMADD231PS", c[2], n, x)
	f.Op("VFNMADD231PS", c[3], n, x)
	f.Op("VMOVUPS", c[4], p)
	for _, k := range []int{5, 6, 7, 8, 9, 9} {
		f.Op("VFMADD213PS", c[k], x, p)
	}
	f.Op("VPSLLD", Imm(23), t, t)
	f.Op("VPADDD", t, p, p)
	f.Op("VANDPS", keep, p, p)
	f.Op("VORPS", nan, p, p) // the integer addition spoils a NaN
}

// emitFull256 computes p = exp(x) for every x.
func (e *exp) emitFull256(x, p, t, n, keep, nan, over, inf string) {
	f, c := e.fn, e.c
	f.Op("VCMPPS", Imm(14), c[11], x, over) // x > max
	f.Op("VMOVUPS", c[11], t)
	f.Op("VMINPS", x, t, x) // keeps a NaN
	e.emit256(x, p, t, n, keep, nan)
	f.Op("VBLENDVPS", over, inf, p, p)
}
