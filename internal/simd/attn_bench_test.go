package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkPrefill is the attention of 512 new tokens over 32-row jobs; GFLOP/s counts the positions attended to.
func BenchmarkPrefill(b *testing.B) {
	const rows, step = 512, 32
	for _, s := range Usable() {
		for _, sh := range []struct {
			typ                KVType
			kvHeads, heads, hd int
		}{{KVF16, 2, 7, 64}, {KVF32, 2, 7, 64}, {KVQ8, 2, 7, 64}, {KVF16, 8, 2, 128}, {KVQ8, 8, 2, 128}} {
			b.Run(fmt.Sprintf("%v/%v-kv%d-gqa%d-hd%d", s.ISA, sh.typ, sh.kvHeads, sh.heads, sh.hd), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				width := sh.kvHeads * sh.hd
				kv := randomRows(r, rows, width)
				c := newAttnCase(b, s, sh.typ, sh.kvHeads, sh.hd, rows, place(r, "aligned", rows, rows), kv, kv)
				q, out := f32s(rows*width*sh.heads, r), make([]float32, rows*width*sh.heads)
				limit := make([]int32, rows)
				for i := range limit {
					limit[i] = int32(i + 1)
				}
				scratch := NewAttnScratch(step*sh.heads, sh.hd)
				for b.Loop() {
					for head := range sh.kvHeads {
						for at := 0; at < rows; at += step {
							job := c.job(q[at*width*sh.heads:], head, sh.heads, nil, limit[at:at+step])
							s.Attend(out[(at*sh.kvHeads+head)*sh.heads*sh.hd:], width*sh.heads, job, scratch)
						}
					}
				}
				flop := 4 * float64(sh.kvHeads*sh.heads*sh.hd) * rows * (rows + 1) / 2
				b.ReportMetric(flop*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}

// BenchmarkDecode is the attention of one token over a context; GB/s counts the keys and values read once. The layers
// together exceed the caches.
func BenchmarkDecode(b *testing.B) {
	for _, s := range Usable() {
		for _, sh := range []struct {
			typ                       KVType
			kvHeads, heads, hd, depth int
			how                       string
		}{
			{KVF16, 2, 7, 64, 96, "aligned"},
			{KVF16, 2, 7, 64, 2048, "aligned"},
			{KVF16, 2, 7, 64, 8192, "aligned"},
			{KVF16, 2, 7, 64, 2048, "shifted"},
			{KVF16, 2, 7, 64, 2048, "random"},
			{KVF16, 8, 2, 128, 96, "aligned"},
			{KVF16, 8, 2, 128, 2048, "aligned"},
			{KVF16, 8, 2, 128, 8192, "aligned"},
			{KVF16, 8, 2, 128, 2048, "shifted"},
			{KVF16, 9, 1, 64, 2048, "aligned"},
			{KVQ8, 2, 7, 64, 96, "aligned"},
			{KVQ8, 2, 7, 64, 2048, "aligned"},
			{KVQ8, 2, 7, 64, 2048, "shifted"},
			{KVQ8, 2, 7, 64, 2048, "random"},
			{KVQ8, 8, 2, 128, 8192, "aligned"},
			{KVQ8, 9, 1, 64, 2048, "aligned"},
			{KVF16, 8, 4, 128, 2048, "aligned"},
			{KVQ8, 8, 4, 128, 2048, "aligned"},
		} {
			b.Run(fmt.Sprintf("%v/%v-kv%d-gqa%d-hd%d-%d-%s", s.ISA, sh.typ, sh.kvHeads, sh.heads, sh.hd, sh.depth, sh.how), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				width, cells := sh.kvHeads*sh.hd, sh.depth+16
				kv := randomRows(r, 64, width)
				kbytes, _ := KVLayerBytes(sh.typ, sh.kvHeads, sh.hd, cells)
				layers := make([]*attnCase, max(1, 80<<20/(2*kbytes)))
				at := place(r, sh.how, sh.depth, cells)
				for i := range layers {
					layers[i] = &attnCase{cells: at, layer: KVLayer{Type: sh.typ, KVHeads: sh.kvHeads, HeadDim: sh.hd, Cells: KVCells(cells), K: make([]byte, kbytes), V: make([]byte, kbytes)}}
					for p := range at {
						s.StoreKV(&layers[i].layer, int(at[p]), kv[p%64], kv[(p+1)%64])
					}
				}
				q, out := f32s(width*sh.heads, r), make([]float32, width*sh.heads)
				scratch, n := NewAttnScratch(sh.heads, sh.hd), 0
				for b.Loop() {
					c := layers[n%len(layers)]
					n++
					for head := range sh.kvHeads {
						s.Attend(out[head*sh.heads*sh.hd:], width*sh.heads, c.job(q, head, sh.heads, nil, []int32{int32(sh.depth)}), scratch)
					}
				}
				per := b.Elapsed().Seconds() / float64(b.N)
				b.ReportMetric(float64(2*sh.depth*sh.typ.RowBytes(width))/1e9/per, "GB/s")
				b.ReportMetric(float64(sh.depth)/1e6/per, "Mpos/s")
			})
		}
	}
}

func BenchmarkStoreKV(b *testing.B) {
	for _, s := range Usable() {
		for _, typ := range []KVType{KVF16, KVQ8} {
			b.Run(fmt.Sprintf("%v/%v", s.ISA, typ), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				kb, vb := KVLayerBytes(typ, 2, 64, 512)
				l := KVLayer{Type: typ, KVHeads: 2, HeadDim: 64, Cells: 512, K: make([]byte, kb), V: make([]byte, vb)}
				k, v, n := f32s(128, r), f32s(128, r), 0
				for b.Loop() {
					s.StoreKV(&l, n%512, k, v)
					n++
				}
			})
		}
	}
}
