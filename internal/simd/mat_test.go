package simd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// randomActs is tokens × cols activations; some blocks are zero, huge or tiny.
func randomActs(rng *rand.Rand, tokens, cols int) []float32 {
	x := make([]float32, tokens*cols)
	scale := 1.0
	for i := range x {
		if i%BlockLen == 0 {
			scale = []float64{1, 1, 1, 1, 1, 0.01, 30, 1e-3, 0, 1e4}[rng.IntN(10)]
		}
		x[i] = float32(scale * rng.NormFloat64())
	}
	return x
}

// stored returns x as the activations of set m.
func stored(t testing.TB, m *Mat, kind ActsKind, x []float32, tokens, cols int) *Acts {
	t.Helper()
	buf := guardAlloc[byte](t, m.ActsBytes(kind, cols, tokens))
	for i := range buf {
		buf[i] = 0x5a
	}
	a := m.Acts(buf, kind, cols, tokens)
	row := guardAlloc[float32](t, cols)
	for token := range tokens {
		copy(row, x[token*cols:])
		m.SetRow(&a, token, row)
	}
	return &a
}

// rounded replaces x by the values that its quantized form has.
func rounded(x []float32) []float64 {
	out := make([]float64, len(x))
	for at := 0; at < len(x); at += BlockLen {
		var q [BlockLen]byte
		d, _, _ := quantizeBlock(&q, (*[BlockLen]float32)(x[at:]))
		for i, code := range q {
			out[at+i] = float64(d) * float64(int8(code))
		}
	}
	return out
}

// oneGoroutine skips tests that compute much and start no goroutine when the race detector, which makes them twenty
// times slower, has nothing to find in them.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("one goroutine: nothing for the race detector")
	}
}

const canary = float32(-12345.5)

// product is MatMul into memory between inaccessible pages; rows of dst are longer than the matrix, and what lies
// between must keep its value.
func product(t testing.TB, s *Set, w *Weight, a *Acts) []float32 {
	t.Helper()
	stride := w.Rows + 3
	dst := guardAlloc[float32](t, (a.Tokens-1)*stride+w.Rows)
	for i := range dst {
		dst[i] = canary
	}
	half := Panels(w.Rows) / 2
	s.MatMul(dst, stride, w, a, 0, half)
	s.MatMul(dst, stride, w, a, half, Panels(w.Rows))
	out := make([]float32, a.Tokens*w.Rows)
	for i, v := range dst {
		if token, row := i/stride, i%stride; row < w.Rows {
			out[token*w.Rows+row] = v
		} else if v != canary {
			t.Fatalf("%s %s %d×%d, %d tokens: wrote behind row %d of token %d", s.ISA, w.Type, w.Rows, w.Cols, a.Tokens, row, token)
		}
	}
	return out
}

// The product of every type, near the borders of panels, units, spans and groups, against float64 sums.
func TestMatMul(t *testing.T) {
	oneGoroutine(t)
	eachSet(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, typ := range matTypes() {
			for _, cols := range shortCols(typ) {
				for _, rows := range []int{1, 16, 33, 16*6 + 5} {
					src := randomBlocks(rng, typ, rows, cols, false)
					w, values := packed(t, typ, src, rows, cols), decoded(t, typ, src, rows, cols)
					for _, tokens := range []int{1, 2, 5, 12, 13, 26} {
						if rows > 33 && tokens > 2 {
							continue
						}
						x := randomActs(rng, tokens, cols)
						a := stored(t, &s.Mat, KindFor(typ), x, tokens, cols)
						got := product(t, s, w, a)
						checkProductValues(t, fmt.Sprintf("%s %d×%d, %d tokens", typ, rows, cols, tokens), a.Kind, values, x, got, cols, tokens)
					}
				}
			}
		}
	})
}

func checkProductValues(t *testing.T, name string, kind ActsKind, w, x, got []float32, cols, tokens int) {
	t.Helper()
	var exact []float64
	if kind == ActsQ8 {
		exact = rounded(x)
	} else {
		exact = make([]float64, len(x))
		for i, v := range x {
			exact[i] = float64(v)
		}
	}
	rows := len(w) / cols
	for token := range tokens {
		for row := range rows {
			var sum, size float64
			for i := range cols {
				p := float64(w[row*cols+i]) * exact[token*cols+i]
				sum += p
				size += math.Abs(p)
			}
			// Minima and offsets cancel: codes are up to 16 times the values that remain.
			if g := float64(got[token*rows+row]); !(math.Abs(g-sum) <= 4e-6*size+1e-30) {
				t.Fatalf("%s: token %d row %d: %v, want %v (sum of magnitudes %v)", name, token, row, g, sum, size)
			}
		}
	}
}

