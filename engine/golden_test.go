package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/minfer-go/minfer/backend/cpu"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/quant"
	"github.com/minfer-go/minfer/sample"
)

// shared is the directory of reference data, beside the repository unless MINFER_SHARED says otherwise.
func shared(t testing.TB) string {
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "golden")); err != nil {
		t.Skipf("no reference data at %s: %v", dir, err)
	}
	return dir
}

func readFloats(t testing.TB, path string) []float32 {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func readInts(t testing.TB, path string) []int32 {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int32
	for _, f := range strings.Fields(string(b)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, int32(n))
	}
	return ids
}

// evaluate returns the logits of every position and the greedy continuation.
func evaluate(t testing.TB, path string, ids []int32, n int, o Options) ([]float32, []int32) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o.CacheType, o.CacheTypeSet = quant.F32, true
	e, err := Open(context.Background(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var logits []float32
	c := sample.Neutral()
	c.Temperature = 0
	j, err := e.Submit(context.Background(), Request{
		Prompt: ids, MaxTokens: n, Sampling: c, Logits: func(_ int, l []float32) { logits = append(logits, l...) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []int32
	for {
		tok, ok := j.Next()
		if !ok {
			break
		}
		out = append(out, tok.ID)
	}
	if _, _, err := j.Result(); err != nil {
		t.Fatal(err)
	}
	return logits, out
}

// A deviation compares logits with a reference.
type deviation struct{ mean, max, spread float64 }

func compare(have, want []float32) deviation {
	var d deviation
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range want {
		x := math.Abs(float64(have[i]) - float64(want[i]))
		d.mean += x / float64(len(want))
		d.max = math.Max(d.max, x)
		lo, hi = math.Min(lo, float64(want[i])), math.Max(hi, float64(want[i]))
	}
	d.spread = hi - lo
	return d
}

func TestGoldenLogits(t *testing.T) {
	golden := filepath.Join(shared(t), "golden")
	ids := readInts(t, filepath.Join(golden, "tokens.txt"))
	files, _ := filepath.Glob(filepath.Join(golden, "models", "*.gguf"))
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".gguf")
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(golden, "logits", name)
			peer := readFloats(t, base+".llamacpp.f32")
			logits, greedy := evaluate(t, path, ids, 16, Options{})
			if strings.HasSuffix(name, "-f32") {
				d := compare(logits, peer)
				t.Logf("against llama.cpp: mean %.3g max %.3g of spread %.3g", d.mean, d.max, d.spread)
				if d.max > 1e-4*d.spread {
					t.Errorf("max |Δ| %.3g is above 1e-4 of the spread %.3g", d.max, d.spread)
				}
				if want := readInts(t, base+".llamacpp.greedy"); fmt.Sprint(greedy) != fmt.Sprint(want) {
					t.Errorf("greedy %v, want %v", greedy, want)
				}
				return
			}
			exact := readFloats(t, base+".exact.f32")
			own, theirs := compare(logits, exact), compare(peer, exact)
			t.Logf("mean |Δ| %.4g (llama.cpp %.4g, ratio %.3f), max %.4g (%.4g, ratio %.3f)", own.mean, theirs.mean, own.mean/theirs.mean,
				own.max, theirs.max, own.max/theirs.max)
			if own.mean > theirs.mean || own.max > 1.15*theirs.max {
				t.Errorf("further from the exact logits than llama.cpp")
			}
			logits, _ = evaluate(t, path, ids, 0, Options{F32Activations: true})
			if d := compare(logits, exact); d.max > 1e-4*d.spread {
				t.Errorf("reference path: max |Δ| %.3g is above 1e-4 of the spread %.3g", d.max, d.spread)
			}
		})
	}
}
