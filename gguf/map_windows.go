package gguf

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

const canMap = true

// mapFile maps the first size bytes of a file, read-only. The mapping stays after the file is closed.
func mapFile(file *os.File, size int) (source, error) {
	length := uint64(size)
	mapping, err := windows.CreateFileMapping(windows.Handle(file.Fd()), nil, windows.PAGE_READONLY,
		uint32(length>>32), uint32(length), nil)
	if err != nil {
		return source{}, os.NewSyscallError("CreateFileMapping", err)
	}
	defer windows.CloseHandle(mapping) //nolint:errcheck // the view keeps the mapping alive
	address, err := windows.MapViewOfFile(mapping, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return source{}, os.NewSyscallError("MapViewOfFile", err)
	}
	// The address is outside Go's heap; reading it through a pointer keeps vet's rule about conversions meaningful.
	data := unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), size)
	return source{data, func() error { return windows.UnmapViewOfFile(address) }}, nil
}

// dropPages gives up the pages of b, part of a mapping: unlocking pages that are not locked takes them out of the
// working set. The data is not discarded, so pages shared with neighbours lose nothing.
func dropPages(b []byte) error {
	err := windows.VirtualUnlock(uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errors.Is(err, windows.ERROR_NOT_LOCKED) {
		return nil
	}
	return err
}
