package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// randomRecords are expanded records whose codes reach top, in memory that ends at an inaccessible page.
func randomRecords(t *testing.T, rng *rand.Rand, class class, count, top int) []byte {
	size := recordBytes[class]
	out := guardAlloc[byte](t, count*size)
	for b := range count {
		record, codes := out[b*size:(b+1)*size], codeBytes
		if class == classFloat {
			codes = 0
		}
		for i := range record[:codes] {
			record[i] = byte(rng.IntN(top + 1))
			if rng.IntN(3) == 0 {
				record[i] = byte(top * rng.IntN(2))
			}
		}
		for at := codes; at < size; at += 4 {
			putF32(record[at:], float32(rng.NormFloat64()))
		}
	}
	return out
}

// The kernel of every class, for every width of group, rows and a few records, against the portable one; the vector sets
// agree with each other to the bit. Codes and activations reach their extremes: sums of 16 bits would saturate here.
func TestDot(t *testing.T) {
	oneGoroutine(t)
	rng := rand.New(rand.NewPCG(17, 18))
	for _, c := range []struct {
		class      class
		start, top int
	}{
		{classBlock, wordMinus8, 15},
		{classBlock, wordMinus16, 31},
		{classBlock, wordMinus128, 255},
		{classMin, recordWords, 31},
		{classHalf, recordWords, 63},
		{classQ2, recordWords, 3},
		{classFloat, recordWords, 0},
	} {
		for width := 1; width <= maxTile; width++ {
			for _, count := range []int{1, 2, 5} {
				kind, cols := ActsQ8, count*BlockLen
				if c.class == classFloat {
					kind, cols = ActsF32, count*floatUnit
				}
				records := randomRecords(t, rng, c.class, count, c.top)
				x := make([]float32, width*cols)
				for i := range x {
					x[i] = float32(rng.NormFloat64())
					if rng.IntN(3) == 0 {
						x[i] = []float32{4, -4}[rng.IntN(2)] // ±127 once quantized
					}
				}
				for _, rows := range []int{1, 7, 8, 9, 15, 16} {
					task := dotTask{class: c.class, stride: rows + 1, rows: rows, records: records, width: width, count: count, start: c.start}
					name := fmt.Sprintf("class %d, codes to %d, %d tokens, %d records, %d rows", c.class, c.top, width, count, rows)
					compareDots(t, rng, name, task, kind, x, cols)
				}
			}
		}
	}
}

func compareDots(t *testing.T, rng *rand.Rand, name string, task dotTask, kind ActsKind, x []float32, cols int) {
	t.Helper()
	before := make([]float32, (task.width-1)*task.stride+task.rows)
	for i := range before {
		before[i] = float32(rng.NormFloat64())
	}
	var vector []float32 // the result of the first vector set
	for _, s := range Usable() {
		if task.width > s.Mat.tile {
			continue
		}
		// Whole units have an even number of records: what is behind the last one here is not read.
		task.acts = stored(t, &s.Mat, kind, x, task.width, cols).buf[:task.width*task.count*sizeOf(kind)]
		task.acts = guarded(t, task.acts)
		for _, task.first = range []bool{true, false} {
			task.dst = guarded(t, before)
			s.Mat.dot(&task)
			got, want := task.dst, append([]float32(nil), before...)
			task.dst = want
			dotGeneric(&task)
			for i, v := range got {
				inside := i%task.stride < task.rows
				if !inside && v != before[i] {
					t.Fatalf("%s %s: wrote outside of the rows at %d", s.ISA, name, i)
				}
				if math.Abs(float64(v-want[i])) > 2e-5*float64(cols)+1e-5*math.Abs(float64(want[i])) {
					t.Fatalf("%s %s, first %v: number %d is %v, want %v", s.ISA, name, task.first, i, v, want[i])
				}
			}
			if s.ISA != Generic && !task.first {
				if vector == nil {
					vector = got
				}
				for i, v := range got {
					if math.Float32bits(v) != math.Float32bits(vector[i]) {
						t.Fatalf("%s %s: number %d is %v, another vector set has %v", s.ISA, name, i, v, vector[i])
					}
				}
			}
		}
	}
}

func sizeOf(kind ActsKind) int {
	if kind == ActsF32 {
		return f32Record
	}
	return q8Record
}

// The vector sets compute the same bits from the packed form too.
func TestVectorSetsAgree(t *testing.T) {
	oneGoroutine(t)
	var sets []*Set
	for _, s := range Usable() {
		if s.ISA != Generic {
			sets = append(sets, s)
		}
	}
	if len(sets) < 2 {
		t.Skip("this machine has fewer than two vector sets")
	}
	rng := rand.New(rand.NewPCG(19, 20))
	for _, typ := range matTypes() {
		const rows, cols = 37, 1280
		w := packed(t, typ, randomBlocks(rng, typ, rows, cols, true), rows, cols)
		for _, tokens := range []int{1, 3, 14} {
			x := randomActs(rng, tokens, cols)
			want := product(t, sets[0], w, stored(t, &sets[0].Mat, KindFor(typ), x, tokens, cols))
			for _, s := range sets[1:] {
				for i, v := range product(t, s, w, stored(t, &s.Mat, KindFor(typ), x, tokens, cols)) {
					if math.Float32bits(v) != math.Float32bits(want[i]) {
						t.Fatalf("%s: %s gives %v, %s gives %v", typ, s.ISA, v, sets[0].ISA, want[i])
					}
				}
			}
		}
	}
}
