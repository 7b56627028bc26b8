package cpu

import (
	"bytes"
	"testing"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/quant"
)

// TestKVRowsExact: rows of any bytes come back as they were written, for every type that the backend names, and memory and
// row sizes agree.
func TestKVRowsExact(t *testing.T) {
	for _, typ := range (Backend{}).KVTypes() {
		s := backend.KVSpec{Layers: 2, KVHeads: 2, HeadDim: 64, Cells: 48, Type: typ}
		r := newRig(t, simd.Best(), backend.Options{Threads: 1}, s)
		row, err := s.RowBytes()
		if err != nil {
			t.Fatal(err)
		}
		if want := s.Layers * s.Cells * 2 * row; r.kv.Bytes() != want {
			t.Errorf("%s: %d bytes of memory, %d in rows", typ, r.kv.Bytes(), want)
		}
		cells := []int32{3, 47, 0, 16, 15}
		random := func() []byte {
			b := make([]byte, row*len(cells))
			for i := range b {
				b[i] = byte(r.rng.Uint32())
			}
			return b
		}
		k, v := random(), random()
		if err := r.kv.Write(1, cells, k, v); err != nil {
			t.Fatal(err)
		}
		gotK, gotV := make([]byte, len(k)), make([]byte, len(v))
		if err := r.kv.Read(1, cells, gotK, gotV); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(gotK, k) || !bytes.Equal(gotV, v) {
			t.Errorf("%s: rows differ from what was written", typ)
		}
	}
	if names := (Backend{}).KVTypes(); names[0] != quant.F16 || len(names) != 3 {
		t.Errorf("the cell types are %v", names)
	}
}
