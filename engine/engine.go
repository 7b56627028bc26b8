// Package engine runs requests on a model: one scheduler composes each step from the tokens that running sequences need,
// runs it on the device, samples, and delivers.
//
// Everything that generates text drives this engine: a single prompt is a batch of one. One goroutine owns device, cells
// and sequences; callers talk to it through Submit and the Job it returns.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/kv"
	"github.com/minfer-go/minfer/model"
	"github.com/minfer-go/minfer/quant"
	"github.com/minfer-go/minfer/sample"
)

// Errors of opening an engine and of requests; the wrapped text gives the numbers.
var (
	ErrOptions       = errors.New("engine: bad option")
	ErrRequest       = errors.New("engine: bad request")
	ErrContextLength = errors.New("engine: prompt does not fit the context")
	ErrClosed        = errors.New("engine: closed")
	ErrBusy          = errors.New("engine: too many requests wait")
	ErrInternal      = errors.New("engine: internal failure") // a panic while a request was served
)

// Defaults and limits of Options.
const (
	DefaultContext = 4096
	DefaultBatch   = 512
	MaxBatch       = 1 << 16
	MaxThreads     = 1 << 10
	DefaultQueue   = 1 << 10
	MaxSequences   = 1 << 12
	MaxQueue       = 1 << 20
	maxPrograms    = 64 // compiled programs kept
)

// Options configure an engine. The zero value suits a single user.
type Options struct {
	Backends       []string      // fence by name; empty lets every usable backend take part
	Threads        int           // CPU workers; 0 for as many as suit the machine
	Context        int           // KV cells, shared by all sequences; 0 for DefaultContext, at most the model's own context
	Batch          int           // most tokens in one step; 0 for DefaultBatch
	Sequences      int           // most sequences that run at once; 0 for 1
	Queue          int           // most requests that wait to start; 0 for DefaultQueue
	QueueTimeout   time.Duration // how long a request may wait to start; 0 for ever
	CacheType      quant.Type    // element type of KV cells, if CacheTypeSet; otherwise the backend's default
	CacheTypeSet   bool
	F32Activations bool        // reference path: products do not quantize their input
	Budget         int         // bytes for weights, cells and activations together; 0 for no limit
	Fuse           graph.Rules // rewrite rules that may fire, if FuseSet; otherwise all that the environment leaves on
	FuseSet        bool
}

// An Engine serves requests until it is closed.
type Engine struct {
	options  Options
	file     *gguf.File
	model    model.Model
	selected []backend.Backend
	device   backend.Device
	cells    backend.KV
	arena    *kv.Arena
	programs *graph.Cache[backend.Program]
	memory   graph.Memory

	mu         sync.Mutex
	queue      []*Job
	wake       chan struct{} // capacity 1: the queue or a cancellation wants the loop's attention
	closed     bool
	broken     error         // why the engine has given up
	done       chan struct{} // closed when the loop has ended
	running    []*sequence   // owned by the loop
	batch      backend.Batch // owned by the loop, reused
	plan       []portion     // owned by the loop, reused
	prompts    []*sequence   // owned by the loop, reused
	order      []*sequence   // owned by the loop, reused
	seqs       []*kv.Seq     // owned by the loop, reused
	waiting    []*sequence   // owned by the loop: those that gave way
	stalled    int           // owned by the loop: turns without a row
	lastHidden bool          // owned by the loop: the last step gave hidden states
	marked     []uint64      // owned by the loop: for each cell the last count of cells that met it
	mark       uint64        // owned by the loop: counts of cells so far
	scorer     sample.Scorer // owned by the loop
	counters   counters

	prefixes prefixes   // owned by the loop
	sessions []*Session // owned by the loop
	saving   *saving    // owned by the loop: a save of prefixes in progress
	calls    []func()   // work for the loop between steps
	inject   func(place)
	print    func() ([32]byte, error) // tells models apart
}

// Open binds a file to its architecture, loads the weights onto the device and starts the engine. The file must stay
// open until Close. A cancelled context stops loading.
func Open(ctx context.Context, f *gguf.File, o Options) (*Engine, error) {
	m, err := model.Load(f)
	if err != nil {
		return nil, err
	}
	e, err := prepare(m, o)
	if err != nil {
		if e != nil {
			err = errors.Join(err, e.device.Close())
		}
		return nil, err
	}
	e.file = f
	if err := e.load(ctx, f); err != nil {
		return nil, errors.Join(err, e.device.Close())
	}
	go e.loop()
	return e, nil
}

