package main

import "fmt"

// The blocks of keys and values with 8-bit codes, as package simd's attn_q8.go lays them out: 32 codes per scale, keys in
// tiles of 16 cells.
const (
	q8Len       = 32
	q8Cells     = 16
	q8RowBytes  = 2 + q8Len
	q8TileBytes = q8Cells * q8RowBytes
)

func emitQ8(f *File, wide bool) {
	emitScoresQ8(f, wide)
	emitValuesQ8(f, wide)
	emitWidenKeys(f, wide)
	emitWidenValues(f, wide)
	if !wide {
		emitEncodeQ8(f)
	}
}

// q8Queries is the most queries for which keys and values are converted in registers: with more, converting once is as
// quick.
func q8Queries(wide bool) int {
	if wide {
		return 5
	}
	return 2
}

// codes loads a register of codes times the scales as float32.
func (v *vecEmitter) codes(mem, scale, to string) {
	v.Op("VPMOVSXBD", mem, to)
	v.Op("VCVTDQ2PS", to, to)
	v.Op("VMULPS", scale, to, to)
}

func emitScoresQ8(f *File, wide bool) {
	name, most := "attnScoresQ8"+suffix(wide), q8Queries(wide)
	v := &vecEmitter{wide: wide, Func: f.Func(name, "s *float32, k *byte, q *float32, koff *int, qoff *int, n int, hd int",
		fmt.Sprintf("%s is attnScoresF32%s over keys with 8-bit codes, for n <= %d, hd a multiple of 32.", name, suffix(wide), most))}
	labels := v.dispatch(most)
	tiles := 2 // of a pass
	if wide {
		tiles = 4
	}
	for n := 1; n <= most; n++ {
		v.Label(labels[n])
		for first := 0; first < 4; first += tiles {
			v.scoresPassQ8(n, first, tiles)
		}
		v.Op("VZEROUPPER")
		v.Ret()
	}
}

// scoresPassQ8 does n queries over the tiles from first on. R15 runs one block of cells ahead.
func (v *vecEmitter) scoresPassQ8(n, first, tiles int) {
	width, perTile := lanes(v.wide), q8Cells/lanes(v.wide)
	regs := tiles * perTile // of a query
	acc := func(i, r int) string { return v.V(regs*i + r) }
	scale := func(r int) string { return v.V(regs*n + r) }
	query := func(i int) string { return v.V(regs*(n+1) + i) }
	spare := regs*(n+1) + n
	v.tilePointers(first, tiles)
	v.queryPointers(n)
	v.Load("hd", "R13")
	v.Op("SHRQ", Imm(5), "R13")
	v.Op("IMUL3Q", Imm(4*q8TileBytes), "R13", "R15")
	v.Op("ADDQ", "AX", "R15")
	for i := range regs * n {
		v.Op("VXORPS", v.V(i), v.V(i), v.V(i))
	}
	block, inner := v.NewLabel("block"), v.NewLabel("inner")
	v.Label(block)
	for r := range regs {
		v.Op("VCVTPH2PS", Mem(tileRegs[r/perTile], 2*width*(r%perTile)), scale(r))
	}
	for _, t := range tileRegs[:tiles] {
		v.Op("ADDQ", Imm(2*q8Cells), t)
	}
	for at := 0; at < 2*q8Cells*tiles; at += 64 {
		v.Op("PREFETCHT1", Mem("R15", at))
	}
	v.Op("ADDQ", Imm(2*q8Cells*tiles), "R15")
	const unroll = 4
	v.Op("MOVL", Imm(q8Len/unroll), "R14")
	v.Label(inner)
	next := 0
	for u := range unroll {
		for i := range n {
			v.Op("VBROADCASTSS", Mem(qRegs[i], 4*u), query(i))
		}
		for r := range regs {
			key := v.V(spare + next%min(8, 16*perWide(v.wide)-spare))
			next++
			v.codes(Mem(tileRegs[r/perTile], q8Cells*u+width*(r%perTile)), scale(r), key)
			for i := range n {
				v.Op("VFMADD231PS", query(i), key, acc(i, r))
			}
		}
	}
	for t, reg := range tileRegs[:tiles] {
		v.Op("ADDQ", Imm(unroll*q8Cells), reg)
		v.Op("PREFETCHT1", Mem("R15", 64*t))
	}
	v.Op("ADDQ", Imm(64*tiles), "R15")
	for i := range n {
		v.Op("ADDQ", Imm(4*unroll), qRegs[i])
	}
	v.Op("SUBL", Imm(1), "R14")
	v.Op("JNZ", inner)
	v.Op("SUBQ", Imm(1), "R13")
	v.Op("JNZ", block)
	v.Load("s", "R13")
	for i := range n {
		for r := range regs {
			v.Op("VMOVUPS", acc(i, r), Mem("R13", 4*blockLen*i+64*first+4*width*r))
		}
	}
}

