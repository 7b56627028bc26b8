//go:build amd64 && !purego

package simd

// The AVX2 kernels take whole registers. The rest of a vector goes through the portable twin where that gives the same
// bits, else through the kernel in a padded copy.

const lanesAVX2 = 8

func vecAVX2(v *Vec) {
	v.RMSNorm = rmsNorm256
	v.AddRMSNorm = func(sum, dst, a, b, w []float32, eps float32) {
		add256(sum, a, b)
		rmsNorm256(dst, sum, w, eps)
	}
	v.HeadRMSNorm = func(x, w []float32, headDim int, eps float32) {
		for ; len(x) >= headDim; x = x[headDim:] {
			rmsNorm256(x[:headDim], x[:headDim], w, eps)
		}
	}
	v.Add = add256
	v.Mul = func(dst, a, b []float32) {
		n := whole(len(dst))
		a, b = a[:len(dst)], b[:len(dst)]
		if n > 0 {
			mulAVX2(&dst[0], &a[0], &b[0], n)
		}
		mulGeneric(dst[n:], a[n:], b[n:])
	}
	v.Scale = scale256
	v.Silu = func(dst, x []float32) {
		n := whole(len(dst))
		x = x[:len(dst)]
		if n > 0 {
			siluAVX2(&dst[0], &x[0], n)
		}
		if n < len(x) {
			var p [lanesAVX2]float32
			copy(p[:], x[n:])
			siluAVX2(&p[0], &p[0], lanesAVX2)
			copy(dst[n:], p[:])
		}
	}
	v.Exp = func(dst, x []float32) {
		n := whole(len(dst))
		x = x[:len(dst)]
		if n > 0 {
			expAVX2(&dst[0], &x[0], n)
		}
		if n < len(x) {
			var p [lanesAVX2]float32
			copy(p[:], x[n:])
			expAVX2(&p[0], &p[0], lanesAVX2)
			copy(dst[n:], p[:])
		}
	}
	v.SwiGLU = func(dst, gate, up []float32) {
		n := whole(len(dst))
		gate, up = gate[:len(dst)], up[:len(dst)]
		if n > 0 {
			swigluAVX2(&dst[0], &gate[0], &up[0], n)
		}
		if n < len(gate) {
			var p, q [lanesAVX2]float32
			copy(p[:], gate[n:])
			copy(q[:], up[n:])
			swigluAVX2(&p[0], &p[0], &q[0], lanesAVX2)
			copy(dst[n:], p[:])
		}
	}
	v.RopeNeox = func(x []float32, headDim, rot int, cos, sin []float32) {
		half := rot / 2
		if half == 0 || half%8 != 0 || len(x) < headDim {
			ropeNeoxGeneric(x, headDim, rot, cos, sin)
			return
		}
		_ = x[:headDim][rot-1]
		ropeNeoxAVX2(&x[0], &cos[:half][0], &sin[:half][0], len(x)/headDim, headDim, half)
	}
	v.RopeNorm = func(x []float32, headDim, rot int, cos, sin []float32) {
		half := rot / 2
		if half == 0 || half%4 != 0 || len(x) < headDim {
			ropeNormGeneric(x, headDim, rot, cos, sin)
			return
		}
		_ = x[:headDim][rot-1]
		ropeNormAVX2(&x[0], &cos[:half][0], &sin[:half][0], len(x)/headDim, headDim, half)
	}
	v.F32ToF16 = func(dst []uint16, src []float32) {
		n := whole(len(dst))
		src = src[:len(dst)]
		if n > 0 {
			f32ToF16AVX2(&dst[0], &src[0], n)
		}
		f32ToF16Generic(dst[n:], src[n:])
	}
	v.F16ToF32 = f16ToF32x8
}

// whole is the part of n elements that fills registers.
func whole(n int) int { return n / lanesAVX2 * lanesAVX2 }

func add256(dst, a, b []float32) {
	n := whole(len(dst))
	a, b = a[:len(dst)], b[:len(dst)]
	if n > 0 {
		addAVX2(&dst[0], &a[0], &b[0], n)
	}
	addGeneric(dst[n:], a[n:], b[n:])
}

func scale256(dst, x []float32, s float32) {
	n := whole(len(dst))
	x = x[:len(dst)]
	if n > 0 {
		scaleAVX2(&dst[0], &x[0], n, s)
	}
	scaleGeneric(dst[n:], x[n:], s)
}

func f16ToF32x8(dst []float32, src []uint16) {
	n := whole(len(dst))
	src = src[:len(dst)]
	if n > 0 {
		f16ToF32AVX2(&dst[0], &src[0], n)
	}
	f16ToF32Generic(dst[n:], src[n:])
}

func rmsNorm256(dst, x, w []float32, eps float32) {
	n := len(x)
	if n == 0 {
		return
	}
	dst, w = dst[:n], w[:n]
	var tail [normLanes]float32
	copy(tail[:], x[n/normLanes*normLanes:])
	var sum float64
	sumSquaresAVX2(&sum, &x[0], n, &tail[0])
	s := normScale(sum, n, eps)
	if k := whole(n); k > 0 {
		scaleMulAVX2(&dst[0], &x[0], &w[0], k, s)
	}
	for i := whole(n); i < n; i++ {
		dst[i] = x[i] * s * w[i]
	}
}
