package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Sampler draws tokens for one sequence. It is not safe for concurrent use.
type Sampler struct {
	cfg   Config
	vocab int

	// State that a run carries on: see State.
	rng     rng
	mu      float64 // mirostat's bound on the surprise, in bits
	history []int32 // at most 2*keep tokens, of which the last keep matter
	keep    int     // tokens the widest window looks back

	// Scratch, kept so that a step allocates nothing.
	sel     selector
	cands   []candidate
	patches []patched
	work    []float32 // a masked or rewritten copy of the logits
	aux     []float32 // per-token scores of the typical filter
	sums    []float64 // per-block weights of a draw from the whole row
	recent  []int32
	z       []int32
	repeats []key
	scores  []score
}

// candidate is a token that is still in play.
type candidate struct {
	id    int32
	logit float32
	e     float64 // exp(logit - largest logit of the list)
}

// New returns a sampler for a vocabulary of vocab tokens; errors wrap ErrConfig.
// The sampler keeps copies of the slices of c.
func New(c Config, vocab int) (*Sampler, error) {
	if err := c.Validate(vocab); err != nil {
		return nil, err
	}
	c.LogitBias = slices.Clone(c.LogitBias)
	c.Ban = slices.Clone(c.Ban)
	s := &Sampler{cfg: c, vocab: vocab, keep: c.PenaltyLastN}
	if c.DryMultiplier > 0 {
		s.keep = max(s.keep, c.DryPenaltyLastN)
	}
	s.Reset()
	return s, nil
}

// Config returns the settings the sampler was made with.
func (s *Sampler) Config() Config {
	c := s.cfg
	c.LogitBias = slices.Clone(c.LogitBias)
	c.Ban = slices.Clone(c.Ban)
	return c
}

// Reset forgets the history and starts the generator and mirostat anew.
func (s *Sampler) Reset() {
	s.rng.seed(s.cfg.Seed)
	s.mu = float64(2 * s.cfg.MirostatTau)
	s.history = s.history[:0]
}

// Clone returns an independent sampler in the same state.
func (s *Sampler) Clone() *Sampler {
	return &Sampler{
		cfg: s.cfg, vocab: s.vocab, rng: s.rng, mu: s.mu, keep: s.keep,
		history: slices.Clone(s.window(s.keep)),
	}
}

// errUnclean asks for the row to be checked for NaN and infinities.
var errUnclean = errors.New("row is not all finite")

// Sample returns the next token for a row of vocab logits. m may be nil.
//
// A few logits are overwritten during the call and restored bit for bit before
// it returns, so a row must not be read elsewhere meanwhile; a caller that
// shares one row between sequences samples them one after the other. The token
// is not added to the history: that is Accept's. In steady state nothing is
// allocated.
//
// Errors: ErrShape, ErrNaN, ErrNoCandidate, ErrNoAllowedToken. +Inf is larger than
// any other logit; several share the probability. After an error the generator
// is where it was.
func (s *Sampler) Sample(logits []float32, m Mask) (int32, error) {
	if len(logits) != s.vocab {
		return 0, fmt.Errorf("%w: %d, vocabulary is %d tokens", ErrShape, len(logits), s.vocab)
	}
	s.adjust(logits)
	id, err := s.choose(logits, m, false)
	if errors.Is(err, errUnclean) {
		var row []float32
		if row, err = s.clean(logits); err == nil {
			id, err = s.choose(row, m, true)
		}
	}
	s.restore(logits, 0)
	return id, err
}

// clean returns l, or a copy in which the largest logits are 0 and the rest
// -Inf where l holds +Inf. It reports NaN.
func (s *Sampler) clean(l []float32) ([]float32, error) {
	inf := false
	for i, v := range l {
		if v != v {
			return nil, fmt.Errorf("%w: token %d", ErrNaN, i)
		}
		inf = inf || v > math.MaxFloat32
	}
	if !inf {
		return l, nil
	}
	work := s.workRow()
	for i, v := range l {
		if v > math.MaxFloat32 {
			work[i] = 0
		} else {
			work[i] = negInf
		}
	}
	return work, nil
}

func (s *Sampler) workRow() []float32 {
	if s.work == nil {
		s.work = make([]float32, s.vocab)
	}
	return s.work
}

// choose runs the pipeline from the grammar mask on. clean says that l holds
// neither NaN nor +Inf; otherwise it may return errUnclean, before any state
// changes.
func (s *Sampler) choose(l []float32, m Mask, clean bool) (int32, error) {
	if m != nil {
		id, done, err := s.chooseLazily(l, m, clean)
		if done || err != nil {
			return id, err
		}
		if l, err = s.masked(l, m); err != nil {
			return 0, err
		}
		clean = true
	}
	switch {
	case s.cfg.Temperature == 0:
		id, _, bad := argmax(l)
		if bad && !clean {
			return 0, errUnclean
		}
		if id < 0 {
			return 0, ErrNoCandidate
		}
		return id, nil
	case s.cfg.Mirostat == 1:
		return s.mirostat1(l, clean)
	case s.cfg.Mirostat == 2:
		return s.mirostat2(l, clean)
	}
	return s.filter(l, clean)
}

// argmax returns the first of the largest logits, or -1 when all are -Inf. bad
// is true when a logit is not finite.
func argmax(l []float32) (id int32, best float32, bad bool) {
	best, at := negInf, -1
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+8 <= len(l); i += 8 {
		b := l[i : i+8 : i+8]
		v0, v1, v2, v3, v4, v5, v6, v7 := b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]
		s0 += v0
		s1 += v1
		s2 += v2
		s3 += v3
		s0 += v4
		s1 += v5
		s2 += v6
		s3 += v7
		if v0 > best || v1 > best || v2 > best || v3 > best || v4 > best || v5 > best || v6 > best || v7 > best {
			for j, v := range b {
				if v > best {
					best, at = v, i+j
				}
			}
		}
	}
	for ; i < len(l); i++ {
		s0 += l[i]
		if l[i] > best {
			best, at = l[i], i
		}
	}
	sum := (s0 + s1) + (s2 + s3)
	return int32(at), best, sum-sum != 0
}
