//go:build (!amd64 && !arm64) || purego

package team

import "sync/atomic"

var pauseSink atomic.Uint32

// pause passes a few nanoseconds n times: atomic loads, which the compiler must keep.
func pause(n uint32) {
	for range n * 8 {
		_ = pauseSink.Load()
	}
}
