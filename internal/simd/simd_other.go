//go:build (!amd64 && !arm64) || purego

package simd

func available() []ISA { return nil }
