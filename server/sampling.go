package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/sample"
)

// sampling is what a request says about how to choose tokens. Its zero value says nothing.
type sampling struct {
	changes   []change
	breakers  []string
	biases    []textBias
	seed      *int64
	ignoreEnd bool
}

// A change is what one field says of the configuration.
type change struct {
	field string
	apply func(*sample.Config)
}

// textBias is a bias for the tokens of a text.
type textBias struct {
	text  string
	value float64
	ban   bool
}

// number is a field that sets one number of the configuration.
func number[V any](field string, at func(*sample.Config) *V) setter[sampling] {
	return func(s *sampling, raw json.RawMessage) error {
		v := new(V)
		if err := strict(raw, v); err != nil {
			return err
		}
		s.changes = append(s.changes, change{field, func(c *sample.Config) { *at(c) = *v }})
		return nil
	}
}

// samplingFields are the names that OpenAI and llama.cpp use.
var samplingFields = fields[sampling]{
	"temperature":           number("temperature", func(c *sample.Config) *float64 { return &c.Temperature }),
	"dynatemp_range":        number("dynatemp_range", func(c *sample.Config) *float64 { return &c.DynatempRange }),
	"dynatemp_exponent":     number("dynatemp_exponent", func(c *sample.Config) *float64 { return &c.DynatempExponent }),
	"top_k":                 number("top_k", func(c *sample.Config) *int { return &c.TopK }),
	"top_p":                 number("top_p", func(c *sample.Config) *float64 { return &c.TopP }),
	"min_p":                 number("min_p", func(c *sample.Config) *float64 { return &c.MinP }),
	"typical_p":             number("typical_p", func(c *sample.Config) *float64 { return &c.TypicalP }),
	"top_n_sigma":           number("top_n_sigma", func(c *sample.Config) *float64 { return &c.TopNSigma }),
	"xtc_probability":       number("xtc_probability", func(c *sample.Config) *float64 { return &c.XTCProbability }),
	"xtc_threshold":         number("xtc_threshold", func(c *sample.Config) *float64 { return &c.XTCThreshold }),
	"repeat_penalty":        number("repeat_penalty", func(c *sample.Config) *float64 { return &c.RepeatPenalty }),
	"repeat_last_n":         number("repeat_last_n", func(c *sample.Config) *int { return &c.PenaltyLastN }),
	"frequency_penalty":     number("frequency_penalty", func(c *sample.Config) *float64 { return &c.FrequencyPenalty }),
	"presence_penalty":      number("presence_penalty", func(c *sample.Config) *float64 { return &c.PresencePenalty }),
	"dry_multiplier":        number("dry_multiplier", func(c *sample.Config) *float64 { return &c.DryMultiplier }),
	"dry_base":              number("dry_base", func(c *sample.Config) *float64 { return &c.DryBase }),
	"dry_allowed_length":    number("dry_allowed_length", func(c *sample.Config) *int { return &c.DryAllowedLength }),
	"dry_penalty_last_n":    number("dry_penalty_last_n", func(c *sample.Config) *int { return &c.DryPenaltyLastN }),
	"dry_sequence_breakers": value(func(s *sampling) *[]string { return &s.breakers }),
	"mirostat":              number("mirostat", func(c *sample.Config) *int { return &c.Mirostat }),
	"mirostat_tau":          number("mirostat_tau", func(c *sample.Config) *float64 { return &c.MirostatTau }),
	"mirostat_eta":          number("mirostat_eta", func(c *sample.Config) *float64 { return &c.MirostatEta }),
	"seed":                  pointer(func(s *sampling) **int64 { return &s.seed }),
	"ignore_eos":            value(func(s *sampling) *bool { return &s.ignoreEnd }),
	"logit_bias":            logitBias,
}

// pick is a part of the table.
func (f fields[T]) pick(names ...string) fields[T] {
	some := fields[T]{}
	for _, n := range names {
		some[n] = f[n]
	}
	return some
}

