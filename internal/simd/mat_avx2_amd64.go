//go:build amd64 && !purego

package simd

import "github.com/minfer-go/minfer/quant"

// The generated kernels of AVX2, by class or type and, where they have one, by the width of the group.

// tileAVX2 is the widest group of the AVX2 kernels.
const tileAVX2 = 4

var dots256 = dotTable{
	classBlock: {nil, dot256Blockx1, dot256Blockx2, dot256Blockx3, dot256Blockx4},
	classMin:   {nil, dot256Minx1, dot256Minx2, dot256Minx3, dot256Minx4},
	classHalf:  {nil, dot256Halfx1, dot256Halfx2, dot256Halfx3, dot256Halfx4},
	classQ2:    {nil, dot256Q2x1, dot256Q2x2, dot256Q2x3, dot256Q2x4},
	classFloat: {nil, dot256Floatx1, dot256Floatx2, dot256Floatx3, dot256Floatx4},
}

// dotBytes256 replaces the kernels of classBlock where codes have 8 bits.
var dotBytes256 = []dotFunc{nil, dot256Bytesx1, dot256Bytesx2, dot256Bytesx3, dot256Bytesx4}

var expands256 = expandTable{
	quant.F16:    expand256F16,
	quant.BF16:   expand256BF16,
	quant.Q4_0:   expand256Q40,
	quant.Q4_1:   expand256Q41,
	quant.Q5_0:   expand256Q50,
	quant.Q5_1:   expand256Q51,
	quant.Q8_0:   expand256Q80,
	quant.IQ4_NL: expand256IQ4NL,
	quant.MXFP4:  expand256MXFP4,
	quant.Q2_K:   expand256Q2K,
	quant.Q3_K:   expand256Q3K,
	quant.Q4_K:   expand256Q4K,
	quant.Q5_K:   expand256Q5K,
	quant.Q6_K:   expand256Q6K,
	quant.IQ4_XS: expand256IQ4XS,
}

// few256 has kernels for one token: more would not fit the registers.
var few256 = fewTable{
	quant.F32:    {nil, few256F32x1},
	quant.F16:    {nil, few256F16x1},
	quant.BF16:   {nil, few256BF16x1},
	quant.Q4_0:   {nil, few256Q40x1},
	quant.Q4_1:   {nil, few256Q41x1},
	quant.Q5_0:   {nil, few256Q50x1},
	quant.Q5_1:   {nil, few256Q51x1},
	quant.Q8_0:   {nil, few256Q80x1},
	quant.IQ4_NL: {nil, few256IQ4NLx1},
	quant.MXFP4:  {nil, few256MXFP4x1},
	quant.Q2_K:   {nil, few256Q2Kx1},
	quant.Q3_K:   {nil, few256Q3Kx1},
	quant.Q4_K:   {nil, few256Q4Kx1},
	quant.Q5_K:   {nil, few256Q5Kx1},
	quant.Q6_K:   {nil, few256Q6Kx1},
	quant.IQ4_XS: {nil, few256IQ4XSx1},
}
