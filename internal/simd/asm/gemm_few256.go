package main

func init() {
	generators = append(generators, generator{base: "gemm_few_avx2_amd64", tags: "amd64 && !purego", emit: emitFew256})
}

func emitFew256(f *File) {
	for i := range weightForms {
		fewCodes256(f, &weightForms[i])
	}
	for _, typ := range []string{"F32", "F16", "BF16"} {
		fewFloats256(f, typ)
	}
}

// beginFew256 begins a function and loads its parameters.
//
//	DI dst  SI panel  R9 panels left  R11 units of a panel  R13 activations  DX rows
func beginFew256(f *File, typ string) *Func {
	name := "few256" + typ + "x1"
	fn := f.Func(name, fewParams, name+" multiplies count panels of "+typ+" with one token; rows says how many rows dst has.")
	for _, p := range [][2]string{{"dst", "DI"}, {"panels", "SI"}, {"acts", "R13"}, {"count", "R9"}, {"units", "R11"}, {"rows", "DX"}} {
		fn.Load(p[0], p[1])
	}
	return fn
}

// storeRows256 stores the sums of a panel's halves.
func storeRows256(fn *Func, sums ...string) {
	fn.Op("MOVQ", "DX", "AX")
	for half, sum := range sums {
		rowMask256(fn, half)
		fn.Op("VMASKMOVPS", sum, "Y15", Mem("DI", 32*half))
	}
	fn.Op("ADDQ", Imm(vector), "DI")
}

