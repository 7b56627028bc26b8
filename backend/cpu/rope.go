package cpu

import (
	"fmt"
	"math"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
)

// A ropeTable holds the cosines and sines of every position so far, computed in float64.
type ropeTable struct {
	rope     graph.Rope
	freq     []float64 // radians per position of each pair
	scale    float64   // yarn's magnitude
	cos, sin []float32 // [positions][pairs]
}

// tableStep is how many positions a table grows by.
const tableStep = 256

// newRope resolves the frequencies of a rope.
func (d *Device) newRope(r graph.Rope) (*ropeTable, error) {
	t := &ropeTable{rope: r, freq: make([]float64, r.Rot/2), scale: 1}
	factors, err := d.vector(r.Factors)
	if err != nil {
		return nil, err
	}
	for i := range t.freq {
		t.freq[i] = math.Pow(float64(r.Base), -2*float64(i)/float64(r.Rot))
		if factors != nil {
			t.freq[i] /= float64(factors[i])
		}
	}
	switch s := r.Scaling; s.Kind {
	case "":
	case "linear":
		for i := range t.freq {
			t.freq[i] /= float64(s.Factor)
		}
	case "yarn":
		t.yarn(s)
	default:
		return nil, fmt.Errorf("%w: rope scaling '%s'", backend.ErrUnsupported, s.Kind)
	}
	return t, nil
}

// yarn interpolates low frequencies and keeps high ones (Peng et al. 2023, "YaRN", §3.2 and §3.4): pairs that turn more
// than BetaFast times within the trained context stay, those below BetaSlow stretch by Factor, the rest lie between on
// a ramp; magnitudes grow by 0.1·ln(Factor)+1.
func (t *ropeTable) yarn(s graph.RopeScaling) {
	pair := func(turns float64) float64 {
		return float64(t.rope.Rot) * math.Log(float64(s.Original)/(turns*2*math.Pi)) / (2 * math.Log(float64(t.rope.Base)))
	}
	low := max(0, math.Floor(pair(float64(s.BetaFast))))
	high := min(float64(t.rope.Rot-1), math.Ceil(pair(float64(s.BetaSlow))))
	for i := range t.freq {
		keep := 1 - min(1, max(0, (float64(i)-low)/max(0.001, high-low)))
		t.freq[i] = t.freq[i]/float64(s.Factor)*(1-keep) + t.freq[i]*keep
	}
	t.scale = float64(s.Attention)
	if s.Factor > 1 {
		t.scale *= 1 + 0.1*math.Log(float64(s.Factor))
	}
}

// reserve makes room for positions below n without computing them.
func (t *ropeTable) reserve(n int) {
	if n *= len(t.freq); cap(t.cos) < n {
		t.cos = append(make([]float32, 0, n), t.cos...)
		t.sin = append(make([]float32, 0, n), t.sin...)
	}
}

// cover computes the table up to and including a position.
func (t *ropeTable) cover(pos int) {
	half := len(t.freq)
	have := len(t.cos) / half
	if pos < have {
		return
	}
	t.reserve(pos + 1)
	for p := have; p < (pos+tableStep)/tableStep*tableStep && (p+1)*half <= cap(t.cos); p++ {
		for _, f := range t.freq {
			sin, cos := math.Sincos(float64(p) * f)
			t.cos = append(t.cos, float32(cos*t.scale))
			t.sin = append(t.sin, float32(sin*t.scale))
		}
	}
}

// at is the cosines and sines of a covered position.
func (t *ropeTable) at(pos int32) (cos, sin []float32) {
	half := len(t.freq)
	i := int(pos) * half
	return t.cos[i : i+half], t.sin[i : i+half]
}

// turn is the cosines and sines that move a rotated vector by delta positions; magnitudes stay.
func (t *ropeTable) turn(delta int) (cos, sin []float32) {
	cos, sin = make([]float32, len(t.freq)), make([]float32, len(t.freq))
	for i, f := range t.freq {
		s, c := math.Sincos(float64(delta) * f)
		cos[i], sin[i] = float32(c), float32(s)
	}
	return cos, sin
}
