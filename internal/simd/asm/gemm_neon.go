package main

import "fmt"

func init() {
	generators = append(generators, generator{base: "gemm_neon_arm64", tags: "arm64 && !purego", emit: emitGemmNEON})
}

// tileNEON is the tokens in a group of activations for NEON: their running sums of 16 rows take half of the registers.
const tileNEON = 4

// quads is the vector registers that hold a number of each row of a panel.
const quads = panelRows / 4

// SDOT multiplies signed bytes. Codes up to 63 are signed as they are; codes of 8 bits become signed by a flip of their
// top bit, and their sums start from zero instead of −128Σq.
func emitGemmNEON(f *File) {
	for w := 1; w <= tileNEON; w++ {
		for _, class := range []string{"Block", "Bytes", "Min", "Half", "Q2"} {
			gemmNEON(f, class, w)
		}
		gemmFloatNEON(f, w)
	}
}

// A gemmN emits a kernel for expanded records.
//
//	R0 dst  R1 bytes from token to token  R2 records  R3 activations  R4 records left  R5 start words  R6 rows
//	R7 0 to continue the sums in dst  R8 place in dst
//
// The running sum of token t and rows 4q to 4q+3 is v(4t+q). A word of all tokens is one vector that ends with its
// array, so that nothing behind a record is read: token t has element 4−w+t.
type gemmN struct {
	neon
	class string
	w     int
}

func beginNEON(f *File, class string, w int) gemmN {
	name := fmt.Sprintf("dotNEON%sx%d", class, w)
	doc := name + " is dotGeneric for a group of " + fmt.Sprint(w) + "; rows says how many rows dst has, start counts bytes."
	g := gemmN{neon{f.Func(name, gemmParams, doc)}, class, w}
	for _, p := range [][2]string{
		{"dst", "R0"}, {"stride", "R1"}, {"records", "R2"}, {"acts", "R3"}, {"count", "R4"}, {"start", "R5"}, {"rows", "R6"}, {"first", "R7"},
	} {
		g.Load(p[0], p[1])
	}
	g.Op("LSL", "$2", "R1")
	g.Op("ADD", "R3", "R5")
	g.Op("SUB", Imm(4*(tileNEON-w)), "R5")
	return g
}

// each emits the visit of every token's row of dst, R8.
func (g gemmN) each(visit func(t int)) {
	g.Op("MOVD", "R0", "R9")
	for t := range g.w {
		g.Op("MOVD", "R9", "R8")
		visit(t)
		g.Op("ADD", "R1", "R9")
	}
}

// begin makes the running sums zero, or loads them.
func (g gemmN) begin() {
	begun := g.NewLabel("begun")
	for t := range g.w {
		for q := range quads {
			g.clear(g.sum(t, q))
		}
	}
	g.Op("CBNZ", "R7", begun)
	g.each(func(t int) { g.loadRows(g.sum(t, 0), 31, "R8", "R6") })
	g.Label(begun)
}

// end stores the running sums.
func (g gemmN) end() {
	g.each(func(t int) { g.storeRows(g.sum(t, 0), "R8", "R6") })
	g.Ret()
}

func (g gemmN) sum(t, q int) int { return 4*t + q }

// lane is the place of token t in a vector of words.
func (g gemmN) lane(t int) int { return tileNEON - g.w + t }

// words loads a word array of the record.
func (g gemmN) words(v, array int) {
	g.ldur(v, "R3", g.w*blockInputs+4*g.w*array-4*(tileNEON-g.w))
}

// numbers loads rows 4q to 4q+3 of vector i behind the codes of the record.
func (g gemmN) numbers(v, i, q int) { g.ldr("q", v, "R2", codeBytes+i*vector+16*q) }

// gemmNEON emits the product of a panel's expanded records with a group of w tokens. Where the halves of a block have
// one scale, all codes of the group stay in registers,
//
//	v16 to v23 codes of the activations  v24 to v27 integer sums  v28, v29 codes of the weights  v30 d  v31 start words
//
// otherwise those of half a block do:
//
//	v16 to v19 codes of the activations  v20 to v27 integer sums  v28, v29 codes of the weights  v30 d  v31 start words
func gemmNEON(f *File, class string, w int) {
	g := beginNEON(f, class, w)
	g.begin()
	if class == "Bytes" {
		g.constant(31, 0x80808080)
	}
	loop := g.NewLabel("loop")
	g.Label(loop)
	g.words(30, wordScale)
	g.minima()
	form := class
	switch class {
	case "Half", "Q2":
		for q := range quads {
			g.halves(q)
		}
	default:
		if class == "Bytes" {
			form = "Block"
		}
		for t := range w {
			g.ldr("q", 16+2*t, "R3", blockInputs*t)
			g.ldr("q", 17+2*t, "R3", blockInputs*t+16)
		}
		if class == "Block" {
			g.ldur(31, "R5", 0)
		}
		for q := range quads {
			g.whole(q)
		}
	}
	g.add(recordBytes(form), "R2")
	g.add(w*actBytes, "R3")
	g.add(w*actBytes, "R5")
	g.countdown(1, "R4", loop)
	g.end()
}

