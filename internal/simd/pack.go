package simd

import (
	"errors"
	"fmt"
	"math"

	"github.com/minfer-go/minfer/quant"
)

// Packed weights.
//
// A weight matrix [rows][cols] is cut into panels of PanelRows rows; rows beyond the matrix are zero. A panel holds,
// one after the other, units of consecutive inputs (columns): 16 inputs of a float type, 64 of a type with blocks of 32,
// 256 of a K type. Columns beyond the matrix are zero. A panel starts at a multiple of 64 bytes.
//
// Everything in a panel has the row as its fastest axis, so that one vector register holds one number of each row. The
// unit of a float type is [16 inputs][16 rows]. The unit of a block type is a header with the scales and the codes of
// its blocks of 32 inputs. The codes of a block are up to three planes of bytes:
//
//	nibbles [4][16 rows][4]   byte (g, r, c): low half input 4g+c, high half input 16+4g+c
//	pairs   [2][16 rows][4]   byte (h, r, c): bits 2g, 2g+1 belong to input 16h+4g+c, g < 4
//	bits    [16 rows][4]      byte (r, c): bit g belongs to input 4g+c, g < 8
//	bytes   [8][16 rows][4]   byte (g, r, c): input 4g+c, stored with an offset of 128
//
// Expanded to unsigned bytes, each group g of a block is 16 rows × 4 consecutive inputs in 64 bytes: the operand of an
// integer dot product whose lanes are the rows.

// PanelRows is the number of matrix rows in a panel.
const PanelRows = 16

// BlockLen is the number of inputs in a block of codes, and in a block of quantized activations.
const BlockLen = 32

// maxPanelBytes bounds the size of one panel so that offsets within it fit an int32 everywhere.
const maxPanelBytes = 1 << 30

// Errors that this package wraps.
var (
	// ErrType says that there are no kernels for a weight type.
	ErrType = errors.New("simd: unsupported weight type")
	// ErrShape says that a matrix has dimensions that its type or this machine cannot hold.
	ErrShape = errors.New("simd: bad matrix shape")
)

// Weight is a packed matrix. Panels has PackedBytes(Type, Rows, Cols) bytes and starts at a multiple of 64.
// It is read-only once packed and may be shared.
type Weight struct {
	Type       quant.Type
	Rows, Cols int
	Panels     []byte
}

// class is the form that the panels of a type take when expanded for the kernels.
type class uint8

const (
	classNone  class = iota
	classBlock       // codes, a scale per block
	classMin         // codes, a scale and a minimum per block
	classHalf        // codes, a scale per half block of 16 inputs
	classQ2          // codes, a scale and a minimum per half block
	classFloat       // numbers
)

// form says how the panels of a type are built. unit counts inputs and bytes; block counts the code bytes of one block;
// header the bytes before the first block; offset is what the unsigned expanded codes exceed the true ones by.
type form struct {
	class     class
	unit      int // inputs
	unitBytes int
	header    int
	block     int // code bytes per block
	offset    int32
	pack      func(dst []byte, src []byte, row int) // one row of one unit into zeroed dst; src may end early
	expand    func(dst, unit []byte)                // one unit into expanded records
}

// Code bytes per block of the planes.
const (
	nibbleBytes = PanelRows * BlockLen / 2
	pairBytes   = PanelRows * BlockLen / 4
	bitBytes    = PanelRows * BlockLen / 8
	byteBytes   = PanelRows * BlockLen
)

// typeCount bounds the types that have a form.
const typeCount = quant.MXFP4 + 1

var forms [typeCount]form

func init() {
	simple := func(class class, header, block int, offset int32, pack func(dst, src []byte, row int), expand func(dst, unit []byte)) form {
		return form{class, 2 * BlockLen, header + 2*block, header, block, offset, pack, expand}
	}
	super := func(class class, header, block int, offset int32, pack func(dst, src []byte, row int), expand func(dst, unit []byte)) form {
		return form{class, 8 * BlockLen, header + 8*block, header, block, offset, pack, expand}
	}
	float := func(size int, pack func(dst, src []byte, row int), expand func(dst, unit []byte)) form {
		return form{class: classFloat, unit: floatUnit, unitBytes: floatUnit * PanelRows * size, pack: pack, expand: expand}
	}
	forms[quant.F32] = float(4, packF32, expandF32)
	forms[quant.F16] = float(2, packF16, expandF16)
	forms[quant.BF16] = float(2, packF16, expandBF16)
	forms[quant.Q4_0] = simple(classBlock, 64, nibbleBytes, 8, packQ40, expandQ40)
	forms[quant.Q4_1] = simple(classMin, 128, nibbleBytes, 0, packQ41, expandQ41)
	forms[quant.Q5_0] = simple(classBlock, 64, nibbleBytes+bitBytes, 16, packQ50, expandQ50)
	forms[quant.Q5_1] = simple(classMin, 128, nibbleBytes+bitBytes, 0, packQ51, expandQ51)
	forms[quant.Q8_0] = simple(classBlock, 64, byteBytes, 128, packQ80, expandQ80)
	forms[quant.IQ4_NL] = simple(classBlock, 64, nibbleBytes, 128, packQ40, expandIQ4NL)
	forms[quant.MXFP4] = simple(classBlock, 32, nibbleBytes, 16, packMXFP4, expandMXFP4)
	forms[quant.Q2_K] = super(classQ2, 64+256, pairBytes, 0, packQ2K, expandQ2K)
	forms[quant.Q3_K] = super(classHalf, 32+256, pairBytes+bitBytes, 32, packQ3K, expandQ3K)
	forms[quant.Q4_K] = super(classMin, 64+256, nibbleBytes, 0, packQ4K, expandQ4K)
	forms[quant.Q5_K] = super(classMin, 64+256, nibbleBytes+bitBytes, 0, packQ5K, expandQ5K)
	forms[quant.Q6_K] = super(classHalf, 64+256, nibbleBytes+pairBytes, 32, packQ6K, expandQ6K)
	forms[quant.IQ4_XS] = super(classBlock, 64+128, nibbleBytes, 128, packIQ4XS, expandIQ4XS)
}

