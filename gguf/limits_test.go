package gguf

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// Each limit at the limit (want nil, or the end of a file that is too short to go on) and one past it.
func TestLimits(t *testing.T) {
	keys := func(n int) *raw {
		r := header(3, 0, uint64(n))
		for i := range n {
			r.set(fmt.Sprint(i), ValueOf(uint8(1)))
		}
		return r
	}
	tensors := func(n int) *raw {
		r := header(3, uint64(n), 0)
		for i := range n {
			r.tensor(fmt.Sprint(i), quant.F32, uint64(32*i), 8)
		}
		return r.data(32, 32*n)
	}
	key := func(n int) *raw { return header(3, 0, 1).set(strings.Repeat("k", n), ValueOf(uint8(1))) }
	str := func(n uint64) *raw {
		return header(3, 0, 1).kv("k", TypeString, (&raw{}).u64(n).Bytes())
	}
	array := func(elem ValueType, n uint64) *raw {
		return header(3, 0, 1).kv("k", TypeArray, (&raw{}).u32(uint32(elem)).u64(n).Bytes())
	}
	tensor := func(name string, dims ...uint64) *raw {
		return header(3, 1, 0).tensor(name, quant.I8, 0, dims...).data(32, 32)
	}
	align := func(n uint32) *raw {
		return header(3, 1, 1).set(alignmentKey, ValueOf(n)).tensor("t", quant.I8, 0, 8).data(int(n), 8)
	}
	elements := ErrTruncated
	if uint64(math.MaxInt) < MaxElements {
		elements = ErrLimit // no int counts that many
	}
	for _, c := range []struct {
		name     string
		at, past *raw
		atErr    error
		pastErr  error
	}{
		{"MaxKeys", keys(MaxKeys), keys(MaxKeys + 1), nil, ErrLimit},
		{"MaxKeyLen", key(MaxKeyLen), key(MaxKeyLen + 1), nil, ErrLimit},
		{"MaxStringLen", str(MaxStringLen), str(MaxStringLen + 1), ErrTruncated, ErrLimit},
		{"MaxArrayLen", array(TypeUint8, MaxArrayLen).data(1, MaxArrayLen), array(TypeUint8, MaxArrayLen+1), nil, ErrLimit},
		{"MaxArrayLen of strings", array(TypeString, MaxArrayLen), array(TypeString, MaxArrayLen+1), ErrTruncated, ErrLimit},
		{"MaxArrayLen of arrays", array(TypeArray, MaxArrayLen), array(TypeArray, MaxArrayLen+1), ErrTruncated, ErrLimit},
		{"MaxDepth", header(3, 0, 1).set("k", nestedTo(t, MaxDepth)), header(3, 0, 1).set("k", nestedTo(t, MaxDepth+1)), nil, ErrLimit},
		{"MaxTensors", tensors(MaxTensors), tensors(MaxTensors + 1), nil, ErrLimit},
		{"MaxNameLen", tensor(strings.Repeat("n", MaxNameLen), 8), tensor(strings.Repeat("n", MaxNameLen+1), 8), nil, ErrLimit},
		{"MaxDims", tensor("t", 1, 1, 1, 8), tensor("t", 1, 1, 1, 8, 1), nil, ErrLimit},
		{"MaxElements", tensor("t", MaxElements/4, 4), tensor("t", MaxElements/4, 5), elements, ErrLimit},
		{"MaxElements in one dimension", tensor("t", MaxElements), tensor("t", MaxElements+1), elements, ErrLimit},
		{"MinAlignment", align(MinAlignment), align(MinAlignment / 2), nil, ErrAlignment},
		{"MaxAlignment", align(MaxAlignment), align(MaxAlignment * 2), nil, ErrAlignment},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := FromBytes("at", c.at.Bytes()); !errors.Is(err, c.atErr) {
				t.Errorf("at the limit: %v, want %v", err, c.atErr)
			}
			if _, err := FromBytes("past", c.past.Bytes()); !errors.Is(err, c.pastErr) {
				t.Errorf("past the limit: %v, want %v", err, c.pastErr)
			}
		})
	}
}
