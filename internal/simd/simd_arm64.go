//go:build arm64 && !purego

package simd

import "golang.org/x/sys/cpu"

// available lists the instruction sets beyond the portable one, fastest first.
func available() []ISA {
	if cpu.ARM64.HasASIMD && cpu.ARM64.HasASIMDDP && !disabled("MINFER_NO_NEON") {
		return []ISA{NEON}
	}
	return nil
}
