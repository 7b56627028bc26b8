package main

import "fmt"

func init() {
	generators = append(generators, generator{base: "gemm_floats_avx512_amd64", tags: "amd64 && !purego", emit: emitFewFloats512})
}

func emitFewFloats512(f *File) {
	for _, name := range []string{"F32", "F16", "BF16"} {
		for w := 1; w <= few512; w++ {
			fewFloats512(f, name, w)
		}
	}
}

// fewFloats512 emits the product of count panels of plain numbers, that lie one behind the other, with a group of w
// tokens. A running sum is one chain of fused multiply-adds over the inputs, fast enough for the memory of one core: more
// panels at a time would hide the chain's latency, but two streams of memory cost more than that gains.
//
//	DI dst  DX bytes from token to token  SI panel  R9 panels left  R11 units of a panel  CX units left
//	BX activations  R13 their start  K1 rows
func fewFloats512(f *File, typ string, tokens int) {
	name := fmt.Sprintf("few512%sx%d", typ, tokens)
	fn := f.Func(name, fewParams, fmt.Sprintf("%s multiplies count panels of %s with a group of %d; rows says how many rows dst has.", name, typ, tokens))
	for _, p := range [][2]string{{"dst", "DI"}, {"stride", "DX"}, {"panels", "SI"}, {"acts", "R13"}, {"count", "R9"}, {"units", "R11"}} {
		fn.Load(p[0], p[1])
	}
	u := unpacker{fn: fn, wide: true}
	rowMask512(fn)
	fn.Op("SHLQ", "$2", "DX")
	size := floatBytes(typ)
	panel, unit := fn.NewLabel("panel"), fn.NewLabel("unit")
	fn.Label(panel)
	for t := range tokens {
		fn.Op("VPXORQ", Z(t), Z(t), Z(t))
	}
	fn.Op("MOVQ", "R11", "CX")
	fn.Op("MOVQ", "R13", "BX")
	fn.Label(unit)
	for i := range floatUnit {
		disp, weights := size*panelRows*i, Z(24+i%8)
		if disp%64 == 0 {
			fn.Op("PREFETCHT0", Mem("SI", disp+prefetchAhead))
		}
		u.loadFloats(typ, Mem("SI", disp), weights)
		for t := range tokens {
			fn.Op("VFMADD231PS.BCST", Mem("BX", t*4*floatUnit+4*i), weights, Z(t))
		}
	}
	fn.Op("ADDQ", Imm(size*panelRows*floatUnit), "SI")
	fn.Op("ADDQ", Imm(tokens*4*floatUnit), "BX")
	fn.Op("DECQ", "CX")
	fn.Op("JNE", unit)
	eachToken(fn, tokens, func(t int, at string) { fn.Op("VMOVUPS", Z(t), "K1", at) })
	fn.Op("ADDQ", Imm(vector), "DI")
	fn.Op("DECQ", "R9")
	fn.Op("JNE", panel)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

// floatBytes is the size of a number of a float type.
func floatBytes(typ string) int {
	if typ == "F32" {
		return 4
	}
	return 2
}
