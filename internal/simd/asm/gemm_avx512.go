package main

import "fmt"

func init() {
	generators = append(generators, generator{base: "gemm_avx512_amd64", tags: "amd64 && !purego", emit: emitGemm512})
}

// The layouts that package simd describes in acts.go and pack_expand.go.
const (
	panelRows   = 16
	blockInputs = 32
	groups      = 8 // of 4 inputs, in a block
	codeBytes   = panelRows * blockInputs
	vector      = 4 * panelRows // bytes of one number of each row
	floatUnit   = 16
)

// The word arrays of a quantized activation record.
const (
	wordScale = iota
	wordSum
	wordMinus8
	wordMinus16
	wordMinus128
	wordLow32
	wordHigh32
	recordWords
	actBytes = blockInputs + 4*recordWords
)

// tile512 is the tokens in a group of activations: with as many integer sums and running sums, 24 of the 32 registers.
const tile512 = 12

// acts names the operands of a record of w tokens at pointer ptr.
type acts struct {
	ptr string
	w   int
}

// codes is the operand of the 4 codes of token t that group g of a block meets.
func (a acts) codes(t, g int) string { return Mem(a.ptr, t*blockInputs+4*g) }

// word is the operand of token t in a word array.
func (a acts) word(array, t int) string { return Mem(a.ptr, a.w*(blockInputs+4*array)+4*t) }

// bytes is the size of the record.
func (a acts) bytes() int { return a.w * actBytes }

const gemmParams = "dst *float32, stride int, records *byte, acts *byte, count int, start int, rows int, first int"

func emitGemm512(f *File) {
	for w := 1; w <= tile512; w++ {
		gemm512(f, "Block", w, codeBytes+vector, dotBlock512)
		gemm512(f, "Min", w, codeBytes+2*vector, dotMin512)
		gemm512(f, "Half", w, codeBytes+2*vector, dotHalf512)
		gemm512(f, "Q2", w, codeBytes+4*vector, dotHalf512)
		gemm512(f, "Float", w, floatUnit*vector, dotFloat512)
	}
}

// gemm512 emits the product of a panel's expanded records with a group of w tokens: the running sums stay in Z0 and on.
//
//	DI dst  DX bytes from token to token  SI records  BX activations  CX count  R8 bytes to the start words  K1 rows
func gemm512(f *File, class string, w, recordBytes int, body func(fn *Func, class string, a acts)) {
	fn := f.Func(fmt.Sprintf("dot512%sx%d", class, w), gemmParams,
		fmt.Sprintf("dot512%sx%d is dotGeneric for a group of %d and class%s; rows says how many rows dst has, start counts bytes.", class, w, w, class))
	for _, p := range [][2]string{{"dst", "DI"}, {"stride", "DX"}, {"records", "SI"}, {"acts", "BX"}, {"count", "CX"}, {"start", "R8"}, {"first", "R9"}} {
		fn.Load(p[0], p[1])
	}
	rowMask512(fn)
	fn.Op("SHLQ", "$2", "DX")
	loop, begun := fn.NewLabel("loop"), fn.NewLabel("begun")
	for t := range w {
		fn.Op("VPXORQ", Z(t), Z(t), Z(t))
	}
	fn.Op("TESTQ", "R9", "R9")
	fn.Op("JNE", begun)
	eachToken(fn, w, func(t int, at string) { fn.Op("VMOVUPS.Z", at, "K1", Z(t)) })
	fn.Label(begun)
	a := acts{"BX", w}
	size := a.bytes()
	if class == "Float" {
		size = w * 4 * floatUnit
	}
	fn.Label(loop)
	body(fn, class, a)
	fn.Op("ADDQ", Imm(recordBytes), "SI")
	fn.Op("ADDQ", Imm(size), "BX")
	fn.Op("DECQ", "CX")
	fn.Op("JNE", loop)
	eachToken(fn, w, func(t int, at string) { fn.Op("VMOVUPS", Z(t), "K1", at) })
	fn.Op("VZEROUPPER")
	fn.Ret()
}

// rowMask512 makes K1 the mask of the rows that dst has.
func rowMask512(fn *Func) {
	fn.Load("rows", "AX")
	fn.Op("MOVL", "$1", "R10")
	fn.Op("SHLXL", "AX", "R10", "R10")
	fn.Op("DECL", "R10")
	fn.Op("KMOVW", "R10", "K1")
}

// eachToken visits the output vectors; R10 walks them.
func eachToken(fn *Func, w int, visit func(t int, at string)) {
	fn.Op("MOVQ", "DI", "R10")
	for t := range w {
		visit(t, Mem("R10", 0))
		if t < w-1 {
			fn.Op("ADDQ", "DX", "R10")
		}
	}
}

