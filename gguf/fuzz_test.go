package gguf

import (
	"bytes"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// FuzzParse reads arbitrary bytes: the result is an error with a name, or a file whose every part can be used and
// which comes back the same after it is written and read again. Neither costs more than a multiple of the input.
func FuzzParse(f *testing.F) {
	f.Add(sample(f, 2))
	f.Add(sample(f, 3))
	f.Add(header(3, 0, 0).Bytes())
	f.Add(header(3<<24, 0, 0).Bytes())
	f.Add(header(3, 0, 1).set("k", nestedTo(f, MaxDepth)).Bytes())
	f.Add(header(3, 2, 0).tensor("t0", quant.F32, 32, 8).tensor("t1", quant.IQ2_XXS, 64, 256).data(32, 160).Bytes())
	f.Add(header(3, 0, 2).set(splitNoKey, ValueOf(uint16(0))).set(splitCountKey, ValueOf(uint16(2))).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		var file *File
		var err error
		spent := allocated(func() { file, err = FromBytes("fuzz", b) })
		// Room for what the fuzzing engine allocates beside.
		if spent > allowance(len(b))+8<<20 {
			t.Errorf("%d bytes allocated for a file of %d", spent, len(b))
		}
		if err != nil {
			if !named(err) {
				t.Errorf("an error without a name: %v", err)
			}
			return
		}
		use(t, file)
		again := rewrite(t, file)
		if len(again.entries) != len(file.entries) {
			t.Fatalf("%d keys became %d", len(file.entries), len(again.entries))
		}
		for i, e := range file.entries {
			if again.entries[i] != e {
				t.Errorf("key %q: %v became %v", e.key, e.value, again.entries[i].value)
			}
		}
		for i, x := range file.tensors {
			y := again.tensors[i]
			if x.Name != y.Name || x.Type != y.Type || x.Elements() != y.Elements() || !bytes.Equal(x.Data(), y.Data()) {
				t.Errorf("tensor %q became %q", x.Name, y.Name)
			}
		}
	})
}

// use calls everything that walks a file.
func use(t *testing.T, f *File) {
	for _, key := range f.Keys() {
		v, ok := f.Value(key)
		if !ok {
			t.Errorf("key %q is lost", key)
		}
		_ = v.String() + v.Summary(-1, -1)
		_ = v.Any()
		for range v.All() {
		}
		for _, get := range []func(string) error{
			func(k string) error { _, err := f.Uint(k); return err },
			func(k string) error { _, err := f.Int(k); return err },
			func(k string) error { _, err := f.Float(k); return err },
			func(k string) error { _, err := f.Strings(k); return err },
			func(k string) error { _, err := f.Ints(k); return err },
		} {
			if err := get(key); err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
		}
	}
	for _, x := range f.Tensors() {
		want, err := x.Type.RowBytes(x.Elements())
		if err != nil || want != len(x.Data()) || want != x.Size() {
			t.Errorf("tensor %q: %d bytes of %d: %v", x.Name, len(x.Data()), want, err)
		}
		x.Drop()
	}
}

func rewrite(t *testing.T, f *File) *File {
	var out bytes.Buffer
	w := NewWriter("again", &out)
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		must(t, w.Set(key, v))
	}
	for _, x := range f.Tensors() {
		must(t, w.AddTensor(x.Name, x.Type, x.Shape))
	}
	for _, x := range f.Tensors() {
		must(t, w.WriteTensor(x.Name, x.Data()))
	}
	must(t, w.Close())
	again, err := FromBytes("again", out.Bytes())
	must(t, err)
	return again
}
