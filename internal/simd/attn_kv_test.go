package simd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

var kvTypes = []KVType{KVF32, KVF16, KVQ8}

// newLayer is a layer whose bytes are all 0xff.
func newLayer(t testing.TB, typ KVType, kvHeads, headDim, cells int) *KVLayer {
	k, v := KVLayerBytes(typ, kvHeads, headDim, cells)
	l := &KVLayer{
		Type: typ, KVHeads: kvHeads, HeadDim: headDim, Cells: KVCells(cells),
		K: guarded(t, bytes.Repeat([]byte{0xff}, k)), V: guarded(t, bytes.Repeat([]byte{0xff}, v)),
	}
	return l
}

func TestKVSupports(t *testing.T) {
	for _, c := range []struct {
		typ     KVType
		headDim int
		ok      bool
	}{
		{KVF32, 1, true},
		{KVF16, 20, true},
		{KVF16, 0, false},
		{KVQ8, 31, false},
		{KVQ8, 32, true},
		{KVQ8, 33, false},
		{KVQ8, 80, false},
		{KVQ8, 96, true},
		{KVQ8, -32, false},
		{KVQ8 + 1, 64, false},
	} {
		if err := KVSupports(c.typ, c.headDim); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrKVType) {
			t.Errorf("%v with heads of %d: %v", c.typ, c.headDim, err)
		}
	}
}

// TestKVLayerBytes: 64 elements take 256, 128 and 2·(2+32) bytes.
func TestKVLayerBytes(t *testing.T) {
	for typ, row := range map[KVType]int{KVF32: 256, KVF16: 128, KVQ8: 68} {
		if k, v := KVLayerBytes(typ, 3, 64, 17); k != 3*32*row || v != k {
			t.Errorf("%v: %d and %d bytes, want %d", typ, k, v, 3*32*row)
		}
	}
}

// TestKVStoreConcurrent stores the cells of one tile from several goroutines; the race detector watches.
func TestKVStoreConcurrent(t *testing.T) {
	s := Best()
	r := rand.New(rand.NewPCG(8, 8))
	const heads, hd, cells = 2, 64, KVTile
	rows := randomRows(r, 2*cells, heads*hd)
	for _, typ := range kvTypes {
		l, want := newLayer(t, typ, heads, hd, cells), newLayer(t, typ, heads, hd, cells)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for c := w; c < cells; c += 4 {
					s.StoreKV(l, c, rows[c], rows[cells+c])
				}
			})
		}
		for c := range cells {
			s.StoreKV(want, c, rows[c], rows[cells+c])
		}
		wg.Wait()
		if !bytes.Equal(l.K, want.K) || !bytes.Equal(l.V, want.V) {
			t.Errorf("%v: stores beside each other give other bytes", typ)
		}
	}
}

// TestKVStoreBytes: a store of floats or halves writes every element of its cell, rounded as F32ToF16 rounds, and no
// other byte, for heads of any length and cells at both ends of a tile.
func TestKVStoreBytes(t *testing.T) {
	special := []float32{
		0, float32(math.Copysign(0, -1)), 65504, 65519.99, 65520, -1e30, 0x1p-24, 0x1p-25, 0x1.8p-25, -0x1.fp-15, 1 + 0x1p-11,
		float32(math.NaN()), math.Float32frombits(0xffc12345), float32(math.Inf(1)), float32(math.Inf(-1)),
	}
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(21, 21))
		lengths := []int{64, 80, 120, 127, 128, 129, 135, 136, 192, 256, 260}
		for hd := 1; hd <= 34; hd++ {
			lengths = append(lengths, hd)
		}
		for _, hd := range lengths {
			const heads, cells = 2, 2 * KVTile
			k, v := f32s(heads*hd, r), f32s(heads*hd, r)
			for i := range k {
				if i%3 == 0 {
					k[i], v[len(v)-1-i] = special[r.IntN(len(special))], special[r.IntN(len(special))]
				}
			}
			for _, typ := range []KVType{KVF32, KVF16} {
				for _, cell := range []int{0, 7, KVTile - 1, KVTile, cells - 1} {
					l, want := newLayer(t, typ, heads, hd, cells), newLayer(t, typ, heads, hd, cells)
					for h := range heads {
						for d := range hd {
							typ.store(want.K[want.keyAt(h, cell)+d*want.keyStride():], k[h*hd+d])
							typ.store(want.V[want.valueAt(h, cell)+d*typ.RowBytes(1):], v[h*hd+d])
						}
					}
					s.StoreKV(l, cell, guarded(t, k), guarded(t, v))
					if !bytes.Equal(l.K, want.K) || !bytes.Equal(l.V, want.V) {
						t.Fatalf("%v, heads of %d, cell %d: other bytes than element by element", typ, hd, cell)
					}
				}
			}
		}
	})
}

