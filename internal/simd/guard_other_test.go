//go:build !unix

package simd

import "testing"

func guardAlloc[T any](t testing.TB, n int) []T { return make([]T, n) }
