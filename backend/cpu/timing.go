package cpu

import (
	"cmp"
	"slices"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/internal/team"
)

// A timing adds up how long the steps of each label take, from the end of the step before to their own end: what a
// label shows includes waiting for its slowest worker.
type timing struct {
	last   time.Time
	totals map[string]*backend.OpTime
}

func newTiming() *timing { return &timing{totals: map[string]*backend.OpTime{}} }

// A clock is a step of one task, which the worker that ended the step before runs on the spot.
type clock struct {
	timing *timing
	total  *backend.OpTime // of the step before; nil at the start of a program
}

func (c *clock) Tasks() int { return 1 }

func (c *clock) Do(*team.Worker, int) {
	now := time.Now()
	if c.total != nil {
		c.total.Calls++
		c.total.Time += now.Sub(c.timing.last)
	}
	c.timing.last = now
}

// interleave puts a clock after every step, and one before the first.
func (t *timing) interleave(steps []team.Step, labels []string) []team.Step {
	timed := []team.Step{&clock{timing: t}}
	for i, s := range steps {
		total := t.totals[labels[i]]
		if total == nil {
			total = &backend.OpTime{Op: labels[i]}
			t.totals[labels[i]] = total
		}
		timed = append(timed, s, &clock{timing: t, total: total})
	}
	return timed
}

// OpTimes is where the time went, the largest first.
func (d *Device) OpTimes() []backend.OpTime {
	if d.timing == nil {
		return nil
	}
	var times []backend.OpTime
	for _, t := range d.timing.totals {
		times = append(times, *t)
	}
	slices.SortFunc(times, func(a, b backend.OpTime) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Op, b.Op))
	})
	return times
}
