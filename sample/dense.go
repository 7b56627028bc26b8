package sample

import (
	"math"
)

// This file holds the stages that look at the whole row, used while no filter
// has cut it to a list.

// rowUnit turns a difference of logits into the argument of exp2Fast.
const rowUnit = invLn2 * (1 << exp2Bits)

// rowFloor is the argument of exp2Fast below which a weight relative to the
// largest is taken as 0: 2^-60 times any vocabulary is far below float32's
// resolution.
const rowFloor = -60 << exp2Bits

// rowBlock is the number of logits whose weights are summed together.
const rowBlock = 256

// weightRow returns Σ exp((l-top)·scale) over l.
func weightRow(l []float32, top float32, scale float64) float64 {
	a, b := float64(scale*rowUnit), float64(top)
	var s0, s1 float64
	i := 0
	for ; i+2 <= len(l); i += 2 {
		if y := float64((float64(l[i]) - b) * a); y > rowFloor {
			s0 += exp2Fast(y)
		}
		if y := float64((float64(l[i+1]) - b) * a); y > rowFloor {
			s1 += exp2Fast(y)
		}
	}
	if i < len(l) {
		if y := float64((float64(l[i]) - b) * a); y > rowFloor {
			s0 += exp2Fast(y)
		}
	}
	return s0 + s1
}

// entropyRow returns Z = Σ exp x, Σ x exp x and the number of logits above -Inf,
// for x = l - top.
func entropyRow(l []float32, top float32) (total, weighted float64, n int) {
	b := float64(top)
	for _, v := range l {
		if v == negInf {
			continue
		}
		n++
		x := float64(v) - b
		if y := float64(x * rowUnit); y > rowFloor {
			e := exp2Fast(y)
			total += e
			weighted += float64(x * e)
		}
	}
	return total, weighted, n
}

// deviation returns the standard deviation of the logits above -Inf.
func deviation(l []float32) float64 {
	sum, n := 0.0, 0
	for _, v := range l {
		if v != negInf {
			sum += float64(v)
			n++
		}
	}
	mean, square := sum/float64(n), 0.0
	for _, v := range l {
		if v != negInf {
			d := float64(v) - mean
			square += float64(d * d)
		}
	}
	return math.Sqrt(square / float64(n))
}

// prefixFirst is how many candidates a prefix filter looks at before it takes
// the histogram of the whole row: most often they are enough.
const prefixFirst = 128

// The histogram of prefix: prefixBins bins of width 1/prefixStep.
const (
	prefixStep = 16
	prefixBins = 1024
)

// prefix returns the shortest run of tokens, in the candidate order of by, whose
// weights exp(l-top) come to reach: at least want, or more than want when
// strict. by may be l itself.
func (s *Sampler) prefix(by, l []float32, top float32, want float64, strict bool) []key {
	cut := func(keys []key) (int, bool) {
		sum := 0.0
		for i, k := range keys {
			sum += exp(float64(l[keyID(k)]) - float64(top))
			if sum > want || sum == want && !strict {
				return i + 1, true
			}
		}
		return len(keys), false
	}
	keys, _ := s.sel.top(by, prefixFirst)
	n, ok := cut(keys)
	if ok || len(keys) < prefixFirst {
		return keys[:n]
	}
	// Find by a histogram the value at which the sum is surely reached. The
	// margin covers the difference between exp2Fast and exp.
	first := keyLogit(keys[0])
	var bins [prefixBins]float64
	for i, v := range by {
		if y := float64((float64(l[i]) - float64(top)) * rowUnit); y > rowFloor {
			bins[min(prefixBins-1, int((first-v)*prefixStep))] += exp2Fast(y)
		}
	}
	sum, bin := 0.0, 0
	for ; bin < prefixBins-1; bin++ {
		if sum += bins[bin]; sum > want*(1+1e-6) {
			break
		}
	}
	if bin < prefixBins-1 {
		keys = s.sel.from(by, float64(first)-float64(float64(bin+1)/prefixStep)-1e-3)
		if n, ok = cut(keys); ok {
			return keys[:n]
		}
	}
	keys = s.sel.from(by, math.Inf(-1))
	n, _ = cut(keys)
	return keys[:n]
}

// topPRow leaves the top-p candidates of a whole row.
func (s *Sampler) topPRow(l []float32, top float32) {
	want := float64(s.cfg.TopP * weightRow(l, top, 1))
	s.load(s.prefix(l, l, top, want, false))
}

// typicalRow leaves the typical candidates of a whole row; see typical.
func (s *Sampler) typicalRow(l []float32, top float32) {
	total, weighted, _ := entropyRow(l, top)
	mean := weighted / total
	if s.aux == nil {
		s.aux = make([]float32, s.vocab)
	}
	for i, v := range l {
		if v == negInf {
			s.aux[i] = negInf
		} else {
			s.aux[i] = -distance(v, float64(top), mean)
		}
	}
	kept := s.prefix(s.aux, l, top, float64(s.cfg.TypicalP*total), true)
	for i, k := range kept {
		kept[i] = makeKey(l[keyID(k)], int(keyID(k)))
	}
	s.sel.sort(kept)
	s.load(kept)
}

// drawRow runs XTC, the temperature and the draw on a whole row. It draws in
// the order of ids.
func (s *Sampler) drawRow(l []float32, top float32) int32 {
	if !s.xtcActs() {
		return s.drawRowAt(l, top)
	}
	// l need not be the caller's row, so these patches go before others do.
	keep := len(s.patches)
	id := s.drawRowAt(l, s.xtcRow(l, top))
	s.restore(l, keep)
	return id
}

func (s *Sampler) drawRowAt(l []float32, top float32) int32 {
	c := &s.cfg
	t := c.Temperature
	if c.DynatempRange > 0 {
		if total, weighted, n := entropyRow(l, top); n > 1 {
			t = s.dynatemp(log(total)-weighted/total, n)
		}
		if t == 0 {
			// The draw that the pipeline promises, whatever it decides.
			s.rng.next()
			id, _, _ := argmax(l)
			return id
		}
	}
	scale := 1 / t
	s.sums = s.sums[:0]
	total := 0.0
	for i := 0; i < len(l); i += rowBlock {
		sum := weightRow(l[i:min(i+rowBlock, len(l))], top, scale)
		s.sums = append(s.sums, sum)
		total += sum
	}
	target := float64(s.rng.float64() * total)
	// The block in which the running sum passes target, then the token in it.
	sum, at := 0.0, 0
	for i, w := range s.sums {
		if w == 0 {
			continue
		}
		at = i
		if sum+w > target {
			break
		}
		sum += w
	}
	last := int32(0)
	for i := at * rowBlock; i < min((at+1)*rowBlock, len(l)); i++ {
		w := weightRow(l[i:i+1], top, scale)
		if w == 0 {
			continue
		}
		last = int32(i)
		if sum += w; sum > target {
			break
		}
	}
	return last
}

// xtcRow drops what XTC drops from a whole row, by patches, and returns the
// largest logit that is left.
func (s *Sampler) xtcRow(l []float32, top float32) float32 {
	floor := log(float64(s.cfg.XTCThreshold * weightRow(l, top, 1)))
	if floor > 0 {
		return top
	}
	keys := s.sel.from(l, float64(top)+floor)
	if len(keys) < 2 {
		return top
	}
	for _, k := range keys[:len(keys)-1] {
		s.patch(l, keyID(k), negInf)
	}
	return keyLogit(keys[len(keys)-1])
}