// TestKVRowBytes: rows of any bytes come back as they were, a store touches its own cell alone, and rows are in the
// order and format of their type.
func TestKVRowBytes(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(11, 11))
		for _, typ := range kvTypes {
			const heads, hd, cells = 3, 64, 40
			l := newLayer(t, typ, heads, hd, cells)
			n := typ.RowBytes(heads * hd)
			k, v := make([][]byte, cells), make([][]byte, cells)
			for _, c := range r.Perm(cells) {
				k[c], v[c] = make([]byte, n), make([]byte, n)
				for i := range n {
					k[c][i], v[c][i] = byte(r.Uint32()), byte(r.Uint32())
				}
				s.WriteRow(l, c, k[c], v[c])
			}
			gotK, gotV := make([]byte, n), make([]byte, n)
			same := func(what string, c int, k, v []byte) {
				t.Helper()
				s.ReadRow(l, c, gotK, gotV)
				if !bytes.Equal(gotK, k) || !bytes.Equal(gotV, v) {
					t.Fatalf("%v: cell %d %s has other bytes", typ, c, what)
				}
			}
			for c := range cells {
				same("as written", c, k[c], v[c])
			}
			s.CopyCell(l, 5, 19)
			same("copied", 5, k[19], v[19])
			same("beside", 4, k[4], v[4])

			// What a store wrote is a row of the type's own format, and writing it elsewhere is a copy.
			rows := randomRows(r, 2, heads*hd)
			s.StoreKV(l, 7, rows[0], rows[1])
			s.ReadRow(l, 7, gotK, gotV)
			ks, vs := make([]float32, heads*hd), make([]float32, heads*hd)
			s.LoadKV(l, 7, ks, vs)
			decoded := make([]float32, heads*hd)
			for i, row := range [][]byte{gotK, gotV} {
				if err := quant.Decode(map[KVType]quant.Type{KVF32: quant.F32, KVF16: quant.F16, KVQ8: quant.Q8_0}[typ], decoded, row); err != nil {
					t.Fatal(err)
				}
				wantBits(t, typ.String()+" row", decoded, [][]float32{ks, vs}[i])
			}
			for _, c := range []int{6, 8, 19, 23} {
				same("after a store beside it", c, k[c], v[c])
			}
		}
	})
}

// q8Cases are blocks with their own difficulty.
func q8Cases(r *rand.Rand) [][]float32 {
	fill := func(f func(i int) float32) []float32 {
		x := make([]float32, BlockLen)
		for i := range x {
			x[i] = f(i)
		}
		return x
	}
	cases := [][]float32{
		fill(func(int) float32 { return 0 }),
		fill(func(i int) float32 { return float32(i - 16) }),
		fill(func(i int) float32 { return float32(i%2*254 - 127) }),
		fill(func(i int) float32 { return float32(i)*0.5 + 111.5 }), // ties
		fill(func(int) float32 { return math.SmallestNonzeroFloat32 }),
		fill(func(i int) float32 { return float32(i) * 0x1p-130 }),
		fill(func(int) float32 { return 127 * 0x1p-25 }),  // its scale rounds to zero
		fill(func(int) float32 { return 128 * 0x1p-25 }),  // the smallest scale
		fill(func(int) float32 { return -127 * 65504 }),   // the largest scale
		fill(func(int) float32 { return 127.01 * 65535 }), // beyond it
		fill(func(int) float32 { return -math.MaxFloat32 }),
	}
	for scale := float32(1e-6); scale < 1e6; scale *= 10 {
		cases = append(cases, fill(func(int) float32 { return scale * float32(r.NormFloat64()) }))
	}
	return cases
}

// TestKVStoreQ8: codes and scales are what the format says, in float64, and every set stores the same bytes.
func TestKVStoreQ8(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		portable := newSet(Generic)
		r := rand.New(rand.NewPCG(12, 12))
		k, v := make([]byte, kvBlockBytes), make([]byte, kvBlockBytes)
		for n, x := range q8Cases(r) {
			l, want := newLayer(t, KVQ8, 1, BlockLen, 16), newLayer(t, KVQ8, 1, BlockLen, 16)
			s.StoreKV(l, 3, guarded(t, x), guarded(t, x))
			portable.StoreKV(want, 3, x, x)
			if !bytes.Equal(l.K, want.K) || !bytes.Equal(l.V, want.V) {
				t.Fatalf("case %d: bytes differ from the portable set", n)
			}
			s.ReadRow(l, 3, k, v)
			if !bytes.Equal(k, v) {
				t.Fatalf("case %d: key %x, value %x", n, k, v)
			}
			peak := float32(0)
			for _, e := range x {
				peak = max(peak, max(e, -e))
			}
			d := binary.LittleEndian.Uint16(k)
			if w := quant.F32ToF16(peak / 127); d != w {
				t.Fatalf("case %d: scale %04x, want %04x", n, d, w)
			}
			for i, e := range x {
				exact := float64(e) * 127 / float64(peak)
				if quant.F16ToF32(d) == 0 {
					exact = 0
				}
				if q := float64(int8(k[2+i])); !(math.Abs(q-exact) <= 0.5+1e-4) {
					t.Fatalf("case %d: code %d is %g, want %g rounded", n, i, q, exact)
				}
			}
		}
		// What is not finite stays visible.
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			l := newLayer(t, KVQ8, 1, 2*BlockLen, 16)
			x := f32s(2*BlockLen, r)
			x[5] = float32(bad)
			s.StoreKV(l, 0, x, x)
			ks, vs := make([]float32, len(x)), make([]float32, len(x))
			s.LoadKV(l, 0, ks, vs)
			for i := range x {
				for _, e := range []float32{ks[i], vs[i]} {
					if isNaN := e != e; isNaN != (i < BlockLen) {
						t.Fatalf("%g in block 0: element %d is %g", bad, i, e)
					}
				}
			}
		}
	})
}

