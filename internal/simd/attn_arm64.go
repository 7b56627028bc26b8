//go:build arm64 && !purego

package simd

import "unsafe"

func accelerateAttn(isa ISA, a *Attn) {
	if isa != NEON {
		return
	}
	odd := a.kern
	a.odd = &odd
	a.kern.queries, a.kern.small = 6, 6
	asm := &attnASM{
		scores: attnScoresF32NEON, scoresHalf: attnScoresF16NEON,
		values: attnValuesF32NEON, valuesHalf: attnValuesF16NEON,
		gather: gatherTileNEON, gatherHalf: gatherTileHalfNEON,
		softmax: attnSoftmaxNEON, axpby: axpbyNEON, scale: scaleNEON, widen: f16ToF32NEON,
		widenKeys: attnWidenKeysNEON, widenValues: attnWidenValuesNEON,
	}
	asm.install(&a.kern)
}

func gatherTileNEON(dst *float32, src *byte, lanes *int32, mask, hd int) {
	index := byteIndex(lanes, mask)
	attnGatherTileF32NEON(dst, src, &index[0], hd)
}

func gatherTileHalfNEON(dst *float32, src *byte, lanes *int32, mask, hd int) {
	index := byteIndex(lanes, mask)
	attnGatherTileF16NEON(dst, src, &index[0], hd)
}

// byteIndex says from which byte of a row of keys as float32 each byte of a row comes, for the lanes of mask; others stay.
func byteIndex(lanes *int32, mask int) (index [4 * KVTile]byte) {
	for i, lane := range (*[KVTile]int32)(unsafe.Pointer(lanes)) {
		for b := range 4 {
			index[4*i+b] = 0xff
			if mask>>i&1 != 0 {
				index[4*i+b] = byte(4*int(lane) + b)
			}
		}
	}
	return index
}

// narrow is F32ToF16 of a set, called without indirection so that its arguments may live on the stack.
func narrow(isa ISA, dst []uint16, src []float32) {
	if n := len(src); isa == NEON && n > 0 {
		f32ToF16NEON(&dst[:n][0], &src[0], n)
		return
	}
	f32ToF16Generic(dst, src)
}

// encodeQ8 is encodeQ8Generic of a set.
func encodeQ8(_ ISA, dst []byte, x []float32) { encodeQ8Generic(dst, x) }
