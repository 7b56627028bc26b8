package testmodel

import (
	"bytes"
	"math"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// Every type gives a file that opens, with finite values of about the size asked for, and the same bytes again.
func TestEveryType(t *testing.T) {
	for _, typ := range WeightTypes() {
		c := Default("qwen3")
		c.Layers, c.Type = 1, typ
		b, err := c.Bytes()
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		if again, _ := c.Bytes(); !bytes.Equal(b, again) {
			t.Errorf("%s: equal configs gave different bytes", typ)
		}
		f, err := c.File()
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		w, ok := f.Tensor("blk.0.attn_q.weight")
		if !ok || w.Type != typ {
			t.Fatalf("%s: no attn_q of that type", typ)
		}
		x := make([]float32, w.Elements())
		if err := quant.Decode(typ, x, w.Data()); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		if rms := math.Sqrt(sum/float64(len(x))) * 16; !(rms > 0.2 && rms < 5) {
			t.Errorf("%s: weights of size %g times 1/√inputs", typ, rms)
		}
	}
}
