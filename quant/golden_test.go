package quant_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/quant"
)

func golden(t *testing.T, typ string) *gguf.File {
	t.Helper()
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared") // beside the repository
	}
	path := filepath.Join(dir, "golden", "models", "tiny-qwen3-"+typ+".gguf")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no reference data: %v (set MINFER_SHARED)", err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func decode(t *testing.T, x *gguf.Tensor) []float32 {
	t.Helper()
	dst := make([]float32, x.Elements())
	if err := quant.Decode(x.Type, dst, x.Data()); err != nil {
		t.Fatalf("%s: %v", x.Name, err)
	}
	return dst
}

// The same weights (one layer) in every type: the relative error (root mean square) that each type costs on normally distributed
// weights, with little room on both sides, so that a decoder that is slightly wrong is seen.
func TestGoldenErrorPerType(t *testing.T) {
	exact := golden(t, "f32")
	for typ, want := range map[string]float64{
		"bf16": 0.00166, "f16": 0.000207, "iq4_nl": 0.0761, "iq4_xs": 0.0767, "q2_k": 0.296, "q3_k": 0.151, "q4_0": 0.0859,
		"q4_1": 0.0782, "q4_k": 0.0713, "q5_0": 0.0427, "q5_1": 0.0378, "q5_k": 0.0361, "q6_k": 0.0177, "q8_0": 0.00535,
	} {
		t.Run(typ, func(t *testing.T) {
			f := golden(t, typ)
			var noise, signal float64
			for _, x := range f.Tensors() {
				if x.Type == quant.F32 || !strings.HasPrefix(x.Name, "blk.0.") {
					continue
				}
				reference, ok := exact.Tensor(x.Name)
				if !ok {
					t.Fatalf("no tensor %s", x.Name)
				}
				values := decode(t, reference)
				for i, y := range decode(t, x) {
					value, diff := float64(values[i]), float64(y)-float64(values[i])
					noise += diff * diff
					signal += value * value
				}
			}
			got := math.Sqrt(noise / signal)
			if !(got > 0.98*want && got < 1.02*want) {
				t.Errorf("relative error %.3g, want about %.3g", got, want)
			}
		})
	}
}

// The encoders give the bytes of the reference quantizer.
func TestGoldenEncoders(t *testing.T) {
	exact := golden(t, "f32")
	for _, typ := range []quant.Type{quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0} {
		t.Run(typ.String(), func(t *testing.T) {
			compared := 0
			for _, want := range golden(t, strings.ToLower(typ.String())).Tensors() {
				if want.Type != typ {
					continue
				}
				source, _ := exact.Tensor(want.Name)
				got := make([]byte, want.Size())
				if err := quant.Encode(typ, got, decode(t, source)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want.Data()) {
					t.Errorf("%s differs", want.Name)
				}
				compared++
			}
			if compared < 15 {
				t.Errorf("only %d tensors compared", compared)
			}
		})
	}
}
