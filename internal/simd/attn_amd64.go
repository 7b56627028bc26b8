//go:build amd64 && !purego

package simd

func accelerateAttn(isa ISA, a *Attn) {
	var asm *attnASM
	odd := a.kern
	a.odd = &odd
	switch isa {
	case AVX512:
		a.kern.queries, a.kern.small = 6, 7
		asm = &attnASM{
			scores: attnScoresF32AVX512, scoresHalf: attnScoresF16AVX512,
			values: attnValuesF32AVX512, valuesHalf: attnValuesF16AVX512,
			gather: attnGatherTileF32AVX512, gatherHalf: attnGatherTileF16AVX512,
			pair: attnGatherPairF32AVX512, pairHalf: attnGatherPairF16AVX512,
			softmax: attnSoftmaxAVX512, axpby: axpbyAVX512, scale: scaleAVX512, widen: f16ToF32AVX512,
			scoresQ8: attnScoresQ8AVX512, valuesQ8: attnValuesQ8AVX512, packedQ8: 5,
			widenKeys: attnWidenKeysAVX512, widenValues: attnWidenValuesAVX512,
		}
	case AVX2:
		a.kern.queries, a.kern.small = 6, 6
		asm = &attnASM{
			scores: attnScoresF32AVX2, scoresHalf: attnScoresF16AVX2,
			values: attnValuesF32AVX2, valuesHalf: attnValuesF16AVX2,
			gather: attnGatherTileF32AVX2, gatherHalf: attnGatherTileF16AVX2,
			softmax: attnSoftmaxAVX2, axpby: axpbyAVX2, scale: scaleAVX2, widen: f16ToF32AVX2,
			scoresQ8: attnScoresQ8AVX2, valuesQ8: attnValuesQ8AVX2, packedQ8: 2,
			widenKeys: attnWidenKeysAVX2, widenValues: attnWidenValuesAVX2,
		}
	default:
		return
	}
	asm.install(&a.kern)
}

// narrow is F32ToF16 of a set, called without indirection so that its arguments may live on the stack.
func narrow(isa ISA, dst []uint16, src []float32) {
	switch n := len(src); {
	case isa == AVX512 && n > 0:
		f32ToF16AVX512(&dst[:n][0], &src[0], n)
	case isa == AVX2 && n > 0 && n%lanesAVX2 == 0:
		f32ToF16AVX2(&dst[:n][0], &src[0], n)
	default:
		f32ToF16Generic(dst, src)
	}
}

// encodeQ8 is encodeQ8Generic of a set.
func encodeQ8(isa ISA, dst []byte, x []float32) {
	n := len(x) / BlockLen
	if isa == Generic || n == 0 {
		encodeQ8Generic(dst, x)
		return
	}
	_ = dst[n*kvBlockBytes-1]
	attnEncodeQ8AVX2(&dst[0], &x[0], n)
}
