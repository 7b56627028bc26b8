package main

// The blocks of keys and values with 8-bit codes, as package simd's attn_q8.go lays them out: 32 codes per scale, keys in
// tiles of 16 cells.
const (
	q8Len       = 32
	q8Cells     = 16
	q8RowBytes  = 2 + q8Len
	q8TileBytes = q8Cells * q8RowBytes
)

func emitWiden(f *File, wide bool) {
	emitWidenKeys(f, wide)
	emitWidenValues(f, wide)
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
	v.Op("VPMOVSXBD", Mem("SI", from), code)
	v.Op("VCVTDQ2PS", code, code)
	v.Op("VMULPS", scale, code, code)
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
