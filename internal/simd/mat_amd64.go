//go:build amd64 && !purego

package simd

import "unsafe"

func accelerateMat(isa ISA, m *Mat) {
	switch isa {
	case AVX512:
		m.tile = maxTile
		m.dot = func(t *dotTask) { t.run(dots512[t.class]) }
		m.expand = expands512.expand
		m.fewTile, m.fewMost = 8, 64
		few512.install(m)
	case AVX2:
		m.tile = tileAVX2
		m.dot = dotAVX2
		m.expand = expands256.expand
		m.fewTile, m.fewMost = 1, 1
		few256.install(m)
	default:
		return
	}
	m.quantize = quantizeAMD64
	m.prefetch = func(b []byte) { prefetchAMD64(unsafe.SliceData(b), len(b)/64) }
}

func dotAVX2(t *dotTask) {
	if t.start == wordMinus128 {
		t.run(dotBytes256)
		return
	}
	t.run(dots256[t.class])
}

func quantizeAMD64(buf []byte, width, slot int, x []float32) {
	n := len(x) / BlockLen
	_ = buf[:n*width*q8Record]
	if n > 0 {
		quantizeAVX2(&buf[0], width, slot, &x[0], n)
	}
	quantizeGeneric(buf[n*width*q8Record:], width, slot, nil)
}
