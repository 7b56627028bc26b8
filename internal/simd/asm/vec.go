package main

func init() {
	generators = append(generators,
		generator{base: "vec_avx512_amd64", tags: "amd64 && !purego", emit: func(f *File) { emitVec(f, true) }},
		generator{base: "vec_avx2_amd64", tags: "amd64 && !purego", emit: func(f *File) { emitVec(f, false) }})
}

func emitVec(f *File, wide bool) {
	for _, m := range vecMaps {
		m.emit(f, wide)
	}
	emitSumSquares(f, wide)
	emitRopeNeox(f, wide)
	emitRopeNorm(f, wide)
}

// A vecMap is a function of one element of each source.
type vecMap struct {
	name    string
	srcs    []string // names of the sources; each is loaded into V(0), V(1), ...
	scalars []string // names of scalar parameters, held in V(14), V(15)
	doc     string
	setup   func(v *vecEmitter)
	body    func(v *vecEmitter) // leaves the result in V(0)
	srcType string              // "" is float32
	dstType string
}

// A vecEmitter emits a vecMap for one width.
type vecEmitter struct {
	*Func
	wide bool
	exp  *exp
}

// V is vector register i of the width.
func (v *vecEmitter) V(i int) string {
	if v.wide {
		return Z(i)
	}
	return Y(i)
}

// suffix of function names, and elements in a register.
func suffix(wide bool) string {
	if wide {
		return "AVX512"
	}
	return "AVX2"
}

func lanes(wide bool) int {
	if wide {
		return 16
	}
	return 8
}

var vecMaps = []vecMap{
	{name: "add", srcs: []string{"a", "b"}, doc: "dst = a + b", body: func(v *vecEmitter) {
		v.Op("VADDPS", v.V(1), v.V(0), v.V(0))
	}},
	{name: "mul", srcs: []string{"a", "b"}, doc: "dst = a * b", body: func(v *vecEmitter) {
		v.Op("VMULPS", v.V(1), v.V(0), v.V(0))
	}},
	{name: "scale", srcs: []string{"x"}, scalars: []string{"s"}, doc: "dst = x * s", body: func(v *vecEmitter) {
		v.Op("VMULPS", v.V(14), v.V(0), v.V(0))
	}},
	{name: "scaleMul", srcs: []string{"x", "w"}, scalars: []string{"s"}, doc: "dst = (x * s) * w", body: func(v *vecEmitter) {
		v.Op("VMULPS", v.V(14), v.V(0), v.V(0))
		v.Op("VMULPS", v.V(1), v.V(0), v.V(0))
	}},
	{name: "exp", srcs: []string{"x"}, doc: "dst = exp(x)", setup: setupExp, body: func(v *vecEmitter) {
		v.expOf(0, 2)
		v.Op("VMOVAPS", v.V(2), v.V(0))
	}},
	{name: "silu", srcs: []string{"x"}, doc: "dst = x / (1 + exp(-x))", setup: setupExp, body: (*vecEmitter).silu},
	{name: "swiglu", srcs: []string{"gate", "up"}, doc: "dst = gate / (1 + exp(-gate)) * up", setup: setupExp, body: func(v *vecEmitter) {
		v.silu()
		v.Op("VMULPS", v.V(1), v.V(0), v.V(0))
	}},
	{name: "f32ToF16", srcs: []string{"x"}, dstType: "uint16", doc: "dst = x as half, to nearest even", body: func(*vecEmitter) {}},
	{name: "f16ToF32", srcs: []string{"x"}, srcType: "uint16", doc: "dst = x as float32", body: func(*vecEmitter) {}},
}

// setupExp puts the constants of exp into registers, +Inf into V(15), the sign bit into V(14).
func setupExp(v *vecEmitter) {
	if v.wide {
		v.exp = v.exp512(16)
	} else {
		v.exp = v.exp256(10, 4)
	}
	v.Op("VBROADCASTSS", v.file.Data32("posInf", 0x7f800000), v.V(15))
	v.Op("VBROADCASTSS", v.file.Data32("signBit", 0x80000000), v.V(14))
}

