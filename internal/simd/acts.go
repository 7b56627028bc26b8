package simd

import (
	"fmt"
	"math"

	"github.com/minfer-go/minfer/quant"
)

// Activations of a matrix product.
//
// Tokens form groups as wide as the tile of the kernels that read them, the last group as wide as what remains. A group
// is one stretch of memory, groups follow each other, and a group of w tokens has a record per block of inputs:
//
//	ActsF32  block of 16:  x[w][16] float32
//	ActsQ8   block of 32:  q[w][32] int8, then seven arrays [w] of 32-bit words:
//	         d, d·Σq (float32) and −8Σq, −16Σq, −128Σq, −32Σq over the first 16, −32Σq over the last 16 (int32)
//
// The value of a quantized activation is d·q. The codes q are x·127/max|x| or x·126/max|x| rounded to the nearest, ties
// to even, whichever comes closer to a multiple of x; d is the least-squares fit x·q/q·q. Both together leave about a
// tenth less squared error than d = max|x|/127 does, for a few instructions a block. The
// negative sums undo the offsets of the codes that weights have, see pack.go: an integer dot product starts from one
// of them. A block without a finite maximum has d = NaN and q = 0: what it touches is NaN. A block whose maximum is
// below minPeak counts as zero.

// ActsKind is the number format of activations.
type ActsKind uint8

// The formats.
const (
	ActsF32 ActsKind = iota // float32
	ActsQ8                  // int8, a scale per 32 inputs
)

// KindFor is the format of the activations that meet weights of type t.
func KindFor(t quant.Type) ActsKind {
	if formOf(t).class == classFloat {
		return ActsF32
	}
	return ActsQ8
}

// minPeak is the least max|x| that a block of activations is scaled by; 127/minPeak is still finite.
const minPeak = 0x1p-100

// The word arrays of a quantized record, and the record's bytes per token.
const (
	wordScale    = iota // d
	wordSum             // d·Σq
	wordMinus8          // −8Σq
	wordMinus16         // −16Σq
	wordMinus128        // −128Σq
	wordLow32           // −32Σq, inputs 0–15
	wordHigh32          // −32Σq, inputs 16–31
	recordWords
	q8Record = BlockLen + 4*recordWords
)

// f32Record is the bytes per token of a record of floatUnit inputs.
const f32Record = 4 * floatUnit

// Acts holds the activations of one matrix product input, tokens × cols. It is a view of memory that the caller owns.
type Acts struct {
	Kind         ActsKind
	Tokens, Cols int

	tile    int // tokens in a group
	records int // per group: the whole units of 64 inputs, or of 16
	size    int // bytes per token and record
	buf     []byte
}

// actsRecords gives the number of records for cols inputs, and a record's bytes per token.
func actsRecords(kind ActsKind, cols int) (records, size int) {
	if kind == ActsF32 {
		return (cols + floatUnit - 1) / floatUnit, f32Record
	}
	return (cols + 2*BlockLen - 1) / (2 * BlockLen) * 2, q8Record
}

// ActsBytes is the memory that Acts needs. It grows with tokens, and it is exact.
func (m *Mat) ActsBytes(kind ActsKind, cols, tokens int) int {
	records, size := actsRecords(kind, cols)
	return records * size * tokens
}

// Acts lays the activations of a matrix product out in buf, which has ActsBytes bytes and starts at a multiple of 64.
// Every token must be stored with SetRow before it is read.
func (m *Mat) Acts(buf []byte, kind ActsKind, cols, tokens int) Acts {
	records, size := actsRecords(kind, cols)
	tile := m.tile
	if tokens <= m.fewMost {
		tile = m.fewTile
	}
	return Acts{kind, tokens, cols, tile, records, size, buf[:records*size*tokens]}
}

// group returns the records of the group that starts at token from, a multiple of the tile, and its width.
func (a *Acts) group(from int) (buf []byte, width int) {
	width = min(a.tile, a.Tokens-from)
	stride := a.records * a.size
	return a.buf[from*stride : (from+width)*stride], width
}

// Inputs is how many inputs a record of the kind holds: 32, or 16 for ActsF32.
func (k ActsKind) Inputs() int {
	if k == ActsF32 {
		return floatUnit
	}
	return BlockLen
}

// SetRow stores the activations x, a.Cols of them, of one token. Different tokens may be stored concurrently; those of one
// group share cache lines, so few tokens are better stored part by part, see SetPart.
func (m *Mat) SetRow(a *Acts, token int, x []float32) { m.SetPart(a, token, 0, x[:a.Cols]) }

