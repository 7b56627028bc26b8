//go:build !race

package simd

const raceDetector = false
