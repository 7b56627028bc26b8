package simd

// Vec is the element-wise work of one instruction set. Slices of one call have equal lengths unless said otherwise; a
// destination may be the same slice as a source, but must not overlap one otherwise. Nothing allocates.
//
// Every function gives an element the same bits wherever it stands in the vector and however long the vector is. All
// functions but Exp, Silu and SwiGLU give the same bits in every set; those three may differ between sets in the last
// bits because assembly uses fused multiply-add.
type Vec struct {
	// RMSNorm: dst[i] = x[i] * (1/sqrt(mean(x²)+eps)) * w[i]. The mean is taken in float64.
	RMSNorm func(dst, x, w []float32, eps float32)
	// AddRMSNorm: sum = a + b, dst = RMSNorm(sum): the bits of Add followed by RMSNorm. sum may be a or b.
	AddRMSNorm func(sum, dst, a, b, w []float32, eps float32)
	// HeadRMSNorm is RMSNorm in place on each run of headDim elements of x; w has headDim elements.
	HeadRMSNorm func(x, w []float32, headDim int, eps float32)

	Add    func(dst, a, b []float32)         // dst[i] = a[i] + b[i]
	Mul    func(dst, a, b []float32)         // dst[i] = a[i] * b[i]
	Scale  func(dst, x []float32, s float32) // dst[i] = x[i] * s
	Silu   func(dst, x []float32)            // dst[i] = x[i] / (1 + exp(-x[i]))
	Exp    func(dst, x []float32)            // dst[i] = exp(x[i]), within 2 ulp; see exp32 for the ends of the range
	SwiGLU func(dst, gate, up []float32)     // dst[i] = silu(gate[i]) * up[i]: the bits of Silu followed by Mul

	// RopeNeox rotates the pairs (i, i+rot/2), i < rot/2, of each head of headDim elements in x, in place, by the angles
	// whose cosines and sines are cos[i] and sin[i]; elements from rot on stay. rot is even and at most headDim.
	RopeNeox func(x []float32, headDim, rot int, cos, sin []float32)
	// RopeNorm is RopeNeox over the pairs (2i, 2i+1).
	RopeNorm func(x []float32, headDim, rot int, cos, sin []float32)

	F32ToF16 func(dst []uint16, src []float32) // IEEE half precision, round to nearest even
	F16ToF32 func(dst []float32, src []uint16)
}

func vecFor(isa ISA) Vec {
	v := Vec{
		RMSNorm:     rmsNormGeneric,
		AddRMSNorm:  addRMSNormGeneric,
		HeadRMSNorm: headRMSNormGeneric,
		Add:         addGeneric,
		Mul:         mulGeneric,
		Scale:       scaleGeneric,
		Silu:        siluGeneric,
		Exp:         expGeneric,
		SwiGLU:      swigluGeneric,
		RopeNeox:    ropeNeoxGeneric,
		RopeNorm:    ropeNormGeneric,
		F32ToF16:    f32ToF16Generic,
		F16ToF32:    f16ToF32Generic,
	}
	accelerateVec(isa, &v)
	return v
}