// SetPart stores the activations x of one token that begin at input at, a multiple of Kind.Inputs(); so is the length of
// x, unless x is the last part. The parts of a token must cover it; different parts and tokens may be stored concurrently.
// What is stored does not depend on the partition.
func (m *Mat) SetPart(a *Acts, token, at int, x []float32) {
	inputs, end := a.Kind.Inputs(), at+len(x)
	from, to := at/inputs, end/inputs
	if end == a.Cols {
		to = a.records
	}
	if at%inputs != 0 || end > a.Cols || end < a.Cols && end%inputs != 0 {
		panic(fmt.Sprintf("simd: inputs [%d, %d) of %d are no part", at, end, a.Cols))
	}
	buf, width := a.group(token / a.tile * a.tile)
	buf = buf[from*width*a.size : to*width*a.size]
	if slot := token % a.tile; a.Kind == ActsF32 {
		storeF32(buf, width, slot, x)
	} else {
		m.quantize(buf, width, slot, x)
	}
}

// storeF32 copies x to the records of a group of width tokens, as token slot. Inputs beyond x are zero.
func storeF32(buf []byte, width, slot int, x []float32) {
	for at := slot * f32Record; at < len(buf); at += width * f32Record {
		record := (*[f32Record]byte)(buf[at:])
		if len(x) >= floatUnit {
			putUnit(record, (*[floatUnit]float32)(x))
			x = x[floatUnit:]
			continue
		}
		clear(record[4*len(x):])
		for i, v := range x {
			putF32(record[4*i:4*i+4], v)
		}
		x = nil
	}
}

// quantizeGeneric stores x in the records of a group of width tokens, as token slot. Blocks beyond x are zero.
func quantizeGeneric(buf []byte, width, slot int, x []float32) {
	var zero [BlockLen]float32
	for ; len(buf) > 0; buf = buf[width*q8Record:] {
		block := &zero
		if len(x) > 0 {
			block, x = (*[BlockLen]float32)(x), x[BlockLen:]
		}
		q := (*[BlockLen]byte)(buf[slot*BlockLen:])
		d, low, high := quantizeBlock(q, block)
		words := buf[width*BlockLen+4*slot:]
		put := func(word int, v uint32) { put32(words[4*width*word:], v) }
		sum := low + high
		put(wordScale, math.Float32bits(d))
		put(wordSum, math.Float32bits(d*float32(sum)))
		put(wordMinus8, uint32(-8*sum))
		put(wordMinus16, uint32(-16*sum))
		put(wordMinus128, uint32(-128*sum))
		put(wordLow32, uint32(-32*low))
		put(wordHigh32, uint32(-32*high))
	}
}

// quantizeBlock writes the codes of x and returns its scale and the sums of its first and last 16 codes.
func quantizeBlock(q *[BlockLen]byte, x *[BlockLen]float32) (d float32, low, high int32) {
	// Magnitudes order as integers, infinities and NaNs last.
	var peak uint32
	for _, v := range x {
		peak = max(peak, math.Float32bits(v)&^(1<<31))
	}
	amax := math.Float32frombits(peak)
	if !(amax >= minPeak && amax <= math.MaxFloat32) {
		clear(q[:])
		if peak < math.Float32bits(minPeak) {
			return 0, 0, 0
		}
		return float32(math.NaN()), 0, 0
	}
	first, second := fitBlock(x, 127/amax), fitBlock(x, 126/amax)
	best, top := &first, float32(127)
	if f, g := float32(sqrt126)*first.yq, float32(sqrt127)*second.yq; float32(f*f)*float32(126*second.qq) <
		float32(g*g)*float32(127*first.qq) {
		best, top = &second, 126
	}
	for i, code := range best.codes {
		q[i] = byte(code)
		if i < BlockLen/2 {
			low += code
		} else {
			high += code
		}
	}
	return float32(best.yq/float32(top*best.qq)) * amax, low, high
}

// The weights with which two fits are compared: (yq/127)²/qq of the first with (yq/126)²/qq of the second, multiplied
// out.
const (
	sqrt126 = 11.224972160321824
	sqrt127 = 11.269427669584644
)

// A blockFit is a block rounded at one scale: y = x·inverse, codes the nearest integers q, ties to even.
type blockFit struct {
	codes  [BlockLen]int32
	yq, qq float32 // Σy·q and Σq·q, added up as the vector sets do
}

func fitBlock(x *[BlockLen]float32, inverse float32) (f blockFit) {
	var lane [8]float32
	var qq int32
	for i, v := range x {
		// Adding 1.5·2^23 leaves the nearest integer, ties to even, in the low bits.
		const magic = 3 << 22
		y := float32(v * inverse)
		code := int32(math.Float32bits(y+magic)) - 0x4b400000
		f.codes[i] = code
		lane[i%8] += float32(y * float32(code))
		qq += code * code
	}
	f.yq = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))
	f.qq = float32(qq)
	return f
}
