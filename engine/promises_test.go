package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/kv"
)

// TestLeastRecentlyUsedGoes: where cells are needed, the kept prompt that was not used for longest is given up, and no more
// than are needed.
func TestLeastRecentlyUsedGoes(t *testing.T) {
	e, _ := openFake(t, Options{Context: 320})
	prompt := func(i int32) []int32 { return slices.Concat([]int32{500 + i}, story(95)) } // 6 of 20 tiles
	cached := func(i int32) int { return mustRun(t, e, ask(prompt(i), 0)).stats.Cached }
	for i := range int32(3) {
		if n := cached(i); n != 0 {
			t.Fatalf("prompt %d: %d tokens cached at first", i, n)
		}
	}
	if n := cached(0); n != 95 { // used again: the second is the oldest now
		t.Errorf("the first prompt: %d tokens cached", n)
	}
	cached(3)
	if n := cached(2); n != 95 {
		t.Errorf("the third prompt: %d tokens cached", n)
	}
	if n := cached(0); n != 95 {
		t.Errorf("the first prompt: %d tokens cached after a fourth came", n)
	}
	if n := cached(1); n != 0 {
		t.Errorf("the second prompt was not used for longest, %d of its tokens are cached", n)
	}
	if n := cached(3); n != 0 { // gone for the second
		t.Errorf("the fourth prompt: %d tokens cached", n)
	}
	mustCount(t, e)
}

// TestSamePromptArrivesLater: a prompt that comes while its like is being evaluated waits for that, wherever it is, and
// evaluates its own end alone.
func TestSamePromptArrivesLater(t *testing.T) {
	for _, at := range []int{1, 3, 9} {
		for _, generate := range []int{0, 5} {
			e, d := openFake(t, Options{Context: 2048, Sequences: 4, Batch: 64})
			later := ask(slices.Concat(story(600), []int32{7, 8, 9}), 5)
			second, rows := make(chan *Job, 1), 0
			onLoop(t, e, func() {
				d.step = func(b *backend.Batch) error {
					if rows += len(b.Tokens); d.steps == at {
						j, err := e.Submit(context.Background(), later)
						if err != nil {
							t.Error(err)
						}
						second <- j
					}
					return nil
				}
			})
			first := mustRun(t, e, ask(story(640), generate))
			r := collect(<-second)
			mustIDs(t, "the second", r.ids, fakeReply(t, later, d.vocab, 2048))
			onLoop(t, e, func() {
				if r.stats.Cached != 600 || rows != 640+3+max(0, generate-1)+4 {
					t.Errorf("after step %d: %d tokens cached, %d rows evaluated, the first has %+v", at, r.stats.Cached, rows, first.stats)
				}
			})
		}
	}
}

