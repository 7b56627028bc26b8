package main

func init() {
	generators = append(generators, generator{base: "vec_neon_arm64", tags: "arm64 && !purego", emit: func(f *File) {
		for _, m := range neonMaps {
			m.emit(f)
		}
		emitSumSquaresNEON(f)
		emitRopeNEON(f, true)
		emitRopeNEON(f, false)
	}})
}

// A neonMap is a function of one element of each source; see vecMap.
type neonMap struct {
	name    string
	srcs    []string // loaded into v0, v1
	scalars []string // in v14
	doc     string
	exp     bool            // the constants of exp are wanted
	body    func(v neonExp) // leaves the result in v0
	srcHalf bool
	dstHalf bool
}

var neonMaps = []neonMap{
	{name: "add", srcs: []string{"a", "b"}, doc: "dst = a + b", body: func(v neonExp) { v.v("fadd 4s", 0, 0, 1) }},
	{name: "mul", srcs: []string{"a", "b"}, doc: "dst = a * b", body: func(v neonExp) { v.v("fmul 4s", 0, 0, 1) }},
	{name: "scale", srcs: []string{"x"}, scalars: []string{"s"}, doc: "dst = x * s", body: func(v neonExp) { v.v("fmul 4s", 0, 0, 14) }},
	{name: "scaleMul", srcs: []string{"x", "w"}, scalars: []string{"s"}, doc: "dst = (x * s) * w", body: func(v neonExp) {
		v.v("fmul 4s", 0, 0, 14)
		v.v("fmul 4s", 0, 0, 1)
	}},
	{name: "exp", srcs: []string{"x"}, doc: "dst = exp(x)", exp: true, body: func(v neonExp) {
		v.full(0, 2)
		v.mov(0, 2)
	}},
	{name: "silu", srcs: []string{"x"}, doc: "dst = x / (1 + exp(-x))", exp: true, body: neonExp.silu},
	{name: "swiglu", srcs: []string{"gate", "up"}, doc: "dst = gate / (1 + exp(-gate)) * up", exp: true, body: func(v neonExp) {
		v.silu()
		v.v("fmul 4s", 0, 0, 1)
	}},
	{name: "f32ToF16", srcs: []string{"x"}, dstHalf: true, doc: "dst = x as half, to nearest even", body: func(v neonExp) { v.v("fcvtn 4h 4s", 0, 0) }},
	{name: "f16ToF32", srcs: []string{"x"}, srcHalf: true, doc: "dst = x as float32", body: func(v neonExp) { v.v("fcvtl 4s 4h", 0, 0) }},
}

func (m neonMap) emit(f *File) {
	dst, src := "*float32", "*float32"
	if m.dstHalf {
		dst = "*uint16"
	}
	if m.srcHalf {
		src = "*uint16"
	}
	params := "dst " + dst
	for _, s := range m.srcs {
		params += ", " + s + " " + src
	}
	params += ", n int"
	for _, s := range m.scalars {
		params += ", " + s + " float32"
	}
	name := m.name + "NEON"
	v := neonExp{neon: neon{f.Func(name, params, name+": "+m.doc+" for n > 0 elements.")}}
	pointers := []string{"R1", "R2"}[:len(m.srcs)]
	v.Load("dst", "R0")
	for i, s := range m.srcs {
		v.Load(s, pointers[i])
	}
	v.Load("n", "R3")
	for i, s := range m.scalars {
		v.LoadFloat(s, 14+i)
	}
	if m.exp {
		v.constants("R4")
	}
	step := func(lanes int) {
		width := func(half bool) (string, int) {
			switch {
			case lanes == 4 && half:
				return "d", 8
			case lanes == 4:
				return "q", 16
			case half:
				return "h", 2
			}
			return "s", 4
		}
		w, bytes := width(m.srcHalf)
		for i, p := range pointers {
			v.ldr(w, i, p, 0)
			v.add(bytes, p)
		}
		m.body(v)
		w, bytes = width(m.dstHalf)
		v.str(w, 0, "R0", 0)
		v.add(bytes, "R0")
	}
	v.fours("R3", step)
	v.Ret()
}

// fours runs step for the counter's elements, four at a time and then one by one.
func (f neon) fours(counter string, step func(lanes int)) {
	loop, tail, single, done := f.NewLabel("loop"), f.NewLabel("tail"), f.NewLabel("single"), f.NewLabel("done")
	f.Label(loop)
	f.Op("CMP", Imm(4), counter)
	f.Op("BLT", tail)
	step(4)
	f.Op("SUB", Imm(4), counter)
	f.Op("B", loop)
	f.Label(tail)
	f.Op("CBZ", counter, done)
	f.Label(single)
	step(1)
	f.countdown(1, counter, single)
	f.Label(done)
}

// A neonExp emits exponentials. The constants are in the registers from expFirst on, in the order of expConsts, then +Inf.
type neonExp struct{ neon }

const (
	expFirst = 16
	expInf   = expFirst + 12
)

// constants loads them, using the general register.
func (v neonExp) constants(reg string) {
	v.file.expTable()
	v.table("expConsts<>(SB)", reg)
	for i := range expConsts {
		v.ldr("q", expFirst+i, reg, 32*i)
	}
	v.table(v.file.Data32("posInf4", 0x7f800000, 0x7f800000, 0x7f800000, 0x7f800000), reg)
	v.ldr("q", expInf, reg, 0)
}

