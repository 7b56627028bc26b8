package main

import (
	"fmt"
	"math"
)

// The weights with which two fits are compared, see quantizeBlock.
const (
	sqrt126 = 11.224972160321824
	sqrt127 = 11.269427669584644
)

func init() {
	generators = append(generators, generator{base: "gemm_quantize_amd64", tags: "amd64 && !purego", emit: func(f *File) { emitQuantize(f); emitPrefetch(f) }})
}

// emitQuantize emits the quantization of one token's activations with AVX2; it serves AVX-512 as well, since most of its
// time are the horizontal parts.
//
//	DI codes of the token  R8 bytes of a record  SI activations  CX blocks left  R10 its words  R9 bytes of a word array
func emitQuantize(f *File) {
	const name = "quantizeAVX2"
	fn := f.Func(name, "buf *byte, width int, slot int, x *float32, count int", name+" is quantizeGeneric for count whole blocks.")
	fn.Load("buf", "DI")
	fn.Load("width", "R8")
	fn.Load("slot", "AX")
	fn.Load("x", "SI")
	fn.Load("count", "CX")
	fn.Op("LEAQ", "(R8*4)", "R9")
	fn.Op("MOVQ", "R8", "R10")
	fn.Op("SHLQ", "$5", "R10")
	fn.Op("LEAQ", MemIdx("R10", "AX", 4, 0), "R10")
	fn.Op("ADDQ", "DI", "R10")
	fn.Op("SHLQ", "$5", "AX")
	fn.Op("ADDQ", "AX", "DI")
	fn.Op("IMULQ", Imm(actBytes), "R8")
	broadcast := func(word uint32) string {
		return f.Data32(fmt.Sprintf("all%08x", word), word, word, word, word, word, word, word, word)
	}
	float := func(name string, xs ...float32) string {
		var words []uint32
		for _, x := range xs {
			words = append(words, math.Float32bits(x))
		}
		return f.Data32(name, words...)
	}
	fn.Op("VMOVDQU", f.Data32("unpack", 0, 4, 1, 5, 2, 6, 3, 7), "Y15")

	loop, special, next := fn.NewLabel("loop"), fn.NewLabel("special"), fn.NewLabel("next")
	fn.Label(loop)
	for i := range 4 {
		fn.Op("VMOVUPS", Mem("SI", 32*i), Y(i))
		fn.Op("VPAND", broadcast(0x7fffffff), Y(i), Y(4+i))
	}
	fn.Op("VPMAXUD", "Y5", "Y4", "Y4")
	fn.Op("VPMAXUD", "Y7", "Y6", "Y6")
	fn.Op("VPMAXUD", "Y6", "Y4", "Y4")
	fn.Op("VEXTRACTI128", "$1", "Y4", "X5")
	fn.Op("VPMAXUD", "X5", "X4", "X4")
	for _, order := range []string{"$0x4e", "$0xb1"} {
		fn.Op("VPSHUFD", order, "X4", "X5")
		fn.Op("VPMAXUD", "X5", "X4", "X4")
	}
	// Every lane of X4 is max|x|. Only magnitudes from 2^-100 up to the greatest number are scaled.
	const least, most = 0x0d800000, 0x7f7fffff
	fn.Op("VMOVD", "X4", "AX")
	fn.Op("LEAL", Mem("AX", -least), "BX")
	fn.Op("CMPL", "BX", fmt.Sprintf("$%#x", most-least))
	fn.Op("JHI", special)
	fn.Op("VMOVUPS", float("peaks", 127, 126, 127, 126), "X5")
	fn.Op("VDIVPS", "X4", "X5", "X5") // 127/max, 126/max
	fn.Op("VMOVSHDUP", "X5", "X6")
	fn.Op("VBROADCASTSS", "X5", "Y5")
	fn.Op("VBROADCASTSS", "X6", "Y6")
	candidate := func(inverse, codes, yq, qq string) {
		words := []string{codes, qq}
		for pair := range 2 {
			for half, code := range []string{"Y13", "Y12"} {
				fn.Op("VMULPS", inverse, Y(2*pair+half), "Y14")
				fn.Op("VCVTPS2DQ", "Y14", code)
				fn.Op("VCVTDQ2PS", code, "Y11")
				if pair+half == 0 {
					fn.Op("VMULPS", "Y11", "Y14", yq)
				} else {
					fn.Op("VMULPS", "Y11", "Y14", "Y14")
					fn.Op("VADDPS", "Y14", yq, yq)
				}
			}
			fn.Op("VPACKSSDW", "Y12", "Y13", words[pair])
		}
		fn.Op("VPMADDWD", codes, codes, "Y13")
		fn.Op("VPMADDWD", qq, qq, "Y12")
		fn.Op("VPACKSSWB", qq, codes, codes)
		fn.Op("VPADDD", "Y12", "Y13", "Y13")
		fn.Op("VCVTDQ2PS", "Y13", qq)
	}
	candidate("Y5", "Y7", "Y8", "Y9")
	candidate("Y6", "Y10", "Y5", "Y6")
	// X2 = Σyq, Σqq of the first candidate, then of the second.
	fn.Op("VHADDPS", "Y9", "Y8", "Y8")
	fn.Op("VHADDPS", "Y6", "Y5", "Y5")
	fn.Op("VHADDPS", "Y5", "Y8", "Y8")
	fn.Op("VEXTRACTF128", "$1", "Y8", "X9")
	fn.Op("VADDPS", "X9", "X8", "X2")
	// X3 = √126·yq, 127·qq, √127·yq, 126·qq; lane 0 of X8 against lane 2 says which is the closer fit.
	fn.Op("VMULPS", float("fits", sqrt126, 127, sqrt127, 126), "X2", "X3")
	fn.Op("VPERMILPS", "$0x5f", "X3", "X8")
	fn.Op("VMULPS", "X3", "X3", "X9")
	fn.Op("VMULPS", "X9", "X8", "X8")
	fn.Op("VPERMILPS", "$0xaa", "X8", "X9")
	fn.Op("VCMPPS", "$1", "X9", "X8", "X8") // the second fits better
	fn.Op("VBROADCASTSS", "X8", "Y8")
	fn.Op("VBLENDVPS", "Y8", "Y10", "Y7", "Y0")
	fn.Op("VPERMILPS", "$0xf5", "X3", "X3")
	fn.Op("VDIVPS", "X3", "X2", "X3") // yq/(peak·qq) in lanes 0 and 2
	fn.Op("VMULPS", "X4", "X3", "X3")
	fn.Op("VPERMILPS", "$0xaa", "X3", "X9")
	fn.Op("VBLENDVPS", "X8", "X9", "X3", "X4") // d
	fn.Op("VPERMD", "Y0", "Y15", "Y0")
	fn.Op("VMOVDQU", "Y0", Mem("DI", 0))
	// The sums of the halves, each 16 × 128 too large.
	fn.Op("VPXOR", "X11", "X11", "X11")
	fn.Op("VPXOR", broadcast(0x80808080), "Y0", "Y0")
	fn.Op("VPSADBW", "Y11", "Y0", "Y0")
	fn.Op("VPSHUFD", "$0x4e", "Y0", "Y1")
	fn.Op("VPADDD", "Y1", "Y0", "Y0")
	fn.Op("VEXTRACTI128", "$1", "Y0", "X1")
	fn.Op("VMOVD", "X0", "AX")
	fn.Op("VMOVD", "X1", "BX")
	fn.Op("SUBL", "$2048", "AX")
	fn.Op("SUBL", "$2048", "BX")
	fn.Op("LEAL", MemIdx("AX", "BX", 1, 0), "DX")
	fn.Op("VCVTSI2SSL", "DX", "X11", "X1")
	fn.Op("VMULSS", "X4", "X1", "X1")

	fn.Op("MOVQ", "R10", "R11")
	store := func(op, reg string) {
		fn.Op(op, reg, Mem("R11", 0))
		fn.Op("ADDQ", "R9", "R11")
	}
	store("VMOVSS", "X4")
	store("VMOVSS", "X1")
	for _, reg := range []string{"DX", "AX", "BX"} {
		fn.Op("NEGL", reg)
	}
	for _, shift := range []int{3, 1, 3} { // −8Σ, −16Σ, −128Σ
		fn.Op("SHLL", Imm(shift), "DX")
		store("MOVL", "DX")
	}
	for _, reg := range []string{"AX", "BX"} { // −32Σ of the halves
		fn.Op("SHLL", "$5", reg)
		store("MOVL", reg)
	}
	fn.Label(next)
	fn.Op("ADDQ", "$128", "SI")
	fn.Op("ADDQ", "R8", "DI")
	fn.Op("ADDQ", "R8", "R10")
	fn.Op("DECQ", "CX")
	fn.Op("JNE", loop)
	fn.Op("VZEROUPPER")
	fn.Ret()

	fn.Label(special)
	fn.Op("XORL", "DX", "DX")
	fn.Op("MOVL", "$0x7fc00000", "BX") // NaN
	fn.Op("CMPL", "AX", fmt.Sprintf("$%#x", least))
	fn.Op("CMOVLCS", "DX", "BX")
	fn.Op("VPXOR", "X11", "X11", "X11")
	fn.Op("VMOVDQU", "Y11", Mem("DI", 0))
	fn.Op("MOVQ", "R10", "R11")
	store("MOVL", "BX")
	store("MOVL", "BX")
	for range recordWords - 2 {
		store("MOVL", "DX")
	}
	fn.Op("JMP", next)
}

// emitPrefetch emits a request for memory: whole lines, into the second-level cache.
func emitPrefetch(f *File) {
	fn := f.Func("prefetchAMD64", "p *byte, lines int", "prefetchAMD64 asks for lines of 64 bytes from p on.")
	fn.Load("p", "SI")
	fn.Load("lines", "CX")
	loop, done := fn.NewLabel("loop"), fn.NewLabel("done")
	fn.Label(loop)
	fn.Op("SUBQ", "$1", "CX")
	fn.Op("JLT", done)
	fn.Op("PREFETCHT1", Mem("SI", 0))
	fn.Op("ADDQ", "$64", "SI")
	fn.Op("JMP", loop)
	fn.Label(done)
	fn.Ret()
}
