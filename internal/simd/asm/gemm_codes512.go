package main

import (
	"fmt"
	"math"
)

// Unpacking of codes and scales with AVX-512. Constants live in high registers for the whole kernel:
//
//	Z31 low nibbles or the first plane's mask   Z30 the second plane's mask   Z29 table of codes
//	Z28 d  Z27 dmin of the unit (K types)
const (
	maskReg, highReg, tableReg = 31, 30, 29
	superReg, superMinReg      = 28, 27
)

// A panelAt names operands in a panel: disp bytes behind pointer base, plus index × scale if there is one.
type panelAt struct {
	base, index string
	scale       int
}

func (p panelAt) mem(disp int) string {
	if p.index == "" {
		return Mem(p.base, disp)
	}
	return MemIdx(p.base, p.index, p.scale, disp)
}

// mask is the byte that covers the plane's bits in a code.
func (p plane) mask() uint32 { return uint32(1<<p.width-1) << p.shift * 0x01010101 }

// constants512 loads what the form needs into its registers.
func constants512(fn *Func, w *weightForm) {
	for i, p := range w.planes {
		if p.width == 8 {
			continue
		}
		name := fmt.Sprintf("mask%08x", p.mask())
		fn.Op("VPBROADCASTD", fn.file.Data32(name, p.mask()), Z(maskReg-i))
	}
	if w.table != nil {
		var words [4]uint32
		for i, b := range w.table {
			words[i/4] |= uint32(b) << (8 * (i % 4))
		}
		fn.Op("VBROADCASTI32X4", fn.file.Data32("table"+w.name, words[:]...), Z(tableReg))
	}
}

// codeTemps is the number of registers that codes512 needs.
const codeTemps = 7

// codes512 emits the unpacking of one block whose planes begin at disp, and calls use with the register of each group
// as soon as it is there. It owns codeTemps registers from temp on.
func codes512(fn *Func, w *weightForm, at panelAt, disp, temp int, use func(g int, codes string)) {
	first := w.planes[0]
	high := highPlane512(fn, w, at, disp+first.bytes(), temp+4)
	switch first.width {
	case 8:
		for g := range groups {
			codes := Z(temp + g%2)
			fn.Op("VMOVDQU64", at.mem(disp+g*vector), codes)
			use(g, codes)
		}
	case 4:
		for g := range groups / 2 {
			low, up := Z(temp+g%2*2), Z(temp+g%2*2+1)
			fn.Op("VMOVDQU64", at.mem(disp+g*vector), low)
			fn.Op("VPSRLW", "$4", low, up)
			fn.Op("VPANDQ", Z(maskReg), low, low)
			fn.Op("VPANDQ", Z(maskReg), up, up)
			for half, codes := range []string{low, up} {
				if w.table != nil {
					fn.Op("VPSHUFB", codes, Z(tableReg), codes)
				}
				high(g+4*half, codes)
				use(g+4*half, codes)
			}
		}
	case 2:
		pairs := [2]string{Z(temp + 2), Z(temp + 3)}
		fn.Op("VMOVDQU64", at.mem(disp), pairs[0])
		fn.Op("VMOVDQU64", at.mem(disp+vector), pairs[1])
		for g := range groups {
			codes := Z(temp + g%2)
			fn.Op("VPANDQ", Z(maskReg), shifted512(fn, first.shift-2*(g%4), pairs[g/4], codes), codes)
			high(g, codes)
			use(g, codes)
		}
	}
}

// highPlane512 loads the form's second plane, if it has one; the function it returns ors the plane's bits into the codes
// of a group. It owns three registers from temp on.
func highPlane512(fn *Func, w *weightForm, at panelAt, disp, temp int) func(g int, codes string) {
	if len(w.planes) < 2 {
		return func(int, string) {}
	}
	p := w.planes[1]
	perByte := 8 / p.width
	for i := range groups / perByte {
		fn.Op("VMOVDQU64", at.mem(disp+i*vector), Z(temp+i))
	}
	return func(g int, codes string) {
		bits := shifted512(fn, p.shift-p.width*(g%perByte), Z(temp+g/perByte), Z(temp+2))
		fn.Op("VPTERNLOGD", "$0xf8", Z(highReg), bits, codes) // codes |= bits & mask
	}
}

