package team

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Limits of a team. A request beyond one is an error of Run, or is brought down to it by New (workers, chunk).
const (
	// MaxWorkers is the largest team.
	MaxWorkers = 1024
	// MaxTasks is the largest number of tasks in one step. Claims may overshoot the number of units by one per worker, and
	// the sum must fit in 32 bits.
	MaxTasks = math.MaxInt32
	// MaxScratch is the most scratch memory per worker, in bytes.
	MaxScratch = 1 << 30
)

// DefaultSpin is how long a worker without work spins before it parks, unless [Spin] says otherwise: longer than most
// waits within a run, and about what waking a parked worker costs. Spinning longer loses more on a busy machine than it
// gains on an idle one (BenchmarkBusy).
const DefaultSpin = 50 * time.Microsecond

var (
	// ErrPanic is wrapped by the error of a Run in which a step panicked.
	ErrPanic = errors.New("team: step panicked")
	// ErrTasks is wrapped by the error of a Run in which a step gave a task count below 0 or above MaxTasks.
	ErrTasks = errors.New("team: bad task count")
	// ErrStopped is returned by RunUntil when it was told to stop.
	ErrStopped = errors.New("team: stopped")
	// ErrClosed is returned by Run and EnsureScratch after Close.
	ErrClosed = errors.New("team: closed")
	// ErrScratch is wrapped by the error of EnsureScratch for a size below 0 or above MaxScratch.
	ErrScratch = errors.New("team: bad scratch size")
)

// A Step is one parallel stage of a program. Run calls Tasks once for each step, on one worker, after every task of the
// preceding step is done and before any task of this one: so the count may depend on what earlier steps wrote. Do is
// called exactly once for each task in [0, Tasks()), on any worker, in any order.
type Step interface {
	Tasks() int
	Do(w *Worker, task int)
}

// A Chunked step says how many consecutive tasks one claim takes: for tasks so small that claiming them one by one would
// show. Chunk is called right after Tasks; a value below 1 means the team's default. A chunk is done by one worker in
// rising order.
type Chunked interface {
	Step
	Chunk() int
}

// A Worker is what a task may use of the worker that runs it.
type Worker struct {
	// ID is in [0, Size()). No two tasks run on one ID at a time.
	ID int
	// Scratch belongs to this worker and starts at a multiple of 64 bytes. Its content is undefined at the start of a
	// task. See [ScratchBytes] and [Team.EnsureScratch].
	Scratch []byte

	team *Team
	sem  chan struct{} // a token wakes the worker; at most one is ever under way
	_    [64]byte      // the flag below is polled by others
	// parked is 1 from just before the worker parks until somebody claims the right to wake it.
	parked atomic.Uint32
	_      [60]byte

	step     int    // step of the task under way, for errors
	task     int    // task under way, -1 in Tasks or Chunk
	unit     uint32 // unit under way
	counted  uint32 // units done in the open step, not yet reported
	inUnit   bool   // between the claim of a unit and its end
	owner    bool   // between closing a step and opening the next: this worker alone advances the run
	unitOpen bool   // the opener keeps unit 0 of the step that it opened
}

// A Team is a set of workers. Its methods may be called from any goroutine; runs are one at a time.
type Team struct {
	mu      sync.Mutex // held for the whole of a Run
	closed  bool
	workers []*Worker
	exited  sync.WaitGroup
	chunk   int
	spin    time.Duration
	epoch   time.Time // origin of now

	// Of the run and the step that is open; written by the worker that advances the run, read by those that hold a claim.
	steps []Step
	stop  func() bool // nil for never
	cur   int
	tasks int
	size  int    // tasks in one unit
	units uint32 // of the open step

	fault fault

	_ [128]byte
	// work is units<<32 | claimed of the open step. claimed >= units: nothing to claim.
	work atomic.Uint64
	// finished is 1 when the run is over (read by worker 0 alone); quit tells the helpers to return.
	finished, quit atomic.Uint32
	_              [112]byte
	done           atomic.Uint32 // units reported in the open step
	_              [124]byte
	sleepers       atomic.Int32 // workers with parked set, or about to set it
	crowded        atomic.Bool  // more workers than GOMAXPROCS: spin little
	_              [120]byte
}

// An Option sets up a team.
type Option func(*config)

type config struct {
	scratch, chunk int
	spin           time.Duration
}

// ScratchBytes gives each worker n bytes of scratch memory (0 to MaxScratch; more is brought down to it).
func ScratchBytes(n int) Option { return func(c *config) { c.scratch = min(max(n, 0), MaxScratch) } }

