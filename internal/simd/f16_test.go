package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

func TestF16RoundTrip(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	eachSet(t, func(t *testing.T, s *Set) {
		wide, back := make([]float32, len(all)), make([]uint16, len(all))
		s.F16ToF32(wide, all)
		s.F32ToF16(back, wide)
		for i, h := range all {
			want := h
			if h&0x7c00 == 0x7c00 && h&0x3ff != 0 {
				want |= 0x200 // signalling NaN comes out quiet
			}
			if back[i] != want {
				t.Fatalf("%04x -> %g -> %04x", h, wide[i], back[i])
			}
			if h&0x7c00 != 0x7c00 {
				frac, exp := float64(h&0x3ff), int(h>>10&0x1f)
				value := math.Ldexp(frac, -24)
				if exp > 0 {
					value = math.Ldexp(1024+frac, exp-25)
				}
				if h&0x8000 != 0 {
					value = -value
				}
				if float64(wide[i]) != value {
					t.Fatalf("%04x is %g, want %g", h, wide[i], value)
				}
			}
		}
	})
}

func TestF16MatchesPortable(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	src := make([]float32, 1<<16)
	for i := range src {
		src[i] = math.Float32frombits(r.Uint32())
		if i%2 == 0 { // near the halves, ties included
			src[i] = quant.F16ToF32(uint16(r.Uint32()))
			src[i] = math.Float32frombits(math.Float32bits(src[i]) + uint32(r.IntN(3)-1) + uint32(r.IntN(2))<<12)
		}
	}
	eachSet(t, func(t *testing.T, s *Set) {
		got, want := make([]uint16, len(src)), make([]uint16, len(src))
		s.F32ToF16(got, src)
		f32ToF16Generic(want, src)
		for i := range src {
			if got[i] != want[i] {
				t.Fatalf("%g (%08x) -> %04x, want %04x", src[i], math.Float32bits(src[i]), got[i], want[i])
			}
		}
		for _, n := range lengths() {
			h, f := guarded(t, got[:n]), guarded(t, src[:n])
			out, wide := guarded(t, make([]uint16, n)), guarded(t, make([]float32, n))
			s.F32ToF16(out, f)
			s.F16ToF32(wide, h)
			for i := range n {
				if out[i] != want[i] || math.Float32bits(wide[i]) != math.Float32bits(quant.F16ToF32(h[i])) {
					t.Fatalf("n=%d: element %d differs", n, i)
				}
			}
		}
	})
}
