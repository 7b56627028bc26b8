package sample

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawConfig returns settings with a random choice of stages on.
func drawConfig(t *rapid.T) Config {
	c := Neutral()
	c.Seed = rapid.Uint64().Draw(t, "seed")
	on := func(name string) bool { return rapid.IntRange(0, 2).Draw(t, name) == 0 }
	share := func(name string) float64 { return rapid.Float64Range(0, 1).Draw(t, name) }
	if on("temperature on") {
		c.Temperature = rapid.SampledFrom([]float64{0, 0.1, 0.8, 2}).Draw(t, "temperature")
	}
	if on("dynatemp on") {
		c.DynatempRange = rapid.Float64Range(0, 2).Draw(t, "dynatemp")
	}
	if on("top-k on") || on("top-k on too") {
		c.TopK = rapid.IntRange(1, 60).Draw(t, "top-k")
	}
	if on("top-p on") {
		c.TopP = share("top-p")
	}
	if on("min-p on") {
		c.MinP = share("min-p")
	}
	if on("typical on") {
		c.TypicalP = share("typical")
	}
	if rapid.IntRange(0, 5).Draw(t, "sigma on") == 0 {
		c.TopNSigma = rapid.Float64Range(0, 3).Draw(t, "sigma")
	}
	if on("xtc on") {
		c.XTCProbability = share("xtc")
		c.XTCThreshold = share("xtc threshold") / 2
	}
	if on("penalties on") {
		c.RepeatPenalty = rapid.Float64Range(0.5, 2).Draw(t, "repeat")
		c.FrequencyPenalty = share("frequency")
		c.PresencePenalty = share("presence")
	}
	if on("dry on") {
		c.DryMultiplier = share("dry")
		c.DryAllowedLength = rapid.IntRange(0, 3).Draw(t, "dry length")
	}
	if rapid.IntRange(0, 5).Draw(t, "mirostat on") == 0 {
		c.Mirostat = rapid.IntRange(1, 2).Draw(t, "mirostat")
		c.MirostatTau = rapid.Float64Range(0.5, 8).Draw(t, "tau")
	}
	return c
}

// neutralise sets one knob to another value that means off, which must change
// nothing, and names it.
var neutralise = map[string]func(*Config, int){
	"dynatemp exponent": func(c *Config, _ int) {
		if c.DynatempRange == 0 {
			c.DynatempExponent = 2.5
		}
	},
	"top-k at vocabulary": func(c *Config, n int) {
		if c.TopK == 0 {
			c.TopK = n
		}
	},
	"top-k above vocabulary": func(c *Config, n int) {
		if c.TopK == 0 {
			c.TopK = n + 5
		}
	},
	"xtc threshold": func(c *Config, _ int) {
		if c.XTCProbability == 0 {
			c.XTCThreshold = 0.3
		}
	},
	"xtc probability": func(c *Config, _ int) {
		if c.XTCProbability == 0 {
			c.XTCThreshold, c.XTCProbability = 0, 0.9
		}
	},
	"penalty window": func(c *Config, _ int) {
		if c.RepeatPenalty == 1 && c.FrequencyPenalty == 0 && c.PresencePenalty == 0 {
			c.PenaltyLastN = 7
		}
	},
	"penalties without window": func(c *Config, _ int) {
		if c.RepeatPenalty == 1 && c.FrequencyPenalty == 0 && c.PresencePenalty == 0 {
			c.PenaltyLastN, c.RepeatPenalty, c.FrequencyPenalty, c.PresencePenalty = 0, 1.5, 0.5, 0.5
		}
	},
	"dry settings": func(c *Config, _ int) {
		if c.DryMultiplier == 0 {
			c.DryBase, c.DryAllowedLength, c.DryPenaltyLastN = 3, 0, 1000
		}
	},
	"dry without window": func(c *Config, _ int) {
		if c.DryMultiplier == 0 {
			c.DryMultiplier, c.DryPenaltyLastN = 2, 0
		}
	},
	"mirostat settings": func(c *Config, _ int) {
		if c.Mirostat == 0 {
			c.MirostatTau, c.MirostatEta, c.MirostatM = 1, 0.7, 3
		}
	},
	"zero bias": func(c *Config, _ int) { c.LogitBias = []Bias{{0, 0}, {2, math.Copysign(0, -1)}} },
}

func TestNeutralChangesNothing(t *testing.T) {
	for name, change := range neutralise {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := drawConfig(t)
				const n = 80
				d := c
				change(&d, n)
				a, b := newSampler(t, c, n), newSampler(t, d, n)
				for i := range uint64(10) {
					l := randomLogits(n, i)
					x, y := mustSample(t, a, l, nil), mustSample(t, b, l, nil)
					if x != y || a.rng != b.rng {
						t.Fatalf("step %d: token %d became %d", i, x, y)
					}
					if !slices.EqualFunc(a.cands, b.cands, func(p, q candidate) bool { return p == q }) {
						t.Fatalf("step %d: the candidates changed", i)
					}
					a.Accept(x)
					b.Accept(y)
				}
			})
		})
	}
}

