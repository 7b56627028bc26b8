package main

import "fmt"

func init() {
	generators = append(generators, generator{base: "attn_neon_arm64", tags: "arm64 && !purego", emit: func(f *File) {
		for _, half := range []bool{false, true} {
			emitScoresNEON(f, half)
			emitValuesNEON(f, half)
			emitGatherTileNEON(f, half)
		}
		emitSoftmaxNEON(f)
		emitAxpbyNEON(f)
		emitWidenNEON(f)
	}})
}

// attnMaxNEON is the most queries that one pass takes.
const attnMaxNEON = 6

// loadPair loads 8 stored elements as float32 into a and b.
func (f neon) loadPair(half bool, a, b int, base string, disp int) {
	if half {
		f.ldr("q", a, base, disp)
		f.v("fcvtl2 4s 8h", b, a)
		f.v("fcvtl 4s 4h", a, a)
		return
	}
	f.ldr("q", a, base, disp)
	f.ldr("q", b, base, disp+16)
}

// dispatch jumps to the label of the parameter n in 1..attnMaxNEON and returns the labels, indexed by n.
func (f neon) dispatch() []string {
	labels := make([]string, attnMaxNEON+1)
	f.Load("n", "R15")
	for n := 1; n <= attnMaxNEON; n++ {
		labels[n] = f.NewLabel(fmt.Sprintf("n%d_", n))
		f.Op("CMP", Imm(n), "R15")
		f.Op("BEQ", labels[n])
	}
	f.Ret()
	return labels
}

func emitScoresNEON(f *File, half bool) {
	name := "attnScores" + typeName(half) + "NEON"
	v := neon{f.Func(name, "s *float32, k *byte, q *float32, koff *int, qoff *int, n int, hd int",
		name+" stores the scores of n <= 6 queries, hd a multiple of 16, against a block: s [n][64]. koff gives the byte offsets\n"+
			"of the block's four tiles from k, qoff the element offsets of the queries from q.")}
	labels := v.dispatch()
	for n := 1; n <= attnMaxNEON; n++ {
		v.Label(labels[n])
		tiles := 1 // of a pass
		switch n {
		case 1:
			tiles = 4
		case 2, 3:
			tiles = 2
		}
		for first := 0; first < 4; first += tiles {
			v.scoresPass(half, n, first, tiles)
		}
		v.Ret()
	}
}

// scoresPass does n queries over the tiles from first on. Four elements of every query stay in registers while the keys
// pass.
func (f neon) scoresPass(half bool, n, first, tiles int) {
	tile := []string{"R10", "R11", "R12", "R13"}[:tiles]
	query := []string{"R2", "R3", "R4", "R5", "R6", "R7"}[:n]
	f.Load("koff", "R8")
	f.Load("k", "R9")
	for t, r := range tile {
		f.Op("MOVD", Mem("R8", 8*(first+t)), r)
		f.Op("ADD", "R9", r)
	}
	f.Load("qoff", "R8")
	f.Load("q", "R9")
	for i, r := range query {
		f.Op("MOVD", Mem("R8", 8*i), r)
		f.Op("ADD", r+"<<2", "R9", r)
	}
	f.Load("hd", "R14")
	parts := 4 * tiles // registers of scores of a query
	acc := func(i, p int) int { return parts*i + p }
	elements := func(i int) int { return parts*n + i }
	spare := parts*n + n
	for i := range parts * n {
		f.zero(i)
	}
	const unroll = 4
	step := 16 * elem(half)
	loop := f.NewLabel("loop")
	f.Label(loop)
	for i, r := range query {
		f.ldr("q", elements(i), r, 0)
		f.add(16, r)
	}
	pair := 0
	for u := range unroll {
		for t, r := range tile {
			for h := range 2 {
				key := spare + 2*(pair%((32-spare)/2))
				pair++
				f.loadPair(half, key, key+1, r, u*step+h*step/2)
				for i := range n {
					f.element("fmla", acc(i, 4*t+2*h), key, u, elements(i))
					f.element("fmla", acc(i, 4*t+2*h+1), key+1, u, elements(i))
				}
			}
		}
	}
	for _, r := range tile {
		f.add(unroll*step, r)
	}
	f.countdown(unroll, "R14", loop)
	f.Load("s", "R8")
	for i := range n {
		for p := range parts {
			f.str("q", acc(i, p), "R8", 4*blockLen*i+64*first+16*p)
		}
	}
}

