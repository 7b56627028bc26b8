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

// fewFloats512 emits the product of count panels of plain numbers with a group of w tokens. A running sum is one chain of
// fused multiply-adds over the inputs; for few tokens two panels go together, so that there are chains enough to hide
// their latency.
//
//	DI dst  DX bytes from token to token  SI panel  R9 panels left  R8 bytes of a panel  R11 units of a panel
//	CX units left  BX activations  R13 their start  K1 rows
func fewFloats512(f *File, typ string, tokens int) {
	name := fmt.Sprintf("few512%sx%d", typ, tokens)
	fn := f.Func(name, fewParams, fmt.Sprintf("%s multiplies count panels of %s with a group of %d; rows says how many rows dst has.", name, typ, tokens))
	for _, p := range [][2]string{{"dst", "DI"}, {"stride", "DX"}, {"panels", "SI"}, {"acts", "R13"}, {"count", "R9"}, {"units", "R11"}} {
		fn.Load(p[0], p[1])
	}
	u := unpacker{fn: fn, wide: true}
	rowMask512(fn)
	fn.Op("SHLQ", "$2", "DX")
	size := 2
	if typ == "F32" {
		size = 4
	}
	unitBytes := size * panelRows * floatUnit
	fn.Op("MOVQ", "R11", "R8")
	fn.Op("IMULQ", Imm(unitBytes), "R8")
	together := []int{2, 1}
	if tokens > 4 {
		together = []int{1}
	}
	for _, panels := range together {
		loop, unit, done := fn.NewLabel("panel"), fn.NewLabel("unit"), fn.NewLabel("done")
		fn.Label(loop)
		fn.Op("CMPQ", "R9", Imm(panels))
		fn.Op("JLT", done)
		for i := range panels * tokens {
			fn.Op("VPXORQ", Z(i), Z(i), Z(i))
		}
		fn.Op("MOVQ", "R11", "CX")
		fn.Op("MOVQ", "R13", "BX")
		fn.Label(unit)
		for i := range floatUnit {
			for p := range panels {
				disp, at := size*panelRows*i, func(disp int) string { return Mem("SI", disp) }
				if p == 1 {
					at = func(disp int) string { return MemIdx("SI", "R8", 1, disp) }
				}
				if disp%64 == 0 {
					fn.Op("PREFETCHT0", at(disp+prefetchAhead))
				}
				weights := Z(24 + (2*i+p)%8)
				u.loadFloats(typ, at(disp), weights)
				for t := range tokens {
					fn.Op("VFMADD231PS.BCST", Mem("BX", t*4*floatUnit+4*i), weights, Z(p*tokens+t))
				}
			}
		}
		fn.Op("ADDQ", Imm(unitBytes), "SI")
		fn.Op("ADDQ", Imm(tokens*4*floatUnit), "BX")
		fn.Op("DECQ", "CX")
		fn.Op("JNE", unit)
		for p := range panels {
			eachToken(fn, tokens, func(t int, at string) { fn.Op("VMOVUPS", Z(p*tokens+t), "K1", at) })
			fn.Op("ADDQ", Imm(vector), "DI")
		}
		if panels == 2 {
			fn.Op("ADDQ", "R8", "SI")
		}
		fn.Op("SUBQ", Imm(panels), "R9")
		fn.Op("JMP", loop)
		fn.Label(done)
	}
	fn.Op("VZEROUPPER")
	fn.Ret()
}