// TestQueue: places in the queue are counted, those behind move up when one is cancelled, and what does not fit, or
// waits too long, is refused by name.
func TestQueue(t *testing.T) {
	e, d := openFake(t, Options{Context: 512, Sequences: 1, Queue: 3, QueueTimeout: 400 * time.Millisecond})
	tick := make(chan struct{})
	onLoop(t, e, func() { d.step = func(*backend.Batch) error { <-tick; return nil } })
	submit := func(ctx context.Context) (*Job, error) { return e.Submit(ctx, ask(story(10), 20)) }
	must := func(ctx context.Context) *Job {
		j, err := submit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	first := must(t.Context())
	for e.Counters().Queued > 0 { // it starts
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := []*Job{must(t.Context()), must(ctx), must(t.Context())}
	for i, j := range waiting {
		if n := j.Position(); n != i+1 {
			t.Errorf("request %d has place %d", i, n)
		}
	}
	if _, err := submit(t.Context()); !errors.Is(err, ErrBusy) || err.Error() != "engine: too many requests wait: 3 requests wait already" {
		t.Errorf("one more: %v", err)
	}
	cancel()
	tick <- struct{}{}
	if r := collect(waiting[1]); r.reason != ReasonCancel {
		t.Errorf("the second ended with %s", r.reason)
	}
	if a, b := waiting[0].Position(), waiting[2].Position(); a != 1 || b != 2 {
		t.Errorf("then the first has place %d, the third %d", a, b)
	}
	more := must(t.Context()) // there is room again
	time.Sleep(450 * time.Millisecond)
	close(tick)
	for i, j := range []*Job{waiting[0], waiting[2], more} {
		r := collect(j)
		if r.reason != ReasonFailure || !errors.Is(r.err, ErrBusy) || r.stats.Queued < 400*time.Millisecond {
			t.Errorf("request %d ended with %s, %v, after %s", i, r.reason, r.err, r.stats.Queued)
		}
	}
	if r := collect(first); r.err != nil || len(r.ids) != 20 || first.Position() != 0 {
		t.Errorf("the first ended with %v after %d tokens", r.err, len(r.ids))
	}
	mustCount(t, e)
}

// TestCancelledAtEveryPlace: a request that is cancelled while the loop does this or that for it, or for others, or while a
// call runs, ends with its cause or whole; those beside it notice nothing.
func TestCancelledAtEveryPlace(t *testing.T) {
	for _, where := range []place{atCall, atSweep, atFits, atStart, atPublish, atReap, atCompose, atReady, atTake, atAdd, atAdded, atGiveWay, atGone, atReclaim, atCompute, atAdvance, atFinish, atKeep, atKept} {
		for _, at := range []int{1, 3, 12} {
			e, d := openFake(t, Options{Context: 150, Batch: 24, Sequences: 4})
			requests := crowd()
			var jobs []*Job
			var cancels []context.CancelFunc
			n, fired := 0, false
			onLoop(t, e, func() {
				e.inject = func(p place) {
					if len(cancels) == len(requests) && p == where {
						if n++; n == at {
							fired = true
							cancels[1]()
							cancels[4]()
						}
					}
				}
				for _, r := range requests {
					ctx, cancel := context.WithCancel(context.Background())
					j, err := e.Submit(ctx, r)
					if err != nil {
						t.Error(err)
					}
					jobs, cancels = append(jobs, j), append(cancels, cancel)
				}
			})
			if where == atCall {
				for range at {
					onLoop(t, e, func() {})
				}
			}
			for i, j := range jobs {
				r := within(t, fmt.Sprintf("a request beside a cancellation at %s", where), func() result { return collect(j) })
				want := fakeReply(t, requests[i], d.vocab, 150)
				cancelled := r.reason == ReasonCancel && (i == 1 || i == 4) && errors.Is(r.err, context.Canceled)
				if !cancelled && (r.err != nil || len(r.ids) != len(want)) || !slices.Equal(r.ids, want[:len(r.ids)]) {
					t.Errorf("%s, %d: request %d ended with %s, %v after %d of %d tokens", where, at, i, r.reason, r.err, len(r.ids), len(want))
				}
				cancels[i]()
			}
			onLoop(t, e, func() { e.inject = nil })
			if !fired && at == 1 {
				t.Errorf("%s was not reached", where)
			}
			if c := e.Counters(); c.Faults != 0 || c.Ended[ReasonFailure] != 0 {
				t.Errorf("%s: %+v", where, c)
			}
			mustCount(t, e)
		}
	}
}

// TestContextOfItsOwn: the loop runs no code of a caller's context, however it was made.
func TestContextOfItsOwn(t *testing.T) {
	e, d := openFake(t, Options{Context: 150})
	parent, cancel := context.WithCancel(context.Background())
	defer cancel()
	loop := false
	onLoop(t, e, func() { e.inject = func(place) { loop = true } })
	ctx := &watched{Context: parent, asked: func() {
		if loop {
			t.Error("the loop asks a caller's context")
		}
	}}
	r := ask(story(20), 10)
	j, err := e.Submit(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	onLoop(t, e, func() {})
	mustIDs(t, "the reply", collect(j).ids, fakeReply(t, r, d.vocab, 150))
}

// A watched context tells when it is asked for its error.
type watched struct {
	context.Context
	asked func()
}

func (w *watched) Err() error { w.asked(); return w.Context.Err() }

// BenchmarkShares looks for the beginning of a prompt among many running sequences with long ones.
func BenchmarkShares(b *testing.B) {
	arena, err := kv.NewArena(256 * 4200)
	if err != nil {
		b.Fatal(err)
	}
	const n = 256
	e := &Engine{arena: arena, prefixes: newPrefixes(256 * 4200)}
	e.options.Context = 256 * 4200
	for i := range n {
		prompt := slices.Concat(story(4000), []int32{int32(2000 + i)}, story(90))
		s := &sequence{job: &Job{request: Request{Prompt: prompt}}, cells: arena.NewSeq(), runs: true, looked: true, decoding: true}
		s.marks.add(prompt...)
		if err := s.cells.Append(len(prompt)); err != nil {
			b.Fatal(err)
		}
		s.tokens = prompt
		e.running = append(e.running, s)
	}
	prompt := slices.Concat(story(4000), []int32{2200}, story(60))
	newcomer := func() *sequence {
		q := &sequence{job: &Job{request: Request{Prompt: prompt}}, cells: arena.NewSeq(), pending: prompt}
		q.marks.add(prompt...)
		return q
	}
	b.Run("longest", func(b *testing.B) {
		q := newcomer()
		for b.Loop() {
			if _, n := e.prefixes.longest(prompt, q.marks.at, e.running, len(prompt)-1); n != 4060 {
				b.Fatal(n)
			}
		}
	})
	b.Run("ready", func(b *testing.B) {
		for b.Loop() {
			q := newcomer()
			if !e.ready(q) || q.stats.Cached != 4060 {
				b.Fatal(q.stats)
			}
			q.cells.Free()
		}
	})
	b.Run("fits", func(b *testing.B) {
		q := newcomer()
		for b.Loop() {
			if !e.fits(q, len(prompt)+headroom) {
				b.Fatal("no")
			}
		}
	})
	b.Run("fits-crowded", func(b *testing.B) {
		q := newcomer()
		filler := arena.NewSeq()
		if err := filler.Append(arena.Free()); err != nil {
			b.Fatal(err)
		}
		defer filler.Free()
		for b.Loop() {
			e.fits(q, len(prompt)+headroom)
		}
	})
}

// TestAbandonedStep: a step ends early once the callers of all its sequences have gone, not before; the cells it had written
// are given up and what came before it is kept.
func TestAbandonedStep(t *testing.T) {
	e, d := openFake(t, Options{Context: 400, Batch: 24, Sequences: 2})
	for _, gone := range []int{1, 2} {
		var jobs []*Job
		var cancels []context.CancelFunc
		seen := make(chan bool, 1)
		onLoop(t, e, func() {
			for i := range 2 {
				ctx, cancel := context.WithCancel(context.Background())
				j, err := e.Submit(ctx, ask(append([]int32{int32(gone), int32(i)}, story(100)...), 3))
				if err != nil {
					t.Error(err)
				}
				jobs, cancels = append(jobs, j), append(cancels, cancel)
			}
			steps := 0
			d.step = func(b *backend.Batch) error {
				if steps++; steps != 3 {
					return nil
				}
				for _, cancel := range cancels[:gone] {
					cancel()
				}
				stop := b.Stop()
				seen <- stop
				if stop {
					return backend.ErrStopped
				}
				return nil
			}
		})
		for i, j := range jobs {
			r := within(t, "a request of an abandoned step", func() result { return collect(j) })
			if want := i < gone; want != (r.reason == ReasonCancel && errors.Is(r.err, context.Canceled)) {
				t.Errorf("%d of 2 gone: request %d ended with %s, %v", gone, i, r.reason, r.err)
			}
			cancels[i]()
		}
		if stop := <-seen; stop != (gone == 2) {
			t.Errorf("%d of 2 gone: the step may stop: %v", gone, stop)
		}
		onLoop(t, e, func() { d.step = nil })
	}
	if c := e.Counters(); c.Faults != 0 || c.Ended[ReasonFailure] != 0 {
		t.Errorf("%+v", c)
	}
	// The evaluated beginning of an abandoned prompt serves the next request, with the same reply.
	prompt := append([]int32{2, 0}, story(100)...)
	j, err := e.Submit(context.Background(), ask(prompt, 3))
	if err != nil {
		t.Fatal(err)
	}
	r := collect(j)
	if want := fakeReply(t, ask(prompt, 3), d.vocab, 400); r.err != nil || !slices.Equal(r.ids, want) || r.stats.Cached != 24 {
		t.Errorf("after an abandoned step: %v, %v with %d cached; want %v", r.ids, r.err, r.stats.Cached, want)
	}
	mustCount(t, e)
}

// TestWholeTiles: in an arena full of kept prompts a reply goes on in whole tiles, its keys in one piece each, at the cost of
// the oldest of them; while cells are left over that nobody needs whole, nothing is given up.
func TestWholeTiles(t *testing.T) {
	e, d := openFake(t, Options{Context: 20 * kv.TileCells, Batch: 24})
	for i := range int32(3) { // six tiles and a piece each: no whole tile is left
		mustRun(t, e, ask(slices.Concat([]int32{700 + i}, story(100)), 0))
	}
	kept := func() (n int) {
		onLoop(t, e, func() { n = len(e.prefixes.kept) })
		return n
	}
	if n := kept(); n != 3 {
		t.Fatalf("%d prompts are kept", n)
	}
	pieces := 0
	onLoop(t, e, func() {
		d.step = func(b *backend.Batch) error {
			for _, s := range b.Seqs {
				for p, c := range s.Cells {
					if first := s.Cells[p-p%kv.TileCells]; c != first+int32(p%kv.TileCells) || first%kv.TileCells != 0 {
						pieces++
					}
				}
			}
			return nil
		}
	})
	r := mustRun(t, e, ask(slices.Concat([]int32{710}, story(kv.TileCells-1)), 3*kv.TileCells))
	if pieces > 0 {
		t.Errorf("%d times a cell of %d lay outside of its tile", pieces, len(r.ids))
	}
	if n := kept(); n != 3 { // two of the old ones, and this
		t.Errorf("%d prompts are kept afterwards", n)
	}
	onLoop(t, e, func() { d.step = nil })
	mustCount(t, e)
}
