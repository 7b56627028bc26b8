package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Element lists the Go types that have a metadata type of their own.
type Element interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64 | bool | string
}

// ValueOf returns x as a metadata value of the type of its width.
func ValueOf[T Element](x T) Value {
	return Value{typeOf[T](), string(appendElement(nil, x))}
}

// ArrayOf returns the elements as a metadata array.
func ArrayOf[T Element](elements []T) Value {
	raw := appendArrayHeader(nil, typeOf[T](), len(elements))
	for _, x := range elements {
		raw = appendElement(raw, x)
	}
	return Value{TypeArray, string(raw)}
}

// NestedArray returns an array of arrays. The error is [ErrValueType] if an element is not an array.
func NestedArray(elements ...Value) (Value, error) {
	raw := appendArrayHeader(nil, TypeArray, len(elements))
	for i, v := range elements {
		if _, ok := v.Elem(); !ok {
			return Value{}, fmt.Errorf("gguf: element %d is %s, not an array: %w", i, v.typ, ErrValueType)
		}
		raw = append(raw, v.raw...)
	}
	return Value{TypeArray, string(raw)}, nil
}

func typeOf[T Element]() ValueType {
	var zero T
	switch any(zero).(type) {
	case uint8:
		return TypeUint8
	case int8:
		return TypeInt8
	case uint16:
		return TypeUint16
	case int16:
		return TypeInt16
	case uint32:
		return TypeUint32
	case int32:
		return TypeInt32
	case uint64:
		return TypeUint64
	case int64:
		return TypeInt64
	case float32:
		return TypeFloat32
	case float64:
		return TypeFloat64
	case bool:
		return TypeBool
	}
	return TypeString
}

func appendArrayHeader(raw []byte, elem ValueType, n int) []byte {
	raw = binary.LittleEndian.AppendUint32(raw, uint32(elem))
	return binary.LittleEndian.AppendUint64(raw, uint64(n))
}

func appendElement[T Element](raw []byte, x T) []byte {
	switch x := any(x).(type) {
	case uint8:
		return append(raw, x)
	case int8:
		return append(raw, uint8(x))
	case uint16:
		return binary.LittleEndian.AppendUint16(raw, x)
	case int16:
		return binary.LittleEndian.AppendUint16(raw, uint16(x))
	case uint32:
		return binary.LittleEndian.AppendUint32(raw, x)
	case int32:
		return binary.LittleEndian.AppendUint32(raw, uint32(x))
	case uint64:
		return binary.LittleEndian.AppendUint64(raw, x)
	case int64:
		return binary.LittleEndian.AppendUint64(raw, uint64(x))
	case float32:
		return binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	case float64:
		return binary.LittleEndian.AppendUint64(raw, math.Float64bits(x))
	case bool:
		if x {
			return append(raw, 1)
		}
		return append(raw, 0)
	case string:
		raw = binary.LittleEndian.AppendUint64(raw, uint64(len(x)))
		return append(raw, x...)
	}
	panic("unreachable: Element lists the types above")
}