// shifted512 returns a register with the words of src shifted left by n bits, right if n is negative: src itself or
// temp. Bits that cross a byte are masked later.
func shifted512(fn *Func, n int, src, temp string) string {
	switch {
	case n > 0:
		fn.Op("VPSLLW", Imm(n), src, temp)
	case n < 0:
		fn.Op("VPSRLW", Imm(-n), src, temp)
	default:
		return src
	}
	return temp
}

// unitScales512 loads what all blocks of a unit share.
func unitScales512(fn *Func, w *weightForm, at panelAt) {
	switch w.scales {
	case scaleHalf, scaleExponent:
		return
	}
	fn.Op("VCVTPH2PS", at.mem(0), Z(superReg))
	factor := func(x float32, reg int) {
		bits := math.Float32bits(x)
		fn.Op("VMULPS.BCST", fn.file.Data32(fmt.Sprintf("float%08x", bits), bits), Z(reg), Z(reg))
	}
	switch w.scales {
	case scaleSuperMin:
		fn.Op("VCVTPH2PS", at.mem(32), Z(superMinReg))
		factor(-1, superMinReg)
	case scaleSuperQ2:
		fn.Op("VCVTPH2PS", at.mem(32), Z(superMinReg))
		factor(1.0/32, superMinReg)
	case scaleSuperHalf:
		if w.name == "Q3K" {
			factor(1.0/8, superReg)
		}
	}
}

// blockScales512 emits the scales and minima of block b into consecutive registers from out on, in the order that an
// expanded record has them. small is the operand of byte disp of the small scales, whose pointer may walk; it owns the
// registers out to out+3.
func blockScales512(fn *Func, w *weightForm, at, small panelAt, b, out int) {
	bytes := func(op string, disp, reg int) { fn.Op(op, small.mem(disp), Z(reg)) }
	times := func(reg, unit int) {
		fn.Op("VCVTDQ2PS", Z(reg), Z(reg))
		fn.Op("VMULPS", Z(unit), Z(reg), Z(reg))
	}
	switch w.scales {
	case scaleHalf:
		fn.Op("VCVTPH2PS", at.mem(32*b), Z(out))
		if w.class == "Min" {
			fn.Op("VCVTPH2PS", at.mem(64+32*b), Z(out+1))
		}
	case scaleExponent:
		bytes("VPMOVZXBD", panelRows*b, out)
		fn.Op("VPSLLD", "$23", Z(out), Z(out))
		fn.Op("VPMAXUD.BCST", fn.file.Data32("subnormal", 0x00400000), Z(out), Z(out)) // 2^-127 for exponent 0
		half := math.Float32bits(0.5)
		fn.Op("VMULPS.BCST", fn.file.Data32(fmt.Sprintf("float%08x", half), half), Z(out), Z(out))
	case scaleSuper:
		bytes("VPMOVSXBD", panelRows*b, out)
		times(out, superReg)
	case scaleSuperMin:
		bytes("VPMOVZXBD", panelRows*b, out)
		bytes("VPMOVZXBD", panelRows*(w.blocks+b), out+1)
		times(out, superReg)
		times(out+1, superMinReg)
	case scaleSuperHalf:
		for half := range 2 {
			bytes("VPMOVSXBD", panelRows*(2*b+half), out+half)
			times(out+half, superReg)
		}
	case scaleSuperQ2:
		for half := range 2 {
			bytes("VPMOVZXBD", panelRows*(2*b+half), out+half)
			fn.Op("VPSRLD", "$4", Z(out+half), Z(out+2+half))
			fn.Op("VPANDD.BCST", fn.file.Data32("low4", 15), Z(out+half), Z(out+half))
			times(out+half, superReg)
			times(out+2+half, superMinReg)
		}
	}
}
