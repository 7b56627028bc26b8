package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/testmodel"
	"github.com/minfer-go/minfer/model"
	"github.com/minfer-go/minfer/quant"
	"github.com/minfer-go/minfer/sample"
)

// small is a test model of one layer.
func small(t testing.TB) *gguf.File {
	t.Helper()
	c := testmodel.Default("qwen2")
	c.Layers, c.Type = 1, quant.Q8_0
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The built-in model's greedy continuations are the reference's.
func TestTinyContinuations(t *testing.T) {
	dir := shared(t)
	f, err := gguf.Open(filepath.Join(dir, "model", "tiny-f32.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := os.Open(filepath.Join(dir, "golden", "tiny.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	e := open(t, f, Options{CacheType: quant.F32, CacheTypeSet: true})
	n := 0
	for lines := bufio.NewScanner(rows); lines.Scan(); n++ {
		var row struct {
			Text        string
			IDs, Greedy []int32
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		got := mustRun(t, e, Request{Prompt: row.IDs, MaxTokens: len(row.Greedy), Sampling: greedy()})
		mustIDs(t, row.Text, got.ids, row.Greedy)
	}
	if n == 0 {
		t.Error("no rows")
	}
}

func TestSubmitRefusals(t *testing.T) {
	e := open(t, small(t), Options{Context: 16})
	prompt := func(n int) []int32 { return make([]int32, n) }
	bad := greedy()
	bad.TopP = 2
	for _, c := range []struct {
		name string
		r    Request
		want error
		text string
	}{
		{"no tokens", Request{Sampling: greedy()}, ErrRequest, "no tokens"},
		{"a negative id", Request{Prompt: []int32{1, -1}, Sampling: greedy()}, ErrRequest, "token id -1 at 1"},
		{"an id beyond", Request{Prompt: []int32{96}, Sampling: greedy()}, ErrRequest, "outside the vocabulary of 96"},
		{"a prompt one past the context", Request{Prompt: prompt(17), Sampling: greedy()}, ErrContextLength, "17 prompt tokens, the context holds 16"},
		{"a full context and a token more", Request{Prompt: prompt(16), MaxTokens: 1, Sampling: greedy()}, ErrContextLength, "16 prompt tokens"},
		{"a full context and the rest", Request{Prompt: prompt(16), MaxTokens: -1, Sampling: greedy()}, ErrContextLength, "16 prompt tokens"},
		{"a negative chunk", Request{Prompt: prompt(1), Chunk: -1, Sampling: greedy()}, ErrRequest, "chunk of -1"},
		{"bad sampling", Request{Prompt: prompt(1), Sampling: bad}, nil, "top"},
	} {
		_, err := e.Submit(context.Background(), c.r)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: error %v, want %v with %q", c.name, err, c.want, c.text)
		}
	}
	// At the limits all goes well.
	if got := mustRun(t, e, Request{Prompt: prompt(16), Sampling: greedy()}); got.reason != ReasonLength || len(got.ids) != 0 || got.stats.Prompt != 16 {
		t.Errorf("a full context: %+v", got)
	}
	if got := mustRun(t, e, Request{Prompt: prompt(15), MaxTokens: 9, Sampling: greedy()}); got.reason != ReasonLength || len(got.ids) != 2 {
		t.Errorf("a context that ends a reply: %+v, want 2 tokens", got) // one in the last cell, one sampled from it
	}
	if got := mustRun(t, e, Request{Prompt: prompt(4), MaxTokens: -1, Sampling: greedy()}); got.reason != ReasonLength || len(got.ids) != 13 {
		t.Errorf("a reply to the end of the context: %+v, want 13 tokens", got)
	}
}

func TestOpenRefusals(t *testing.T) {
	f := small(t)
	for _, c := range []struct {
		name string
		o    Options
		want error
		text string
	}{
		{"a negative context", Options{Context: -1}, ErrOptions, "context of -1"},
		{"a negative batch", Options{Batch: -1}, ErrOptions, "batch of -1"},
		{"a batch one past the limit", Options{Batch: MaxBatch + 1}, ErrOptions, "batch of 65537"},
		{"negative sequences", Options{Sequences: -1}, ErrOptions, "-1 sequences"},
		{"sequences one past the limit", Options{Sequences: MaxSequences + 1}, ErrOptions, "4097 sequences"},
		{"negative threads", Options{Threads: -1}, ErrOptions, "-1 threads"},
		{"threads one past the limit", Options{Threads: MaxThreads + 1}, ErrOptions, "1025 threads"},
		{"cells of a weight type", Options{CacheType: quant.Q4_K, CacheTypeSet: true}, ErrOptions, "KV cache type Q4_K"},
		{"an unknown backend", Options{Backends: []string{"vulkan"}}, backend.ErrUnknown, "vulkan"},
		{"a backend of other builds", Options{Backends: []string{"metal"}}, backend.ErrNotBuilt, "metal"},
		{"no memory", Options{Budget: 1}, graph.ErrBudget, "allowed are 1"},
	} {
		if e, err := Open(context.Background(), f, c.o); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, %v; want %v with %q", c.name, e, err, c.want, c.text)
		}
	}
	for _, o := range []Options{{Batch: MaxBatch, Context: 8}, {Sequences: MaxSequences, Context: 8}} {
		e, err := Open(context.Background(), f, o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		mustClose(t, e)
	}
	c := testmodel.Default("qwen2")
	c.Arch, c.Prefix = "mamba", "qwen2"
	other, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), other, Options{}); !errors.Is(err, model.ErrArchitecture) {
		t.Errorf("an unknown architecture: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, f, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled load: %v", err)
	}
}

// Fit says before loading what the engine then holds; one byte less than that is refused, and nothing was loaded.
func TestFit(t *testing.T) {
	f := small(t)
	o := Options{Context: 300, Batch: 32, Sequences: 3}
	need, err := Fit(f, o)
	if err != nil {
		t.Fatal(err)
	}
	if need.Weights <= 0 || need.KV <= 0 || need.Pool <= 0 || need.Live <= 0 || need.Peak <= 0 || need.Live > need.Peak || need.Peak > need.Pool {
		t.Errorf("need %+v", need)
	}
	e := open(t, f, o)
	if e.Memory() != need {
		t.Errorf("the engine holds %+v, Fit said %+v", e.Memory(), need)
	}
	o.Budget = need.Total()
	enough, err := Fit(f, o)
	if err != nil || enough.Headroom != 0 || enough.Budget != o.Budget {
		t.Errorf("with exactly enough: %+v, %v", enough, err)
	}
	if _, d, err := tryRecorded(f, o); err != nil || d.loads != 1 {
		t.Errorf("opening with exactly enough: %v", err)
	}
	o.Budget--
	short, err := Fit(f, o)
	if !errors.Is(err, graph.ErrBudget) || short.Headroom != -1 || short.Weights != need.Weights {
		t.Errorf("with a byte less: %+v, %v", short, err)
	}
	if _, d, err := tryRecorded(f, o); !errors.Is(err, graph.ErrBudget) || d.loads != 0 || d.programs != 0 {
		t.Errorf("opening with a byte less: %v, after %d loads", err, d.loads)
	}
}

// A cancelled request ends wherever it is, with the cause, and what comes after it is served.
func TestCancellation(t *testing.T) {
	enough := errors.New("enough")
	e := open(t, tiny(t), Options{Context: 4096, Batch: 16})
	want := mustRun(t, e, Request{Prompt: []int32{384, 383, 256}, MaxTokens: 5, Sampling: greedy(), Fresh: true})
	after := func(what string, r result) {
		t.Helper()
		if r.reason != ReasonCancel || !errors.Is(r.err, enough) {
			t.Errorf("%s: reason %s, error %v", what, r.reason, r.err)
		}
		got := mustRun(t, e, Request{Prompt: []int32{384, 383, 256}, MaxTokens: 5, Sampling: greedy()})
		mustIDs(t, "after "+what, got.ids, want.ids)
	}
	endless := Request{Prompt: []int32{384}, MaxTokens: -1, Sampling: greedy()}

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	j, err := e.Submit(ctx, endless)
	if err != nil {
		t.Fatal(err)
	}
	r := within(t, "a request that is cancelled before", func() result { return collect(j) })
	if len(r.ids) > 0 {
		t.Errorf("a request that was cancelled before it began gave %v", r.ids)
	}
	after("a cancellation before", r)

	ctx, cancel = context.WithCancelCause(context.Background())
	prompt := make([]int32, 900)
	last := -1
	j, err = e.Submit(ctx, Request{Prompt: prompt, MaxTokens: 3, Sampling: greedy(), Chunk: 4, Logits: func(pos int, _ []float32) {
		if last = pos; pos == 9 {
			cancel(enough)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	r = within(t, "a request that is cancelled in its prompt", func() result { return collect(j) })
	if len(r.ids) > 0 || last > 11 { // the step of positions 8 to 11 is delivered whole
		t.Errorf("cancelled at position 9 it gave %d tokens and went on to position %d", len(r.ids), last)
	}
	after("a cancellation in the prompt", r)

	ctx, cancel = context.WithCancelCause(context.Background())
	if j, err = e.Submit(ctx, endless); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		j.Next()
	}
	// A second request waits behind it; it ends at once when it is cancelled, though the first runs on.
	waitCtx, giveUp := context.WithCancelCause(context.Background())
	waiting, err := e.Submit(waitCtx, endless)
	if err != nil {
		t.Fatal(err)
	}
	giveUp(enough)
	r = within(t, "a request that is cancelled in the queue", func() result { return collect(waiting) })
	if reason, _, _ := j.Result(); reason != "" {
		t.Errorf("the running request ended with %s before the waiting one was let go", reason)
	}
	if len(r.ids) > 0 || r.reason != ReasonCancel || !errors.Is(r.err, enough) {
		t.Errorf("in the queue: %+v", r)
	}
	cancel(enough)
	r = within(t, "a request that is cancelled while it generates", func() result { return collect(j) })
	after("a cancellation while generating", r)
}

// A queued request that waits longer than it may ends while others still run.
func TestQueueTimeout(t *testing.T) {
	e := open(t, tiny(t), Options{Context: 4096, QueueTimeout: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, err := e.Submit(ctx, Request{Prompt: []int32{384}, MaxTokens: -1, Sampling: greedy()})
	if err != nil {
		t.Fatal(err)
	}
	first.Next()
	second, err := e.Submit(context.Background(), Request{Prompt: []int32{1}, MaxTokens: 1, Sampling: greedy()})
	if err != nil {
		t.Fatal(err)
	}
	r := within(t, "a request that waits too long", func() result { return collect(second) })
	if !errors.Is(r.err, ErrBusy) {
		t.Errorf("it ended with %s, %v", r.reason, r.err)
	}
	if reason, _, _ := first.Result(); reason != "" {
		t.Errorf("the running request ended with %s first", reason)
	}
}

// Closing ends everything with ErrClosed, in any state, and once closed nothing is taken.
func TestClose(t *testing.T) {
	e, err := Open(context.Background(), tiny(t), Options{Context: 4096})
	if err != nil {
		t.Fatal(err)
	}
	endless := Request{Prompt: []int32{384}, MaxTokens: -1, Sampling: greedy()}
	var jobs []*Job
	for range 3 {
		j, err := e.Submit(context.Background(), endless)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	jobs[0].Next()
	mustClose(t, e)
	mustClose(t, e) // twice is fine
	for i, j := range jobs {
		if r := within(t, "a job of a closed engine", func() result { return collect(j) }); !errors.Is(r.err, ErrClosed) || r.reason != ReasonFailure {
			t.Errorf("job %d ended with %s, %v", i, r.reason, r.err)
		}
	}
	if _, err := e.Submit(context.Background(), endless); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed engine took a request: %v", err)
	}
}

// hostile is a mask that panics, or lets nothing pass.
type hostile struct{ panics bool }

func (h hostile) Allowed(int32) bool {
	if h.panics {
		panic("mask")
	}
	return false
}
func (h hostile) Apply([]float32) bool { return h.Allowed(0) }

// Code of a request that panics or fails ends that request; those beside it in the same step go on undisturbed.
func TestHostileCallbacks(t *testing.T) {
	e := open(t, tiny(t), Options{Sequences: 3})
	calm := Request{Prompt: []int32{384, 383, 256}, MaxTokens: 60, Sampling: greedy(), Fresh: true}
	want := mustRun(t, e, calm)
	for _, c := range []struct {
		name   string
		change func(r *Request)
		want   error
		text   string
	}{
		{"a logits callback", func(r *Request) {
			r.Logits = func(pos int, _ []float32) {
				if pos == 1 {
					panic("logits")
				}
			}
		}, ErrInternal, "logits"},
		{"a mask", func(r *Request) { r.Mask = hostile{true} }, ErrInternal, "mask"},
		{"a mask that lets nothing pass", func(r *Request) { r.Mask = hostile{} }, sample.ErrNoAllowedToken, ""},
		{"an end test", func(r *Request) { r.IsEnd = func(int32) bool { panic("end") } }, ErrInternal, "end"},
	} {
		before, err := e.Submit(context.Background(), calm)
		if err != nil {
			t.Fatal(err)
		}
		before.Next()
		r := Request{Prompt: []int32{1, 2, 3}, MaxTokens: 4, Sampling: greedy()}
		c.change(&r)
		bad, err := e.Submit(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		beside, err := e.Submit(context.Background(), calm)
		if err != nil {
			t.Fatal(err)
		}
		got := within(t, c.name, func() result { return collect(bad) })
		if got.reason != ReasonFailure || !errors.Is(got.err, c.want) || !strings.Contains(got.err.Error(), c.text) {
			t.Errorf("%s: %s, %v", c.name, got.reason, got.err)
		}
		if r := collect(before); r.err != nil || len(r.ids) != len(want.ids)-1 { // one was read above
			t.Errorf("%s: the request before it ended with %v after %d tokens", c.name, r.err, len(r.ids))
		}
		r2 := collect(beside)
		if r2.err != nil {
			t.Errorf("%s: the request beside it ended with %v", c.name, r2.err)
		}
		mustIDs(t, c.name+", beside it", r2.ids, want.ids)
	}
	mustIDs(t, "after all", mustRun(t, e, calm).ids, want.ids)
}

// An engine leaves no goroutine behind, however its requests ended.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		e, err := Open(context.Background(), tiny(t), Options{Threads: 3, Sequences: 2})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		for i := range 4 {
			r := Request{Prompt: []int32{384, int32(i)}, MaxTokens: 3 + 1000*(i%2), Sampling: greedy()}
			if _, err := e.Submit(ctx, r); err != nil { // dropped unread
				t.Fatal(err)
			}
		}
		mustRun(t, e, Request{Prompt: []int32{1}, MaxTokens: 1, Sampling: greedy()})
		mustClose(t, e)
		cancel()
		if _, err := Open(context.Background(), small(t), Options{Budget: 1}); err == nil {
			t.Fatal("no budget is enough")
		}
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, before there were %d\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// A decode step of one sequence, sampling and delivery included, allocates nothing once it is under way.
func TestStepAllocatesNothing(t *testing.T) {
	if debugChecks || raced {
		t.Skip("debug builds check every graph, the race detector allocates on its own")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	e := open(t, tiny(t), Options{Threads: 2})
	j, err := e.Submit(context.Background(), Request{Prompt: []int32{384, 383}, MaxTokens: 600, Sampling: sample.Default()})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		j.Next()
	}
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	const steps = 400
	for range steps {
		j.Next()
	}
	runtime.ReadMemStats(&to)
	collect(j)
	if n := to.Mallocs - from.Mallocs; n > steps/10 {
		t.Errorf("%d allocations in %d steps", n, steps)
	}
}

// The phases of a request are counted.
func TestStats(t *testing.T) {
	e := open(t, tiny(t), Options{})
	prompt := []int32{1534, 295, 198, 464, 345, 256, 339}
	first := mustRun(t, e, Request{Prompt: prompt, MaxTokens: 4, Sampling: greedy()})
	s := first.stats
	if s.Prompt != len(prompt) || s.Cached != 0 || s.Generated != 4 || s.Prefill <= 0 || s.Decode <= 0 || s.Queued < 0 {
		t.Errorf("stats %+v", s)
	}
	if s = mustRun(t, e, Request{Prompt: prompt, MaxTokens: 4, Sampling: greedy()}).stats; s.Cached != len(prompt)-1 {
		t.Errorf("the same prompt again: %d tokens found in the cells, want %d", s.Cached, len(prompt)-1)
	}
	if s = mustRun(t, e, Request{Prompt: prompt, MaxTokens: 4, Sampling: greedy(), Fresh: true}).stats; s.Cached != 0 {
		t.Errorf("a fresh request found %d tokens", s.Cached)
	}
	end := first.ids[1]
	r := mustRun(t, e, Request{Prompt: prompt, MaxTokens: 4, Sampling: greedy(), IsEnd: func(id int32) bool { return id == end }})
	if r.reason != ReasonStop || len(r.ids) != 1 || r.stats.Generated != 2 {
		t.Errorf("ended by its second token: %+v", r)
	}
}

// The exported graph is the one that runs: assigned, fused and legal.
func TestEngineGraph(t *testing.T) {
	e := open(t, tiny(t), Options{})
	for tokens, phase := range map[int]graph.Phase{1: graph.Decode, 9: graph.Prefill} {
		g, targets, err := e.Graph(tokens)
		if err != nil {
			t.Fatal(err)
		}
		if err := graph.Check(g); err != nil {
			t.Error(err)
		}
		if g.Params.Phase != phase || g.Params.Tokens != tokens || len(targets) == 0 {
			t.Errorf("params %+v, targets %v", g.Params, targets)
		}
		fused := false
		for i := range g.Nodes {
			if n := &g.Nodes[i]; !n.Dead {
				fused = fused || n.Op.Kind() == "gate_up"
				if n.Backend < 0 {
					t.Errorf("%s is not assigned", g.Describe(i))
				}
			}
		}
		if !fused {
			t.Error("nothing is fused")
		}
	}
}
