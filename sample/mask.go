package sample

// Mask is the state of a grammar between two tokens.
type Mask interface {
	// Allowed reports whether token id may come next.
	Allowed(id int32) bool
	// Apply sets the logits of all tokens that may not come next to -Inf and
	// reports whether a token that may come next is left above -Inf.
	Apply(logits []float32) bool
}

// A full mask over a large vocabulary is dear, testing one token is cheap. To
// draw first, test the drawn token, and draw again under the full mask on a miss
// would give another distribution than masking first: a filter cuts by ranks and
// sums that the forbidden tokens took part in. So candidates are tested in
// candidate order instead, just until the outcome of masking first is settled;
// the draw comes after. Where the row is cut by top-k that takes at most k
// allowed tokens, and one when the most likely token alone fills top-p.
//
// Settings under which every token counts (no top-k, top-n-sigma, mirostat) use
// the full mask at once; min-p alone needs only the tokens it keeps.

// lazyTests is how many tokens beyond those needed are tested before the full
// mask is computed; lazyMaxK the largest top-k that is walked.
const (
	lazyTests = 64
	lazyMaxK  = 256
)

// masked returns a masked copy of l.
func (s *Sampler) masked(l []float32, m Mask) ([]float32, error) {
	work := s.workRow()
	if &work[0] != &l[0] {
		copy(work, l)
	}
	if !m.Apply(work) {
		return nil, ErrNoAllowedToken
	}
	return work, nil
}

// chooseLazily settles the choice by testing single tokens; done is false when
// the full mask is needed, and then no state has changed.
func (s *Sampler) chooseLazily(l []float32, m Mask, clean bool) (id int32, done bool, err error) {
	c := &s.cfg
	switch {
	case c.Temperature == 0:
		return s.greedyLazily(l, m, clean)
	case c.Mirostat != 0 || c.TopNSigma > 0:
	case c.TopK > 0 && c.TopK <= lazyMaxK && c.TopK < len(l):
		return s.topKLazily(l, m, clean)
	case c.TypicalP == 1 && c.TopP == 1 && c.MinP > 0:
		return s.minPLazily(l, m, clean)
	}
	if clean {
		return 0, false, nil
	}
	if _, _, bad := argmax(l); bad {
		return 0, false, errUnclean
	}
	return 0, false, nil
}

func (s *Sampler) greedyLazily(l []float32, m Mask, clean bool) (int32, bool, error) {
	id, _, bad := argmax(l)
	switch {
	case bad && !clean:
		return 0, false, errUnclean
	case id < 0:
		return 0, false, ErrNoCandidate
	case m.Allowed(id):
		return id, true, nil
	}
	keys, _ := s.sel.top(l, lazyTests)
	for _, k := range keys[1:] {
		if m.Allowed(keyID(k)) {
			return keyID(k), true, nil
		}
	}
	return 0, false, nil
}

// minPLazily: when the most likely token is allowed, min-p keeps the allowed ones
// of what it would keep without the mask.
func (s *Sampler) minPLazily(l []float32, m Mask, clean bool) (int32, bool, error) {
	id, top, bad := argmax(l)
	switch {
	case bad && !clean:
		return 0, false, errUnclean
	case id < 0:
		return 0, false, ErrNoCandidate
	case !m.Allowed(id):
		return 0, false, nil
	}
	keys := s.sel.from(l, float64(top)+log(s.cfg.MinP))
	if len(keys) > lazyMaxK {
		return 0, false, nil
	}
	n := 1
	for _, k := range keys[1:] {
		if m.Allowed(keyID(k)) {
			keys[n] = k
			n++
		}
	}
	s.load(keys[:n])
	return s.filterAfterMinP(), true, nil
}

// topKLazily walks the candidates until the k best allowed ones are known, or as
// many of them as top-p or min-p can keep.
func (s *Sampler) topKLazily(l []float32, m Mask, clean bool) (int32, bool, error) {
	c := &s.cfg
	keys, bad := s.sel.top(l, c.TopK+lazyTests)
	switch {
	case bad && !clean:
		return 0, false, errUnclean
	case len(keys) == 0:
		return 0, false, ErrNoCandidate
	}
	whole := len(keys) < c.TopK+lazyTests // keys are all tokens above -Inf
	s.cands = s.cands[:0]
	for i, k := range keys {
		if len(s.cands) == c.TopK {
			break
		}
		cand := candidate{id: keyID(k), logit: keyLogit(k), e: 1}
		if len(s.cands) > 0 {
			top := float64(s.cands[0].logit)
			cand.e = exp(float64(cand.logit) - top)
			if c.MinP > 0 && c.TopP == 1 && c.TypicalP == 1 && float64(cand.logit) < top+log(c.MinP) {
				return s.filterAfterTopP(), true, nil
			}
		}
		if !m.Allowed(cand.id) {
			continue
		}
		s.cands = append(s.cands, cand)
		if c.TopP < 1 && c.TypicalP == 1 {
			if len(s.cands) == 1 {
				s.sumTail(keys[i:])
			}
			if n := s.settledTopP(len(keys) - 1 - i); n > 0 {
				s.cands = s.cands[:n]
				return s.filterAfterTopP(), true, nil
			}
		}
	}
	switch {
	case len(s.cands) == c.TopK || whole && len(s.cands) > 0:
		return s.filterList(), true, nil
	case whole:
		return 0, false, ErrNoAllowedToken
	}
	return 0, false, nil
}

// sumTail fills sums so that sums[j] is the weight of the last j of keys,
// relative to the first, which is the first allowed candidate.
func (s *Sampler) sumTail(keys []key) {
	top := float64(keyLogit(keys[0]))
	s.sums = append(s.sums[:0], 0)
	for j := len(keys) - 1; j >= 0; j-- {
		s.sums = append(s.sums, s.sums[len(s.sums)-1]+exp(float64(keyLogit(keys[j]))-top))
	}
}

// settledTopP returns how many of the allowed candidates found so far top-p
// keeps, or 0 while that depends on the candidates not yet tested, of which
// untested are at hand. The sum of the weights of the k best allowed tokens lies
// between the sum over those found and the sum if all the next ones were
// allowed, and the cut grows with it: it is settled when both give the same.
func (s *Sampler) settledTopP(untested int) int {
	// margin covers the rounding of sums taken in different orders.
	const margin = 1e-12
	missing := s.cfg.TopK - len(s.cands)
	if missing > untested {
		// Only where the walk nears its end; then it goes on to there.
		return 0
	}
	low := s.total()
	high := low + (s.sums[untested] - s.sums[untested-missing])
	high += float64(margin * s.sums[len(s.sums)-1])
	if low < float64(s.cfg.TopP*high) {
		return 0
	}
	n := topPCut(s.cands, float64(low*(1-margin)), s.cfg.TopP)
	if topPCut(s.cands, high, s.cfg.TopP) != n {
		return 0
	}
	return n
}
