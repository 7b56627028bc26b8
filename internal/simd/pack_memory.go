package simd

import "unsafe"

// hugePage is the size of the larger pages of memory that the common systems have.
const hugePage = 2 << 20

// PanelMemory returns n zeroed bytes for packed panels, or for other memory that streams through a kernel, that start at
// a multiple of 64, and a function that frees them. Where the system can be asked, the memory lies in huge pages: a
// stream over small ones spends half of its time on their translation. The error is the system's.
func PanelMemory(n int) (mem []byte, free func() error, err error) {
	if n == 0 {
		return nil, func() error { return nil }, nil
	}
	return panelMemory(n)
}

// alignedTo is b from the first multiple of align on.
func alignedTo(b []byte, align int) []byte {
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(align-1)
	return b[skip:]
}
