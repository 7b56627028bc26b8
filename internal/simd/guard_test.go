package simd

import "testing"

// guarded copies x to memory that ends right before an inaccessible page, where the system allows it, so that a kernel
// that touches an element past the end faults.
func guarded[T any](t testing.TB, x []T) []T {
	t.Helper()
	out := guardAlloc[T](t, len(x))
	copy(out, x)
	return out
}