func emitValuesNEON(f *File, half bool) {
	name := "attnValues" + typeName(half) + "NEON"
	v := neon{f.Func(name, valuesParams,
		name+" scales the n <= 6 rows of acc [n][hd] by alpha and adds p[i][j] times the value row cells[j] of v, for j < count in\n"+
			"order; the rows of p are 64 apart. hd is a multiple of 16, count at least 1.")}
	v.Load("acc", "R0")
	v.Load("v", "R1")
	v.Load("hd", "R2")
	v.Op("LSL", Imm(2), "R2", "R3") // bytes of a row of acc
	v.Op("LSL", Imm(elem(half)/2), "R2", "R4")
	labels := v.dispatch()
	for n := 1; n <= attnMaxNEON; n++ {
		v.Label(labels[n])
		widths := []int{4}
		switch n {
		case 1:
			widths = []int{16, 8, 4}
		case 2, 3:
			widths = []int{8, 4}
		}
		for w, width := range widths {
			slice, next := v.NewLabel("slice"), v.NewLabel("next")
			v.Label(slice)
			v.Op("CMP", Imm(4*width), "R2")
			v.Op("BLT", next)
			v.valuesSlice(half, n, width)
			v.add(16*width, "R0")
			v.add(4*elem(half)*width, "R1")
			v.Op("SUB", Imm(4*width), "R2")
			if w == 0 {
				v.Op("B", slice)
			}
			v.Label(next)
		}
		v.Ret()
	}
}

// valuesSlice does n rows of 4·width elements at R0 (acc) and R1 (values).
func (f neon) valuesSlice(half bool, n, width int) {
	acc := func(i, t int) int { return width*i + t }
	weight := func(i int) int { return width*n + i }
	spare := width*n + n
	rows := func(body func(i int)) {
		f.Op("MOVD", "R0", "R6")
		for i := range n {
			body(i)
			if i < n-1 {
				f.Op("ADD", "R3", "R6")
			}
		}
	}
	f.Load("alpha", "R5")
	rows(func(i int) {
		f.ldr("s", weight(i), "R5", 4*i)
		for t := range width {
			f.ldr("q", acc(i, t), "R6", 16*t)
			f.element("fmul", acc(i, t), acc(i, t), 0, weight(i))
		}
	})
	f.Load("p", "R7")
	f.Load("cells", "R8")
	f.Load("count", "R9")
	loop := f.NewLabel("loop")
	f.Label(loop)
	f.Op("MOVW", Mem("R8", 0), "R10")
	f.Op("MUL", "R4", "R10")
	f.Op("ADD", "R1", "R10")
	for i := range n {
		f.ldr("s", weight(i), "R7", 4*blockLen*i)
	}
	for t := 0; t < width; t += 2 {
		v := spare + t%((32-spare)/2*2)
		f.loadPair(half, v, v+1, "R10", 4*elem(half)*t)
		for i := range n {
			f.element("fmla", acc(i, t), v, 0, weight(i))
			f.element("fmla", acc(i, t+1), v+1, 0, weight(i))
		}
	}
	f.add(4, "R7")
	f.add(4, "R8")
	f.countdown(1, "R9", loop)
	rows(func(i int) {
		for t := range width {
			f.str("q", acc(i, t), "R6", 16*t)
		}
	})
}

