package sample

import (
	"fmt"
	"math"
	"strconv"
)

// Limits of a Config. Values outside are refused, never clamped.
const (
	// MaxHistory bounds the number of tokens the penalties and DRY look back at.
	MaxHistory = 1 << 20
	// MaxBias bounds the magnitude of a logit bias, of the frequency penalty and
	// of the presence penalty.
	MaxBias = 100
	// MaxLogitBiases bounds the number of logit biases and of bans.
	MaxLogitBiases = 1 << 16
)

// Bias is added to the logit of one token.
type Bias struct {
	ID    int32
	Value float64 // in [-MaxBias, MaxBias]
}

// Config holds every knob of the pipeline. Start from [Default] or [Neutral]:
// zero is not the neutral value of every knob, and the zero Config is refused.
type Config struct {
	// Seed starts the generator.
	Seed uint64

	// Temperature divides the logits before the draw; 0 is greedy. Neutral: 1.
	Temperature float64
	// DynatempRange widens the temperature to Temperature±DynatempRange, chosen
	// by the entropy of the candidates; 0 is off.
	DynatempRange float64
	// DynatempExponent shapes how the normalised entropy maps to the
	// temperature; positive. Used only with DynatempRange > 0.
	DynatempExponent float64

	// TopK keeps the TopK most likely tokens; 0 (or at least the vocabulary) is off.
	TopK int
	// TopP keeps the smallest set of most likely tokens whose probabilities
	// reach TopP; 1 is off, 0 keeps the most likely one.
	TopP float64
	// MinP drops tokens less likely than MinP times the most likely one; 0 is off.
	MinP float64
	// TypicalP keeps the tokens whose surprise is nearest to the entropy, until
	// their probabilities exceed TypicalP; 1 is off, 0 keeps the single most
	// typical one (arXiv:2202.00666).
	TypicalP float64
	// TopNSigma drops tokens whose logit is more than TopNSigma standard
	// deviations below the largest; 0 is off (arXiv:2411.07641).
	TopNSigma float64

	// XTCProbability is the chance that XTC acts at a step; 0 is off.
	XTCProbability float64
	// XTCThreshold: when XTC acts, the tokens at least this likely are dropped,
	// but for the least likely of them. At most 0.5, as above it no two tokens
	// can qualify; 0 is off.
	XTCThreshold float64

	// RepeatPenalty divides positive and multiplies negative logits of recent
	// tokens; 1 is off.
	RepeatPenalty float64
	// FrequencyPenalty is subtracted once per recent occurrence; 0 is off.
	FrequencyPenalty float64
	// PresencePenalty is subtracted once if the token occurred; 0 is off.
	PresencePenalty float64
	// PenaltyLastN is how many recent tokens these three look at; 0 is off.
	PenaltyLastN int

	// DryMultiplier is the strength of the DRY penalty; 0 is off. A token that
	// would extend a repetition of length L is lowered by
	// DryMultiplier × DryBase^(L-DryAllowedLength) where L ≥ DryAllowedLength.
	DryMultiplier float64
	// DryBase is at least 1.
	DryBase float64
	// DryAllowedLength is the shortest repetition that is penalised.
	DryAllowedLength int
	// DryPenaltyLastN is how many recent tokens DRY looks at; 0 is off.
	DryPenaltyLastN int
	// DryBreakers are sequences no repetition reaches across; nil is none.
	DryBreakers *Breakers

	// Mirostat is 0 (off), 1 or 2 (arXiv:2007.14966).
	Mirostat int
	// MirostatTau is the target surprise in bits.
	MirostatTau float64
	// MirostatEta is the learning rate.
	MirostatEta float64
	// MirostatM is the number of candidates v1 estimates from; at least 2.
	MirostatM int

	// LogitBias is added to the raw logits, in order; an id named twice gets both.
	LogitBias []Bias
	// Ban lists tokens that are never chosen.
	Ban []int32
}

// Default returns the settings used when nothing is asked for.
func Default() Config {
	c := Neutral()
	c.Temperature = 0.8
	c.TopK = 40
	c.TopP = 0.95
	c.RepeatPenalty = 1.1
	return c
}

// Neutral returns settings under which a token is drawn from the model's own
// distribution: every stage is off.
func Neutral() Config {
	return Config{
		Seed:             42,
		Temperature:      1,
		DynatempExponent: 1,
		TopP:             1,
		TypicalP:         1,
		XTCThreshold:     0.1,
		RepeatPenalty:    1,
		PenaltyLastN:     64,
		DryBase:          1.75,
		DryAllowedLength: 2,
		DryPenaltyLastN:  64,
		MirostatTau:      5,
		MirostatEta:      0.1,
		MirostatM:        100,
	}
}

// knob is one ranged number of a Config.
type knob struct {
	name     string
	value    float64
	lo, hi   float64
	openLo   bool // lo itself is refused
	hiFinite bool // hi is MaxFloat64: say "finite" instead of a number
}

