package main

import "fmt"

// attnMax is the most queries that one pass takes; blockLen the positions of a block.
const (
	attnMax  = 7
	blockLen = 64
)

// typeName is the stored type as it appears in function names.
func typeName(half bool) string {
	if half {
		return "F16"
	}
	return "F32"
}

// loadWide loads 16 stored elements as float32.
func (f *Func) loadWide(half bool, mem, z string) {
	if half {
		f.Op("VCVTPH2PS", mem, z)
	} else {
		f.Op("VMOVUPS", mem, z)
	}
}

// elem is the size of a stored element.
func elem(half bool) int {
	if half {
		return 2
	}
	return 4
}

// qRegs hold the query pointers of the score kernels, tileRegs the pointers to the block's four tiles of keys.
var (
	qRegs    = []string{"SI", "DI", "R8", "R9", "R10", "R11", "R12"}
	tileRegs = []string{"AX", "BX", "CX", "DX"}
)

// tilePointers points to n tiles of the block from first on.
func (f *Func) tilePointers(first, n int) {
	f.Load("koff", "R13")
	f.Load("k", "R15")
	for t, r := range tileRegs[:n] {
		f.Op("MOVQ", Mem("R13", 8*(first+t)), r)
		f.Op("ADDQ", "R15", r)
	}
}

// queryPointers sets the first n query pointers.
func (f *Func) queryPointers(n int) {
	f.Load("qoff", "R13")
	f.Load("q", "R14")
	for i := range n {
		f.Op("MOVQ", Mem("R13", 8*i), "R15")
		f.Op("LEAQ", MemIdx("R14", "R15", 4, 0), qRegs[i])
	}
}

// dispatch jumps to the label of the parameter n in 1..most and returns the labels, indexed by n.
func (f *Func) dispatch(most int) []string {
	labels := make([]string, most+1)
	f.Load("n", "R15")
	for n := 1; n <= most; n++ {
		labels[n] = f.NewLabel(fmt.Sprintf("n%d_", n))
		f.Op("CMPQ", "R15", Imm(n))
		f.Op("JEQ", labels[n])
	}
	f.Ret()
	return labels
}

// The half kernels read the cache itself and fetch the next block ahead, one block of cells further, into the second
// level: the first keeps too few misses in flight. (The float32 kernels mostly read a block that was brought together
// just before.)

// nextKeys points R14 to the next block's keys; R13 is the head dimension.
func (f *Func) nextKeys(half bool) {
	if half {
		f.Op("MOVQ", "R13", "R14")
		f.Op("SHLQ", Imm(7), "R14")
		f.Op("ADDQ", "AX", "R14")
	}
}

// prefetchKeys fetches the next bytes of the keys at R14.
func (f *Func) prefetchKeys(half bool, bytes int) {
	if !half {
		return
	}
	for at := 0; at < bytes; at += 64 {
		f.Op("PREFETCHT1", Mem("R14", at))
	}
	f.Op("ADDQ", Imm(bytes), "R14")
}

const valuesParams = "acc *float32, alpha *float32, p *float32, v *byte, cells *int32, n int, count int, hd int"

// valuesPointers sets DI and SI to the first slice of acc and of the values, CX to the elements left in a row, DX and BX
// to the bytes of a row of acc and of the values.
func (f *Func) valuesPointers(half bool) {
	f.Load("acc", "DI")
	f.Load("v", "SI")
	f.Load("hd", "CX")
	f.Op("MOVQ", "CX", "DX")
	f.Op("SHLQ", Imm(2), "DX")
	f.Op("MOVQ", "CX", "BX")
	if half {
		f.Op("ADDQ", "BX", "BX")
	} else {
		f.Op("SHLQ", Imm(2), "BX")
	}
}

// valuesSlices cuts a row of CX elements into slices of the given numbers of registers, widest first, and returns from
// the function; body does one slice.
func (f *Func) valuesSlices(half bool, lanes int, widths []int, body func(width int)) {
	for w, width := range widths {
		slice, next := f.NewLabel("slice"), f.NewLabel("next")
		f.Label(slice)
		f.Op("CMPQ", "CX", Imm(lanes*width))
		f.Op("JLT", next)
		body(width)
		f.Op("ADDQ", Imm(4*lanes*width), "DI")
		f.Op("ADDQ", Imm(elem(half)*lanes*width), "SI")
		f.Op("SUBQ", Imm(lanes*width), "CX")
		if w == 0 {
			f.Op("JMP", slice)
		}
		f.Label(next)
	}
	f.Op("VZEROUPPER")
	f.Ret()
}

// valuesRows runs body with R9 at each of the n rows of the slice of acc, and R8 at alpha.
func (f *Func) valuesRows(n int, body func(i int)) {
	f.Load("alpha", "R8")
	f.Op("MOVQ", "DI", "R9")
	for i := range n {
		body(i)
		if i < n-1 {
			f.Op("ADDQ", "DX", "R9")
		}
	}
}

// valuesLoop runs body for each position, with R12 at its slice of the values and R8 at its weight in the first row;
// the slice has the given bytes.
func (f *Func) valuesLoop(half bool, bytes int, body func()) {
	f.Load("p", "R8")
	f.Load("cells", "R10")
	f.Load("count", "R11")
	if half {
		f.Op("MOVQ", "BX", "R14")
		f.Op("SHLQ", Imm(6), "R14")
	}
	loop := f.NewLabel("loop")
	f.Label(loop)
	f.Op("MOVLQSX", Mem("R10", 0), "R12")
	f.Op("IMULQ", "BX", "R12")
	f.Op("ADDQ", "SI", "R12")
	if half {
		for at := 0; at < bytes; at += 64 {
			f.Op("PREFETCHT1", MemIdx("R12", "R14", 1, at))
		}
	}
	body()
	f.Op("ADDQ", Imm(4), "R8")
	f.Op("ADDQ", Imm(4), "R10")
	f.Op("SUBQ", Imm(1), "R11")
	f.Op("JNZ", loop)
}

const softmaxParams = "s *float32, m *float32, sum *float32, alpha *float32, lo *int32, hi *int32, n int, scale float32"

// rowMax takes the maximum of X0 and X1, stores the new running maximum at DI and the old less it at R8; negMax is the
// operand of the smallest finite number, which keeps -Inf - -Inf from making NaN.
func (f *Func) rowMax(negMax string) {
	f.Op("VMAXPS", X(0), X(1), X(0))
	f.Op("VPERMILPS", Imm(0x4e), X(0), X(1))
	f.Op("VMAXPS", X(0), X(1), X(0))
	f.Op("VPERMILPS", Imm(0xb1), X(0), X(1))
	f.Op("VMAXPS", X(0), X(1), X(0))
	f.Op("VMOVSS", Mem("DI", 0), X(1))
	f.Op("VMAXSS", X(0), X(1), X(0))
	f.Op("VMOVSS", X(0), Mem("DI", 0))
	f.Op("VMAXSS", negMax, X(0), X(0))
	f.Op("VSUBSS", X(0), X(1), X(1))
	f.Op("VMOVSS", X(1), Mem("R8", 0))
}
