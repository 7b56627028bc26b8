package team

import "runtime"

// DefaultThreads returns the number of workers for this machine.
func DefaultThreads() int { return runtime.NumCPU() }
