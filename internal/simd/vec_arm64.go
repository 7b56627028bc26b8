//go:build arm64 && !purego

package simd

func accelerateVec(isa ISA, v *Vec) {
	if isa != NEON {
		return
	}
	v.RMSNorm = rmsNormNEON
	v.AddRMSNorm = func(sum, dst, a, b, w []float32, eps float32) {
		addNEONSlice(sum, a, b)
		rmsNormNEON(dst, sum, w, eps)
	}
	v.HeadRMSNorm = func(x, w []float32, headDim int, eps float32) {
		for ; len(x) >= headDim; x = x[headDim:] {
			rmsNormNEON(x[:headDim], x[:headDim], w, eps)
		}
	}
	v.Add = addNEONSlice
	v.Mul = func(dst, a, b []float32) {
		if n := len(dst); n > 0 {
			mulNEON(&dst[0], &a[:n][0], &b[:n][0], n)
		}
	}
	v.Scale = func(dst, x []float32, s float32) {
		if n := len(dst); n > 0 {
			scaleNEON(&dst[0], &x[:n][0], n, s)
		}
	}
	v.Silu = func(dst, x []float32) {
		if n := len(dst); n > 0 {
			siluNEON(&dst[0], &x[:n][0], n)
		}
	}
	v.Exp = func(dst, x []float32) {
		if n := len(dst); n > 0 {
			expNEON(&dst[0], &x[:n][0], n)
		}
	}
	v.SwiGLU = func(dst, gate, up []float32) {
		if n := len(dst); n > 0 {
			swigluNEON(&dst[0], &gate[:n][0], &up[:n][0], n)
		}
	}
	v.RopeNeox = func(x []float32, headDim, rot int, cos, sin []float32) {
		if half := rot / 2; half > 0 && len(x) >= headDim {
			_ = x[:headDim][rot-1]
			ropeNeoxNEON(&x[0], &cos[:half][0], &sin[:half][0], len(x)/headDim, headDim, half)
		}
	}
	v.RopeNorm = func(x []float32, headDim, rot int, cos, sin []float32) {
		if half := rot / 2; half > 0 && len(x) >= headDim {
			_ = x[:headDim][rot-1]
			ropeNormNEON(&x[0], &cos[:half][0], &sin[:half][0], len(x)/headDim, headDim, half)
		}
	}
	v.F32ToF16 = func(dst []uint16, src []float32) {
		if n := len(dst); n > 0 {
			f32ToF16NEON(&dst[0], &src[:n][0], n)
		}
	}
	v.F16ToF32 = func(dst []float32, src []uint16) {
		if n := len(dst); n > 0 {
			f16ToF32NEON(&dst[0], &src[:n][0], n)
		}
	}
}

func addNEONSlice(dst, a, b []float32) {
	if n := len(dst); n > 0 {
		addNEON(&dst[0], &a[:n][0], &b[:n][0], n)
	}
}

func rmsNormNEON(dst, x, w []float32, eps float32) {
	n := len(x)
	if n == 0 {
		return
	}
	var tail [normLanes]float32
	copy(tail[:], x[n/normLanes*normLanes:])
	var sum float64
	sumSquaresNEON(&sum, &x[0], n, &tail[0])
	scaleMulNEON(&dst[:n][0], &x[0], &w[:n][0], n, normScale(sum, n, eps))
}