// The bits of an output do not depend on the number of tokens.
func TestMatMulBatchBits(t *testing.T) {
	oneGoroutine(t)
	eachSet(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(5, 6))
		const rows, most = 21, 78
		for _, typ := range matTypes() {
			cols := 1280
			if KindFor(typ) == ActsF32 {
				cols = 300
			}
			w := packed(t, typ, randomBlocks(rng, typ, rows, cols, true), rows, cols)
			x := randomActs(rng, most, cols)
			single := make([]float32, 0, most*rows)
			for token := range most {
				a := stored(t, &s.Mat, KindFor(typ), x[token*cols:(token+1)*cols], 1, cols)
				single = append(single, product(t, s, w, a)...)
			}
			for tokens := 2; tokens <= most; tokens++ {
				if tokens > 26 && tokens < 64 {
					continue // between the widths of groups and where products from expanded panels begin
				}
				got := product(t, s, w, stored(t, &s.Mat, KindFor(typ), x, tokens, cols))
				for i, v := range got {
					if math.Float32bits(v) != math.Float32bits(single[i]) {
						t.Fatalf("%s, %d tokens: token %d row %d: %v, alone %v", typ, tokens, i/rows, i%rows, v, single[i])
					}
				}
			}
		}
	})
}

// Activations that are not finite make the outputs of their token NaN, and no other's.
func TestMatMulNotFinite(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(7, 8))
		const rows, cols, tokens = 16, 256, 5
		for _, typ := range matTypes() {
			w := packed(t, typ, randomBlocks(rng, typ, rows, cols, false), rows, cols)
			for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
				x := randomActs(rng, tokens, cols)
				clean := product(t, s, w, stored(t, &s.Mat, KindFor(typ), x, tokens, cols))
				x[2*cols+77] = bad
				got := product(t, s, w, stored(t, &s.Mat, KindFor(typ), x, tokens, cols))
				for i, v := range got {
					if i/rows == 2 && KindFor(typ) == ActsQ8 && v == v || i/rows != 2 && v != clean[i] {
						t.Fatalf("%s: token %d row %d: %v", typ, i/rows, i%rows, v)
					}
				}
			}
		}
	})
}

// storeF32 keeps the bits of every number, clears what a last record has beyond them, and writes to no other token.
func TestStoreF32(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, cols := range []int{1, 15, 16, 17, 32, 47, 64, 65} {
		x := make([]float32, cols)
		for i := range x {
			x[i] = math.Float32frombits(rng.Uint32()) // NaNs among them
		}
		records, _ := actsRecords(ActsF32, cols)
		for width := 1; width <= maxTile; width++ {
			for slot := range width {
				got := guardAlloc[byte](t, records*width*f32Record)
				want := make([]byte, len(got))
				for i := range got {
					got[i], want[i] = 0x77, 0x77
				}
				for i := range records * floatUnit {
					bits := uint32(0)
					if i < cols {
						bits = math.Float32bits(x[i])
					}
					binary.LittleEndian.PutUint32(want[(i/floatUnit*width+slot)*f32Record+i%floatUnit*4:], bits)
				}
				storeF32(got, width, slot, guarded(t, x))
				if !bytes.Equal(got, want) {
					t.Fatalf("%d columns, width %d slot %d: other bytes than number by number", cols, width, slot)
				}
			}
		}
	}
}

// quantize of every set equals the portable one to the bit, in groups of every width and place.
func TestQuantize(t *testing.T) {
	oneGoroutine(t)
	eachSet(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(9, 10))
		for _, cols := range []int{32, 64, 96, 544} {
			x := randomActs(rng, 1, cols)
			x[3] = 1e5
			records, _ := actsRecords(ActsQ8, cols)
			check := func(what string) {
				for width := 1; width <= maxTile; width++ {
					for slot := range width {
						got := guardAlloc[byte](t, records*width*q8Record)
						want := make([]byte, len(got))
						for i := range got {
							got[i], want[i] = 0x77, 0x77
						}
						s.Mat.quantize(got, width, slot, guarded(t, x))
						quantizeGeneric(want, width, slot, x)
						for i := range got {
							if got[i] != want[i] {
								t.Fatalf("%s, %d columns: width %d slot %d: byte %d is %#x, want %#x", what, cols, width, slot, i, got[i], want[i])
							}
						}
					}
				}
			}
			check("random")
			for _, peak := range []float32{0, 0x1p-149, minPeak, math.Nextafter32(minPeak, 0), math.MaxFloat32, 127, 254} {
				for i := range x {
					// Ties at every half for a peak of 127.
					x[i] = peak * float32(i-16) / 32
				}
				x[5] = -peak
				check(fmt.Sprint("peak ", peak))
			}
			for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), -float32(math.NaN())} {
				x[cols-1] = bad
				check(fmt.Sprint("with ", bad))
			}
			// Blocks side by side that are scaled and that are not.
			for shift := range 5 {
				x = randomActs(rng, 1, cols)
				for i := range x {
					x[i] *= []float32{1, 0, float32(math.NaN()), 0x1p-140, 0x1p60}[(i/BlockLen+shift)%5]
				}
				check(fmt.Sprint("mixed ", shift))
			}
		}
	})
}

