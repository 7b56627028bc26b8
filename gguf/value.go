package gguf

import (
	"fmt"
	"iter"
	"math"
)

// ValueType is the type of a metadata value as files number it.
type ValueType uint32

// The metadata types.
const (
	TypeUint8   ValueType = 0
	TypeInt8    ValueType = 1
	TypeUint16  ValueType = 2
	TypeInt16   ValueType = 3
	TypeUint32  ValueType = 4
	TypeInt32   ValueType = 5
	TypeFloat32 ValueType = 6
	TypeBool    ValueType = 7
	TypeString  ValueType = 8
	TypeArray   ValueType = 9
	TypeUint64  ValueType = 10
	TypeInt64   ValueType = 11
	TypeFloat64 ValueType = 12
)

var valueTypes = [...]struct {
	name string
	size int // bytes of a value, 0 where it varies
}{
	TypeUint8: {"u8", 1}, TypeInt8: {"i8", 1}, TypeUint16: {"u16", 2}, TypeInt16: {"i16", 2}, TypeUint32: {"u32", 4},
	TypeInt32: {"i32", 4}, TypeFloat32: {"f32", 4}, TypeBool: {"bool", 1}, TypeString: {"str", 0}, TypeArray: {"arr", 0},
	TypeUint64: {"u64", 8}, TypeInt64: {"i64", 8}, TypeFloat64: {"f64", 8},
}

// String returns the short name of the type, as in "u32" or "str".
func (t ValueType) String() string {
	if t.known() {
		return valueTypes[t].name
	}
	return fmt.Sprintf("type(%d)", uint32(t))
}

func (t ValueType) known() bool { return uint64(t) < uint64(len(valueTypes)) }

// size returns the bytes of a value of a known type, 0 for strings and arrays.
func (t ValueType) size() int { return valueTypes[t].size }

func (t ValueType) integer() bool {
	switch t {
	case TypeUint8, TypeInt8, TypeUint16, TypeInt16, TypeUint32, TypeInt32, TypeUint64, TypeInt64:
		return true
	}
	return false
}

// Value is one metadata value: a number, a bool, a string, or an array of one of these or of arrays. Values are
// immutable, can be compared with ==, and stay valid after the file is closed. The zero Value holds nothing: every
// accessor says so.
type Value struct {
	typ ValueType
	// raw is the value as files hold it: a string with its length, an array with its element type and count. It has
	// been checked to be whole.
	raw string
}

// Sizes of the fixed parts of a string and of an array.
const (
	stringHeader = 8
	arrayHeader  = 4 + 8
)

// Type returns the type of the value.
func (v Value) Type() ValueType { return v.typ }

// Elem returns the type of an array's elements; ok is false if the value is no array.
func (v Value) Elem() (t ValueType, ok bool) {
	if v.typ != TypeArray || len(v.raw) < arrayHeader {
		return 0, false
	}
	return ValueType(le(v.raw, 4)), true
}

// Len returns the number of elements of an array, and 0 for any other value.
func (v Value) Len() int {
	if v.typ != TypeArray || len(v.raw) < arrayHeader {
		return 0
	}
	return int(le(v.raw[4:], 8)) // at most MaxArrayLen
}

