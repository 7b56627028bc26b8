package main

func init() {
	generators = append(generators, generator{base: "gemm_few_neon_arm64", tags: "arm64 && !purego", emit: func(f *File) {
		for i := range weightForms {
			fewCodesNEON(f, &weightForms[i])
		}
		for _, typ := range []string{"F32", "F16", "BF16"} {
			fewFloatsNEON(f, typ)
		}
	}})
}

// fewNEON emits the product of count panels, that lie one behind the other, with one token. Panels are read in the order
// of memory. The running sums of a panel are v0 to v3.
//
//	R0 dst  R1 panel  R2 activations  R3 panels left  R4 units of a panel  R5 rows  R6 activations of the block
//	R7 units left  R11 place in dst
func fewNEON(f *File, typ string, prepare, unit func(u neon)) {
	name := "fewNEON" + typ + "x1"
	u := neon{f.Func(name, fewParams, name+" multiplies count panels of "+typ+" with one token; rows says how many rows dst has.")}
	for _, p := range [][2]string{{"dst", "R0"}, {"panels", "R1"}, {"acts", "R2"}, {"count", "R3"}, {"units", "R4"}, {"rows", "R5"}} {
		u.Load(p[0], p[1])
	}
	prepare(u)
	panel, loop := u.NewLabel("panel"), u.NewLabel("unit")
	u.Label(panel)
	for q := range quads {
		u.clear(q)
	}
	u.Op("MOVD", "R4", "R7")
	u.Op("MOVD", "R2", "R6")
	u.Label(loop)
	unit(u)
	u.countdown(1, "R7", loop)
	u.add(63, "R1") // a panel ends at a multiple of 64
	u.Op("AND", "$-64", "R1")
	u.Op("MOVD", "R0", "R11")
	u.storeRows(0, "R11", "R5")
	u.add(vector, "R0")
	u.countdown(1, "R3", panel)
	u.Ret()
}

// fewCodesNEON emits the product of panels of one type with one token, beside the registers of an unpacker:
//
//	v4, v5 integer sums of the halves  v26, v27 codes of the activations  v28 d, d·Σq, −8Σq, −16Σq
//	v29 −16Σq, −128Σq and −32Σq of the halves  v30 the last two times d
func fewCodesNEON(f *File, w *weightForm) {
	unpacker := func(v neon) unpackerN { return unpackerN{v, w, true} }
	fewNEON(f, w.name, func(v neon) { unpacker(v).constants() }, func(v neon) {
		u := unpacker(v)
		u.ahead("R1", 0, w.header)
		u.blocks(func(b int, small, codes string, disp int) {
			u.ahead(codes, disp, w.blockBytes())
			u.ldr("q", 26, "R6", 0)
			u.ldr("q", 27, "R6", 16)
			u.ldr("q", 28, "R6", blockInputs)
			if w.twoSums() {
				u.ldur(29, "R6", blockInputs+4*wordMinus16)
			}
			if w.class == "Q2" {
				u.v("scvtf 4s", 30, 29)
				u.element("fmul", 30, 30, wordScale, 28)
			}
			for q := range quads {
				u.few(b, small, codes, disp, q)
			}
			u.add(actBytes, "R6")
		})
		u.add(w.unitBytes(), "R1")
	})
}

// few emits rows 4q to 4q+3 of one block.
func (u unpackerN) few(b int, small, codes string, disp, q int) {
	const low, high, halves = 4, 5, 29
	w := u.w
	switch {
	case w.class == "Half":
		u.element("dup", low, halves, wordLow32-wordMinus16)
		u.element("dup", high, halves, wordHigh32-wordMinus16)
	case w.startsFromSum():
		u.element("dup", low, 28, w.start)
		u.clear(high)
	default:
		u.clear(low)
		u.clear(high)
	}
	u.codes(codes, disp, q, func(g, codes int) { u.sdot(low+g/4, codes, 26+g/4, g%4) })
	u.blockScales("R1", small, b, q)
	scale := unpackedN
	switch w.class {
	case "Min":
		u.element("fmla", q, scale+1, wordSum, 28)
	case "Q2":
		u.element("fmla", q, scale+2, wordLow32-wordMinus16, 30)
		u.element("fmla", q, scale+3, wordHigh32-wordMinus16, 30)
	}
	if w.twoSums() {
		u.v("scvtf 4s", low, low)
		u.v("scvtf 4s", high, high)
		u.v("fmul 4s", low, low, scale)
		u.v("fmla 4s", low, high, scale+1)
	} else {
		u.v("add 4s", low, low, high)
		u.v("scvtf 4s", low, low)
		u.v("fmul 4s", low, low, scale)
	}
	u.element("fmla", q, low, wordScale, 28)
}

// fewFloatsNEON emits the product of panels of plain numbers with one token: a running sum is one chain of fused
// multiply-adds over the inputs.
//
//	v4 to v7 activations  v8 to v23 weights of four inputs
func fewFloatsNEON(f *File, typ string) {
	line := floatBytes(typ) * panelRows
	fewNEON(f, typ, func(neon) {}, func(v neon) {
		for i := range floatUnit / 4 {
			v.ldr("q", 4+i, "R6", 16*i)
		}
		for i := range floatUnit {
			if line*i%64 == 0 {
				v.prefetch(1, "R1", line*i+prefetchAhead)
			}
			weights := 8 + i%4*4
			v.loadWeights(typ, weights, "R1", line*i)
			for q := range quads {
				v.element("fmla", q, weights+q, i%4, 4+i/4)
			}
		}
		v.add(line*floatUnit, "R1")
		v.add(4*floatUnit, "R6")
	})
}
