package simd

import (
	"encoding/binary"
	"math"

	"github.com/minfer-go/minfer/quant"
)

// KVQ8 stores 32 elements of a head as a scale d in half precision and codes q, in a row as ggml's Q8_0 lays them out.
// With m = max|x| the codes are x·127/m rounded to the nearest, ties to even, and d is m/127, rounded after them. An
// element is d·q, which float32 holds exactly, so that every route to it gives the same bits. A block that is not finite
// has the scale NaN and so stays visible. A block whose d rounds to zero (m below 127·2⁻²⁵) is stored as zeros; one whose
// d exceeds half precision (m above 127·65504) gets infinities.

const (
	kvBlockBytes = 2 + BlockLen // of a row
	kvTileScales = 2 * KVTile   // in front of a tile block's codes
	kvTileBytes  = KVTile * kvBlockBytes
)

// A codedBlock is a block in row order.
type codedBlock = [kvBlockBytes]byte

// encodeBlock stores 32 elements.
func encodeBlock(isa ISA, dst *codedBlock, x []float32) {
	var rec [q8Record]byte
	quantizeOne(isa, &rec, x[:BlockLen])
	d := quant.F32ToF16(math.Float32frombits(binary.LittleEndian.Uint32(rec[BlockLen:])))
	if d == 0 {
		clear(rec[:BlockLen])
	}
	binary.LittleEndian.PutUint16(dst[:], d)
	copy(dst[2:], rec[:BlockLen])
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
	row := l.V[l.valueAt(head, cell):]
	var key codedBlock
	for b := range l.HeadDim / BlockLen {
		encodeBlock(isa, &key, k[b*BlockLen:])
		l.putKeyBlock(head, cell, b, &key)
		encodeBlock(isa, (*codedBlock)(row[b*kvBlockBytes:]), v[b*BlockLen:])
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
	var block codedBlock
	for h := range l.KVHeads {
		l.loadKeyQ8(key, 1, h, cell)
		if neox {
			ropeNeoxGeneric(key, l.HeadDim, rot, cos, sin)
		} else {
			ropeNormGeneric(key, l.HeadDim, rot, cos, sin)
		}
		for b := range (rot + BlockLen - 1) / BlockLen { // blocks beyond hold nothing that turned
			encodeBlock(isa, &block, key[b*BlockLen:])
			l.putKeyBlock(h, cell, b, &block)
		}
	}
}
