package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// aligned64 is n bytes that start at a multiple of 64.
func aligned64(n int) []byte {
	return alignedTo(make([]byte, n+63), 64)[:n]
}

// clock is the time that fastest measures.
var clock = func() time.Duration { return time.Since(epoch) }

var epoch = time.Now()

// fastest runs f until b ends and returns the seconds of the fastest of its spans of at least a fifth of a millisecond:
// on a machine that others use too, the rate of the code rather than its share of a processor.
func fastest(b *testing.B, f func()) float64 {
	n, best := 1, math.Inf(1)
	for b.Loop() {
		start := clock()
		for range n {
			f()
		}
		d := clock() - start
		best = min(best, d.Seconds()/float64(n))
		if d < 200*time.Microsecond {
			n *= 2
		}
	}
	return best
}

// BenchmarkDot is the inner kernel alone, its operands in the first-level cache.
func BenchmarkDot(b *testing.B) {
	for _, s := range Usable() {
		for _, class := range []class{classBlock, classMin, classHalf, classQ2, classFloat} {
			for _, width := range []int{1, 2, 4, 8, 12} {
				if width > s.Mat.tile {
					break
				}
				b.Run(fmt.Sprintf("%s/%d/%d", s.ISA, class, width), func(b *testing.B) {
					count, size, start, inputs := 16, q8Record, wordMinus8, BlockLen
					if class == classFloat {
						count, size, start, inputs = 8, f32Record, 0, floatUnit
					}
					t := dotTask{
						class: class, dst: make([]float32, 16*width), stride: 16, rows: 16, width: width, count: count, start: start,
						records: aligned64(count * recordBytes[class]), acts: aligned64(count * width * size), first: true,
					}
					seconds := fastest(b, func() { s.Mat.dot(&t) })
					b.ReportMetric(float64(count*inputs*PanelRows*width)/seconds/1e9, "GMAC/s")
				})
			}
		}
	}
}

// BenchmarkMatMul is a layer's product: 512 tokens and the two shapes of a 0.5b model's feed-forward part.
func BenchmarkMatMul(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range Usable() {
		for _, typ := range matTypes() {
			for _, shape := range [][2]int{{4864, 896}, {896, 4864}} {
				rows, cols := shape[0], shape[1]
				if cols%typ.BlockLen() != 0 {
					rows, cols = (rows+128)/256*256, (cols+128)/256*256
				}
				w := packed(b, typ, randomBlocks(rng, typ, rows, cols, false), rows, cols)
				for _, tokens := range []int{1, 2, 4, 8, 16, 512} {
					x := randomActs(rng, tokens, cols)
					a := stored(b, &s.Mat, KindFor(typ), x, tokens, cols)
					dst := make([]float32, tokens*rows)
					b.Run(fmt.Sprintf("%s/%s/%dx%d/%d", s.ISA, typ, rows, cols, tokens), func(b *testing.B) {
						seconds := fastest(b, func() { s.MatMul(dst, rows, w, a, 0, Panels(rows)) })
						b.ReportMetric(float64(rows*cols*tokens)/seconds/1e9, "GMAC/s")
						b.ReportMetric(float64(len(w.Panels))/seconds/1e9, "GB/s")
					})
				}
			}
		}
	}
}

// BenchmarkMatVec streams a matrix larger than the caches, as the output layer of a 0.5b model, for a few tokens.
func BenchmarkMatVec(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rows, cols = 98304, 1024
	for _, s := range Usable() {
		for _, typ := range matTypes() {
			src := randomBlocks(rng, typ, 64, cols, false)
			n, err := PackedBytes(typ, rows, cols)
			if err != nil {
				b.Fatal(err)
			}
			mem, free, err := PanelMemory(n)
			if err != nil {
				b.Fatal(err)
			}
			w := &Weight{Type: typ, Rows: rows, Cols: cols, Panels: mem}
			Pack(w.Panels, typ, src, 64, cols, 0, 4)
			for size := 4 * PanelBytes(typ, cols); size < n; size *= 2 {
				copy(w.Panels[size:], w.Panels[:size])
			}
			for _, tokens := range []int{1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 96, 256} {
				a := stored(b, &s.Mat, KindFor(typ), randomActs(rng, tokens, cols), tokens, cols)
				const stride = rows + 16 // no power of two: rows of a large power would share cache sets
				dst := make([]float32, tokens*stride)
				b.Run(fmt.Sprintf("%s/%s/%d", s.ISA, typ, tokens), func(b *testing.B) {
					seconds := fastest(b, func() { s.MatMul(dst, stride, w, a, 0, Panels(rows)) })
					b.ReportMetric(float64(rows*cols*tokens)/seconds/1e9, "GMAC/s")
					b.ReportMetric(float64(n)/seconds/1e9, "GB/s")
				})
			}
			if err := free(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkSetRow stores one token.
func BenchmarkSetRow(b *testing.B) {
	for _, s := range Usable() {
		for _, kind := range []ActsKind{ActsF32, ActsQ8} {
			const cols = 1024
			b.Run(fmt.Sprintf("%s/%d", s.ISA, kind), func(b *testing.B) {
				x := randomActs(rand.New(rand.NewPCG(1, 2)), 1, cols)
				a := s.Acts(aligned64(s.ActsBytes(kind, cols, 100)), kind, cols, 100)
				seconds := fastest(b, func() { s.SetRow(&a, 5, x) })
				b.ReportMetric(seconds*1e9, "ns/row")
			})
		}
	}
}

// BenchmarkPack packs a layer's matrix, and decodes a row of an embedding.
func BenchmarkPack(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rows, cols = 1024, 1024
	for _, typ := range matTypes() {
		src := randomBlocks(rng, typ, rows, cols, false)
		w := packed(b, typ, src, rows, cols)
		b.Run(typ.String(), func(b *testing.B) {
			seconds := fastest(b, func() { Pack(w.Panels, typ, src, rows, cols, 0, Panels(rows)) })
			b.ReportMetric(float64(len(src))/seconds/1e9, "GB/s")
		})
		b.Run(typ.String()+"/row", func(b *testing.B) {
			row := make([]float32, cols)
			seconds := fastest(b, func() { w.DecodeRow(row, 77) })
			b.ReportMetric(seconds*1e6, "µs/row")
		})
	}
}