// perWide is how many times 16 vector registers there are.
func perWide(wide bool) int {
	if wide {
		return 2
	}
	return 1
}

func emitValuesQ8(f *File, wide bool) {
	name, most := "attnValuesQ8"+suffix(wide), q8Queries(wide)
	v := &vecEmitter{wide: wide, Func: f.Func(name, valuesParams,
		fmt.Sprintf("%s is attnValuesF32%s over values with 8-bit codes, for n <= %d, hd a multiple of 32.", name, suffix(wide), most))}
	v.Load("acc", "DI")
	v.Load("v", "SI")
	v.Load("hd", "CX")
	v.Op("MOVQ", "CX", "DX")
	v.Op("SHLQ", Imm(2), "DX")
	v.Op("MOVQ", "CX", "BX")
	v.Op("SHRQ", Imm(5), "BX")
	v.Op("IMUL3Q", Imm(q8RowBytes), "BX", "BX")
	labels := v.dispatch(most)
	for n := 1; n <= most; n++ {
		v.Label(labels[n])
		blocks := []int{1} // of a slice
		switch {
		case wide && n <= 3:
			blocks = []int{4, 2, 1}
		case wide:
			blocks = []int{2, 1}
		case n == 1:
			blocks = []int{2, 1}
		}
		for w, b := range blocks {
			slice, next := v.NewLabel("slice"), v.NewLabel("next")
			v.Label(slice)
			v.Op("CMPQ", "CX", Imm(q8Len*b))
			v.Op("JLT", next)
			v.valuesSliceQ8(n, b)
			v.Op("ADDQ", Imm(4*q8Len*b), "DI")
			v.Op("ADDQ", Imm(q8RowBytes*b), "SI")
			v.Op("SUBQ", Imm(q8Len*b), "CX")
			if w == 0 {
				v.Op("JMP", slice)
			}
			v.Label(next)
		}
		v.Op("VZEROUPPER")
		v.Ret()
	}
}

