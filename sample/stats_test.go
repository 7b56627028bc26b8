package sample

import (
	"math"
	"testing"
)

// chiSquare returns the statistic of counts against probabilities; categories
// expected fewer than 5 times are pooled.
func chiSquare(counts map[int32]int, probs map[int32]float64, draws int) (stat float64, freedom int) {
	pooled, pooledWant := 0.0, 0.0
	for id := range int32(1 << 12) {
		p, ok := probs[id]
		if !ok {
			continue
		}
		got, want := float64(counts[id]), p*float64(draws)
		if want < 5 {
			pooled, pooledWant = pooled+got, pooledWant+want
			continue
		}
		stat += (got - want) * (got - want) / want
		freedom++
	}
	if pooledWant > 0 {
		stat += (pooled - pooledWant) * (pooled - pooledWant) / pooledWant
		freedom++
	}
	return stat, freedom - 1
}

// chiLimit is about the 99.99% quantile of the chi-square distribution
// (Wilson and Hilferty's approximation).
func chiLimit(freedom int) float64 {
	k := float64(freedom)
	a := 2 / (9 * k)
	return k * math.Pow(1-a+3.72*math.Sqrt(a), 3)
}

// The drawn tokens follow the distribution that the filters leave.
func TestDrawsFollowTheDistribution(t *testing.T) {
	const n, draws = 400, 20000
	l := randomLogits(n, 5)
	for name, c := range stages() {
		if c.Mirostat != 0 || c.Temperature == 0 || c.XTCProbability > 0 || c.DynatempRange > 0 {
			continue // drawn elsewhere, or not one distribution
		}
		want := survivors(t, c, l)
		s := newSampler(t, c, n)
		counts := make(map[int32]int)
		for range draws {
			id := mustSample(t, s, l, nil)
			if want[id] == 0 {
				t.Fatalf("%s: token %d has no probability", name, id)
			}
			counts[id]++
		}
		if len(want) == 1 {
			continue
		}
		stat, freedom := chiSquare(counts, want, draws)
		if stat > chiLimit(freedom) {
			t.Errorf("%s: chi-square is %.1f with %d degrees of freedom, at most %.1f expected", name, stat, freedom, chiLimit(freedom))
		}
	}
}

// The test above can fail: draws at another temperature do not pass.
func TestChiSquareDiscriminates(t *testing.T) {
	const n, draws = 400, 20000
	l := randomLogits(n, 5)
	want := survivors(t, Neutral(), l)
	c := Neutral()
	c.Temperature = 1.05
	s := newSampler(t, c, n)
	counts := make(map[int32]int)
	for range draws {
		counts[mustSample(t, s, l, nil)]++
	}
	if stat, freedom := chiSquare(counts, want, draws); stat < chiLimit(freedom) {
		t.Errorf("chi-square is %.1f with %d degrees of freedom, below %.1f", stat, freedom, chiLimit(freedom))
	}
}

func TestXTCActsWithItsProbability(t *testing.T) {
	// Two tokens qualify; when XTC acts, token 0 cannot be drawn, and token 2 hardly.
	l := []float32{10, 9.5, 0, -1}
	for _, topK := range []int{0, 3} {
		for _, p := range []float64{0.1, 0.5, 0.9} {
			c := Neutral()
			c.XTCProbability, c.XTCThreshold, c.TopK = p, 0.2, topK
			s := newSampler(t, c, len(l))
			const draws = 20000
			zero := 0
			for range draws {
				if mustSample(t, s, l, nil) == 0 {
					zero++
				}
			}
			want := (1 - p) * survivors(t, Neutral(), l)[0]
			sigma := math.Sqrt(want * (1 - want) / draws)
			if got := float64(zero) / draws; math.Abs(got-want) > 4*sigma {
				t.Errorf("top-k %d, probability %v: the best token is drawn %.4f of the time, want %.4f ± %.4f", topK, p, got, want, 4*sigma)
			}
		}
	}
}

// Dynamic temperature: sharp distributions get the low end, flat ones the high.
func TestDynatemp(t *testing.T) {
	c := Neutral()
	c.Temperature, c.DynatempRange, c.DynatempExponent = 1, 0.75, 1
	s := newSampler(t, c, 4)
	if got := s.dynatemp(0, 4); got != 0.25 {
		t.Errorf("no entropy: temperature %v, want 0.25", got)
	}
	if got := s.dynatemp(math.Log(4), 4); math.Abs(got-1.75) > 1e-12 {
		t.Errorf("largest entropy: temperature %v, want 1.75", got)
	}
	if got := s.dynatemp(math.Log(2), 4); math.Abs(got-1) > 1e-12 {
		t.Errorf("half the entropy: temperature %v, want 1", got)
	}
	c.DynatempExponent = 2
	s = newSampler(t, c, 4)
	if got := s.dynatemp(math.Log(2), 4); math.Abs(got-0.625) > 1e-12 {
		t.Errorf("half the entropy squared: temperature %v, want 0.625", got)
	}
	// The range reaches below 0: greedy when there is no entropy.
	c.Temperature, c.DynatempRange, c.DynatempExponent = 0.5, 2, 1
	for _, topK := range []int{0, 3} {
		c.TopK = topK
		s = newSampler(t, c, 4)
		for range 100 {
			if id := mustSample(t, s, []float32{0, 800, 1, 2}, nil); id != 1 {
				t.Fatalf("top-k %d: token %d, want 1", topK, id)
			}
		}
	}
	// Row and list agree on the temperature.
	l := randomLogits(300, 8)
	c = Neutral()
	c.DynatempRange = 0.9
	a := newSampler(t, c, 300)
	c.MinP = 1e-200
	b := newSampler(t, c, 300)
	total, weighted, n := entropyRow(l, 0)
	b.load(b.sel.from(l, math.Inf(-1)))
	sum, e := b.total(), 0.0
	for _, cand := range b.cands {
		p := cand.e / sum
		e -= p * math.Log(p)
	}
	if x, y := a.dynatemp(log(total)-weighted/total, n), b.dynatemp(e, len(b.cands)); math.Abs(x-y) > 1e-6 {
		t.Errorf("the row gives temperature %v, the list %v", x, y)
	}
}

