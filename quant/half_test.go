package quant

import (
	"math"
	"testing"
)

// f16Value is the definition of binary16: (-1)^s × 2^(e−15) × (1 + m/1024), subnormal for e = 0. h must be finite.
func f16Value(h uint16) float64 {
	e, m := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1+m/1024, e-15)
	if e == 0 {
		v = math.Ldexp(m, -24)
	}
	if h&0x8000 != 0 {
		v = -v
	}
	return v
}

func TestF16ToF32Exhaustive(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got := F16ToF32(h)
		switch {
		case h&0x7fff > 0x7c00: // sign, quiet bit and payload
			if want := uint32(h&0x8000)<<16 | 0x7fc00000 | uint32(h&1023)<<13; math.Float32bits(got) != want {
				t.Fatalf("NaN %#04x: %#08x, want %#08x", h, math.Float32bits(got), want)
			}
		case h&0x7fff == 0x7c00:
			if sign := 1 - int(h>>15)*2; !math.IsInf(float64(got), sign) {
				t.Fatalf("%#04x: %v", h, got)
			}
		default:
			if want := f16Value(h); float64(got) != want || math.Signbit(float64(got)) != math.Signbit(want) {
				t.Fatalf("%#04x: %v, want %v", h, got, want)
			}
		}
	}
}

// Every binary16 number comes back, and between every two neighbours the float32 numbers at, just below and just above
// the middle round where they should.
func TestF32ToF16Exhaustive(t *testing.T) {
	check := func(f float32, want uint16) {
		t.Helper()
		if got := F32ToF16(f); got != want {
			t.Fatalf("%v (%#08x): %#04x, want %#04x", f, math.Float32bits(f), got, want)
		}
	}
	for i := range 1 << 16 {
		h := uint16(i)
		if h&0x7fff > 0x7c00 {
			check(F16ToF32(h), h|0x200)
			continue
		}
		check(F16ToF32(h), h)
		if h&0x7fff == 0x7c00 {
			continue
		}
		// The neighbour away from zero; past the largest it would be ±2¹⁶.
		next := math.Copysign(65536, f16Value(h))
		if h&0x7fff != 0x7bff {
			next = f16Value(h + 1)
		}
		middle := float32((f16Value(h) + next) / 2)
		infinity := float32(math.Inf(1 - int(h>>15)*2))
		check(math.Nextafter32(middle, 0), h)
		check(middle, h+h&1)
		check(math.Nextafter32(middle, infinity), h+1)
	}
	check(math.MaxFloat32, 0x7c00)
	check(math.SmallestNonzeroFloat32, 0)
	check(-math.SmallestNonzeroFloat32, 0x8000)
	check(math.Float32frombits(0xff800001), 0xfe00) // a NaN whose payload lies in the dropped bits stays one
}

func TestBF16Exhaustive(t *testing.T) {
	check := func(bits uint32, want uint16) {
		t.Helper()
		if got := F32ToBF16(math.Float32frombits(bits)); got != want {
			t.Fatalf("%#08x: %#04x, want %#04x", bits, got, want)
		}
	}
	for i := range 1 << 16 {
		h := uint16(i)
		bits := uint32(h) << 16
		if got := math.Float32bits(BF16ToF32(h)); got != bits {
			t.Fatalf("%#04x: %#08x", h, got)
		}
		if h&0x7fff > 0x7f80 {
			check(bits, h|0x40)
			check(bits|0xffff, h|0x40)
			continue
		}
		check(bits, h)
		if h&0x7fff == 0x7f80 {
			check(bits|1, h|0x40) // a NaN whose payload lies in the dropped bits stays one
			continue
		}
		check(bits|0x7fff, h)
		check(bits|0x8000, h+h&1)
		check(bits|0x8001, h+1)
	}
}
