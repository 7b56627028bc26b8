package quant

import "encoding/binary"

// The simple types: 32 elements with one binary16 scale d, and for the "_1" types a binary16 minimum m.
//
//	Q4_0   d qs[16]         d × (q − 8)     0 ≤ q < 16
//	Q4_1   d m qs[16]       d × q + m       0 ≤ q < 16
//	Q5_0   d qh[4] qs[16]   d × (q − 16)    0 ≤ q < 32
//	Q5_1   d m qh[4] qs[16] d × q + m       0 ≤ q < 32
//	Q8_0   d qs[32]         d × q           −128 ≤ q < 128
//
// Byte j of a nibble array holds element j in its low and element j+16 in its high half. Bit j of the little-endian
// word qh is bit 4 of element j.
const (
	simpleLen = 32
	halfLen   = simpleLen / 2
)

func decodeQ4_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[simpleLen:], src[2+halfLen:] {
		d := f16At(src)
		for j, b := range src[2 : 2+halfLen] {
			dst[j] = d * float32(int(b&15)-8)
			dst[j+halfLen] = d * float32(int(b>>4)-8)
		}
	}
}

func decodeQ4_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[simpleLen:], src[4+halfLen:] {
		d, m := f16At(src), f16At(src[2:])
		for j, b := range src[4 : 4+halfLen] {
			// The conversions round the product, so that no machine fuses it with the sum.
			dst[j] = float32(d*float32(b&15)) + m
			dst[j+halfLen] = float32(d*float32(b>>4)) + m
		}
	}
}

func decodeQ5_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[simpleLen:], src[6+halfLen:] {
		d, qh := f16At(src), binary.LittleEndian.Uint32(src[2:])
		for j, b := range src[6 : 6+halfLen] {
			lo, hi := fiveBits(b, qh, j)
			dst[j] = d * float32(lo-16)
			dst[j+halfLen] = d * float32(hi-16)
		}
	}
}

func decodeQ5_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[simpleLen:], src[8+halfLen:] {
		d, m, qh := f16At(src), f16At(src[2:]), binary.LittleEndian.Uint32(src[4:])
		for j, b := range src[8 : 8+halfLen] {
			lo, hi := fiveBits(b, qh, j)
			dst[j] = float32(d*float32(lo)) + m
			dst[j+halfLen] = float32(d*float32(hi)) + m
		}
	}
}

// fiveBits joins the nibbles of b, byte j of a block, with their bits 4 in qh: elements j and j+16.
func fiveBits(b byte, qh uint32, j int) (lo, hi int) {
	return int(b&15) | int(qh>>j&1)<<4, int(b>>4) | int(qh>>(j+halfLen)&1)<<4
}

func decodeQ8_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[simpleLen:], src[2+simpleLen:] {
		d := f16At(src)
		for j, b := range src[2 : 2+simpleLen] {
			dst[j] = d * float32(int8(b))
		}
	}
}
