package simd

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// matTypes lists the weight types that have a packed form.
func matTypes() []quant.Type {
	var types []quant.Type
	for i := range forms {
		if forms[i].class != classNone {
			types = append(types, quant.Type(i))
		}
	}
	return types
}

// halfFields are the offsets of the binary16 numbers in a block.
var halfFields = map[quant.Type][]int{
	quant.Q4_0: {0}, quant.Q4_1: {0, 2}, quant.Q5_0: {0}, quant.Q5_1: {0, 2}, quant.Q8_0: {0}, quant.IQ4_NL: {0},
	quant.Q2_K: {80, 82}, quant.Q3_K: {108}, quant.Q4_K: {0, 2}, quant.Q5_K: {0, 2}, quant.Q6_K: {208}, quant.IQ4_XS: {0},
}

// randomBlocks is a random rows × cols matrix as a file has it. Codes are any bytes; scales are finite, one in a dozen
// an extreme: zero, the least subnormal, the greatest, negative.
func randomBlocks(rng *rand.Rand, t quant.Type, rows, cols int, extremes bool) []byte {
	n, err := t.RowBytes(cols)
	if err != nil {
		panic(err)
	}
	src := make([]byte, rows*n)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	number := func() float32 {
		if extremes && rng.IntN(12) == 0 {
			return []float32{0, 0x1p-24, -0x1p-24, 65504, -65504, -1}[rng.IntN(6)]
		}
		return float32(rng.NormFloat64()) / 16
	}
	for at := 0; at < len(src); at += t.BlockBytes() {
		block := src[at:]
		switch t {
		case quant.F32:
			putF32(block, number())
		case quant.F16:
			put16(block, quant.F32ToF16(number()))
		case quant.BF16:
			put16(block, quant.F32ToBF16(number()))
		case quant.MXFP4:
			block[0] = 100 + byte(rng.IntN(40))
			if extremes && rng.IntN(8) == 0 {
				block[0] = byte(rng.IntN(4))
			}
		}
		for _, field := range halfFields[t] {
			put16(block[field:], quant.F32ToF16(number()))
		}
	}
	return src
}

// packed packs a matrix into memory with inaccessible pages around it.
func packed(t testing.TB, typ quant.Type, src []byte, rows, cols int) *Weight {
	t.Helper()
	n, err := PackedBytes(typ, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	w := &Weight{Type: typ, Rows: rows, Cols: cols, Panels: guardAlloc[byte](t, n)}
	for i := range w.Panels {
		w.Panels[i] = 0xa5 // Pack must not rely on zeroed memory
	}
	Pack(w.Panels, typ, src, rows, cols, 0, Panels(rows)/2)
	Pack(w.Panels, typ, src, rows, cols, Panels(rows)/2, Panels(rows))
	return w
}

// decoded is the matrix as package quant decodes it.
func decoded(t testing.TB, typ quant.Type, src []byte, rows, cols int) []float32 {
	t.Helper()
	out := make([]float32, rows*cols)
	if err := quant.Decode(typ, out, src); err != nil {
		t.Fatal(err)
	}
	return out
}

// shortCols are numbers of columns near the borders of a type's units and spans.
func shortCols(t quant.Type) []int {
	switch formOf(t).unit {
	case floatUnit:
		return []int{1, 15, 16, 17, 64, 255, 257}
	case 2 * BlockLen:
		return []int{32, 64, 96, 1024, 1056, 1088}
	}
	return []int{256, 512, 1024, 1280}
}

func TestPackIsLossless(t *testing.T) {
	oneGoroutine(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range matTypes() {
		for _, cols := range shortCols(typ) {
			for _, rows := range []int{1, 15, 16, 17, 40} {
				src := randomBlocks(rng, typ, rows, cols, true)
				w, want := packed(t, typ, src, rows, cols), decoded(t, typ, src, rows, cols)
				got := guardAlloc[float32](t, cols)
				for row := range rows {
					w.DecodeRow(got, row)
					for i, x := range got {
						if y := want[row*cols+i]; math.Float32bits(x) != math.Float32bits(y) {
							t.Fatalf("%s %d×%d: row %d input %d: %v, want %v", typ, rows, cols, row, i, x, y)
						}
					}
				}
			}
		}
	}
}

// A packed matrix of whole panels and units is no more than 3% larger than the file's, Q3_K apart: its 12 bytes of
// 6-bit scales become 16.
func TestPackedSize(t *testing.T) {
	for _, typ := range matTypes() {
		got, err := PackedBytes(typ, 1024, 4096)
		if err != nil {
			t.Fatal(err)
		}
		row, _ := typ.RowBytes(4096)
		limit := 1.03
		if typ == quant.Q3_K {
			limit = 1.04
		}
		if ratio := float64(got) / float64(1024*row); ratio > limit {
			t.Errorf("%s: packed is %.3f of the file's size", typ, ratio)
		}
		if got != 64*PanelBytes(typ, 4096) {
			t.Errorf("%s: %d bytes are not 64 panels of %d", typ, got, PanelBytes(typ, 4096))
		}
	}
}

func TestPackedBytesErrors(t *testing.T) {
	for _, c := range []struct {
		typ        quant.Type
		rows, cols int
		want       error
	}{
		{quant.Q4_0, 16, 33, ErrShape},
		{quant.Q4_0, 0, 32, ErrShape},
		{quant.Q4_0, 16, 0, ErrShape},
		{quant.Q4_0, -1, 32, ErrShape},
		{quant.Q4_0, 16, -32, ErrShape},
		{quant.Q4_K, 16, 128, ErrShape},
		{quant.F32, math.MaxInt, 16, ErrShape},
		{quant.F32, 16, math.MaxInt, ErrShape},
		{quant.F32, 16, maxPanelBytes / 64, ErrShape},
		{quant.Q6_K, math.MaxInt - 15, 256, ErrShape},
		{quant.Q8_K, 16, 256, ErrType},
		{quant.I8, 16, 256, ErrType},
		{quant.Type(4000000000), 16, 256, ErrType},
		{noType, 16, 256, ErrType},
	} {
		if n, err := PackedBytes(c.typ, c.rows, c.cols); !errors.Is(err, c.want) {
			t.Errorf("%s %d×%d: %d, %v, want %v", c.typ, c.rows, c.cols, n, err, c.want)
		}
	}
	if n, err := PackedBytes(quant.F32, 16, maxPanelBytes/64-floatUnit); err != nil || n > maxPanelBytes {
		t.Errorf("the widest panel: %d, %v", n, err)
	}
}
