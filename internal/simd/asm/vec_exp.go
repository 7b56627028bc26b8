package main

import (
	"fmt"
	"math"
)

// expConsts are the constants of exp, in the order of the registers that hold them; exp_generic.go of package simd says
// what they are.
var expConsts = []float32{
	1.44269504088896341, 12582912.0, 0.693359375, -2.12194440e-4,
	0.001381454, 0.008368745, 0.04166839, 0.16666521, 0.49999994, 1,
	-87.33,
}

// An exp emits exponentials with its constants held in registers.
type exp struct {
	fn   *Func
	c    []string // registers of expConsts
	last int      // the register after them
	wide bool     // 512 bits
}

// dataAt is word i of a table.
func dataAt(table string, i int) string { return fmt.Sprintf("%s<>+%d(SB)", table, 4*i) }

// expTable is the read-only table of the constants.
func (f *File) expTable() {
	words := make([]uint32, len(expConsts))
	for i, c := range expConsts {
		words[i] = math.Float32bits(c)
	}
	f.Data32("expConsts", words...)
}

// exp512 loads the constants into 11 registers from first on.
func (f *Func) exp512(first int) *exp {
	f.file.expTable()
	e := &exp{fn: f, wide: true}
	for i := range expConsts {
		e.c = append(e.c, Z(first+i))
		f.Op("VBROADCASTSS", dataAt("expConsts", i), Z(first+i))
	}
	e.last = first + len(expConsts)
	return e
}

// emit computes p = exp(x) for x <= expMax; x, t and n are used up, as is K7.
func (e *exp) emit(x, p, t, n string) {
	f, c := e.fn, e.c
	if e.wide {
		f.Op("VCMPPS", Imm(5), c[10], x, "K7") // not x < expMin
	}
	f.Op("VMOVAPS", x, t)
	f.Op("VFMADD213PS", c[1], c[0], t)
	f.Op("VSUBPS", c[1], t, n)
	f.Op("VFNMADD231PS", c[2], n, x)
	f.Op("VFNMADD231PS", c[3], n, x)
	f.Op("VMOVAPS", c[4], p)
	for _, k := range []int{5, 6, 7, 8, 9, 9} {
		f.Op("VFMADD213PS", c[k], x, p)
	}
	f.Op("VPSLLD", Imm(23), t, t)
	if e.wide {
		f.Op("VPADDD.Z", t, p, "K7", p)
	}
}
