package simd

import "math"

// The constants of exp: x = n·ln2 + r with n = rint(x·log2e) and |r| <= ln2/2, so that exp(x) = 2ⁿ·exp(r). ln2 is split
// so that n·expLn2Hi is exact (Cody and Waite). The coefficients are the minimax polynomial of degree 6 of exp on that
// interval with the two lowest fixed at 1.
const (
	expLog2e = 1.44269504088896341
	expMagic = 12582912.0 // 1.5·2²³: adding it rounds to an integer and leaves that integer in the low bits
	expLn2Hi = 0.693359375
	expLn2Lo = -2.12194440e-4
	expC6    = 0.001381454
	expC5    = 0.008368745
	expC4    = 0.04166839
	expC3    = 0.16666521
	expC2    = 0.49999994
	expMin   = -87.33   // below it the result would be denormal: 0
	expMax   = 88.72283 // above it the result exceeds float32: +Inf
)

// exp32 is exp(x) within 2 ulp. Results below the smallest normal number are exactly 0 (so exp(-Inf) is), results above
// the largest are +Inf, and NaN stays NaN.
func exp32(x float32) float32 {
	if x != x { // its low bits must not reach the exponent below
		return x
	}
	if x < expMin {
		return 0
	}
	if x > expMax {
		return float32(math.Inf(1))
	}
	t := float32(x*expLog2e) + expMagic
	n := t - expMagic
	r := x - float32(n*expLn2Hi)
	r -= float32(n * expLn2Lo)
	p := float32(expC6)
	p = float32(p*r) + expC5
	p = float32(p*r) + expC4
	p = float32(p*r) + expC3
	p = float32(p*r) + expC2
	p = float32(p*r) + 1
	p = float32(p*r) + 1
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(t)<<23)
}

func expGeneric(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = exp32(x[i])
	}
}
