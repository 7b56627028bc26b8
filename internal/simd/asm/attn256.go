package main

func init() {
	generators = append(generators, generator{base: "attn_avx2_amd64", tags: "amd64 && !purego", emit: func(f *File) {
		for _, half := range []bool{false, true} {
			emitScores256(f, half)
			emitValues256(f, half)
			emitGatherTile256(f, half)
		}
		emitSoftmax256(f)
		emitAxpby256(f)
		emitQ8(f, false)
	}})
}

// attnMax256 is the most queries that one pass takes.
const attnMax256 = 6

func emitScores256(f *File, half bool) {
	name := "attnScores" + typeName(half) + "AVX2"
	fn := f.Func(name, "s *float32, k *byte, q *float32, koff *int, qoff *int, n int, hd int",
		name+" is the AVX2 form of attnScores"+typeName(half)+"AVX512, for n <= 6.")
	labels := fn.dispatch(attnMax256)
	for n := 1; n <= attnMax256; n++ {
		fn.Label(labels[n])
		tiles := 1 // tiles of a pass
		switch n {
		case 1:
			tiles = 4
		case 2, 3:
			tiles = 2
		}
		for first := 0; first < 4; first += tiles {
			fn.scoresPass256(half, n, first, tiles)
		}
		fn.Op("VZEROUPPER")
		fn.Ret()
	}
}

// scoresPass256 does n queries over the tiles from first on. Up to 3 queries stay in registers while the keys pass; with
// more queries the keys stay.
func (f *Func) scoresPass256(half bool, n, first, tiles int) {
	const unroll = 4
	f.tilePointers(first, tiles)
	f.queryPointers(n)
	f.Load("hd", "R13")
	f.nextKeys(half)
	acc := func(i, t int) string { return Y(2*tiles*i + t) }
	for i := range 2 * tiles * n {
		f.Op("VXORPS", Y(i), Y(i), Y(i))
	}
	used, step := 2*tiles*n, 16*elem(half)
	loop := f.NewLabel("loop")
	f.Label(loop)
	for u := range unroll {
		key := func(t int) string { return Mem(tileRegs[t/2], u*step+t%2*step/2) }
		if n <= 3 {
			for i := range n {
				f.Op("VBROADCASTSS", Mem(qRegs[i], 4*u), Y(16-n+i))
			}
			for t := range 2 * tiles {
				k := Y(used + t%min(2, 16-n-used))
				f.loadWide(half, key(t), k)
				for i := range n {
					f.Op("VFMADD231PS", Y(16-n+i), k, acc(i, t))
				}
			}
			continue
		}
		f.loadWide(half, key(0), Y(used))
		f.loadWide(half, key(1), Y(used+1))
		for i := range n {
			b := Y(used + 2 + i%(16-used-2))
			f.Op("VBROADCASTSS", Mem(qRegs[i], 4*u), b)
			f.Op("VFMADD231PS", b, Y(used), acc(i, 0))
			f.Op("VFMADD231PS", b, Y(used+1), acc(i, 1))
		}
	}
	f.prefetchKeys(half, tiles*unroll*step)
	for _, r := range tileRegs[:tiles] {
		f.Op("ADDQ", Imm(unroll*step), r)
	}
	for i := range n {
		f.Op("ADDQ", Imm(unroll*4), qRegs[i])
	}
	f.Op("SUBQ", Imm(unroll), "R13")
	f.Op("JNZ", loop)
	f.Load("s", "R13")
	for i := range n {
		for t := range 2 * tiles {
			f.Op("VMOVUPS", acc(i, t), Mem("R13", 4*blockLen*i+64*first+32*t))
		}
	}
}

func emitValues256(f *File, half bool) {
	name := "attnValues" + typeName(half) + "AVX2"
	fn := f.Func(name, valuesParams, name+" is the AVX2 form of attnValues"+typeName(half)+"AVX512, for n <= 6.")
	fn.valuesPointers(half)
	labels := fn.dispatch(attnMax256)
	for n := 1; n <= attnMax256; n++ {
		fn.Label(labels[n])
		widths := []int{2}
		switch n {
		case 1:
			widths = []int{8, 4, 2}
		case 2, 3:
			widths = []int{4, 2}
		}
		fn.valuesSlices(half, 8, widths, func(width int) { fn.valuesSlice256(half, n, width) })
	}
}

