package gguf

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// raw builds files byte by byte, damaged ones too, without the Writer.
type raw struct{ bytes.Buffer }

func (r *raw) u32(x uint32) *raw {
	r.Write(binary.LittleEndian.AppendUint32(nil, x))
	return r
}

func (r *raw) u64(x uint64) *raw {
	r.Write(binary.LittleEndian.AppendUint64(nil, x))
	return r
}

func (r *raw) str(s string) *raw {
	r.u64(uint64(len(s))).WriteString(s)
	return r
}

// kv writes a key with a value given as the bytes of the file.
func (r *raw) kv(key string, t ValueType, value []byte) *raw {
	r.str(key).u32(uint32(t)).Write(value)
	return r
}

func (r *raw) set(key string, v Value) *raw { return r.kv(key, v.typ, []byte(v.raw)) }

func (r *raw) tensor(name string, t quant.Type, offset uint64, dims ...uint64) *raw {
	r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(uint32(t)).u64(offset)
}

// data pads to the alignment and writes n bytes, each the low byte of its position.
func (r *raw) data(alignment, n int) *raw {
	padding := -r.Len() & (alignment - 1)
	b := make([]byte, padding+n)
	for i := range n {
		b[padding+i] = byte(i)
	}
	r.Write(b)
	return r
}

func header(version uint32, tensors, keys uint64) *raw {
	r := &raw{}
	r.WriteString(magic)
	return r.u32(version).u64(tensors).u64(keys)
}

func nested(t testing.TB, elements ...Value) Value {
	t.Helper()
	v, err := NestedArray(elements...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// nestedTo returns an array in arrays, depth in all.
func nestedTo(t testing.TB, depth int) Value {
	t.Helper()
	v := ArrayOf([]uint8{7})
	for range depth - 1 {
		v = nested(t, v)
	}
	return v
}

// everyType lists a value of each metadata type and array type, nested arrays too.
func everyType(t testing.TB) []entry {
	t.Helper()
	return []entry{
		{"u8", ValueOf(uint8(250))},
		{"i8", ValueOf(int8(-5))},
		{"u16", ValueOf(uint16(65000))},
		{"i16", ValueOf(int16(-500))},
		{"u32", ValueOf(uint32(4e9))},
		{"i32", ValueOf(int32(-2e9))},
		{"f32", ValueOf(float32(1.5e-6))},
		{"bool", ValueOf(true)},
		{"str", ValueOf("héllo\n")},
		{"u64", ValueOf(uint64(1 << 63))},
		{"i64", ValueOf(int64(-1 << 62))},
		{"f64", ValueOf(0.1)},
		{"arr.u8", ArrayOf([]uint8{1, 2, 3})},
		{"arr.i8", ArrayOf([]int8{-1, 2})},
		{"arr.u16", ArrayOf([]uint16{60000})},
		{"arr.i16", ArrayOf([]int16{-7})},
		{"arr.u32", ArrayOf([]uint32{7, 8, 9})},
		{"arr.i32", ArrayOf([]int32{-7, 8})},
		{"arr.f32", ArrayOf([]float32{0.5, -2})},
		{"arr.bool", ArrayOf([]bool{true, false, true})},
		{"arr.str", ArrayOf([]string{"a", "", "\xff\x00c"})},
		{"arr.u64", ArrayOf([]uint64{1})},
		{"arr.i64", ArrayOf([]int64{-1})},
		{"arr.f64", ArrayOf([]float64{3.25})},
		{"arr.empty", ArrayOf([]string{})},
		{"arr.arr", nested(t, ArrayOf([]int32{1, 2}), ArrayOf([]string{"x"}), nested(t))},
	}
}

// sample is a whole file with a value of every type and tensors of several.
func sample(t testing.TB, version uint32) []byte {
	t.Helper()
	entries := append(everyType(t), entry{alignmentKey, ValueOf(uint32(64))})
	r := header(version, 3, uint64(len(entries)))
	for _, e := range entries {
		r.set(e.key, e.value)
	}
	r.tensor("a.weight", quant.F32, 0, 5, 3)
	r.tensor("b.weight", quant.Q4_0, 64, 64, 2, 1, 1)
	r.tensor("c.weight", quant.Q6_K, 192, 256)
	return r.data(64, 192+210).Bytes()
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// allowance is what reading a file of n bytes may allocate.
func allowance(n int) uint64 { return 64<<10 + 32*uint64(n) }
