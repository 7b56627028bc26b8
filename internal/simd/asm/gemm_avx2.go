package main

import "fmt"

func init() {
	generators = append(generators, generator{base: "gemm_avx2_amd64", tags: "amd64 && !purego", emit: emitGemm256})
}

// tile256 is the tokens in a group of activations for AVX2: eight registers hold the codes of a block and eight rows, and
// four are left for running sums.
const tile256 = 4

// Without VNNI, unsigned codes times signed activations go through sums of two products in 16 bits. They saturate at
// 32767: codes up to 31 leave room to add four such sums before they widen, codes up to 63 two. Codes of 8 bits become
// signed, and the activation takes the sign: |code| ≤ 128 times 127 twice is 32512.
func emitGemm256(f *File) {
	for w := 1; w <= tile256; w++ {
		gemm256(f, "Block", w, dotSmall256)
		gemm256(f, "Bytes", w, dotBytes256)
		gemm256(f, "Min", w, dotSmall256)
		gemm256(f, "Half", w, dotSmall256)
		gemm256(f, "Q2", w, dotSmall256)
		gemmFloat256(f, w)
	}
}

// begin256 begins a function and loads its parameters.
//
//	DI dst  DX bytes from token to token  R12 records  R13 activations  R11 count  R8 bytes to the start words
//	R9 0 to continue the sums in dst  AX rows
func begin256(f *File, class string, w int) *Func {
	name := fmt.Sprintf("dot256%sx%d", class, w)
	doc := name + " is dotGeneric for a group of " + fmt.Sprint(w) + "; rows says how many rows dst has, start counts bytes."
	fn := f.Func(name, gemmParams, doc)
	for _, p := range [][2]string{
		{"dst", "DI"}, {"stride", "DX"}, {"records", "R12"}, {"acts", "R13"}, {"count", "R11"}, {"start", "R8"}, {"first", "R9"}, {"rows", "AX"},
	} {
		fn.Load(p[0], p[1])
	}
	fn.Op("SHLQ", "$2", "DX")
	return fn
}

// rowMask256 makes Y15 the mask of the eight rows from 8·half on, of the AX rows that dst has.
func rowMask256(fn *Func, half int) {
	iota := make([]uint32, 8)
	for i := range iota {
		iota[i] = uint32(8*half + i)
	}
	fn.Op("VMOVD", "AX", "X15")
	fn.Op("VPBROADCASTD", "X15", "Y15")
	fn.Op("VPCMPGTD", fn.file.Data32(fmt.Sprintf("rows%d", half), iota...), "Y15", "Y15")
}

// gemm256 emits the product of a panel's expanded records with a group of w tokens, the first eight rows and then the
// others: half a panel's numbers are 32 bytes behind the other's everywhere.
func gemm256(f *File, class string, w int, body func(fn *Func, class string, a acts)) {
	fn := begin256(f, class, w)
	form := class
	if class == "Bytes" {
		form = "Block"
	}
	a := acts{"BX", w}
	for half := range 2 {
		loop, begun := fn.NewLabel("loop"), fn.NewLabel("begun")
		for t := range w {
			fn.Op("VPXOR", Y(t), Y(t), Y(t))
		}
		fn.Op("TESTQ", "R9", "R9")
		fn.Op("JNE", begun)
		rowMask256(fn, half)
		eachToken(fn, w, func(t int, at string) { fn.Op("VMASKMOVPS", at, "Y15", Y(t)) })
		fn.Label(begun)
		fn.Op("LEAQ", Mem("R12", 32*half), "SI")
		fn.Op("MOVQ", "R13", "BX")
		fn.Op("MOVQ", "R11", "CX")
		fn.Label(loop)
		body(fn, class, a)
		fn.Op("ADDQ", Imm(recordBytes(form)), "SI")
		fn.Op("ADDQ", Imm(a.bytes()), "BX")
		fn.Op("DECQ", "CX")
		fn.Op("JNE", loop)
		rowMask256(fn, half)
		eachToken(fn, w, func(t int, at string) { fn.Op("VMASKMOVPS", Y(t), "Y15", at) })
		fn.Op("ADDQ", "$32", "DI")
	}
	fn.Op("VZEROUPPER")
	fn.Ret()
}

// dotSmall256 emits a block of codes up to 63 (class Half) or 31. The codes of eight rows lie in Y4 to Y11.
func dotSmall256(fn *Func, class string, a acts) {
	for g := range groups {
		fn.Op("VMOVDQU", Mem("SI", g*vector), Y(4+g))
	}
	adds := 4
	if class == "Half" {
		adds = 2
	}
	scale := func(i int) string { return Mem("SI", codeBytes+i*vector) }
	for t := range a.w {
		f := Y(t)
		sum256(fn, a, t, 0, adds, "Y12", "Y14")
		sum256(fn, a, t, 4, adds, "Y13", "Y14")
		start := func(operand, sum string) {
			fn.Op("VPBROADCASTD", operand, "Y14")
			fn.Op("VPADDD", "Y14", sum, sum)
		}
		switch class {
		case "Block":
			fn.Op("VPADDD", "Y13", "Y12", "Y12")
			start(MemIdx(a.ptr, "R8", 1, 4*t), "Y12")
		case "Min":
			fn.Op("VPADDD", "Y13", "Y12", "Y12")
			fn.Op("VBROADCASTSS", a.word(wordSum, t), "Y14")
			fn.Op("VFMADD231PS", scale(1), "Y14", f)
		case "Half":
			start(a.word(wordLow32, t), "Y12")
			start(a.word(wordHigh32, t), "Y13")
		case "Q2":
			for half, array := range []int{wordLow32, wordHigh32} {
				fn.Op("VPBROADCASTD", a.word(array, t), "Y14")
				fn.Op("VCVTDQ2PS", "Y14", "Y14")
				fn.Op("VBROADCASTSS", a.word(wordScale, t), "Y15")
				fn.Op("VMULPS", "Y15", "Y14", "Y14")
				fn.Op("VFMADD231PS", scale(2+half), "Y14", f)
			}
		}
		fn.Op("VBROADCASTSS", a.word(wordScale, t), "Y14")
		fn.Op("VCVTDQ2PS", "Y12", "Y12")
		fn.Op("VMULPS", scale(0), "Y12", "Y12")
		if class == "Half" || class == "Q2" {
			fn.Op("VCVTDQ2PS", "Y13", "Y13")
			fn.Op("VFMADD231PS", scale(1), "Y13", "Y12")
		}
		fn.Op("VFMADD231PS", "Y14", "Y12", f)
	}
}

