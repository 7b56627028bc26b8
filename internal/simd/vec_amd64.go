//go:build amd64 && !purego

package simd

func accelerateVec(isa ISA, v *Vec) {
	switch isa {
	case AVX512:
		vecAVX512(v)
	case AVX2:
		vecAVX2(v)
	}
}

func vecAVX512(v *Vec) {
	v.RMSNorm = rmsNorm512
	v.AddRMSNorm = func(sum, dst, a, b, w []float32, eps float32) {
		add512(sum, a, b)
		rmsNorm512(dst, sum, w, eps)
	}
	v.HeadRMSNorm = func(x, w []float32, headDim int, eps float32) {
		for ; len(x) >= headDim; x = x[headDim:] {
			rmsNorm512(x[:headDim], x[:headDim], w, eps)
		}
	}
	v.Add = add512
	v.Mul = func(dst, a, b []float32) {
		if n := len(dst); n > 0 {
			mulAVX512(&dst[0], &a[:n][0], &b[:n][0], n)
		}
	}
	v.Scale = func(dst, x []float32, s float32) {
		if n := len(dst); n > 0 {
			scaleAVX512(&dst[0], &x[:n][0], n, s)
		}
	}
	v.Silu = func(dst, x []float32) {
		if n := len(dst); n > 0 {
			siluAVX512(&dst[0], &x[:n][0], n)
		}
	}
	v.Exp = func(dst, x []float32) {
		if n := len(dst); n > 0 {
			expAVX512(&dst[0], &x[:n][0], n)
		}
	}
	v.SwiGLU = func(dst, gate, up []float32) {
		if n := len(dst); n > 0 {
			swigluAVX512(&dst[0], &gate[:n][0], &up[:n][0], n)
		}
	}
	v.RopeNeox = func(x []float32, headDim, rot int, cos, sin []float32) {
		if half := rot / 2; half > 0 && len(x) >= headDim {
			_ = x[:headDim][rot-1]
			ropeNeoxAVX512(&x[0], &cos[:half][0], &sin[:half][0], len(x)/headDim, headDim, half)
		}
	}
	v.RopeNorm = func(x []float32, headDim, rot int, cos, sin []float32) {
		if half := rot / 2; half > 0 && len(x) >= headDim {
			_ = x[:headDim][rot-1]
			ropeNormAVX512(&x[0], &cos[:half][0], &sin[:half][0], len(x)/headDim, headDim, half)
		}
	}
	v.F32ToF16 = func(dst []uint16, src []float32) {
		if n := len(dst); n > 0 {
			f32ToF16AVX512(&dst[0], &src[:n][0], n)
		}
	}
	v.F16ToF32 = f16ToF32Wide
}

func add512(dst, a, b []float32) {
	if n := len(dst); n > 0 {
		addAVX512(&dst[0], &a[:n][0], &b[:n][0], n)
	}
}

func f16ToF32Wide(dst []float32, src []uint16) {
	if n := len(dst); n > 0 {
		f16ToF32AVX512(&dst[0], &src[:n][0], n)
	}
}

func rmsNorm512(dst, x, w []float32, eps float32) {
	n := len(x)
	if n == 0 {
		return
	}
	var sum float64
	sumSquaresAVX512(&sum, &x[0], n)
	scaleMulAVX512(&dst[:n][0], &x[0], &w[:n][0], n, normScale(sum, n, eps))
}
