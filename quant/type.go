package quant

import (
	"fmt"
	"math"
	"strings"
)

// Type is a tensor type as GGUF files number it.
type Type uint32

// The tensor types. Numbers that are missing here belonged to layouts that no current file has.
//
//revive:disable:var-naming the names are the format's own
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
)

//revive:enable:var-naming

// superLen is the number of elements in a super-block of the K and I types.
const superLen = 256

type layout struct {
	name     string
	elements int // per block; 0: the layout is not supported, only the name is known
	bytes    int // per block
}

// layouts is indexed by Type; an empty name is a number that was never given out.
var layouts = [...]layout{
	F32:  {"F32", 1, 4},
	F16:  {"F16", 1, 2},
	Q4_0: {"Q4_0", 32, 2 + 16},
	Q4_1: {"Q4_1", 32, 2 + 2 + 16},
	// Withdrawn before GGUF existed, or repacked for one kind of machine: named, so that a refusal can name them.
	4:       {name: "Q4_2"},
	5:       {name: "Q4_3"},
	31:      {name: "Q4_0_4_4"},
	32:      {name: "Q4_0_4_8"},
	33:      {name: "Q4_0_8_8"},
	36:      {name: "IQ4_NL_4_4"},
	37:      {name: "IQ4_NL_4_8"},
	38:      {name: "IQ4_NL_8_8"},
	Q5_0:    {"Q5_0", 32, 2 + 4 + 16},
	Q5_1:    {"Q5_1", 32, 2 + 2 + 4 + 16},
	Q8_0:    {"Q8_0", 32, 2 + 32},
	Q8_1:    {"Q8_1", 32, 2 + 2 + 32},
	Q2_K:    {"Q2_K", superLen, 2 + 2 + superLen/16 + superLen/4},
	Q3_K:    {"Q3_K", superLen, 2 + superLen/4 + superLen/8 + 12},
	Q4_K:    {"Q4_K", superLen, 2 + 2 + superLen/2 + 12},
	Q5_K:    {"Q5_K", superLen, 2 + 2 + superLen/2 + superLen/8 + 12},
	Q6_K:    {"Q6_K", superLen, 2 + superLen/2 + superLen/4 + superLen/16},
	Q8_K:    {"Q8_K", superLen, 4 + superLen + superLen/8},
	IQ2_XXS: {"IQ2_XXS", superLen, 2 + superLen/4},
	IQ2_XS:  {"IQ2_XS", superLen, 2 + superLen/4 + superLen/32},
	IQ3_XXS: {"IQ3_XXS", superLen, 2 + superLen/4 + superLen/8},
	IQ1_S:   {"IQ1_S", superLen, 2 + superLen/8 + superLen/16},
	IQ4_NL:  {"IQ4_NL", 32, 2 + 16},
	IQ3_S:   {"IQ3_S", superLen, 2 + superLen/4 + superLen/8 + superLen/32 + 4},
	IQ2_S:   {"IQ2_S", superLen, 2 + superLen/4 + superLen/16},
	IQ4_XS:  {"IQ4_XS", superLen, 2 + 2 + superLen/2 + superLen/64},
	I8:      {"I8", 1, 1},
	I16:     {"I16", 1, 2},
	I32:     {"I32", 1, 4},
	I64:     {"I64", 1, 8},
	F64:     {"F64", 1, 8},
	IQ1_M:   {"IQ1_M", superLen, superLen/8 + superLen/16 + superLen/32},
	BF16:    {"BF16", 1, 2},
	TQ1_0:   {"TQ1_0", superLen, 2 + 4*13},
	TQ2_0:   {"TQ2_0", superLen, 2 + 64},
	MXFP4:   {"MXFP4", 32, 1 + 16},
	NVFP4:   {"NVFP4", 64, 4 + 32},
	Q1_0:    {"Q1_0", 128, 2 + 16},
}

func (t Type) layout() layout {
	if uint64(t) < uint64(len(layouts)) {
		return layouts[t]
	}
	return layout{}
}

// String returns the type's name, as in "Q4_0", or "type(77)" for a number without one.
func (t Type) String() string {
	if name := t.layout().name; name != "" {
		return name
	}
	return fmt.Sprintf("type(%d)", uint32(t))
}

// BlockLen returns the number of elements in a block, 1 for plain numbers, 0 if the layout is unknown.
func (t Type) BlockLen() int { return t.layout().elements }

// BlockBytes returns the size of a block in bytes, 0 if the layout is unknown.
func (t Type) BlockBytes() int { return t.layout().bytes }

// RowBytes returns the bytes of n consecutive elements. The error is [ErrType] if the layout is unknown, and
// [ErrShape] if n is negative, is not a multiple of the block length, or needs more bytes than an int can count.
func (t Type) RowBytes(n int) (int, error) {
	l := t.layout()
	switch {
	case l.elements == 0:
		return 0, fmt.Errorf("%w: the layout of %s is unknown", ErrType, t)
	case n < 0 || n%l.elements != 0:
		return 0, fmt.Errorf("%w: %d elements are not whole blocks of %d (%s)", ErrShape, n, l.elements, t)
	case n/l.elements > math.MaxInt/l.bytes:
		return 0, fmt.Errorf("%w: %d elements of %s are too many", ErrShape, n, t)
	}
	return n / l.elements * l.bytes, nil
}

// ParseType returns the type with the given name, whatever its case. Only types with a known layout are found: the
// error for others is [ErrType].
func ParseType(s string) (Type, error) {
	for i, l := range layouts {
		if l.elements != 0 && strings.EqualFold(l.name, s) {
			return Type(i), nil
		}
	}
	return 0, fmt.Errorf("%w: no type is named %q", ErrType, s)
}
