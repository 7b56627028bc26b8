package simd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/minfer-go/minfer/quant"
)

// KVType is the element type of stored keys and values.
type KVType uint8

// The stored types.
const (
	KVF32 KVType = iota
	KVF16
	KVQ8 // blocks of 32 elements along the head: a half precision scale and 32 codes, attn_q8.go
)

// RowBytes is the size of n elements of a row in bytes; for KVQ8 n is a multiple of 32.
func (t KVType) RowBytes(n int) int {
	switch t {
	case KVF16:
		return 2 * n
	case KVQ8:
		return n / BlockLen * kvBlockBytes
	}
	return 4 * n
}

// String is the type's name as flags spell it.
func (t KVType) String() string {
	switch t {
	case KVF32:
		return "f32"
	case KVF16:
		return "f16"
	case KVQ8:
		return "q8_0"
	}
	return fmt.Sprintf("KVType(%d)", uint8(t))
}

// ErrKVType is the error of a KV type that does not exist or does not fit the heads of a model.
var ErrKVType = errors.New("simd: unusable KV type")

// KVSupports says whether heads of headDim elements can be stored as t. Other combinations must not reach a KVLayer.
func KVSupports(t KVType, headDim int) error {
	switch {
	case t > KVQ8:
		return fmt.Errorf("%w: %s", ErrKVType, t)
	case headDim < 1:
		return fmt.Errorf("%w: heads of %d elements", ErrKVType, headDim)
	case t == KVQ8 && headDim%BlockLen != 0:
		return fmt.Errorf("%w: %s stores blocks of %d elements, heads have %d", ErrKVType, t, BlockLen, headDim)
	}
	return nil
}

// KVTile is the number of cells whose keys lie interleaved.
const KVTile = 16

// KVLayer is the storage of one layer's keys and values, little-endian, one region per KV head:
//
//	K: [KVHeads][Cells/KVTile][HeadDim][KVTile]   element d of cell c at tile c/KVTile, row d, lane c%KVTile
//	V: [KVHeads][Cells][HeadDim]
//
// so that the lanes of a vector of keys are cells. For KVQ8 they are
//
//	K: [KVHeads][Cells/KVTile][HeadDim/32] of scales [KVTile]float16, codes [32][KVTile]int8
//	V: [KVHeads][Cells][HeadDim/32] of scale float16, codes [32]int8
//
// Cells is a multiple of KVTile. A cell never written may hold any bytes. Distinct cells may be written concurrently,
// also within one tile: a store touches the bytes of its own cell alone.
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
	n := kvHeads * KVCells(cells) * t.RowBytes(headDim)
	return n, n
}

// tileAt is the byte offset of the tile of keys that holds a cell.
func (l *KVLayer) tileAt(head, cell int) int {
	return (head*l.Cells + cell - cell%KVTile) * l.Type.RowBytes(l.HeadDim)
}

// keyAt is the byte offset of element 0 of a cell's key; element d lies keyStride further each. Not for KVQ8.
func (l *KVLayer) keyAt(head, cell int) int {
	return l.tileAt(head, cell) + l.Type.RowBytes(cell%KVTile)
}

// keyStride is the distance in bytes between elements d and d+1 of one key. Not for KVQ8.
func (l *KVLayer) keyStride() int { return l.Type.RowBytes(KVTile) }

// valueAt is the byte offset of a cell's value row.
func (l *KVLayer) valueAt(head, cell int) int {
	return (head*l.Cells + cell) * l.Type.RowBytes(l.HeadDim)
}

// load and store are one element of a type other than KVQ8.
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

// loadKey reads a cell's key to dst[d*stride].
func (l *KVLayer) loadKey(dst []float32, stride, head, cell int) {
	if l.Type == KVQ8 {
		l.loadKeyQ8(dst, stride, head, cell)
		return
	}
	at, step := l.keyAt(head, cell), l.keyStride()
	for d := range l.HeadDim {
		dst[d*stride] = l.Type.load(l.K[at+d*step:])
	}
}

// loadValue reads a cell's value.
func (l *KVLayer) loadValue(dst []float32, head, cell int) {
	row := l.V[l.valueAt(head, cell):]
	if l.Type == KVQ8 {
		decodeQ8(dst[:l.HeadDim], row)
		return
	}
	step := l.Type.RowBytes(1)
	for d := range dst[:l.HeadDim] {
		dst[d] = l.Type.load(row[d*step:])
	}
}

// StoreKV writes one token's key and value rows into a cell; k and v are [KVHeads*HeadDim].
func (a *Attn) StoreKV(l *KVLayer, cell int, k, v []float32) {
	for h := range l.KVHeads {
		kh, vh := k[h*l.HeadDim:(h+1)*l.HeadDim], v[h*l.HeadDim:(h+1)*l.HeadDim]
		if l.Type == KVQ8 {
			l.storeQ8(a.isa, h, cell, kh, vh)
			continue
		}
		key, value := l.K[l.keyAt(h, cell):], l.V[l.valueAt(h, cell):]
		if l.Type == KVF16 {
			storeHalves(a.isa, key, kh)
			narrowRow(a.isa, value, vh)
			continue
		}
		storeFloats(key, kh)
		for d, x := range vh {
			binary.LittleEndian.PutUint32(value[d*4:], math.Float32bits(x))
		}
	}
}

// The elements that the loops over keys store with one check of bounds.
const keyRun = 8

