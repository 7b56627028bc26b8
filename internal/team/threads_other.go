//go:build !linux && !darwin

package team

import "runtime"

func usableCores() int { return runtime.NumCPU() }
