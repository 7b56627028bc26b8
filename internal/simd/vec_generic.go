package simd

import "math"

// normLanes is the number of float64 partial sums of a norm: element i adds to lane i%normLanes, and the lanes are
// folded by halves. A product of two float32 is exact in float64, so fused and separate arithmetic agree.
const normLanes = 32

// sumSquares is the sum of x[i]² over normLanes lanes.
func sumSquares(x []float32) float64 {
	var lane [normLanes]float64
	for len(x) >= normLanes {
		for j, v := range x[:normLanes] {
			lane[j] += float64(v) * float64(v)
		}
		x = x[normLanes:]
	}
	for j, v := range x {
		lane[j] += float64(v) * float64(v)
	}
	for n := normLanes / 2; n > 0; n /= 2 {
		for j := range n {
			lane[j] += lane[j+n]
		}
	}
	return lane[0]
}

// normScale is 1/sqrt(mean+eps) for the sum of squares of n elements.
func normScale(sum float64, n int, eps float32) float32 {
	return float32(1 / math.Sqrt(sum/float64(n)+float64(eps)))
}

func rmsNormGeneric(dst, x, w []float32, eps float32) {
	if len(x) == 0 {
		return
	}
	s := normScale(sumSquares(x), len(x), eps)
	dst, w = dst[:len(x)], w[:len(x)]
	for i, v := range x {
		dst[i] = v * s * w[i]
	}
}

func addRMSNormGeneric(sum, dst, a, b, w []float32, eps float32) {
	addGeneric(sum, a, b)
	rmsNormGeneric(dst, sum, w, eps)
}

func headRMSNormGeneric(x, w []float32, headDim int, eps float32) {
	for ; len(x) >= headDim; x = x[headDim:] {
		rmsNormGeneric(x[:headDim], x[:headDim], w, eps)
	}
}

func addGeneric(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func mulGeneric(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func scaleGeneric(dst, x []float32, s float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * s
	}
}

// silu32 is x·sigmoid(x).
func silu32(x float32) float32 { return x / (1 + exp32(-x)) }

func siluGeneric(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = silu32(x[i])
	}
}

func swigluGeneric(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i := range dst {
		dst[i] = silu32(gate[i]) * up[i]
	}
}
