//go:build amd64 && !purego

package simd

func accelerateVec(ISA, *Vec) {}
