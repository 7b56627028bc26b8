package sample

import (
	"fmt"
	"math"
)

// Logprob is a token with the natural logarithm of its probability.
type Logprob struct {
	ID    int32
	Value float64 // at most 0; -Inf for a token that cannot occur
}

// Scorer computes log probabilities of the model's own distribution: the softmax
// of the raw logits, before any bias, penalty, mask, filter or temperature. So
// they do not depend on how a token is chosen. It keeps its buffers between
// calls; it is not safe for concurrent use.
type Scorer struct {
	sel selector
}

// norm is the normaliser of a row: the log probability of a logit v is
// (v - top) - logZ. infs counts +Inf logits, which share the whole probability.
type norm struct {
	top  float64
	logZ float64
	infs int
}

func (n norm) logprob(v float32) float64 {
	if n.infs > 0 {
		if v > math.MaxFloat32 {
			return -log(float64(n.infs))
		}
		return math.Inf(-1)
	}
	return min(0, (float64(v)-n.top)-n.logZ)
}

func normalise(l []float32) (norm, error) {
	id, top, bad := argmax(l)
	n := norm{top: float64(top)}
	if bad {
		for i, v := range l {
			if v != v {
				return n, fmt.Errorf("%w: token %d", ErrNaN, i)
			}
			if v > math.MaxFloat32 {
				n.infs++
			}
		}
	}
	if id < 0 {
		return n, ErrNoCandidate
	}
	if n.infs == 0 {
		n.logZ = log(weightRow(l, top, 1))
	}
	return n, nil
}

// Score appends to dst the n most likely tokens, the most likely first, and
// returns it with the log probability of token id. Tokens at -Inf are not
// listed. Errors: ErrShape when id is no index of logits or n is negative,
// ErrNaN, ErrNoCandidate.
func (s *Scorer) Score(dst []Logprob, logits []float32, n int, id int32) ([]Logprob, float64, error) {
	if id < 0 || int(id) >= len(logits) {
		return dst, 0, fmt.Errorf("%w: %d, none for token %d", ErrShape, len(logits), id)
	}
	if n < 0 {
		return dst, 0, fmt.Errorf("%w: top %d of %d", ErrShape, n, len(logits))
	}
	z, err := normalise(logits)
	if err != nil {
		return dst, 0, err
	}
	if n > 0 {
		keys, _ := s.sel.top(logits, n)
		for _, k := range keys {
			dst = append(dst, Logprob{ID: keyID(k), Value: z.logprob(keyLogit(k))})
		}
	}
	return dst, z.logprob(logits[id]), nil
}
