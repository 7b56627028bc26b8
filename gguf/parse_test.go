package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minfer-go/minfer/quant"
)

// sentinels are all errors that bytes can give.
var sentinels = []error{
	ErrMagic, ErrVersion, ErrTruncated, ErrLimit, ErrValueType, ErrKey, ErrDuplicateKey, ErrAlignment, ErrTensorName,
	ErrTensorType, ErrTensorShape, ErrTensorOffset, ErrOverlap, ErrDuplicateTensor, ErrSplit,
}

func named(err error) bool {
	return slices.ContainsFunc(sentinels, func(s error) bool { return errors.Is(err, s) })
}

func TestReadEveryType(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		b := sample(t, version)
		f, err := FromBytes("sample", b)
		if err != nil {
			t.Fatal(err)
		}
		if f.Version() != int(version) || f.Name() != "sample" || !slices.Equal(f.Parts(), []string{"sample"}) {
			t.Errorf("version %d, name %q, parts %q", f.Version(), f.Name(), f.Parts())
		}
		want := append(everyType(t), entry{alignmentKey, ValueOf(uint32(64))})
		keys := f.Keys()
		for i, e := range want {
			if got, ok := f.Value(e.key); keys[i] != e.key || !ok || got != e.value {
				t.Errorf("key %d %q: %v %v, want %q: %v", i, keys[i], got, ok, e.key, e.value)
			}
		}
		type shaped struct {
			Name   string
			Type   quant.Type
			Shape  []int
			Offset int
			Size   int
			Count  int
		}
		start := len(b) - 192 - 210
		var got []shaped
		for _, x := range f.Tensors() {
			got = append(got, shaped{x.Name, x.Type, x.Shape, int(x.Offset()) - start, x.Size(), x.Elements()})
			at := int(x.Offset())
			if same, ok := f.Tensor(x.Name); !ok || same != x || !bytes.Equal(x.Data(), b[at:at+x.Size()]) {
				t.Errorf("tensor %q: its data are not the bytes at %d", x.Name, at)
			}
		}
		if diff := cmp.Diff([]shaped{
			{"a.weight", quant.F32, []int{5, 3}, 0, 60, 15},
			{"b.weight", quant.Q4_0, []int{64, 2, 1, 1}, 64, 72, 128},
			{"c.weight", quant.Q6_K, []int{256}, 192, 210, 256},
		}, got); diff != "" {
			t.Error(diff)
		}
		if _, ok := f.Tensor("d.weight"); ok {
			t.Error("a tensor that is not there")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if s, err := f.String("str"); s != "héllo\n" || err != nil {
			t.Errorf("after Close: %q %v", s, err)
		}
		if f.Tensors()[0].Data() != nil {
			t.Error("data after Close")
		}
	}
}

func TestGetters(t *testing.T) {
	f, err := FromBytes("sample", sample(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	// A getter of each kind: the values it gives, and which keys it must refuse.
	check := func(key string, want any, get func(string) (any, error)) {
		t.Helper()
		got, err := get(key)
		if want == nil {
			if !errors.Is(err, ErrKeyType) || !strings.Contains(err.Error(), fmt.Sprintf("sample: key %q", key)) {
				t.Errorf("%s: %v, %v; want %v", key, got, err, ErrKeyType)
			}
			return
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", key, err, diff)
		}
	}
	type table map[string]any
	for getter, c := range map[string]struct {
		get  func(string) (any, error)
		want table
	}{
		"Uint": {func(k string) (any, error) { return f.Uint(k) }, table{
			"u8": uint64(250), "i8": nil, "u16": uint64(65000), "u32": uint64(4e9), "u64": uint64(1 << 63),
			"i64": nil, "f32": nil, "bool": nil, "str": nil, "arr.u8": nil,
		}},
		"Int": {func(k string) (any, error) { return f.Int(k) }, table{
			"u8": int64(250), "i8": int64(-5), "i16": int64(-500), "u32": int64(4e9), "i32": int64(-2e9), "u64": nil,
			"i64": int64(-1 << 62), "f64": nil, "bool": nil, "str": nil,
		}},
		"Float": {func(k string) (any, error) { return f.Float(k) }, table{
			"f32": float64(float32(1.5e-6)), "f64": 0.1, "u8": nil, "str": nil, "arr.f32": nil,
		}},
		"Bool": {func(k string) (any, error) { return f.Bool(k) }, table{"bool": true, "u8": nil, "str": nil}},
		"String": {func(k string) (any, error) { return f.String(k) }, table{
			"str": "héllo\n", "u8": nil, "arr.str": nil,
		}},
		"Strings": {func(k string) (any, error) { return f.Strings(k) }, table{
			"arr.str": []string{"a", "", "\xff\x00c"}, "arr.empty": []string{}, "str": nil, "arr.u8": nil, "arr.arr": nil,
		}},
		"Ints": {func(k string) (any, error) { return f.Ints(k) }, table{
			"arr.u8": []int64{1, 2, 3}, "arr.i8": []int64{-1, 2}, "arr.u16": []int64{60000}, "arr.i16": []int64{-7},
			"arr.u32": []int64{7, 8, 9}, "arr.i32": []int64{-7, 8}, "arr.u64": []int64{1}, "arr.i64": []int64{-1},
			"arr.f32": nil, "arr.bool": nil, "u8": nil, "arr.arr": nil,
		}},
		"Floats": {func(k string) (any, error) { return f.Floats(k) }, table{
			"arr.f32": []float64{0.5, -2}, "arr.f64": []float64{3.25}, "arr.i32": nil, "f32": nil,
		}},
		"Bools": {func(k string) (any, error) { return f.Bools(k) }, table{
			"arr.bool": []bool{true, false, true}, "arr.u8": nil, "bool": nil,
		}},
	} {
		t.Run(getter, func(t *testing.T) {
			for key, want := range c.want {
				check(key, want, c.get)
			}
			_, err := c.get("no.such")
			if !errors.Is(err, ErrMissingKey) || !strings.Contains(err.Error(), `sample: key "no.such"`) {
				t.Errorf("missing key: %v", err)
			}
		})
	}
}

// A file cut at any byte is an error with a name, and costs little.
func TestTruncatedAnywhere(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		b := sample(t, version)
		for n := range b {
			var err error
			spent := allocated(func() { _, err = FromBytes("cut", b[:n:n]) })
			if !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), "cut") {
				t.Fatalf("%d of %d bytes: %v, want %v", n, len(b), err, ErrTruncated)
			}
			if spent > allowance(n) {
				t.Fatalf("%d of %d bytes: %d bytes allocated", n, len(b), spent)
			}
		}
	}
}

