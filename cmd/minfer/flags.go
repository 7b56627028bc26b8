package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/quant"
)

// maxBudget is the largest --mem-budget, in MiB: its bytes can be counted on every machine.
const maxBudget = 1 << 40

// engineFlags are the flags of every command that runs a model.
type engineFlags struct {
	context, threads, batch int
	backends                []string
	cacheType               string
	budget                  int
	devices                 deviceFlags
}

func (e *engineFlags) register(f *pflag.FlagSet) {
	f.IntVar(&e.context, "n-ctx", 0, fmt.Sprintf("tokens that prompt and reply share (default %d, at most the model's own context)", engine.DefaultContext))
	f.IntVar(&e.batch, "n-batch", 0, fmt.Sprintf("most prompt tokens in one step (default %d)", engine.DefaultBatch))
	f.StringSliceVar(&e.backends, "backend", nil, "`NAME`s of backends that may take part; also MINFER_BACKENDS")
	f.StringVar(&e.cacheType, "cache-type", "", "KV cell `TYPE`: f16, f32 or q8_0; also MINFER_CACHE_TYPE (default f16)")
	f.IntVar(&e.budget, "mem-budget", 0, "refuse a model that needs more than this many `MiB`; 0 for no limit")
	e.devices.register(f)
}

// registerThreads adds the flag of commands that run with one number of threads.
func (e *engineFlags) registerThreads(f *pflag.FlagSet) {
	f.IntVarP(&e.threads, "threads", "t", 0, "CPU worker threads (default: one per physical core that may be used)")
}

// options resolves flags and environment; a flag wins over its variable. What has no effect is told in notes.
func (e *engineFlags) options(notes io.Writer) (engine.Options, error) {
	o := engine.Options{
		Context: e.context, Threads: e.threads, Batch: e.batch, Backends: e.backends, Budget: e.budget << 20,
	}
	var err error
	if o.F32Activations, _, err = onOff("MINFER_F32_ACTIVATIONS"); err != nil {
		return o, err
	}
	if err := e.devices.check(notes); err != nil {
		return o, err
	}
	if e.context < 0 || e.batch < 0 || e.threads < 0 || e.budget < 0 {
		return o, fmt.Errorf("--n-ctx %d, --n-batch %d, --threads %d and --mem-budget %d must not be negative", e.context, e.batch, e.threads, e.budget)
	}
	if e.budget > maxBudget {
		return o, fmt.Errorf("--mem-budget %d must be at most %d", e.budget, maxBudget)
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

// onOff reads a variable that is 1 for on, 0 for off, and otherwise empty.
func onOff(name string) (on, set bool, err error) {
	switch value := os.Getenv(name); value {
	case "":
		return false, false, nil
	case "0", "1":
		return value == "1", true, nil
	default:
		return false, true, fmt.Errorf("%s=%s is neither 0 nor 1", name, value)
	}
}
