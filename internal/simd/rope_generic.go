package simd

// rotate turns the pair (a, b) by the angle with cosine c and sine s. Each product is rounded, in every set.
func rotate(a, b, c, s float32) (x, y float32) {
	return float32(a*c) - float32(b*s), float32(a*s) + float32(b*c)
}

func ropeNeoxGeneric(x []float32, headDim, rot int, cos, sin []float32) {
	half := rot / 2
	for ; len(x) >= headDim; x = x[headDim:] {
		lo, hi := x[:half], x[half:rot]
		for i := range lo {
			lo[i], hi[i] = rotate(lo[i], hi[i], cos[i], sin[i])
		}
	}
}

func ropeNormGeneric(x []float32, headDim, rot int, cos, sin []float32) {
	half := rot / 2
	for ; len(x) >= headDim; x = x[headDim:] {
		for i := range half {
			x[2*i], x[2*i+1] = rotate(x[2*i], x[2*i+1], cos[i], sin[i])
		}
	}
}
