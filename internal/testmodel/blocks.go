package testmodel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/quant"
)

// WeightTypes lists the types that Matrix can make: all that package quant decodes.
func WeightTypes() []quant.Type {
	var all []quant.Type
	for t := quant.Type(0); t < 64; t++ {
		if t.CanDecode() {
			all = append(all, t)
		}
	}
	return all
}

// Matrix makes rows of random weights of variance about 1/cols. cols is a multiple of the type's block length.
func Matrix(t quant.Type, cols, rows int, rng *rand.Rand) ([]byte, error) {
	if t.CanEncode() || !t.CanDecode() {
		x := make([]float32, rows*cols)
		scale := 1 / math.Sqrt(float64(cols))
		for i := range x {
			x[i] = float32(rng.NormFloat64() * scale)
		}
		return Encode(t, x, rng)
	}
	row, err := t.RowBytes(cols)
	if err != nil {
		return nil, err
	}
	b := make([]byte, row*rows)
	return b, blocks(t, b, 1/math.Sqrt(float64(cols)), rng)
}

// Encode stores values; a type without an encoder gets random bytes that mean something.
func Encode(t quant.Type, x []float32, rng *rand.Rand) ([]byte, error) {
	size, err := t.RowBytes(len(x))
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	switch {
	case t.CanEncode():
		return b, quant.Encode(t, b, x)
	case t.CanDecode():
		return b, blocks(t, b, 1, rng)
	}
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b, nil
}

// scales are the byte offsets of the half-precision scales in a block, with the largest factor that the codes of the
// block put on each.
var scales = map[quant.Type][]struct {
	at  int
	max float64
}{
	quant.Q2_K:   {{80, 15 * 3}, {82, 15}},
	quant.Q3_K:   {{108, 32 * 4}},
	quant.Q4_K:   {{0, 63 * 15}, {2, 63}},
	quant.Q5_K:   {{0, 63 * 31}, {2, 63}},
	quant.Q6_K:   {{208, 128 * 32}},
	quant.IQ4_NL: {{0, 127}},
	quant.IQ4_XS: {{0, 32 * 127}},
}

// blocks fills b with blocks of random codes whose scales make the largest value about four times size.
func blocks(t quant.Type, b []byte, size float64, rng *rand.Rand) error {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	at, known := scales[t]
	for ; len(b) > 0; b = b[t.BlockBytes():] {
		switch {
		case t == quant.MXFP4: // the first byte is an exponent of 2, biased by 127; codes reach 6, twice what is stored
			b[0] = byte(127 + math.Round(math.Log2(size*(0.5+rng.Float64()))))
		case known:
			for _, s := range at {
				d := 4 * size * (0.5 + rng.Float64()) / s.max
				binary.LittleEndian.PutUint16(b[s.at:], quant.F32ToF16(float32(d)))
			}
		default:
			return fmt.Errorf("testmodel: no random blocks of %s", t)
		}
	}
	return nil
}

func contains(all []string, s string) bool { return slices.Contains(all, s) }

func has(all []keyValue, key string) bool {
	return slices.ContainsFunc(all, func(kv keyValue) bool { return kv.key == key })
}

func sorted(m map[string]gguf.Value) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