// Each truncation keeps a subset, not empty, of what is left without it, with
// the probabilities in proportion.
func TestFiltersKeepASubset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		l := make([]float32, n)
		for i := range l {
			l[i] = float32(rapid.IntRange(-40, 40).Draw(t, "logit")) / 4
		}
		c := Neutral()
		c.TopK = rapid.IntRange(0, n+1).Draw(t, "top-k")
		c.TypicalP = rapid.Float64Range(0, 1).Draw(t, "typical")
		c.TopP = rapid.Float64Range(0, 1).Draw(t, "top-p")
		c.MinP = rapid.Float64Range(0, 1).Draw(t, "min-p")
		kept := func(c Config) map[int32]bool {
			s := newSampler(t, c, n)
			row := slices.Clone(l)
			if _, err := s.choose(row, nil, true); err != nil {
				t.Fatal(err)
			}
			out := make(map[int32]bool)
			if len(s.cands) == 0 {
				for i := range int32(n) {
					out[i] = true
				}
			}
			for i, cand := range s.cands {
				out[cand.id] = true
				if i > 0 && makeKey(s.cands[i-1].logit, int(s.cands[i-1].id)) >= makeKey(cand.logit, int(cand.id)) {
					t.Fatal("the list is not in candidate order")
				}
				if cand.logit != l[cand.id] {
					t.Fatalf("token %d has logit %v, is listed with %v", cand.id, l[cand.id], cand.logit)
				}
			}
			return out
		}
		// Stage by stage, in the order of the pipeline.
		steps := []func(*Config){
			func(d *Config) { d.TopK = c.TopK },
			func(d *Config) { d.TypicalP = c.TypicalP },
			func(d *Config) { d.TopP = c.TopP },
			func(d *Config) { d.MinP = c.MinP },
			func(d *Config) { d.XTCProbability, d.XTCThreshold = 1, 0.2 },
			func(d *Config) { d.Temperature = 2 },
		}
		d := Neutral()
		before := kept(d)
		for i, step := range steps {
			step(&d)
			after := kept(d)
			if len(after) == 0 {
				t.Fatalf("stage %d leaves nothing", i)
			}
			for id := range after {
				if !before[id] {
					t.Fatalf("stage %d brings token %d back", i, id)
				}
			}
			before = after
		}
	})
}

// The list stages and the whole-row stages agree: a top-k that removes nothing
// but the least likely token changes no cut. The two sum weights in different
// orders and precisions, so a share may fall on either side of a cut that it
// meets to a millionth.
func TestRowAndListAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n, eps = 400, 1e-6
		seed := rapid.Uint64().Draw(t, "row")
		l := randomLogits(n, seed)
		l[n-1] = -500 // cannot matter
		var set func(c *Config, p float64)
		var p float64
		switch rapid.IntRange(0, 3).Draw(t, "stage") {
		case 0:
			p = rapid.Float64Range(0, 0.999).Draw(t, "p")
			set = func(c *Config, p float64) { c.TypicalP = p }
		case 1:
			p = rapid.Float64Range(0, 0.999).Draw(t, "p")
			set = func(c *Config, p float64) { c.TopP = p }
		case 2:
			p = rapid.Float64Range(1e-6, 1).Draw(t, "p")
			set = func(c *Config, p float64) { c.MinP = p }
		case 3:
			p = rapid.Float64Range(0.001, 0.5).Draw(t, "t")
			set = func(c *Config, p float64) { c.XTCProbability, c.XTCThreshold, c.MinP = 1, p, 1e-60 }
		}
		ids := func(p float64, topK int) (out []int32) {
			c := Neutral()
			set(&c, min(1, max(0, p)))
			c.TopK = topK
			s := newSampler(t, c, n)
			row := slices.Clone(l)
			if _, err := s.choose(row, nil, true); err != nil {
				t.Fatal(err)
			}
			for _, c := range s.cands {
				out = append(out, c.id)
			}
			return out
		}
		row, list := ids(p, 0), ids(p, n-1)
		if slices.Equal(row, list) {
			return
		}
		a, b := ids(p*(1-eps), n-1), ids(p*(1+eps), n-1)
		if len(a) > len(b) {
			a, b = b, a
		}
		within := func(some, all []int32) bool {
			return !slices.ContainsFunc(some, func(id int32) bool { return !slices.Contains(all, id) })
		}
		if len(a) == len(b) || !within(a, row) || !within(row, b) {
			t.Fatalf("%v: the row keeps %d, the list %d: %v %v", p, len(row), len(list), row, list)
		}
	})
}
