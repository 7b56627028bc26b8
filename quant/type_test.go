package quant

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestTypeNamesAndBlocks(t *testing.T) {
	// Elements and bytes per block as the formats define them.
	want := map[Type]struct {
		name            string
		elements, bytes int
	}{
		0: {"F32", 1, 4}, 1: {"F16", 1, 2}, 2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22},
		7: {"Q5_1", 32, 24}, 8: {"Q8_0", 32, 34}, 9: {"Q8_1", 32, 36}, 10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110},
		12: {"Q4_K", 256, 144}, 13: {"Q5_K", 256, 176}, 14: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292},
		16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50},
		20: {"IQ4_NL", 32, 18}, 21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136},
		24: {"I8", 1, 1}, 25: {"I16", 1, 2}, 26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8},
		29: {"IQ1_M", 256, 56}, 30: {"BF16", 1, 2}, 34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66},
		39: {"MXFP4", 32, 17}, 40: {"NVFP4", 64, 36}, 41: {"Q1_0", 128, 18},
	}
	for i := range Type(len(layouts) + 3) {
		w, known := want[i]
		if i.BlockLen() != w.elements || i.BlockBytes() != w.bytes {
			t.Errorf("%s: %d elements in %d bytes, want %d in %d", i, i.BlockLen(), i.BlockBytes(), w.elements, w.bytes)
		}
		got, err := ParseType(strings.ToLower(i.String()))
		if known && (i.String() != w.name || err != nil || got != i) {
			t.Errorf("type %d: named %s, want %s; parsed as %v, %v", uint32(i), i, w.name, got, err)
		}
		if !known && !errors.Is(err, ErrType) {
			t.Errorf("%s parsed as %v, %v", i, got, err)
		}
	}
	if got := Type(77).String(); got != "type(77)" {
		t.Errorf("unknown type is named %s", got)
	}
	if got := Type(4).String(); got != "Q4_2" {
		t.Errorf("withdrawn type is named %s", got)
	}
	for _, s := range []string{"", "q4", "Q4_2", "type(77)"} {
		if got, err := ParseType(s); !errors.Is(err, ErrType) {
			t.Errorf("ParseType(%q) = %v, %v", s, got, err)
		}
	}
}

func TestRowBytes(t *testing.T) {
	for _, c := range []struct {
		typ   Type
		n     int
		bytes int
		err   error
	}{
		{F32, 0, 0, nil},
		{F32, 7, 28, nil},
		{Q4_0, 64, 36, nil},
		{Q4_0, 63, 0, ErrShape},
		{Q6_K, 512, 420, nil},
		{Q6_K, 32, 0, ErrShape},
		{F16, -1, 0, ErrShape},
		{Q4_0, -32, 0, ErrShape},
		{I8, math.MaxInt, math.MaxInt, nil},
		{F16, math.MaxInt / 2, math.MaxInt - 1, nil},
		{F16, math.MaxInt/2 + 1, 0, ErrShape},
		{F64, math.MaxInt, 0, ErrShape},
		{4, 32, 0, ErrType},
		{77, 32, 0, ErrType},
		{math.MaxUint32, 32, 0, ErrType},
	} {
		if got, err := c.typ.RowBytes(c.n); got != c.bytes || !errors.Is(err, c.err) {
			t.Errorf("%s.RowBytes(%d) = %d, %v; want %d, %v", c.typ, c.n, got, err, c.bytes, c.err)
		}
	}
}
