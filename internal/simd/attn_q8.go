package simd

import (
	"encoding/binary"
	"math"

	"github.com/minfer-go/minfer/quant"
)

// KVQ8 stores 32 elements of a head as a scale d in half precision and codes q, as ggml's Q8_0 does in rows: d is
// max|x|/127, the codes are x/d rounded to the nearest, ties to even, and d is rounded after them. An element is d·q,
// which float32 holds exactly, so that every route to it gives the same bits. A block that is not finite has the scale NaN
// and so stays visible. A block whose d rounds to zero (max|x| up to 127·2⁻²⁵) is stored as zeros; one whose d exceeds half
// precision (max|x| above 127·65504) gets infinities.

const (
	kvBlockBytes = 2 + BlockLen // of a row
	kvTileScales = 2 * KVTile   // in front of a tile block's codes
	kvTileBytes  = KVTile * kvBlockBytes
	kvNaN        = 0x7e00 // the scale of a block that is not finite
)

// A codedBlock is a block in row order.
type codedBlock = [kvBlockBytes]byte

// encodeQ8Generic stores a row, a multiple of 32 elements.
func encodeQ8Generic(dst []byte, x []float32) {
	for ; len(x) >= BlockLen; dst, x = dst[kvBlockBytes:], x[BlockLen:] {
		encodeBlock((*codedBlock)(dst), (*[BlockLen]float32)(x))
	}
}

func encodeBlock(dst *codedBlock, x *[BlockLen]float32) {
	var peak uint32 // magnitudes order as integers, infinities and NaNs last
	for _, v := range x {
		peak = max(peak, math.Float32bits(v)&^(1<<31))
	}
	d := math.Float32frombits(peak) / 127
	half := quant.F32ToF16(d)
	clear(dst[2:])
	switch {
	case peak > math.Float32bits(math.MaxFloat32):
		half = kvNaN
	case half != 0:
		inverse := 1 / d
		for i, v := range x {
			dst[2+i] = byte(int8(math.RoundToEven(float64(v * inverse))))
		}
	}
	binary.LittleEndian.PutUint16(dst[:], half)
}

// decodeQ8 reads the blocks of a row.
func decodeQ8(dst []float32, src []byte) {
	for ; len(dst) >= BlockLen; dst, src = dst[BlockLen:], src[kvBlockBytes:] {
		d := quant.F16ToF32(binary.LittleEndian.Uint16(src))
		for i, q := range src[2:kvBlockBytes] {
			dst[i] = d * float32(int8(q))
		}
	}
}

// keyBlock is the byte offset of the scale of block b of a cell's key; its first code lies codesFrom further, the codes
// KVTile apart.
func (l *KVLayer) keyBlock(head, cell, b int) int {
	return l.tileAt(head, cell) + b*kvTileBytes + 2*(cell%KVTile)
}

func codesFrom(cell int) int { return kvTileScales - cell%KVTile }

func (l *KVLayer) loadKeyQ8(dst []float32, stride, head, cell int) {
	for b := range l.HeadDim / BlockLen {
		at := l.keyBlock(head, cell, b)
		d := quant.F16ToF32(binary.LittleEndian.Uint16(l.K[at:]))
		codes, out := l.K[at+codesFrom(cell):], dst[b*BlockLen*stride:]
		for i := range BlockLen {
			out[i*stride] = d * float32(int8(codes[i*KVTile]))
		}
	}
}

// putKeyBlock and keyBlockAt write and read one block of a cell's key.
func (l *KVLayer) putKeyBlock(head, cell, b int, src *codedBlock) {
	at := l.keyBlock(head, cell, b)
	copy(l.K[at:at+2], src[:2])
	codes := l.K[at+codesFrom(cell):][:(BlockLen-1)*KVTile+1]
	for i, q := range src[2:] {
		codes[i*KVTile] = q
	}
}

func (l *KVLayer) keyBlockAt(head, cell, b int, dst *codedBlock) {
	at := l.keyBlock(head, cell, b)
	copy(dst[:2], l.K[at:])
	codes := l.K[at+codesFrom(cell):][:(BlockLen-1)*KVTile+1]
	for i := range dst[2:] {
		dst[2+i] = codes[i*KVTile]
	}
}

// storeQ8 writes one head of a cell.
func (l *KVLayer) storeQ8(isa ISA, head, cell int, k, v []float32) {
	encodeQ8(isa, l.V[l.valueAt(head, cell):][:KVQ8.RowBytes(len(v))], v)
	l.storeKeyQ8(isa, head, cell, k)
}

// storeKeyQ8 writes the first blocks of a cell's key, as many as k has.
func (l *KVLayer) storeKeyQ8(isa ISA, head, cell int, k []float32) {
	const group = 4
	var room [group * kvBlockBytes]byte
	for at := 0; at < len(k); at += group * BlockLen {
		part := k[at:min(at+group*BlockLen, len(k))]
		encodeQ8(isa, room[:KVQ8.RowBytes(len(part))], part)
		for i := range len(part) / BlockLen {
			l.putKeyBlock(head, cell, at/BlockLen+i, (*codedBlock)(room[i*kvBlockBytes:]))
		}
	}
}

func (l *KVLayer) copyKeyQ8(head, cell int, row []byte, write bool) {
	for b := range l.HeadDim / BlockLen {
		block := (*codedBlock)(row[b*kvBlockBytes:])
		if write {
			l.putKeyBlock(head, cell, b, block)
		} else {
			l.keyBlockAt(head, cell, b, block)
		}
	}
}

func (l *KVLayer) copyCellQ8(head, dst, src int) {
	var block codedBlock
	for b := range l.HeadDim / BlockLen {
		l.keyBlockAt(head, src, b, &block)
		l.putKeyBlock(head, dst, b, &block)
	}
}

func (l *KVLayer) rotateQ8(isa ISA, cell, rot int, cos, sin []float32, neox bool) {
	var room [256]float32
	key := room[:]
	if l.HeadDim > len(key) {
		key = make([]float32, l.HeadDim)
	}
	key = key[:l.HeadDim]
	turned := (rot + BlockLen - 1) / BlockLen * BlockLen // blocks beyond hold nothing that turned
	for h := range l.KVHeads {
		l.loadKeyQ8(key, 1, h, cell)
		if neox {
			ropeNeoxGeneric(key, l.HeadDim, rot, cos, sin)
		} else {
			ropeNormGeneric(key, l.HeadDim, rot, cos, sin)
		}
		l.storeKeyQ8(isa, h, cell, key[:turned])
	}
}
