//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly || solaris

package gguf

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canMap = true

// mapFile maps the first size bytes of a file, read-only. The mapping stays after the file is closed.
func mapFile(file *os.File, size int) (source, error) {
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return source{}, err
	}
	return source{data, func() error { return unix.Munmap(data) }}, nil
}

// dropPages gives up the pages that lie wholly within b, part of a mapping.
func dropPages(b []byte) error {
	if b = wholePages(b, os.Getpagesize()); len(b) == 0 {
		return nil
	}
	return unix.Madvise(b, unix.MADV_DONTNEED)
}

// wholePages returns the pages that lie wholly within b.
func wholePages(b []byte, page int) []byte {
	address := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(page-1))
	start := (page - address) & (page - 1)
	if start >= len(b) {
		return nil
	}
	return b[start : start+(len(b)-start)&^(page-1)]
}
