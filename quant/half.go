package quant

import "math"

// F16ToF32 returns the value of an IEEE 754 binary16 number. Every finite value and infinity is exact; a NaN keeps its
// sign and payload and becomes quiet, as conversion instructions do.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent := uint32(h>>10) & 0x1f
	mantissa := uint32(h) & 0x3ff
	switch exponent {
	case 0: // zero or subnormal: mantissa × 2⁻²⁴
		const ulp = 1.0 / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)*ulp))
	case 0x1f:
		if mantissa == 0 {
			return math.Float32frombits(sign | 0x7f800000)
		}
		return math.Float32frombits(sign | 0x7fc00000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | mantissa<<13)
}

// F32ToF16 rounds f to the nearest IEEE 754 binary16 number, ties to even. Values beyond the largest finite number
// become infinite; a NaN keeps its sign and the high bits of its payload and becomes quiet.
func F32ToF16(f float32) uint16 {
	const (
		inf32       = 0x7f800000
		smallest16  = 0x38800000 // 2⁻¹⁴, the smallest normal binary16 number
		overflow16  = 0x47800000 // 2¹⁶; the range below it that rounds up to infinity carries there by itself
		biasAdjust  = (127 - 15) << 23
		droppedBits = 23 - 10
	)
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	magnitude := bits &^ (1 << 31)
	switch {
	case magnitude > inf32:
		return sign | 0x7e00 | uint16(magnitude>>droppedBits)&0x3ff
	case magnitude >= overflow16:
		return sign | 0x7c00
	case magnitude >= smallest16:
		even := magnitude >> droppedBits & 1
		return sign | uint16((magnitude-biasAdjust+1<<(droppedBits-1)-1+even)>>droppedBits)
	}
	// The unit in the last place of 0.5 is 2⁻²⁴, that of the subnormal binary16 numbers: adding rounds to it.
	const half = 0x3f000000
	rounded := math.Float32bits(math.Float32frombits(magnitude) + math.Float32frombits(half))
	return sign | uint16(rounded-half)
}

// BF16ToF32 returns the value of a bfloat16 number, which is the high half of a float32.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// F32ToBF16 rounds f to the nearest bfloat16 number, ties to even. A NaN keeps its sign and the high bits of its
// payload and becomes quiet.
func F32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&^(1<<31) > 0x7f800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