// All yields the elements of an array in order, and nothing for any other value.
func (v Value) All() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		elem, ok := v.Elem()
		if !ok {
			return
		}
		rest := v.raw[arrayHeader:]
		for range v.Len() {
			n := rawLen(elem, rest)
			if !yield(Value{elem, rest[:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// rawLen returns how many bytes of s, which holds whole values, the first one takes.
func rawLen(t ValueType, s string) int {
	switch t {
	case TypeString:
		return stringHeader + int(le(s, 8)) // checked to lie within s
	case TypeArray:
		v := Value{TypeArray, s}
		elem, _ := v.Elem()
		if size := elem.size(); size > 0 {
			return arrayHeader + size*v.Len()
		}
		n := arrayHeader
		for range v.Len() {
			n += rawLen(elem, s[n:])
		}
		return n
	}
	return t.size()
}

// bits returns the bytes of a number or bool as an integer.
func (v Value) bits() (uint64, bool) {
	size := v.typ.size()
	if size == 0 || len(v.raw) < size {
		return 0, false
	}
	return le(v.raw, size), true
}

// Int returns the value of an integer of any width that fits an int64.
func (v Value) Int() (int64, bool) {
	bits, ok := v.bits()
	if !ok || !v.typ.integer() {
		return 0, false
	}
	switch v.typ {
	case TypeInt8:
		return int64(int8(bits)), true
	case TypeInt16:
		return int64(int16(bits)), true
	case TypeInt32:
		return int64(int32(bits)), true
	case TypeUint64:
		return int64(bits), bits <= math.MaxInt64 // checked beside
	}
	return int64(bits), true
}

// Uint returns the value of an integer of any width that is not negative.
func (v Value) Uint() (uint64, bool) {
	if v.typ == TypeUint64 {
		return v.bits()
	}
	i, ok := v.Int()
	return uint64(i), ok && i >= 0 // checked beside
}

// Float returns the value of a floating-point number.
func (v Value) Float() (float64, bool) {
	bits, ok := v.bits()
	switch {
	case ok && v.typ == TypeFloat32:
		return float64(math.Float32frombits(uint32(bits))), true
	case ok && v.typ == TypeFloat64:
		return math.Float64frombits(bits), true
	}
	return 0, false
}

// Bool returns the value of a bool.
func (v Value) Bool() (value, ok bool) {
	bits, ok := v.bits()
	return bits != 0, ok && v.typ == TypeBool
}

// Text returns the value of a string: its bytes, which need not be valid UTF-8.
func (v Value) Text() (string, bool) {
	if v.typ != TypeString || len(v.raw) < stringHeader {
		return "", false
	}
	return v.raw[stringHeader:], true
}

// Strings returns the elements of an array of strings. They share the file's copy of its metadata.
func (v Value) Strings() ([]string, bool) { return collect(v, Value.Text) }

// Ints returns the elements of an array of integers of any width that fit an int64.
func (v Value) Ints() ([]int64, bool) { return collect(v, Value.Int) }

// Floats returns the elements of an array of floating-point numbers.
func (v Value) Floats() ([]float64, bool) { return collect(v, Value.Float) }

// Bools returns the elements of an array of bools.
func (v Value) Bools() ([]bool, bool) { return collect(v, Value.Bool) }

// collect applies get to all elements of an array. An empty array of any element type is an empty list of all.
func collect[T any](v Value, get func(Value) (T, bool)) ([]T, bool) {
	if _, ok := v.Elem(); !ok {
		return nil, false
	}
	list := make([]T, 0, v.Len())
	for elem := range v.All() {
		x, ok := get(elem)
		if !ok {
			return nil, false
		}
		list = append(list, x)
	}
	return list, true
}

// Any returns the value as a Go value: a number of the type's width, a bool, a string, or a slice of any of these.
// It is nil for the zero Value.
func (v Value) Any() any {
	switch v.typ {
	case TypeString:
		if s, ok := v.Text(); ok {
			return s
		}
		return nil
	case TypeArray:
		if _, ok := v.Elem(); !ok {
			return nil
		}
		list := make([]any, 0, v.Len())
		for elem := range v.All() {
			list = append(list, elem.Any())
		}
		return list
	}
	bits, ok := v.bits()
	if !ok {
		return nil
	}
	switch v.typ {
	case TypeUint8:
		return uint8(bits)
	case TypeInt8:
		return int8(bits)
	case TypeUint16:
		return uint16(bits)
	case TypeInt16:
		return int16(bits)
	case TypeUint32:
		return uint32(bits)
	case TypeInt32:
		return int32(bits)
	case TypeFloat32:
		return math.Float32frombits(uint32(bits))
	case TypeBool:
		return bits != 0
	case TypeUint64:
		return bits
	case TypeInt64:
		return int64(bits)
	}
	return math.Float64frombits(bits)
}

// le returns the little-endian integer in the first n bytes of s.
func le(s string, n int) (x uint64) {
	if n == 8 { // one load, for the lengths of many strings
		return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	}
	for i := n - 1; i >= 0; i-- {
		x = x<<8 | uint64(s[i])
	}
	return x
}
