package simd

import (
	"math"

	"github.com/minfer-go/minfer/quant"
)

// Expanded records.
//
// Kernels for many tokens read panels expanded to one record per block of 32 inputs (16 for float types), all numbers
// float32 little-endian:
//
//	classBlock  codes[8][16][4] scale[16]
//	classMin    codes[8][16][4] scale[16] min[16]
//	classHalf   codes[8][16][4] scale[2][16]
//	classQ2     codes[8][16][4] scale[2][16] min[2][16]
//	classFloat  weight[16 inputs][16 rows]
//
// The value of a weight is scale × (code − offset) + min, with the offset of the form; the minima of classQ2 are divided
// by −32, because that multiple of a half block's sum is what the activations hold.

const (
	codeBytes   = byteBytes
	vectorBytes = PanelRows * 4
	floatUnit   = 16
)

// recordBytes gives the size of a record by class.
var recordBytes = [...]int{
	classBlock: codeBytes + vectorBytes,
	classMin:   codeBytes + 2*vectorBytes,
	classHalf:  codeBytes + 2*vectorBytes,
	classQ2:    codeBytes + 4*vectorBytes,
	classFloat: floatUnit * vectorBytes,
}

// unitRecords is the number of records that a unit expands to.
func (f *form) unitRecords() int {
	if f.class == classFloat {
		return 1
	}
	return f.unit / BlockLen
}

func f32At(b []byte) float32     { return math.Float32frombits(le32(b)) }
func f16At(b []byte) float32     { return quant.F16ToF32(le16(b)) }
func putF32(b []byte, x float32) { put32(b, math.Float32bits(x)) }

// rowOf reads the numbers of row r from the expanded records of a unit, as far as dst goes.
func (f *form) rowOf(dst []float32, records []byte, r int) {
	if f.class == classFloat {
		for i := range dst {
			dst[i] = f32At(records[i*vectorBytes+4*r:])
		}
		return
	}
	size := recordBytes[f.class]
	for ; len(dst) > 0; dst, records = dst[BlockLen:], records[size:] {
		numbers := records[codeBytes+4*r : size]
		number := func(i int) float32 { return f32At(numbers[i*vectorBytes:]) }
		for half := range 2 {
			out, codes := dst[half*BlockLen/2:][:BlockLen/2], records[half*codeBytes/2+4*r:]
			switch f.class {
			case classBlock:
				scaleCodes(out, codes, f.offset, number(0))
			case classMin:
				scaleCodes(out, codes, 0, number(0))
				shift(out, number(1))
			case classHalf:
				scaleCodes(out, codes, f.offset, number(half))
			case classQ2:
				scaleCodes(out, codes, 0, number(half))
				shift(out, number(2+half)*-32)
			}
		}
	}
}

// scaleCodes writes scale × (code − offset) for half a block; codes begins at the row's first.
func scaleCodes(dst []float32, codes []byte, offset int32, scale float32) {
	for g := range len(dst) / 4 {
		word, out := le32(codes[g*vectorBytes:]), (*[4]float32)(dst[4*g:])
		for i := range out {
			out[i] = scale * float32(int32(word>>(8*i)&255)-offset)
		}
	}
}

// shift adds a minimum; the products before it are rounded.
func shift(dst []float32, minimum float32) {
	for i, x := range dst {
		dst[i] = x + minimum
	}
}

func expandF32(dst, unit []byte) { copy(dst, unit) }

func expandF16(dst, unit []byte) {
	for i := range len(unit) / 2 {
		putF32(dst[4*i:], f16At(unit[2*i:]))
	}
}

func expandBF16(dst, unit []byte) {
	for i := range len(unit) / 2 {
		put32(dst[4*i:], uint32(le16(unit[2*i:]))<<16)
	}
}

// The parts of a block's codes, eight bytes at a time. The arrays make every index known to be in range.

// expandNibbles writes the codes of a nibble plane.
func expandNibbles(record, plane []byte) {
	codes, src := (*[codeBytes]byte)(record), (*[nibbleBytes]byte)(plane)
	const low = 0x0f0f0f0f0f0f0f0f
	for i := 0; i < nibbleBytes; i += 8 {
		v := le64(src[i : i+8])
		put64(codes[i:i+8], v&low)
		put64(codes[i+nibbleBytes:i+nibbleBytes+8], v>>4&low)
	}
}

