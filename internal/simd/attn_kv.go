package simd

import (
	"encoding/binary"
	"math"

	"github.com/minfer-go/minfer/quant"
)

// KVType is the element type of stored keys and values.
type KVType uint8

// The stored types.
const (
	KVF32 KVType = iota
	KVF16
)

// Size is the size of one element in bytes.
func (t KVType) Size() int {
	if t == KVF16 {
		return 2
	}
	return 4
}

// String is the type's name as flags spell it.
func (t KVType) String() string {
	if t == KVF16 {
		return "f16"
	}
	return "f32"
}

// KVTile is the number of cells whose keys lie interleaved.
const KVTile = 16

// KVLayer is the storage of one layer's keys and values, little-endian, one region per KV head:
//
//	K: [KVHeads][Cells/KVTile][HeadDim][KVTile]   element d of cell c at tile c/KVTile, row d, lane c%KVTile
//	V: [KVHeads][Cells][HeadDim]
//
// so that the lanes of a vector of keys are cells. Cells is a multiple of KVTile. A cell never written may hold any
// bytes. Distinct cells may be written concurrently, also within one tile.
type KVLayer struct {
	Type    KVType
	KVHeads int
	HeadDim int
	Cells   int
	K, V    []byte
}

// KVCells rounds a number of cells up to whole tiles.
func KVCells(cells int) int { return (cells + KVTile - 1) / KVTile * KVTile }

// KVLayerBytes is the size of K and of V of one layer; cells is rounded up to whole tiles.
func KVLayerBytes(t KVType, kvHeads, headDim, cells int) (k, v int) {
	n := kvHeads * headDim * KVCells(cells) * t.Size()
	return n, n
}

// keyAt is the byte offset of element 0 of a cell's key; element d lies KVTile elements further each.
func (l *KVLayer) keyAt(head, cell int) int {
	return ((head*l.Cells+cell-cell%KVTile)*l.HeadDim + cell%KVTile) * l.Type.Size()
}

// valueAt is the byte offset of a cell's value row.
func (l *KVLayer) valueAt(head, cell int) int {
	return (head*l.Cells + cell) * l.HeadDim * l.Type.Size()
}

// keyStride is the distance in bytes between elements d and d+1 of one key.
func (l *KVLayer) keyStride() int { return KVTile * l.Type.Size() }

func (t KVType) load(b []byte) float32 {
	if t == KVF16 {
		return quant.F16ToF32(binary.LittleEndian.Uint16(b))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

func (t KVType) store(b []byte, v float32) {
	if t == KVF16 {
		binary.LittleEndian.PutUint16(b, quant.F32ToF16(v))
		return
	}
	binary.LittleEndian.PutUint32(b, math.Float32bits(v))
}

// StoreKV writes one token's key and value rows into a cell; k and v are [KVHeads*HeadDim].
func (a *Attn) StoreKV(l *KVLayer, cell int, k, v []float32) {
	for h := range l.KVHeads {
		kh, vh := k[h*l.HeadDim:(h+1)*l.HeadDim], v[h*l.HeadDim:(h+1)*l.HeadDim]
		kat, vat := l.keyAt(h, cell), l.valueAt(h, cell)
		if l.Type == KVF16 {
			storeHalf(a.isa, l.K[kat:], l.keyStride(), kh)
			storeHalf(a.isa, l.V[vat:], 2, vh)
			continue
		}
		stride := l.keyStride()
		for d, x := range kh {
			binary.LittleEndian.PutUint32(l.K[kat+d*stride:], math.Float32bits(x))
		}
		for d, x := range vh {
			binary.LittleEndian.PutUint32(l.V[vat+d*4:], math.Float32bits(x))
		}
	}
}

// storeHalf writes src as halves that lie stride bytes apart.
func storeHalf(isa ISA, dst []byte, stride int, src []float32) {
	const group = 64
	var half [group]uint16
	for at := 0; at < len(src); at += group {
		part := src[at:min(at+group, len(src))]
		narrow(isa, half[:len(part)], part)
		for i, h := range half[:len(part)] {
			binary.LittleEndian.PutUint16(dst[(at+i)*stride:], h)
		}
	}
}

// LoadKV reads a cell back into k and v, each [KVHeads*HeadDim].
func (a *Attn) LoadKV(l *KVLayer, cell int, k, v []float32) {
	size, stride := l.Type.Size(), l.keyStride()
	for h := range l.KVHeads {
		kat, vat := l.keyAt(h, cell), l.valueAt(h, cell)
		for d := range l.HeadDim {
			k[h*l.HeadDim+d] = l.Type.load(l.K[kat+d*stride:])
			v[h*l.HeadDim+d] = l.Type.load(l.V[vat+d*size:])
		}
	}
}

// RotateK turns the stored key of a cell in place by the rotary angles with the given cosines and sines, as RopeNeox
// (neox) or RopeNorm would turn it: it moves a token to another position.
func (a *Attn) RotateK(l *KVLayer, cell, rot int, cos, sin []float32, neox bool) {
	stride, half := l.keyStride(), rot/2
	for h := range l.KVHeads {
		at := l.keyAt(h, cell)
		for i := range half {
			x, y := l.K[at+2*i*stride:], l.K[at+(2*i+1)*stride:]
			if neox {
				x, y = l.K[at+i*stride:], l.K[at+(i+half)*stride:]
			}
			p, q := rotate(l.Type.load(x), l.Type.load(y), cos[i], sin[i])
			l.Type.store(x, p)
			l.Type.store(y, q)
		}
	}
}

// CopyCell copies the key and value of cell src to cell dst.
func (a *Attn) CopyCell(l *KVLayer, dst, src int) {
	size, stride := l.Type.Size(), l.keyStride()
	for h := range l.KVHeads {
		to, from := l.keyAt(h, dst), l.keyAt(h, src)
		for d := range l.HeadDim {
			copy(l.K[to+d*stride:to+d*stride+size], l.K[from+d*stride:])
		}
		n := l.HeadDim * size
		to, from = l.valueAt(h, dst), l.valueAt(h, src)
		copy(l.V[to:to+n], l.V[from:from+n])
	}
}
