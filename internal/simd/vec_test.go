package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// eachSet runs a test for every usable set.
func eachSet(t *testing.T, f func(t *testing.T, s *Set)) {
	t.Helper()
	for _, s := range Usable() {
		t.Run(s.ISA.String(), func(t *testing.T) { f(t, s) })
	}
}

// lengths are the vector lengths worth trying: everything near a register, and some real widths.
func lengths() []int {
	var n []int
	for i := range 70 {
		n = append(n, i)
	}
	return append(n, 127, 128, 129, 576, 896, 1000)
}

// randoms are n normal numbers with a few extremes strewn in.
func randoms(r *rand.Rand, n int) []float32 {
	special := []float32{0, float32(math.Copysign(0, -1)), 1e-30, -1e-42, 3e4, -88, 87.5, -100, 1}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if r.IntN(16) == 0 {
			x[i] = special[r.IntN(len(special))]
		}
	}
	return x
}

func wantBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if g, w := math.Float32bits(got[i]), math.Float32bits(want[i]); g != w {
			t.Fatalf("%s: element %d of %d is %g (%08x), want %g (%08x)", what, i, len(want), got[i], g, want[i], w)
		}
	}
}

func TestVecMatchesPortable(t *testing.T) {
	ref := vecFor(Generic)
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, n := range lengths() {
			a, b, w := guarded(t, randoms(r, n)), guarded(t, randoms(r, n)), guarded(t, randoms(r, n))
			got, want := guarded(t, make([]float32, n)), make([]float32, n)
			sum, wantSum := guarded(t, make([]float32, n)), make([]float32, n)
			check := func(what string) {
				t.Helper()
				wantBits(t, fmt.Sprint(what, " n=", n), got, want)
			}
			s.Add(got, a, b)
			ref.Add(want, a, b)
			check("Add")
			s.Mul(got, a, b)
			ref.Mul(want, a, b)
			check("Mul")
			s.Scale(got, a, -0.3)
			ref.Scale(want, a, -0.3)
			check("Scale")
			s.RMSNorm(got, a, w, 1e-6)
			ref.RMSNorm(want, a, w, 1e-6)
			check("RMSNorm")
			s.AddRMSNorm(sum, got, a, b, w, 1e-6)
			ref.AddRMSNorm(wantSum, want, a, b, w, 1e-6)
			check("AddRMSNorm")
			wantBits(t, "AddRMSNorm sum", sum, wantSum)
			if n > 0 && n <= 128 {
				heads := randoms(r, 3*n)
				got, want := guarded(t, heads), slices.Clone(heads)
				s.HeadRMSNorm(got, w, n, 1e-5)
				ref.HeadRMSNorm(want, w, n, 1e-5)
				wantBits(t, fmt.Sprint("HeadRMSNorm n=", n), got, want)
			}
		}
	})
}

func TestVecInPlace(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, n := range []int{1, 15, 16, 33, 100} {
			a, b := randoms(r, n), randoms(r, n)
			want, got := make([]float32, n), slices.Clone(a)
			s.Add(want, a, b)
			s.Add(got, got, b)
			wantBits(t, "Add", got, want)
			got = slices.Clone(a)
			s.RMSNorm(want, a, b, 1e-5)
			s.RMSNorm(got, got, b, 1e-5)
			wantBits(t, "RMSNorm", got, want)
			got = slices.Clone(a)
			s.SwiGLU(want, a, b)
			s.SwiGLU(got, got, b)
			wantBits(t, "SwiGLU into gate", got, want)
			got = slices.Clone(b)
			s.SwiGLU(got, a, got)
			wantBits(t, "SwiGLU into up", got, want)
			silu := make([]float32, n)
			s.Silu(silu, a)
			s.Mul(silu, silu, b)
			wantBits(t, "Silu then Mul", silu, want)
			sum, want2 := slices.Clone(a), make([]float32, n)
			s.AddRMSNorm(sum, got, sum, b, b, 1e-5)
			s.Add(want, a, b)
			s.RMSNorm(want2, want, b, 1e-5)
			wantBits(t, "AddRMSNorm sum", sum, want)
			wantBits(t, "AddRMSNorm", got, want2)
		}
	})
}

// TestPlaceFree: an element's bits do not depend on its place or on the length of the vector.
func TestPlaceFree(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(5, 6))
		x, y := randoms(r, 100), randoms(r, 100)
		all, one := make([]float32, 100), make([]float32, 1)
		s.SwiGLU(all, x, y)
		for i := range x {
			s.SwiGLU(one, x[i:i+1], y[i:i+1])
			wantBits(t, "SwiGLU", one, all[i:i+1])
		}
		s.Exp(all, x)
		for i := range x {
			for n := 1; n < 20 && i+n <= 100; n++ {
				part := make([]float32, n)
				s.Exp(part, x[i:i+n])
				wantBits(t, "Exp", part, all[i:i+n])
			}
		}
	})
}

