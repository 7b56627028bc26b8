package sample

import (
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// setMask allows a set of tokens and counts what it is asked.
type setMask struct {
	allowed []bool
	tests   int
	applies int
}

func (m *setMask) Allowed(id int32) bool { m.tests++; return m.allowed[id] }

func (m *setMask) Apply(l []float32) bool {
	m.applies++
	left := false
	for i := range l {
		if !m.allowed[i] {
			l[i] = negInf
		} else if l[i] > negInf {
			left = true
		}
	}
	return left
}

// randomMask allows each token with probability p.
func randomMask(n int, p float64, seed uint64) *setMask {
	r := rand.New(rand.NewPCG(seed, 77))
	m := &setMask{allowed: make([]bool, n)}
	for i := range m.allowed {
		m.allowed[i] = r.Float64() < p
	}
	return m
}

// sampleMaskedFirst is the definition: mask after the penalties, then the rest.
func sampleMaskedFirst(s *Sampler, l []float32, m Mask) (int32, error) {
	s.adjust(l)
	defer s.restore(l, 0)
	row, err := s.masked(l, m)
	if err != nil {
		return 0, err
	}
	return s.choose(row, nil, true)
}

// Testing single tokens gives, for the same seed, the token that masking first
// gives, and leaves the same state.
func TestLazyMaskEqualsMaskFirst(t *testing.T) {
	lazyAnswers := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		if rapid.Bool().Draw(t, "usual") { // where the walk may stop early
			c = Neutral()
			c.Seed = rapid.Uint64().Draw(t, "seed")
			c.TopK = rapid.IntRange(2, 50).Draw(t, "top-k")
			c.TopP = rapid.SampledFrom([]float64{0.3, 0.6, 0.9, 0.95, 0.99, 1}).Draw(t, "top-p")
			c.MinP = rapid.SampledFrom([]float64{0, 0.001, 0.01, 0.1}).Draw(t, "min-p")
		}
		n := rapid.SampledFrom([]int{3, 40, 300, 1000}).Draw(t, "vocabulary")
		a, b := newSampler(t, c, n), newSampler(t, c, n)
		p := rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.5, 0.9, 0.99, 1}).Draw(t, "allowed")
		sharp := rapid.SampledFrom([]float32{0.1, 1, 4}).Draw(t, "sharpness")
		for i := range uint64(6) {
			l := randomLogits(n, i)
			for j := range l {
				l[j] *= sharp
				if p == 0.5 && j%3 == 0 {
					l[j] = float32(int(l[j])) // ties
				}
			}
			m := randomMask(n, p, i)
			want, wantErr := sampleMaskedFirst(a, l, m)
			m.applies = 0
			got, err := b.Sample(l, m)
			if got != want || !errors.Is(err, wantErr) {
				t.Fatalf("step %d: token %d (%v), masking first gives %d (%v)", i, got, err, want, wantErr)
			}
			if a.rng != b.rng || a.mu != b.mu {
				t.Fatalf("step %d: the states differ", i)
			}
			if err == nil {
				if !m.allowed[got] {
					t.Fatalf("step %d: token %d is forbidden", i, got)
				}
				if m.applies == 0 {
					lazyAnswers++
				}
				a.Accept(got)
				b.Accept(got)
			}
		}
	})
	if lazyAnswers == 0 {
		t.Error("the full mask was computed every time")
	}
}

func TestMaskIsConsultedLazily(t *testing.T) {
	const n = 1000
	l := randomLogits(n, 3)
	l[123] = 40 // nearly all of the probability
	free := func() *setMask { return randomMask(n, 1, 0) }

	c := Neutral()
	c.Temperature = 0
	m := free()
	mustSample(t, newSampler(t, c, n), l, m)
	if m.tests != 1 || m.applies != 0 {
		t.Errorf("greedy: %d tests, %d full masks, want 1 and 0", m.tests, m.applies)
	}
	m = free()
	m.allowed[123] = false
	mustSample(t, newSampler(t, c, n), l, m)
	if m.tests != 2 || m.applies != 0 {
		t.Errorf("greedy, best forbidden: %d tests, %d full masks, want 2 and 0", m.tests, m.applies)
	}
	m = free()
	if id := mustSample(t, newSampler(t, Default(), n), l, m); id != 123 || m.tests != 1 || m.applies != 0 {
		t.Errorf("default: token %d, %d tests, %d full masks, want 123, 1 and 0", id, m.tests, m.applies)
	}
	m = free()
	m.allowed[123] = false
	mustSample(t, newSampler(t, Default(), n), l, m)
	if m.tests > 41 || m.applies != 0 {
		t.Errorf("default, best forbidden: %d tests, %d full masks, want at most 41 and 0", m.tests, m.applies)
	}
	// Hardly anything is allowed: bounded tests, then the full mask.
	m = randomMask(n, 0, 0)
	m.allowed[555] = true
	if id := mustSample(t, newSampler(t, Default(), n), l, m); id != 555 || m.tests > 40+lazyTests || m.applies != 1 {
		t.Errorf("one allowed: token %d, %d tests, %d full masks", id, m.tests, m.applies)
	}
}

func TestNoAllowedToken(t *testing.T) {
	for name, c := range stages() {
		c.LogitBias, c.Ban = nil, nil
		s := newSampler(t, c, 60)
		before := s.State()
		l := randomLogits(60, 1)
		if id, err := s.Sample(l, randomMask(60, 0, 0)); !errors.Is(err, ErrNoAllowedToken) {
			t.Errorf("%s: token %d, error %v", name, id, err)
		}
		// What is allowed is excluded otherwise.
		m := randomMask(60, 0, 0)
		m.allowed[7] = true
		l[7] = negInf
		if id, err := s.Sample(l, m); !errors.Is(err, ErrNoAllowedToken) {
			t.Errorf("%s: token %d, error %v", name, id, err)
		}
		if s.State().RNG != before.RNG {
			t.Errorf("%s: the generator moved", name)
		}
	}
}

func TestMaskNoAllocations(t *testing.T) {
	const n = 3000
	l := randomLogits(n, 1)
	for name, c := range stages() {
		for _, p := range []float64{0.001, 0.5, 1} {
			s, m := newSampler(t, c, n), randomMask(n, p, 1)
			step := func() { s.Accept(mustSample(t, s, l, m)) }
			for range 200 {
				step()
			}
			if a := testing.AllocsPerRun(50, step); a != 0 {
				t.Errorf("%s, %v allowed: %v allocations a step", name, p, a)
			}
		}
	}
}

func BenchmarkMask(b *testing.B) {
	for _, bench := range []struct {
		name string
		p    float64
	}{{"all allowed", 1}, {"half allowed", 0.5}, {"full mask", 0.0005}} {
		b.Run(bench.name, func(b *testing.B) {
			s, l := benchSampler(b, Default())
			m := randomMask(benchVocab, bench.p, 1)
			for b.Loop() {
				mustSample(b, s, l, m)
			}
			b.ReportMetric(float64(m.tests)/float64(b.N), "tests/op")
		})
	}
}
