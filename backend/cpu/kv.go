package cpu

import (
	"fmt"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/quant"
)

// kvMemory is the KV cells of every layer. It implements backend.KV.
type kvMemory struct {
	device *Device
	spec   backend.KVSpec
	layers []simd.KVLayer
	bytes  int
}

// cellType maps a KV element type to the kernels' name for it.
func cellType(t quant.Type) (simd.KVType, error) {
	switch t {
	case quant.F32:
		return simd.KVF32, nil
	case quant.F16:
		return simd.KVF16, nil
	case quant.Q8_0:
		return simd.KVQ8, nil
	}
	return 0, fmt.Errorf("%w: KV cells of type %s; supported are f32, f16, q8_0", backend.ErrUnsupported, t)
}

// maxKVBytes bounds the memory of all cells, so that sizes never overflow.
const maxKVBytes = 1 << 42

// kvShape checks a spec and returns the bytes of K and of V of one layer.
func kvShape(s backend.KVSpec) (k, v int, err error) {
	t, err := cellType(s.Type)
	if err != nil {
		return 0, 0, err
	}
	if s.Layers < 1 || s.KVHeads < 1 || s.HeadDim < 1 || s.Cells < 1 ||
		s.Cells > maxKVBytes/8/s.Layers/s.KVHeads/s.HeadDim {
		return 0, 0, fmt.Errorf("%w: %d KV cells of %d heads of %d in %d layers", backend.ErrUnsupported, s.Cells, s.KVHeads, s.HeadDim, s.Layers)
	}
	if err := simd.KVSupports(t, s.HeadDim); err != nil {
		return 0, 0, fmt.Errorf("%w: KV cells: %w", backend.ErrUnsupported, err)
	}
	k, v = simd.KVLayerBytes(t, s.KVHeads, s.HeadDim, s.Cells)
	return k, v, nil
}

// KVBytes is what NewKV would take.
func (d *Device) KVBytes(s backend.KVSpec) (int, error) {
	k, v, err := kvShape(s)
	return s.Layers * (k + v), err
}

// NewKV allocates cells. The operating system provides their pages when they are first written.
func (d *Device) NewKV(s backend.KVSpec) (backend.KV, error) {
	k, v, err := kvShape(s)
	if err != nil {
		return nil, err
	}
	t, _ := cellType(s.Type)
	m := &kvMemory{device: d, spec: s, bytes: s.Layers * (k + v)}
	mem, err := d.allocate(s.Layers * (align(k) + align(v)))
	if err != nil {
		return nil, err
	}
	take := func(n int) []byte {
		part := mem[:n:n]
		mem = mem[align(n):]
		return part
	}
	for range s.Layers {
		m.layers = append(m.layers, simd.KVLayer{
			Type: t, KVHeads: s.KVHeads, HeadDim: s.HeadDim, Cells: simd.KVCells(s.Cells), K: take(k), V: take(v),
		})
	}
	return m, nil
}

// Spec is the shape the cells were made with.
func (m *kvMemory) Spec() backend.KVSpec { return m.spec }

// Bytes is the memory of all layers.
func (m *kvMemory) Bytes() int { return m.bytes }

// Read copies rows of a layer out of cells, byte for byte as they are stored.
func (m *kvMemory) Read(layer int, cells []int32, k, v []byte) error {
	return m.rows(layer, cells, k, v, m.device.kernels.ReadRow)
}

// Write copies rows of a layer into cells.
func (m *kvMemory) Write(layer int, cells []int32, k, v []byte) error {
	return m.rows(layer, cells, k, v, m.device.kernels.WriteRow)
}

// rows hands each cell's part of k and v to do.
func (m *kvMemory) rows(layer int, cells []int32, k, v []byte, do func(l *simd.KVLayer, cell int, k, v []byte)) error {
	if layer < 0 || layer >= len(m.layers) {
		return fmt.Errorf("%w: layer %d of %d", backend.ErrRun, layer, len(m.layers))
	}
	l := &m.layers[layer]
	row := l.Type.RowBytes(l.KVHeads * l.HeadDim)
	if len(k) != row*len(cells) || len(v) != row*len(cells) {
		return fmt.Errorf("%w: %d and %d bytes for %d cells of %d", backend.ErrRun, len(k), len(v), len(cells), row)
	}
	for i, c := range cells {
		if err := m.check(int(c), 1); err != nil {
			return err
		}
		do(l, int(c), k[i*row:(i+1)*row], v[i*row:(i+1)*row])
	}
	return nil
}

// Copy copies cells of every layer.
func (m *kvMemory) Copy(moves []backend.CellCopy) error {
	for _, mv := range moves {
		if err := m.check(mv.Src, mv.Len); err != nil {
			return err
		}
		if err := m.check(mv.Dst, mv.Len); err != nil {
			return err
		}
		for l := range m.layers {
			for i := range mv.Len {
				m.device.kernels.CopyCell(&m.layers[l], mv.Dst+i, mv.Src+i)
			}
		}
	}
	return nil
}

// Rotate turns the stored keys of cells by a change of position.
func (m *kvMemory) Rotate(turns []backend.CellTurn, rope graph.Rope) error {
	for _, t := range turns {
		if err := m.check(t.Cell, t.Len); err != nil {
			return err
		}
		angles, err := m.device.newRope(rope)
		if err != nil {
			return err
		}
		cos, sin := angles.turn(t.Delta)
		for l := range m.layers {
			for i := range t.Len {
				m.device.kernels.RotateK(&m.layers[l], t.Cell+i, rope.Rot, cos, sin, rope.Style == graph.RopeNeoX)
			}
		}
	}
	return nil
}

func (m *kvMemory) check(cell, n int) error {
	if cell < 0 || n < 0 || n > m.spec.Cells-cell {
		return fmt.Errorf("%w: KV cells [%d, %d) of %d", backend.ErrRun, cell, cell+n, m.spec.Cells)
	}
	return nil
}
