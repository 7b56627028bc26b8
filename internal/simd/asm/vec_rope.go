package main

const ropeParams = "x *float32, cos *float32, sin *float32, heads int, headDim int, half int"

// ropeHeads emits the loop over heads: DI is the head, SI and BX the cosines and sines, CX the pairs left; body runs with
// those set.
func (v *vecEmitter) ropeHeads(body func()) {
	v.Load("x", "R8")
	v.Load("heads", "R9")
	v.Load("headDim", "R10")
	v.Op("SHLQ", Imm(2), "R10")
	v.Load("half", "R11")
	heads := v.NewLabel("head")
	v.Label(heads)
	v.Op("MOVQ", "R8", "DI")
	v.Load("cos", "SI")
	v.Load("sin", "BX")
	v.Op("MOVQ", "R11", "CX")
	body()
	v.Op("ADDQ", "R10", "R8")
	v.Op("SUBQ", Imm(1), "R9")
	v.Op("JNZ", heads)
	v.Op("VZEROUPPER")
	v.Ret()
}

// pairLoop runs step over full registers of per pairs and, for 512 bits, a masked rest; at advances the pointers.
func (v *vecEmitter) pairLoop(per int, step func(masked bool), at func()) {
	loop, tail, done := v.NewLabel("loop"), v.NewLabel("tail"), v.NewLabel("done")
	v.Label(loop)
	v.Op("CMPQ", "CX", Imm(per))
	v.Op("JLT", tail)
	step(false)
	at()
	v.Op("SUBQ", Imm(per), "CX")
	v.Op("JMP", loop)
	v.Label(tail)
	if v.wide {
		v.Op("TESTQ", "CX", "CX")
		v.Op("JEQ", done)
		v.tailMask()
		step(true)
		v.Label(done)
	}
}

// load and store move a register, the elements of a mask alone if masked.
func (v *vecEmitter) load(mem, mask, reg string, masked bool) {
	if masked {
		v.Op("VMOVUPS.Z", mem, mask, reg)
	} else {
		v.Op("VMOVUPS", mem, reg)
	}
}

func (v *vecEmitter) store(reg, mask, mem string, masked bool) {
	if masked {
		v.Op("VMOVUPS", reg, mask, mem)
	} else {
		v.Op("VMOVUPS", reg, mem)
	}
}

func emitRopeNeox(f *File, wide bool) {
	name := "ropeNeox" + suffix(wide)
	doc := name + " turns the pairs (i, i+half) of each head."
	if !wide {
		doc += " half is a multiple of 8."
	}
	v := &vecEmitter{Func: f.Func(name, ropeParams, doc), wide: wide}
	bytes := 4 * lanes(wide)
	v.ropeHeads(func() {
		v.Op("LEAQ", MemIdx("DI", "R11", 4, 0), "DX")
		v.pairLoop(lanes(wide), func(masked bool) {
			v.load(Mem("DI", 0), "K1", v.V(0), masked)
			v.load(Mem("DX", 0), "K1", v.V(1), masked)
			v.load(Mem("SI", 0), "K1", v.V(2), masked)
			v.load(Mem("BX", 0), "K1", v.V(3), masked)
			v.Op("VMULPS", v.V(2), v.V(0), v.V(4))
			v.Op("VMULPS", v.V(3), v.V(1), v.V(5))
			v.Op("VSUBPS", v.V(5), v.V(4), v.V(4))
			v.Op("VMULPS", v.V(3), v.V(0), v.V(5))
			v.Op("VMULPS", v.V(2), v.V(1), v.V(6))
			v.Op("VADDPS", v.V(6), v.V(5), v.V(5))
			v.store(v.V(4), "K1", Mem("DI", 0), masked)
			v.store(v.V(5), "K1", Mem("DX", 0), masked)
		}, func() {
			for _, p := range []string{"DI", "DX", "SI", "BX"} {
				v.Op("ADDQ", Imm(bytes), p)
			}
		})
	})
}

func emitRopeNorm(f *File, wide bool) {
	name := "ropeNorm" + suffix(wide)
	doc := name + " turns the pairs (2i, 2i+1) of each head."
	if !wide {
		doc += " half is a multiple of 4."
	}
	v := &vecEmitter{Func: f.Func(name, ropeParams, doc), wide: wide}
	bytes, small := 4*lanes(wide), func(i int) string { return Y(i) }
	if !wide {
		small = func(i int) string { return X(i) }
	}
	twice := make([]uint32, 16)
	for i := range twice {
		twice[i] = uint32(i / 2)
	}
	v.Op("VMOVUPS", f.Data32("twice", twice...), v.V(14))
	if wide {
		even := make([]uint32, 16)
		for i := 0; i < 16; i += 2 {
			even[i] = 0x80000000
		}
		v.Op("VMOVUPS", f.Data32("evenSign", even...), v.V(15))
	}
	v.ropeHeads(func() {
		v.pairLoop(lanes(wide)/2, func(masked bool) {
			if masked { // twice as many elements as pairs
				v.Op("ADDQ", "CX", "CX")
				v.Op("MOVL", Imm(-1), "AX")
				v.Op("BZHIL", "CX", "AX", "AX")
				v.Op("KMOVW", "AX", "K2")
			}
			v.load(Mem("DI", 0), "K2", v.V(0), masked)
			v.load(Mem("SI", 0), "K1", small(2), masked)
			v.load(Mem("BX", 0), "K1", small(3), masked)
			v.Op("VPERMPS", v.V(2), v.V(14), v.V(2))
			v.Op("VPERMPS", v.V(3), v.V(14), v.V(3))
			v.Op("VPERMILPS", Imm(0xb1), v.V(0), v.V(1))
			v.Op("VMULPS", v.V(2), v.V(0), v.V(0))
			v.Op("VMULPS", v.V(3), v.V(1), v.V(1))
			if wide {
				v.Op("VXORPS", v.V(15), v.V(1), v.V(1))
				v.Op("VADDPS", v.V(1), v.V(0), v.V(0))
			} else {
				v.Op("VADDSUBPS", v.V(1), v.V(0), v.V(0))
			}
			v.store(v.V(0), "K2", Mem("DI", 0), masked)
		}, func() {
			v.Op("ADDQ", Imm(bytes), "DI")
			v.Op("ADDQ", Imm(bytes/2), "SI")
			v.Op("ADDQ", Imm(bytes/2), "BX")
		})
	})
}
