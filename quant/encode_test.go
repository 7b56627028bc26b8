package quant

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The file testdata/encode.f32 holds blocks of 32 values: random ones of several sizes, zeros, constants, spikes, ties.
// TYPE.encoded are the bytes that the Python package gguf gives for them.
func TestEncodeReferenceBlocks(t *testing.T) {
	b := readFile(t, "encode.f32")
	src := make([]float32, len(b)/4)
	decodeF32(src, b)
	for typ := range Type(len(layouts)) {
		if !typ.CanEncode() || typ == F32 {
			continue
		}
		want := readFile(t, typ.String()+".encoded")
		got := make([]byte, len(want))
		if err := Encode(typ, got, src); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(got); i += len(got) * simpleLen / len(src) {
			n := len(got) * simpleLen / len(src)
			if !bytes.Equal(got[i:i+n], want[i:i+n]) {
				t.Errorf("%s: block %d: %x, want %x", typ, i/n, got[i:i+n], want[i:i+n])
			}
		}
	}
}

// A value comes back within half a step, and half a unit of the binary16 scale for each step it is away from zero (or
// from the minimum); the end of the signed range that has no code of its own is a whole step off.
func TestEncodeError(t *testing.T) {
	for _, c := range []struct {
		typ    Type
		levels float64 // steps over the range
		steps  float64 // largest error in steps
	}{
		{Q4_0, 8, 1}, {Q4_1, 15, 0.5}, {Q5_0, 16, 1}, {Q5_1, 31, 0.5}, {Q8_0, 127, 0.5},
	} {
		t.Run(c.typ.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				src := rapid.SliceOfN(rapid.Float32Range(-100, 100), 3*simpleLen, 3*simpleLen).Draw(rt, "src")
				encoded := make([]byte, 3*c.typ.BlockBytes())
				decoded := make([]float32, len(src))
				if err := Encode(c.typ, encoded, src); err != nil {
					rt.Fatal(err)
				}
				if err := Decode(c.typ, decoded, encoded); err != nil {
					rt.Fatal(err)
				}
				for block := range 3 {
					values := src[simpleLen*block : simpleLen*(block+1)]
					lo, hi := bounds(values)
					span := math.Max(math.Abs(float64(lo)), math.Abs(float64(hi)))
					if c.typ == Q4_1 || c.typ == Q5_1 {
						span = float64(hi) - float64(lo)
					}
					largest := math.Max(math.Abs(float64(lo)), math.Abs(float64(hi)))
					// 2⁻¹¹ is half a unit of binary16, relative; 2⁻²⁴ covers subnormal scales.
					bound := span/c.levels*c.steps + (span+largest)/(1<<11) + (c.levels+1)/(1<<24)
					for j, x := range values {
						if diff := math.Abs(float64(x) - float64(decoded[simpleLen*block+j])); diff > bound*1.001 {
							rt.Fatalf("%v came back as %v: %v off, at most %v", x, decoded[simpleLen*block+j], diff, bound)
						}
					}
				}
			})
		})
	}
}

// Values without meaning do no harm.
func TestEncodeNotFinite(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for typ := range Type(len(layouts)) {
		if !typ.CanEncode() {
			continue
		}
		for _, special := range [][2]float32{{inf, -inf}, {nan, nan}, {inf, nan}, {math.MaxFloat32, -math.MaxFloat32}, {math.SmallestNonzeroFloat32, 0}} {
			src := make([]float32, simpleLen)
			src[3], src[30] = special[0], special[1]
			dst := make([]byte, simpleLen/typ.BlockLen()*typ.BlockBytes())
			if err := Encode(typ, dst, src); err != nil {
				t.Errorf("%s of %v: %v", typ, special, err)
			}
		}
	}
}
