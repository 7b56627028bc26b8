package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/testmodel"
	"github.com/minfer-go/minfer/quant"
	"github.com/minfer-go/minfer/sample"
)

// A case of the metamorphic test is a prompt with what follows it in a plain run.
type plainRun struct {
	request Request
	ids     []int32
}

// A plain holds, for one model and kind of cells, the plain runs and the bits of the logits of every history in them.
type plain struct {
	file *gguf.File
	opts Options
	runs []plainRun
	rows map[string]uint64
}

// newPlain runs every prompt alone, at once, on one thread, without fusion.
func newPlain(t testing.TB, f *gguf.File, o Options, rng *rand.Rand) *plain {
	t.Helper()
	p := &plain{file: f, opts: o, rows: map[string]uint64{}}
	o.Threads, o.Context, o.Fuse, o.FuseSet = 1, 512, 0, true
	e, err := Open(context.Background(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, e)
	vocab := e.Model().Config().Vocab
	id := func() int32 { return int32(rng.IntN(vocab)) }
	var shared []int32
	for range 50 {
		shared = append(shared, id())
	}
	for i, n := range []int{1, 3, 70, 40, 95, 20} {
		r := Request{MaxTokens: 2 + rng.IntN(9), Sampling: greedy(), Fresh: true}
		if i%2 == 0 {
			r.Sampling = sample.Default()
			r.Sampling.Seed = rng.Uint64()
		}
		if i >= 2 { // these begin alike
			r.Prompt = append(r.Prompt, shared[:min(n-5, 30+rng.IntN(20))]...)
		}
		for len(r.Prompt) < n {
			r.Prompt = append(r.Prompt, id())
		}
		got := mustRun(t, e, r)
		all := append(append([]int32(nil), r.Prompt...), got.ids...)
		mustRun(t, e, Request{Prompt: all, Sampling: greedy(), Fresh: true, Logits: func(pos int, l []float32) {
			p.rows[keyOf(all[:pos+1])] = hashOf(l)
		}})
		r.Fresh = false
		p.runs = append(p.runs, plainRun{r, got.ids})
	}
	return p
}

// A combination is everything that must make no difference.
type combination struct {
	threads, batch, sequences, context int
	fuse                               graph.Rules
	noReuse, noShare                   bool
	requests                           []int  // plain runs, in the order of arrival
	chunks                             []int  // per request
	logits                             []bool // ask for every position
	fresh                              []bool
	delays                             []int // before each arrival: tokens of the engine's that pass, or none
	earlier                            []int // plain runs started before and left: after so many tokens, or at once
}

func randomCombination(rng *rand.Rand, runs int) combination {
	pick := func(from ...int) int { return from[rng.IntN(len(from))] }
	c := combination{
		threads: pick(1, 2, 3, 8), batch: pick(1, 7, 64, 512), sequences: pick(1, 2, 3, 4), context: pick(112, 130, 160, 384, 512),
		fuse: graph.Rules(rng.Uint32()) & graph.AllRules, noReuse: rng.IntN(3) == 0, noShare: rng.IntN(3) == 0,
	}
	if rng.IntN(3) == 0 {
		c.fuse = graph.AllRules
	}
	for range 1 + rng.IntN(4) {
		c.requests = append(c.requests, rng.IntN(runs))
		c.chunks = append(c.chunks, pick(1, 7, 64, 0))
		c.logits = append(c.logits, rng.IntN(4) == 0 && c.context >= 384) // such a request keeps its cells
		c.fresh = append(c.fresh, rng.IntN(3) == 0)
		c.delays = append(c.delays, pick(0, 0, 1, 3))
	}
	for range rng.IntN(4) {
		c.earlier = append(c.earlier, rng.IntN(runs))
	}
	return c
}

// check runs a combination: every request must give the tokens of its plain run, and every row that the device computed
// the bits of the plain run's.
func (p *plain) check(t *testing.T, c combination, rng *rand.Rand, total *tally) {
	t.Helper()
	t.Setenv("MINFER_NO_PREFIX_REUSE", map[bool]string{true: "1", false: ""}[c.noReuse])
	t.Setenv("MINFER_NO_KV_SHARE", map[bool]string{true: "1", false: ""}[c.noShare])
	o := p.opts
	o.Threads, o.Batch, o.Sequences, o.Context, o.Fuse, o.FuseSet = c.threads, c.batch, c.sequences, c.context, c.fuse, true
	e, device := openRecorded(t, p.file, o)
	for _, k := range c.earlier { // leaves cells behind, in pieces
		ctx, cancel := context.WithCancel(context.Background())
		j, err := e.Submit(ctx, p.runs[k].request)
		if err != nil {
			t.Fatal(err)
		}
		for range rng.IntN(4) {
			j.Next()
		}
		cancel()
		collect(j)
	}
	var wg sync.WaitGroup
	progress := make(chan struct{}, 1<<10)
	for i, k := range c.requests {
		for range c.delays[i] {
			select {
			case <-progress:
			case <-time.After(20 * time.Millisecond):
			}
		}
		run := p.runs[k]
		r := run.request
		r.Chunk, r.Fresh = c.chunks[i], c.fresh[i]
		seen := 0
		if c.logits[i] {
			r.Logits = func(pos int, l []float32) {
				if seen != pos || p.rows[keyOf(r.Prompt[:pos+1])] != hashOf(l) {
					device.complain("request %d: the logits at %d, call %d, are not the plain run's", i, pos, seen)
				}
				seen++
			}
		}
		j, err := e.Submit(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			var ids []int32
			for {
				token, ok := j.Next()
				if !ok {
					break
				}
				ids = append(ids, token.ID)
				progress <- struct{}{}
			}
			if _, _, err := j.Result(); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
			mustIDs(t, fmt.Sprintf("request %d (plain run %d)", i, k), ids, run.ids)
			if c.logits[i] && seen != len(r.Prompt) {
				t.Errorf("request %d: logits of %d positions, want %d", i, seen, len(r.Prompt))
			}
		})
	}
	within(t, "the requests", func() bool { wg.Wait(); return true })
	counters := e.Counters()
	mustClose(t, e)
	total.rows, total.steps, total.most = total.rows+len(device.rows), total.steps+device.steps, max(total.most, device.most)
	total.cached, total.gaveWay = total.cached+counters.Cached, total.gaveWay+counters.GaveWay
	for key, have := range device.rows {
		if want, ok := p.rows[key]; !ok || have != want {
			device.complain("the logits after %d tokens are not the plain run's (known: %v)", len(key)/4, ok)
		}
	}
	for _, what := range device.bad {
		t.Error(what)
	}
	if len(device.rows) == 0 {
		t.Error("nothing was recorded")
	}
}