// emit computes p = exp(x) for x <= expMax, NaNs included; x and v3 to v7 are used up.
func (v neonExp) emit(x, p int) {
	const t, n, next, less, ordered = 3, 4, 5, 6, 7
	c := func(i int) int { return expFirst + i }
	v.v("fcmgt 4s", less, c(10), x)
	v.v("fcmeq 4s", ordered, x, x)
	v.mov(t, c(1))
	v.v("fmla 4s", t, x, c(0))
	v.v("fsub 4s", n, t, c(1))
	v.v("fmls 4s", x, n, c(2))
	v.v("fmls 4s", x, n, c(3))
	from, to := p, next
	v.mov(p, c(4))
	for _, k := range []int{5, 6, 7, 8, 9, 9} {
		v.mov(to, c(k))
		v.v("fmla 4s", to, from, x)
		from, to = to, from
	}
	v.v("shl 4s by 23", t, t)
	v.v("add 4s", p, p, t)
	v.v("bic 16b", p, p, less)
	v.v("bif 16b", p, x, ordered) // the integer addition spoils a NaN
}

// full computes p = exp(x) for every x, using v8 too.
func (v neonExp) full(x, p int) {
	const over = 8
	v.v("fcmgt 4s", over, x, expFirst+11)
	v.emit(x, p)
	v.v("bit 16b", p, expInf, over)
}

// silu computes v0 = silu(v0), using v2 to v9.
func (v neonExp) silu() {
	v.v("fneg 4s", 9, 0)
	v.full(9, 2)
	v.v("fadd 4s", 2, 2, expFirst+9)
	v.v("fdiv 4s", 0, 0, 2)
}

// emitSumSquaresNEON keeps 32 float64 lanes in v0 to v15 and folds them by halves.
func emitSumSquaresNEON(f *File) {
	v := neon{f.Func("sumSquaresNEON", "out *float64, x *float32, n int, tail *float32",
		"sumSquaresNEON: out = Σ x², the bits of sumSquares; tail is a copy of the last n%32 elements, zeros after them up to 32.")}
	v.Load("x", "R1")
	v.Load("n", "R2")
	for i := range 16 {
		v.zero(i)
	}
	group := func() {
		for i := range 8 {
			x, lo, hi := 16+i%4, 20+i%4, 24+i%4
			v.ldr("q", x, "R1", 16*i)
			v.v("fcvtl 2d 2s", lo, x)
			v.v("fcvtl2 2d 4s", hi, x)
			v.v("fmla 2d", 2*i, lo, lo)
			v.v("fmla 2d", 2*i+1, hi, hi)
		}
	}
	loop, tail := v.NewLabel("loop"), v.NewLabel("tail")
	v.Label(loop)
	v.Op("CMP", Imm(32), "R2")
	v.Op("BLT", tail)
	group()
	v.add(128, "R1")
	v.Op("SUB", Imm(32), "R2")
	v.Op("B", loop)
	v.Label(tail)
	v.Load("tail", "R1")
	group()
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			v.v("fadd 2d", i, i, i+n)
		}
	}
	v.v("faddp d 2d", 0, 0)
	v.Load("out", "R0")
	v.str("d", 0, "R0", 0)
	v.Ret()
}

// emitRopeNEON emits the rotation of the pairs (i, i+half), or (2i, 2i+1).
func emitRopeNEON(f *File, neox bool) {
	name, pairs := "ropeNormNEON", "(2i, 2i+1)"
	if neox {
		name, pairs = "ropeNeoxNEON", "(i, i+half)"
	}
	v := neon{f.Func(name, ropeParams, name+" turns the pairs "+pairs+" of each head.")}
	v.Load("x", "R0")
	v.Load("heads", "R1")
	v.Load("headDim", "R2")
	v.Load("half", "R3")
	head := v.NewLabel("head")
	v.Label(head)
	v.Op("MOVD", "R0", "R4")
	v.Op("ADD", "R3<<2", "R0", "R5")
	v.Load("cos", "R6")
	v.Load("sin", "R7")
	v.Op("MOVD", "R3", "R8")
	v.fours("R8", func(lanes int) {
		width, bytes := "q", 16
		if lanes == 1 {
			width, bytes = "s", 4
		}
		second, at := "R5", 0 // of a pair
		if !neox {
			second, at = "R4", 4
		}
		if !neox && lanes == 4 {
			v.ld2(0, "R4")
		} else {
			v.ldr(width, 0, "R4", 0)
			v.ldr(width, 1, second, at)
		}
		v.ldr(width, 2, "R6", 0)
		v.ldr(width, 3, "R7", 0)
		v.v("fmul 4s", 4, 0, 2)
		v.v("fmul 4s", 5, 1, 3)
		v.v("fmul 4s", 6, 0, 3)
		v.v("fmul 4s", 7, 1, 2)
		v.v("fsub 4s", 4, 4, 5)
		v.v("fadd 4s", 5, 6, 7)
		if !neox && lanes == 4 {
			v.st2(4, "R4")
		} else {
			v.str(width, 4, "R4", 0)
			v.str(width, 5, second, at)
		}
		if neox {
			v.add(bytes, "R4")
			v.add(bytes, "R5")
		} else {
			v.add(2*bytes, "R4")
		}
		v.add(bytes, "R6")
		v.add(bytes, "R7")
	})
	v.Op("ADD", "R2<<2", "R0", "R0")
	v.countdown(1, "R1", head)
	v.Ret()
}
