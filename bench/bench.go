// Package bench measures how fast a model runs: prompt evaluation (pp), generation (tg) and both together, each from an
// empty context or after a given depth, through the engine that serves requests.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/sample"
)

// ErrConfig says that a benchmark cannot be run as asked.
var ErrConfig = errors.New("bench: bad configuration")

// Limits of a Config.
const (
	MaxTokens  = 1 << 20
	MaxReps    = 1 << 12
	MaxStreams = engine.MaxSequences
)

// A Config says what to measure.
type Config struct {
	Prompts   []int    // pp tests: prompt tokens each
	Generates []int    // tg tests: generated tokens each
	Combined  [][2]int // prompt and generated tokens of tests that time both
	Depths    []int    // tokens in the context before each test
	Streams   []int    // tg tests: sequences that generate together; nil for one
	Reps      int      // timed repetitions, after one that is not
	Context   int      // KV cells; grown to what the tests need
	Engine    engine.Options
}

// A Test is one row of results.
type Test struct {
	Prompt, Generate, Depth int
	Streams                 int       // sequences that generate Generate tokens each, together; 0 or 1 for one
	Rates                   []float64 // tokens per second of each repetition, all streams together
	Bytes                   int       // bytes of weights and cells that one step of generation reads; 0 for prompts
	Reads                   []float64 // tests of generation: bytes per second of Engine.Stream just before each repetition
}

// Name is the test's short name as llama-bench writes it, such as "pp512" or "tg64 @ d2048"; "tg64 x8" has eight streams.
func (t Test) Name() string {
	name := ""
	switch {
	case t.Generate == 0:
		name = fmt.Sprintf("pp%d", t.Prompt)
	case t.Prompt == 0:
		name = fmt.Sprintf("tg%d", t.Generate)
	default:
		name = fmt.Sprintf("pp%d+tg%d", t.Prompt, t.Generate)
	}
	if t.Streams > 1 {
		name += fmt.Sprintf(" x%d", t.Streams)
	}
	if t.Depth > 0 {
		name += fmt.Sprintf(" @ d%d", t.Depth)
	}
	return name
}

// Mean is the mean rate and its standard deviation.
func (t Test) Mean() (mean, stddev float64) {
	mean = average(t.Rates)
	for _, r := range t.Rates {
		stddev += (r - mean) * (r - mean)
	}
	return mean, math.Sqrt(stddev / float64(max(1, len(t.Rates)-1)))
}

// Stream is the mean of Reads: the rate, in bytes per second, at which the device read the model's weights when it did
// nothing else. 0 for prompts.
func (t Test) Stream() float64 { return average(t.Reads) }

func average(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(max(1, len(xs)))
}

// A Result is what one model gave.
type Result struct {
	Model      string
	Parameters int
	FileBytes  int
	Info       string        // device
	Threads    int           //
	Load       time.Duration // opening the file to a ready engine
	Memory     graph.Memory
	Resident   int // peak resident bytes of the process so far, 0 where unknown
	Tests      []Test
	OpTimes    []backend.OpTime
}

// Run measures one model. The file stays open.
func Run(ctx context.Context, f *gguf.File, c Config) (Result, error) {
	need, err := c.check()
	if err != nil {
		return Result{}, err
	}
	r := Result{Model: f.Name()}
	for _, t := range f.Tensors() {
		r.Parameters += t.Elements()
		r.FileBytes += t.Size()
	}
	o := c.Engine
	o.Context, o.Sequences = max(c.Context, need), slices.Max(append(c.Streams, 1))
	start := time.Now()
	e, err := engine.Open(ctx, f, o)
	if err != nil {
		return Result{}, err
	}
	r.Load = time.Since(start)
	if e.Context() < need {
		return Result{}, errors.Join(fmt.Errorf("%w: tests need %d tokens of context, %s has %d", ErrConfig, need, f.Name(), e.Context()), e.Close())
	}
	r.Info, r.Memory = e.Info(), e.Memory()
	run := runner{e: e, vocab: e.Model().Config().Vocab}
	for _, depth := range c.Depths {
		for _, t := range c.tests(depth) {
			measure := run.test
			if t.Streams > 1 {
				measure = run.together
			}
			if err = measure(ctx, &t, c.Reps); err != nil {
				return Result{}, errors.Join(err, e.Close())
			}
			if t.Generate > 0 {
				if t.Bytes, err = e.StepBytes(max(1, t.Streams), depth+t.Prompt+t.Generate/2); err != nil {
					return Result{}, errors.Join(err, e.Close())
				}
			}
			r.Tests = append(r.Tests, t)
		}
	}
	r.Resident, r.OpTimes = peakResident(), e.OpTimes()
	return r, e.Close()
}

// check validates and returns the context that the tests need.
func (c *Config) check() (need int, err error) {
	if c.Reps < 1 || c.Reps > MaxReps {
		return 0, fmt.Errorf("%w: %d repetitions, must lie in [1, %d]", ErrConfig, c.Reps, MaxReps)
	}
	for _, s := range c.Streams {
		if s < 1 || s > MaxStreams {
			return 0, fmt.Errorf("%w: %d streams, must lie in [1, %d]", ErrConfig, s, MaxStreams)
		}
	}
	for _, d := range c.Depths {
		for _, t := range c.tests(d) {
			for _, n := range []int{t.Prompt, t.Generate, t.Depth} {
				if n < 0 || n > MaxTokens {
					return 0, fmt.Errorf("%w: test %s: %d tokens, must lie in [0, %d]", ErrConfig, t.Name(), n, MaxTokens)
				}
			}
			need = max(need, t.cells())
		}
	}
	if need == 0 {
		return 0, fmt.Errorf("%w: nothing to measure", ErrConfig)
	}
	return need, nil
}

