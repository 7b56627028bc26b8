package team

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A PanicError says where a run ended early. It wraps ErrPanic, and the panic's value where that is an error.
type PanicError struct {
	// Step is the index in the slice given to Run, Task the task, or -1 when Tasks or Chunk panicked.
	Step, Task int
	// Worker is the ID of the worker.
	Worker int
	// Value is the panic's value; nil if the task ended its goroutine (runtime.Goexit).
	Value any
	// Stack is the stack of the panicking goroutine.
	Stack []byte
}

// Error names the step, the task, the worker and the value, and gives the stack.
func (e *PanicError) Error() string {
	v := e.Value
	if v == nil {
		v = "runtime.Goexit called"
	}
	return fmt.Sprintf("%v: step %d, task %d, worker %d: %v\n%s", ErrPanic, e.Step, e.Task, e.Worker, v, e.Stack)
}

// Unwrap returns ErrPanic and the panic's value where that is an error.
func (e *PanicError) Unwrap() []error {
	if err, ok := e.Value.(error); ok {
		return []error{ErrPanic, err}
	}
	return []error{ErrPanic}
}

func newPanicError(w *Worker, value any) *PanicError {
	return &PanicError{Step: w.step, Task: w.task, Worker: w.ID, Value: value, Stack: debug.Stack()}
}

// fault keeps the first error of a run.
type fault struct {
	any atomic.Bool
	mu  sync.Mutex
	err error
}

func (f *fault) seen() bool { return f.any.Load() }

func (f *fault) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.any.Store(true)
	}
}

// take returns the error, if any, and clears it. No worker may be in a run.
func (f *fault) take() error {
	if !f.any.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.err
	f.err = nil
	f.any.Store(false)
	return err
}
