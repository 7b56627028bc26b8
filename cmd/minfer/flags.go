package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/quant"
	"github.com/minfer-go/minfer/sample"
)

// engineFlags are the flags of every command that runs a model.
type engineFlags struct {
	context, threads, batch int
	backends                []string
	cacheType               string
	budget                  int
}

func (e *engineFlags) register(f *pflag.FlagSet) {
	f.IntVar(&e.context, "n-ctx", 0, fmt.Sprintf("tokens that prompt and reply share (default %d, at most the model's own context)", engine.DefaultContext))
	f.IntVar(&e.batch, "n-batch", 0, fmt.Sprintf("most prompt tokens in one step (default %d)", engine.DefaultBatch))
	f.StringSliceVar(&e.backends, "backend", nil, "`NAME`s of backends that may take part; also MINFER_BACKENDS")
	f.StringVar(&e.cacheType, "cache-type", "", "KV cell `TYPE`: f16 or f32; also MINFER_CACHE_TYPE (default f16)")
	f.IntVar(&e.budget, "mem-budget", 0, "refuse a model that needs more than this many `MiB`; 0 for no limit")
}

// registerThreads adds the flag of commands that run with one number of threads.
func (e *engineFlags) registerThreads(f *pflag.FlagSet) {
	f.IntVarP(&e.threads, "threads", "t", 0, "CPU worker threads (default: one per physical core that may be used)")
}

// options resolves flags and environment; a flag wins over its variable.
func (e *engineFlags) options() (engine.Options, error) {
	o := engine.Options{
		Context: e.context, Threads: e.threads, Batch: e.batch, Backends: e.backends, Budget: e.budget << 20,
		F32Activations: os.Getenv("MINFER_F32_ACTIVATIONS") == "1",
	}
	if e.context < 0 || e.batch < 0 || e.threads < 0 || e.budget < 0 || e.budget > 1<<40 {
		return o, fmt.Errorf("--n-ctx %d, --n-batch %d, --threads %d and --mem-budget %d must not be negative", e.context, e.batch, e.threads, e.budget)
	}
	if len(o.Backends) == 0 {
		if names := os.Getenv("MINFER_BACKENDS"); names != "" {
			o.Backends = strings.Split(names, ",")
		}
	}
	name, from := e.cacheType, "--cache-type"
	if name == "" {
		name, from = os.Getenv("MINFER_CACHE_TYPE"), "MINFER_CACHE_TYPE"
	}
	if name != "" {
		t, err := quant.ParseType(name)
		if err != nil {
			return o, fmt.Errorf("%s: %w", from, err)
		}
		o.CacheType, o.CacheTypeSet = t, true
	}
	return o, nil
}

// samplingFlags are the flags of commands that generate text.
type samplingFlags struct {
	c         sample.Config
	greedy    bool
	maxTokens int
	stop      []string
	bias      []string
}

func (s *samplingFlags) register(f *pflag.FlagSet) {
	s.c = sample.Default()
	c := &s.c
	f.IntVarP(&s.maxTokens, "n-predict", "n", minfer.DefaultMaxTokens, "most tokens to generate; -1 runs to the end of the context")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "seed of the random generator")
	f.Float64Var(&c.Temperature, "temp", c.Temperature, "temperature; 0 is greedy")
	f.BoolVar(&s.greedy, "greedy", false, "always take the most likely token")
	f.IntVar(&c.TopK, "top-k", c.TopK, "keep the `K` most likely tokens; 0 is off")
	f.Float64Var(&c.TopP, "top-p", c.TopP, "keep the most likely tokens that reach probability `P`; 1 is off")
	f.Float64Var(&c.RepeatPenalty, "repeat-penalty", c.RepeatPenalty, "divide the logits of recent tokens; 1 is off")
	f.Float64Var(&c.FrequencyPenalty, "frequency-penalty", c.FrequencyPenalty, "lower a token's logit per recent occurrence; 0 is off")
	f.Float64Var(&c.PresencePenalty, "presence-penalty", c.PresencePenalty, "lower the logits of recent tokens; 0 is off")
	f.StringArrayVar(&s.bias, "logit-bias", nil, "add to raw logits: `ID:BIAS`, several separated by commas; repeatable")
	f.StringArrayVar(&s.stop, "stop", nil, "end the reply at this `TEXT`; repeatable")
}

func (s *samplingFlags) settings() (minfer.Settings, error) {
	c := s.c
	if s.greedy {
		c.Temperature = 0
	}
	for _, text := range s.bias {
		bias, err := sample.ParseLogitBias(text)
		if err != nil {
			return minfer.Settings{}, fmt.Errorf("--logit-bias: %w", err)
		}
		c.LogitBias = append(c.LogitBias, bias...)
	}
	if s.maxTokens < -1 || s.maxTokens == 0 {
		return minfer.Settings{}, fmt.Errorf("--n-predict %d must be at least 1, or -1", s.maxTokens)
	}
	return minfer.Settings{MaxTokens: s.maxTokens, Sampling: c, Stop: s.stop}, nil
}
