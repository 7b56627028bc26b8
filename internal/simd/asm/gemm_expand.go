package main

func init() {
	for _, wide := range []bool{true, false} {
		base := "gemm_expand_avx2_amd64"
		if wide {
			base = "gemm_expand_avx512_amd64"
		}
		generators = append(generators, generator{base: base, tags: "amd64 && !purego", emit: func(f *File) { emitExpand(f, wide) }})
	}
}

func emitExpand(f *File, wide bool) {
	for i := range weightForms {
		expandCodes(f, &weightForms[i], wide)
	}
	for _, typ := range []string{"F16", "BF16"} {
		expandFloats(f, typ, wide)
	}
}

// prefetchAhead is how far behind the unit in use memory is asked for, in bytes.
const prefetchAhead = 3072

// beginExpand begins the function of one type.
func beginExpand(f *File, typ string, wide bool) unpacker {
	name := "expand256" + typ
	if wide {
		name = "expand512" + typ
	}
	fn := f.Func(name, "dst *byte, units *byte, count int", name+" expands count units: it is expand"+typ+" for several.")
	fn.Load("dst", "DI")
	fn.Load("units", "SI")
	fn.Load("count", "CX")
	return unpacker{fn: fn, wide: wide}
}

// halves is what of a panel one pass covers: all rows, or one half after the other.
func (u unpacker) halves() int {
	if u.wide {
		return 1
	}
	return 2
}

// expandCodes emits the expansion of whole units of one type.
//
//	DI records  SI units  CX units left, and the registers of walkBlocks
func expandCodes(f *File, w *weightForm, wide bool) {
	u := beginExpand(f, w.name, wide)
	fn := u.fn
	u.w = w
	u.constants()
	store := u.either("VMOVDQU64", "VMOVDQU")
	unit := fn.NewLabel("unit")
	fn.Label(unit)
	at, record := panelAt{"SI"}, recordBytes(w.class)
	for line := 0; line < w.unitBytes(); line += 64 {
		fn.Op("PREFETCHT0", at.mem(prefetchAhead+line))
	}
	block := func(b int, small, codes panelAt, disp int) {
		u.codes(codes, disp, 0, func(g int, codes string) {
			fn.Op(store, codes, Mem("DI", g*vector+u.skip(4)))
		})
		u.blockScales(at, small, b, 0)
		for i := range (record - codeBytes) / vector {
			fn.Op("VMOVUPS", u.reg(i), Mem("DI", codeBytes+i*vector+u.skip(4)))
		}
	}
	for u.half = range u.halves() {
		if w.blocks == 2 {
			for b := range 2 {
				block(b, at, at, w.header+b*w.blockBytes())
				fn.Op("ADDQ", Imm(record), "DI")
			}
		} else {
			u.unitScales(at)
			walkBlocks(fn, w, func(small, codes panelAt) {
				block(0, small, codes, 0)
				fn.Op("ADDQ", Imm(record), "DI")
			})
		}
		if u.half < u.halves()-1 {
			fn.Op("SUBQ", Imm(w.blocks*record), "DI")
		}
	}
	fn.Op("ADDQ", Imm(w.unitBytes()), "SI")
	fn.Op("DECQ", "CX")
	fn.Op("JNE", unit)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

// expandFloats emits the expansion of units of binary16 or bfloat16 numbers.
func expandFloats(f *File, typ string, wide bool) {
	u := beginExpand(f, typ, wide)
	fn := u.fn
	unit := fn.NewLabel("unit")
	fn.Label(unit)
	n := floatUnit * u.halves()
	lane := vector / u.halves()
	for i := range n {
		if i*lane/2%64 == 0 {
			fn.Op("PREFETCHT0", Mem("SI", prefetchAhead+i*lane/2))
		}
		dst := u.reg(i % 16)
		u.loadFloats(typ, Mem("SI", lane/2*i), dst)
		fn.Op("VMOVUPS", dst, Mem("DI", lane*i))
	}
	fn.Op("ADDQ", Imm(n*lane/2), "SI")
	fn.Op("ADDQ", Imm(n*lane), "DI")
	fn.Op("DECQ", "CX")
	fn.Op("JNE", unit)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

// loadFloats loads a vector of numbers of a float type as float32.
func (u unpacker) loadFloats(typ, mem, dst string) {
	switch typ {
	case "F32":
		u.fn.Op("VMOVUPS", mem, dst)
	case "F16":
		u.fn.Op("VCVTPH2PS", mem, dst)
	case "BF16":
		u.fn.Op("VPMOVZXWD", mem, dst)
		u.fn.Op("VPSLLD", "$16", dst, dst)
	}
}
