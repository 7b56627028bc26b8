package team

import "fmt"

// serve does tasks, and advances the run where that falls to w, until nothing is left to claim. A panic in a step ends
// the run and is recorded.
func (w *Worker) serve() {
	returned := false
	defer func() {
		if !returned {
			w.failed(recover())
		}
	}()
	for w.owner || w.claim() {
		if w.owner {
			w.advance()
			continue
		}
		for {
			w.doUnit()
			if !w.claim() {
				break
			}
		}
		w.report()
	}
	returned = true
}

// claim takes a unit of the open step. A valid claim keeps the step open until the unit is reported, so that the plain
// fields that describe the step may be read.
func (w *Worker) claim() bool {
	if w.unitOpen {
		w.unitOpen = false
		w.unit, w.inUnit = 0, true
		return true
	}
	t := w.team
	// Look first: adds to a used-up word must not pile up.
	if v := t.work.Load(); uint32(v) >= uint32(v>>32) {
		return false
	}
	v := t.work.Add(1)
	if unit := uint32(v) - 1; unit < uint32(v>>32) {
		w.unit, w.inUnit = unit, true
		return true
	}
	return false
}

// doUnit does the tasks of the claimed unit.
func (w *Worker) doUnit() {
	t := w.team
	step := t.steps[t.cur]
	w.step = t.cur
	first := int(w.unit) * t.size
	for i := range min(t.size, t.tasks-first) {
		w.task = first + i
		step.Do(w, first+i)
	}
	w.inUnit = false
	w.counted++
}

// report adds the units that w did to the step's count. Whoever completes the count owns the run.
func (w *Worker) report() {
	t := w.team
	n := w.counted
	w.counted = 0
	units := t.units // before the add: after it the step may be gone
	if t.done.Add(n) == units {
		w.owner = true
	}
}

// advance opens the next step of two or more units, or ends the run. Smaller steps it does itself.
func (w *Worker) advance() {
	t := w.team
	for t.cur++; t.cur < len(t.steps) && !t.fault.seen(); t.cur++ {
		w.step, w.task = t.cur, -1
		if t.stop != nil && t.stop() {
			t.fault.set(ErrStopped)
			break
		}
		step := t.steps[t.cur]
		n := step.Tasks()
		if n < 0 || n > MaxTasks {
			t.fault.set(fmt.Errorf("%w: step %d (%T): %d tasks, limit %d", ErrTasks, t.cur, step, n, MaxTasks))
			break
		}
		size := t.chunk
		if c, ok := step.(Chunked); ok && n > 1 {
			if k := c.Chunk(); k > 0 {
				size = k
			}
		}
		if n <= size || len(t.workers) == 1 {
			for task := range n {
				w.task = task
				step.Do(w, task)
			}
			continue
		}
		t.tasks, t.size, t.units = n, size, uint32((n-1)/size+1)
		t.done.Store(0)
		w.owner, w.unitOpen = false, true
		// The opener keeps unit 0.
		t.work.Store(uint64(t.units)<<32 | 1)
		t.wakeSome()
		return
	}
	w.owner = false
	w.endRun()
}

// endRun tells worker 0 that the run is over. Nothing of the run may be touched after it: the next may have begun.
func (w *Worker) endRun() {
	t := w.team
	t.finished.Store(1)
	if w.ID != 0 {
		t.workers[0].wake()
	}
}

// failed ends the run after a panic (value is what recover returned) or a Goexit (nil) in a step, called on w.
func (w *Worker) failed(value any) {
	t := w.team
	t.fault.set(newPanicError(w, value))
	if w.owner {
		w.owner = false
		w.endRun()
		return
	}
	if !w.inUnit {
		return
	}
	// The unit that failed keeps the step open, so the word is this step's: take all that is unclaimed, and count it done.
	w.inUnit, w.unitOpen = false, false
	w.counted++
	v := t.work.Swap(uint64(1)<<32 | 1)
	if units, claimed := uint32(v>>32), uint32(v); claimed < units {
		w.counted += units - claimed
	}
	w.report()
	if w.owner {
		w.owner = false
		w.endRun()
	}
}