func TestSiluMatchesFloat64(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, n := range lengths() {
			x, u := guarded(t, randoms(r, n)), guarded(t, randoms(r, n))
			got, glu := guarded(t, make([]float32, n)), guarded(t, make([]float32, n))
			s.Silu(got, x)
			s.SwiGLU(glu, x, u)
			for i, v := range x {
				want := float64(v) / (1 + math.Exp(-float64(v)))
				if math.Abs(float64(got[i])-want) > 4e-7*math.Abs(want)+1e-36 {
					t.Fatalf("n=%d: silu(%g) = %g, want %g", n, v, got[i], want)
				}
				if glu[i] != got[i]*u[i] {
					t.Fatalf("n=%d: swiglu(%g, %g) = %g, want %g", n, v, u[i], glu[i], got[i]*u[i])
				}
			}
		}
	})
}

// ulps is the distance of got from the exact value in units of the last place of float32.
func ulps(got float32, want float64) float64 {
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

func TestExp(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		var x []float32
		for v := float32(-87.33); v < 88.72; v += 0.0137 {
			x = append(x, v)
		}
		for i := range 400 { // both sides of each rounding border n+1/2
			x = append(x, float32(float64(i-200)/4*math.Ln2/2))
		}
		x = append(x, 0, 88.72283, 1e-10, -1e-10, 1e-40)
		got := make([]float32, len(x))
		s.Exp(got, x)
		worst := 0.0
		for i, v := range x {
			if u := ulps(got[i], math.Exp(float64(v))); u > worst {
				worst = u
				if u > 2 {
					t.Errorf("exp(%g) = %g, want %g: %.2f ulp", v, got[i], math.Exp(float64(v)), u)
				}
			}
		}
		t.Logf("worst error %.3f ulp of %d", worst, len(x))
		inf := float32(math.Inf(1))
		ends := []float32{-inf, -1e30, -104, -88, inf, 88.73, 1e30, 0, float32(math.NaN()), math.Float32frombits(0xffffffff)}
		want := []float32{0, 0, 0, 0, inf, inf, inf, 1}
		got = make([]float32, len(ends))
		s.Exp(got, ends)
		wantBits(t, "ends", got, want)
		if got[8] == got[8] || got[9] == got[9] {
			t.Errorf("exp(NaN) = %g, %g", got[8], got[9])
		}
		s.Silu(got, ends)
		if got[8] == got[8] || got[9] == got[9] || got[4] != inf || got[1] != 0 {
			t.Errorf("silu(%v) = %v", ends, got)
		}
	})
}

func TestRope(t *testing.T) {
	ref := vecFor(Generic)
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, c := range []struct{ headDim, rot int }{{2, 2}, {6, 4}, {16, 16}, {20, 10}, {64, 64}, {80, 20}, {80, 80}, {96, 48}, {128, 128}, {256, 64}, {64, 0}, {34, 34}, {62, 62}} {
			x := randoms(r, 3*c.headDim)
			cos, sin := guarded(t, randoms(r, c.rot/2)), guarded(t, randoms(r, c.rot/2))
			got, want := guarded(t, x), slices.Clone(x)
			s.RopeNeox(got, c.headDim, c.rot, cos, sin)
			ref.RopeNeox(want, c.headDim, c.rot, cos, sin)
			wantBits(t, fmt.Sprint("RopeNeox ", c), got, want)
			got, want = guarded(t, x), slices.Clone(x)
			s.RopeNorm(got, c.headDim, c.rot, cos, sin)
			ref.RopeNorm(want, c.headDim, c.rot, cos, sin)
			wantBits(t, fmt.Sprint("RopeNorm ", c), got, want)
		}
	})
}

// TestRopeTurns checks the pairing and the direction against complex multiplication.
func TestRopeTurns(t *testing.T) {
	const headDim, rot = 8, 6
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	angle := []float64{0.1, 0.7, 2}
	cos, sin := make([]float32, 3), make([]float32, 3)
	for i, a := range angle {
		cos[i], sin[i] = float32(math.Cos(a)), float32(math.Sin(a))
	}
	eachSet(t, func(t *testing.T, s *Set) {
		for name, at := range map[string]func(i int) (int, int){
			"neox": func(i int) (int, int) { return i, i + 3 },
			"norm": func(i int) (int, int) { return 2 * i, 2*i + 1 },
		} {
			got, want := slices.Clone(x), slices.Clone(x)
			for i, a := range angle {
				p, q := at(i)
				z := complex(float64(x[p]), float64(x[q])) * complex(math.Cos(a), math.Sin(a))
				want[p], want[q] = float32(real(z)), float32(imag(z))
			}
			if name == "neox" {
				s.RopeNeox(got, headDim, rot, cos, sin)
			} else {
				s.RopeNorm(got, headDim, rot, cos, sin)
			}
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-5 {
					t.Errorf("%s: element %d is %g, want %g", name, i, got[i], want[i])
				}
			}
		}
	})
}

func TestRMSNormMatchesFloat64(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(11, 12))
		x, w, got := randoms(r, 896), randoms(r, 896), make([]float32, 896)
		s.RMSNorm(got, x, w, 1e-6)
		sum := 0.0
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		f := 1 / math.Sqrt(sum/896+1e-6)
		for i := range x {
			want := float64(x[i]) * f * float64(w[i])
			if math.Abs(float64(got[i])-want) > 2e-7*math.Abs(want)+1e-44 {
				t.Fatalf("element %d is %g, want %g", i, got[i], want)
			}
		}
	})
}