// sum256 makes sum the integer products of four groups from g on with token t, adding up adds of them in 16 bits.
func sum256(fn *Func, a acts, t, g, adds int, sum, temp string) {
	const wide = "Y15"
	for i := range 4 {
		part := sum
		if i >= adds {
			part = wide
		}
		dst := temp
		if i%adds == 0 {
			dst = part
		}
		fn.Op("VPBROADCASTD", a.codes(t, g+i), dst)
		fn.Op("VPMADDUBSW", dst, Y(4+g+i), dst)
		if i%adds != 0 {
			fn.Op("VPADDW", dst, part, part)
		}
	}
	ones := ones256(fn)
	fn.Op("VPMADDWD", ones, sum, sum)
	if adds == 2 {
		fn.Op("VPMADDWD", ones, wide, wide)
		fn.Op("VPADDD", wide, sum, sum)
	}
}

// ones256 is the operand of sixteen ones of 16 bits.
func ones256(fn *Func) string {
	const one = 0x00010001
	return fn.file.Data32("ones", one, one, one, one, one, one, one, one)
}

// dotBytes256 emits a block of codes of 8 bits: integer sums in Y4 and on, signed codes in Y8, their magnitudes in Y9.
func dotBytes256(fn *Func, _ string, a acts) {
	const flip = 0x80808080
	for g := range groups {
		fn.Op("VMOVDQU", Mem("SI", g*vector), "Y8")
		fn.Op("VPXOR", fn.file.Data32("flip", flip, flip, flip, flip, flip, flip, flip, flip), "Y8", "Y8")
		fn.Op("VPABSB", "Y8", "Y9")
		for t := range a.w {
			sum, product := Y(4+t), Y(10+t)
			if g == 0 {
				product = sum
			}
			fn.Op("VPBROADCASTD", a.codes(t, g), product)
			fn.Op("VPSIGNB", "Y8", product, product)
			fn.Op("VPMADDUBSW", product, "Y9", product)
			fn.Op("VPMADDWD", ones256(fn), product, product)
			if g != 0 {
				fn.Op("VPADDD", product, sum, sum)
			}
		}
	}
	for t := range a.w {
		fn.Op("VBROADCASTSS", a.word(wordScale, t), "Y14")
		fn.Op("VCVTDQ2PS", Y(4+t), Y(4+t))
		fn.Op("VMULPS", Mem("SI", codeBytes), Y(4+t), Y(4+t))
		fn.Op("VFMADD231PS", "Y14", Y(4+t), Y(t))
	}
}

// gemmFloat256 emits the product of float records: all rows at once, the first eight in Y0 and on, the others in Y4 and on.
func gemmFloat256(f *File, w int) {
	fn := begin256(f, "Float", w)
	for t := range w {
		fn.Op("VPXOR", Y(t), Y(t), Y(t))
		fn.Op("VPXOR", Y(4+t), Y(4+t), Y(4+t))
	}
	loop, begun := fn.NewLabel("loop"), fn.NewLabel("begun")
	fn.Op("TESTQ", "R9", "R9")
	fn.Op("JNE", begun)
	halves := func(visit func(t, sum int, at string)) {
		for half := range 2 {
			rowMask256(fn, half)
			eachToken(fn, w, func(t int, at string) { visit(t, 4*half+t, at) })
			fn.Op("ADDQ", "$32", "DI")
		}
		fn.Op("SUBQ", "$64", "DI")
	}
	halves(func(_, sum int, at string) { fn.Op("VMASKMOVPS", at, "Y15", Y(sum)) })
	fn.Label(begun)
	fn.Label(loop)
	for i := range floatUnit {
		fn.Op("VMOVUPS", Mem("R12", i*vector), "Y8")
		fn.Op("VMOVUPS", Mem("R12", i*vector+32), "Y9")
		for t := range w {
			x := Y(10 + t)
			fn.Op("VBROADCASTSS", Mem("R13", t*4*floatUnit+4*i), x)
			fn.Op("VFMADD231PS", x, "Y8", Y(t))
			fn.Op("VFMADD231PS", x, "Y9", Y(4+t))
		}
	}
	fn.Op("ADDQ", Imm(floatUnit*vector), "R12")
	fn.Op("ADDQ", Imm(w*4*floatUnit), "R13")
	fn.Op("DECQ", "R11")
	fn.Op("JNE", loop)
	halves(func(_, sum int, at string) { fn.Op("VMASKMOVPS", Y(sum), "Y15", at) })
	fn.Op("VZEROUPPER")
	fn.Ret()
}