// formOf returns the form of t, whose class is classNone if t has no kernels.
func formOf(t quant.Type) *form {
	if uint64(t) < uint64(len(forms)) {
		return &forms[t]
	}
	return &forms[noType]
}

// noType is a number that no packed type has.
const noType = quant.Q8_1

// units is the number of units in a row of cols inputs.
func (f *form) units(cols int) int { return (cols + f.unit - 1) / f.unit }

// panelBytes is the size of a panel, a multiple of 64.
func (f *form) panelBytes(cols int) int { return (f.units(cols)*f.unitBytes + 63) &^ 63 }

// PanelBytes is the size of one packed panel of a matrix that PackedBytes accepts.
func PanelBytes(t quant.Type, cols int) int { return formOf(t).panelBytes(cols) }

// Panels is the number of panels of a matrix with the given rows.
func Panels(rows int) int { return rows/PanelRows + (rows%PanelRows+PanelRows-1)/PanelRows }

// PackedBytes is the size of a packed matrix of rows × cols. The error is ErrType if t has no kernels, and ErrShape if
// a dimension is not positive, cols is not a multiple of the type's block length, or the size is beyond this machine.
func PackedBytes(t quant.Type, rows, cols int) (int, error) {
	f := formOf(t)
	if f.class == classNone {
		return 0, fmt.Errorf("%w: %s", ErrType, t)
	}
	if rows <= 0 || cols <= 0 || cols%t.BlockLen() != 0 {
		return 0, fmt.Errorf("%w: %d rows of %d columns of %s, whose blocks have %d", ErrShape, rows, cols, t, t.BlockLen())
	}
	// A panel takes at most 64 bytes for each input.
	if cols > maxPanelBytes/(PanelRows*4)-f.unit || Panels(rows) > math.MaxInt/f.panelBytes(cols) {
		return 0, fmt.Errorf("%w: %d rows of %d columns of %s are too many", ErrShape, rows, cols, t)
	}
	return Panels(rows) * f.panelBytes(cols), nil
}

// Pack packs the panels [panelFrom, panelTo) of a rows × cols matrix from src, the matrix's blocks row by row as in a
// file, into dst, the whole packed matrix. PackedBytes must have accepted the shape. Disjoint ranges may run
// concurrently.
func Pack(dst []byte, t quant.Type, src []byte, rows, cols, panelFrom, panelTo int) {
	f := formOf(t)
	rowBytes := cols / t.BlockLen() * t.BlockBytes()
	srcUnit := f.unit / t.BlockLen() * t.BlockBytes()
	size := f.panelBytes(cols)
	for p := panelFrom; p < panelTo; p++ {
		panel := dst[p*size : (p+1)*size]
		clear(panel)
		n := min(PanelRows, rows-p*PanelRows)
		for r := range n {
			row := src[(p*PanelRows+r)*rowBytes:][:rowBytes]
			for unit := panel; len(row) > 0; unit = unit[f.unitBytes:] {
				k := min(srcUnit, len(row))
				f.pack(unit[:f.unitBytes], row[:k], r)
				row = row[k:]
			}
		}
	}
}

// panel returns the bytes of panel p.
func (w *Weight) panel(f *form, p int) []byte {
	size := f.panelBytes(w.Cols)
	return w.Panels[p*size : (p+1)*size]
}

// DecodeRow writes the numbers of one row, exactly those that quant.Decode gives, to dst, which has w.Cols elements.
func (w *Weight) DecodeRow(dst []float32, row int) {
	f := formOf(w.Type)
	panel, r := w.panel(f, row/PanelRows), row%PanelRows
	// Every set expands to the same bits: the fastest serves.
	expand := Best().Mat.expand
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	records := s.aligned()
	for len(dst) > 0 {
		k := min(f.unit, len(dst))
		expand(f, w.Type, records, panel[:f.unitBytes])
		f.rowOf(dst[:k], records, r)
		panel, dst = panel[f.unitBytes:], dst[k:]
	}
}
