package simd

import "encoding/binary"

// Packers of one row of one unit: from the blocks of a file, package quant describes them, to the row's places in the
// planes that pack.go describes. dst is zeroed; src may hold fewer blocks than a unit of 64 inputs has.

func le16(b []byte) uint16        { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32        { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64        { return binary.LittleEndian.Uint64(b) }
func put16(b []byte, v uint16)    { binary.LittleEndian.PutUint16(b, v) }
func put32(b []byte, v uint32)    { binary.LittleEndian.PutUint32(b, v) }
func put64(b []byte, v uint64)    { binary.LittleEndian.PutUint64(b, v) }
func copy16(dst, src []byte)      { put16(dst, le16(src)) }
func copy32(dst, src []byte)      { put32(dst, le32(src)) }
func rowWord(row, word int) int   { return word*4*PanelRows + 4*row }
func rowScale(row, block int) int { return (block*PanelRows + row) * 2 }

// column is row × size as an index that the compiler knows to be in range of a vector.
func column(row, size int) uint { return uint(row) % PanelRows * uint(size) }

func packF32(dst, src []byte, row int) {
	to, at := (*[floatUnit * vectorBytes]byte)(dst), column(row, 4)
	for i := range uint(len(src) / 4) {
		copy32(to[at+i%floatUnit*vectorBytes:], src[4*i:])
	}
}

// packF16 serves every type of 16 bits.
func packF16(dst, src []byte, row int) {
	const line = 2 * PanelRows
	to, at := (*[floatUnit * line]byte)(dst), column(row, 2)
	if len(src) < 2*floatUnit {
		for i := range uint(len(src) / 2) {
			copy16(to[at+i%floatUnit*line:], src[2*i:])
		}
		return
	}
	from := (*[2 * floatUnit]byte)(src)
	for i := uint(0); i < floatUnit; i += 4 {
		v, out := le64(from[2*i:2*i+8]), to[at+i*line:at+i*line+3*line+2]
		put16(out[0:2], uint16(v))
		put16(out[line:line+2], uint16(v>>16))
		put16(out[2*line:2*line+2], uint16(v>>32))
		put16(out[3*line:3*line+2], uint16(v>>48))
	}
}

// packNibbles moves the 16 nibble bytes of a simple block, whose order is that of the plane.
func packNibbles(plane, qs []byte, row int) {
	to, from := (*[nibbleBytes]byte)(plane), (*[16]byte)(qs)
	at := column(row, 4)
	copy32(to[at:at+4], from[0:4])
	copy32(to[at+64:at+68], from[4:8])
	copy32(to[at+128:at+132], from[8:12])
	copy32(to[at+192:at+196], from[12:16])
}

// packBits moves the high bits of a simple block of 32: bit i belongs to input i.
func packBits(plane []byte, bits uint32, row int) {
	var word uint32
	for g := range 8 {
		word |= spread[bits>>(4*g)&15] << g
	}
	put32(plane[4*row:], word)
}

// spread[n] has bit c of n as bit 0 of byte c.
var spread = func() (table [16]uint32) {
	for n := range table {
		for c := range 4 {
			table[n] |= uint32(n>>c&1) << (8 * c)
		}
	}
	return table
}()

func packQ40(dst, src []byte, row int) {
	const size = 18
	for b := 0; len(src) > 0; b, src = b+1, src[size:] {
		copy16(dst[rowScale(row, b):], src)
		packNibbles(dst[64+b*nibbleBytes:], src[2:], row)
	}
}

func packQ41(dst, src []byte, row int) {
	const size = 20
	for b := 0; len(src) > 0; b, src = b+1, src[size:] {
		copy16(dst[rowScale(row, b):], src)
		copy16(dst[64+rowScale(row, b):], src[2:])
		packNibbles(dst[128+b*nibbleBytes:], src[4:], row)
	}
}

func packQ50(dst, src []byte, row int) {
	const size = 22
	for b := 0; len(src) > 0; b, src = b+1, src[size:] {
		copy16(dst[rowScale(row, b):], src)
		codes := dst[64+b*(nibbleBytes+bitBytes):]
		packNibbles(codes, src[6:], row)
		packBits(codes[nibbleBytes:], le32(src[2:]), row)
	}
}

func packQ51(dst, src []byte, row int) {
	const size = 24
	for b := 0; len(src) > 0; b, src = b+1, src[size:] {
		copy16(dst[rowScale(row, b):], src)
		copy16(dst[64+rowScale(row, b):], src[2:])
		codes := dst[128+b*(nibbleBytes+bitBytes):]
		packNibbles(codes, src[8:], row)
		packBits(codes[nibbleBytes:], le32(src[4:]), row)
	}
}

func packQ80(dst, src []byte, row int) {
	const size = 34
	for b := 0; len(src) > 0; b, src = b+1, src[size:] {
		copy16(dst[rowScale(row, b):], src)
		to, from := (*[byteBytes]byte)(dst[64+b*byteBytes:]), (*[BlockLen]byte)(src[2:])
		at := column(row, 4)
		for g := range uint(8) {
			put32(to[at+64*g:at+64*g+4], le32(from[4*g:4*g+4])^0x80808080)
		}
	}
}

func packMXFP4(dst, src []byte, row int) {
	const size = 17
	for b := 0; len(src) > 0; b, src = b+1, src[size:] {
		dst[b*PanelRows+row] = src[0]
		packNibbles(dst[32+b*nibbleBytes:], src[1:], row)
	}
}

// joinNibbles fills the nibble plane of a block of a K type from 32 bytes, which hold an input each at bit position shift.
func joinNibbles(plane, qs []byte, shift, row int) {
	const low = 0x0f0f0f0f
	to, from, at := (*[nibbleBytes]byte)(plane), (*[BlockLen]byte)(qs), column(row, 4)
	for g := range uint(4) {
		x, y := le32(from[4*g:4*g+4])>>(shift&31)&low, le32(from[16+4*g:16+4*g+4])>>(shift&31)&low
		put32(to[at+64*g:at+64*g+4], x|y<<4)
	}
}

// joinPairs fills the two pair planes of block b of a K type from qs, whose bytes hold two bits of four blocks each.
func joinPairs(planes, qs []byte, b, row int) {
	from, shift := (*[32]byte)(qs[32*(b/4):]), 2*(b%4)
	for h := range 2 {
		var word uint32
		for g := range 4 {
			i := 16*h + 4*g
			word |= le32(from[i:i+4]) >> (shift & 31) & 0x03030303 << (2 * g)
		}
		put32(planes[rowWord(row, h):], word)
	}
}

// joinBits fills the bit plane of block b of a K type from qh, whose bytes hold one bit of eight blocks each.
func joinBits(plane, qh []byte, b, row int) {
	var word uint32
	from := (*[32]byte)(qh)
	for g := range 8 {
		word |= le32(from[4*g:4*g+4]) >> (b & 7) & 0x01010101 << g
	}
	put32(plane[4*row:], word)
}

// packScaleMin expands the 6-bit scales and minima of Q4_K and Q5_K to a byte each.
func packScaleMin(dst, packed []byte, row int) {
	for g := range 4 {
		scale, minimum, rest := packed[g], packed[g+4], packed[g+8]
		dst[g*PanelRows+row] = scale & 63
		dst[(g+8)*PanelRows+row] = minimum & 63
		dst[(g+4)*PanelRows+row] = rest&15 | scale>>6<<4
		dst[(g+12)*PanelRows+row] = rest>>4 | minimum>>6<<4
	}
}

func packQ4K(dst, src []byte, row int) {
	copy16(dst[2*row:], src)
	copy16(dst[32+2*row:], src[2:])
	packScaleMin(dst[64:], src[4:], row)
	for b := range 8 {
		joinNibbles(dst[320+b*nibbleBytes:], src[16+32*(b/2):], 4*(b%2), row)
	}
}

func packQ5K(dst, src []byte, row int) {
	copy16(dst[2*row:], src)
	copy16(dst[32+2*row:], src[2:])
	packScaleMin(dst[64:], src[4:], row)
	for b := range 8 {
		codes := dst[320+b*(nibbleBytes+bitBytes):]
		joinNibbles(codes, src[48+32*(b/2):], 4*(b%2), row)
		joinBits(codes[nibbleBytes:], src[16:], b, row)
	}
}

func packQ6K(dst, src []byte, row int) {
	copy16(dst[2*row:], src[208:])
	for g, s := range src[192:208] {
		dst[64+g*PanelRows+row] = s
	}
	for b := range 8 {
		codes := dst[320+b*(nibbleBytes+pairBytes):]
		joinNibbles(codes, src[64*(b/4)+32*(b%2):], b/2%2*4, row)
		joinPairs(codes[nibbleBytes:], src[128:], b, row)
	}
}

func packQ2K(dst, src []byte, row int) {
	copy16(dst[2*row:], src[80:])
	copy16(dst[32+2*row:], src[82:])
	for g, s := range src[:16] {
		dst[64+g*PanelRows+row] = s
	}
	for b := range 8 {
		joinPairs(dst[320+b*pairBytes:], src[16:], b, row)
	}
}

func packQ3K(dst, src []byte, row int) {
	copy16(dst[2*row:], src[108:])
	for g := range 16 {
		low := src[96+g%8] >> (4 * (g / 8)) & 15
		high := src[104+g%4] >> (2 * (g / 4)) & 3
		dst[32+g*PanelRows+row] = low | high<<4 - 32
	}
	for b := range 8 {
		codes := dst[288+b*(pairBytes+bitBytes):]
		joinPairs(codes, src[32:], b, row)
		joinBits(codes[pairBytes:], src, b, row)
	}
}

func packIQ4XS(dst, src []byte, row int) {
	copy16(dst[2*row:], src)
	high := le16(src[2:])
	for b := range 8 {
		s := src[4+b/2]>>(4*(b%2))&15 | byte(high>>(2*b)&3)<<4
		dst[64+b*PanelRows+row] = s - 32
		packNibbles(dst[192+b*nibbleBytes:], src[8+16*b:], row)
	}
}
