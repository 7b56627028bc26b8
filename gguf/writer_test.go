package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/minfer-go/minfer/quant"
)

// write makes a file of the given entries and tensors; the data of tensor i are bytes of value i+1.
func write(t testing.TB, entries []entry, tensors []*Tensor) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter("out", &out)
	for _, e := range entries {
		must(t, w.Set(e.key, e.value))
	}
	for _, x := range tensors {
		must(t, w.AddTensor(x.Name, x.Type, x.Shape))
	}
	for i, x := range tensors {
		size, err := x.Type.RowBytes(x.Elements())
		must(t, err)
		must(t, w.WriteTensor(x.Name, bytes.Repeat([]byte{byte(i + 1)}, size)))
	}
	must(t, w.Close())
	return out.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The Writer's bytes are those put together by hand.
func TestWriterBytes(t *testing.T) {
	entries := append(everyType(t), entry{alignmentKey, ValueOf(uint32(64))})
	tensors := []*Tensor{
		{Name: "a.weight", Type: quant.F32, Shape: []int{5, 3}},
		{Name: "b.weight", Type: quant.Q4_0, Shape: []int{64, 2, 1, 1}},
		{Name: "c.weight", Type: quant.Q6_K, Shape: []int{256}},
	}
	got := write(t, entries, tensors)
	want := sample(t, 3)
	n := len(want) - 192 - 210
	if !bytes.Equal(got[:n], want[:n]) {
		t.Fatalf("header\n%q, want\n%q", got[:n], want[:n])
	}
	fill := func(value byte, n, padded int) []byte {
		return append(bytes.Repeat([]byte{value}, n), make([]byte, padded-n)...)
	}
	data := slices.Concat(fill(1, 60, 64), fill(2, 72, 128), fill(3, 210, 256))
	if !bytes.Equal(got[n:], data) {
		t.Errorf("data %x, want %x", got[n:], data)
	}
}

var genScalar = rapid.Custom(func(t *rapid.T) Value {
	return rapid.OneOf(
		rapid.Map(rapid.Uint8(), ValueOf[uint8]), rapid.Map(rapid.Int8(), ValueOf[int8]),
		rapid.Map(rapid.Uint16(), ValueOf[uint16]), rapid.Map(rapid.Int16(), ValueOf[int16]),
		rapid.Map(rapid.Uint32(), ValueOf[uint32]), rapid.Map(rapid.Int32(), ValueOf[int32]),
		rapid.Map(rapid.Uint64(), ValueOf[uint64]), rapid.Map(rapid.Int64(), ValueOf[int64]),
		rapid.Map(rapid.Float32(), ValueOf[float32]), rapid.Map(rapid.Float64(), ValueOf[float64]),
		rapid.Map(rapid.Bool(), ValueOf[bool]), rapid.Map(rapid.String(), ValueOf[string]),
	).Draw(t, "scalar")
})

func genArray[T Element](g *rapid.Generator[T]) *rapid.Generator[Value] {
	return rapid.Map(rapid.SliceOfN(g, 0, 9), ArrayOf[T])
}

var genFlatArray = rapid.OneOf(
	genArray(rapid.Uint8()), genArray(rapid.Int32()), genArray(rapid.Float32()), genArray(rapid.Bool()),
	genArray(rapid.String()), genArray(rapid.Uint64()), genArray(rapid.Float64()),
)

func genNested(inner *rapid.Generator[Value]) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		v, err := NestedArray(rapid.SliceOfN(inner, 0, 3).Draw(t, "arrays")...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	})
}

var genValue = rapid.OneOf(genScalar, genFlatArray, genNested(genFlatArray), genNested(genNested(genFlatArray)))

var genTensor = rapid.Custom(func(t *rapid.T) *Tensor {
	typ := rapid.SampledFrom([]quant.Type{quant.F32, quant.F16, quant.Q4_0, quant.Q8_0, quant.Q6_K, quant.I8, quant.TQ1_0}).Draw(t, "type")
	shape := rapid.SliceOfN(rapid.IntRange(1, 4), 1, MaxDims).Draw(t, "shape")
	shape[0] *= typ.BlockLen()
	return &Tensor{Type: typ, Shape: shape}
})

