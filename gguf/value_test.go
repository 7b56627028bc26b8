package gguf

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValueSummary(t *testing.T) {
	for _, c := range []struct {
		value           Value
		elements, bytes int
		want            string
	}{
		{ValueOf(uint8(250)), 0, 0, "250"},
		{ValueOf(int64(math.MinInt64)), 0, 0, "-9223372036854775808"},
		{ValueOf(uint64(math.MaxUint64)), 0, 0, "18446744073709551615"},
		{ValueOf(float32(1e-6)), 0, 0, "1e-06"},
		{ValueOf(float32(0.1)), 0, 0, "0.1"},
		{ValueOf(math.Inf(-1)), 0, 0, "-Inf"},
		{ValueOf(false), 0, 0, "false"},
		{ValueOf("plain"), 8, 5, `"plain"`},
		{ValueOf("plains"), 8, 5, `"plain"… (6 bytes)`},
		{ValueOf("plains"), 8, -1, `"plains"`},
		{ValueOf("ab€cd"), 8, 4, `"ab"… (7 bytes)`}, // a character is not cut
		{ValueOf("ab€cd"), 8, 5, `"ab€"… (7 bytes)`},
		{ValueOf("\x1b[31mred\n"), 8, 80, `"\x1b[31mred\n"`},
		{ValueOf("\x80\x80\x80\x80\x80\x80"), 8, 5, `"\x80"… (6 bytes)`},
		{ArrayOf([]int32{}), 8, 80, "[]"},
		{ArrayOf([]int32{1, -2, 3}), 3, 80, "[1, -2, 3]"},
		{ArrayOf([]int32{1, -2, 3}), 2, 80, "[1, -2, … 3 in all]"},
		{ArrayOf([]int32{1, -2, 3}), 0, 80, "[… 3 in all]"},
		{ArrayOf([]int32{1, -2, 3}), -1, 80, "[1, -2, 3]"},
		{ArrayOf([]string{"a", "long"}), 8, 2, `["a", "lo"… (4 bytes)]`},
		{nested(t, ArrayOf([]uint8{1, 2, 3}), ArrayOf([]bool{true})), 2, 80, "[[1, 2, … 3 in all], [true]]"},
		{Value{}, 8, 80, "nothing"},
	} {
		if got := c.value.Summary(c.elements, c.bytes); got != c.want {
			t.Errorf("Summary(%d, %d) = %s, want %s", c.elements, c.bytes, got, c.want)
		}
	}
	long := ArrayOf([]string{strings.Repeat("a", 1000), "b", "c", "d", "e", "f", "g", "h", "i", "j"})
	if got := fmt.Sprint(long); len(got) > 200 || !strings.Contains(got, "10 in all") {
		t.Errorf("String() = %s", got)
	}
}

func TestValueAny(t *testing.T) {
	want := map[string]any{
		"u8": uint8(250), "i8": int8(-5), "u16": uint16(65000), "i16": int16(-500), "u32": uint32(4e9), "i32": int32(-2e9),
		"f32": float32(1.5e-6), "bool": true, "str": "héllo\n", "u64": uint64(1 << 63), "i64": int64(-1 << 62), "f64": 0.1,
		"arr.u8": []any{uint8(1), uint8(2), uint8(3)}, "arr.str": []any{"a", "", "\xff\x00c"}, "arr.empty": []any{},
		"arr.arr": []any{[]any{int32(1), int32(2)}, []any{"x"}, []any{}},
	}
	for _, e := range everyType(t) {
		if w, ok := want[e.key]; ok {
			if diff := cmp.Diff(w, e.value.Any()); diff != "" {
				t.Errorf("%s: %s", e.key, diff)
			}
		}
		name, _, isArray := strings.Cut(e.key, ".")
		if e.value.Type().String() != name {
			t.Errorf("%s has type %s", e.key, e.value.Type())
		}
		if _, ok := e.value.Elem(); ok != isArray {
			t.Errorf("%s: an array: %v", e.key, ok)
		}
	}
}

func TestZeroValue(t *testing.T) {
	for _, typ := range []ValueType{TypeUint8, TypeString, TypeArray, TypeFloat64} {
		v := Value{typ: typ}
		_, isInt := v.Int()
		_, isUint := v.Uint()
		_, isFloat := v.Float()
		_, isBool := v.Bool()
		_, isText := v.Text()
		_, isList := v.Strings()
		if isInt || isUint || isFloat || isBool || isText || isList || v.Any() != nil || v.Len() != 0 {
			t.Errorf("%s without a value has one", typ)
		}
	}
}

func TestValueTypeNames(t *testing.T) {
	if got := ValueType(13).String(); got != "type(13)" {
		t.Errorf("unknown type: %s", got)
	}
}

func TestNestedArrayRefusesScalars(t *testing.T) {
	if _, err := NestedArray(ArrayOf([]uint8{1}), ValueOf(uint8(1))); !errors.Is(err, ErrValueType) {
		t.Errorf("%v, want %v", err, ErrValueType)
	}
}
