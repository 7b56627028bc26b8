package main

func init() {
	generators = append(generators, generator{base: "attn_avx512_amd64", tags: "amd64 && !purego", emit: func(f *File) {
		for _, half := range []bool{false, true} {
			emitScores512(f, half)
			emitValues512(f, half)
			emitGatherTile512(f, half)
			emitGatherPair512(f, half)
		}
		emitSoftmax512(f)
		emitAxpby512(f)
		emitQ8(f, true)
	}})
}

func emitScores512(f *File, half bool) {
	name := "attnScores" + typeName(half) + "AVX512"
	fn := f.Func(name, "s *float32, k *byte, q *float32, koff *int, qoff *int, n int, hd int",
		name+" stores the scores of n <= 7 queries, hd a multiple of 16, against a block: s [n][64]. koff gives the byte offsets\n"+
			"of the block's four tiles from k, qoff the element offsets of the queries from q.")
	fn.tilePointers(0, 4)
	labels := fn.dispatch(attnMax)
	const unroll = 4
	step := 16 * elem(half)
	for n := 1; n <= attnMax; n++ {
		fn.Label(labels[n])
		fn.queryPointers(n)
		fn.Load("hd", "R13")
		fn.nextKeys(half)
		acc := func(i, t int) string { return Z(4*i + t) }
		for i := range 4 * n {
			fn.Op("VPXORD", Z(i), Z(i), Z(i))
		}
		loop := fn.NewLabel("loop")
		fn.Label(loop)
		for u := range unroll {
			key := func(t int) string { return Z(4*n + t) }
			for t, r := range tileRegs {
				fn.loadWide(half, Mem(r, u*step), key(t))
			}
			for i := range n {
				if 4*n+4+1 > 31 { // no register is left for the query's element
					for t := range 4 {
						fn.Op("VFMADD231PS.BCST", Mem(qRegs[i], 4*u), key(t), acc(i, t))
					}
					continue
				}
				b := Z(30 + i%2)
				if 4*n+4 > 30 {
					b = Z(31)
				}
				fn.Op("VBROADCASTSS", Mem(qRegs[i], 4*u), b)
				for t := range 4 {
					fn.Op("VFMADD231PS", b, key(t), acc(i, t))
				}
			}
		}
		for _, r := range tileRegs {
			fn.Op("ADDQ", Imm(unroll*step), r)
		}
		for i := range n {
			fn.Op("ADDQ", Imm(unroll*4), qRegs[i])
		}
		fn.prefetchKeys(half, 4*unroll*step)
		fn.Op("SUBQ", Imm(unroll), "R13")
		fn.Op("JNZ", loop)
		fn.Load("s", "R13")
		for i := range n {
			for t := range 4 {
				fn.Op("VMOVUPS", acc(i, t), Mem("R13", 4*blockLen*i+64*t))
			}
		}
		fn.Op("VZEROUPPER")
		fn.Ret()
	}
}

func emitValues512(f *File, half bool) {
	name := "attnValues" + typeName(half) + "AVX512"
	fn := f.Func(name, valuesParams,
		name+" scales the n <= 7 rows of acc [n][hd] by alpha and adds p[i][j] times the value row cells[j] of v, for j < count in\n"+
			"order; the rows of p are 64 apart. hd is a multiple of 16, count at least 1.")
	fn.valuesPointers(half)
	labels := fn.dispatch(attnMax)
	for n := 1; n <= attnMax; n++ {
		fn.Label(labels[n])
		widths := []int{4, 2, 1}
		if n <= 3 {
			widths = []int{8, 4, 2, 1}
		}
		fn.valuesSlices(half, 16, widths, func(width int) { fn.valuesSlice512(half, n, width) })
	}
}

// valuesSlice512 does n rows of 16·width elements at DI (acc) and SI (values).
func (f *Func) valuesSlice512(half bool, n, width int) {
	acc := func(i, t int) string { return Z(width*i + t) }
	spare := width * n // registers from here on are free
	f.valuesRows(n, func(i int) {
		f.Op("VBROADCASTSS", Mem("R8", 4*i), Z(31))
		for t := range width {
			f.Op("VMULPS", Mem("R9", 64*t), Z(31), acc(i, t))
		}
	})
	f.valuesLoop(half, 16*elem(half)*width, func() {
		row := func(t int) string { return Mem("R12", 16*elem(half)*t) }
		if n <= 3 { // the weights stay in registers, values pass through one by one
			for i := range n {
				f.Op("VBROADCASTSS", Mem("R8", 4*blockLen*i), Z(29+i))
			}
			for t := range width {
				v := Z(spare + t%(29-spare))
				f.loadWide(half, row(t), v)
				for i := range n {
					f.Op("VFMADD231PS", Z(29+i), v, acc(i, t))
				}
			}
			return
		}
		for t := range width {
			f.loadWide(half, row(t), Z(spare+t))
		}
		for i := range n {
			if width == 1 || spare+width > 31 {
				for t := range width {
					f.Op("VFMADD231PS.BCST", Mem("R8", 4*blockLen*i), Z(spare+t), acc(i, t))
				}
				continue
			}
			f.Op("VBROADCASTSS", Mem("R8", 4*blockLen*i), Z(31))
			for t := range width {
				f.Op("VFMADD231PS", Z(31), Z(spare+t), acc(i, t))
			}
		}
	})
	f.valuesRows(n, func(i int) {
		for t := range width {
			f.Op("VMOVUPS", acc(i, t), Mem("R9", 64*t))
		}
	})
}

