package team

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// together is a step of one task per worker, each of which waits until all have begun: so each worker has exactly one.
// (Tasks must not wait for each other where a team may be short of workers; here that is what is tested.)
func together(n int, do func(w *Worker)) Step {
	var begun atomic.Int32
	return &fn{n, func(w *Worker, _ int) {
		begun.Add(1)
		for deadline := time.Now().Add(10 * time.Second); begun.Load() < int32(n); runtime.Gosched() {
			if time.Now().After(deadline) {
				panic("not all workers take part")
			}
		}
		do(w)
	}}
}

// settled waits until all helpers are parked, and checks their count.
func settled(t *testing.T, tm *Team) {
	t.Helper()
	want := int32(tm.Size() - 1)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		parked := int32(0)
		for _, w := range tm.workers {
			parked += int32(w.parked.Load())
		}
		n := tm.sleepers.Load()
		if n > want {
			t.Fatalf("%d sleepers of %d helpers", n, want)
		}
		if n == want && parked == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d helpers parked, %d sleepers", parked, want, n)
		}
	}
}

// TestAllWake: a step wakes every parked worker, and the count of sleepers stays right.
func TestAllWake(t *testing.T) {
	for _, n := range []int{2, 8, 33} {
		tm := New(n, Spin(0))
		for range 30 {
			settled(t, tm)
			ran := make([]int, n)
			if err := tm.Run([]Step{together(n, func(w *Worker) { ran[w.ID]++ })}); err != nil {
				t.Fatal(err)
			}
			for id, k := range ran {
				if k != 1 {
					t.Fatalf("worker %d of %d ran %d tasks, want 1", id, n, k)
				}
			}
		}
		settled(t, tm)
		tm.Close()
	}
}

// TestNoNeedlessWake: steps of at most one task wake nobody.
func TestNoNeedlessWake(t *testing.T) {
	tm := New(4, Spin(0))
	defer tm.Close()
	settled(t, tm)
	s := steps(1000, 1, 10)
	for i := range s {
		if i%3 == 0 {
			s[i] = &fn{0, nil}
		}
	}
	if err := tm.Run(s); err != nil {
		t.Fatal(err)
	}
	if n := tm.sleepers.Load(); n != 3 {
		t.Errorf("%d sleepers after steps of one task, want 3", n)
	}
}

// TestFailureOnEachWorker: worker k panics or ends its goroutine while all others hold a task; the run fails, no later
// step begins, and all workers are there for the next.
func TestFailureOnEachWorker(t *testing.T) {
	const n = 4
	for _, goexit := range []bool{false, true} {
		tm := New(n)
		for k := range n {
			var after atomic.Int32
			program := []Step{
				together(n, func(w *Worker) {
					switch {
					case w.ID != k:
						time.Sleep(2 * time.Millisecond) // outlives the failure, and completes the step
					case goexit:
						runtime.Goexit()
					default:
						panic(errBoom)
					}
				}),
				&fn{n, func(*Worker, int) { after.Add(1) }},
				&fn{1, func(*Worker, int) { after.Add(1) }},
			}
			result := make(chan error, 1)
			go func() {
				defer close(result) // Goexit on worker 0 ends this goroutine before Run returns.
				result <- tm.Run(program)
			}()
			err, returned := <-result
			if (!goexit || k != 0) != returned {
				t.Fatalf("worker %d, goexit %v: Run returned: %v", k, goexit, returned)
			}
			var pe *PanicError
			if returned && (!errors.As(err, &pe) || pe.Worker != k || pe.Step != 0 || (pe.Value == nil) != goexit) {
				t.Fatalf("worker %d, goexit %v: %v", k, goexit, err)
			}
			if after.Load() != 0 {
				t.Fatalf("worker %d, goexit %v: %d tasks of later steps ran", k, goexit, after.Load())
			}
			if err := tm.Run([]Step{together(n, func(*Worker) {})}); err != nil {
				t.Fatalf("worker %d, goexit %v: the next run: %v", k, goexit, err)
			}
		}
		tm.Close()
	}
}

// TestNoLostWake runs many short steps on workers that park at once: a wake-up lost between looking and parking would
// leave worker 0 asleep.
func TestNoLostWake(t *testing.T) {
	for _, n := range []int{2, 5} {
		tm := New(n, Spin(0))
		var ran atomic.Int32
		s := make([]Step, 100)
		for i := range s {
			s[i] = &fn{n, func(_ *Worker, task int) {
				ran.Add(1)
				if task > 0 {
					work(i * 20)
				}
			}}
		}
		const runs = 30
		for range runs {
			if err := tm.Run(s); err != nil {
				t.Fatal(err)
			}
		}
		if want := int32(runs * len(s) * n); ran.Load() != want {
			t.Fatalf("%d tasks, want %d", ran.Load(), want)
		}
		tm.Close()
	}
}

// TestParkLooksAgain: a worker that has something to do by the time it parks does not.
func TestParkLooksAgain(t *testing.T) {
	tm := New(2, Spin(0))
	defer tm.Close()
	if err := tm.Run(nil); err != nil {
		t.Fatal(err)
	}
	settled(t, tm)
	back := make(chan struct{})
	go func() {
		tm.workers[0].park() // The run is over, which is what worker 0 would wait for.
		close(back)
	}()
	select {
	case <-back:
	case <-time.After(10 * time.Second):
		tm.workers[0].wake()
		t.Fatal("worker 0 sleeps though the run is over")
	}
	settled(t, tm)
}