// prepare checks options, opens the device and checks the memory need, all before weights are read. An engine that does
// not fit is returned beside the error, to be asked for its need and closed.
func prepare(m model.Model, o Options) (*Engine, error) {
	c := m.Config()
	if o.Context == 0 {
		o.Context = DefaultContext
	}
	o.Context = min(o.Context, c.Context)
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Sequences == 0 {
		o.Sequences = 1
	}
	if o.Queue == 0 {
		o.Queue = DefaultQueue
	}
	if !o.FuseSet {
		o.Fuse = graph.RulesFromEnv()
	}
	switch {
	case o.Context < 1:
		return nil, fmt.Errorf("%w: context of %d tokens", ErrOptions, o.Context)
	case o.Batch < 1 || o.Batch > MaxBatch:
		return nil, fmt.Errorf("%w: batch of %d tokens, must lie in [1, %d]", ErrOptions, o.Batch, MaxBatch)
	case o.Sequences < 1 || o.Sequences > MaxSequences:
		return nil, fmt.Errorf("%w: %d sequences at once, must lie in [1, %d]", ErrOptions, o.Sequences, MaxSequences)
	case o.Queue < 1 || o.Queue > MaxQueue:
		return nil, fmt.Errorf("%w: queue of %d requests, must lie in [1, %d]", ErrOptions, o.Queue, MaxQueue)
	case o.Threads < 0 || o.Threads > MaxThreads:
		return nil, fmt.Errorf("%w: %d threads, must lie in [1, %d]", ErrOptions, o.Threads, MaxThreads)
	}
	o.Batch = max(min(o.Batch, o.Context), min(o.Sequences, MaxBatch))
	selected, err := backend.Select(o.Backends)
	if err != nil {
		return nil, err
	}
	if o.CacheType, err = cacheType(o, selected[0]); err != nil {
		return nil, err
	}
	device, err := selected[0].Open(backend.Options{Threads: o.Threads, F32Activations: o.F32Activations, Budget: o.Budget})
	if err != nil {
		return nil, err
	}
	e := &Engine{
		options: o, model: m, selected: selected, device: device, programs: graph.NewCache[backend.Program](maxPrograms),
		wake: make(chan struct{}, 1), done: make(chan struct{}), prefixes: newPrefixes(o.Context),
	}
	e.batch.Stop = e.abandoned
	e.print = sync.OnceValues(e.fingerprint)
	e.memory, err = e.fit()
	return e, err
}

// cacheType resolves the element type of KV cells against what the backend reads.
func cacheType(o Options, b backend.Backend) (quant.Type, error) {
	types := b.KVTypes()
	if !o.CacheTypeSet {
		return types[0], nil
	}
	names := ""
	for _, t := range types {
		if t == o.CacheType {
			return t, nil
		}
		names += " " + t.String()
	}
	return 0, fmt.Errorf("%w: KV cache type %s; %s reads:%s", ErrOptions, o.CacheType, b.Name(), names)
}

// Fit answers whether a model fits a memory budget, and what it needs, without loading it. The error wraps
// graph.ErrBudget if it does not fit.
func Fit(f *gguf.File, o Options) (graph.Memory, error) {
	m, err := model.Load(f)
	if err != nil {
		return graph.Memory{}, err
	}
	e, err := prepare(m, o)
	if e == nil {
		return graph.Memory{}, err
	}
	return e.memory, errors.Join(err, e.device.Close())
}

// fit plans the largest step and adds weights and cells.
func (e *Engine) fit() (graph.Memory, error) {
	g, err := e.graph(e.largest())
	if err != nil {
		return graph.Memory{}, err
	}
	weights, err := e.device.WeightBytes(e.model.Weights())
	if err != nil {
		return graph.Memory{}, err
	}
	cells, err := e.device.KVBytes(e.spec())
	if err != nil {
		return graph.Memory{}, err
	}
	return graph.NewPlan(g).Memory(0, weights, cells, e.device.ScratchBytes(g, e.spec()), e.options.Budget)
}

// largest is the Params of the biggest step that the scheduler composes.
func (e *Engine) largest() graph.Params {
	return e.params(e.options.Batch, min(e.options.Sequences, e.options.Batch), graph.Prefill, false)
}

