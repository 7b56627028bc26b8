package main

import (
	"fmt"
	"math"
)

// An unpacker emits the unpacking of codes and scales of one weight type: with AVX-512 for 16 rows at once, or with AVX2
// for the rows of one half of a panel. With AVX-512 the constants stay in high registers,
//
//	Z31, Z30 masks of the planes   Z29 table of codes   Z28 d  Z27 dmin of the unit (K types)
//
// with AVX2 masks are memory operands and the others lie in
//
//	Y15 table of codes   Y14 d  Y13 dmin of the unit (K types)
type unpacker struct {
	fn   *Func
	w    *weightForm
	wide bool
	half int // rows 8·half to 8·half+7, for AVX2
}

// A panelAt is the operand disp bytes behind the pointer base, which walks a panel.
type panelAt struct{ base string }

func (p panelAt) mem(disp int) string { return Mem(p.base, disp) }

func (u unpacker) reg(i int) string {
	if u.wide {
		return Z(i)
	}
	return Y(i)
}

// skip is the distance of the half's rows in a vector of numbers of the given size.
func (u unpacker) skip(size int) int { return u.half * panelRows / 2 * size }

// either picks the instruction of the set.
func (u unpacker) either(wide, narrow string) string {
	if u.wide {
		return wide
	}
	return narrow
}

func (u unpacker) load(mem, dst string) { u.fn.Op(u.either("VMOVDQU64", "VMOVDQU"), mem, dst) }

func (u unpacker) and(a, b, dst string) { u.fn.Op(u.either("VPANDQ", "VPAND"), a, b, dst) }

// times multiplies by a constant.
func (u unpacker) times(x float32, reg string) {
	bits := math.Float32bits(x)
	u.fn.Op(u.either("VMULPS.BCST", "VMULPS"), u.word("float", bits), reg, reg)
}

// word is the memory operand of a 32-bit constant, repeated where there is no broadcast operand.
func (u unpacker) word(hint string, v uint32) string {
	if u.wide {
		return u.fn.file.Data32(fmt.Sprintf("%s%08x", hint, v), v)
	}
	return u.fn.file.Data32(fmt.Sprintf("%s%08x", hint, v), v, v, v, v, v, v, v, v)
}

// mask is the byte that covers the plane's bits in a code, four times.
func (p plane) mask() uint32 { return uint32(1<<p.width-1) << p.shift * 0x01010101 }

// maskOf is the operand of plane i's mask.
func (u unpacker) maskOf(i int) string {
	if u.wide {
		return Z(31 - i)
	}
	return u.word("mask", u.w.planes[i].mask())
}

func (u unpacker) table() string { return u.either("Z29", "Y15") }
func (u unpacker) super() string { return u.either("Z28", "Y14") }
func (u unpacker) superMin() string {
	return u.either("Z27", "Y13")
}

// constants loads what the form needs into its registers.
func (u unpacker) constants() {
	if u.wide {
		for i, p := range u.w.planes {
			if p.width < 8 {
				u.fn.Op("VPBROADCASTD", u.word("mask", p.mask()), u.maskOf(i))
			}
		}
	}
	if u.w.table != nil {
		var words [4]uint32
		for i, b := range u.w.table {
			words[i/4] |= uint32(b) << (8 * (i % 4))
		}
		u.fn.Op(u.either("VBROADCASTI32X4", "VBROADCASTI128"), u.fn.file.Data32("table"+u.w.name, words[:]...), u.table())
	}
}

// codes emits the unpacking of one block whose planes begin at disp, and calls use with the register of each group as
// soon as it is there. It owns seven registers from temp on.
func (u unpacker) codes(at panelAt, disp, temp int, use func(g int, codes string)) {
	first := u.w.planes[0]
	high := u.highPlane(at, disp+first.bytes(), temp+4)
	disp += u.skip(4)
	switch first.width {
	case 8:
		for g := range groups {
			codes := u.reg(temp + g%2)
			u.load(at.mem(disp+g*vector), codes)
			use(g, codes)
		}
	case 4:
		for g := range groups / 2 {
			low, up := u.reg(temp+g%2*2), u.reg(temp+g%2*2+1)
			u.load(at.mem(disp+g*vector), low)
			u.fn.Op("VPSRLW", "$4", low, up)
			u.and(u.maskOf(0), low, low)
			u.and(u.maskOf(0), up, up)
			for half, codes := range []string{low, up} {
				if u.w.table != nil {
					u.fn.Op("VPSHUFB", codes, u.table(), codes)
				}
				high(g+4*half, codes)
				use(g+4*half, codes)
			}
		}
	case 2:
		pairs := [2]string{u.reg(temp + 2), u.reg(temp + 3)}
		u.load(at.mem(disp), pairs[0])
		u.load(at.mem(disp+vector), pairs[1])
		for g := range groups {
			codes := u.reg(temp + g%2)
			u.and(u.maskOf(0), u.shifted(first.shift-2*(g%4), pairs[g/4], codes), codes)
			high(g, codes)
			use(g, codes)
		}
	}
}