// The codes stay in range, the sums are theirs, and the block is at least as close to the input as the largest value's
// scale would bring it.
func TestQuantizeBlockProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	gain := 0.0
	const blocks = 2000
	for n := range blocks {
		spread := 60 * (n % 2) // half of the blocks of one magnitude, half of many
		var x [BlockLen]float32
		peak := 0.0
		for i := range x {
			x[i] = float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(spread+1)-spread/2)))
			peak = max(peak, math.Abs(float64(x[i])))
		}
		var q [BlockLen]byte
		d, low, high := quantizeBlock(&q, &x)
		var sums [2]int32
		var err, plain float64
		for i, code := range q {
			c := int8(code)
			sums[i/16] += int32(c)
			if c == -128 {
				t.Fatalf("code -128 for %v", x)
			}
			e := float64(x[i]) - float64(d)*float64(c)
			err += e * e
			e = float64(x[i]) - peak/127*math.RoundToEven(float64(x[i])*127/peak)
			plain += e * e
		}
		if sums[0] != low || sums[1] != high {
			t.Fatalf("sums %d %d, want %v", low, high, sums)
		}
		if err > plain*1.02 { // the choice between the fits is made in float32
			t.Fatalf("squared error %g of %v, the plain scale gives %g", err, x, plain)
		}
		if spread == 0 {
			gain += err / plain / (blocks / 2)
		}
	}
	if gain > 0.93 {
		t.Errorf("squared error is %.3f of the plain scale's on normal values, expected about 0.9", gain)
	}
}

func TestMatMulReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	s := Best()
	const rows, tokens = 35, 3
	for _, typ := range matTypes() {
		cols := shortCols(typ)[2]
		src := randomBlocks(rng, typ, rows, cols, false)
		w, values := packed(t, typ, src, rows, cols), decoded(t, typ, src, rows, cols)
		x := randomActs(rng, tokens, cols)
		got := make([]float32, tokens*rows)
		s.MatMulReference(got, rows, w, x, tokens, 0, 1)
		s.MatMulReference(got, rows, w, x, tokens, 1, Panels(rows))
		checkProductValues(t, typ.String(), ActsF32, values, x, got, cols, tokens)
	}
}

// The bounds that protect the kernels.
func TestMatMulChecks(t *testing.T) {
	const rows, cols = 32, 64
	m := &Best().Mat
	w := packed(t, quant.Q4_0, make([]byte, rows*36), rows, cols)
	acts := func(kind ActsKind, cols int) *Acts {
		a := m.Acts(make([]byte, m.ActsBytes(kind, cols, 2)), kind, cols, 2)
		return &a
	}
	good := acts(ActsQ8, cols)
	for _, c := range []struct {
		name  string
		w     *Weight
		a     *Acts
		dst   int
		panel int
	}{
		{"short dst", w, good, 2*rows - 1, 2},
		{"panel", w, good, 2 * rows, 3},
		{"kind", w, acts(ActsF32, cols), 2 * rows, 2},
		{"columns", w, acts(ActsQ8, cols+32), 2 * rows, 2},
		{"panels", &Weight{quant.Q4_0, rows, cols, w.Panels[64:]}, good, 2 * rows, 2},
		{"type", &Weight{quant.Q8_K, rows, cols, w.Panels}, good, 2 * rows, 2},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", c.name)
				}
			}()
			m.MatMul(make([]float32, c.dst), rows, c.w, c.a, 0, c.panel)
		}()
	}
	m.MatMul(make([]float32, 2*rows), rows, w, good, 0, 2)
}

