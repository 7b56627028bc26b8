//go:build (!amd64 && !arm64) || purego

package simd

func accelerateMat(ISA, *Mat) {}

// putUnit writes the numbers of x, little-endian.
func putUnit(record *[f32Record]byte, x *[floatUnit]float32) {
	for i, v := range x {
		putF32(record[4*i:4*i+4], v)
	}
}