func emitGatherTileNEON(f *File, half bool) {
	name := "attnGatherTile" + typeName(half) + "NEON"
	v := neon{f.Func(name, "dst *float32, src *byte, index *byte, hd int",
		name+" moves lanes of one tile of keys to another as float32: byte i of a row of dst becomes byte index[i] of that row of\n"+
			"src, of 64 each, and stays as it is where index[i] is above 63.")}
	v.Load("dst", "R0")
	v.Load("src", "R1")
	v.Load("index", "R2")
	v.Load("hd", "R3")
	for i := range 4 {
		v.ldr("q", 16+i, "R2", 16*i)
	}
	loop := v.NewLabel("loop")
	v.Label(loop)
	for i := range 2 {
		v.loadPair(half, 2*i, 2*i+1, "R1", 8*elem(half)*i)
	}
	for i := range 4 {
		v.ldr("q", 4+i, "R0", 16*i)
		v.v("tbx 16b from4", 4+i, 0, 16+i)
		v.str("q", 4+i, "R0", 16*i)
	}
	v.add(16*elem(half), "R1")
	v.add(64, "R0")
	v.countdown(1, "R3", loop)
	v.Ret()
}

func emitSoftmaxNEON(f *File) {
	v := neonExp{neon{f.Func("attnSoftmaxNEON", softmaxParams,
		"attnSoftmaxNEON does for n <= 8 rows of s [n][64] what the contract of softmax says.")}}
	const scale, negInf, negMax, first, four = 28, 29, 30, 31, 15
	v.constants("R7")
	v.LoadFloat("scale", scale)
	constant := func(name string, reg int, words ...uint32) {
		v.table(f.Data32(name, words...), "R7")
		v.ldr("q", reg, "R7", 0)
	}
	constant("negInf4", negInf, 0xff800000, 0xff800000, 0xff800000, 0xff800000)
	constant("negMax4", negMax, 0xff7fffff, 0xff7fffff, 0xff7fffff, 0xff7fffff)
	constant("firstFour", first, 0, 1, 2, 3)
	constant("four4", four, 4, 4, 4, 4)
	for i, name := range []string{"s", "m", "sum", "alpha", "lo", "hi", "n"} {
		v.Load(name, fmt.Sprintf("R%d", i))
	}
	row := v.NewLabel("row")
	v.Label(row)
	v.Comment("Scale, mask and take the maximum.")
	const lo, hi, position, top = 10, 11, 12, 13
	v.Op("MOVW", Mem("R4", 0), "R7")
	v.dupWord(lo, "R7")
	v.Op("MOVW", Mem("R5", 0), "R7")
	v.dupWord(hi, "R7")
	v.mov(position, first)
	v.mov(top, negInf)
	for t := range 16 {
		v.ldr("q", 0, "R0", 16*t)
		v.v("fmul 4s", 0, 0, scale)
		v.v("cmge 4s", 1, position, lo)
		v.v("cmgt 4s", 2, hi, position)
		v.v("and 16b", 1, 1, 2)
		v.v("bsl 16b", 1, 0, negInf)
		v.str("q", 1, "R0", 16*t)
		v.v("fmaxnm 4s", top, top, 1)
		v.v("add 4s", position, position, four)
	}
	v.Comment("The new maximum, and the factor of what was before.")
	const base, alpha = 10, 11
	v.v("fmaxnmv s 4s", top, top)
	v.ldr("s", 0, "R1", 0)
	v.v("fmaxnm 4s", top, top, 0)
	v.str("s", top, "R1", 0)
	v.v("fmaxnm 4s", base, top, negMax) // keeps -Inf - -Inf from making NaN
	v.v("fsub 4s", 0, 0, base)
	v.emit(0, 2)
	v.str("s", 2, "R3", 0)
	v.element("dup", base, base, 0)
	v.element("dup", alpha, 2, 0)
	v.Comment("Weights and sums.")
	for part := range 4 { // lanes of each tile
		const even, odd = 12, 13
		for tile := range 4 {
			at := 64*tile + 16*part
			v.ldr("q", 0, "R0", at)
			v.v("fsub 4s", 0, 0, base)
			v.emit(0, 2)
			v.str("q", 2, "R0", at)
			switch tile {
			case 0:
				v.mov(even, 2)
			case 1:
				v.v("fadd 4s", even, even, 2)
			case 2:
				v.mov(odd, 2)
			case 3:
				v.v("fadd 4s", odd, odd, 2)
			}
		}
		v.v("fadd 4s", even, even, odd)
		v.ldr("q", 0, "R2", 16*part)
		v.v("fmla 4s", even, 0, alpha)
		v.str("q", even, "R2", 16*part)
	}
	v.add(4*blockLen, "R0")
	v.add(64, "R2")
	for _, r := range []string{"R1", "R3", "R4", "R5"} {
		v.add(4, r)
	}
	v.countdown(1, "R6", row)
	v.Ret()
}