// Mirostat drives the mean surprise to tau, for rows of very different entropy.
func TestMirostatConverges(t *testing.T) {
	const n, warm, steps = 2000, 200, 1500
	for _, version := range []int{1, 2} {
		for _, tau := range []float64{2, 3.5, 5} {
			c := Neutral()
			c.Mirostat, c.MirostatTau = version, tau
			s := newSampler(t, c, n)
			mean, last := 0.0, s.mu
			for i := range warm + steps {
				l := randomLogits(n, uint64(i))
				if i%2 == 0 { // flatter
					for j := range l {
						l[j] *= 0.7
					}
				}
				id := mustSample(t, s, l, nil)
				z, e := 0.0, 0.0
				for _, cand := range s.cands {
					z += math.Exp(float64(cand.logit))
					if cand.id == id {
						e = math.Exp(float64(cand.logit))
					}
				}
				surprise := math.Log2(z / e)
				if moved := last - c.MirostatEta*(surprise-tau); math.Abs(moved-s.mu) > 1e-9 {
					t.Fatalf("v%d: mu moved from %v to %v, want %v", version, last, s.mu, moved)
				}
				last = s.mu
				if i >= warm {
					mean += surprise / steps
				}
			}
			if math.Abs(mean-tau) > 0.05*tau {
				t.Errorf("v%d: the mean surprise is %.3f bits, want %v", version, mean, tau)
			}
			if last < 0 || last > 30 {
				t.Errorf("v%d, tau %v: mu drifted to %v", version, tau, last)
			}
		}
	}
}

func TestMirostatIgnoresFiltersAndTemperature(t *testing.T) {
	for _, version := range []int{1, 2} {
		c := Neutral()
		c.Mirostat = version
		d := Default()
		d.RepeatPenalty, d.MinP, d.TypicalP, d.Temperature = 1, 0.3, 0.5, 1.7
		d.Mirostat = version
		a, b := run(t, newSampler(t, c, 300), 50), run(t, newSampler(t, d, 300), 50)
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("v%d: step %d: %d and %d", version, i, a[i], b[i])
			}
		}
		// Temperature 0 is greedy all the same.
		d.Temperature = 0
		l := randomLogits(300, 1)
		if id, _, _ := argmax(l); mustSample(t, newSampler(t, d, 300), l, nil) != id {
			t.Errorf("v%d: temperature 0 is not greedy", version)
		}
	}
}

func TestMirostatEdges(t *testing.T) {
	flat := make([]float32, 50)
	peak := make([]float32, 50)
	peak[9] = 500
	for _, version := range []int{1, 2} {
		c := Neutral()
		c.Mirostat = version
		s := newSampler(t, c, 50)
		for range 300 {
			mustSample(t, s, flat, nil)
		}
		for range 300 {
			if id := mustSample(t, s, peak, nil); id != 9 {
				t.Fatalf("v%d: token %d", version, id)
			}
		}
		if math.IsNaN(s.mu) || math.IsInf(s.mu, 0) {
			t.Errorf("v%d: mu is %v", version, s.mu)
		}
		one := newSampler(t, c, 1)
		if id := mustSample(t, one, []float32{3}, nil); id != 0 {
			t.Errorf("v%d: token %d of a vocabulary of 1", version, id)
		}
		// A bound below any surprise leaves the best token.
		s = newSampler(t, c, 50)
		s.mu = -1000
		if id := mustSample(t, s, peak, nil); id != 9 {
			t.Errorf("v%d: token %d", version, id)
		}
	}
	// A Zipf distribution of exponent 1.5: the estimate of k is what the formula gives.
	l := make([]float32, 1000)
	for i := range l {
		l[i] = float32(-1.5 * math.Log(float64(i+1)))
	}
	var sel selector
	keys, _ := sel.top(l, 100)
	want := math.Pow(0.5*math.Pow(2, 6)/(1-math.Pow(1000, -0.5)), 1/1.5)
	if got := zipfCount(keys, 6, 1000); got != int(want) {
		t.Errorf("k = %d, want %d", got, int(want))
	}
	for i := range l { // exponent 1 is the limit, not 0/0
		l[i] = float32(-math.Log(float64(i + 1)))
	}
	keys, _ = sel.top(l, 100)
	want = 64 / math.Log(1000)
	if got := zipfCount(keys, 6, 1000); math.Abs(float64(got)-want) > 1 {
		t.Errorf("k = %d, want about %v", got, want)
	}
}