// expOf computes V(to) = exp(V(from)), using V(3) to V(7).
func (v *vecEmitter) expOf(from, to int) {
	if v.wide {
		v.exp.emitFull(v.V(from), v.V(to), v.V(3), v.V(4), v.V(15))
	} else {
		v.exp.emitFull256(v.V(from), v.V(to), v.V(3), v.V(4), v.V(5), v.V(6), v.V(7), v.V(15))
	}
}

// silu computes V(0) = silu(V(0)), using V(2) to V(8).
func (v *vecEmitter) silu() {
	v.Op("VXORPS", v.V(14), v.V(0), v.V(8))
	v.expOf(8, 2)
	v.Op("VADDPS", v.exp.c[9], v.V(2), v.V(2))
	v.Op("VDIVPS", v.V(2), v.V(0), v.V(0))
}

func (m vecMap) emit(f *File, wide bool) {
	name := m.name + suffix(wide)
	dst := "float32"
	if m.dstType != "" {
		dst = m.dstType
	}
	params := "dst *" + dst
	for _, s := range m.srcs {
		t := "float32"
		if m.srcType != "" {
			t = m.srcType
		}
		params += ", " + s + " *" + t
	}
	params += ", n int"
	for _, s := range m.scalars {
		params += ", " + s + " float32"
	}
	doc := name + ": " + m.doc + " for n elements."
	if !wide {
		doc = name + ": " + m.doc + " for n elements, a multiple of 8."
	}
	v := &vecEmitter{Func: f.Func(name, params, doc), wide: wide}
	pointers := []string{"SI", "BX"}[:len(m.srcs)]
	v.Load("dst", "DI")
	for i, s := range m.srcs {
		v.Load(s, pointers[i])
	}
	v.Load("n", "CX")
	for i, s := range m.scalars {
		v.Op("VBROADCASTSS", v.Arg(s), v.V(14+i))
	}
	if m.setup != nil {
		m.setup(v)
	}
	srcBytes, dstBytes := 4, 4
	if m.srcType != "" {
		srcBytes = 2
	}
	if m.dstType != "" {
		dstBytes = 2
	}
	width := lanes(wide)
	loop, tail, done := v.NewLabel("loop"), v.NewLabel("tail"), v.NewLabel("done")
	v.Label(loop)
	v.Op("CMPQ", "CX", Imm(width))
	v.Op("JLT", tail)
	m.step(v, pointers, false)
	for _, p := range pointers {
		v.Op("ADDQ", Imm(width*srcBytes), p)
	}
	v.Op("ADDQ", Imm(width*dstBytes), "DI")
	v.Op("SUBQ", Imm(width), "CX")
	v.Op("JMP", loop)
	v.Label(tail)
	if wide {
		v.Op("TESTQ", "CX", "CX")
		v.Op("JEQ", done)
		v.tailMask()
		m.step(v, pointers, true)
		v.Label(done)
	}
	v.Op("VZEROUPPER")
	v.Ret()
}

// tailMask sets the low CX bits of K1.
func (f *Func) tailMask() {
	f.Op("MOVL", Imm(-1), "AX")
	f.Op("BZHIL", "CX", "AX", "AX")
	f.Op("KMOVW", "AX", "K1")
}

// step loads, computes and stores one register of elements, those of K1 alone if masked.
func (m vecMap) step(v *vecEmitter, pointers []string, masked bool) {
	load, store := "VMOVUPS", "VMOVUPS"
	if m.srcType != "" {
		load = "VCVTPH2PS"
	}
	for i, p := range pointers {
		if masked {
			v.Op(load+".Z", Mem(p, 0), "K1", v.V(i))
		} else {
			v.Op(load, Mem(p, 0), v.V(i))
		}
	}
	m.body(v)
	operands := []string{v.V(0), Mem("DI", 0)}
	if masked {
		operands = []string{v.V(0), "K1", Mem("DI", 0)}
	}
	if m.dstType != "" {
		store, operands = "VCVTPS2PH", append([]string{Imm(0)}, operands...)
	}
	v.Op(store, operands...)
}

