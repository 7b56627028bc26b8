//go:build arm64 && !purego

package simd

import "unsafe"

func accelerateMat(isa ISA, m *Mat) {
	if isa != NEON {
		return
	}
	m.tile = tileNEON
	m.dot = dotNEON
	m.expand = expandsNEON.expand
	m.fewTile, m.fewMost = 1, 1
	fewsNEON.install(m)
	m.quantize = quantizeARM64
	m.prefetch = func(b []byte) { prefetchNEON(unsafe.SliceData(b), len(b)/64) }
}

func dotNEON(t *dotTask) {
	if t.start == wordMinus128 {
		t.run(dotBytesNEON)
		return
	}
	t.run(dotsNEON[t.class])
}

func quantizeARM64(buf []byte, width, slot int, x []float32) {
	n := len(x) / BlockLen
	_ = buf[:n*width*q8Record]
	if n > 0 {
		quantizeNEON(&buf[0], width, slot, &x[0], n)
	}
	quantizeGeneric(buf[n*width*q8Record:], width, slot, nil)
}