// orBits ors a bit plane into the codes at bit position shift.
func orBits(record, plane []byte, shift int) {
	codes, src := (*[codeBytes]byte)(record), (*[bitBytes]byte)(plane)
	for i := 0; i < bitBytes; i += 8 {
		v := le64(src[i : i+8])
		for g := range 8 {
			word := codes[g*bitBytes+i : g*bitBytes+i+8]
			put64(word, le64(word)|v>>g&0x0101010101010101<<shift)
		}
	}
}

// orPairs ors the two pair planes into the codes at bit position shift.
func orPairs(record, planes []byte, shift int) {
	codes, src := (*[codeBytes]byte)(record), (*[pairBytes]byte)(planes)
	for i := 0; i < pairBytes; i += 8 {
		v, half := le64(src[i:i+8]), i/64*256
		for g := range 4 {
			at := half + g*64 + i%64
			word := codes[at : at+8]
			put64(word, le64(word)|v>>(2*g)&0x0303030303030303<<shift)
		}
	}
}

// lookup replaces the codes, nibbles, by table values.
func lookup(record []byte, table *[16]byte) {
	codes := (*[codeBytes]byte)(record)
	for i, c := range codes {
		codes[i] = table[c&15]
	}
}

// expandScales converts count vectors of binary16 numbers.
func expandScales(dst, src []byte) {
	to, from := (*[vectorBytes]byte)(dst), (*[2 * PanelRows]byte)(src)
	for r := range PanelRows {
		putF32(to[4*r:4*r+4], f16At(from[2*r:2*r+2]))
	}
}

func expandQ40(dst, unit []byte) {
	for b := range 2 {
		record := dst[b*recordBytes[classBlock]:]
		expandNibbles(record, unit[64+b*nibbleBytes:])
		expandScales(record[codeBytes:], unit[rowScale(0, b):])
	}
}

func expandQ41(dst, unit []byte) {
	for b := range 2 {
		record := dst[b*recordBytes[classMin]:]
		expandNibbles(record, unit[128+b*nibbleBytes:])
		expandScales(record[codeBytes:], unit[rowScale(0, b):])
		expandScales(record[codeBytes+vectorBytes:], unit[64+rowScale(0, b):])
	}
}

func expandQ50(dst, unit []byte) {
	for b := range 2 {
		record, codes := dst[b*recordBytes[classBlock]:], unit[64+b*(nibbleBytes+bitBytes):]
		expandNibbles(record, codes)
		orBits(record, codes[nibbleBytes:], 4)
		expandScales(record[codeBytes:], unit[rowScale(0, b):])
	}
}

func expandQ51(dst, unit []byte) {
	for b := range 2 {
		record, codes := dst[b*recordBytes[classMin]:], unit[128+b*(nibbleBytes+bitBytes):]
		expandNibbles(record, codes)
		orBits(record, codes[nibbleBytes:], 4)
		expandScales(record[codeBytes:], unit[rowScale(0, b):])
		expandScales(record[codeBytes+vectorBytes:], unit[64+rowScale(0, b):])
	}
}

func expandQ80(dst, unit []byte) {
	for b := range 2 {
		record := dst[b*recordBytes[classBlock]:]
		copy(record[:codeBytes], unit[64+b*byteBytes:])
		expandScales(record[codeBytes:], unit[rowScale(0, b):])
	}
}

// iq4Codes is the grid of the IQ4 types with an offset of 128, fp4Codes twice the E2M1 values with an offset of 16.
var (
	iq4Codes = [16]byte{1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241}
	fp4Codes = [16]byte{16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4}
)

func expandIQ4NL(dst, unit []byte) {
	expandQ40(dst, unit)
	for b := range 2 {
		lookup(dst[b*recordBytes[classBlock]:], &iq4Codes)
	}
}