// goldenModels lists the reference models, none where they are absent.
func goldenModels() []string {
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "golden", "models", "*.gguf"))
	return files
}

// The bits of a token's logits depend on the tokens before it and on nothing else: not on threads, chunks, the other
// requests of a step and when they came, the cells, what ran before, reuse of cells, or fusion. Random combinations over
// random models; the seed is printed, MINFER_TEST_SEED repeats a run and MINFER_LONG=1 makes it long.
func TestNothingElseMatters(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("MINFER_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("MINFER_TEST_SEED=%d repeats this run", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	type source struct {
		name string
		open func() (*gguf.File, error)
	}
	all := []source{{"tiny", func() (*gguf.File, error) { return tiny(t), nil }}}
	for _, path := range goldenModels() {
		all = append(all, source{filepath.Base(path), func() (*gguf.File, error) { return gguf.Open(path) }})
	}
	archs := []string{"qwen2", "qwen3", "llama"}
	for i, typ := range testmodel.WeightTypes() {
		c := testmodel.Default(archs[i%3])
		c.Type, c.Seed = typ, seed
		all = append(all, source{fmt.Sprintf("%s of %s", c.Arch, typ), c.File})
	}
	models, rounds, long := 4, 16, os.Getenv("MINFER_LONG") != ""
	switch {
	case long:
		models = len(all)
	case testing.Short():
		models, rounds = 2, 5
	}
	rng.Shuffle(len(all)-1, func(i, j int) { all[i+1], all[j+1] = all[j+1], all[i+1] }) // the built-in model stays the first
	var total tally
	for _, s := range all[:models] {
		t.Run(s.name, func(t *testing.T) {
			f, err := s.open()
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			o := Options{CacheType: []quant.Type{quant.F32, quant.F16, quant.Q8_0}[rng.IntN(3)], CacheTypeSet: true, F32Activations: long && rng.IntN(6) == 0}
			p := newPlain(t, f, o, rng)
			for range rounds {
				c := randomCombination(rng, len(p.runs))
				name := fmt.Sprintf("%s cells, %d threads, batch %d, %d sequences, context %d", o.CacheType, c.threads, c.batch, c.sequences, c.context)
				if !t.Run(name, func(t *testing.T) { p.check(t, c, rng, &total) }) {
					t.Logf("%+v", c)
				}
			}
		})
	}
	t.Logf("%d rows in %d steps of up to %d sequences; %d tokens were found in cells, %d times a request gave way", total.rows, total.steps,
		total.most, total.cached, total.gaveWay)
}

// A tally says what the combinations of a run led to.
type tally struct{ rows, steps, most, cached, gaveWay int }