// cells is the context that a test needs. The contexts of several streams have to stay while the streams begin, beside
// what the repetition before left.
func (t Test) cells() int {
	const spare = 16
	if t.Streams > 1 {
		return t.Streams * (t.Depth + 2*(t.Generate+spare))
	}
	return t.Prompt + t.Generate + t.Depth + spare
}

// tests lists the tests of a depth.
func (c *Config) tests(depth int) []Test {
	var ts []Test
	for _, p := range c.Prompts {
		if p != 0 {
			ts = append(ts, Test{Prompt: p, Depth: depth})
		}
	}
	streams := c.Streams
	if len(streams) == 0 {
		streams = []int{1}
	}
	for _, n := range c.Generates {
		for _, s := range streams {
			if n != 0 {
				ts = append(ts, Test{Generate: n, Streams: s, Depth: depth})
			}
		}
	}
	for _, pg := range c.Combined {
		ts = append(ts, Test{Prompt: pg[0], Generate: pg[1], Depth: depth})
	}
	return ts
}

// A runner drives an engine through tests.
type runner struct {
	e     *engine.Engine
	vocab int
	count int // requests so far: makes prompts differ
}

// reads notes how fast the weights can be read at this moment, for tests of generation: it moves on machines that others
// use too.
func (r *runner) reads(t *Test, warm bool) error {
	if t.Prompt > 0 || warm {
		return nil
	}
	rate, err := r.e.Stream()
	t.Reads = append(t.Reads, rate)
	return err
}

// test notes the rate of each repetition; the first, untimed one warms up.
func (r *runner) test(ctx context.Context, t *Test, reps int) error {
	context := r.tokens(t.Depth, 0)
	if t.Depth > 0 {
		if _, err := r.request(ctx, context, 0, true); err != nil {
			return err
		}
	}
	for i := range reps + 1 {
		if err := r.reads(t, i == 0); err != nil {
			return err
		}
		r.count++
		prompt := append(append([]int32{}, context...), r.tokens(max(t.Prompt, 1), r.count)...)
		generate := t.Generate
		if generate > 0 {
			generate++ // the first token belongs to the prompt's last step
		}
		s, err := r.request(ctx, prompt, generate, t.Depth == 0)
		if err != nil {
			return err
		}
		if s.Cached != t.Depth {
			return fmt.Errorf("%w: %s found %d of %d context tokens in the cells", ErrConfig, t.Name(), s.Cached, t.Depth)
		}
		took := time.Duration(0)
		if t.Prompt > 0 {
			took += s.Prefill
		}
		if t.Generate > 0 {
			took += s.Decode
		}
		if i > 0 {
			t.Rates = append(t.Rates, float64(t.Prompt+t.Generate)/took.Seconds())
		}
	}
	return nil
}

// together is test for streams that generate at once, each behind its own context. The time is from the first token of
// the first of them to the last token of the last.
func (r *runner) together(ctx context.Context, t *Test, reps int) error {
	contexts := make([][]int32, t.Streams)
	for i := range contexts {
		contexts[i] = r.tokens(t.Depth, i)
		if t.Depth > 0 {
			if _, err := r.request(ctx, contexts[i], 0, true); err != nil {
				return err
			}
		}
	}
	for rep := range reps + 1 {
		if err := r.reads(t, rep == 0); err != nil {
			return err
		}
		type span struct {
			first, last time.Time
			err         error
		}
		spans := make([]span, t.Streams)
		var wg sync.WaitGroup
		for i, context := range contexts {
			r.count++
			prompt := append(append([]int32{}, context...), r.tokens(1, r.count)...)
			j, err := r.submit(ctx, prompt, t.Generate+1, t.Depth == 0)
			if err != nil {
				spans[i].err = err
				continue
			}
			wg.Go(func() {
				s := &spans[i]
				for _, more := j.Next(); more; _, more = j.Next() {
					if s.last = time.Now(); s.first.IsZero() {
						s.first = s.last
					}
				}
				var stats engine.Stats
				if _, stats, s.err = j.Result(); s.err == nil && stats.Cached != t.Depth {
					s.err = fmt.Errorf("%w: %s found %d of %d context tokens in the cells", ErrConfig, t.Name(), stats.Cached, t.Depth)
				}
			})
		}
		wg.Wait()
		first, last := spans[0].first, spans[0].last
		for _, s := range spans {
			if s.err != nil {
				return s.err
			}
			if s.first.Before(first) {
				first = s.first
			}
			if s.last.After(last) {
				last = s.last
			}
		}
		if rep > 0 {
			t.Rates = append(t.Rates, float64(t.Streams*t.Generate)/last.Sub(first).Seconds())
		}
	}
	return nil
}

// tokens is a prompt of n ids spread over the vocabulary; its first id depends on salt.
func (r *runner) tokens(n, salt int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((i*7919 + 13 + salt*31) % min(r.vocab, 30000))
	}
	return ids
}

func (r *runner) submit(ctx context.Context, prompt []int32, generate int, fresh bool) (*engine.Job, error) {
	c := sample.Neutral()
	c.Temperature = 0
	return r.e.Submit(ctx, engine.Request{Prompt: prompt, MaxTokens: generate, Sampling: c, Fresh: fresh})
}

func (r *runner) request(ctx context.Context, prompt []int32, generate int, fresh bool) (engine.Stats, error) {
	j, err := r.submit(ctx, prompt, generate, fresh)
	if err != nil {
		return engine.Stats{}, err
	}
	for _, more := j.Next(); more; _, more = j.Next() { //nolint:revive // only the time counts
	}
	_, s, err := j.Result()
	return s, err
}