// Every byte of the header changed in several ways gives a file or an error with a name.
func TestDamagedAnywhere(t *testing.T) {
	b := sample(t, 3)
	for i := range len(b) - 192 - 210 {
		for _, change := range []byte{1, 0x80, 0xff, b[i]} { // the last makes it zero
			damaged := bytes.Clone(b)
			damaged[i] ^= change
			var err error
			spent := allocated(func() { _, err = FromBytes("damaged", damaged) })
			if err != nil && !named(err) {
				t.Fatalf("byte %d ^ %#x: %v", i, change, err)
			}
			if spent > allowance(len(b)) {
				t.Fatalf("byte %d ^ %#x: %d bytes allocated", i, change, spent)
			}
		}
	}
}

func TestDamagedFiles(t *testing.T) {
	one := func(key string, typ ValueType, value []byte) *raw { return header(3, 0, 1).kv(key, typ, value) }
	array := func(elem ValueType, n uint64) []byte { return (&raw{}).u32(uint32(elem)).u64(n).Bytes() }
	aligned := func(v Value) *raw { return header(3, 0, 1).set(alignmentKey, v) }
	f32 := func(offsets ...uint64) *raw { // tensors t0, t1 … of 8 elements, 32 bytes
		r := header(3, uint64(len(offsets)), 0)
		for i, o := range offsets {
			r.tensor(fmt.Sprintf("t%d", i), quant.F32, o, 8)
		}
		return r.data(32, 128)
	}
	shape := func(typ quant.Type, dims ...uint64) *raw {
		return header(3, 1, 0).tensor("t", typ, 0, dims...).data(32, 128)
	}
	for _, c := range []struct {
		name string
		file *raw
		want error
		says string
	}{
		{"another format", &raw{*bytes.NewBufferString("PK\x03\x04 a zip file")}, ErrMagic, `"PK\x03\x04"`},
		{"version 0", header(0, 0, 0), ErrVersion, "version 0"},
		{"version 1", header(1, 0, 0), ErrVersion, "version 1"},
		{"version 4", header(4, 0, 0), ErrVersion, "version 4"},
		{"big-endian", header(3<<24, 0, 0), ErrVersion, "big-endian"},
		{"keys beyond the file", header(3, 0, 1000), ErrTruncated, "1000 keys"},
		{"tensors beyond the file", header(3, 1000, 0), ErrTruncated, "1000 tensors"},
		{"all keys", header(3, 0, math.MaxUint64), ErrLimit, "metadata keys"},
		{"all tensors", header(3, math.MaxUint64, 0), ErrLimit, "tensors"},
		{"empty key", one("", TypeUint32, make([]byte, 8)), ErrKey, "key 1 of 1"},
		{"huge key", header(3, 0, 1).u64(math.MaxUint64).data(1, 32), ErrLimit, "key 1 of 1"},
		{"unknown type", one("k", 13, make([]byte, 16)), ErrValueType, `key "k": type number 13`},
		{"unknown element type", one("k", TypeArray, array(99, 1)), ErrValueType, `key "k": array of type number 99`},
		{"bool of 2", one("k", TypeBool, []byte{2, 0}), ErrValueType, `key "k"`},
		{"bool of 2 in an array", one("k", TypeArray, append(array(TypeBool, 2), 1, 2)), ErrValueType, `key "k"`},
		{"huge string", one("k", TypeString, (&raw{}).u64(math.MaxUint64).Bytes()), ErrLimit, `key "k"`},
		{"huge array", one("k", TypeArray, array(TypeUint8, math.MaxUint64)), ErrLimit, `key "k"`},
		{"huge array of wide elements", one("k", TypeArray, array(TypeFloat64, math.MaxUint64/8+2)), ErrLimit, `key "k"`},
		{"huge array of strings", one("k", TypeArray, array(TypeString, 1<<40)), ErrLimit, `key "k"`},
		{"array beyond the file", one("k", TypeArray, array(TypeFloat64, 1<<20)), ErrTruncated, `key "k": 1048576 × f64`},
		{"strings beyond the file", one("k", TypeArray, array(TypeString, 1<<20)), ErrTruncated, `key "k"`},
		{"arrays beyond the file", one("k", TypeArray, array(TypeArray, 1<<20)), ErrTruncated, `key "k"`},
		{"duplicate key", header(3, 0, 2).set("k", ValueOf(uint8(1))).set("k", ValueOf(uint8(1))), ErrDuplicateKey, `key "k"`},
		{"alignment 0", aligned(ValueOf(uint32(0))), ErrAlignment, `key "general.alignment": 0`},
		{"alignment 24", aligned(ValueOf(uint32(24))), ErrAlignment, "24"},
		{"alignment 2³¹", aligned(ValueOf(uint32(1 << 31))), ErrAlignment, "2147483648"},
		{"alignment negative", aligned(ValueOf(int32(-32))), ErrAlignment, "-32"},
		{"alignment text", aligned(ValueOf("32")), ErrAlignment, `"32"`},
		{"alignment array", aligned(ArrayOf([]uint32{32})), ErrAlignment, "[32]"},
		{"empty name", header(3, 1, 0).tensor("", quant.F32, 0, 8).data(32, 32), ErrTensorName, "tensor 1 of 1"},
		{"unknown tensor type", shape(99, 32), ErrTensorType, `tensor "t": type(99)[32]`},
		{"withdrawn tensor type", shape(31, 32), ErrTensorType, `tensor "t": Q4_0_4_4[32]`},
		{"tensor type of 32 bits", shape(math.MaxUint32, 32), ErrTensorType, `tensor "t"`},
		{"no dimension", shape(quant.F32), ErrTensorShape, `tensor "t"`},
		{"zero dimension", shape(quant.F32, 8, 0), ErrTensorShape, `tensor "t": F32[8 0]`},
		{"part of a block", shape(quant.Q4_0, 33), ErrTensorShape, `tensor "t": Q4_0[33]`},
		{"blocks across rows", shape(quant.Q4_0, 16, 2), ErrTensorShape, `tensor "t": Q4_0[16 2]`},
		{"product overflows", shape(quant.F32, 1<<32, 1<<32), ErrLimit, `tensor "t"`},
		{"product overflows to little", shape(quant.F32, 1<<63, 2, 4), ErrLimit, `tensor "t"`},
		{"dimension of 64 bits", shape(quant.F32, math.MaxUint64), ErrLimit, `tensor "t"`},
		{"unaligned offset", f32(0, 40), ErrTensorOffset, `tensor "t1": offset 40`},
		{"offset beyond the file", f32(0, 1<<20), ErrTruncated, `tensor "t1"`},
		{"offset of 64 bits", f32(0, math.MaxUint64-31), ErrTruncated, `tensor "t1"`},
		{"end beyond the file", f32(0, 32, 128), ErrTruncated, `tensor "t2"`},
		{"same bytes", f32(32, 32), ErrOverlap, `"t0" (bytes`},
		{"overlap out of order", func() *raw {
			r := header(3, 3, 0).tensor("late", quant.F32, 64, 8).tensor("wide", quant.F32, 0, 12).tensor("mid", quant.F32, 32, 4)
			return r.data(32, 128)
		}(), ErrOverlap, `"mid"`},
		{"duplicate tensor", header(3, 2, 0).tensor("t", quant.F32, 0, 8).tensor("t", quant.F32, 32, 8).data(32, 64), ErrDuplicateTensor, `tensor "t"`},
		{"a part alone", header(3, 0, 3).set(splitNoKey, ValueOf(uint16(1))).set(splitCountKey, ValueOf(uint16(2))).
			set(splitTensorsKey, ValueOf(int32(0))), ErrSplit, "part 2 of 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.file.Bytes()
			var err error
			spent := allocated(func() { _, err = FromBytes("bad.gguf", b) })
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "bad.gguf: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %v saying %s", err, c.want, c.says)
			}
			if spent > allowance(len(b)) {
				t.Errorf("%d bytes allocated for a file of %d", spent, len(b))
			}
		})
	}
}

// Gaps and any order of tensors are allowed; what lies between belongs to nobody.
func TestTensorsApart(t *testing.T) {
	r := header(3, 2, 0).tensor("late", quant.F32, 96, 8).tensor("early", quant.F32, 32, 8).data(32, 128)
	f, err := FromBytes("apart", r.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	late, _ := f.Tensor("late")
	early, _ := f.Tensor("early")
	if late.Data()[0] != 96 || early.Data()[0] != 32 || cap(early.Data()) != 32 {
		t.Errorf("late begins with %d, early with %d and capacity %d", late.Data()[0], early.Data()[0], cap(early.Data()))
	}
}
