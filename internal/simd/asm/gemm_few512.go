package main

import "fmt"

func init() {
	generators = append(generators, generator{base: "gemm_few_avx512_amd64", tags: "amd64 && !purego", emit: emitFew512})
}

// few512 is the most tokens that have kernels from the packed form: products that wait for memory.
const few512 = 8

const fewParams = "dst *float32, stride int, panels *byte, acts *byte, count int, units int, rows int"

func emitFew512(f *File) {
	for i := range weightForms {
		for w := 1; w <= few512; w++ {
			fewCodes512(f, &weightForms[i], w)
		}
	}
}

// fewCodes512 emits the product of count panels, that lie one behind the other, with a group of w tokens. Panels are
// read in the order of memory; blocks do not wait for each other, so several are in flight.
//
//	DI dst  DX bytes from token to token  SI panel  R9 panels left  R11 units of a panel  CX units left
//	BX activations  R13 their start  K1 rows, and the registers of walkBlocks
func fewCodes512(f *File, w *weightForm, tokens int) {
	name := fmt.Sprintf("few512%sx%d", w.name, tokens)
	fn := f.Func(name, fewParams, fmt.Sprintf("%s multiplies count panels of %s with a group of %d; rows says how many rows dst has.", name, w.name, tokens))
	for _, p := range [][2]string{{"dst", "DI"}, {"stride", "DX"}, {"panels", "SI"}, {"acts", "R13"}, {"count", "R9"}, {"units", "R11"}} {
		fn.Load(p[0], p[1])
	}
	rowMask512(fn)
	fn.Op("SHLQ", "$2", "DX")
	u := unpacker{fn: fn, w: w, wide: true}
	u.constants()
	panel, unit := fn.NewLabel("panel"), fn.NewLabel("unit")
	fn.Label(panel)
	for t := range tokens {
		fn.Op("VPXORQ", Z(t), Z(t), Z(t))
	}
	fn.Op("MOVQ", "R11", "CX")
	fn.Op("MOVQ", "R13", "BX")
	fn.Label(unit)
	at, a := panelAt{"SI"}, acts{"BX", tokens}
	block := func(b int, small, codes panelAt, disp int) {
		for line := 0; line < w.blockBytes(); line += 64 {
			fn.Op("PREFETCHT0", codes.mem(disp+line+prefetchAhead))
		}
		fewBlock512(u, at, small, codes, b, disp, a)
		fn.Op("ADDQ", Imm(a.bytes()), "BX")
	}
	for line := 0; line < w.header; line += 64 {
		fn.Op("PREFETCHT0", at.mem(line+prefetchAhead))
	}
	if w.blocks == 2 {
		for b := range 2 {
			block(b, at, at, w.header+b*w.blockBytes())
		}
	} else {
		u.unitScales(at)
		walkBlocks(fn, w, func(small, codes panelAt) { block(0, small, codes, 0) })
	}
	fn.Op("ADDQ", Imm(w.unitBytes()), "SI")
	fn.Op("DECQ", "CX")
	fn.Op("JNE", unit)
	fn.Op("ADDQ", "$63", "SI") // a panel ends at a multiple of 64
	fn.Op("ANDQ", "$-64", "SI")
	eachToken(fn, tokens, func(t int, at string) { fn.Op("VMOVUPS", Z(t), "K1", at) })
	fn.Op("ADDQ", Imm(vector), "DI")
	fn.Op("DECQ", "R9")
	fn.Op("JNE", panel)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

// fewBlock512 emits one block for all tokens: running sums in Z0 and on, integer sums behind them. Two integer sums a
// token leave registers for six tokens: more go in two turns, and the codes are unpacked twice.
func fewBlock512(u unpacker, at, small, codes panelAt, b, disp int, a acts) {
	turn := a.w
	if u.w.twoSums() && turn > 6 {
		turn = (turn + 1) / 2
	}
	for from := 0; from < a.w; from += turn {
		fewTokens512(u, at, small, codes, b, disp, a, from, min(from+turn, a.w))
	}
}

// twoSums says that the halves of a block have their own integer sums.
func (w *weightForm) twoSums() bool { return w.class == "Half" || w.class == "Q2" }

// fewTokens512 emits one block for the tokens [from, to).
func fewTokens512(u unpacker, at, small, codes panelAt, b, disp int, a acts, from, to int) {
	fn, w := u.fn, u.w
	low := func(t int) string { return Z(a.w + t - from) }
	high, temp := low, a.w+to-from
	if w.twoSums() {
		high = func(t int) string { return Z(a.w + to - from + t - from) }
		temp += to - from
	}
	for t := from; t < to; t++ {
		switch {
		case w.class == "Half":
			fn.Op("VPBROADCASTD", a.word(wordLow32, t), low(t))
			fn.Op("VPBROADCASTD", a.word(wordHigh32, t), high(t))
		case w.start >= 0:
			fn.Op("VPBROADCASTD", a.word(w.start, t), low(t))
		default:
			fn.Op("VPXORQ", low(t), low(t), low(t))
			if w.twoSums() {
				fn.Op("VPXORQ", high(t), high(t), high(t))
			}
		}
	}
	u.codes(codes, disp, temp, func(g int, codes string) {
		sum := low
		if g >= groups/2 {
			sum = high
		}
		for t := from; t < to; t++ {
			fn.Op("VPDPBUSD.BCST", a.codes(t, g), codes, sum(t))
		}
	})
	scale, spare := temp, Z(temp+4)
	u.blockScales(at, small, b, scale)
	for t := from; t < to; t++ {
		f, i := Z(t), low(t)
		switch w.class {
		case "Min":
			fn.Op("VFMADD231PS.BCST", a.word(wordSum, t), Z(scale+1), f)
		case "Q2":
			for half, array := range []int{wordLow32, wordHigh32} {
				fn.Op("VCVTDQ2PS.BCST", a.word(array, t), spare)
				fn.Op("VMULPS.BCST", a.word(wordScale, t), spare, spare)
				fn.Op("VFMADD231PS", spare, Z(scale+2+half), f)
			}
		}
		fn.Op("VCVTDQ2PS", i, i)
		fn.Op("VMULPS", Z(scale), i, i)
		if w.twoSums() {
			fn.Op("VCVTDQ2PS", high(t), high(t))
			fn.Op("VFMADD231PS", Z(scale+1), high(t), i)
		}
		fn.Op("VFMADD231PS.BCST", a.word(wordScale, t), i, f)
	}
}