// valuesSlice256 does n rows of 8·width elements at DI (acc) and SI (values).
func (f *Func) valuesSlice256(half bool, n, width int) {
	acc := func(i, t int) string { return Y(width*i + t) }
	spare := width * n
	f.valuesRows(n, func(i int) {
		f.Op("VBROADCASTSS", Mem("R8", 4*i), Y(15))
		for t := range width {
			f.Op("VMULPS", Mem("R9", 32*t), Y(15), acc(i, t))
		}
	})
	f.valuesLoop(half, 8*elem(half)*width, func() {
		row := func(t int) string { return Mem("R12", 8*elem(half)*t) }
		if n <= 3 {
			for i := range n {
				f.Op("VBROADCASTSS", Mem("R8", 4*blockLen*i), Y(16-n+i))
			}
			for t := range width {
				v := Y(spare + t%min(2, 16-n-spare))
				f.loadWide(half, row(t), v)
				for i := range n {
					f.Op("VFMADD231PS", Y(16-n+i), v, acc(i, t))
				}
			}
			return
		}
		for t := range width {
			f.loadWide(half, row(t), Y(spare+t))
		}
		for i := range n {
			b := Y(spare + width + i%(16-spare-width))
			f.Op("VBROADCASTSS", Mem("R8", 4*blockLen*i), b)
			for t := range width {
				f.Op("VFMADD231PS", b, Y(spare+t), acc(i, t))
			}
		}
	})
	f.valuesRows(n, func(i int) {
		for t := range width {
			f.Op("VMOVUPS", acc(i, t), Mem("R9", 32*t))
		}
	})
}

