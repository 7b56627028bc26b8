package main

import "fmt"

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
	constant := func(word uint32, dst string) {
		fn.Op("VPBROADCASTD", f.Data32(fmt.Sprintf("word%08x", word), word), dst)
	}
	constant(0x7fffffff, "Y15")
	constant(0x80808080, "Y14")
	fn.Op("VMOVDQU", f.Data32("unpack", 0, 4, 1, 5, 2, 6, 3, 7), "Y13")
	fn.Op("VMOVSS", f.Data32("float42fe0000", 0x42fe0000), "X12") // 127
	fn.Op("VPXOR", "Y11", "Y11", "Y11")

	loop, special, next := fn.NewLabel("loop"), fn.NewLabel("special"), fn.NewLabel("next")
	fn.Label(loop)
	for i := range 4 {
		fn.Op("VMOVUPS", Mem("SI", 32*i), Y(i))
		fn.Op("VPAND", "Y15", Y(i), Y(4+i))
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
	// X4 is max|x|. Only magnitudes from 2^-100 up to the greatest number are scaled.
	const least, most = 0x0d800000, 0x7f7fffff
	fn.Op("VMOVD", "X4", "AX")
	fn.Op("LEAL", Mem("AX", -least), "BX")
	fn.Op("CMPL", "BX", fmt.Sprintf("$%#x", most-least))
	fn.Op("JHI", special)
	fn.Op("VDIVSS", "X4", "X12", "X5") // 127/max
	fn.Op("VDIVSS", "X12", "X4", "X4") // d
	fn.Op("VBROADCASTSS", "X5", "Y5")
	for i := range 4 {
		fn.Op("VMULPS", "Y5", Y(i), Y(i))
		fn.Op("VCVTPS2DQ", Y(i), Y(i))
	}
	fn.Op("VPACKSSDW", "Y1", "Y0", "Y0")
	fn.Op("VPACKSSDW", "Y3", "Y2", "Y2")
	fn.Op("VPACKSSWB", "Y2", "Y0", "Y0")
	fn.Op("VPERMD", "Y0", "Y13", "Y0")
	fn.Op("VMOVDQU", "Y0", Mem("DI", 0))
	// The sums of the halves, each 16 × 128 too large.
	fn.Op("VPXOR", "Y14", "Y0", "Y0")
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
