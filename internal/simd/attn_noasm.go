//go:build (!amd64 && !arm64) || purego

package simd

import (
	"encoding/binary"

	"github.com/minfer-go/minfer/quant"
)

func accelerateAttn(ISA, *Attn) {}

// narrow is F32ToF16 of a set, called without indirection so that its arguments may live on the stack.
func narrow(_ ISA, dst []uint16, src []float32) { f32ToF16Generic(dst, src) }

// encodeQ8 is encodeQ8Generic of a set.
func encodeQ8(_ ISA, dst []byte, x []float32) { encodeQ8Generic(dst, x) }

// narrowRow is F32ToF16 from src to the row of halves at the start of dst.
func narrowRow(_ ISA, dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], quant.F32ToF16(x))
	}
}
