package sample

import (
	"cmp"
	"slices"
)

// filter runs the truncation filters and the draw. While no filter has cut the
// row, the whole row is in play (dense.go); then a list of candidates is, in
// candidate order.
func (s *Sampler) filter(l []float32, clean bool) (int32, error) {
	c := &s.cfg
	topK := c.TopK > 0 && c.TopK < len(l)
	if topK && c.TopNSigma == 0 {
		keys, bad := s.sel.top(l, c.TopK)
		if bad && !clean {
			return 0, errUnclean
		}
		if len(keys) == 0 {
			return 0, ErrNoCandidate
		}
		s.load(keys)
		return s.filterList(), nil
	}
	id, top, bad := argmax(l)
	if bad && !clean {
		return 0, errUnclean
	}
	if id < 0 {
		return 0, ErrNoCandidate
	}
	switch {
	case c.TopNSigma > 0:
		s.load(s.sel.from(l, float64(top)-float64(c.TopNSigma*deviation(l))))
		if topK && len(s.cands) > c.TopK {
			s.cands = s.cands[:c.TopK]
		}
		return s.filterList(), nil
	case c.TypicalP < 1:
		s.typicalRow(l, top)
		return s.filterAfterTypical(), nil
	case c.TopP < 1:
		s.topPRow(l, top)
		return s.filterAfterTopP(), nil
	case c.MinP > 0:
		s.load(s.sel.from(l, float64(top)+log(c.MinP)))
		return s.filterAfterMinP(), nil
	}
	return s.drawRow(l, top), nil
}

// filterList goes on after top-k.
func (s *Sampler) filterList() int32 {
	if s.cfg.TypicalP < 1 {
		s.typical()
	}
	return s.filterAfterTypical()
}

func (s *Sampler) filterAfterTypical() int32 {
	if s.cfg.TopP < 1 {
		s.cands = s.cands[:topPCut(s.cands, s.total(), s.cfg.TopP)]
	}
	return s.filterAfterTopP()
}

func (s *Sampler) filterAfterTopP() int32 {
	if s.cfg.MinP > 0 {
		s.cands = s.cands[:minPCut(s.cands, s.cfg.MinP)]
	}
	return s.filterAfterMinP()
}

func (s *Sampler) filterAfterMinP() int32 {
	if s.xtcActs() {
		s.xtc()
	}
	return s.drawList()
}

// load makes keys, which are in candidate order and not empty, the list.
func (s *Sampler) load(keys []key) {
	s.cands = slices.Grow(s.cands[:0], len(keys))
	for _, k := range keys {
		s.cands = append(s.cands, candidate{id: keyID(k), logit: keyLogit(k)})
	}
	s.weigh()
}

// weigh sets the weights of the list relative to its first candidate.
func (s *Sampler) weigh() {
	top := float64(s.cands[0].logit)
	for i := range s.cands {
		c := &s.cands[i]
		c.e = exp(float64(c.logit) - top)
	}
}

// total returns the sum of the weights.
func (s *Sampler) total() float64 {
	sum := 0.0
	for i := range s.cands {
		sum += s.cands[i].e
	}
	return sum
}

// topPCut returns how many of the first candidates it takes to reach the share
// p of total; at least 1, all of them if the share is not reached.
func topPCut(cands []candidate, total, p float64) int {
	want, sum := float64(p*total), 0.0
	for i := range cands {
		if sum += cands[i].e; sum >= want {
			return i + 1
		}
	}
	return len(cands)
}

// minPCut returns how many of the first candidates are at least p times as
// likely as the first.
func minPCut(cands []candidate, p float64) int {
	floor := float64(cands[0].logit) + log(p)
	for i := range cands {
		if float64(cands[i].logit) < floor {
			return i
		}
	}
	return len(cands)
}