func expandMXFP4(dst, unit []byte) {
	for b := range 2 {
		record := dst[b*recordBytes[classBlock]:]
		expandNibbles(record, unit[32+b*nibbleBytes:])
		lookup(record, &fp4Codes)
		for r, e := range unit[b*PanelRows : (b+1)*PanelRows] {
			// Half of 2^(e−127): subnormal for the two smallest exponents.
			bits := uint32(0x00200000) << e
			if e >= 2 {
				bits = uint32(e-1) << 23
			}
			put32(record[codeBytes+4*r:], bits)
		}
	}
}

// expandScaleMin writes the scales d × s and the minima −(dmin × m) of block b of Q4_K and Q5_K. The products are exact.
func expandScaleMin(record, unit []byte, b int) {
	scales := (*[2 * vectorBytes]byte)(record[codeBytes:])
	header := (*[64 + 256]byte)(unit)
	for r := range PanelRows {
		d, dmin := f16At(header[2*r:2*r+2]), f16At(header[32+2*r:32+2*r+2])
		putF32(scales[4*r:4*r+4], d*float32(header[64+b*PanelRows+r]))
		putF32(scales[vectorBytes+4*r:vectorBytes+4*r+4], -(dmin * float32(header[64+128+b*PanelRows+r])))
	}
}

func expandQ4K(dst, unit []byte) {
	for b := range 8 {
		record := dst[b*recordBytes[classMin]:]
		expandNibbles(record, unit[320+b*nibbleBytes:])
		expandScaleMin(record, unit, b)
	}
}

func expandQ5K(dst, unit []byte) {
	for b := range 8 {
		record, codes := dst[b*recordBytes[classMin]:], unit[320+b*(nibbleBytes+bitBytes):]
		expandNibbles(record, codes)
		orBits(record, codes[nibbleBytes:], 4)
		expandScaleMin(record, unit, b)
	}
}

// expandHalfScales writes the scales d × s × factor of the two halves of a block; s are its signed bytes [2][16].
func expandHalfScales(record, d, s []byte, factor float32) {
	for i, v := range s[:2*PanelRows] {
		putF32(record[codeBytes+4*i:], f16At(d[2*(i%PanelRows):])*float32(int8(v))*factor)
	}
}

func expandQ6K(dst, unit []byte) {
	for b := range 8 {
		record, codes := dst[b*recordBytes[classHalf]:], unit[320+b*(nibbleBytes+pairBytes):]
		expandNibbles(record, codes)
		orPairs(record, codes[nibbleBytes:], 4)
		expandHalfScales(record, unit, unit[64+2*b*PanelRows:], 1)
	}
}

// expandQ3K makes codes of eight times the weight, so that the offset is the 32 of Q6_K; the scale is divided by 8.
func expandQ3K(dst, unit []byte) {
	for b := range 8 {
		record, codes := dst[b*recordBytes[classHalf]:], unit[288+b*(pairBytes+bitBytes):]
		clear(record[:codeBytes])
		orPairs(record, codes, 3)
		orBits(record, codes[pairBytes:], 5)
		expandHalfScales(record, unit, unit[32+2*b*PanelRows:], 1.0/8)
	}
}

func expandQ2K(dst, unit []byte) {
	for b := range 8 {
		record := dst[b*recordBytes[classQ2]:]
		clear(record[:codeBytes])
		orPairs(record, unit[320+b*pairBytes:], 0)
		for i, v := range unit[64+2*b*PanelRows:][:2*PanelRows] {
			r := i % PanelRows
			putF32(record[codeBytes+4*i:], f16At(unit[2*r:])*float32(v&15))
			putF32(record[codeBytes+2*vectorBytes+4*i:], f16At(unit[32+2*r:])*float32(v>>4)*(1.0/32))
		}
	}
}

func expandIQ4XS(dst, unit []byte) {
	for b := range 8 {
		record := dst[b*recordBytes[classBlock]:]
		expandNibbles(record, unit[192+b*nibbleBytes:])
		lookup(record, &iq4Codes)
		for r, s := range unit[64+b*PanelRows:][:PanelRows] {
			putF32(record[codeBytes+4*r:], f16At(unit[2*r:])*float32(int8(s)))
		}
	}
}
