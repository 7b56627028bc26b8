//go:build amd64 && !purego

package simd

func accelerateMat(ISA, *Mat) {}