// minima adds the minima times the sums of the block's activations.
func (g gemmN) minima() {
	switch g.class {
	case "Min":
		g.words(31, wordSum)
		for q := range quads {
			g.numbers(28+q%2, 1, q)
			for t := range g.w {
				g.element("fmla", g.sum(t, q), 28+q%2, g.lane(t), 31)
			}
		}
	case "Q2":
		for half, array := range []int{wordLow32, wordHigh32} {
			g.words(28+half, array)
			g.v("scvtf 4s", 28+half, 28+half)
			g.v("fmul 4s", 28+half, 28+half, 30)
		}
		for q := range quads {
			for half := range 2 {
				g.numbers(24+half, 2+half, q)
				for t := range g.w {
					g.element("fmla", g.sum(t, q), 24+half, g.lane(t), 28+half)
				}
			}
		}
	}
}

// whole emits rows 4q to 4q+3 of a block with one scale.
func (g gemmN) whole(q int) {
	for t := range g.w {
		if g.class == "Block" {
			g.element("dup", 24+t, 31, g.lane(t))
		} else {
			g.clear(24 + t)
		}
	}
	for i := range groups {
		codes := 28 + i%2
		g.ldr("q", codes, "R2", i*vector+16*q)
		if g.class == "Bytes" {
			g.v("eor 16b", codes, codes, 31)
		}
		for t := range g.w {
			g.sdot(24+t, codes, 16+2*t+i/4, i%4)
		}
	}
	g.numbers(28, 0, q)
	for t := range g.w {
		g.v("scvtf 4s", 24+t, 24+t)
		g.v("fmul 4s", 24+t, 24+t, 28)
		g.element("fmla", g.sum(t, q), 24+t, g.lane(t), 30)
	}
}

// halves emits rows 4q to 4q+3 of a block with two scales.
func (g gemmN) halves(q int) {
	for half, array := range []int{wordLow32, wordHigh32} {
		sums := 20 + 4*half
		if g.class == "Half" {
			g.words(31, array)
		}
		for t := range g.w {
			g.ldr("q", 16+t, "R3", blockInputs*t+16*half)
			if g.class == "Half" {
				g.element("dup", sums+t, 31, g.lane(t))
			} else {
				g.clear(sums + t)
			}
		}
		for i := range groups / 2 {
			codes := 28 + i%2
			g.ldr("q", codes, "R2", (4*half+i)*vector+16*q)
			for t := range g.w {
				g.sdot(sums+t, codes, 16+t, i)
			}
		}
	}
	g.numbers(28, 0, q)
	g.numbers(29, 1, q)
	for t := range g.w {
		low, high := 20+t, 24+t
		g.v("scvtf 4s", low, low)
		g.v("scvtf 4s", high, high)
		g.v("fmul 4s", low, low, 28)
		g.v("fmla 4s", low, high, 29)
		g.element("fmla", g.sum(t, q), low, g.lane(t), 30)
	}
}

// gemmFloatNEON emits the product of float records: v16 to v23 weights of two inputs, v24 and on four inputs of a token.
func gemmFloatNEON(f *File, w int) {
	g := beginNEON(f, "Float", w)
	g.begin()
	loop := g.NewLabel("loop")
	g.Label(loop)
	for i := range floatUnit {
		if i%4 == 0 {
			for t := range w {
				g.ldr("q", 24+t, "R3", 4*(t*floatUnit+i))
			}
		}
		for q := range quads {
			weights := 16 + i%2*4 + q
			g.ldr("q", weights, "R2", i*vector+16*q)
			for t := range w {
				g.element("fmla", g.sum(t, q), weights, i%4, 24+t)
			}
		}
	}
	g.add(floatUnit*vector, "R2")
	g.add(w*4*floatUnit, "R3")
	g.countdown(1, "R4", loop)
	g.end()
}