// valuesSliceQ8 does n rows of the given blocks at DI (acc) and SI (values).
func (v *vecEmitter) valuesSliceQ8(n, blocks int) {
	width := q8Len * blocks / lanes(v.wide)
	perBlock := width / blocks
	last := 16*perWide(v.wide) - 1
	acc := func(i, t int) string { return v.V(width*i + t) }
	weight := func(i int) string { return v.V(last - i) }
	free := last + 1 - n - width*n // scales and values pass through these
	scales := max(1, free/4)
	v.valuesRows(n, func(i int) {
		v.Op("VBROADCASTSS", Mem("R8", 4*i), v.V(last))
		for t := range width {
			v.Op("VMULPS", Mem("R9", 4*lanes(v.wide)*t), v.V(last), acc(i, t))
		}
	})
	v.Load("p", "R8")
	v.Load("cells", "R10")
	v.Load("count", "R11")
	v.Op("MOVQ", "BX", "R14")
	v.Op("SHLQ", Imm(6), "R14")
	loop := v.NewLabel("loop")
	v.Label(loop)
	v.Op("MOVLQSX", Mem("R10", 0), "R12")
	v.Op("IMULQ", "BX", "R12")
	v.Op("ADDQ", "SI", "R12")
	for at := 0; at < q8RowBytes*blocks; at += 64 {
		v.Op("PREFETCHT1", MemIdx("R12", "R14", 1, at))
	}
	for i := range n {
		v.Op("VBROADCASTSS", Mem("R8", 4*blockLen*i), weight(i))
	}
	for t := range width {
		block, at := t/perBlock, t%perBlock
		s := width*n + block%scales
		if at == 0 {
			half := X(s)
			if v.wide {
				half = Y(s)
			}
			v.Op("VPBROADCASTW", Mem("R12", q8RowBytes*block), half)
			v.Op("VCVTPH2PS", half, v.V(s))
		}
		value := v.V(width*n + scales + t%(free-scales))
		v.codes(Mem("R12", q8RowBytes*block+2+lanes(v.wide)*at), v.V(s), value)
		for i := range n {
			v.Op("VFMADD231PS", weight(i), value, acc(i, t))
		}
	}
	v.Op("ADDQ", Imm(4), "R8")
	v.Op("ADDQ", Imm(4), "R10")
	v.Op("SUBQ", Imm(1), "R11")
	v.Op("JNZ", loop)
	v.valuesRows(n, func(i int) {
		for t := range width {
			v.Op("VMOVUPS", acc(i, t), Mem("R9", 4*lanes(v.wide)*t))
		}
	})
}

const widenParams = "dst *float32, src *byte, blocks int"

// widenLoop runs body once per block, with SI at the block and DI at its elements, and R14 the distance to the same
// block of the next positions that a pass over cells in order reads.
func (v *vecEmitter) widenLoop(srcBytes, dstBytes, ahead int, body func()) {
	v.Load("dst", "DI")
	v.Load("src", "SI")
	v.Load("blocks", "CX")
	v.Op("IMUL3Q", Imm(ahead), "CX", "R14")
	loop := v.NewLabel("loop")
	v.Label(loop)
	body()
	v.Op("ADDQ", Imm(srcBytes), "SI")
	v.Op("ADDQ", Imm(dstBytes), "DI")
	v.Op("SUBQ", Imm(1), "CX")
	v.Op("JNZ", loop)
	v.Op("VZEROUPPER")
	v.Ret()
}

// widenCodes stores a register of codes at SI as float32 times the scales.
func (v *vecEmitter) widenCodes(from, to int, code, scale string) {
	v.codes(Mem("SI", from), scale, code)
	v.Op("VMOVUPS", code, Mem("DI", to))
}

func emitWidenKeys(f *File, wide bool) {
	name := "attnWidenKeys" + suffix(wide)
	v := &vecEmitter{wide: wide, Func: f.Func(name, widenParams,
		name+" makes float32 of a tile of keys with 8-bit codes: dst [32·blocks][16].")}
	regs := q8Cells / lanes(wide)
	v.widenLoop(q8TileBytes, 4*q8Len*q8Cells, blockLen/q8Cells*q8TileBytes, func() {
		for at := 0; at < q8TileBytes; at += 64 {
			v.Op("PREFETCHT1", MemIdx("SI", "R14", 1, at))
		}
		for h := range regs {
			v.Op("VCVTPH2PS", Mem("SI", 2*lanes(wide)*h), v.V(h))
		}
		for d := range q8Len {
			for h := range regs {
				v.widenCodes(2*q8Cells+q8Cells*d+lanes(wide)*h, 4*(q8Cells*d+lanes(wide)*h), v.V(2+(regs*d+h)%8), v.V(h))
			}
		}
	})
}

func emitWidenValues(f *File, wide bool) {
	name := "attnWidenValues" + suffix(wide)
	v := &vecEmitter{wide: wide, Func: f.Func(name, widenParams,
		name+" makes float32 of a row of values with 8-bit codes: dst [32·blocks].")}
	half := X(0)
	if wide {
		half = Y(0)
	}
	v.widenLoop(q8RowBytes, 4*q8Len, blockLen*q8RowBytes, func() {
		v.Op("PREFETCHT1", MemIdx("SI", "R14", 1, 0))
		v.Op("VPBROADCASTW", Mem("SI", 0), half)
		v.Op("VCVTPH2PS", half, v.V(0))
		for i := range q8Len / lanes(wide) {
			v.widenCodes(2+lanes(wide)*i, 4*lanes(wide)*i, v.V(1+i), v.V(0))
		}
	})
}

