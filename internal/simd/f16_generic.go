package simd

import "github.com/minfer-go/minfer/quant"

func f32ToF16Generic(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = quant.F32ToF16(src[i])
	}
}

func f16ToF32Generic(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = quant.F16ToF32(src[i])
	}
}
