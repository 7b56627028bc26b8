package quant

// The K types: super-blocks of 256 elements in groups of 16 or 32, with a binary16 scale d (and dmin) for the
// super-block and small integer scales s (and m) for the groups.
//
//	Q2_K   sm[16] qs[64] d dmin          (d × s) × q − dmin × m     16 groups; s, m of 4 bits; 0 ≤ q < 4
//	Q3_K   hm[32] qs[64] s[12] d         (d × s) × q                16 groups; s of 6 bits;    −4 ≤ q < 4
//	Q4_K   d dmin sm[12] qs[128]         (d × s) × q − dmin × m      8 groups; s, m of 6 bits; 0 ≤ q < 16
//	Q5_K   d dmin sm[12] qh[32] qs[128]  (d × s) × q − dmin × m      8 groups; s, m of 6 bits; 0 ≤ q < 32
//	Q6_K   ql[128] qh[64] s[16] d        (d × s) × q                16 groups; s of 8 bits;    −32 ≤ q < 32

func decodeQ2_K(dst []float32, src []byte) { //nolint:revive // the format's own name
	const size = 84
	for ; len(dst) > 0; dst, src = dst[superLen:], src[size:] {
		sm, qs := src[:16], src[16:80]
		d, dmin := f16At(src[80:]), f16At(src[82:])
		// Each half of 128 elements has 32 bytes, four elements a byte, 32 apart.
		for i := range superLen {
			half, part, l := i/128, i/32%4, i%32
			q := qs[32*half+l] >> (2 * part) & 3
			scale := d * float32(sm[i/16]&15)
			minimum := dmin * float32(sm[i/16]>>4)
			dst[i] = float32(scale*float32(q)) - minimum
		}
	}
}

func decodeQ3_K(dst []float32, src []byte) { //nolint:revive // the format's own name
	const size = 110
	for ; len(dst) > 0; dst, src = dst[superLen:], src[size:] {
		hm, qs, packed, d := src[:32], src[32:96], src[96:108], f16At(src[108:])
		// The low two bits lie as in Q2_K. Bit i/32 of hm[i%32] is set where 4 is not to be subtracted.
		for i := range superLen {
			half, part, l := i/128, i/32%4, i%32
			q := int(qs[32*half+l]>>(2*part)&3) - 4 + 4*int(hm[l]>>(i/32)&1)
			scale := d * float32(scale3(packed, i/16))
			dst[i] = scale * float32(q)
		}
	}
}

// scale3 returns the signed scale of group g, 0 ≤ g < 16, of Q3_K: the low four bits are the nibbles of the first
// eight bytes, low halves first; the high two bits are packed four to a byte in the last four, byte g%4.
func scale3(packed []byte, g int) int {
	low := packed[g%8] >> (4 * (g / 8)) & 15
	high := packed[8+g%4] >> (2 * (g / 4)) & 3
	return int(low|high<<4) - 32
}

func decodeQ4_K(dst []float32, src []byte) { //nolint:revive // the format's own name
	const size = 144
	for ; len(dst) > 0; dst, src = dst[superLen:], src[size:] {
		d, dmin, packed, qs := f16At(src), f16At(src[2:]), src[4:16], src[16:144]
		// Each 32 bytes hold two groups: low nibbles, then high nibbles.
		for g := range superLen / 32 {
			s, m := scaleMin(packed, g)
			scale, minimum := d*float32(s), dmin*float32(m)
			for l, b := range qs[32*(g/2) : 32*(g/2)+32] {
				q := b >> (4 * (g % 2)) & 15
				dst[32*g+l] = float32(scale*float32(q)) - minimum
			}
		}
	}
}

func decodeQ5_K(dst []float32, src []byte) { //nolint:revive // the format's own name
	const size = 176
	for ; len(dst) > 0; dst, src = dst[superLen:], src[size:] {
		d, dmin, packed, qh, qs := f16At(src), f16At(src[2:]), src[4:16], src[16:48], src[48:176]
		// Nibbles as in Q4_K; bit g of qh[l] is bit 4 of element l of group g.
		for g := range superLen / 32 {
			s, m := scaleMin(packed, g)
			scale, minimum := d*float32(s), dmin*float32(m)
			for l, b := range qs[32*(g/2) : 32*(g/2)+32] {
				q := b>>(4*(g%2))&15 | qh[l]>>g&1<<4
				dst[32*g+l] = float32(scale*float32(q)) - minimum
			}
		}
	}
}

// scaleMin returns the 6-bit scale and minimum of group g, 0 ≤ g < 8, of Q4_K and Q5_K. The first four groups have
// theirs in the low six bits of bytes 0–3 and 4–7; the others have four bits each in bytes 8–11 (scale low, minimum
// high) and the top two in the bits that the first groups left free.
func scaleMin(packed []byte, g int) (scale, minimum uint8) {
	if g < 4 {
		return packed[g] & 63, packed[g+4] & 63
	}
	scale = packed[g+4]&15 | packed[g-4]>>6<<4
	minimum = packed[g+4]>>4 | packed[g]>>6<<4
	return scale, minimum
}

func decodeQ6_K(dst []float32, src []byte) { //nolint:revive // the format's own name
	const size = 210
	for ; len(dst) > 0; dst, src = dst[superLen:], src[size:] {
		ql, qh, scales, d := src[:128], src[128:192], src[192:208], f16At(src[208:])
		// Each half of 128 elements has 64 bytes of nibbles, elements 0–63 low and 64–127 high, and 32 bytes of
		// high bits, four elements a byte, 32 apart.
		for i := range superLen {
			half, part, l := i/128, i/32%4, i%32
			low := ql[64*half+32*(part%2)+l] >> (4 * (part / 2)) & 15
			high := qh[32*half+l] >> (2 * part) & 3
			scale := d * float32(int8(scales[i/16]))
			dst[i] = scale * float32(int(low|high<<4)-32)
		}
	}
}