// The steady state allocates nothing.
func TestMatMulAllocs(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		const rows, cols = 64, 256
		for _, typ := range []quant.Type{quant.Q4_0, quant.Q4_K, quant.F16} {
			w := packed(t, typ, randomBlocks(rand.New(rand.NewPCG(1, 1)), typ, rows, cols, false), rows, cols)
			x := make([]float32, cols)
			for _, tokens := range []int{1, 20, 70} {
				buf := make([]byte, s.ActsBytes(KindFor(typ), cols, tokens))
				dst := make([]float32, tokens*rows)
				n := testing.AllocsPerRun(20, func() {
					a := s.Acts(buf, KindFor(typ), cols, tokens)
					for token := range tokens {
						s.SetRow(&a, token, x)
					}
					s.MatMul(dst, rows, w, &a, 0, 4)
				})
				if n != 0 {
					t.Errorf("%s, %d tokens: %v allocations", typ, tokens, n)
				}
			}
		}
	})
}

// expand of every set equals the portable one to the bit.
func TestExpand(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(15, 16))
		for _, typ := range matTypes() {
			f := formOf(typ)
			for units := 1; units <= 5; units++ {
				w := packed(t, typ, randomBlocks(rng, typ, PanelRows, units*f.unit, true), PanelRows, units*f.unit)
				n := units * f.unitRecords() * recordBytes[f.class]
				got, want := guardAlloc[byte](t, n), make([]byte, n)
				panel := w.Panels[:units*f.unitBytes]
				s.Mat.expand(f, typ, got, panel)
				expandGeneric(f, typ, want, panel)
				for i := range got {
					if got[i] != want[i] {
						t.Fatalf("%s, %d units: byte %d is %#x, want %#x", typ, units, i, got[i], want[i])
					}
				}
			}
		}
	})
}

// Disjoint panels and tokens may be worked on at once; the race detector watches.
func TestMatMulConcurrent(t *testing.T) {
	eachSet(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(21, 22))
		const rows, cols, tokens = 16*9 + 3, 256, 70
		for _, typ := range []quant.Type{quant.Q4_0, quant.Q6_K, quant.F16} {
			src := randomBlocks(rng, typ, rows, cols, false)
			want := packed(t, typ, src, rows, cols)
			x := randomActs(rng, tokens, cols)
			wantDst := product(t, s, want, stored(t, &s.Mat, KindFor(typ), x, tokens, cols))

			w := &Weight{typ, rows, cols, make([]byte, len(want.Panels))}
			a := s.Acts(make([]byte, s.ActsBytes(KindFor(typ), cols, tokens)), KindFor(typ), cols, tokens)
			got := make([]float32, tokens*rows)
			both := func(n int, work func(from, to int)) {
				var wg sync.WaitGroup
				for i := range 4 {
					wg.Go(func() { work(n*i/4, n*(i+1)/4) })
				}
				wg.Wait()
			}
			both(Panels(rows), func(from, to int) { Pack(w.Panels, typ, src, rows, cols, from, to) })
			both(tokens, func(from, to int) {
				for token := from; token < to; token++ {
					s.SetRow(&a, token, x[token*cols:(token+1)*cols])
				}
			})
			both(Panels(rows), func(from, to int) { s.MatMul(got, rows, w, &a, from, to) })
			for i, v := range got {
				if v != wantDst[i] {
					t.Fatalf("%s: token %d row %d: %v, want %v", typ, i/rows, i%rows, v, wantDst[i])
				}
			}
		}
	})
}

// Stored part by part, in any order, activations are those stored row by row.
func TestSetPart(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, s := range Usable() {
		for _, kind := range []ActsKind{ActsF32, ActsQ8} {
			for _, cols := range []int{32, 96, 160, 352} {
				for _, tokens := range []int{1, 3, 8, 20, 70} {
					x := randomActs(rng, tokens, cols)
					n := s.ActsBytes(kind, cols, tokens)
					rows, parts := aligned64(n), aligned64(n)
					for i := range parts {
						rows[i], parts[i] = 0xaa, 0x55
					}
					a, b := s.Acts(rows, kind, cols, tokens), s.Acts(parts, kind, cols, tokens)
					for token := range tokens {
						row := x[token*cols : (token+1)*cols]
						s.SetRow(&a, token, row)
						cut := rng.IntN(cols/32+1) * 32
						if cut > 0 && cut < cols {
							s.SetPart(&b, token, cut, row[cut:])
							s.SetPart(&b, token, 0, row[:cut])
						} else {
							s.SetPart(&b, token, 0, row)
						}
					}
					if !bytes.Equal(rows, parts) {
						t.Fatalf("%s, kind %d, %d tokens of %d: the parts differ from the rows", s.ISA, kind, tokens, cols)
					}
				}
			}
		}
	}
}
