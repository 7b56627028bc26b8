package main

import "math"

// An unpackerN emits the unpacking of codes and scales of one weight type with NEON, four rows at a time, for all rows
// of a block one after the other. signed makes codes of 8 bits signed ones, as SDOT wants them. It owns
//
//	v6 to v9 codes, then scales  v10 to v12 planes  v13 spare  v14 to v17 d, v18 to v21 dmin of the unit (K types)
//	v22, v23 masks of the planes  v24 table of codes  v25 a constant of the type
type unpackerN struct {
	neon
	w      *weightForm
	signed bool
}

const (
	unpackedN = 6
	planesN   = 10
	spareN    = 13
	superN    = 14
	superMinN = 18
	maskN     = 22
	secondN   = 23
	tableN    = 24
	constantN = 25
)

// constants loads what the form needs into its registers.
func (u unpackerN) constants() {
	for i, p := range u.w.planes {
		if p.width < 8 {
			u.constant(maskN+i, p.mask())
		}
	}
	if table := u.w.table; table != nil {
		var words [4]uint32
		offset, hint := 0, "table"
		if u.signed {
			offset, hint = u.w.tableOffset(), "signed"
		}
		for i, b := range table {
			words[i/4] |= uint32(byte(int(b)-offset)) << (8 * (i % 4))
		}
		u.table(u.file.Data32(hint+u.w.name, words[:]...), "R17")
		u.ldr("q", tableN, "R17", 0)
	}
	float := func(x float32) { u.constant(constantN, math.Float32bits(x)) }
	switch u.w.scales {
	case scaleHalf:
		if u.signed && u.w.planes[0].width == 8 {
			u.constant(constantN, 0x80808080)
		}
	case scaleExponent:
		u.constant(secondN, 0x00400000)
		float(0.5)
	case scaleSuperQ2:
		u.constant(secondN, 15)
		float(1.0 / 32)
	case scaleSuperHalf:
		if u.w.name == "Q3K" {
			float(1.0 / 8)
		}
	}
}

// tableOffset is what the bytes of the table exceed the codes by.
func (w *weightForm) tableOffset() int {
	if w.start == wordMinus16 {
		return 16
	}
	return 128
}

// startsFromSum says whether integer sums of signed codes start from a word array.
func (w *weightForm) startsFromSum() bool {
	return w.start >= 0 && w.table == nil && w.planes[0].width < 8
}

// codes emits the unpacking of rows 4q to 4q+3 of one block whose planes begin at disp, and calls use with the register
// of each group as soon as it is there.
func (u unpackerN) codes(base string, disp, q int, use func(g, codes int)) {
	first := u.w.planes[0]
	row := 16 * q
	high := u.highPlane(base, disp+first.bytes()+row)
	switch first.width {
	case 8:
		for g := range groups {
			codes := unpackedN + g%4
			u.ldr("q", codes, base, disp+g*vector+row)
			if u.signed {
				u.v("eor 16b", codes, codes, constantN)
			}
			use(g, codes)
		}
	case 4:
		for g := range groups / 2 {
			low, up := unpackedN+g%2*2, unpackedN+g%2*2+1
			u.ldr("q", low, base, disp+g*vector+row)
			u.shift("16b", up, low, -4)
			u.v("and 16b", low, low, maskN)
			for half, codes := range []int{low, up} {
				if u.w.table != nil {
					u.lookup(codes, tableN, codes)
				}
				high(g+4*half, codes)
				use(g+4*half, codes)
			}
		}
	case 2:
		pairs := [2]int{unpackedN + 2, unpackedN + 3}
		u.ldr("q", pairs[0], base, disp+row)
		u.ldr("q", pairs[1], base, disp+vector+row)
		for g := range groups {
			codes := unpackedN + g%2
			u.v("and 16b", codes, u.shifted(first.shift-2*(g%4), pairs[g/4], codes), maskN)
			high(g, codes)
			use(g, codes)
		}
	}
}

// highPlane loads the form's second plane, if it has one; the function it returns ors the plane's bits into the codes of
// a group.
func (u unpackerN) highPlane(base string, disp int) func(g, codes int) {
	if len(u.w.planes) < 2 {
		return func(int, int) {}
	}
	p := u.w.planes[1]
	perByte := 8 / p.width
	for i := range groups / perByte {
		u.ldr("q", planesN+i, base, disp+i*vector)
	}
	return func(g, codes int) {
		bits := u.shifted(p.shift-p.width*(g%perByte), planesN+g/perByte, spareN)
		u.v("and 16b", spareN, bits, secondN)
		u.v("orr 16b", codes, codes, spareN)
	}
}

// shifted returns a register with the bytes of src shifted left by n bits, right if n is negative: src itself or temp.
func (u unpackerN) shifted(n, src, temp int) int {
	if n == 0 {
		return src
	}
	u.shift("16b", temp, src, n)
	return temp
}

