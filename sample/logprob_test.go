package sample

import (
	"errors"
	"math"
	"testing"
)

func TestScore(t *testing.T) {
	var s Scorer
	for _, n := range []int{1, 5, 1000, 20000} {
		l := randomLogits(n, uint64(n))
		top := 0
		for i, v := range l {
			if v > l[top] {
				top = i
			}
		}
		z := 0.0
		for _, v := range l {
			z += math.Exp(float64(v) - float64(l[top]))
		}
		want := func(id int32) float64 { return float64(l[id]) - float64(l[top]) - math.Log(z) }
		for _, id := range []int32{0, int32(n - 1), int32(top)} {
			got, lp, err := s.Score(nil, l, 20, id)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(lp-want(id)) > 1e-6 {
				t.Errorf("n=%d: token %d has log probability %v, want %v", n, id, lp, want(id))
			}
			if len(got) != min(20, n) || got[0].ID != int32(top) {
				t.Fatalf("n=%d: %d tokens, the first is %v", n, len(got), got[0])
			}
			for i, e := range got {
				if math.Abs(e.Value-want(e.ID)) > 1e-6 {
					t.Errorf("n=%d: token %d has log probability %v, want %v", n, e.ID, e.Value, want(e.ID))
				}
				if i > 0 && (e.Value > got[i-1].Value || e.Value == got[i-1].Value && e.ID < got[i-1].ID) {
					t.Errorf("n=%d: token %d is out of order", n, e.ID)
				}
			}
		}
	}
}

func TestScoreInfinities(t *testing.T) {
	var s Scorer
	inf := float32(math.Inf(1))
	got, lp, err := s.Score(nil, []float32{1, inf, 2, inf, negInf}, 5, 2)
	if err != nil || !math.IsInf(lp, -1) || len(got) != 4 || got[0].ID != 1 || math.Abs(got[1].Value-math.Log(0.5)) > 1e-12 || !math.IsInf(got[2].Value, -1) {
		t.Errorf("%v, %v, %v", got, lp, err)
	}
	got, lp, err = s.Score(nil, []float32{negInf, 3}, 5, 0)
	if err != nil || !math.IsInf(lp, -1) || len(got) != 1 || got[0] != (Logprob{1, 0}) {
		t.Errorf("%v, %v, %v", got, lp, err)
	}
	if _, _, err := s.Score(nil, []float32{negInf, negInf}, 5, 0); !errors.Is(err, ErrNoCandidate) {
		t.Error(err)
	}
	if _, _, err := s.Score(nil, []float32{0, float32(math.NaN())}, 5, 0); !errors.Is(err, ErrNaN) {
		t.Error(err)
	}
	for _, id := range []int32{-1, 2} {
		if _, _, err := s.Score(nil, []float32{0, 1}, 5, id); !errors.Is(err, ErrShape) {
			t.Error(err)
		}
	}
	if _, _, err := s.Score(nil, []float32{0, 1}, -1, 0); !errors.Is(err, ErrShape) {
		t.Error(err)
	}
}

func TestScoreAllocations(t *testing.T) {
	var s Scorer
	l := randomLogits(20000, 1)
	dst := make([]Logprob, 0, 20)
	step := func() {
		if _, _, err := s.Score(dst[:0], l, 20, 7); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if a := testing.AllocsPerRun(20, step); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

func BenchmarkScore(b *testing.B) {
	var s Scorer
	l := randomLogits(benchVocab, 1)
	dst := make([]Logprob, 0, 20)
	for b.Loop() {
		if _, _, err := s.Score(dst[:0], l, 20, 7); err != nil {
			b.Fatal(err)
		}
	}
}