func emitGatherPair512(f *File, half bool) {
	name := "attnGatherPair" + typeName(half) + "AVX512"
	fn := f.Func(name, "dst *float32, a *byte, b *byte, lanes *int32, hd int",
		name+" makes one tile of keys, as float32, of the lanes of two: lanes[i] < 16 is a lane of a, others of b.")
	fn.Load("dst", "DI")
	fn.Load("a", "SI")
	fn.Load("b", "DX")
	fn.Load("lanes", "AX")
	fn.Load("hd", "CX")
	fn.Op("VMOVDQU32", Mem("AX", 0), Z(0))
	if half { // four tiles ahead of the second, which is where the next block goes on
		fn.Op("MOVQ", "CX", "R14")
		fn.Op("SHLQ", Imm(7), "R14")
	}
	loop := fn.NewLabel("loop")
	fn.Label(loop)
	const unroll = 2
	step := 16 * elem(half)
	for u := range unroll {
		fn.loadWide(half, Mem("SI", u*step), Z(1+u))
		fn.loadWide(half, Mem("DX", u*step), Z(3+u))
		fn.Op("VPERMT2PS", Z(3+u), Z(0), Z(1+u))
		fn.Op("VMOVUPS", Z(1+u), Mem("DI", 64*u))
	}
	if half {
		fn.Op("PREFETCHT1", MemIdx("DX", "R14", 1, 0))
	}
	fn.Op("ADDQ", Imm(unroll*step), "SI")
	fn.Op("ADDQ", Imm(unroll*step), "DX")
	fn.Op("ADDQ", Imm(unroll*64), "DI")
	fn.Op("SUBQ", Imm(unroll), "CX")
	fn.Op("JNZ", loop)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

func emitGatherTile512(f *File, half bool) {
	name := "attnGatherTile" + typeName(half) + "AVX512"
	fn := f.Func(name, "dst *float32, src *byte, lanes *int32, mask int, hd int",
		name+" moves lanes of one tile of keys to another as float32: dst[d][i] = src[d][lanes[i]] for the bits i of mask.")
	fn.Load("dst", "DI")
	fn.Load("src", "SI")
	fn.Load("lanes", "AX")
	fn.Load("mask", "BX")
	fn.Load("hd", "CX")
	fn.Op("KMOVW", "BX", "K1")
	fn.Op("VMOVDQU32", Mem("AX", 0), Z(0))
	loop := fn.NewLabel("loop")
	fn.Label(loop)
	fn.loadWide(half, Mem("SI", 0), Z(1))
	fn.Op("VPERMPS", Z(1), Z(0), Z(2))
	fn.Op("VMOVUPS", Z(2), "K1", Mem("DI", 0))
	fn.Op("ADDQ", Imm(16*elem(half)), "SI")
	fn.Op("ADDQ", Imm(64), "DI")
	fn.Op("SUBQ", Imm(1), "CX")
	fn.Op("JNZ", loop)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

func emitSoftmax512(f *File) {
	fn := f.Func("attnSoftmaxAVX512", softmaxParams,
		"attnSoftmaxAVX512 does for n <= 8 rows of s [n][64] what the contract of softmax says; alpha has room for 8 elements.")
	e := fn.exp512(16)
	fn.Op("VBROADCASTSS", fn.Arg("scale"), Z(28))
	fn.Op("VBROADCASTSS", f.Data32("negInf", 0xff800000), Z(29))
	fn.Op("VBROADCASTSS", f.Data32("negMax", 0xff7fffff), X(30))
	fn.Load("s", "SI")
	fn.Load("m", "DI")
	fn.Load("alpha", "R8")
	fn.Load("lo", "R9")
	fn.Load("hi", "R10")
	fn.Load("n", "CX")
	fn.Op("MOVQ", Imm(-1), "R11")
	fn.Comment("Scale, mask and take the maximum of each row; alpha = old maximum - new.")
	loop := fn.NewLabel("max")
	fn.Label(loop)
	fn.Op("MOVL", Mem("R9", 0), "AX")
	fn.Op("MOVL", Mem("R10", 0), "BX")
	fn.Op("BZHIQ", "AX", "R11", "AX")
	fn.Op("BZHIQ", "BX", "R11", "BX")
	fn.Op("ANDNQ", "BX", "AX", "BX") // bits lo .. hi-1
	for t := range 4 {
		fn.Op("KMOVW", "BX", K(1+t))
		if t < 3 {
			fn.Op("SHRQ", Imm(16), "BX")
		}
	}
	for t := range 4 {
		fn.Op("VMULPS", Mem("SI", 64*t), Z(28), Z(t))
	}
	for t := range 4 {
		fn.Op("VBLENDMPS", Z(t), Z(29), K(1+t), Z(t))
		fn.Op("VMOVUPS", Z(t), Mem("SI", 64*t))
	}
	fn.Op("VMAXPS", Z(0), Z(1), Z(0))
	fn.Op("VMAXPS", Z(2), Z(3), Z(2))
	fn.Op("VMAXPS", Z(0), Z(2), Z(0))
	fn.Op("VEXTRACTF64X4", Imm(1), Z(0), Y(1))
	fn.Op("VMAXPS", Y(0), Y(1), Y(0))
	fn.Op("VEXTRACTF128", Imm(1), Y(0), X(1))
	fn.rowMax(X(30))
	fn.Op("ADDQ", Imm(4*blockLen), "SI")
	for _, r := range []string{"DI", "R8", "R9", "R10"} {
		fn.Op("ADDQ", Imm(4), r)
	}
	fn.Op("SUBQ", Imm(1), "CX")
	fn.Op("JNZ", loop)

	fn.Comment("The factors of all rows at once.")
	fn.Load("alpha", "R8")
	fn.Op("VMOVUPS", Mem("R8", 0), Y(0))
	e.emit(Z(0), Z(1), Z(2), Z(3))
	fn.Op("VMOVUPS", Y(1), Mem("R8", 0))

	fn.Comment("Weights and sums.")
	fn.Load("s", "SI")
	fn.Load("m", "DI")
	fn.Load("sum", "DX")
	fn.Load("n", "CX")
	loop = fn.NewLabel("exp")
	fn.Label(loop)
	fn.Op("VMOVSS", Mem("DI", 0), X(0))
	fn.Op("VMAXSS", X(0), X(30), X(0))
	fn.Op("VBROADCASTSS", X(0), Z(0))
	for t := range 4 {
		fn.Op("VMOVUPS", Mem("SI", 64*t), Z(1+t))
		fn.Op("VSUBPS", Z(0), Z(1+t), Z(1+t))
	}
	x, p, tt, nn := []string{Z(1), Z(2), Z(3), Z(4)}, []string{Z(5), Z(6), Z(7), Z(8)}, []string{Z(9), Z(10), Z(11), Z(12)}, Z(13)
	for t := range 4 {
		e.emit(x[t], p[t], tt[t], nn)
		fn.Op("VMOVUPS", p[t], Mem("SI", 64*t))
	}
	fn.Op("VADDPS", p[1], p[0], p[0])
	fn.Op("VADDPS", p[3], p[2], p[2])
	fn.Op("VADDPS", p[2], p[0], p[0])
	fn.Op("VMOVUPS", Mem("DX", 0), Z(1))
	fn.Op("VFMADD132PS.BCST", Mem("R8", 0), Z(5), Z(1))
	fn.Op("VMOVUPS", Z(1), Mem("DX", 0))
	fn.Op("ADDQ", Imm(4*blockLen), "SI")
	fn.Op("ADDQ", Imm(64), "DX")
	fn.Op("ADDQ", Imm(4), "DI")
	fn.Op("ADDQ", Imm(4), "R8")
	fn.Op("SUBQ", Imm(1), "CX")
	fn.Op("JNZ", loop)
	fn.Op("VZEROUPPER")
	fn.Ret()
}

func emitAxpby512(f *File) {
	fn := f.Func("axpbyAVX512", "acc *float32, x *float32, n int, a float32, b float32",
		"axpbyAVX512: acc = acc·a + x·b for n > 0 elements, a multiple of 16.")
	fn.Load("acc", "DI")
	fn.Load("x", "SI")
	fn.Load("n", "CX")
	fn.Op("VBROADCASTSS", fn.Arg("a"), Z(0))
	fn.Op("VBROADCASTSS", fn.Arg("b"), Z(1))
	loop := fn.NewLabel("loop")
	fn.Label(loop)
	fn.Op("VMULPS", Mem("SI", 0), Z(1), Z(2))
	fn.Op("VFMADD231PS", Mem("DI", 0), Z(0), Z(2))
	fn.Op("VMOVUPS", Z(2), Mem("DI", 0))
	fn.Op("ADDQ", Imm(64), "SI")
	fn.Op("ADDQ", Imm(64), "DI")
	fn.Op("SUBQ", Imm(16), "CX")
	fn.Op("JNZ", loop)
	fn.Op("VZEROUPPER")
	fn.Ret()
}