func (u unpackerN) loadHalves(v int, base string, disp int) {
	u.ldr("d", v, base, disp)
	u.v("fcvtl 4s 4h", v, v)
}

// unitScales loads what all blocks of a unit share.
func (u unpackerN) unitScales(base string) {
	switch u.w.scales {
	case scaleHalf, scaleExponent:
		return
	}
	for q := range quads {
		d, dmin := superN+q, superMinN+q
		u.loadHalves(d, base, 8*q)
		switch u.w.scales {
		case scaleSuperMin:
			u.loadHalves(dmin, base, 32+8*q)
			u.v("fneg 4s", dmin, dmin)
		case scaleSuperQ2:
			u.loadHalves(dmin, base, 32+8*q)
			u.v("fmul 4s", dmin, dmin, constantN)
		case scaleSuperHalf:
			if u.w.name == "Q3K" {
				u.v("fmul 4s", d, d, constantN)
			}
		}
	}
}

// blockScales emits the scales and minima of rows 4q to 4q+3 of block b into consecutive registers from unpackedN on, in
// the order that an expanded record has them. base is the unit, small the place of the small scales, which may walk.
func (u unpackerN) blockScales(base, small string, b, q int) {
	out := unpackedN
	bytes := func(extend string, v, disp int) {
		u.ldr("s", v, small, disp+4*q)
		u.v(extend+" 8h 8b", v, v)
		u.v(extend+" 4s 4h", v, v)
	}
	times := func(v, unit int) {
		u.v("scvtf 4s", v, v)
		u.v("fmul 4s", v, v, unit+q)
	}
	switch u.w.scales {
	case scaleHalf:
		u.loadHalves(out, base, 32*b+8*q)
		if u.w.class == "Min" {
			u.loadHalves(out+1, base, 64+32*b+8*q)
		}
	case scaleExponent:
		bytes("uxtl", out, panelRows*b)
		u.shift("4s", out, out, 23)
		u.v("umax 4s", out, out, secondN) // the exponent 0 stands for 2^-127
		u.v("fmul 4s", out, out, constantN)
	case scaleSuper:
		bytes("sxtl", out, panelRows*b)
		times(out, superN)
	case scaleSuperMin:
		bytes("uxtl", out, panelRows*b)
		bytes("uxtl", out+1, panelRows*(u.w.blocks+b))
		times(out, superN)
		times(out+1, superMinN)
	case scaleSuperHalf:
		for half := range 2 {
			bytes("sxtl", out+half, panelRows*(2*b+half))
			times(out+half, superN)
		}
	case scaleSuperQ2:
		for half := range 2 {
			bytes("uxtl", out+half, panelRows*(2*b+half))
			u.shift("4s", out+2+half, out+half, -4)
			u.v("and 16b", out+half, out+half, secondN)
			times(out+half, superN)
			times(out+2+half, superMinN)
		}
	}
}

// blocks emits the visit of every block of the unit at R1: R8 walks the codes of a K type, R9 its small scales, R10 counts.
func (u unpackerN) blocks(visit func(b int, small, codes string, disp int)) {
	w := u.w
	if w.blocks == 2 {
		for b := range 2 {
			visit(b, "R1", "R1", w.header+b*w.blockBytes())
		}
		return
	}
	u.unitScales("R1")
	perBlock := panelRows
	if w.twoSums() {
		perBlock = 2 * panelRows
	}
	u.Op("ADD", Imm(w.superAt()), "R1", "R9")
	u.Op("ADD", Imm(w.header), "R1", "R8")
	u.Op("MOVD", Imm(w.blocks), "R10")
	loop := u.NewLabel("block")
	u.Label(loop)
	visit(0, "R9", "R8", 0)
	u.add(perBlock, "R9")
	u.add(w.blockBytes(), "R8")
	u.countdown(1, "R10", loop)
}

// ahead asks for the memory that lies prefetchAhead behind n bytes from disp on.
func (u unpackerN) ahead(base string, disp, n int) {
	for line := 0; line < n; line += 64 {
		u.prefetch(1, base, disp+line+prefetchAhead)
	}
}

// loadWeights loads 16 numbers of a float type as float32 into v to v+3.
func (f neon) loadWeights(typ string, v int, base string, disp int) {
	if typ == "F32" {
		for q := range quads {
			f.ldr("q", v+q, base, disp+16*q)
		}
		return
	}
	f.ldr("q", v, base, disp)
	f.ldr("q", v+2, base, disp+16)
	for _, v := range []int{v, v + 2} {
		if typ == "F16" {
			f.v("fcvtl2 4s 8h", v+1, v)
			f.v("fcvtl 4s 4h", v, v)
			continue
		}
		f.shll(true, v+1, v)
		f.shll(false, v, v)
	}
}
