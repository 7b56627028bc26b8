package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/sample"
)

// samplingFlags are the flags of commands that generate text.
type samplingFlags struct {
	c            sample.Config
	greedy       bool
	maxTokens    int
	stop         []string
	bias         []string
	breakerIDs   string
	breakerTexts []string
	ignoreEnd    bool

	language grammarFlags
}

func (s *samplingFlags) register(f *pflag.FlagSet) {
	s.c = sample.Default()
	c := &s.c
	f.IntVarP(&s.maxTokens, "n-predict", "n", minfer.DefaultMaxTokens, "most tokens to generate; -1 runs to the end of the context")
	f.StringArrayVar(&s.stop, "stop", nil, "end the reply at this `TEXT`; repeatable")
	f.BoolVar(&s.ignoreEnd, "ignore-eos", false, "go on after an end-of-generation token")

	f.Uint64Var(&c.Seed, "seed", c.Seed, "seed of the random generator")
	f.Float64Var(&c.Temperature, "temp", c.Temperature, "temperature; 0 is greedy")
	f.BoolVar(&s.greedy, "greedy", false, "always take the most likely token")
	f.Float64Var(&c.DynatempRange, "dynatemp-range", c.DynatempRange, "vary the temperature by this much, as the entropy asks; 0 is off")
	f.Float64Var(&c.DynatempExponent, "dynatemp-exp", c.DynatempExponent, "how entropy maps to the temperature")
	f.StringArrayVar(&s.bias, "logit-bias", nil, "add to raw logits: `ID:BIAS`, several separated by commas; repeatable")

	f.IntVar(&c.TopK, "top-k", c.TopK, "keep the `K` most likely tokens; 0 is off")
	f.Float64Var(&c.TopP, "top-p", c.TopP, "keep the most likely tokens that reach probability `P`; 1 is off")
	f.Float64Var(&c.MinP, "min-p", c.MinP, "drop tokens less likely than `P` times the most likely; 0 is off")
	f.Float64Var(&c.TypicalP, "typical", c.TypicalP, "keep the tokens of typical surprise up to probability `P`; 1 is off")
	f.Float64Var(&c.TopNSigma, "top-n-sigma", c.TopNSigma, "drop tokens more than `N` standard deviations below the best; 0 is off")
	f.Float64Var(&c.XTCProbability, "xtc-probability", c.XTCProbability, "with probability `P`, leave out the top choices; 0 is off")
	f.Float64Var(&c.XTCThreshold, "xtc-threshold", c.XTCThreshold, "top choices of XTC are at least this likely, at most 0.5; 0 is off")

	f.IntVar(&c.PenaltyLastN, "repeat-last-n", c.PenaltyLastN, "penalties look at this many recent tokens; 0 is off")
	f.Float64Var(&c.RepeatPenalty, "repeat-penalty", c.RepeatPenalty, "divide the logits of recent tokens; 1 is off")
	f.Float64Var(&c.FrequencyPenalty, "frequency-penalty", c.FrequencyPenalty, "lower a token's logit per recent occurrence; 0 is off")
	f.Float64Var(&c.PresencePenalty, "presence-penalty", c.PresencePenalty, "lower the logits of recent tokens; 0 is off")

	f.Float64Var(&c.DryMultiplier, "dry-multiplier", c.DryMultiplier, "strength of the DRY penalty on repeated sequences; 0 is off")
	f.Float64Var(&c.DryBase, "dry-base", c.DryBase, "growth of the DRY penalty per repeated token")
	f.IntVar(&c.DryAllowedLength, "dry-allowed-length", c.DryAllowedLength, "longest repetition that DRY lets pass")
	f.IntVar(&c.DryPenaltyLastN, "dry-penalty-last-n", c.DryPenaltyLastN, "DRY looks at this many recent tokens; 0 is off")
	f.StringVar(&s.breakerIDs, "dry-sequence-breakers", "", "token `IDS` that DRY does not look across, such as 198;13,2")
	f.StringArrayVar(&s.breakerTexts, "dry-sequence-breaker", nil, "a `TEXT` that DRY does not look across; repeatable")

	f.IntVar(&c.Mirostat, "mirostat", c.Mirostat, "mirostat 1 or 2 in place of the filters and the temperature; 0 is off")
	f.Float64Var(&c.MirostatTau, "mirostat-tau", c.MirostatTau, "surprise that mirostat aims at, in bits")
	f.Float64Var(&c.MirostatEta, "mirostat-eta", c.MirostatEta, "learning rate of mirostat")
	f.IntVar(&c.MirostatM, "mirostat-m", c.MirostatM, "tokens from which mirostat 1 estimates")

	s.language.register(f, "constrain the reply to")
}

// settings reads the flags that need no model; values that make no sense are refused.
func (s *samplingFlags) settings() (minfer.Settings, error) {
	none := minfer.Settings{}
	c := s.c
	if s.greedy {
		c.Temperature = 0
	}
	for _, text := range s.bias {
		bias, err := sample.ParseLogitBias(text)
		if err != nil {
			return none, fmt.Errorf("--logit-bias: %w", err)
		}
		c.LogitBias = append(c.LogitBias, bias...)
	}
	if s.maxTokens < -1 || s.maxTokens == 0 {
		return none, fmt.Errorf("--n-predict %d must be at least 1, or -1", s.maxTokens)
	}
	if s.breakerIDs != "" && len(s.breakerTexts) > 0 {
		return none, errors.New("--dry-sequence-breakers and --dry-sequence-breaker exclude each other")
	}
	if s.breakerIDs != "" {
		b, err := sample.ParseBreakers(s.breakerIDs)
		if err != nil {
			return none, fmt.Errorf("--dry-sequence-breakers: %w", err)
		}
		c.DryBreakers = b
	}
	g, err := s.language.compile()
	if err != nil {
		return none, err
	}
	if g != nil && s.ignoreEnd {
		return none, errors.New("--ignore-eos excludes a grammar, which decides where the reply may end")
	}
	if err := c.Validate(1 << 30); err != nil { // ids are checked against the vocabulary later
		return none, err
	}
	if _, err := sample.NewStopper(s.stop); err != nil {
		return none, fmt.Errorf("--stop: %w", err)
	}
	return minfer.Settings{MaxTokens: s.maxTokens, Sampling: c, Stop: s.stop, Grammar: g, IgnoreEnd: s.ignoreEnd}, nil
}

// complete resolves the settings that depend on the model.
func (s *samplingFlags) complete(m *minfer.Model, have *minfer.Settings) error {
	if len(s.breakerTexts) > 0 {
		b, err := sample.BreakersFromStrings(m.Tokenizer(), s.breakerTexts)
		if err != nil {
			return fmt.Errorf("--dry-sequence-breaker: %w", err)
		}
		have.Sampling.DryBreakers = b
	}
	return have.Sampling.Validate(m.Tokenizer().VocabSize())
}

// readLimited reads a text file of at most limit bytes.
func readLimited(path string, limit int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	b, err := readWhole(f, path, limit)
	return string(b), errors.Join(err, f.Close())
}