// What is written is what is read, whatever it is.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var entries []entry
		for _, key := range rapid.SliceOfNDistinct(rapid.StringN(1, 20, 60), 0, 8, rapid.ID).Draw(rt, "keys") {
			entries = append(entries, entry{key, genValue.Draw(rt, "value")})
		}
		if a := rapid.SampledFrom([]uint32{0, 8, 32, 128}).Draw(rt, "alignment"); a > 0 {
			entries = append(entries, entry{alignmentKey, ValueOf(a)})
		}
		var tensors []*Tensor
		for _, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 20, MaxNameLen), 0, 5, rapid.ID).Draw(rt, "names") {
			x := genTensor.Draw(rt, "tensor")
			x.Name = name
			tensors = append(tensors, x)
		}
		f, err := FromBytes("out", write(t, entries, tensors))
		if err != nil {
			rt.Fatal(err)
		}
		if got := f.Keys(); len(got) != len(entries) {
			rt.Fatalf("%d keys, want %d", len(got), len(entries))
		}
		for i, e := range entries {
			if got := f.entries[i]; got != e {
				rt.Fatalf("key %d: %q %v, want %q %v", i, got.key, got.value, e.key, e.value)
			}
		}
		got := f.Tensors()
		if len(got) != len(tensors) {
			rt.Fatalf("%d tensors, want %d", len(got), len(tensors))
		}
		for i, x := range tensors {
			if got[i].Name != x.Name || got[i].Type != x.Type || !slices.Equal(got[i].Shape, x.Shape) {
				rt.Fatalf("tensor %d: %v, want %v", i, got[i], x)
			}
			if !bytes.Equal(got[i].Data(), bytes.Repeat([]byte{byte(i + 1)}, got[i].Size())) {
				rt.Fatalf("tensor %d has the bytes of another", i)
			}
		}
	})
}

