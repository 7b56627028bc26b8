//go:build amd64 && !purego

package simd

import "github.com/minfer-go/minfer/quant"

// The generated kernels of AVX-512, by class or type and, where they have one, by the width of the group.

var dots512 = dotTable{
	classBlock: {
		nil, dot512Blockx1, dot512Blockx2, dot512Blockx3, dot512Blockx4, dot512Blockx5, dot512Blockx6,
		dot512Blockx7, dot512Blockx8, dot512Blockx9, dot512Blockx10, dot512Blockx11, dot512Blockx12,
	},
	classMin: {
		nil, dot512Minx1, dot512Minx2, dot512Minx3, dot512Minx4, dot512Minx5, dot512Minx6,
		dot512Minx7, dot512Minx8, dot512Minx9, dot512Minx10, dot512Minx11, dot512Minx12,
	},
	classHalf: {
		nil, dot512Halfx1, dot512Halfx2, dot512Halfx3, dot512Halfx4, dot512Halfx5, dot512Halfx6,
		dot512Halfx7, dot512Halfx8, dot512Halfx9, dot512Halfx10, dot512Halfx11, dot512Halfx12,
	},
	classQ2: {
		nil, dot512Q2x1, dot512Q2x2, dot512Q2x3, dot512Q2x4, dot512Q2x5, dot512Q2x6,
		dot512Q2x7, dot512Q2x8, dot512Q2x9, dot512Q2x10, dot512Q2x11, dot512Q2x12,
	},
	classFloat: {
		nil, dot512Floatx1, dot512Floatx2, dot512Floatx3, dot512Floatx4, dot512Floatx5, dot512Floatx6,
		dot512Floatx7, dot512Floatx8, dot512Floatx9, dot512Floatx10, dot512Floatx11, dot512Floatx12,
	},
}

var expands512 = expandTable{
	quant.F16:    expand512F16,
	quant.BF16:   expand512BF16,
	quant.Q4_0:   expand512Q40,
	quant.Q4_1:   expand512Q41,
	quant.Q5_0:   expand512Q50,
	quant.Q5_1:   expand512Q51,
	quant.Q8_0:   expand512Q80,
	quant.IQ4_NL: expand512IQ4NL,
	quant.MXFP4:  expand512MXFP4,
	quant.Q2_K:   expand512Q2K,
	quant.Q3_K:   expand512Q3K,
	quant.Q4_K:   expand512Q4K,
	quant.Q5_K:   expand512Q5K,
	quant.Q6_K:   expand512Q6K,
	quant.IQ4_XS: expand512IQ4XS,
}

var few512 = fewTable{
	quant.F32:    {nil, few512F32x1, few512F32x2, few512F32x3, few512F32x4, few512F32x5, few512F32x6, few512F32x7, few512F32x8},
	quant.F16:    {nil, few512F16x1, few512F16x2, few512F16x3, few512F16x4, few512F16x5, few512F16x6, few512F16x7, few512F16x8},
	quant.BF16:   {nil, few512BF16x1, few512BF16x2, few512BF16x3, few512BF16x4, few512BF16x5, few512BF16x6, few512BF16x7, few512BF16x8},
	quant.Q4_0:   {nil, few512Q40x1, few512Q40x2, few512Q40x3, few512Q40x4, few512Q40x5, few512Q40x6, few512Q40x7, few512Q40x8},
	quant.Q4_1:   {nil, few512Q41x1, few512Q41x2, few512Q41x3, few512Q41x4, few512Q41x5, few512Q41x6, few512Q41x7, few512Q41x8},
	quant.Q5_0:   {nil, few512Q50x1, few512Q50x2, few512Q50x3, few512Q50x4, few512Q50x5, few512Q50x6, few512Q50x7, few512Q50x8},
	quant.Q5_1:   {nil, few512Q51x1, few512Q51x2, few512Q51x3, few512Q51x4, few512Q51x5, few512Q51x6, few512Q51x7, few512Q51x8},
	quant.Q8_0:   {nil, few512Q80x1, few512Q80x2, few512Q80x3, few512Q80x4, few512Q80x5, few512Q80x6, few512Q80x7, few512Q80x8},
	quant.IQ4_NL: {nil, few512IQ4NLx1, few512IQ4NLx2, few512IQ4NLx3, few512IQ4NLx4, few512IQ4NLx5, few512IQ4NLx6, few512IQ4NLx7, few512IQ4NLx8},
	quant.MXFP4:  {nil, few512MXFP4x1, few512MXFP4x2, few512MXFP4x3, few512MXFP4x4, few512MXFP4x5, few512MXFP4x6, few512MXFP4x7, few512MXFP4x8},
	quant.Q2_K:   {nil, few512Q2Kx1, few512Q2Kx2, few512Q2Kx3, few512Q2Kx4, few512Q2Kx5, few512Q2Kx6, few512Q2Kx7, few512Q2Kx8},
	quant.Q3_K:   {nil, few512Q3Kx1, few512Q3Kx2, few512Q3Kx3, few512Q3Kx4, few512Q3Kx5, few512Q3Kx6, few512Q3Kx7, few512Q3Kx8},
	quant.Q4_K:   {nil, few512Q4Kx1, few512Q4Kx2, few512Q4Kx3, few512Q4Kx4, few512Q4Kx5, few512Q4Kx6, few512Q4Kx7, few512Q4Kx8},
	quant.Q5_K:   {nil, few512Q5Kx1, few512Q5Kx2, few512Q5Kx3, few512Q5Kx4, few512Q5Kx5, few512Q5Kx6, few512Q5Kx7, few512Q5Kx8},
	quant.Q6_K:   {nil, few512Q6Kx1, few512Q6Kx2, few512Q6Kx3, few512Q6Kx4, few512Q6Kx5, few512Q6Kx6, few512Q6Kx7, few512Q6Kx8},
	quant.IQ4_XS: {nil, few512IQ4XSx1, few512IQ4XSx2, few512IQ4XSx3, few512IQ4XSx4, few512IQ4XSx5, few512IQ4XSx6, few512IQ4XSx7, few512IQ4XSx8},
}
