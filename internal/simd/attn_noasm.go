//go:build !amd64 || purego

package simd

func accelerateAttn(ISA, *Attn) {}