// Chunk makes a claim take n consecutive tasks (at least 1) of any step that does not say otherwise; see [Chunked].
func Chunk(n int) Option { return func(c *config) { c.chunk = min(max(n, 1), MaxTasks) } }

// Spin sets how long a worker without work spins before it parks. 0 parks at once.
func Spin(d time.Duration) Option { return func(c *config) { c.spin = max(d, 0) } }

// New starts a team of n workers, one of which is whoever calls Run. n <= 0 means DefaultThreads(); more than MaxWorkers
// is brought down to it. Close it to stop its goroutines.
func New(n int, opts ...Option) *Team {
	if n <= 0 {
		n = DefaultThreads()
	}
	c := config{chunk: 1, spin: DefaultSpin}
	for _, o := range opts {
		o(&c)
	}
	t := &Team{chunk: c.chunk, spin: c.spin, epoch: time.Now(), workers: make([]*Worker, min(n, MaxWorkers))}
	for i := range t.workers {
		t.workers[i] = &Worker{ID: i, Scratch: aligned(c.scratch), team: t, sem: make(chan struct{}, 1)}
	}
	t.exited.Add(len(t.workers) - 1)
	for _, w := range t.workers[1:] {
		go w.help()
	}
	return t
}

// aligned returns n zero bytes that start at a multiple of 64.
func aligned(n int) []byte {
	if n == 0 {
		return nil
	}
	b := make([]byte, n+63)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[off : off+n : off+n]
}

// Size returns the number of workers, the caller of Run included.
func (t *Team) Size() int { return len(t.workers) }

// EnsureScratch grows every worker's scratch to at least n bytes. It waits for a run under way; what the scratch held is
// lost. The error wraps ErrScratch or is ErrClosed.
func (t *Team) EnsureScratch(n int) error {
	if n < 0 || n > MaxScratch {
		return fmt.Errorf("%w: %d bytes, limit %d", ErrScratch, n, MaxScratch)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	for _, w := range t.workers {
		if len(w.Scratch) < n {
			w.Scratch = aligned(n)
		}
	}
	return nil
}

// Close waits for a run under way, stops the workers and returns when their goroutines have ended. Closing again does
// nothing.
func (t *Team) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	t.quit.Store(1)
	for _, w := range t.workers[1:] {
		w.wake()
	}
	t.exited.Wait()
}

// Run runs the steps in order and returns when all are done. A panic in a step ends the run: tasks under way finish, the
// rest are not started (a unit of several tasks counts as one, see [Chunked]), and the first panic is returned as a *PanicError, which wraps ErrPanic. A bad task count ends it
// likewise, with an error that wraps ErrTasks. The team stays usable. Run allocates nothing unless it fails.
//
// Concurrent calls wait for each other. The slice and the steps are not kept after Run returns.
func (t *Team) Run(steps []Step) error { return t.RunUntil(steps, nil) }

// RunUntil is Run that asks stop, unless it is nil, before each step, on any worker, and ends with ErrStopped where it
// reports true.
func (t *Team) RunUntil(steps []Step, stop func() bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	w := t.workers[0]
	t.steps, t.stop, t.cur = steps, stop, -1
	t.finished.Store(0)
	if crowded := len(t.workers) > runtime.GOMAXPROCS(0); crowded != t.crowded.Load() {
		t.crowded.Store(crowded)
	}
	w.owner = true
	// A task may end the calling goroutine (runtime.Goexit): even so the run is over before the team is free again.
	defer func() {
		w.finish()
		t.fault.take() //nolint:errcheck // the return below has taken it, unless the goroutine ends here
	}()
	w.finish()
	return t.fault.take()
}

// finish is worker 0's part of a run, until the run is over.
func (w *Worker) finish() {
	t := w.team
	for t.finished.Load() == 0 {
		w.serve()
		if t.finished.Load() == 0 {
			w.wait()
		}
	}
	t.steps, t.stop = nil, nil
}

// help is the life of a worker other than 0.
func (w *Worker) help() {
	t := w.team
	defer func() {
		if t.quit.Load() == 0 { // A task ended this goroutine (runtime.Goexit): another takes its place.
			go w.help()
			return
		}
		t.exited.Done()
	}()
	for t.quit.Load() == 0 {
		w.serve()
		w.wait()
	}
}

// ready reports whether there is something for w to do, or its waiting is over.
func (w *Worker) ready() bool {
	t := w.team
	if v := t.work.Load(); uint32(v) < uint32(v>>32) {
		return true
	}
	if w.ID == 0 {
		return t.finished.Load() != 0
	}
	return t.quit.Load() != 0
}
