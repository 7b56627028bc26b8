//go:build (!amd64 && !arm64) || purego

package simd

func accelerateAttn(ISA, *Attn) {}

// narrow is F32ToF16 of a set, called without indirection so that its arguments may live on the stack.
func narrow(_ ISA, dst []uint16, src []float32) { f32ToF16Generic(dst, src) }

// encodeQ8 is encodeQ8Generic of a set.
func encodeQ8(_ ISA, dst []byte, x []float32) { encodeQ8Generic(dst, x) }