// fewCodes256 emits the product of count panels, that lie one behind the other, with one token. Each unit is read for the
// first eight rows, whose running sum is Y0, and then for the others, Y1.
//
//	CX units left  BX activations  R12 those of the unit, and the registers of beginFew256 and walkBlocks
func fewCodes256(f *File, w *weightForm) {
	fn := beginFew256(f, w.name)
	u := unpacker{fn: fn, w: w}
	at, a := panelAt{"SI"}, acts{"BX", 1}
	panel, unit := fn.NewLabel("panel"), fn.NewLabel("unit")
	fn.Label(panel)
	u.constants()
	fn.Op("VPXOR", "Y0", "Y0", "Y0")
	fn.Op("VPXOR", "Y1", "Y1", "Y1")
	fn.Op("MOVQ", "R11", "CX")
	fn.Op("MOVQ", "R13", "R12")
	fn.Label(unit)
	for line := 0; line < w.unitBytes(); line += 64 {
		fn.Op("PREFETCHT0", at.mem(prefetchAhead+line))
	}
	for u.half = range 2 {
		fn.Op("MOVQ", "R12", "BX")
		if w.blocks == 2 {
			for b := range 2 {
				fewBlock256(u, at, at, at, b, w.header+b*w.blockBytes(), a)
			}
			continue
		}
		u.unitScales(at)
		walkBlocks(fn, w, func(small, codes panelAt) { fewBlock256(u, at, small, codes, 0, 0, a) })
	}
	fn.Op("MOVQ", "BX", "R12")
	fn.Op("ADDQ", Imm(w.unitBytes()), "SI")
	fn.Op("DECQ", "CX")
	fn.Op("JNE", unit)
	fn.Op("ADDQ", "$63", "SI") // a panel ends at a multiple of 64
	fn.Op("ANDQ", "$-64", "SI")
	storeRows256(fn, "Y0", "Y1")
	fn.Op("DECQ", "R9")
	fn.Op("JNE", panel)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

// fewBlock256 emits one block for the rows of u.half: the integer sums of its halves are Y2 and Y3.
func fewBlock256(u unpacker, at, small, codes panelAt, b, disp int, a acts) {
	fn, w := u.fn, u.w
	const temp, scale, spare = 4, 4, "Y9"
	sums := [2]string{"Y2", "Y3"}
	switch {
	case w.start == wordMinus128:
		fewBytes256(u, codes, disp, a, temp, sums)
	case w.class == "Half":
		fewPairs256(u, codes, disp, a, temp, sums)
	default:
		var started [2]bool
		u.codes(codes, disp, temp, func(g int, codes string) {
			half := g / 4
			product := "Y11"
			if !started[half] {
				product = sums[half]
			}
			fn.Op("VPBROADCASTD", a.codes(0, g), product)
			fn.Op("VPMADDUBSW", product, codes, product)
			if started[half] {
				fn.Op("VPADDW", product, sums[half], sums[half])
			}
			started[half] = true
		})
		for _, sum := range sums {
			fn.Op("VPMADDWD", ones256(fn), sum, sum)
		}
	}
	u.blockScales(at, small, b, scale)
	f := Y(u.half)
	start := func(array int, sum string) {
		fn.Op("VPBROADCASTD", a.word(array, 0), spare)
		fn.Op("VPADDD", spare, sum, sum)
	}
	switch {
	case w.class == "Half":
		start(wordLow32, sums[0])
		start(wordHigh32, sums[1])
	case w.class == "Q2":
		for half, array := range []int{wordLow32, wordHigh32} {
			fn.Op("VPBROADCASTD", a.word(array, 0), spare)
			fn.Op("VCVTDQ2PS", spare, spare)
			fn.Op("VBROADCASTSS", a.word(wordScale, 0), "Y10")
			fn.Op("VMULPS", "Y10", spare, spare)
			fn.Op("VFMADD231PS", spare, Y(scale+2+half), f)
		}
	default:
		fn.Op("VPADDD", sums[1], sums[0], sums[0])
		if w.start >= 0 && w.start != wordMinus128 {
			start(w.start, sums[0])
		}
		if w.class == "Min" {
			fn.Op("VBROADCASTSS", a.word(wordSum, 0), spare)
			fn.Op("VFMADD231PS", spare, Y(scale+1), f)
		}
	}
	fn.Op("VBROADCASTSS", a.word(wordScale, 0), spare)
	fn.Op("VCVTDQ2PS", sums[0], sums[0])
	fn.Op("VMULPS", Y(scale), sums[0], sums[0])
	if w.twoSums() {
		fn.Op("VCVTDQ2PS", sums[1], sums[1])
		fn.Op("VFMADD231PS", Y(scale+1), sums[1], sums[0])
	}
	fn.Op("VFMADD231PS", spare, sums[0], f)
	fn.Op("ADDQ", Imm(a.bytes()), "BX")
}

// fewBytes256 sums codes of 8 bits, see dotBytes256.
func fewBytes256(u unpacker, codes panelAt, disp int, a acts, temp int, sums [2]string) {
	fn := u.fn
	var started [2]bool
	u.codes(codes, disp, temp, func(g int, codes string) {
		half := g / 4
		product := "Y11"
		if !started[half] {
			product = sums[half]
		}
		fn.Op("VPXOR", u.word("flip", 0x80808080), codes, codes)
		fn.Op("VPBROADCASTD", a.codes(0, g), product)
		fn.Op("VPSIGNB", codes, product, product)
		fn.Op("VPABSB", codes, codes)
		fn.Op("VPMADDUBSW", product, codes, product)
		fn.Op("VPMADDWD", ones256(fn), product, product)
		if started[half] {
			fn.Op("VPADDD", product, sums[half], sums[half])
		}
		started[half] = true
	})
}

// fewPairs256 sums codes up to 63: two groups in 16 bits, Y11 and Y12 for the halves, before they widen.
func fewPairs256(u unpacker, codes panelAt, disp int, a acts, temp int, sums [2]string) {
	fn := u.fn
	narrow := [2]string{"Y11", "Y12"}
	var seen [2]int
	u.codes(codes, disp, temp, func(g int, codes string) {
		half := g / 4
		product := narrow[half]
		if seen[half]%2 == 1 {
			product = "Y13"
		}
		fn.Op("VPBROADCASTD", a.codes(0, g), product)
		fn.Op("VPMADDUBSW", product, codes, product)
		if seen[half]%2 == 1 {
			fn.Op("VPADDW", product, narrow[half], narrow[half])
			if seen[half] == 1 {
				fn.Op("VPMADDWD", ones256(fn), narrow[half], sums[half])
			} else {
				fn.Op("VPMADDWD", ones256(fn), narrow[half], narrow[half])
				fn.Op("VPADDD", narrow[half], sums[half], sums[half])
			}
		}
		seen[half]++
	})
}

// fewFloats256 emits the product of count panels of plain numbers with one token, see fewFloats512.
//
//	CX units left  BX activations, and the registers of beginFew256
func fewFloats256(f *File, typ string) {
	fn := beginFew256(f, typ)
	u := unpacker{fn: fn}
	size := floatBytes(typ)
	panel, unit := fn.NewLabel("panel"), fn.NewLabel("unit")
	fn.Label(panel)
	fn.Op("VPXOR", "Y0", "Y0", "Y0")
	fn.Op("VPXOR", "Y1", "Y1", "Y1")
	fn.Op("MOVQ", "R11", "CX")
	fn.Op("MOVQ", "R13", "BX")
	fn.Label(unit)
	for i := range floatUnit {
		disp, x := size*panelRows*i, Y(2+i%4)
		fn.Op("VBROADCASTSS", Mem("BX", 4*i), x)
		if disp%64 == 0 {
			fn.Op("PREFETCHT0", Mem("SI", disp+prefetchAhead))
		}
		for half := range 2 {
			weights := Y(6 + (2*i+half)%8)
			u.loadFloats(typ, Mem("SI", disp+8*size*half), weights)
			fn.Op("VFMADD231PS", x, weights, Y(half))
		}
	}
	fn.Op("ADDQ", Imm(size*panelRows*floatUnit), "SI")
	fn.Op("ADDQ", Imm(4*floatUnit), "BX")
	fn.Op("DECQ", "CX")
	fn.Op("JNE", unit)
	storeRows256(fn, "Y0", "Y1")
	fn.Op("DECQ", "R9")
	fn.Op("JNE", panel)
	fn.Op("VZEROUPPER")
	fn.Ret()
}
