package sample

import (
	"math"
	"slices"
)

// A key packs a logit and a token id into one integer whose ascending order is
// the candidate order: descending logit, then ascending id.
type key = uint64

// makeKey packs v, which is not NaN, and id. Both zeros give the same order.
func makeKey(v float32, id int) key {
	b := math.Float32bits(v + 0) // -0 + 0 = +0
	if b>>31 != 0 {
		b = ^b
	} else {
		b |= 1 << 31
	}
	return key(^b)<<32 | key(uint32(id))
}

// keyID returns the token id of k.
func keyID(k key) int32 { return int32(uint32(k)) }

// keyLogit returns the logit of k.
func keyLogit(k key) float32 {
	b := ^uint32(k >> 32)
	if b>>31 != 0 {
		b &^= 1 << 31
	} else {
		b = ^b
	}
	return math.Float32frombits(b)
}

// selector finds the leading candidates of a row of logits without sorting the
// row. Its buffers are kept between calls.
type selector struct {
	buf  []key
	swap []key // second buffer of the radix sort
}

// minBuffer is the smallest candidate buffer: large enough that a threshold
// estimated from a sample seldom overflows it, small enough for the L1 cache.
const minBuffer = 2048

// top returns the k leading candidates of l in candidate order, fewer when
// fewer logits are above -Inf. The result is valid until the next call.
// bad is true when l holds a NaN or an infinity, in which case only the result
// for infinities is meaningful. k is at least 1.
func (s *selector) top(l []float32, k int) (keys []key, bad bool) {
	k = min(k, len(l))
	thr := s.estimate(l, k)
	keys, sum := s.above(l, thr, k)
	if len(keys) < k && !math.IsInf(float64(thr), -1) {
		keys, sum = s.above(l, negInf, k)
	}
	if len(keys) > k {
		selectSmallest(keys, k)
		keys = keys[:k]
	}
	s.sort(keys)
	return keys, sum-sum != 0
}

var negInf = float32(math.Inf(-1))

// from returns every candidate whose logit is at least x, in candidate order.
func (s *selector) from(l []float32, x float64) []key {
	thr := float32(x)
	if float64(thr) >= x { // the largest float32 below x
		thr = math.Nextafter32(thr, negInf)
	}
	keys, _ := s.above(l, thr, len(l))
	s.sort(keys)
	return keys
}

// above collects candidates with a logit above thr. When the buffer is full and
// holds at least 2k, it keeps the k best and raises the threshold to the worst
// of them: a later id with an equal logit comes after it in the order. sum is
// the sum of all logits in some association; it is not finite if a logit is not.
func (s *selector) above(l []float32, thr float32, k int) (keys []key, sum float32) {
	if s.buf == nil {
		s.buf = make([]key, 0, minBuffer)
	}
	keys = s.buf[:0]
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
		if v0 > thr || v1 > thr || v2 > thr || v3 > thr || v4 > thr || v5 > thr || v6 > thr || v7 > thr {
			if len(keys)+8 > cap(keys) {
				keys, thr = s.makeRoom(keys, thr, k)
			}
			for j, v := range b {
				if v > thr {
					keys = append(keys, makeKey(v, i+j))
				}
			}
		}
	}
	for ; i < len(l); i++ {
		s0 += l[i]
		if l[i] > thr {
			if len(keys) == cap(keys) {
				keys, thr = s.makeRoom(keys, thr, k)
			}
			keys = append(keys, makeKey(l[i], i))
		}
	}
	return keys, (s0 + s1) + (s2 + s3)
}

// makeRoom makes room for at least 8 more keys by dropping all but the k best or,
// where that would not free half of the buffer, by doubling it. It returns the
// threshold to go on with.
func (s *selector) makeRoom(keys []key, thr float32, k int) ([]key, float32) {
	if 2*k <= len(keys) {
		selectSmallest(keys, k)
		keys = keys[:k]
		return keys, keyLogit(slices.Max(keys))
	}
	grown := make([]key, len(keys), 2*cap(keys))
	copy(grown, keys)
	s.buf = grown[:0]
	return grown, thr
}

// Threshold estimation looks at one logit in estimateStride.
const (
	estimateStride = 61
	estimateRanks  = 32
)

// estimate returns a threshold that about a few times k of the logits exceed,
// from a sample of them, or -Inf where a sample would not pay.
func (s *selector) estimate(l []float32, k int) float32 {
	if len(l) < 4*minBuffer {
		return negInf
	}
	// The rank in the sample: the expected one plus three standard deviations.
	mean := float64(k) / estimateStride
	rank := int(mean+float64(3*math.Sqrt(mean))) + 3
	if rank > estimateRanks {
		return negInf
	}
	var best [estimateRanks]float32 // descending
	for i := range best {
		best[i] = negInf
	}
	worst := negInf
	for i := estimateStride / 2; i < len(l); i += estimateStride {
		if v := l[i]; v > worst {
			j := rank - 1
			for ; j > 0 && best[j-1] < v; j-- {
				best[j] = best[j-1]
			}
			best[j] = v
			worst = best[rank-1]
		}
	}
	return worst
}

// selectSmallest reorders keys so that the k smallest come first, in any order.
func selectSmallest(keys []key, k int) {
	lo, hi := 0, len(keys)
	for budget := 64; hi-lo > 16 && lo < k && k < hi; budget-- {
		if budget == 0 { // an adversarial order: sorting bounds the work
			break
		}
		p := median(keys[lo], keys[lo+(hi-lo)/2], keys[hi-1])
		i, j := lo, hi-1
		for i <= j {
			for keys[i] < p {
				i++
			}
			for keys[j] > p {
				j--
			}
			if i <= j {
				keys[i], keys[j] = keys[j], keys[i]
				i++
				j--
			}
		}
		// keys[lo:j+1] ≤ p ≤ keys[i:hi]; between them lies p itself.
		switch {
		case k <= j+1:
			hi = j + 1
		case k >= i:
			lo = i
		default:
			return
		}
	}
	if lo < k && k < hi {
		slices.Sort(keys[lo:hi])
	}
}

func median(a, b, c key) key {
	return max(min(a, b), min(max(a, b), c))
}

// radixMin is the length from which the radix sort beats the comparison sort.
const radixMin = 4096

// sort sorts keys ascending.
func (s *selector) sort(keys []key) {
	if len(keys) < radixMin {
		slices.Sort(keys)
		return
	}
	if cap(s.swap) < len(keys) {
		s.swap = make([]key, len(keys))
	}
	// Ids already ascend within equal logits when keys came from a scan, but not
	// after a selection: sort by all 64 bits, passing over constant digits.
	const digit, mask = 11, 1<<11 - 1
	src, dst := keys, s.swap[:len(keys)]
	for shift := 0; shift < 64; shift += digit {
		var count [mask + 1]int
		for _, k := range src {
			count[k>>shift&mask]++
		}
		if count[src[0]>>shift&mask] == len(src) {
			continue
		}
		at := 0
		for i, c := range count {
			count[i] = at
			at += c
		}
		for _, k := range src {
			d := k >> shift & mask
			dst[count[d]] = k
			count[d]++
		}
		src, dst = dst, src
	}
	if &src[0] != &keys[0] {
		copy(keys, src)
	}
}
