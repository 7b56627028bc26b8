package sample

import (
	"slices"
	"testing"
)

// randomLogits returns n logits of a bell-shaped distribution, mean -1 and
// standard deviation 2.5, the same on every platform.
func randomLogits(n int, seed uint64) []float32 {
	var r rng
	r.seed(seed)
	l := make([]float32, n)
	for i := range l {
		x := -6.0
		for range 12 {
			x += r.float64()
		}
		l[i] = float32(float64(2.5*x) - 1)
	}
	return l
}

func BenchmarkTop40(b *testing.B) {
	l := randomLogits(151936, 1)
	var s selector
	for b.Loop() {
		s.top(l, 40)
	}
}

func BenchmarkAbove(b *testing.B) {
	l := randomLogits(151936, 1)
	var s selector
	s.top(l, 40)
	for b.Loop() {
		s.above(l, 11, 40)
	}
}

func TestTopAgainstSort(t *testing.T) {
	for _, n := range []int{1, 2, 7, 8, 9, 100, 5000, 20000, 151936} {
		for _, ties := range []bool{false, true} {
			l := randomLogits(n, uint64(n))
			if ties {
				for i := range l {
					l[i] = float32(int(l[i]))
				}
			}
			all := make([]key, n)
			for i, v := range l {
				all[i] = makeKey(v, i)
			}
			slices.Sort(all)
			var s selector
			for _, k := range []int{1, 2, 5, 40, 168, 300, 1000, 5000, n} {
				got, bad := s.top(l, k)
				if bad || !slices.Equal(got, all[:min(k, n)]) {
					t.Fatalf("n=%d ties=%v k=%d: wrong candidates (bad=%v, %d)", n, ties, k, bad, len(got))
				}
			}
		}
	}
}

func BenchmarkWeightRow(b *testing.B) {
	l := randomLogits(151936, 1)
	for b.Loop() {
		weightRow(l, 11, 1)
	}
}
