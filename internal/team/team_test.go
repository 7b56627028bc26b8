package team

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// fn is a step of n tasks.
type fn struct {
	n  int
	do func(w *Worker, task int)
}

func (f *fn) Tasks() int             { return f.n }
func (f *fn) Do(w *Worker, task int) { f.do(w, task) }

// dyn counts its tasks when asked.
type dyn struct {
	tasks, chunk func() int
	do           func(w *Worker, task int)
}

func (d *dyn) Tasks() int             { return d.tasks() }
func (d *dyn) Chunk() int             { return d.chunk() }
func (d *dyn) Do(w *Worker, task int) { d.do(w, task) }

func sizes() []int { return []int{1, 2, 3, 8, 33} }

// TestExactness runs programs of random task counts, chunks and pauses. Every task of step i checks that all of step i-1
// is done, through plain memory, so that the race detector sees the order too.
func TestExactness(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, n := range sizes() {
		for _, spin := range []time.Duration{0, 20 * time.Microsecond, DefaultSpin} {
			t.Run(fmt.Sprintf("workers=%d/spin=%v", n, spin), func(t *testing.T) {
				tm := New(n, Spin(spin), Chunk(1+rng.IntN(3)))
				defer tm.Close()
				for range 20 {
					checkProgram(t, tm, rng)
				}
			})
		}
	}
}

func checkProgram(t *testing.T, tm *Team, rng *rand.Rand) {
	t.Helper()
	counts := []int{0, 1, 1, 2, 3, tm.Size(), tm.Size() + 1, 50}
	var steps []Step
	var cells [][]int // cells[i][task] is the number of times it ran; plain memory
	busy := make([]atomic.Int32, tm.Size())
	var bad atomic.Int32
	for i := range 60 {
		n := counts[rng.IntN(len(counts))]
		cells = append(cells, make([]int, n))
		lazy, load := rng.IntN(8) == 0, rng.IntN(3)*1000
		do := func(w *Worker, task int) {
			if busy[w.ID].Add(1) != 1 {
				bad.Add(1)
			}
			if i > 0 {
				for _, c := range cells[i-1] {
					if c != 1 {
						bad.Add(1)
					}
				}
			}
			if lazy {
				runtime.Gosched()
			}
			work(load)
			cells[i][task]++
			busy[w.ID].Add(-1)
		}
		if rng.IntN(2) == 0 {
			steps = append(steps, &fn{n, do})
		} else {
			chunk := rng.IntN(5) // 0: the team's
			steps = append(steps, &dyn{func() int { return n }, func() int { return chunk }, do})
		}
	}
	if err := tm.Run(steps); err != nil {
		t.Fatal(err)
	}
	if bad.Load() != 0 {
		t.Fatalf("%d tasks ran before the preceding step was done, or two at once on one worker", bad.Load())
	}
	for i := range cells {
		for task, c := range cells[i] {
			if c != 1 {
				t.Fatalf("step %d task %d ran %d times", i, task, c)
			}
		}
	}
}

// TestTasksAfterPrecedingStep has each count depend on what the preceding step wrote.
func TestTasksAfterPrecedingStep(t *testing.T) {
	for _, n := range sizes() {
		tm := New(n)
		var made atomic.Int32
		var steps []Step
		var seen []int
		for i := range 40 {
			steps = append(steps, &dyn{
				tasks: func() int { seen = append(seen, int(made.Swap(0))); return i % 7 },
				chunk: func() int { return 0 },
				do:    func(*Worker, int) { made.Add(1) },
			})
		}
		if err := tm.Run(steps); err != nil {
			t.Fatal(err)
		}
		tm.Close()
		if len(seen) != len(steps) {
			t.Fatalf("workers=%d: Tasks called %d times for %d steps", n, len(seen), len(steps))
		}
		for i := 1; i < len(seen); i++ {
			if want := (i - 1) % 7; seen[i] != want {
				t.Fatalf("workers=%d: step %d saw %d tasks done before it, want %d", n, i, seen[i], want)
			}
		}
	}
}

