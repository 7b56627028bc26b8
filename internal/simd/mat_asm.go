//go:build (amd64 || arm64) && !purego

package simd

import (
	"unsafe"

	"github.com/minfer-go/minfer/quant"
)

type (
	// dotFunc is a generated kernel for one class and one width of group: see dotTask. stride counts numbers, start
	// bytes; first is 0 to continue the sums in dst.
	dotFunc  = func(dst *float32, stride int, records, acts *byte, count, start, rows, first int)
	dotTable [classFloat + 1][]dotFunc

	// expandFunc is a generated expansion of count whole units.
	expandFunc  = func(dst, units *byte, count int)
	expandTable [typeCount]expandFunc

	// fewFunc is a generated kernel for one type and one width of group: see fewTask. It multiplies count panels, each
	// of units units, all with the same rows.
	fewFunc  = func(dst *float32, stride int, panels, acts *byte, count, units, rows int)
	fewTable [typeCount][]fewFunc
)

func (t *dotTask) run(kernels []dotFunc) {
	first := 0
	if t.first {
		first = 1
	}
	start := t.width * (BlockLen + 4*t.start)
	kernels[t.width](&t.dst[0], t.stride, &t.records[0], &t.acts[0], t.count, start, t.rows, first)
}

// expand uses the kernels of the table, and the portable code where there is none.
func (table *expandTable) expand(f *form, t quant.Type, dst, units []byte) {
	kernel := table[t]
	if kernel == nil {
		expandGeneric(f, t, dst, units)
		return
	}
	n := len(units) / f.unitBytes
	_ = dst[:n*f.unitRecords()*recordBytes[f.class]]
	kernel(&dst[0], &units[0], n)
}

func (table *fewTable) install(m *Mat) {
	for t, kernels := range table {
		if kernels != nil {
			m.few[t] = func(t fewTask) { t.run(kernels) }
		}
	}
}

// run multiplies whole panels at once, then the last rows.
func (t *fewTask) run(kernels []fewFunc) {
	kernel := kernels[t.width]
	whole := min(t.count, t.rows/PanelRows)
	if whole > 0 {
		kernel(&t.dst[0], t.stride, &t.panels[0], &t.acts[0], whole, t.units, PanelRows)
	}
	if whole < t.count {
		kernel(&t.dst[whole*PanelRows], t.stride, &t.panels[whole*t.size], &t.acts[0], 1, t.units, t.rows%PanelRows)
	}
}

// putUnit writes the numbers of x, little-endian as these machines are.
func putUnit(record *[f32Record]byte, x *[floatUnit]float32) {
	*(*[floatUnit]float32)(unsafe.Pointer(record)) = *x
}
