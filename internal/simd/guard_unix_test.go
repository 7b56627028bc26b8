//go:build unix

package simd

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guardAlloc is n zeroed elements that end right before an inaccessible page; where they fill whole pages they begin
// right after one too.
func guardAlloc[T any](t testing.TB, n int) []T {
	t.Helper()
	size, page := n*int(unsafe.Sizeof(*new(T))), unix.Getpagesize()
	room := (size + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, room+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	for _, p := range [][]byte{mem[:page], mem[page+room:]} {
		if err := unix.Mprotect(p, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[page+room-size])), n)
}