func emitAxpbyNEON(f *File) {
	v := neon{f.Func("axpbyNEON", "acc *float32, x *float32, n int, a float32, b float32",
		"axpbyNEON: acc = acc·a + x·b for n > 0 elements, a multiple of 4.")}
	v.Load("acc", "R0")
	v.Load("x", "R1")
	v.Load("n", "R2")
	v.LoadFloat("a", 0)
	v.LoadFloat("b", 1)
	loop := v.NewLabel("loop")
	v.Label(loop)
	v.ldr("q", 2, "R1", 0)
	v.ldr("q", 3, "R0", 0)
	v.v("fmul 4s", 2, 2, 1)
	v.v("fmla 4s", 2, 3, 0)
	v.str("q", 2, "R0", 0)
	v.add(16, "R0")
	v.add(16, "R1")
	v.countdown(4, "R2", loop)
	v.Ret()
}

// widenCodes makes float32 in v4 to v7 of the 16 codes in v16.
func (f neon) widenCodes() {
	f.v("sxtl 8h 8b", 17, 16)
	f.v("sxtl2 8h 16b", 18, 16)
	for i := range 4 {
		op := []string{"sxtl 4s 4h", "sxtl2 4s 8h"}[i%2]
		f.v(op, 4+i, 17+i/2)
		f.v("scvtf 4s", 4+i, 4+i)
	}
}

func emitWidenNEON(f *File) {
	for _, keys := range []bool{true, false} {
		name, doc, bytes := "attnWidenValuesNEON", "a row of values with 8-bit codes: dst [32·blocks].", q8RowBytes
		if keys {
			name, doc, bytes = "attnWidenKeysNEON", "a tile of keys with 8-bit codes: dst [32·blocks][16].", q8TileBytes
		}
		v := neon{f.Func(name, widenParams, name+" makes float32 of "+doc)}
		v.Load("dst", "R0")
		v.Load("src", "R1")
		v.Load("blocks", "R2")
		loop := v.NewLabel("loop")
		v.Label(loop)
		rows := q8Len * q8Cells / 16 // groups of 16 codes in a block
		if keys {
			v.loadPair(true, 0, 1, "R1", 0)
			v.loadPair(true, 2, 3, "R1", 16)
		} else {
			v.ldr("h", 0, "R1", 0)
			v.v("fcvt s h", 0, 0)
			rows = q8Len / 16
		}
		for r := range rows {
			if keys {
				v.ldr("q", 16, "R1", 2*q8Cells+16*r)
			} else {
				v.ldur(16, "R1", 2+16*r)
			}
			v.widenCodes()
			for i := range 4 {
				if keys {
					v.v("fmul 4s", 4+i, 4+i, i)
				} else {
					v.element("fmul", 4+i, 4+i, 0, 0)
				}
				v.str("q", 4+i, "R0", 64*r+16*i)
			}
		}
		v.add(bytes, "R1")
		v.add(64*rows, "R0")
		v.countdown(1, "R2", loop)
		v.Ret()
	}
}
