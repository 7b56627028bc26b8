// Package simd holds the hot kernels of the CPU backend behind one function table per instruction set.
//
// A kernel has a contract (x.go), a readable portable twin (x_generic.go) and, where it pays, generated assembly
// (x_amd64.s, written by the emitter in internal/simd/asm). All sets compute the same function; within one set the bits
// of an output element depend on its own inputs alone, never on how many rows, tokens or workers take part.
//
// The tag purego builds the portable set only. MINFER_NO_AVX512, MINFER_NO_AVX2 and MINFER_NO_NEON (any non-empty
// value) take a set away at run time.
package simd

import (
	"os"
	"sync"
)

// ISA names an instruction set level that has kernels here.
type ISA uint8

// The levels, slowest first.
const (
	Generic ISA = iota // portable Go
	AVX2               // amd64: AVX2, FMA, F16C
	AVX512             // amd64: AVX-512 F, BW, DQ, VL and VNNI
	NEON               // arm64: NEON with SDOT
)

// String is the name that reports and logs show.
func (i ISA) String() string {
	switch i {
	case Generic:
		return "portable"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512-vnni"
	case NEON:
		return "neon-sdot"
	}
	return "unknown"
}

// A Set is the function table of one instruction set. It is immutable and safe for concurrent use.
type Set struct {
	ISA  ISA
	Vec  // element-wise work, norms, rotary embedding, conversions
	Attn // attention over KV cells
	Mat  // packed matrix products
}

func newSet(isa ISA) *Set {
	return &Set{ISA: isa, Vec: vecFor(isa), Attn: attnFor(isa), Mat: matFor(isa)}
}

// Usable lists the sets that this machine and environment allow, fastest first; the portable set is always last.
func Usable() []*Set {
	var sets []*Set
	for _, isa := range available() {
		sets = append(sets, newSet(isa))
	}
	return append(sets, newSet(Generic))
}

// Best is the fastest usable set. The environment is read once, at the first call.
var Best = sync.OnceValue(func() *Set { return Usable()[0] })

// disabled reports whether an environment switch such as MINFER_NO_AVX512 is set.
func disabled(name string) bool { return os.Getenv(name) != "" }