func (e *Engine) spec() backend.KVSpec {
	c := e.model.Config()
	return backend.KVSpec{Layers: c.Layers, KVHeads: c.KVHeads, HeadDim: c.HeadDim, Cells: e.options.Context, Type: e.options.CacheType}
}

// params is the Params of a step.
func (e *Engine) params(tokens, outputs int, phase graph.Phase, hidden bool) graph.Params {
	return graph.Params{
		Tokens: tokens, Outputs: outputs, Phase: phase, Cells: e.options.Context, KVType: e.options.CacheType,
		Hidden: hidden, Fuse: e.options.Fuse, Device: 1, Weights: 1,
	}
}

// source hands a file's tensors to the device.
type source struct{ f *gguf.File }

func (s source) Weight(w graph.Weight) ([]byte, error) {
	t, ok := s.f.Tensor(w.Name)
	if !ok {
		return nil, fmt.Errorf("%w: %s has no tensor %s", model.ErrTensors, s.f.Name(), w.Name)
	}
	return t.Data(), nil
}

func (s source) Done(w graph.Weight) {
	if t, ok := s.f.Tensor(w.Name); ok {
		t.Drop()
	}
}

// load brings weights and cells to the device and compiles the largest step, so that later ones find their memory.
func (e *Engine) load(ctx context.Context, f *gguf.File) error {
	if err := e.device.Load(ctx, e.model.Weights(), source{f}); err != nil {
		return err
	}
	var err error
	if e.cells, err = e.device.NewKV(e.spec()); err != nil {
		return err
	}
	if e.arena, err = kv.NewArena(e.options.Context); err != nil {
		return err
	}
	_, err = e.program(e.largest())
	return err
}

// targets are the backends that take part, as the passes see them.
func (e *Engine) targets() []graph.Target {
	var ts []graph.Target
	for _, b := range e.selected {
		ts = append(ts, b)
	}
	return ts
}

// graph builds, assigns and fuses the graph of a step.
func (e *Engine) graph(p graph.Params) (*graph.Graph, error) {
	g, err := e.model.Build(p)
	if err != nil {
		return nil, err
	}
	targets := e.targets()
	if err := graph.Assign(g, targets); err != nil {
		return nil, err
	}
	graph.Fuse(g, targets)
	if debugChecks {
		if err := graph.Check(g); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// program is the compiled form of a step's graph, from the cache where it is there.
func (e *Engine) program(p graph.Params) (backend.Program, error) {
	return e.programs.Get(p, func(p graph.Params) (backend.Program, error) {
		g, err := e.graph(p)
		if err != nil {
			return nil, err
		}
		if debugChecks {
			again, err := e.graph(p)
			if err != nil || !g.Equal(again) {
				return nil, fmt.Errorf("%w: equal params %+v built unequal graphs (%w)", ErrInternal, p, err)
			}
		}
		plan := graph.NewPlan(g)
		if _, err := plan.Memory(0, e.memory.Weights, e.memory.KV, e.device.ScratchBytes(g, e.spec()), e.options.Budget); err != nil {
			return nil, err // a step with more results than the largest that was planned for
		}
		return e.device.Compile(g, plan, e.cells)
	})
}

// Graph returns the graph of a step as it runs, for export: tokens rows of which the last one gives logits.
func (e *Engine) Graph(tokens int) (*graph.Graph, []graph.Target, error) {
	phase := graph.Prefill
	if tokens == 1 {
		phase = graph.Decode
	}
	g, err := e.graph(e.params(tokens, 1, phase, false))
	return g, e.targets(), err
}

// Model is the bound model.
func (e *Engine) Model() model.Model { return e.model }

// Context is the number of KV cells: the most tokens that prompt and reply of one request can take.
func (e *Engine) Context() int { return e.options.Context }

// Memory is what the engine holds, in bytes.
func (e *Engine) Memory() graph.Memory { return e.memory }

// Info describes the device, for people.
func (e *Engine) Info() string { return e.device.Info() }

// Close ends running requests with ErrClosed and frees the device. It returns when the loop has ended.
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	e.nudge()
	<-e.done
	if first {
		return e.device.Close()
	}
	return nil
}

// nudge wakes the loop.
func (e *Engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
