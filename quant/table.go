package quant

import (
	"encoding/binary"
	"math"
)

// Types whose four-bit codes index a table of values.
//
//	IQ4_NL  d qs[16]                  d × value(q)               32 elements, nibbles as in Q4_0
//	IQ4_XS  d sh[2] sl[4] qs[128]     (d × (s − 32)) × value(q)  8 groups of 32, each as in IQ4_NL; s of 6 bits
//	MXFP4   e qs[16]                  2^(e−128) × value(q)       32 elements, nibbles as in Q4_0

// iq4Values is the non-linear grid of the IQ4 types.
var iq4Values = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// fp4Values are twice the values of the FP4 format E2M1 (sign, two exponent bits, one mantissa bit): the doubling
// keeps them whole and is taken back in the scale.
var fp4Values = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func decodeIQ4_NL(dst []float32, src []byte) { //nolint:revive // the format's own name
	const size = 2 + halfLen
	for ; len(dst) > 0; dst, src = dst[simpleLen:], src[size:] {
		lookupNibbles(dst, src[2:size], f16At(src), &iq4Values)
	}
}

func decodeIQ4_XS(dst []float32, src []byte) { //nolint:revive // the format's own name
	const size = 136
	for ; len(dst) > 0; dst, src = dst[superLen:], src[size:] {
		d, high, low, qs := f16At(src), binary.LittleEndian.Uint16(src[2:]), src[4:8], src[8:size]
		for g := range superLen / 32 {
			s := int(low[g/2]>>(4*(g%2))&15) | int(high>>(2*g)&3)<<4
			lookupNibbles(dst[32*g:], qs[halfLen*g:halfLen*(g+1)], d*float32(s-32), &iq4Values)
		}
	}
}

func decodeMXFP4(dst []float32, src []byte) {
	const size = 1 + halfLen
	for ; len(dst) > 0; dst, src = dst[simpleLen:], src[size:] {
		lookupNibbles(dst, src[1:size], halfE8M0(src[0]), &fp4Values)
	}
}

func lookupNibbles(dst []float32, qs []byte, scale float32, values *[16]float32) {
	for j, b := range qs {
		dst[j] = scale * values[b&15]
		dst[j+halfLen] = scale * values[b>>4]
	}
}

// halfE8M0 returns half the value of an E8M0 scale (a power of two with bias 127): 2^(e−128). Every code is taken as a
// number, 255 (a NaN in the microscaling specification) too.
func halfE8M0(e byte) float32 {
	if e < 2 { // subnormal
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}
