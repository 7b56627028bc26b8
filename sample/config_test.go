package sample

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestDefault(t *testing.T) {
	c := Default()
	if c.Temperature != 0.8 || c.TopK != 40 || c.TopP != 0.95 || c.RepeatPenalty != 1.1 || c.Seed != 42 || c.PenaltyLastN != 64 ||
		c.DryBase != 1.75 || c.DryAllowedLength != 2 || c.DryPenaltyLastN != 64 || c.MirostatTau != 5 || c.MirostatEta != 0.1 || c.MirostatM != 100 {
		t.Errorf("unexpected defaults: %+v", c)
	}
	if c.MinP != 0 || c.TypicalP != 1 || c.XTCProbability != 0 || c.DryMultiplier != 0 || c.Mirostat != 0 || c.TopNSigma != 0 ||
		c.DynatempRange != 0 || c.FrequencyPenalty != 0 || c.PresencePenalty != 0 {
		t.Errorf("a stage is on by default: %+v", c)
	}
	for _, c := range []Config{Default(), Neutral()} {
		if err := c.Validate(10); err != nil {
			t.Error(err)
		}
	}
	if (Config{}).Validate(10) == nil {
		t.Error("the zero Config is accepted")
	}
}

func TestValidate(t *testing.T) {
	type set = func(*Config, float64)
	nan, inf := math.NaN(), math.Inf(1)
	for _, k := range []struct {
		name      string
		set       set
		good, bad []float64
	}{
		{"temperature", func(c *Config, v float64) { c.Temperature = v }, []float64{0, 0.8, 100}, []float64{-0.1, nan, inf}},
		{"dynatemp range", func(c *Config, v float64) { c.DynatempRange = v }, []float64{0, 1}, []float64{-1, nan, inf}},
		{"dynatemp exponent", func(c *Config, v float64) { c.DynatempExponent = v }, []float64{0.1, 3}, []float64{0, -1, nan, inf}},
		{"top-k", func(c *Config, v float64) { c.TopK = int(v) }, []float64{0, 1, 1e6}, []float64{-1, 1 << 31}},
		{"top-p", func(c *Config, v float64) { c.TopP = v }, []float64{0, 0.5, 1}, []float64{-0.1, 1.01, nan}},
		{"min-p", func(c *Config, v float64) { c.MinP = v }, []float64{0, 0.5, 1}, []float64{-0.1, 1.01, nan}},
		{"typical", func(c *Config, v float64) { c.TypicalP = v }, []float64{0, 0.5, 1}, []float64{-0.1, 1.01, nan}},
		{"top-n-sigma", func(c *Config, v float64) { c.TopNSigma = v }, []float64{0, 1, 20}, []float64{-1, nan, inf}},
		{"xtc-probability", func(c *Config, v float64) { c.XTCProbability = v }, []float64{0, 0.5, 1}, []float64{-0.1, 1.1, nan}},
		{"xtc-threshold", func(c *Config, v float64) { c.XTCThreshold = v }, []float64{0, 0.1, 0.5}, []float64{-0.1, 0.51, nan}},
		{"repeat-penalty", func(c *Config, v float64) { c.RepeatPenalty = v }, []float64{0.01, 1, 100}, []float64{0, -1, 101, nan}},
		{"frequency-penalty", func(c *Config, v float64) { c.FrequencyPenalty = v }, []float64{-100, 0, 100}, []float64{-101, 101, nan}},
		{"presence-penalty", func(c *Config, v float64) { c.PresencePenalty = v }, []float64{-100, 0, 100}, []float64{-101, 101, nan}},
		{"repeat-last-n", func(c *Config, v float64) { c.PenaltyLastN = int(v) }, []float64{0, 64, MaxHistory}, []float64{-1, MaxHistory + 1}},
		{"dry-multiplier", func(c *Config, v float64) { c.DryMultiplier = v }, []float64{0, 0.8}, []float64{-1, nan, inf}},
		{"dry-base", func(c *Config, v float64) { c.DryBase = v }, []float64{1, 1.75}, []float64{0.9, nan, inf}},
		{"dry-allowed-length", func(c *Config, v float64) { c.DryAllowedLength = int(v) }, []float64{0, 2, MaxHistory}, []float64{-1, MaxHistory + 1}},
		{"dry-penalty-last-n", func(c *Config, v float64) { c.DryPenaltyLastN = int(v) }, []float64{0, 64, MaxHistory}, []float64{-1, MaxHistory + 1}},
		{"mirostat", func(c *Config, v float64) { c.Mirostat = int(v) }, []float64{0, 1, 2}, []float64{-1, 3}},
		{"mirostat-tau", func(c *Config, v float64) { c.MirostatTau = v }, []float64{0.1, 5}, []float64{0, -1, nan, inf}},
		{"mirostat-eta", func(c *Config, v float64) { c.MirostatEta = v }, []float64{0.1, 1}, []float64{0, -1, nan, inf}},
		{"mirostat-m", func(c *Config, v float64) { c.MirostatM = int(v) }, []float64{2, 100}, []float64{1, 0, -1}},
		{"logit-bias", func(c *Config, v float64) { c.LogitBias = []Bias{{3, v}} }, []float64{-100, 0, 100}, []float64{-100.1, 100.1, nan, inf}},
		{"logit-bias token id", func(c *Config, v float64) { c.LogitBias = []Bias{{int32(v), 1}} }, []float64{0, 99}, []float64{-1, 100}},
		{"banned token id", func(c *Config, v float64) { c.Ban = []int32{int32(v)} }, []float64{0, 99}, []float64{-1, 100}},
		{"logit biases", func(c *Config, v float64) { c.LogitBias = make([]Bias, int(v)) }, []float64{MaxLogitBiases}, []float64{MaxLogitBiases + 1}},
		{"banned tokens", func(c *Config, v float64) { c.Ban = make([]int32, int(v)) }, []float64{MaxLogitBiases}, []float64{MaxLogitBiases + 1}},
		{"dry-sequence-breakers token id", func(c *Config, v float64) {
			b, err := NewBreakers([][]int32{{1, int32(v)}})
			if err != nil {
				t.Fatal(err)
			}
			c.DryBreakers = b
		}, []float64{0, 99}, []float64{100}},
	} {
		for _, v := range k.good {
			c := Default()
			k.set(&c, v)
			if err := c.Validate(100); err != nil {
				t.Errorf("%s = %v is refused: %v", k.name, v, err)
			}
		}
		for _, v := range k.bad {
			c := Default()
			k.set(&c, v)
			err := c.Validate(100)
			if !errors.Is(err, ErrConfig) {
				t.Errorf("%s = %v: error %v, want ErrConfig", k.name, v, err)
				continue
			}
			if !strings.Contains(err.Error(), k.name) || !strings.Contains(err.Error(), fmt.Sprint(v)) && !strings.Contains(err.Error(), fmt.Sprintf("%.0f", v)) && !strings.Contains(err.Error(), fmt.Sprintf("%g", float64(int(v)))) ||
				!strings.Contains(err.Error(), "allowed is") {
				t.Errorf("%s = %v: the error does not say knob, value and range: %v", k.name, v, err)
			}
			if _, err := New(c, 100); !errors.Is(err, ErrConfig) {
				t.Errorf("%s = %v: New returns %v", k.name, v, err)
			}
		}
	}
	for _, vocab := range []int{0, -1, math.MaxInt32 + 1} {
		if err := Default().Validate(vocab); !errors.Is(err, ErrConfig) {
			t.Errorf("vocabulary of %d: %v", vocab, err)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := ParseLogitBias("15043:-2.0,198:1.5, 7 : 3")
	if err != nil || len(got) != 3 || got[0] != (Bias{15043, -2}) || got[1] != (Bias{198, 1.5}) || got[2] != (Bias{7, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "1", "a:1", "1:b", "1:2,", "99999999999:1", "1:2:3", "1.5:2"} {
		if got, err := ParseLogitBias(bad); !errors.Is(err, ErrConfig) {
			t.Errorf("logit bias %q: %v, %v", bad, got, err)
		}
	}
	if _, err := ParseLogitBias(strings.Repeat("1:1,", MaxLogitBiases-1) + "1:1"); err != nil {
		t.Error(err)
	}
	if _, err := ParseLogitBias(strings.Repeat("1:1,", MaxLogitBiases) + "1:1"); !errors.Is(err, ErrConfig) {
		t.Error("one logit bias too many is accepted")
	}
	b, err := ParseBreakers("198;13,2")
	if err != nil || b.Len() != 2 || !b.single(198) || b.single(13) || b.limit([]int32{5, 2, 13, 9}) != 1 {
		t.Errorf("breakers: %+v, %v", b, err)
	}
	for _, bad := range []string{"", "1;", "1,,2", "x", "-1", "1;99999999999"} {
		if _, err := ParseBreakers(bad); !errors.Is(err, ErrConfig) {
			t.Errorf("breakers %q: %v", bad, err)
		}
	}
}
