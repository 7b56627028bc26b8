package simd

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func panelMemory(n int) ([]byte, func() error, error) {
	size := n
	if n >= hugePage {
		size += hugePage // room to begin at a huge page
	}
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("simd: %d bytes of memory for panels: %w", n, err)
	}
	mem := m
	if n >= hugePage {
		mem = alignedTo(m, hugePage)
		_ = unix.Madvise(mem[:n], unix.MADV_HUGEPAGE) // a wish: a kernel without huge pages refuses it
	}
	return mem[:n:n], func() error { return unix.Munmap(m) }, nil
}
