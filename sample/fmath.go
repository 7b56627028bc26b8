package sample

import "math"

// The functions of this file use only IEEE additions, multiplications,
// divisions and conversions; every product is converted explicitly, which
// forbids the compiler to fuse it into a multiply-add. So they give the same
// bits on every architecture, which math.Exp and math.Log do not promise.

const (
	ln2Hi  = 6.93147180369123816490e-01 // ln 2, its low 32 bits cleared
	ln2Lo  = 1.90821492927058770002e-10 // ln 2 - ln2Hi
	invLn2 = 1.44269504088896338700e+00

	// roundMagic added to a small float64 leaves its nearest integer in the low
	// mantissa bits.
	roundMagic = 1.5 * (1 << 52)
)

// expTaylor holds 1/13!, 1/12!, ..., 1/2!.
var expTaylor = [12]float64{
	1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
	1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5,
}

// exp returns e^x within 2 units in the last place; results below the smallest
// normal number are 0.
func exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 709.78:
		return math.Inf(1)
	case x < -708.39:
		return 0
	}
	// x = k ln2 + r with |r| ≤ ln2/2, then the Taylor series of e^r to r^13,
	// whose remainder is below 5e-18.
	k := float64(x*invLn2) + roundMagic - roundMagic
	r := (x - float64(k*ln2Hi)) - float64(k*ln2Lo)
	p := expTaylor[0]
	for _, c := range expTaylor[1:] {
		p = float64(p*r) + c
	}
	p = 1 + (r + float64(float64(r*r)*p))
	// k may be 1024 when p < 1: scale in two steps.
	half := int64(k) / 2
	return float64(float64(p*pow2(half)) * pow2(int64(k)-half))
}

// pow2 returns 2^k for -1022 ≤ k ≤ 1023.
func pow2(k int64) float64 { return math.Float64frombits(uint64(k+1023) << 52) }

// log returns the natural logarithm of x within 2 units in the last place; it
// is -Inf for 0, NaN below 0.
func log(x float64) float64 {
	switch {
	case x != x || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	k := 0.0
	if x < 0x1p-1022 {
		x *= 0x1p54
		k = -54
	}
	// x = 2^k m with m in [√½, √2); ln m = 2 atanh(s), s = (m-1)/(m+1), |s| < 0.1716.
	b := math.Float64bits(x)
	k += float64(int64(b>>52) - 1023)
	m := math.Float64frombits(b&(1<<52-1) | 1023<<52)
	if m > math.Sqrt2 {
		m *= 0.5
		k++
	}
	f := m - 1
	s := f / (2 + f)
	z := float64(s * s)
	p := 0.0
	for n := 25; n >= 3; n -= 2 { // odd terms z/3 + z²/5 + ...
		p = float64((p + 1/float64(n)) * z)
	}
	// 2s = f - s·f, which keeps the exact f in front.
	lo := float64(s*f) - float64(2*float64(s*p)) - float64(k*ln2Lo)
	return float64(k*ln2Hi) - (lo - f)
}

// pow returns x^y for x ≥ 0.
func pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case y == 1:
		return x
	case x == 0:
		return 0
	}
	return exp(float64(y * log(x)))
}

// exp2Bits is the resolution of exp2Table, which holds 2^(i/1024).
const exp2Bits = 10

var exp2Table = func() (t [1 << exp2Bits]float64) {
	for i := range t {
		t[i] = exp(float64(float64(i)*math.Ln2) / (1 << exp2Bits))
	}
	return t
}()

// exp2Fast returns 2^(y/1024) with a relative error below 6e-8, for
// -1000 ≤ y/1024 ≤ 0. It is for sums over a whole vocabulary: a table for the
// fraction and a linear correction of what the table's step leaves.
func exp2Fast(y float64) float64 {
	y = float64(y) // not to be fused with the caller's product
	t := y + roundMagic
	n := int64(math.Float64bits(t)) // the integer in its low bits
	r := y - (t - roundMagic)
	scaled := math.Float64bits(exp2Table[n&(1<<exp2Bits-1)]) + uint64(n>>exp2Bits)<<52
	return float64(math.Float64frombits(scaled) * (1 + float64(r*(math.Ln2/(1<<exp2Bits)))))
}
