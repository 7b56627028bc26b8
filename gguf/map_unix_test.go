//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly || solaris

package gguf

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"
)

func TestWholePages(t *testing.T) {
	const page = 4096
	// A region that begins at a page, whatever the allocator gives.
	memory := make([]byte, 5*page)
	skip := -int(uintptr(unsafe.Pointer(&memory[0]))) & (page - 1)
	region := memory[skip : skip+4*page]
	for _, c := range []struct{ from, to, first, last int }{
		{0, 4 * page, 0, 4 * page},
		{1, 4 * page, page, 4 * page},
		{0, 4*page - 1, 0, 3 * page},
		{page - 1, 3*page + 1, page, 3 * page},
		{1, 2*page - 1, 0, 0},
		{page + 1, 2*page - 1, 0, 0},
		{1, page, 0, 0},
		{page, 2 * page, page, 2 * page},
		{10, 20, 0, 0},
	} {
		got := wholePages(region[c.from:c.to], page)
		if len(got) != c.last-c.first || len(got) > 0 && &got[0] != &region[c.first] {
			t.Errorf("bytes %d to %d: %d bytes, want %d to %d", c.from, c.to, len(got), c.first, c.last)
		}
	}
}

// A pipe is refused, not waited for.
func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.gguf")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("a pipe opened")
	}
}