func TestWriterStreams(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter("out", &out)
	must(t, w.AddTensor("a", quant.F32, []int{5}))
	must(t, w.AddTensor("b", quant.I8, []int{3}))
	a, err := w.Tensor("a")
	must(t, err)
	for i := range 20 {
		if n, err := a.Write([]byte{byte(i)}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	b, err := w.Tensor("b")
	must(t, err)
	if _, err := a.Write([]byte{1}); !errors.Is(err, ErrOrder) {
		t.Errorf("write to a finished tensor: %v", err)
	}
	if _, err := io.Copy(b, strings.NewReader("xyz")); err != nil {
		t.Error(err)
	}
	must(t, w.Close())
	must(t, w.Close())
	f, err := FromBytes("out", out.Bytes())
	must(t, err)
	x, _ := f.Tensor("b")
	if string(x.Data()) != "xyz" || out.Len()%defaultAlignment != 0 {
		t.Errorf("b is %q, file of %d bytes", x.Data(), out.Len())
	}
}

func TestWriterRefusals(t *testing.T) {
	one := ValueOf(uint8(1))
	declared := func(w *Writer) *Writer {
		_ = w.AddTensor("a", quant.F32, []int{8})
		_ = w.AddTensor("b", quant.F32, []int{8})
		return w
	}
	begun := func(w *Writer) *Writer {
		_, _ = declared(w).Tensor("a")
		return w
	}
	for _, c := range []struct {
		name string
		do   func(w *Writer) error
		want error
		says string
	}{
		{"empty key", func(w *Writer) error { return w.Set("", one) }, ErrKey, ""},
		{"long key", func(w *Writer) error { return w.Set(strings.Repeat("k", MaxKeyLen+1), one) }, ErrLimit, "65536"},
		{"no value", func(w *Writer) error { return w.Set("k", Value{}) }, ErrValueType, `"k"`},
		{"same key", func(w *Writer) error { return errors.Join(w.Set("k", one), w.Set("k", one)) }, ErrDuplicateKey, `"k"`},
		{"too deep", func(w *Writer) error { return w.Set("k", nestedTo(t, MaxDepth+1)) }, ErrLimit, `"k"`},
		{"long array", func(w *Writer) error { return w.Set("k", ArrayOf(make([]uint8, MaxArrayLen+1))) }, ErrLimit, `"k"`},
		{"alignment", func(w *Writer) error { return w.Set(alignmentKey, ValueOf(uint32(48))) }, ErrAlignment, "48"},
		{"key after data", func(w *Writer) error { return begun(w).Set("k", one) }, ErrOrder, `"k"`},
		{"empty name", func(w *Writer) error { return w.AddTensor("", quant.F32, []int{8}) }, ErrTensorName, ""},
		{"long name", func(w *Writer) error {
			return w.AddTensor(strings.Repeat("n", MaxNameLen+1), quant.F32, []int{8})
		}, ErrLimit, "65 bytes"},
		{"same name", func(w *Writer) error { return declared(w).AddTensor("b", quant.F32, []int{8}) }, ErrDuplicateTensor, `"b"`},
		{"type", func(w *Writer) error { return w.AddTensor("a", 77, []int{8}) }, ErrTensorType, `"a": type(77)[8]`},
		{"no shape", func(w *Writer) error { return w.AddTensor("a", quant.F32, nil) }, ErrTensorShape, `"a"`},
		{"negative shape", func(w *Writer) error { return w.AddTensor("a", quant.F32, []int{8, -1}) }, ErrTensorShape, "[8 -1]"},
		{"block", func(w *Writer) error { return w.AddTensor("a", quant.Q4_0, []int{48}) }, ErrTensorShape, `"a"`},
		{"dimensions", func(w *Writer) error { return w.AddTensor("a", quant.F32, []int{8, 1, 1, 1, 1}) }, ErrLimit, `"a"`},
		{"tensor after data", func(w *Writer) error { return begun(w).AddTensor("c", quant.F32, []int{8}) }, ErrOrder, `"c"`},
		{"wrong order", func(w *Writer) error { return declared(w).WriteTensor("b", make([]byte, 32)) }, ErrOrder, `"a" is next`},
		{"undeclared", func(w *Writer) error { return w.WriteTensor("z", nil) }, ErrOrder, "no tensor is next"},
		{"too short", func(w *Writer) error { return declared(w).WriteTensor("a", make([]byte, 31)) }, ErrOrder, "31 bytes given for 32"},
		{"too long", func(w *Writer) error { return declared(w).WriteTensor("a", make([]byte, 33)) }, ErrOrder, "33 bytes given for 32"},
		{"too long by parts", func(w *Writer) error {
			a, _ := declared(w).Tensor("a")
			_, _ = a.Write(make([]byte, 30))
			_, err := a.Write(make([]byte, 3))
			return err
		}, ErrOrder, `"a"`},
		{"unfinished", func(w *Writer) error { return begun(w).WriteTensor("b", make([]byte, 32)) }, ErrOrder, `"a" lacks 32 bytes`},
		{"closed unfinished", func(w *Writer) error { return begun(w).Close() }, ErrOrder, `"a" lacks 32 bytes`},
		{"closed early", func(w *Writer) error { return declared(w).Close() }, ErrOrder, `"a"`},
		{"after close", func(w *Writer) error { return errors.Join(w.Close(), w.WriteTensor("a", nil)) }, ErrOrder, "closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.do(NewWriter("out.gguf", io.Discard))
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "out.gguf: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %v saying %s", err, c.want, c.says)
			}
		})
	}
}

func TestWriterCountLimits(t *testing.T) {
	w := NewWriter("out", io.Discard)
	for i := range MaxKeys {
		must(t, w.Set(fmt.Sprint(i), ValueOf(true)))
	}
	if err := w.Set("one more", ValueOf(true)); !errors.Is(err, ErrLimit) {
		t.Errorf("key: %v", err)
	}
	for i := range MaxTensors {
		must(t, w.AddTensor(fmt.Sprint(i), quant.I8, []int{1}))
	}
	if err := w.AddTensor("one more", quant.I8, []int{1}); !errors.Is(err, ErrLimit) {
		t.Errorf("tensor: %v", err)
	}
}

// full takes n bytes and then fails.
type full struct{ n int }

var errFull = errors.New("disk full")

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.n {
		return f.n, errFull
	}
	f.n -= len(b)
	return len(b), nil
}

func TestWriterKeepsFailure(t *testing.T) {
	const header, data, padding = 64, 20, 12
	for n := range header + data + padding {
		w := NewWriter("out.gguf", &full{n})
		must(t, w.AddTensor("a", quant.F32, []int{5}))
		err := w.WriteTensor("a", make([]byte, 20))
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "out.gguf") {
			t.Fatalf("room for %d bytes: %v", n, err)
		}
		if err := w.Close(); !errors.Is(err, errFull) {
			t.Fatalf("room for %d bytes: Close: %v", n, err)
		}
	}
}