func emitGatherTile256(f *File, half bool) {
	name := "attnGatherTile" + typeName(half) + "AVX2"
	fn := f.Func(name, "dst *float32, src *byte, lanes *int32, mask int, hd int",
		name+" is the AVX2 form of attnGatherTile"+typeName(half)+"AVX512.")
	fn.Load("dst", "DI")
	fn.Load("src", "SI")
	fn.Load("lanes", "AX")
	fn.Load("hd", "CX")
	bits := make([]uint32, 16)
	for i := range bits {
		bits[i] = 1 << i
	}
	f.Data32("laneBits", bits...)
	fn.Op("VPBROADCASTD", fn.Arg("mask"), Y(0))
	for h := range 2 {
		fn.Op("VMOVDQU", dataAt("laneBits", 32*h), Y(1))
		fn.Op("VPAND", Y(1), Y(0), Y(2+h))
		fn.Op("VPCMPEQD", Y(1), Y(2+h), Y(2+h))   // lanes of dst to write
		fn.Op("VMOVDQU", Mem("AX", 32*h), Y(4+h)) // where from
		fn.Op("VPSLLD", Imm(28), Y(4+h), Y(6+h))  // sign: from the upper half
	}
	loop := fn.NewLabel("loop")
	fn.Label(loop)
	fn.loadWide(half, Mem("SI", 0), Y(8))
	fn.loadWide(half, Mem("SI", 8*elem(half)), Y(9))
	for h := range 2 {
		fn.Op("VPERMPS", Y(8), Y(4+h), Y(10))
		fn.Op("VPERMPS", Y(9), Y(4+h), Y(11))
		fn.Op("VBLENDVPS", Y(6+h), Y(11), Y(10), Y(10))
		fn.Op("VMOVUPS", Mem("DI", 32*h), Y(11))
		fn.Op("VBLENDVPS", Y(2+h), Y(10), Y(11), Y(10))
		fn.Op("VMOVUPS", Y(10), Mem("DI", 32*h)) // masked stores are slow on some processors
	}
	fn.Op("ADDQ", Imm(16*elem(half)), "SI")
	fn.Op("ADDQ", Imm(64), "DI")
	fn.Op("SUBQ", Imm(1), "CX")
	fn.Op("JNZ", loop)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

func emitSoftmax256(f *File) {
	fn := f.Func("attnSoftmaxAVX2", softmaxParams, "attnSoftmaxAVX2 is the AVX2 form of attnSoftmaxAVX512.")
	positions := make([]uint32, blockLen)
	for i := range positions {
		positions[i] = uint32(i)
	}
	f.Data32("positions", positions...)
	e := fn.exp256(10, 6)
	fn.Load("s", "SI")
	fn.Load("m", "DI")
	fn.Load("alpha", "R8")
	fn.Load("lo", "R9")
	fn.Load("hi", "R10")
	fn.Load("n", "CX")
	fn.Op("VBROADCASTSS", fn.Arg("scale"), Y(7))
	fn.Op("VBROADCASTSS", f.Data32("negInf", 0xff800000), Y(8))
	negMax := f.Data32("negMax", 0xff7fffff)
	fn.Comment("Scale, mask and take the maximum of each row; alpha = old maximum - new.")
	loop, masked, reduce := fn.NewLabel("max"), fn.NewLabel("masked"), fn.NewLabel("reduce")
	fn.Label(loop)
	fn.Op("VMOVAPS", Y(8), Y(0))
	fn.Op("MOVL", Mem("R10", 0), "AX")
	fn.Op("SUBL", Mem("R9", 0), "AX")
	fn.Op("CMPL", "AX", Imm(blockLen))
	fn.Op("JNE", masked)
	for t := range 8 {
		fn.Op("VMULPS", Mem("SI", 32*t), Y(7), Y(1))
		fn.Op("VMOVUPS", Y(1), Mem("SI", 32*t))
		fn.Op("VMAXPS", Y(1), Y(0), Y(0))
	}
	fn.Op("JMP", reduce)
	fn.Label(masked)
	fn.Op("VPBROADCASTD", Mem("R9", 0), Y(2))
	fn.Op("VPBROADCASTD", Mem("R10", 0), Y(3))
	for t := range 8 {
		fn.Op("VMOVDQU", dataAt("positions", 32*t), Y(4))
		fn.Op("VPCMPGTD", Y(4), Y(2), Y(5)) // lo > position
		fn.Op("VPCMPGTD", Y(4), Y(3), Y(6)) // hi > position
		fn.Op("VPANDN", Y(6), Y(5), Y(6))
		fn.Op("VMULPS", Mem("SI", 32*t), Y(7), Y(1))
		fn.Op("VBLENDVPS", Y(6), Y(1), Y(8), Y(1))
		fn.Op("VMOVUPS", Y(1), Mem("SI", 32*t))
		fn.Op("VMAXPS", Y(1), Y(0), Y(0))
	}
	fn.Label(reduce)
	fn.Op("VEXTRACTF128", Imm(1), Y(0), X(1))
	fn.rowMax(negMax)
	fn.Op("ADDQ", Imm(4*blockLen), "SI")
	for _, r := range []string{"DI", "R8", "R9", "R10"} {
		fn.Op("ADDQ", Imm(4), r)
	}
	fn.Op("SUBQ", Imm(1), "CX")
	fn.Op("JNZ", loop)

	fn.Comment("The factors of all rows at once.")
	fn.Load("alpha", "R8")
	fn.Op("VMOVUPS", Mem("R8", 0), Y(0))
	e.emit256(Y(0), Y(1), Y(2), Y(3), Y(4), Y(5))
	fn.Op("VMOVUPS", Y(1), Mem("R8", 0))

	fn.Comment("Weights and sums.")
	fn.Load("s", "SI")
	fn.Load("m", "DI")
	fn.Load("sum", "DX")
	fn.Load("n", "CX")
	loop = fn.NewLabel("exp")
	fn.Label(loop)
	fn.Op("VMOVSS", Mem("DI", 0), X(0))
	fn.Op("VMAXSS", negMax, X(0), X(0))
	fn.Op("VBROADCASTSS", X(0), Y(9))
	for side := range 2 { // lanes 0 to 7, then 8 to 15, of each tile
		for tile := range 4 {
			at := Mem("SI", 64*tile+32*side)
			fn.Op("VMOVUPS", at, Y(0))
			fn.Op("VSUBPS", Y(9), Y(0), Y(0))
			e.emit256(Y(0), Y(1), Y(2), Y(3), Y(4), Y(5))
			fn.Op("VMOVUPS", Y(1), at)
			switch tile {
			case 0:
				fn.Op("VMOVAPS", Y(1), Y(6))
			case 1:
				fn.Op("VADDPS", Y(1), Y(6), Y(6))
			case 2:
				fn.Op("VMOVAPS", Y(1), Y(7))
			case 3:
				fn.Op("VADDPS", Y(1), Y(7), Y(7))
			}
		}
		fn.Op("VADDPS", Y(7), Y(6), Y(6))
		fn.Op("VBROADCASTSS", Mem("R8", 0), Y(7))
		fn.Op("VMOVUPS", Mem("DX", 32*side), Y(0))
		fn.Op("VFMADD132PS", Y(7), Y(6), Y(0))
		fn.Op("VMOVUPS", Y(0), Mem("DX", 32*side))
	}
	fn.Op("ADDQ", Imm(4*blockLen), "SI")
	fn.Op("ADDQ", Imm(64), "DX")
	fn.Op("ADDQ", Imm(4), "DI")
	fn.Op("ADDQ", Imm(4), "R8")
	fn.Op("SUBQ", Imm(1), "CX")
	fn.Op("JNZ", loop)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

func emitAxpby256(f *File) {
	fn := f.Func("axpbyAVX2", "acc *float32, x *float32, n int, a float32, b float32",
		"axpbyAVX2: acc = acc·a + x·b for n > 0 elements, a multiple of 8.")
	fn.Load("acc", "DI")
	fn.Load("x", "SI")
	fn.Load("n", "CX")
	fn.Op("VBROADCASTSS", fn.Arg("a"), Y(0))
	fn.Op("VBROADCASTSS", fn.Arg("b"), Y(1))
	loop := fn.NewLabel("loop")
	fn.Label(loop)
	fn.Op("VMULPS", Mem("SI", 0), Y(1), Y(2))
	fn.Op("VFMADD231PS", Mem("DI", 0), Y(0), Y(2))
	fn.Op("VMOVUPS", Y(2), Mem("DI", 0))
	fn.Op("ADDQ", Imm(32), "SI")
	fn.Op("ADDQ", Imm(32), "DI")
	fn.Op("SUBQ", Imm(8), "CX")
	fn.Op("JNZ", loop)
	fn.Op("VZEROUPPER")
	fn.Ret()
}
