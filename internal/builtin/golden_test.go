package builtin_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/quant"
	"github.com/minfer-go/minfer/sample"
)

// A row is a prompt, its ids and the tokens that greedy decoding of the full-precision model gives.
type row struct {
	Text   string
	IDs    []int32
	Greedy []int32
}

// TestGoldenTiny holds tokenizer and engine to another implementation's replies on the built-in model: in full precision
// all tokens are equal. The embedded file, whose weights are rounded to 8 bits, must agree for a while.
func TestGoldenTiny(t *testing.T) {
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	b, err := os.ReadFile(filepath.Join(dir, "golden", "tiny.jsonl"))
	if err != nil {
		t.Skipf("no reference data: %v (set MINFER_SHARED)", err)
	}
	var rows []row
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if len(rows) < 5 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, c := range []struct {
		model string
		equal int // tokens that must agree
	}{
		{filepath.Join(dir, "model", "tiny-f32.gguf"), 48},
		{"tiny", 8},
	} {
		ctx := context.Background()
		m, err := minfer.Open(ctx, c.model, minfer.WithEngine(engine.Options{CacheType: quant.F32, CacheTypeSet: true}))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if ids := m.Tokenizer().Encode(r.Text, true); !slices.Equal(ids, r.IDs) {
				t.Errorf("%s: %q: ids %v, want %v", c.model, r.Text, ids, r.IDs)
			}
			have := reply(t, m, r.IDs, len(r.Greedy))
			n := min(c.equal, len(r.Greedy))
			if len(have) < n || !slices.Equal(have[:n], r.Greedy[:n]) {
				t.Errorf("%s: %q: %v, want %v", c.model, r.Text, have, r.Greedy[:n])
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// reply is the first n token ids of a greedy reply, whether or not it should have ended.
func reply(t *testing.T, m *minfer.Model, prompt []int32, n int) []int32 {
	t.Helper()
	greedy := sample.Neutral()
	greedy.Temperature = 0
	j, err := m.Engine().Submit(context.Background(), engine.Request{Prompt: prompt, MaxTokens: n, Sampling: greedy})
	if err != nil {
		t.Fatal(err)
	}
	var ids []int32
	for tok, ok := j.Next(); ok; tok, ok = j.Next() {
		ids = append(ids, tok.ID)
	}
	if _, _, err := j.Result(); err != nil {
		t.Fatal(err)
	}
	return ids
}