// dotBlock512: f += (start + codes·q)·scale·d.
func dotBlock512(fn *Func, _ string, a acts) {
	for t := range a.w {
		fn.Op("VPBROADCASTD", MemIdx(a.ptr, "R8", 1, 4*t), Z(12+t))
	}
	dotGroups512(fn, a, 12)
	scaleSums512(fn, a)
}

// dotMin512: f += min·Σ, then f += (codes·q)·scale·d.
func dotMin512(fn *Func, _ string, a acts) {
	for t := range a.w {
		fn.Op("VPXORQ", Z(12+t), Z(12+t), Z(12+t))
	}
	dotGroups512(fn, a, 12)
	fn.Op("VMOVUPS", Mem("SI", codeBytes+vector), "Z25")
	for t := range a.w {
		fn.Op("VFMADD231PS.BCST", a.word(wordSum, t), "Z25", Z(t))
	}
	scaleSums512(fn, a)
}

// dotGroups512 adds the integer products of the eight groups to the sums from register sum on.
func dotGroups512(fn *Func, a acts, sum int) {
	for g := range groups {
		codes := Z(24 + g%8)
		fn.Op("VMOVDQU64", Mem("SI", g*vector), codes)
		for t := range a.w {
			fn.Op("VPDPBUSD.BCST", a.codes(t, g), codes, Z(sum+t))
		}
	}
}

// scaleSums512 adds the integer sums Z12 and on, times the scales of the rows and of the tokens.
func scaleSums512(fn *Func, a acts) {
	fn.Op("VMOVUPS", Mem("SI", codeBytes), "Z24")
	for t := range a.w {
		fn.Op("VCVTDQ2PS", Z(12+t), Z(12+t))
	}
	for t := range a.w {
		fn.Op("VMULPS", "Z24", Z(12+t), Z(12+t))
	}
	for t := range a.w {
		fn.Op("VFMADD231PS.BCST", a.word(wordScale, t), Z(12+t), Z(t))
	}
}

// dotHalf512 keeps two integer sums a token, so it takes six tokens at a time. Halves start from −32Σ, or, for Q2, from
// zero with a minimum for each half.
func dotHalf512(fn *Func, class string, a acts) {
	const low, high = 12, 18
	for from := 0; from < a.w; from += 6 {
		n := min(6, a.w-from)
		for t := range n {
			if class == "Q2" {
				fn.Op("VPXORQ", Z(low+t), Z(low+t), Z(low+t))
				fn.Op("VPXORQ", Z(high+t), Z(high+t), Z(high+t))
			} else {
				fn.Op("VPBROADCASTD", a.word(wordLow32, from+t), Z(low+t))
				fn.Op("VPBROADCASTD", a.word(wordHigh32, from+t), Z(high+t))
			}
		}
		for g := range groups / 2 {
			fn.Op("VMOVDQU64", Mem("SI", g*vector), "Z24")
			fn.Op("VMOVDQU64", Mem("SI", (g+4)*vector), "Z25")
			for t := range n {
				fn.Op("VPDPBUSD.BCST", a.codes(from+t, g), "Z24", Z(low+t))
			}
			for t := range n {
				fn.Op("VPDPBUSD.BCST", a.codes(from+t, g+4), "Z25", Z(high+t))
			}
		}
		if class == "Q2" {
			minima512(fn, a, from, n)
		}
		fn.Op("VMOVUPS", Mem("SI", codeBytes), "Z24")
		fn.Op("VMOVUPS", Mem("SI", codeBytes+vector), "Z25")
		for t := range n {
			fn.Op("VCVTDQ2PS", Z(low+t), Z(low+t))
			fn.Op("VCVTDQ2PS", Z(high+t), Z(high+t))
			fn.Op("VMULPS", "Z24", Z(low+t), Z(low+t))
			fn.Op("VFMADD231PS", "Z25", Z(high+t), Z(low+t))
			fn.Op("VFMADD231PS.BCST", a.word(wordScale, from+t), Z(low+t), Z(from+t))
		}
	}
}

// minima512 adds the minima of both halves times the activations' half sums.
func minima512(fn *Func, a acts, from, n int) {
	for half, array := range []int{wordLow32, wordHigh32} {
		fn.Op("VMOVUPS", Mem("SI", codeBytes+(2+half)*vector), "Z24")
		for t := range n {
			fn.Op("VCVTDQ2PS.BCST", a.word(array, from+t), "Z25")
			fn.Op("VMULPS.BCST", a.word(wordScale, from+t), "Z25", "Z25")
			fn.Op("VFMADD231PS", "Z25", "Z24", Z(from+t))
		}
	}
}

// dotFloat512 multiplies 16 inputs; activations lie [w][16].
func dotFloat512(fn *Func, _ string, a acts) {
	for i := range floatUnit {
		weights := Z(24 + i%8)
		fn.Op("VMOVUPS", Mem("SI", i*vector), weights)
		for t := range a.w {
			fn.Op("VFMADD231PS.BCST", Mem(a.ptr, t*4*floatUnit+4*i), weights, Z(t))
		}
	}
}
