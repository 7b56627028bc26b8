package quant

import (
	"encoding/binary"
	"math"
)

// The encoders of the simple types. The scale is stored as binary16, but the codes are found with its float32
// reciprocal: that is what fixes the bytes.

func encodeQ4_0(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[2+halfLen:], src[simpleLen:] {
		d := signedPeak(src) / -8
		putF16(dst, d)
		packNibbles(dst[2:], quantizeBlock(src, 0, reciprocal(d), 8.5, 15))
	}
}

func encodeQ4_1(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[4+halfLen:], src[simpleLen:] {
		lo, hi := bounds(src)
		d := (hi - lo) / 15
		putF16(dst, d)
		putF16(dst[2:], lo)
		packNibbles(dst[4:], quantizeBlock(src, lo, reciprocal(d), 0.5, 15))
	}
}

func encodeQ5_0(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[6+halfLen:], src[simpleLen:] {
		d := signedPeak(src) / -16
		putF16(dst, d)
		packFives(dst[2:], quantizeBlock(src, 0, reciprocal(d), 16.5, 31))
	}
}

func encodeQ5_1(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[8+halfLen:], src[simpleLen:] {
		lo, hi := bounds(src)
		d := (hi - lo) / 31
		putF16(dst, d)
		putF16(dst[2:], lo)
		packFives(dst[4:], quantizeBlock(src, lo, reciprocal(d), 0.5, 31))
	}
}

func encodeQ8_0(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[2+simpleLen:], src[simpleLen:] {
		var peak float32
		for _, x := range src[:simpleLen] {
			peak = max(peak, float32(math.Abs(float64(x))))
		}
		d := peak / 127
		putF16(dst, d)
		inverse := reciprocal(d)
		for j, x := range src[:simpleLen] {
			// Ties away from zero.
			q := math.Round(float64(x * inverse))
			dst[2+j] = byte(int8(math.Max(-128, math.Min(127, q))))
		}
	}
}

// signedPeak returns the element of largest magnitude, the first of equals.
func signedPeak(src []float32) float32 {
	var magnitude, peak float32
	for _, x := range src[:simpleLen] {
		if a := float32(math.Abs(float64(x))); a > magnitude {
			magnitude, peak = a, x
		}
	}
	return peak
}

func bounds(src []float32) (lo, hi float32) {
	lo, hi = math.MaxFloat32, -math.MaxFloat32
	for _, x := range src[:simpleLen] {
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
	}
	return lo, hi
}

func reciprocal(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// quantizeBlock returns trunc((x − lo) × inverse + bias) of each element, at most top.
func quantizeBlock(src []float32, lo, inverse, bias float32, top uint8) (q [simpleLen]uint8) {
	for j, x := range src[:simpleLen] {
		v := float32((x-lo)*inverse) + bias
		switch {
		case v >= float32(top):
			q[j] = top
		case v > 0: // false for a NaN too
			q[j] = uint8(v)
		}
	}
	return q
}

// packNibbles writes qs[16].
func packNibbles(dst []byte, q [simpleLen]uint8) {
	for j := range halfLen {
		dst[j] = q[j]&15 | q[j+halfLen]<<4
	}
}

// packFives writes qh[4] qs[16].
func packFives(dst []byte, q [simpleLen]uint8) {
	var qh uint32
	for j, v := range q {
		qh |= uint32(v>>4) << j
	}
	binary.LittleEndian.PutUint32(dst, qh)
	packNibbles(dst[4:], q)
}
