package sample

import "slices"

// patched remembers a logit that was overwritten.
type patched struct {
	id  int32
	old float32
}

// patch sets the logit of id until restore.
func (s *Sampler) patch(l []float32, id int32, v float32) {
	s.patches = append(s.patches, patched{id, l[id]})
	l[id] = v
}

// restore undoes the patches of l from the keep-th on, the newest first.
func (s *Sampler) restore(l []float32, keep int) {
	for i := len(s.patches) - 1; i >= keep; i-- {
		l[s.patches[i].id] = s.patches[i].old
	}
	s.patches = s.patches[:keep]
}

// adjust runs the stages that change single logits.
func (s *Sampler) adjust(l []float32) {
	c := &s.cfg
	for _, b := range c.LogitBias {
		if b.Value != 0 {
			s.patch(l, b.ID, l[b.ID]+float32(b.Value))
		}
	}
	for _, id := range c.Ban {
		s.patch(l, id, negInf)
	}
	if c.PenaltyLastN > 0 && (c.RepeatPenalty != 1 || c.FrequencyPenalty != 0 || c.PresencePenalty != 0) {
		s.penalize(l)
	}
	if c.DryMultiplier > 0 && c.DryPenaltyLastN > 0 {
		s.dry(l)
	}
}

// penalize applies the repeat, frequency and presence penalties, once for each
// distinct token of the window.
func (s *Sampler) penalize(l []float32) {
	c := &s.cfg
	repeat, frequency, presence := float32(c.RepeatPenalty), float32(c.FrequencyPenalty), float32(c.PresencePenalty)
	ids := append(s.recent[:0], s.window(c.PenaltyLastN)...)
	s.recent = ids
	slices.Sort(ids)
	for i := 0; i < len(ids); {
		id, first := ids[i], i
		for i < len(ids) && ids[i] == id {
			i++
		}
		v := l[id]
		if v > 0 {
			v /= repeat
		} else {
			v *= repeat
		}
		v -= float32(float32(i-first)*frequency) + presence
		s.patch(l, id, v)
	}
}

// window returns the last n tokens of the history, oldest first.
func (s *Sampler) window(n int) []int32 {
	return s.history[max(0, len(s.history)-n):]
}

// Accept appends a token to the history that the penalties and DRY look at: each
// prompt token and each sampled token that is kept. An id outside the vocabulary
// is ignored, as it has no logit.
func (s *Sampler) Accept(id int32) {
	if id < 0 || int(id) >= s.vocab || s.keep == 0 {
		return
	}
	if len(s.history) >= 2*s.keep { // slide: amortised O(1), no allocation
		n := copy(s.history, s.history[len(s.history)-s.keep:])
		s.history = s.history[:n]
	}
	s.history = append(s.history, id)
}
