//go:build (!amd64 && !arm64) || purego

package simd

func accelerateMat(ISA, *Mat) {}
