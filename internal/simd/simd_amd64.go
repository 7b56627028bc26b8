//go:build amd64 && !purego

package simd

import "golang.org/x/sys/cpu"

// available lists the instruction sets beyond the portable one, fastest first.
func available() []ISA {
	var isas []ISA
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C && !disabled("MINFER_NO_AVX2")
	avx512 := cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI
	if avx2 && avx512 && !disabled("MINFER_NO_AVX512") {
		isas = append(isas, AVX512)
	}
	if avx2 {
		isas = append(isas, AVX2)
	}
	return isas
}
