package team

import (
	"runtime"
	"time"
)

const (
	// pausesPerLook is the number of pause instructions between two looks at the work word. A pause is 10 to 150 cycles.
	pausesPerLook = 1
	// looksPerClock is the number of looks between two readings of the clock, which costs some 40 ns.
	looksPerClock = 32
	// goschedEvery is how often a spinning worker lets other goroutines run. Gosched takes a lock of the scheduler, so
	// that a large team must not do it at every look.
	goschedEvery = 10 * time.Microsecond
	// crowdedYields is how often a worker lets others run before it parks, in a team larger than GOMAXPROCS.
	crowdedYields = 4
	// wakes is how many workers one worker wakes for a step.
	wakes = 2
)

// wait returns when w is ready, or spuriously.
func (w *Worker) wait() {
	if !w.spin() {
		w.park()
	}
}

// spin reports whether w became ready within the team's spin time.
func (w *Worker) spin() bool {
	t := w.team
	if t.crowded.Load() {
		for range crowdedYields {
			if w.ready() {
				return true
			}
			runtime.Gosched()
		}
		return w.ready()
	}
	if t.spin == 0 {
		return w.ready()
	}
	var start, yielded time.Duration
	for {
		for range looksPerClock {
			if w.ready() {
				return true
			}
			pause(pausesPerLook)
		}
		now := time.Since(t.epoch)
		switch {
		case start == 0:
			start, yielded = now, now
		case now-start >= t.spin:
			return w.ready()
		case now-yielded >= goschedEvery:
			runtime.Gosched()
			yielded = time.Since(t.epoch)
		}
	}
}

// park blocks until another worker wakes w, unless w is ready.
func (w *Worker) park() {
	t := w.team
	w.parked.Store(1)
	t.sleepers.Add(1)
	// Whoever opens a step stores the work word before it reads sleepers: it sees this worker, or this worker sees the step.
	if w.ready() && w.parked.CompareAndSwap(1, 0) {
		t.sleepers.Add(-1)
		return
	}
	<-w.sem
	t.wakeSome()
}

// wake wakes w if it is parked.
func (w *Worker) wake() bool {
	if w.parked.Load() == 0 || !w.parked.CompareAndSwap(1, 0) {
		return false
	}
	w.team.sleepers.Add(-1)
	w.sem <- struct{}{}
	return true
}

// wakeSome wakes a few parked workers if there is work for them.
func (t *Team) wakeSome() {
	if t.sleepers.Load() == 0 {
		return
	}
	n := wakes
	for _, w := range t.workers {
		if v := t.work.Load(); n == 0 || uint32(v) >= uint32(v>>32) {
			return
		}
		if w.wake() {
			n--
		}
	}
}