// storeHalves writes src as halves in one lane of a tile of keys.
func storeHalves(isa ISA, lane []byte, src []float32) {
	const group, stride = 128, 2 * KVTile
	var room [group]uint16
	for ; len(src) > 0; src = src[min(group, len(src)):] {
		half := room[:min(group, len(src))]
		narrow(isa, half, src[:len(half)])
		for ; len(half) >= keyRun; half = half[keyRun:] {
			run, x := (*[(keyRun-1)*stride + 2]byte)(lane), (*[keyRun]uint16)(half)
			binary.LittleEndian.PutUint16(run[0*stride:], x[0])
			binary.LittleEndian.PutUint16(run[1*stride:], x[1])
			binary.LittleEndian.PutUint16(run[2*stride:], x[2])
			binary.LittleEndian.PutUint16(run[3*stride:], x[3])
			binary.LittleEndian.PutUint16(run[4*stride:], x[4])
			binary.LittleEndian.PutUint16(run[5*stride:], x[5])
			binary.LittleEndian.PutUint16(run[6*stride:], x[6])
			binary.LittleEndian.PutUint16(run[7*stride:], x[7])
			lane = lane[min(keyRun*stride, len(lane)):] // of the last run the lane has no whole stride
		}
		for i, h := range half {
			binary.LittleEndian.PutUint16(lane[i*stride:], h)
		}
	}
}

// storeFloats writes src in one lane of a tile of keys.
func storeFloats(lane []byte, src []float32) {
	const stride = 4 * KVTile
	for ; len(src) >= keyRun; src = src[keyRun:] {
		run, x := (*[(keyRun-1)*stride + 4]byte)(lane), (*[keyRun]float32)(src)
		binary.LittleEndian.PutUint32(run[0*stride:], math.Float32bits(x[0]))
		binary.LittleEndian.PutUint32(run[1*stride:], math.Float32bits(x[1]))
		binary.LittleEndian.PutUint32(run[2*stride:], math.Float32bits(x[2]))
		binary.LittleEndian.PutUint32(run[3*stride:], math.Float32bits(x[3]))
		binary.LittleEndian.PutUint32(run[4*stride:], math.Float32bits(x[4]))
		binary.LittleEndian.PutUint32(run[5*stride:], math.Float32bits(x[5]))
		binary.LittleEndian.PutUint32(run[6*stride:], math.Float32bits(x[6]))
		binary.LittleEndian.PutUint32(run[7*stride:], math.Float32bits(x[7]))
		lane = lane[min(keyRun*stride, len(lane)):]
	}
	for i, x := range src {
		binary.LittleEndian.PutUint32(lane[i*stride:], math.Float32bits(x))
	}
}

// LoadKV reads a cell back into k and v, each [KVHeads*HeadDim].
func (a *Attn) LoadKV(l *KVLayer, cell int, k, v []float32) {
	for h := range l.KVHeads {
		l.loadKey(k[h*l.HeadDim:(h+1)*l.HeadDim], 1, h, cell)
		l.loadValue(v[h*l.HeadDim:(h+1)*l.HeadDim], h, cell)
	}
}

// ReadRow copies the stored bytes of a cell to k and v, each Type.RowBytes(KVHeads*HeadDim): the elements in order, for
// KVQ8 blocks of a scale and 32 codes. WriteRow is its exact inverse; it takes any bytes.
func (a *Attn) ReadRow(l *KVLayer, cell int, k, v []byte) { l.copyRow(cell, k, v, false) }

// WriteRow sets a cell to bytes that ReadRow gave.
func (a *Attn) WriteRow(l *KVLayer, cell int, k, v []byte) { l.copyRow(cell, k, v, true) }

func (l *KVLayer) copyRow(cell int, k, v []byte, write bool) {
	n := l.Type.RowBytes(l.HeadDim)
	for h := range l.KVHeads {
		key, value := k[h*n:(h+1)*n], v[h*n:(h+1)*n]
		stored := l.V[l.valueAt(h, cell):][:n]
		if l.Type == KVQ8 {
			l.copyKeyQ8(h, cell, key, write)
		} else {
			copyStrided(key, l.K[l.keyAt(h, cell):], l.Type.RowBytes(1), l.keyStride(), write)
		}
		if write {
			copy(stored, value)
		} else {
			copy(value, stored)
		}
	}
}

// copyStrided copies elements of size bytes that lie stride apart in tile to row, or back.
func copyStrided(row, tile []byte, size, stride int, write bool) {
	for at := 0; at < len(row); at += size {
		element, stored := row[at:at+size], tile[at/size*stride:][:size]
		if write {
			copy(stored, element)
		} else {
			copy(element, stored)
		}
	}
}

// RotateK turns the stored key of a cell in place by the rotary angles with the given cosines and sines, as RopeNeox
// (neox) or RopeNorm would turn it: it moves a token to another position. The result is rounded to the stored type; for
// KVQ8 every block that holds a turned element gets a new scale and new codes, so that repeated turns add up errors.
func (a *Attn) RotateK(l *KVLayer, cell, rot int, cos, sin []float32, neox bool) {
	if l.Type == KVQ8 {
		l.rotateQ8(a.isa, cell, rot, cos, sin, neox)
		return
	}
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
	n := l.Type.RowBytes(l.HeadDim)
	for h := range l.KVHeads {
		if l.Type == KVQ8 {
			l.copyCellQ8(h, dst, src)
		} else {
			size, stride := l.Type.RowBytes(1), l.keyStride()
			to, from := l.keyAt(h, dst), l.keyAt(h, src)
			for d := range l.HeadDim {
				copy(l.K[to+d*stride:to+d*stride+size], l.K[from+d*stride:])
			}
		}
		to, from := l.valueAt(h, dst), l.valueAt(h, src)
		copy(l.V[to:to+n], l.V[from:from+n])
	}
}
