package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/internal/simd"
)

// alignment of everything that kernels read, in bytes.
const alignment = 64

// align rounds a size up.
func align(n int) int { return (n + alignment - 1) / alignment * alignment }

// allocate returns n zero bytes that start at a multiple of alignment and live until the device is closed. Large ones lie
// in huge pages where the system has them, which streams of weights and cells need.
func (d *Device) allocate(n int) ([]byte, error) {
	mem, free, err := simd.PanelMemory(n)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrRun, err)
	}
	d.frees = append(d.frees, free)
	return mem, nil
}

// release gives all memory back.
func (d *Device) release() error {
	var errs []error
	for _, free := range d.frees {
		errs = append(errs, free())
	}
	d.frees = nil
	return errors.Join(errs...)
}

// floats is the memory of b, which starts at a multiple of 4, as float32.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
