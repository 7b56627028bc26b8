//go:build !unix

package bench

// peakResident is unknown here.
func peakResident() int { return 0 }