// typical keeps the candidates whose surprise is nearest to the entropy. With
// x = logit - max, Z = Σ exp x and E = Σ x exp x / Z, the surprise is ln Z - x and
// the entropy ln Z - E: their distance is |x - E|.
func (s *Sampler) typical() {
	total, weighted := 0.0, 0.0
	top := float64(s.cands[0].logit)
	for i := range s.cands {
		c := &s.cands[i]
		total += c.e
		weighted += float64(c.e * (float64(c.logit) - top))
	}
	mean := weighted / total
	s.scores = s.scores[:0]
	for i := range s.cands {
		c := &s.cands[i]
		s.scores = append(s.scores, score{makeKey(-distance(c.logit, top, mean), int(c.id)), c.e})
	}
	slices.SortFunc(s.scores, func(a, b score) int { return cmp.Compare(a.key, b.key) }) // of equal distances the lower id first
	want, sum := float64(s.cfg.TypicalP*total), 0.0
	last := s.scores[len(s.scores)-1].key
	for _, x := range s.scores {
		if sum += x.e; sum > want {
			last = x.key
			break
		}
	}
	s.cands = slices.DeleteFunc(s.cands, func(c candidate) bool {
		return makeKey(-distance(c.logit, top, mean), int(c.id)) > last
	})
	s.weigh()
}

// A score is a candidate's place in the order of the typical filter, and its weight.
type score struct {
	key key
	e   float64
}

// distance is |x - mean| for x = logit - top, as the typical filter compares it.
func distance(logit float32, top, mean float64) float32 {
	d := (float64(logit) - top) - mean
	if d < 0 {
		d = -d
	}
	return float32(d)
}

// xtcActs decides whether XTC acts at this step; it advances the generator when
// XTC is on, whatever the candidates are.
func (s *Sampler) xtcActs() bool {
	c := &s.cfg
	return c.XTCProbability > 0 && c.XTCThreshold > 0 && s.rng.float64() < c.XTCProbability
}

// xtc drops the candidates that are at least as likely as the threshold, but for
// the least likely of them.
func (s *Sampler) xtc() {
	floor := float64(s.cfg.XTCThreshold * s.total())
	n := 0
	for n < len(s.cands) && s.cands[n].e >= floor {
		n++
	}
	if n > 1 {
		s.cands = s.cands[:copy(s.cands, s.cands[n-1:])]
		s.weigh()
	}
}

// drawList draws from the list at the temperature.
func (s *Sampler) drawList() int32 {
	t := s.cfg.Temperature
	if s.cfg.DynatempRange > 0 && len(s.cands) > 1 {
		total, weighted := 0.0, 0.0
		top := float64(s.cands[0].logit)
		for i := range s.cands {
			c := &s.cands[i]
			total += c.e
			weighted += float64(c.e * (float64(c.logit) - top))
		}
		t = s.dynatemp(log(total)-weighted/total, len(s.cands))
	}
	s.heat(t)
	return s.cands[s.drawIndex()].id
}

// dynatemp returns the temperature for an entropy (in nats) among n candidates:
// the share of the largest possible entropy ln n, raised to the exponent, maps
// to [Temperature-DynatempRange, Temperature+DynatempRange], not below 0.
func (s *Sampler) dynatemp(entropy float64, n int) float64 {
	c := &s.cfg
	lo, hi := max(0, c.Temperature-c.DynatempRange), c.Temperature+c.DynatempRange
	share := min(1, max(0, entropy/log(float64(n))))
	return lo + float64((hi-lo)*pow(share, c.DynatempExponent))
}

// heat sets the weights for temperature t; at 0 only the first candidate stays.
func (s *Sampler) heat(t float64) {
	if t == 0 {
		s.cands = s.cands[:1]
		s.cands[0].e = 1
		return
	}
	if t == 1 {
		return
	}
	top := float64(s.cands[0].logit)
	for i := range s.cands {
		c := &s.cands[i]
		c.e = exp((float64(c.logit) - top) / t)
	}
}

// drawIndex draws a position of the list with probability proportional to its
// weight, walking in candidate order.
func (s *Sampler) drawIndex() int {
	target := float64(s.rng.float64() * s.total())
	sum := 0.0
	last := 0
	for i := range s.cands {
		if s.cands[i].e == 0 {
			continue
		}
		last = i
		if sum += s.cands[i].e; sum > target {
			return i
		}
	}
	return last
}
