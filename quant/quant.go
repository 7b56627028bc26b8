// Package quant describes the tensor types of the ggml family: their names, their block layouts, and readable scalar
// decoders and encoders that define what the bytes mean.
//
// A tensor row is a sequence of blocks. A block holds [Type.BlockLen] consecutive elements in [Type.BlockBytes] bytes,
// little-endian, without padding between blocks. Plain number types are blocks of one element.
//
// The decoders are the reference that faster kernels are held to: every product and sum is rounded to float32 in the
// order that the layout comments give, with no fused multiply-add, so the result is the same bits on every machine.
// The package imports nothing else of this module, keeps no state, and never panics on input: lengths that do not fit
// are errors.
package quant

import (
	"errors"
	"fmt"
)

// Errors that the functions of this package wrap.
var (
	// ErrType says that a type is unknown, or that the operation is not available for it.
	ErrType = errors.New("quant: unsupported type")
	// ErrShape says that a length is not a whole number of blocks, or that two lengths do not belong together.
	ErrShape = errors.New("quant: bad length")
)

// A codec converts whole blocks. src and dst hold the same number of blocks; the callers have checked the lengths.
type (
	decoder func(dst []float32, src []byte)
	encoder func(dst []byte, src []float32)
)

func decoderOf(t Type) decoder {
	switch t {
	case F32:
		return decodeF32
	case F16:
		return decodeF16
	case BF16:
		return decodeBF16
	case Q4_0:
		return decodeQ4_0
	case Q4_1:
		return decodeQ4_1
	case Q5_0:
		return decodeQ5_0
	case Q5_1:
		return decodeQ5_1
	case Q8_0:
		return decodeQ8_0
	case Q2_K:
		return decodeQ2_K
	case Q3_K:
		return decodeQ3_K
	case Q4_K:
		return decodeQ4_K
	case Q5_K:
		return decodeQ5_K
	case Q6_K:
		return decodeQ6_K
	case IQ4_NL:
		return decodeIQ4_NL
	case IQ4_XS:
		return decodeIQ4_XS
	case MXFP4:
		return decodeMXFP4
	}
	return nil
}

func encoderOf(t Type) encoder {
	switch t {
	case F32:
		return encodeF32
	case F16:
		return encodeF16
	case BF16:
		return encodeBF16
	case Q4_0:
		return encodeQ4_0
	case Q4_1:
		return encodeQ4_1
	case Q5_0:
		return encodeQ5_0
	case Q5_1:
		return encodeQ5_1
	case Q8_0:
		return encodeQ8_0
	}
	return nil
}

// CanDecode reports whether [Decode] knows t.
func (t Type) CanDecode() bool { return decoderOf(t) != nil }

// CanEncode reports whether [Encode] knows t.
func (t Type) CanEncode() bool { return encoderOf(t) != nil }

// Decode writes the elements of src, which holds blocks of type t, to dst. The length of dst must be a multiple of
// t.BlockLen() and src must have exactly the bytes of that many elements: otherwise the error is [ErrShape]. A type
// without a decoder is [ErrType].
func Decode(t Type, dst []float32, src []byte) error {
	decode := decoderOf(t)
	if decode == nil {
		return fmt.Errorf("%w: no decoder for %s", ErrType, t)
	}
	if err := checkLengths(t, len(dst), len(src)); err != nil {
		return err
	}
	decode(dst, src)
	return nil
}

// Encode rounds the elements of src to blocks of type t in dst. The length of src must be a multiple of t.BlockLen()
// and dst must have exactly the bytes of that many elements: otherwise the error is [ErrShape]. A type without an
// encoder is [ErrType].
//
// Finite values give the same bytes as ggml's reference quantizers without an importance matrix. Values that are not
// finite have no meaning in the block types; they give some valid bytes.
func Encode(t Type, dst []byte, src []float32) error {
	encode := encoderOf(t)
	if encode == nil {
		return fmt.Errorf("%w: no encoder for %s", ErrType, t)
	}
	if err := checkLengths(t, len(src), len(dst)); err != nil {
		return err
	}
	encode(dst, src)
	return nil
}

func checkLengths(t Type, elements, bytes int) error {
	want, err := t.RowBytes(elements)
	if err != nil {
		return err
	}
	if want != bytes {
		return fmt.Errorf("%w: %d elements of %s are %d bytes, not %d", ErrShape, elements, t, want, bytes)
	}
	return nil
}