// emitSumSquares keeps 32 float64 lanes and folds them by halves.
func emitSumSquares(f *File, wide bool) {
	name := "sumSquares" + suffix(wide)
	if wide {
		fn := f.Func(name, "out *float64, x *float32, n int", name+": out = Σ x², the bits of sumSquares.")
		v := &vecEmitter{Func: fn, wide: true}
		v.sumSquaresLoop(func() {
			done := v.NewLabel("done")
			v.Op("TESTQ", "CX", "CX")
			v.Op("JEQ", done)
			v.Op("MOVL", Imm(-1), "AX")
			v.Op("BZHIL", "CX", "AX", "AX")
			for i := range 4 {
				v.Op("KMOVB", "AX", "K1")
				v.Op("SHRL", Imm(8), "AX")
				v.Op("VCVTPS2PD.Z", Mem("SI", 32*i), "K1", Z(8+i))
				v.Op("VFMADD231PD", Z(8+i), Z(8+i), Z(i))
			}
			v.Label(done)
		})
		v.Op("VADDPD", Z(2), Z(0), Z(0))
		v.Op("VADDPD", Z(3), Z(1), Z(1))
		v.Op("VADDPD", Z(1), Z(0), Z(0))
		v.Op("VEXTRACTF64X4", Imm(1), Z(0), Y(1))
		v.foldDoubles()
		return
	}
	fn := f.Func(name, "out *float64, x *float32, n int, tail *float32",
		name+": out = Σ x², the bits of sumSquares; tail is a copy of the last n%32 elements, zeros after them up to 32.")
	v := &vecEmitter{Func: fn}
	v.sumSquaresLoop(func() {
		v.Load("tail", "SI")
		for i := range 8 {
			v.Op("VCVTPS2PD", Mem("SI", 16*i), Y(8+i%4))
			v.Op("VFMADD231PD", Y(8+i%4), Y(8+i%4), Y(i))
		}
	})
	for i := range 4 {
		v.Op("VADDPD", Y(4+i), Y(i), Y(i))
	}
	v.Op("VADDPD", Y(2), Y(0), Y(0))
	v.Op("VADDPD", Y(3), Y(1), Y(1))
	v.foldDoubles()
}

// sumSquaresLoop adds the whole groups of 32; after handles the CX elements left.
func (v *vecEmitter) sumSquaresLoop(after func()) {
	v.Load("x", "SI")
	v.Load("n", "CX")
	regs := 64 / lanes(v.wide)
	for i := range regs {
		if v.wide {
			v.Op("VPXORQ", Z(i), Z(i), Z(i))
		} else {
			v.Op("VXORPD", Y(i), Y(i), Y(i))
		}
	}
	loop, tail := v.NewLabel("loop"), v.NewLabel("tail")
	v.Label(loop)
	v.Op("CMPQ", "CX", Imm(32))
	v.Op("JLT", tail)
	for i := range regs {
		t := v.V(8 + i%4)
		v.Op("VCVTPS2PD", Mem("SI", 128/regs*i), t)
		v.Op("VFMADD231PD", t, t, v.V(i))
	}
	v.Op("ADDQ", Imm(128), "SI")
	v.Op("SUBQ", Imm(32), "CX")
	v.Op("JMP", loop)
	v.Label(tail)
	after()
}

// foldDoubles adds the 8 lanes of Y0 and Y1 by halves and stores the sum.
func (v *vecEmitter) foldDoubles() {
	v.Op("VADDPD", Y(1), Y(0), Y(0))
	v.Op("VEXTRACTF128", Imm(1), Y(0), X(1))
	v.Op("VADDPD", X(1), X(0), X(0))
	v.Op("VPERMILPD", Imm(1), X(0), X(1))
	v.Op("VADDSD", X(1), X(0), X(0))
	v.Load("out", "DI")
	v.Op("VMOVSD", X(0), Mem("DI", 0))
	v.Op("VZEROUPPER")
	v.Ret()
}