// TestChunkOrder: the tasks of a chunk run on one worker in rising order.
func TestChunkOrder(t *testing.T) {
	const n, chunk = 103, 10
	tm := New(4, Chunk(chunk))
	defer tm.Close()
	by := make([]int, n)
	last := [4]int{-1, -1, -1, -1}
	step := &fn{n, func(w *Worker, task int) {
		if task%chunk != 0 && last[w.ID] != task-1 {
			panic(fmt.Sprintf("task %d after %d", task, last[w.ID]))
		}
		last[w.ID], by[task] = task, w.ID
	}}
	if err := tm.Run([]Step{step}); err != nil {
		t.Fatal(err)
	}
	for i := range by {
		if by[i] != by[i-i%chunk] {
			t.Fatalf("task %d ran on worker %d, its chunk on %d", i, by[i], by[i-i%chunk])
		}
	}
}

var errBoom = errors.New("boom")

func TestPanic(t *testing.T) {
	for _, n := range sizes() {
		tm := New(n)
		for round := range 30 {
			var after atomic.Int32
			ok := func(*Worker, int) {}
			steps := []Step{
				&fn{1, ok},
				&fn{round%4 + 1, ok},
				&fn{round + 1, func(_ *Worker, task int) {
					if task == round/2 {
						panic(errBoom)
					}
				}},
				&fn{5, func(*Worker, int) { after.Add(1) }},
			}
			err := tm.Run(steps)
			var pe *PanicError
			if !errors.Is(err, ErrPanic) || !errors.Is(err, errBoom) || !errors.As(err, &pe) {
				t.Fatalf("workers=%d: %v, want ErrPanic and the value", n, err)
			}
			if pe.Step != 2 || pe.Task != round/2 || pe.Worker < 0 || pe.Worker >= n {
				t.Fatalf("step %d task %d worker %d, want step 2 task %d", pe.Step, pe.Task, pe.Worker, round/2)
			}
			if !strings.Contains(string(pe.Stack), "TestPanic") || !strings.Contains(err.Error(), "step 2") {
				t.Fatalf("error without stack or step: %v", err)
			}
			if after.Load() != 0 {
				t.Fatal("a step ran after the panic")
			}
			if err := tm.Run([]Step{steps[0], steps[3]}); err != nil || after.Load() != 5 {
				t.Fatalf("workers=%d: after a panic: %v, %d tasks of 5", n, err, after.Load())
			}
		}
		tm.Close()
	}
}