// TestKVRotateQ8: a turn is the rotation of the stored key, stored again; blocks without turned elements keep their bytes.
func TestKVRotateQ8(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(13, 13))
		for _, hd := range []int{32, 64, 96, 128, 288} {
			const heads, cells = 2, 16
			width := heads * hd
			rows := randomRows(r, 2*cells, width)
			for _, rot := range []int{hd, hd / 2, 20} {
				for _, neox := range []bool{true, false} {
					l, want := newLayer(t, KVQ8, heads, hd, cells), newLayer(t, KVQ8, heads, hd, cells)
					for c := range cells {
						s.StoreKV(l, c, rows[c], rows[cells+c])
						s.StoreKV(want, c, rows[c], rows[cells+c])
					}
					cos, sin := f32s(rot/2, r), f32s(rot/2, r)
					k, v, was := make([]float32, width), make([]float32, width), make([]float32, width)
					s.LoadKV(l, 9, k, v)
					copy(was, k)
					if neox {
						s.RopeNeox(k, hd, rot, cos, sin)
					} else {
						s.RopeNorm(k, hd, rot, cos, sin)
					}
					n := l.Type.RowBytes(width)
					keys, values := make([]byte, n), make([]byte, n)
					s.ReadRow(l, 9, keys, values)
					kept := slices.Clone(keys)
					s.StoreKV(want, 9, k, v)
					s.ReadRow(want, 9, keys, make([]byte, n))
					from := (rot + BlockLen - 1) / BlockLen * kvBlockBytes
					for h := range heads { // unturned blocks as they were
						end := (h + 1) * n / heads
						copy(keys[h*n/heads+from:end], kept[h*n/heads+from:end])
					}
					s.WriteRow(want, 9, keys, values)
					s.RotateK(l, 9, rot, cos, sin, neox)
					if !bytes.Equal(l.K, want.K) || !bytes.Equal(l.V, want.V) {
						t.Fatalf("heads of %d, rot %d, neox %v: bytes differ", hd, rot, neox)
					}
				}
			}
		}
	})
}

// TestAttendQ8AsFloats: attention over 8-bit cells has the bits of attention over float32 cells with the same contents.
func TestAttendQ8AsFloats(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		r := rand.New(rand.NewPCG(14, 14))
		const positions, cells, hd, heads = 200, 240, 64, 5
		for _, how := range []string{"aligned", "shifted", "spans", "random"} {
			at := place(r, how, positions, cells)
			c := newAttnCase(t, s, KVQ8, 1, hd, cells, at, randomRows(r, positions, hd), randomRows(r, positions, hd))
			f := newAttnCase(t, s, KVF32, 1, hd, cells, at, c.k, c.v)
			limit := []int32{1, 17, 100, 199, 200}
			q := f32s(len(limit)*heads*hd, r)
			wantBits(t, how, attend(t, s, c.job(q, 0, heads, nil, limit)), attend(t, s, f.job(q, 0, heads, nil, limit)))
		}
	})
}

// TestKVTypeError measures what storing in a type costs: the error of attention relative to the values' size stays
// within the type's class.
func TestKVTypeError(t *testing.T) {
	s := Best()
	r := rand.New(rand.NewPCG(15, 15))
	const positions, hd, heads = 500, 128, 4
	k, v, q := randomRows(r, positions, hd), randomRows(r, positions, hd), f32s(heads*hd, r)
	at := place(r, "aligned", positions, positions)
	exact := newAttnCase(t, s, KVF32, 1, hd, positions, at, k, v)
	limit := []int32{positions}
	want := attend(t, s, exact.job(q, 0, heads, nil, limit))
	size := 0.0
	for _, w := range want {
		size += float64(w) * float64(w)
	}
	for typ, most := range map[KVType]float64{KVF16: 1e-3, KVQ8: 1e-2} {
		c := newAttnCase(t, s, typ, 1, hd, positions, at, k, v)
		off := 0.0
		for i, g := range attend(t, s, c.job(q, 0, heads, nil, limit)) {
			off += float64(g-want[i]) * float64(g-want[i])
		}
		e := math.Sqrt(off / size)
		t.Logf("%v: relative error %.2g", typ, e)
		if !(e < most && e > most/100) {
			t.Errorf("%v: relative error %.3g is not in its class of %.3g", typ, e, most)
		}
	}
}
