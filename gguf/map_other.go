//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || solaris || windows)

package gguf

import (
	"errors"
	"os"
)

const canMap = false

func mapFile(*os.File, int) (source, error) { return source{}, errors.ErrUnsupported }

func dropPages([]byte) error { return nil }
