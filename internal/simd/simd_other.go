//go:build !amd64 || purego

package simd

func available() []ISA { return nil }
