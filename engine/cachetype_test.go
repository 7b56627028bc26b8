package engine

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/internal/builtin"
	"github.com/minfer-go/minfer/internal/testmodel"
	"github.com/minfer-go/minfer/quant"
	"github.com/minfer-go/minfer/sample"
)

// cellsLogits are the logits of every position of a prompt that runs in chunks of 32, with cells of a type.
func cellsLogits(t *testing.T, f *gguf.File, cells quant.Type, ids []int32) []float32 {
	t.Helper()
	e, err := Open(context.Background(), f, Options{CacheType: cells, CacheTypeSet: true, F32Activations: true, Batch: 32})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var logits []float32
	j, err := e.Submit(context.Background(), Request{
		Prompt: ids, Sampling: sample.Neutral(), Logits: func(_ int, l []float32) { logits = append(logits, l...) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ok := j.Next(); ok; _, ok = j.Next() { //nolint:revive // only the result counts
	}
	if _, _, err := j.Result(); err != nil {
		t.Fatal(err)
	}
	return logits
}

// TestCacheTypes measures how far the logits move when cells are stored in fewer bits, everything else exact, and holds
// each type to its class; docs/kv-types.md shows the numbers.
func TestCacheTypes(t *testing.T) {
	classes := []struct {
		cells     quant.Type
		mean, max float64 // of the spread of the logits
	}{{quant.F16, 1e-4, 1e-3}, {quant.Q8_0, 2.5e-3, 2e-2}}
	check := func(name string, f *gguf.File, ids []int32) {
		want := cellsLogits(t, f, quant.F32, ids)
		for _, c := range classes {
			d := compare(cellsLogits(t, f, c.cells, ids), want)
			t.Logf("%s, %s: mean %.2g, max %.2g of the spread", name, c.cells, d.mean/d.spread, d.max/d.spread)
			if d.max == 0 || !(d.mean <= c.mean*d.spread) || !(d.max <= c.max*d.spread) {
				t.Errorf("%s: %s cells move the logits by mean %.3g, max %.3g of the spread, the class is %g, %g", name, c.cells, d.mean/d.spread, d.max/d.spread, c.mean, c.max)
			}
		}
	}
	f, err := gguf.FromBytes(builtin.Name, builtin.Tiny())
	if err != nil {
		t.Fatal(err)
	}
	check(builtin.Name, f, story(200))
	golden := filepath.Join(shared(t), "golden")
	files, err := filepath.Glob(filepath.Join(golden, "models", "*-f32.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	ids := readInts(t, filepath.Join(golden, "tokens.txt"))
	for _, path := range files {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		check(strings.TrimSuffix(filepath.Base(path), ".gguf"), f, ids)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCacheTypeRefused: cells that cannot hold the model's heads are refused at load.
func TestCacheTypeRefused(t *testing.T) {
	for _, c := range []struct {
		headDim int
		cells   quant.Type
		want    error
	}{
		{64, quant.Q4_0, ErrOptions},
		{64, quant.BF16, ErrOptions},
		{80, quant.Q8_0, backend.ErrUnsupported},
		{80, quant.F16, nil},
		{96, quant.Q8_0, nil},
	} {
		m := testmodel.Default("qwen3")
		m.HeadDim = c.headDim
		f, err := m.File()
		if err != nil {
			t.Fatal(err)
		}
		e, err := Open(context.Background(), f, Options{CacheType: c.cells, CacheTypeSet: true})
		if !errors.Is(err, c.want) {
			t.Errorf("%s cells, heads of %d: error %v, want %v", c.cells, c.headDim, err, c.want)
		}
		if err == nil {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
