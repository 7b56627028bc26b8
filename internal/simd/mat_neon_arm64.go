//go:build arm64 && !purego

package simd

import "github.com/minfer-go/minfer/quant"

// The generated kernels of NEON, by class or type and, where they have one, by the width of the group.

// tileNEON is the widest group of the NEON kernels.
const tileNEON = 4

var dotsNEON = dotTable{
	classBlock: {nil, dotNEONBlockx1, dotNEONBlockx2, dotNEONBlockx3, dotNEONBlockx4},
	classMin:   {nil, dotNEONMinx1, dotNEONMinx2, dotNEONMinx3, dotNEONMinx4},
	classHalf:  {nil, dotNEONHalfx1, dotNEONHalfx2, dotNEONHalfx3, dotNEONHalfx4},
	classQ2:    {nil, dotNEONQ2x1, dotNEONQ2x2, dotNEONQ2x3, dotNEONQ2x4},
	classFloat: {nil, dotNEONFloatx1, dotNEONFloatx2, dotNEONFloatx3, dotNEONFloatx4},
}

// dotBytesNEON replaces the kernels of classBlock where codes have 8 bits.
var dotBytesNEON = []dotFunc{nil, dotNEONBytesx1, dotNEONBytesx2, dotNEONBytesx3, dotNEONBytesx4}

var expandsNEON = expandTable{
	quant.F16:    expandNEONF16,
	quant.BF16:   expandNEONBF16,
	quant.Q4_0:   expandNEONQ40,
	quant.Q4_1:   expandNEONQ41,
	quant.Q5_0:   expandNEONQ50,
	quant.Q5_1:   expandNEONQ51,
	quant.Q8_0:   expandNEONQ80,
	quant.IQ4_NL: expandNEONIQ4NL,
	quant.MXFP4:  expandNEONMXFP4,
	quant.Q2_K:   expandNEONQ2K,
	quant.Q3_K:   expandNEONQ3K,
	quant.Q4_K:   expandNEONQ4K,
	quant.Q5_K:   expandNEONQ5K,
	quant.Q6_K:   expandNEONQ6K,
	quant.IQ4_XS: expandNEONIQ4XS,
}

// fewsNEON has kernels for one token: more would not fit the registers.
var fewsNEON = fewTable{
	quant.F32:    {nil, fewNEONF32x1},
	quant.F16:    {nil, fewNEONF16x1},
	quant.BF16:   {nil, fewNEONBF16x1},
	quant.Q4_0:   {nil, fewNEONQ40x1},
	quant.Q4_1:   {nil, fewNEONQ41x1},
	quant.Q5_0:   {nil, fewNEONQ50x1},
	quant.Q5_1:   {nil, fewNEONQ51x1},
	quant.Q8_0:   {nil, fewNEONQ80x1},
	quant.IQ4_NL: {nil, fewNEONIQ4NLx1},
	quant.MXFP4:  {nil, fewNEONMXFP4x1},
	quant.Q2_K:   {nil, fewNEONQ2Kx1},
	quant.Q3_K:   {nil, fewNEONQ3Kx1},
	quant.Q4_K:   {nil, fewNEONQ4Kx1},
	quant.Q5_K:   {nil, fewNEONQ5Kx1},
	quant.Q6_K:   {nil, fewNEONQ6Kx1},
	quant.IQ4_XS: {nil, fewNEONIQ4XSx1},
}
