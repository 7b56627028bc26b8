package main

import (
	"fmt"
	"math"
)

func init() {
	generators = append(generators, generator{base: "gemm_quantize_arm64", tags: "arm64 && !purego", emit: func(f *File) { emitQuantizeNEON(f); emitPrefetchNEON(f) }})
}

// emitQuantizeNEON emits the quantization of one token's activations.
//
//	R0 codes of the token  R1 bytes of a record  R2 activations  R3 blocks left  R4 its words  R5 bytes of a word array
//	v0 to v7 a block  v16 to v19 constants
func emitQuantizeNEON(f *File) {
	const name = "quantizeNEON"
	v := neon{f.Func(name, "buf *byte, width int, slot int, x *float32, count int", name+" is quantizeGeneric for count whole blocks.")}
	v.Load("buf", "R0")
	v.Load("width", "R1")
	v.Load("slot", "R6")
	v.Load("x", "R2")
	v.Load("count", "R3")
	v.Op("LSL", "$2", "R1", "R5")
	v.Op("ADD", "R1<<5", "R0", "R4")
	v.Op("ADD", "R6<<2", "R4")
	v.Op("ADD", "R6<<5", "R0")
	v.Op("MOVD", Imm(actBytes), "R6")
	v.Op("MUL", "R6", "R1")
	for i, x := range []float32{127, 126, sqrt126, sqrt127} {
		v.constant(16+i, math.Float32bits(x))
	}
	v.constant(20, 0x7fffffff)

	loop, special, chosen, next := v.NewLabel("loop"), v.NewLabel("special"), v.NewLabel("chosen"), v.NewLabel("next")
	v.Label(loop)
	for i := range 8 {
		v.ldr("q", i, "R2", 16*i)
		v.v("and 16b", 24+i%2, i, 20)
		switch {
		case i == 0:
			v.mov(23, 24)
		default:
			v.v("umax 4s", 23, 23, 24+i%2)
		}
	}
	v.v("umaxv s 4s", 23, 23)
	// v23 is max|x|. Only magnitudes from 2^-100 up to the greatest number are scaled.
	const least, most = 0x0d800000, 0x7f7fffff
	v.Op("FMOVS", "F23", "R6")
	v.Op("MOVD", fmt.Sprintf("$%#x", least), "R7")
	v.Op("SUBW", "R7", "R6", "R8")
	v.Op("MOVD", fmt.Sprintf("$%#x", most-least), "R9")
	v.Op("CMPW", "R9", "R8")
	v.Op("BHI", special)
	// candidate leaves the codes in two registers, Σy·q and Σq·q in the first lanes of yq and qq.
	candidate := func(peak, codes, yq, qq int) {
		const inverse, y, low, high = 26, 27, 28, 29
		v.Op("FDIVS", "F23", fmt.Sprintf("F%d", peak), "F26")
		v.element("dup", inverse, inverse, 0)
		for half := range 2 {
			for i := range 4 {
				code := []int{low, high}[i/2]
				if i%2 == 1 {
					code = 30
				}
				v.v("fmul 4s", y, 4*half+i, inverse)
				v.v("fcvtns 4s", code, y)
				v.v("scvtf 4s", 31, code)
				sum := yq + i%2
				if half+i/2 == 0 {
					v.v("fmul 4s", sum, y, 31)
				} else {
					v.v("fmul 4s", y, y, 31)
					v.v("fadd 4s", sum, sum, y)
				}
				if i%2 == 1 {
					narrow := []int{low, high}[i/2]
					v.v("xtn 4h 4s", narrow, narrow)
					v.v("xtn2 8h 4s", narrow, code)
				}
			}
			v.v("xtn 8b 8h", codes+half, low)
			v.v("xtn2 16b 8h", codes+half, high)
		}
		v.v("faddp 4s", yq, yq, yq+1)
		v.v("faddp 4s", yq, yq, yq)
		v.v("faddp 4s", yq, yq, yq)
		v.clear(qq)
		for half := range 2 {
			v.v("sdot 4s 16b", qq, codes+half, codes+half)
		}
		v.v("addv s 4s", qq, qq)
		v.v("scvtf 4s", qq, qq)
	}
	const first, second = 8, 10 // codes
	candidate(16, first, 12, 21)
	candidate(17, second, 14, 22)
	// v24 = (√126·yq)²·126·qq′ of the first, v25 = (√127·yq′)²·127·qq of the second, by which the closer is chosen.
	product := func(d, root, yq, peak, qq int) {
		v.v("fmul 4s", d, root, yq)
		v.v("fmul 4s", d, d, d)
		v.v("fmul 4s", 26, peak, qq)
		v.v("fmul 4s", d, d, 26)
	}
	product(24, 18, 12, 17, 22)
	product(25, 19, 14, 16, 21)
	v.v("fmul 4s", 26, 16, 21)
	v.Op("FCMPS", "F25", "F24")
	v.Op("BGE", chosen)
	v.mov(first, second)
	v.mov(first+1, second+1)
	v.mov(12, 14)
	v.v("fmul 4s", 26, 17, 22)
	v.Label(chosen)
	v.v("fdiv 4s", 12, 12, 26)
	v.v("fmul 4s", 12, 12, 23) // d
	for half := range 2 {
		v.str("q", first+half, "R0", 16*half)
		v.v("saddlv h 16b", 13, first+half)
		v.signedHalf(fmt.Sprintf("R%d", 6+half), 13)
	}
	v.Op("ADDW", "R6", "R7", "R8")
	v.Op("SCVTFWS", "R8", "F13")
	v.v("fmul 4s", 13, 13, 12)
	v.Op("MOVD", "R4", "R10")
	next4 := func() { v.Op("ADD", "R5", "R10") }
	for _, sum := range []int{12, 13} {
		v.str("s", sum, "R10", 0)
		next4()
	}
	for _, reg := range []string{"R8", "R6", "R7"} {
		v.Op("NEGW", reg, reg)
	}
	store := func(reg string, shift int) {
		v.Op("LSLW", Imm(shift), reg, "R9")
		v.Op("MOVW", "R9", Mem("R10", 0))
		next4()
	}
	for _, shift := range []int{3, 4, 7} { // −8Σ, −16Σ, −128Σ
		store("R8", shift)
	}
	store("R6", 5) // −32Σ of the halves
	store("R7", 5)
	v.Label(next)
	v.add(128, "R2")
	v.Op("ADD", "R1", "R0")
	v.Op("ADD", "R1", "R4")
	v.countdown(1, "R3", loop)
	v.Ret()

	v.Label(special)
	v.clear(12)
	v.str("q", 12, "R0", 0)
	v.str("q", 12, "R0", 16)
	v.Op("CMPW", "R7", "R6")
	small := v.NewLabel("small")
	v.Op("BLO", small)
	v.constant(12, 0x7fc00000) // NaN
	v.Label(small)
	v.clear(13)
	v.Op("MOVD", "R4", "R10")
	for word := range recordWords {
		v.str("s", 12+min(word/2, 1), "R10", 0)
		next4()
	}
	v.Op("JMP", next)
}

// emitPrefetchNEON emits a request for memory: whole lines, into the second-level cache.
func emitPrefetchNEON(f *File) {
	v := neon{f.Func("prefetchNEON", "p *byte, lines int", "prefetchNEON asks for lines of 64 bytes from p on.")}
	v.Load("p", "R0")
	v.Load("lines", "R1")
	loop, done := v.NewLabel("loop"), v.NewLabel("done")
	v.Label(loop)
	v.Op("SUBS", "$1", "R1")
	v.Op("BLT", done)
	v.prefetch(2, "R0", 0)
	v.add(64, "R0")
	v.Op("JMP", loop)
	v.Label(done)
	v.Ret()
}