// highPlane loads the form's second plane, if it has one; the function it returns ors the plane's bits into the codes of
// a group. It owns three registers from temp on.
func (u unpacker) highPlane(at panelAt, disp, temp int) func(g int, codes string) {
	if len(u.w.planes) < 2 {
		return func(int, string) {}
	}
	p := u.w.planes[1]
	perByte := 8 / p.width
	for i := range groups / perByte {
		u.load(at.mem(disp+i*vector+u.skip(4)), u.reg(temp+i))
	}
	return func(g int, codes string) {
		spare := u.reg(temp + 2)
		bits := u.shifted(p.shift-p.width*(g%perByte), u.reg(temp+g/perByte), spare)
		if u.wide {
			u.fn.Op("VPTERNLOGD", "$0xf8", u.maskOf(1), bits, codes) // codes |= bits & mask
			return
		}
		u.and(u.maskOf(1), bits, spare)
		u.fn.Op("VPOR", spare, codes, codes)
	}
}

// shifted returns a register with the words of src shifted left by n bits, right if n is negative: src itself or temp.
// Bits that cross a byte are masked later.
func (u unpacker) shifted(n int, src, temp string) string {
	switch {
	case n > 0:
		u.fn.Op("VPSLLW", Imm(n), src, temp)
	case n < 0:
		u.fn.Op("VPSRLW", Imm(-n), src, temp)
	default:
		return src
	}
	return temp
}

func (u unpacker) loadHalves(mem, dst string) { u.fn.Op("VCVTPH2PS", mem, dst) }

// unitScales loads what all blocks of a unit share.
func (u unpacker) unitScales(at panelAt) {
	switch u.w.scales {
	case scaleHalf, scaleExponent:
		return
	}
	u.loadHalves(at.mem(u.skip(2)), u.super())
	switch u.w.scales {
	case scaleSuperMin:
		u.loadHalves(at.mem(32+u.skip(2)), u.superMin())
		u.times(-1, u.superMin())
	case scaleSuperQ2:
		u.loadHalves(at.mem(32+u.skip(2)), u.superMin())
		u.times(1.0/32, u.superMin())
	case scaleSuperHalf:
		if u.w.name == "Q3K" {
			u.times(1.0/8, u.super())
		}
	}
}

// blockScales emits the scales and minima of block b into consecutive registers from out on, in the order that an
// expanded record has them. small is the place of the small scales, which may walk; it owns the registers out to out+3.
func (u unpacker) blockScales(at, small panelAt, b, out int) {
	fn := u.fn
	bytes := func(op string, disp, reg int) { fn.Op(op, small.mem(disp+u.skip(1)), u.reg(reg)) }
	times := func(reg int, unit string) {
		fn.Op("VCVTDQ2PS", u.reg(reg), u.reg(reg))
		fn.Op("VMULPS", unit, u.reg(reg), u.reg(reg))
	}
	switch u.w.scales {
	case scaleHalf:
		u.loadHalves(at.mem(32*b+u.skip(2)), u.reg(out))
		if u.w.class == "Min" {
			u.loadHalves(at.mem(64+32*b+u.skip(2)), u.reg(out+1))
		}
	case scaleExponent:
		bytes("VPMOVZXBD", panelRows*b, out)
		fn.Op("VPSLLD", "$23", u.reg(out), u.reg(out))
		// The exponent 0 stands for 2^-127.
		fn.Op(u.either("VPMAXUD.BCST", "VPMAXUD"), u.word("subnormal", 0x00400000), u.reg(out), u.reg(out))
		u.times(0.5, u.reg(out))
	case scaleSuper:
		bytes("VPMOVSXBD", panelRows*b, out)
		times(out, u.super())
	case scaleSuperMin:
		bytes("VPMOVZXBD", panelRows*b, out)
		bytes("VPMOVZXBD", panelRows*(u.w.blocks+b), out+1)
		times(out, u.super())
		times(out+1, u.superMin())
	case scaleSuperHalf:
		for half := range 2 {
			bytes("VPMOVSXBD", panelRows*(2*b+half), out+half)
			times(out+half, u.super())
		}
	case scaleSuperQ2:
		for half := range 2 {
			bytes("VPMOVZXBD", panelRows*(2*b+half), out+half)
			fn.Op("VPSRLD", "$4", u.reg(out+half), u.reg(out+2+half))
			fn.Op(u.either("VPANDD.BCST", "VPAND"), u.word("low", 15), u.reg(out+half), u.reg(out+half))
			times(out+half, u.super())
			times(out+2+half, u.superMin())
		}
	}
}

// walkBlocks emits the loop over the blocks of a K type's unit at SI: R8 walks the codes, R10 the small scales, AX counts.
func walkBlocks(fn *Func, w *weightForm, body func(small, codes panelAt)) {
	perBlock := panelRows
	if w.scales == scaleSuperHalf || w.scales == scaleSuperQ2 {
		perBlock = 2 * panelRows
	}
	fn.Op("LEAQ", Mem("SI", w.superAt()), "R10")
	fn.Op("LEAQ", Mem("SI", w.header), "R8")
	fn.Op("MOVQ", Imm(w.blocks), "AX")
	loop := fn.NewLabel("block")
	fn.Label(loop)
	body(panelAt{"R10"}, panelAt{"R8"})
	fn.Op("ADDQ", Imm(perBlock), "R10")
	fn.Op("ADDQ", Imm(w.blockBytes()), "R8")
	fn.Op("DECQ", "AX")
	fn.Op("JNE", loop)
}