// TestPanicEverywhere: all tasks panic at once, and a nil step, and Tasks and Chunk that panic.
func TestPanicEverywhere(t *testing.T) {
	tm := New(3)
	defer tm.Close()
	boom := func(*Worker, int) { panic("all") }
	one := func() int { return 9 }
	bad := func() int { panic("count") }
	for name, c := range map[string]struct {
		step       Step
		task, then int
	}{
		"many":  {step: &fn{64, boom}, task: 0},
		"one":   {step: &fn{1, boom}, task: 0},
		"nil":   {step: nil, task: -1},
		"tasks": {step: &dyn{bad, one, boom}, task: -1},
		"chunk": {step: &dyn{one, bad, boom}, task: -1},
	} {
		for range 20 {
			err := tm.Run([]Step{&fn{0, boom}, c.step})
			var pe *PanicError
			if !errors.As(err, &pe) || pe.Step != 1 || pe.Task < c.task {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	var ran atomic.Int32
	if err := tm.Run([]Step{&fn{64, func(*Worker, int) { ran.Add(1) }}}); err != nil || ran.Load() != 64 {
		t.Fatalf("afterwards: %v, %d tasks of 64", err, ran.Load())
	}
}

// TestGoexit: a task that ends its goroutine fails the run, on a helper and on the caller.
func TestGoexit(t *testing.T) {
	tm := New(3)
	defer tm.Close()
	for round := range 20 {
		var returned atomic.Bool
		ended := make(chan error, 1)
		go func() {
			defer close(ended)
			err := tm.Run([]Step{&fn{3 * (round % 2), func(*Worker, int) {}}, &fn{3, func(_ *Worker, task int) {
				if task == round%3 {
					runtime.Goexit()
				}
			}}})
			returned.Store(true)
			ended <- err
		}()
		// On the caller's goroutine Run does not return; elsewhere it gives the error.
		if err := <-ended; returned.Load() && !errors.Is(err, ErrPanic) {
			t.Fatalf("round %d: %v, want ErrPanic", round, err)
		}
		var ran atomic.Int32
		if err := tm.Run([]Step{&fn{10, func(*Worker, int) { ran.Add(1) }}}); err != nil || ran.Load() != 10 {
			t.Fatalf("round %d: afterwards: %v, %d tasks of 10", round, err, ran.Load())
		}
	}
}

func TestBadTasks(t *testing.T) {
	tm := New(2)
	defer tm.Close()
	none := func(*Worker, int) {}
	if err := tm.Run([]Step{&fn{1, none}, &fn{-1, none}}); !errors.Is(err, ErrTasks) || !strings.Contains(err.Error(), "step 1") {
		t.Fatalf("-1 tasks: %v", err)
	}
	big := MaxTasks
	if err := tm.Run([]Step{&fn{big + 1, none}}); !errors.Is(err, ErrTasks) {
		t.Fatalf("MaxTasks+1 tasks: %v", err)
	}
	// At the limit: claimed in two units, of which the first panics, as 2^31 calls would take too long.
	step := &dyn{func() int { return big }, func() int { return big - 1 }, func(_ *Worker, task int) { panic(task) }}
	if err := tm.Run([]Step{step}); !errors.Is(err, ErrPanic) {
		t.Fatalf("MaxTasks tasks: %v", err)
	}
	if err := tm.Run([]Step{&fn{big, func(_ *Worker, task int) { panic(task) }}}); !errors.Is(err, ErrPanic) {
		t.Fatalf("MaxTasks units: %v", err)
	}
}

func TestScratch(t *testing.T) {
	tm := New(3, ScratchBytes(100))
	defer tm.Close()
	check := func(n int) {
		t.Helper()
		for _, w := range tm.workers {
			if len(w.Scratch) != n || uintptr(unsafe.Pointer(unsafe.SliceData(w.Scratch)))%64 != 0 {
				t.Fatalf("worker %d: %d bytes at %p, want %d at a multiple of 64", w.ID, len(w.Scratch), w.Scratch, n)
			}
		}
	}
	check(100)
	for _, c := range []struct{ ask, have int }{{50, 100}, {101, 101}, {0, 101}, {4096, 4096}} {
		if err := tm.EnsureScratch(c.ask); err != nil {
			t.Fatal(err)
		}
		check(c.have)
	}
	for _, n := range []int{-1, MaxScratch + 1} {
		if err := tm.EnsureScratch(n); !errors.Is(err, ErrScratch) {
			t.Errorf("EnsureScratch(%d): %v", n, err)
		}
	}
	for _, c := range []struct{ ask, have int }{{-1, 0}, {MaxScratch, MaxScratch}, {MaxScratch + 1, MaxScratch}} {
		var cfg config
		if ScratchBytes(c.ask)(&cfg); cfg.scratch != c.have {
			t.Errorf("ScratchBytes(%d): %d bytes, want %d", c.ask, cfg.scratch, c.have)
		}
	}
}

func TestClose(t *testing.T) {
	runtime.GC()
	before := runtime.NumGoroutine()
	for i := range 50 {
		tm := New(i%5+1, Spin(time.Duration(i%3)*20*time.Microsecond))
		if i%2 == 0 {
			if err := tm.Run([]Step{&fn{7, func(*Worker, int) {}}}); err != nil {
				t.Fatal(err)
			}
		}
		if i%4 == 0 {
			time.Sleep(time.Millisecond) // parked
		}
		tm.Close()
		tm.Close()
		if err := tm.Run(nil); !errors.Is(err, ErrClosed) {
			t.Fatalf("Run after Close: %v", err)
		}
		if err := tm.EnsureScratch(1); !errors.Is(err, ErrClosed) {
			t.Fatalf("EnsureScratch after Close: %v", err)
		}
	}
	// A goroutine is counted until just after its last statement.
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct{ ask, have int }{{1, 1}, {3, 3}, {0, DefaultThreads()}, {-4, DefaultThreads()}, {MaxWorkers, MaxWorkers}, {MaxWorkers + 1, MaxWorkers}} {
		tm := New(c.ask)
		if tm.Size() != c.have {
			t.Errorf("New(%d): %d workers, want %d", c.ask, tm.Size(), c.have)
		}
		tm.Close()
	}
}

// TestConcurrentRuns: runs from many goroutines take turns.
func TestConcurrentRuns(t *testing.T) {
	tm := New(3)
	defer tm.Close()
	var plain int
	errs := make(chan error)
	for range 8 {
		go func() {
			var err error
			for range 50 {
				err = errors.Join(err, tm.Run([]Step{&fn{4, func(*Worker, int) {}}, &fn{1, func(*Worker, int) { plain++ }}}))
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if plain != 400 {
		t.Fatalf("%d runs, want 400", plain)
	}
}

// TestFewProcs: more workers than processors still finish, with and without spinning.
func TestFewProcs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, spin := range []time.Duration{0, 50 * time.Microsecond} {
		tm := New(9, Spin(spin))
		var ran atomic.Int32
		steps := make([]Step, 100)
		for i := range steps {
			steps[i] = &fn{20, func(*Worker, int) { ran.Add(1); runtime.Gosched() }}
		}
		if err := tm.Run(steps); err != nil || ran.Load() != 2000 {
			t.Fatalf("%v, %d tasks of 2000", err, ran.Load())
		}
		tm.Close()
	}
}

// TestCollectorDuringRun: spinning and working goroutines let the collector stop the world.
func TestCollectorDuringRun(t *testing.T) {
	tm := New(4, Spin(time.Second))
	defer tm.Close()
	stop := make(chan struct{})
	collected := make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				collected <- n
				return
			default:
				runtime.GC()
				n++
			}
		}
	}()
	steps := make([]Step, 50)
	for i := range steps {
		steps[i] = &fn{8, func(*Worker, int) { work(2000) }}
	}
	for range 20 {
		if err := tm.Run(steps); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if n := <-collected; n == 0 {
		t.Fatal("no collection during 1000 steps")
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, spin := range []time.Duration{0, DefaultSpin} {
			tm := New(n, Spin(spin))
			steps := make([]Step, 100)
			for i := range steps {
				steps[i] = &fn{i % 5, func(*Worker, int) {}}
			}
			allocs := testing.AllocsPerRun(50, func() {
				if err := tm.Run(steps); err != nil {
					t.Fatal(err)
				}
			})
			tm.Close()
			if allocs != 0 {
				t.Errorf("workers=%d spin=%v: %v allocations a run", n, spin, allocs)
			}
		}
	}
}

var workSink atomic.Uint64

// work computes for about n nanoseconds.
func work(n int) {
	x := uint64(n)
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	if x == 0 {
		workSink.Add(1)
	}
}

// TestRunUntil stops before a step, whichever worker would open it, and leaves the team usable.
func TestRunUntil(t *testing.T) {
	for _, n := range sizes() {
		tm := New(n)
		for _, after := range []int32{0, 1, 5} {
			var done, asked atomic.Int32
			steps := make([]Step, 8)
			for i := range steps {
				steps[i] = &fn{3, func(*Worker, int) { done.Add(1) }}
			}
			err := tm.RunUntil(steps, func() bool { return asked.Add(1) > after })
			if !errors.Is(err, ErrStopped) || done.Load() != 3*after {
				t.Errorf("%d workers: %d tasks were done, %v; want those of %d steps and ErrStopped", n, done.Load(), err, after)
			}
			if err := tm.Run(steps); err != nil || done.Load() != 3*after+24 {
				t.Errorf("%d workers: a run after a stop: %v, %d tasks", n, err, done.Load())
			}
		}
		tm.Close()
	}
}
