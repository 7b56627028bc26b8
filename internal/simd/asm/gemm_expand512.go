package main

func init() {
	generators = append(generators, generator{base: "gemm_expand_avx512_amd64", tags: "amd64 && !purego", emit: emitExpand512})
}

func emitExpand512(f *File) {
	for i := range weightForms {
		expand512(f, &weightForms[i])
	}
	expandHalves512(f)
}

// expand512 emits the expansion of whole units of one type.
//
//	DI records  SI units  CX units left, and those of walkBlocks
func expand512(f *File, w *weightForm) {
	name := "expand512" + w.name
	fn := f.Func(name, "dst *byte, units *byte, count int", name+" expands count units: it is expand"+w.name+" for several.")
	fn.Load("dst", "DI")
	fn.Load("units", "SI")
	fn.Load("count", "CX")
	constants512(fn, w)
	unit := fn.NewLabel("unit")
	fn.Label(unit)
	at := panelAt{base: "SI"}
	record := recordBytes(w.class)
	block := func(b int, small, codes panelAt, disp int) {
		codes512(fn, w, codes, disp, 0, func(g int, codes string) {
			fn.Op("VMOVDQU64", codes, Mem("DI", g*vector))
		})
		blockScales512(fn, w, at, small, b, 0)
		for i := range (record - codeBytes) / vector {
			fn.Op("VMOVUPS", Z(i), Mem("DI", codeBytes+i*vector))
		}
		fn.Op("ADDQ", Imm(record), "DI")
	}
	if w.blocks == 2 {
		for b := range 2 {
			block(b, at, at, w.header+b*w.blockBytes())
		}
	} else {
		unitScales512(fn, w, at)
		walkBlocks(fn, w, func(small, codes panelAt) { block(0, small, codes, 0) })
	}
	fn.Op("ADDQ", Imm(w.unitBytes()), "SI")
	fn.Op("DECQ", "CX")
	fn.Op("JNE", unit)
	fn.Op("VZEROUPPER")
	fn.Ret()
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
	body(panelAt{base: "R10"}, panelAt{base: "R8"})
	fn.Op("ADDQ", Imm(perBlock), "R10")
	fn.Op("ADDQ", Imm(w.blockBytes()), "R8")
	fn.Op("DECQ", "AX")
	fn.Op("JNE", loop)
}

// expandHalves512 emits the expansion of units of binary16 and bfloat16 numbers.
func expandHalves512(f *File) {
	for _, name := range []string{"F16", "BF16"} {
		fn := f.Func("expand512"+name, "dst *byte, units *byte, count int", "expand512"+name+" expands count units: it is expand"+name+" for several.")
		fn.Load("dst", "DI")
		fn.Load("units", "SI")
		fn.Load("count", "CX")
		unit := fn.NewLabel("unit")
		fn.Label(unit)
		for i := range floatUnit {
			loadHalves512(fn, name, Mem("SI", 2*panelRows*i), Z(i))
			fn.Op("VMOVUPS", Z(i), Mem("DI", vector*i))
		}
		fn.Op("ADDQ", Imm(2*panelRows*floatUnit), "SI")
		fn.Op("ADDQ", Imm(vector*floatUnit), "DI")
		fn.Op("DECQ", "CX")
		fn.Op("JNE", unit)
		fn.Op("VZEROUPPER")
		fn.Ret()
	}
}

// loadHalves512 loads 16 numbers of 16 bits as float32.
func loadHalves512(fn *Func, name, mem, dst string) {
	if name == "F16" {
		fn.Op("VCVTPH2PS", mem, dst)
		return
	}
	fn.Op("VPMOVZXWD", mem, dst)
	fn.Op("VPSLLD", "$16", dst, dst)
}
