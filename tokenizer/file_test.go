package tokenizer

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/gguf"
)

// asFile returns a GGUF file of the small vocabulary; edit changes its keys, nil
// values removed.
func asFile(t *testing.T, edit map[string]*gguf.Value) *gguf.File {
	t.Helper()
	d := with(typeControl, "<|x|>")
	types := make([]int32, len(d.types))
	for i, v := range d.types {
		types[i] = int32(v)
	}
	keys := []string{keyModel, keyPre, keyTokens, keyTypes, keyMerges, keyBOS, keyEOS, keyAddBOS}
	values := []gguf.Value{
		gguf.ValueOf(d.model), gguf.ValueOf(d.pre), gguf.ArrayOf(d.tokens), gguf.ArrayOf(types), gguf.ArrayOf(d.merges),
		gguf.ValueOf(uint32(257)), gguf.ValueOf(int64(257)), gguf.ValueOf(true),
	}
	var extra []string
	for key := range edit {
		if !slices.Contains(keys, key) {
			extra = append(extra, key)
		}
	}
	slices.Sort(extra)
	var out bytes.Buffer
	w := gguf.NewWriter("vocab.gguf", &out)
	set := func(key string, v gguf.Value) {
		if err := w.Set(key, v); err != nil {
			t.Fatal(err)
		}
	}
	for i, key := range keys {
		switch v, changed := edit[key]; {
		case !changed:
			set(key, values[i])
		case v != nil:
			set(key, *v)
		}
	}
	for _, key := range extra {
		set(key, *edit[key])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.FromBytes("vocab.gguf", out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func value[T gguf.Element](x T) *gguf.Value {
	v := gguf.ValueOf(x)
	return &v
}

func TestNewFromFile(t *testing.T) {
	tok, err := New(asFile(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := tok.BOS(); !ok || id != 257 || !tok.AddBOS() || !tok.IsEOG(257) || tok.Pre() != "gpt-2" {
		t.Errorf("BOS %d %v, AddBOS %v, IsEOG %v, Pre %q", id, ok, tok.AddBOS(), tok.IsEOG(257), tok.Pre())
	}
	if got := tok.Encode("ab<|x|>", true); !slices.Equal(got, []int32{256, 257}) {
		t.Errorf("got %v", got)
	}
	for _, none := range []*gguf.Value{value(int32(-1)), value(uint32(1<<32 - 1))} {
		tok, err := New(asFile(t, map[string]*gguf.Value{keyEOS: none}))
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := tok.EOS(); ok {
			t.Errorf("EOS %d", id)
		}
	}
}

func TestNewRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		edit map[string]*gguf.Value
		want error
		key  string
	}{
		{"no model", map[string]*gguf.Value{keyModel: nil}, gguf.ErrMissingKey, keyModel},
		{"model type", map[string]*gguf.Value{keyModel: value(uint32(1))}, gguf.ErrKeyType, keyModel},
		{"other model", map[string]*gguf.Value{keyModel: value("llama"), keyTokens: nil}, ErrModel, keyModel},
		{"no rule", map[string]*gguf.Value{keyPre: nil}, ErrPre, keyPre},
		{"unknown rule", map[string]*gguf.Value{keyPre: value("nope")}, ErrPre, keyPre},
		{"rule type", map[string]*gguf.Value{keyPre: value(true)}, gguf.ErrKeyType, keyPre},
		{"no tokens", map[string]*gguf.Value{keyTokens: nil}, gguf.ErrMissingKey, keyTokens},
		{"types type", map[string]*gguf.Value{keyTypes: value("x")}, gguf.ErrKeyType, keyTypes},
		{"no merges", map[string]*gguf.Value{keyMerges: nil}, ErrMerges, keyMerges},
		{"merges type", map[string]*gguf.Value{keyMerges: value("a b")}, gguf.ErrKeyType, keyMerges},
		{"bos", map[string]*gguf.Value{keyBOS: value(uint32(258))}, ErrSpecial, keyBOS},
		{"huge eos", map[string]*gguf.Value{keyEOS: value(uint64(1 << 40))}, ErrSpecial, keyEOS},
		{"eos type", map[string]*gguf.Value{keyEOS: value("x")}, gguf.ErrKeyType, keyEOS},
		{"eot", map[string]*gguf.Value{keyEOT: value(int32(-7))}, ErrSpecial, keyEOT},
		{"add bos type", map[string]*gguf.Value{keyAddBOS: value("yes")}, gguf.ErrKeyType, keyAddBOS},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(asFile(t, c.edit))
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.key) || !strings.Contains(err.Error(), "vocab.gguf") {
				t.Errorf("%q does not name the file and %s", err, c.key)
			}
		})
	}
}
