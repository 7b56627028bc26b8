//go:build (!amd64 && !arm64) || purego

package simd

func accelerateAttn(ISA, *Attn) {}

// narrow is F32ToF16 of a set, called without indirection so that its arguments may live on the stack.
func narrow(_ ISA, dst []uint16, src []float32) { f32ToF16Generic(dst, src) }

// quantizeOne is the quantization of a block of activations, as a record of one token.
func quantizeOne(_ ISA, rec *[q8Record]byte, x []float32) { quantizeGeneric(rec[:], 1, 0, x) }