func (k knob) ok() bool {
	if k.openLo && k.value <= k.lo {
		return false
	}
	return k.value >= k.lo && k.value <= k.hi // false for NaN
}

func (k knob) allowed() string {
	switch {
	case k.hiFinite && k.openLo:
		return fmt.Sprintf("finite and above %g", k.lo)
	case k.hiFinite:
		return fmt.Sprintf("finite and at least %g", k.lo)
	case k.openLo:
		return fmt.Sprintf("above %g, at most %g", k.lo, k.hi)
	}
	return number(k.lo) + " to " + number(k.hi)
}

// number is a bound as people write it, without an exponent.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// maxKnob bounds knobs that have no natural upper end: far beyond use, and
// small enough that float32 arithmetic on logits stays finite.
const maxKnob = math.MaxFloat32

func (c *Config) knobs() []knob {
	return []knob{
		{name: "temperature", value: c.Temperature, hi: maxKnob, hiFinite: true},
		{name: "dynatemp range", value: c.DynatempRange, hi: maxKnob, hiFinite: true},
		{name: "dynatemp exponent", value: c.DynatempExponent, hi: maxKnob, openLo: true, hiFinite: true},
		{name: "top-k", value: float64(c.TopK), hi: math.MaxInt32},
		{name: "top-p", value: c.TopP, hi: 1},
		{name: "min-p", value: c.MinP, hi: 1},
		{name: "typical", value: c.TypicalP, hi: 1},
		{name: "top-n-sigma", value: c.TopNSigma, hi: maxKnob, hiFinite: true},
		{name: "xtc-probability", value: c.XTCProbability, hi: 1},
		{name: "xtc-threshold", value: c.XTCThreshold, hi: 0.5},
		{name: "repeat-penalty", value: c.RepeatPenalty, lo: 0.01, hi: 100},
		{name: "frequency-penalty", value: c.FrequencyPenalty, lo: -MaxBias, hi: MaxBias},
		{name: "presence-penalty", value: c.PresencePenalty, lo: -MaxBias, hi: MaxBias},
		{name: "repeat-last-n", value: float64(c.PenaltyLastN), hi: MaxHistory},
		{name: "dry-multiplier", value: c.DryMultiplier, hi: maxKnob, hiFinite: true},
		{name: "dry-base", value: c.DryBase, lo: 1, hi: maxKnob, hiFinite: true},
		{name: "dry-allowed-length", value: float64(c.DryAllowedLength), hi: MaxHistory},
		{name: "dry-penalty-last-n", value: float64(c.DryPenaltyLastN), hi: MaxHistory},
		{name: "mirostat", value: float64(c.Mirostat), hi: 2},
		{name: "mirostat-tau", value: c.MirostatTau, hi: maxKnob, openLo: true, hiFinite: true},
		{name: "mirostat-eta", value: c.MirostatEta, hi: maxKnob, openLo: true, hiFinite: true},
		{name: "mirostat-m", value: float64(c.MirostatM), lo: 2, hi: math.MaxInt32},
	}
}

// Validate reports the first knob whose value makes no sense for a vocabulary
// of vocab tokens, with its name, its value and what is allowed; the error
// wraps ErrConfig. A knob is checked even while another switches it off.
func (c Config) Validate(vocab int) error {
	if vocab < 1 || vocab > math.MaxInt32 {
		return fmt.Errorf("%w: vocabulary of %d tokens: allowed is 1 to %d", ErrConfig, vocab, math.MaxInt32)
	}
	for _, k := range c.knobs() {
		if !k.ok() {
			return fmt.Errorf("%w: %s is %g: allowed is %s", ErrConfig, k.name, k.value, k.allowed())
		}
	}
	if len(c.LogitBias) > MaxLogitBiases {
		return fmt.Errorf("%w: %d logit biases: allowed is at most %d", ErrConfig, len(c.LogitBias), MaxLogitBiases)
	}
	for _, b := range c.LogitBias {
		if b.ID < 0 || int(b.ID) >= vocab {
			return fmt.Errorf("%w: logit-bias token id %d: allowed is 0 to %d", ErrConfig, b.ID, vocab-1)
		}
		k := knob{name: "logit-bias", value: b.Value, lo: -MaxBias, hi: MaxBias}
		if !k.ok() {
			return fmt.Errorf("%w: %s of token %d is %g: allowed is %s", ErrConfig, k.name, b.ID, k.value, k.allowed())
		}
	}
	if len(c.Ban) > MaxLogitBiases {
		return fmt.Errorf("%w: %d banned tokens: allowed is at most %d", ErrConfig, len(c.Ban), MaxLogitBiases)
	}
	for _, id := range c.Ban {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("%w: banned token id %d: allowed is 0 to %d", ErrConfig, id, vocab-1)
		}
	}
	if b := c.DryBreakers; b != nil && int(b.maxID) >= vocab {
		return fmt.Errorf("%w: dry-sequence-breakers token id %d: allowed is 0 to %d", ErrConfig, b.maxID, vocab-1)
	}
	return nil
}
