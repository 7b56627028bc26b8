package simd

import "math"

// f16ToF32 widens an IEEE half exactly; a signalling NaN comes out quiet, as the processor's conversion gives it.
func f16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10)&0x1f, uint32(h&0x3ff)
	switch {
	case exp == 0x1f && frac != 0:
		return math.Float32frombits(sign | 0x7fc00000 | frac<<13)
	case exp == 0x1f:
		return math.Float32frombits(sign | 0x7f800000)
	case exp == 0: // zero or subnormal: frac·2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// f32ToF16 rounds to the nearest IEEE half, ties to even; a NaN is quieted and keeps the top bits of its payload.
func f32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign, b := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x477ff000: // rounds to 65536 or more
		return sign | 0x7c00
	case b < 0x38800000: // subnormal half: adding 0.5 leaves frac = |f|·2²⁴, rounded to even, in the low bits
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

func f32ToF16Generic(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = f32ToF16(src[i])
	}
}

func f16ToF32Generic(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = f16ToF32(src[i])
	}
}
