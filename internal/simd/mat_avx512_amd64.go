//go:build amd64 && !purego

package simd

import "github.com/minfer-go/minfer/quant"

// The generated kernels of AVX-512, by class or type and, where they have one, by the width of the group.

var dots512 = dotTable{
	classBlock: {
		nil, dot512Block1, dot512Block2, dot512Block3, dot512Block4, dot512Block5, dot512Block6,
		dot512Block7, dot512Block8, dot512Block9, dot512Block10, dot512Block11, dot512Block12,
	},
	classMin: {
		nil, dot512Min1, dot512Min2, dot512Min3, dot512Min4, dot512Min5, dot512Min6,
		dot512Min7, dot512Min8, dot512Min9, dot512Min10, dot512Min11, dot512Min12,
	},
	classHalf: {
		nil, dot512Half1, dot512Half2, dot512Half3, dot512Half4, dot512Half5, dot512Half6,
		dot512Half7, dot512Half8, dot512Half9, dot512Half10, dot512Half11, dot512Half12,
	},
	classQ2: {
		nil, dot512Q21, dot512Q22, dot512Q23, dot512Q24, dot512Q25, dot512Q26,
		dot512Q27, dot512Q28, dot512Q29, dot512Q210, dot512Q211, dot512Q212,
	},
	classFloat: {
		nil, dot512Float1, dot512Float2, dot512Float3, dot512Float4, dot512Float5, dot512Float6,
		dot512Float7, dot512Float8, dot512Float9, dot512Float10, dot512Float11, dot512Float12,
	},
}

var expands512 = expandTable{
	quant.F16:    expand512F16,
	quant.BF16:   expand512BF16,
	quant.Q4_0:   expand512Q4_0,
	quant.Q4_1:   expand512Q4_1,
	quant.Q5_0:   expand512Q5_0,
	quant.Q5_1:   expand512Q5_1,
	quant.Q8_0:   expand512Q8_0,
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
	quant.F32:    {nil, few512F321, few512F322, few512F323, few512F324},
	quant.F16:    {nil, few512F161, few512F162, few512F163, few512F164},
	quant.BF16:   {nil, few512BF161, few512BF162, few512BF163, few512BF164},
	quant.Q4_0:   {nil, few512Q4_01, few512Q4_02, few512Q4_03, few512Q4_04},
	quant.Q4_1:   {nil, few512Q4_11, few512Q4_12, few512Q4_13, few512Q4_14},
	quant.Q5_0:   {nil, few512Q5_01, few512Q5_02, few512Q5_03, few512Q5_04},
	quant.Q5_1:   {nil, few512Q5_11, few512Q5_12, few512Q5_13, few512Q5_14},
	quant.Q8_0:   {nil, few512Q8_01, few512Q8_02, few512Q8_03, few512Q8_04},
	quant.IQ4_NL: {nil, few512IQ4NL1, few512IQ4NL2, few512IQ4NL3, few512IQ4NL4},
	quant.MXFP4:  {nil, few512MXFP41, few512MXFP42, few512MXFP43, few512MXFP44},
	quant.Q2_K:   {nil, few512Q2K1, few512Q2K2, few512Q2K3, few512Q2K4},
	quant.Q3_K:   {nil, few512Q3K1, few512Q3K2, few512Q3K3, few512Q3K4},
	quant.Q4_K:   {nil, few512Q4K1, few512Q4K2, few512Q4K3, few512Q4K4},
	quant.Q5_K:   {nil, few512Q5K1, few512Q5K2, few512Q5K3, few512Q5K4},
	quant.Q6_K:   {nil, few512Q6K1, few512Q6K2, few512Q6K3, few512Q6K4},
	quant.IQ4_XS: {nil, few512IQ4XS1, few512IQ4XS2, few512IQ4XS3, few512IQ4XS4},
}