// logitBias reads {"ID": bias, ...}, or llama.cpp's list [[ID or text, bias or false], ...] in which false bans.
func logitBias(s *sampling, raw json.RawMessage) error {
	if raw[0] == '{' {
		var o chat.Object
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		if len(o) > sample.MaxLogitBiases {
			return fmt.Errorf("%d entries, the limit is %d", len(o), sample.MaxLogitBiases)
		}
		for _, f := range o {
			id, err := strconv.ParseInt(f.Key, 10, 32)
			if err != nil {
				return fmt.Errorf("%q is no token id", f.Key)
			}
			var v float64
			if err := strict(f.Value, &v); err != nil {
				return fmt.Errorf("token %d: %w", id, err)
			}
			s.changes = append(s.changes, biasing(int32(id), v))
		}
		return nil
	}
	var list [][]json.RawMessage
	if err := strict(raw, &list); err != nil {
		return err
	}
	if len(list) > sample.MaxLogitBiases {
		return fmt.Errorf("%d entries, the limit is %d", len(list), sample.MaxLogitBiases)
	}
	for i, pair := range list {
		if len(pair) != 2 {
			return fmt.Errorf("entry %d has %d elements, not 2", i, len(pair))
		}
		b := textBias{ban: string(pair[1]) == "false"}
		if !b.ban {
			if err := strict(pair[1], &b.value); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
		var id int32
		if strict(pair[0], &id) == nil {
			if b.ban {
				s.changes = append(s.changes, change{"logit_bias", func(c *sample.Config) { c.Ban = append(c.Ban, id) }})
			} else {
				s.changes = append(s.changes, biasing(id, b.value))
			}
		} else if err := strict(pair[0], &b.text); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		} else {
			s.biases = append(s.biases, b)
		}
	}
	return nil
}

func biasing(id int32, v float64) change {
	return change{"logit_bias", func(c *sample.Config) { c.LogitBias = append(c.LogitBias, sample.Bias{ID: id, Value: v}) }}
}

// config completes the server's defaults by what the request says. Without a seed, one is drawn.
func (s *Server) config(q *sampling) (sample.Config, error) {
	c := s.options.Sampling
	for _, change := range q.changes {
		change.apply(&c)
	}
	for _, b := range q.biases {
		for _, id := range s.model.Tokens.Encode(b.text, true) {
			if b.ban {
				c.Ban = append(c.Ban, id)
			} else {
				c.LogitBias = append(c.LogitBias, sample.Bias{ID: id, Value: b.value})
			}
		}
	}
	if q.breakers != nil {
		b, err := sample.BreakersFromStrings(s.model.Tokens, q.breakers)
		if err != nil {
			return c, badField("dry_sequence_breakers", "%v", err)
		}
		c.DryBreakers = b
	}
	switch {
	case q.seed == nil || *q.seed == -1:
		c.Seed = rand.Uint64()
	default:
		c.Seed = uint64(*q.seed)
	}
	return c, s.blame(q, c.Validate(s.model.Tokens.VocabSize()))
}

// blame makes an error about the configuration one about the field with which it came.
func (s *Server) blame(q *sampling, err error) error {
	if err == nil {
		return nil
	}
	why := strings.TrimPrefix(err.Error(), sample.ErrConfig.Error()+": ")
	for _, change := range q.changes {
		c := s.options.Sampling
		change.apply(&c)
		if c.Validate(s.model.Tokens.VocabSize()) != nil {
			return badField(change.field, "%s", why)
		}
	}
	return badField("logit_bias", "%s", why) // the only one that may be too much as a whole
}

// stops reads one stop text or a list of them.
type stops []string

func (l *stops) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		*l = make(stops, 1)
		return json.Unmarshal(b, &(*l)[0])
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil {
		return errors.New("it is neither a text nor a list of texts")
	}
	*l = many
	return nil
}
