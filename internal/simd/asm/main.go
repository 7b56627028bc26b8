// Command asm writes the assembly kernels of package simd: one subject a file, each kernel a Go function that emits it.
// Run it as `go run -C internal/simd/asm . ..` from the repository root; the output is reproducible byte for byte.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: asm DIR")
		os.Exit(2)
	}
	for _, g := range generators {
		f := NewFile(g.tags)
		g.emit(f)
		if err := f.Write(os.Args[1], g.base); err != nil {
			fmt.Fprintln(os.Stderr, "asm:", err)
			os.Exit(1)
		}
	}
}

// A generator fills one file; base is its name without extension.
type generator struct {
	base, tags string
	emit       func(*File)
}

// generators lists every generated file; the generators of one subject live in one Go file here.
var generators []generator
