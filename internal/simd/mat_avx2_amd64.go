//go:build amd64 && !purego

package simd

import "github.com/minfer-go/minfer/quant"

// The generated kernels of AVX2, by class or type and, where they have one, by the width of the group.

// tileAVX2 is the widest group of the AVX2 kernels.
const tileAVX2 = 4

var dots256 = dotTable{
	classBlock: {nil, dot256Block1, dot256Block2, dot256Block3, dot256Block4},
	classMin:   {nil, dot256Min1, dot256Min2, dot256Min3, dot256Min4},
	classHalf:  {nil, dot256Half1, dot256Half2, dot256Half3, dot256Half4},
	classQ2:    {nil, dot256Q21, dot256Q22, dot256Q23, dot256Q24},
	classFloat: {nil, dot256Float1, dot256Float2, dot256Float3, dot256Float4},
}

// dotBytes256 replaces the kernels of classBlock where codes have 8 bits.
var dotBytes256 = []dotFunc{nil, dot256Bytes1, dot256Bytes2, dot256Bytes3, dot256Bytes4}

var expands256 = expandTable{
	quant.F16:    expand256F16,
	quant.BF16:   expand256BF16,
	quant.Q4_0:   expand256Q4_0,
	quant.Q4_1:   expand256Q4_1,
	quant.Q5_0:   expand256Q5_0,
	quant.Q5_1:   expand256Q5_1,
	quant.Q8_0:   expand256Q8_0,
	quant.IQ4_NL: expand256IQ4NL,
	quant.MXFP4:  expand256MXFP4,
	quant.Q2_K:   expand256Q2K,
	quant.Q3_K:   expand256Q3K,
	quant.Q4_K:   expand256Q4K,
	quant.Q5_K:   expand256Q5K,
	quant.Q6_K:   expand256Q6K,
	quant.IQ4_XS: expand256IQ4XS,
}
