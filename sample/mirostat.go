package sample

import "math"

// Mirostat (Basu et al., arXiv:2007.14966) keeps the surprise of the sampled
// tokens near tau: it truncates to candidates whose surprise is below mu, and
// moves mu by eta times the error after each draw. mu starts at 2·tau.

// mirostat1 estimates Zipf's exponent of the distribution from its m most likely
// tokens, and from it how many candidates k give the surprise mu.
func (s *Sampler) mirostat1(l []float32, clean bool) (int32, error) {
	keys, bad := s.sel.top(l, s.cfg.MirostatM)
	if bad && !clean {
		return 0, errUnclean
	}
	if len(keys) == 0 {
		return 0, ErrNoCandidate
	}
	k := zipfCount(keys, s.mu, len(l))
	if k > len(keys) {
		keys, _ = s.sel.top(l, k)
	}
	s.load(keys[:min(k, len(keys))])
	return s.drawSurprise(), nil
}

// zipfCount returns k = ((ŝ-1)·2^mu / (1 - n^(1-ŝ)))^(1/ŝ) for a vocabulary of n
// tokens, between 1 and n, with ŝ = Σ t b / Σ t², t = ln((i+2)/(i+1)) and
// b = ln(p_i/p_{i+1}), which is the difference of the logits.
func zipfCount(keys []key, mu float64, n int) int {
	tb, tt := 0.0, 0.0
	for i := 0; i+1 < len(keys); i++ {
		t := log(float64(i+2) / float64(i+1))
		b := float64(keyLogit(keys[i])) - float64(keyLogit(keys[i+1]))
		tb += float64(t * b)
		tt += float64(t * t)
	}
	if tb <= 0 { // a flat distribution (or one candidate): nothing to cut
		return n
	}
	exponent := tb / tt
	excess := exponent - 1
	ratio := 1 / log(float64(n)) // the limit for excess → 0
	if math.Abs(excess) > 1e-9 {
		ratio = excess / (1 - exp(float64(-excess*log(float64(n)))))
	}
	if n == 1 {
		return 1
	}
	k := exp((log(ratio) + float64(mu*math.Ln2)) / exponent)
	if !(k < float64(n)) {
		return n
	}
	return max(1, int(k))
}

// mirostat2 keeps the tokens whose surprise is at most mu bits, or the most
// likely one.
func (s *Sampler) mirostat2(l []float32, clean bool) (int32, error) {
	id, top, bad := argmax(l)
	if bad && !clean {
		return 0, errUnclean
	}
	if id < 0 {
		return 0, ErrNoCandidate
	}
	// -log2 p ≤ mu  ⇔  l ≥ top + ln Z - mu ln 2
	floor := log(weightRow(l, top, 1)) - float64(s.mu*math.Ln2)
	s.load(s.sel.from(l, float64(top)+min(0, floor)))
	return s.drawSurprise(), nil
}

// drawSurprise draws from the list and learns from the surprise.
func (s *Sampler) drawSurprise() int32 {
	i := s.drawIndex()
	surprise := (log(s.total()) - log(s.cands[i].e)) / math.Ln2
	s.mu -= float64(s.cfg.MirostatEta * (surprise - s.cfg.MirostatTau))
	return s.cands[i].id
}
