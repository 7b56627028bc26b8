package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestAttendEveryTile goes through every kernel variant: queries of a tile, slices of a head, stored type, keys in place
// or brought together, ranges that end anywhere. Each query is held against float64 and against itself alone, bit for bit.
func TestAttendEveryTile(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(9, 9))
		const positions, cells = 100, 112
		for _, hd := range []int{16, 32, 48, 64, 80, 96, 112, 128, 144, 192, 240, 256} {
			k, v := randomRows(r, positions, hd), randomRows(r, positions, hd)
			for _, typ := range []KVType{KVF32, KVF16, KVQ8} {
				if KVSupports(typ, hd) != nil {
					continue
				}
				for _, how := range []string{"aligned", "random"} {
					c := newAttnCase(t, s, typ, 1, hd, cells, place(r, how, positions, cells), k, v)
					for heads := 1; heads <= 8; heads++ {
						q := f32s(heads*hd, r)
						limit := int32(r.IntN(positions) + 1)
						first := int32(r.IntN(int(limit)))
						job := c.job(q, 0, heads, []int32{first}, []int32{limit})
						got := attend(t, s, job)
						for h := range heads {
							name := fmt.Sprintf("hd %d %v %s head %d of %d, %d..%d", hd, typ, how, h, heads, first, limit)
							out := got[h*hd : (h+1)*hd]
							alone := c.job(q[h*hd:], 0, 1, []int32{first}, []int32{limit})
							wantBits(t, name, out, attend(t, s, alone))
							for d, w := range c.naive(q[h*hd:(h+1)*hd], 0, int(first), int(limit), job.Scale) {
								if !(math.Abs(float64(out[d])-w) < 3e-6) {
									t.Fatalf("%s: element %d is %g, want %g", name, d, out[d], w)
								}
							}
						}
					}
				}
			}
		}
	})
}

// TestAttendWindow: with a window far into the sequence the chunks before it do not matter, and cells of positions before
// every row's window are not looked at.
func TestAttendWindow(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(10, 10))
		const positions, cells, hd, heads, window = 1400, 1408, 64, 2, 100
		c := newAttnCase(t, s, KVF16, 1, hd, cells, place(r, "shifted", positions, cells), randomRows(r, positions, hd), randomRows(r, positions, hd))
		first, limit := []int32{1290, 1291, 1292}, []int32{1390, 1391, 1392}
		for p := range first[0] {
			c.cells[p] = -1
		}
		job := c.job(f32s(3*heads*hd, r), 0, heads, first, limit)
		if a, b := job.FirstChunk(), job.Chunks(); a != 2 || b != 3 {
			t.Fatalf("chunks %d to %d, want 2 to 3", a, b)
		}
		got := attend(t, s, job)
		for i := range 3 * heads {
			row := i / heads
			for d, w := range c.naive(job.Q[i*hd:(i+1)*hd], 0, int(first[row]), int(limit[row]), job.Scale) {
				if g := got[i*hd+d]; !(math.Abs(float64(g)-w) < 3e-6) {
					t.Fatalf("row %d element %d is %g, want %g", row, d, g, w)
				}
			}
		}
		wantBits(t, "all chunks", attendByChunk(s, job, r), got)
	})
}
