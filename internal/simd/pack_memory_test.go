package simd

import (
	"testing"
	"unsafe"
)

func TestPanelMemory(t *testing.T) {
	for _, n := range []int{0, 1, 63, 4097, hugePage - 1, hugePage, 3*hugePage + 5} {
		mem, free, err := PanelMemory(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(mem) != n || uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%64 != 0 {
			t.Errorf("%d bytes: got %d at %p", n, len(mem), mem)
		}
		for i := range mem {
			if mem[i] != 0 {
				t.Fatalf("%d bytes: not zeroed at %d", n, i)
			}
			mem[i] = 1
		}
		if err := free(); err != nil {
			t.Error(err)
		}
	}
}