// emitEncodeQ8 emits the storing of a row; it serves AVX-512 as well, since most of its time are the horizontal parts.
func emitEncodeQ8(f *File) {
	fn := f.Func("attnEncodeQ8AVX2", "dst *byte, x *float32, blocks int", "attnEncodeQ8AVX2 is encodeQ8Generic for blocks·32 elements.")
	fn.Load("dst", "DI")
	fn.Load("x", "SI")
	fn.Load("blocks", "CX")
	fn.Op("VPBROADCASTD", f.Data32("magnitude", 0x7fffffff), Y(15))
	fn.Op("VMOVDQU", f.Data32("unpack", 0, 4, 1, 5, 2, 6, 3, 7), Y(13))
	fn.Op("VMOVSS", f.Data32("float127", 0x42fe0000), X(12))
	fn.Op("VMOVSS", f.Data32("float1", 0x3f800000), X(11))
	loop, next, flat := fn.NewLabel("loop"), fn.NewLabel("next"), fn.NewLabel("flat")
	fn.Label(loop)
	for i := range 4 {
		fn.Op("VMOVUPS", Mem("SI", 32*i), Y(i))
		fn.Op("VPAND", Y(15), Y(i), Y(4+i))
	}
	fn.Op("VPMAXUD", Y(5), Y(4), Y(4))
	fn.Op("VPMAXUD", Y(7), Y(6), Y(6))
	fn.Op("VPMAXUD", Y(6), Y(4), Y(4))
	fn.Op("VEXTRACTI128", Imm(1), Y(4), X(5))
	fn.Op("VPMAXUD", X(5), X(4), X(4))
	for _, order := range []int{0x4e, 0xb1} {
		fn.Op("VPSHUFD", Imm(order), X(4), X(5))
		fn.Op("VPMAXUD", X(5), X(4), X(4))
	}
	fn.Op("VMOVD", X(4), "AX")
	fn.Op("MOVL", "$0x7e00", "BX")
	fn.Op("CMPL", "AX", "$0x7f7fffff")
	fn.Op("JHI", flat)
	fn.Op("VDIVSS", X(12), X(4), X(4)) // d
	fn.Op("VCVTPS2PH", Imm(0), X(4), X(5))
	fn.Op("VMOVD", X(5), "BX")
	fn.Op("ANDL", "$0xffff", "BX")
	fn.Op("JEQ", flat)
	fn.Op("MOVW", "BX", Mem("DI", 0))
	fn.Op("VDIVSS", X(4), X(11), X(5)) // 1/d
	fn.Op("VBROADCASTSS", X(5), Y(5))
	for i := range 4 {
		fn.Op("VMULPS", Y(5), Y(i), Y(i))
		fn.Op("VCVTPS2DQ", Y(i), Y(i))
	}
	fn.Op("VPACKSSDW", Y(1), Y(0), Y(0))
	fn.Op("VPACKSSDW", Y(3), Y(2), Y(2))
	fn.Op("VPACKSSWB", Y(2), Y(0), Y(0))
	fn.Op("VPERMD", Y(0), Y(13), Y(0))
	fn.Label(next)
	fn.Op("VMOVDQU", Y(0), Mem("DI", 2))
	fn.Op("ADDQ", Imm(4*q8Len), "SI")
	fn.Op("ADDQ", Imm(q8RowBytes), "DI")
	fn.Op("SUBQ", Imm(1), "CX")
	fn.Op("JNZ", loop)
	fn.Op("VZEROUPPER")
	fn.Ret()
	fn.Label(flat)
	fn.Op("MOVW", "BX", Mem("DI", 0))
	fn.Op("VPXOR", Y(0), Y(0), Y(0))
	fn.Op("JMP", next)
}
