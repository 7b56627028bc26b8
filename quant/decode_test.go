package quant

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// decodable lists every type with a decoder.
func decodable() []Type {
	var types []Type
	for i := range layouts {
		if t := Type(i); t.CanDecode() {
			types = append(types, t)
		}
	}
	return types
}

// The files testdata/TYPE.blocks hold random codes with random finite scales; TYPE.f32 are the float32 values that the
// Python package gguf gives for them.
func TestDecodeReferenceBlocks(t *testing.T) {
	for _, typ := range decodable() {
		if typ == F32 {
			continue // the bytes are the values
		}
		t.Run(typ.String(), func(t *testing.T) {
			blocks := readFile(t, typ.String()+".blocks")
			want := readFile(t, typ.String()+".f32")
			got := make([]float32, len(want)/4)
			if err := Decode(typ, got, blocks); err != nil {
				t.Fatal(err)
			}
			for i, x := range got {
				if w := binary.LittleEndian.Uint32(want[4*i:]); math.Float32bits(x) != w {
					t.Fatalf("element %d: %v (%#08x), want %v (%#08x)", i, x, math.Float32bits(x), math.Float32frombits(w), w)
				}
			}
		})
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Any bytes are valid codes: decoding never panics and always fills dst.
func TestDecodeAnyBytes(t *testing.T) {
	for _, typ := range decodable() {
		for _, fill := range []byte{0, 0x55, 0xaa, 0xff} {
			const blocks = 3
			src := make([]byte, blocks*typ.BlockBytes())
			for i := range src {
				src[i] = fill
			}
			if err := Decode(typ, make([]float32, blocks*typ.BlockLen()), src); err != nil {
				t.Errorf("%s filled with %#x: %v", typ, fill, err)
			}
		}
	}
}

func TestCodecErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		typ   Type
		n     int
		bytes int
		want  error
	}{
		{"not whole blocks", Q4_0, 33, 36, ErrShape},
		{"one byte short", Q4_0, 64, 35, ErrShape},
		{"one byte long", Q8_0, 64, 69, ErrShape},
		{"super-block", Q8_0, 16, 34, ErrShape},
		{"no codec", IQ2_XXS, 256, 66, ErrType},
		{"withdrawn", 4, 32, 20, ErrType},
		{"unknown", 77, 32, 20, ErrType},
	} {
		err := Decode(c.typ, make([]float32, c.n), make([]byte, c.bytes))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.typ.String()) {
			t.Errorf("%s: Decode: %v, want %v naming %s", c.name, err, c.want, c.typ)
		}
		err = Encode(c.typ, make([]byte, c.bytes), make([]float32, c.n))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.typ.String()) {
			t.Errorf("%s: Encode: %v, want %v naming %s", c.name, err, c.want, c.typ)
		}
	}
	if err := Decode(Q4_K, nil, nil); err != nil {
		t.Errorf("nothing to decode: %v", err)
	}
}
