package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/sample"
)

// crowd is requests that need more cells than there are: they share beginnings, some end early and some give way.
func crowd() []Request {
	var all []Request
	for i := range 6 {
		c := sample.Default()
		c.Seed = uint64(i)
		prompt := slices.Concat(story(40), []int32{int32(900 + i/2)}, story(20+i))
		all = append(all, Request{Prompt: prompt, MaxTokens: 20 + 6*i, Sampling: c})
	}
	return all
}

// onLoop runs f on the loop.
func onLoop(t testing.TB, e *Engine, f func()) {
	t.Helper()
	if err := e.call(context.Background(), func() error { f(); return nil }); err != nil {
		t.Fatal(err)
	}
}

// mustCount checks that the cells are accounted for, and can all be had.
func mustCount(t testing.TB, e *Engine) {
	t.Helper()
	onLoop(t, e, func() {
		if err := e.arena.Check(e.holders()); err != nil {
			t.Errorf("cells leak: %v", err)
		}
		if len(e.running)+len(e.waiting) > 0 {
			t.Errorf("%d run, %d wait", len(e.running), len(e.waiting))
		}
	})
	whole := make([]int32, e.Context())
	for i := range whole {
		whole[i] = int32(700 + i)
	}
	if r := mustRun(t, e, Request{Prompt: whole, Sampling: greedy()}); r.reason != ReasonLength {
		t.Errorf("a request for all cells ends with %s", r.reason)
	}
}

// TestFaultAnywhere lets the loop panic at every place of its bookkeeping, at different times. Where it is known for whom
// the work was done, that request alone fails; otherwise those that had started. All others, and those that come
// after, are served as if nothing had been, and no cell is lost.
func TestFaultAnywhere(t *testing.T) {
	for place, blast := range map[place]int{ // how many requests may fail
		atSweep: 4, atPublish: 4, atReap: 4, atCompose: 4, // of unknown concern: all that have started
		atCall: 0, atFits: 1, atStart: 1, atReady: 1, atTake: 1, atAdd: 1, atAdded: 1, atGiveWay: 1, atGone: 1, atReclaim: 1,
		atAdvance: 1, atFinish: 1, atKeep: 1, atKept: 1,
		atCompute: 4, // the requests of the step
	} {
		t.Run(strings.ReplaceAll(string(place), " ", "_"), func(t *testing.T) {
			for _, at := range []int{1, 2, 5, 17, 60} {
				faultAt(t, place, at, blast)
				if place == atReady || place == atTake || place == atReclaim {
					t.Setenv("MINFER_NO_KV_SHARE", "1")
					faultAt(t, place, at, blast)
					t.Setenv("MINFER_NO_KV_SHARE", "")
				}
			}
		})
	}
}

func faultAt(t *testing.T, where place, at, blast int) {
	t.Helper()
	e, d := openFake(t, Options{Context: 150, Batch: 24, Sequences: 4})
	for i := range 3 { // something is kept
		mustRun(t, e, Request{Prompt: slices.Concat(story(10*i), []int32{7}), MaxTokens: 4, Sampling: greedy()})
	}
	n, fired, calling := 0, false, false
	onLoop(t, e, func() {
		e.inject = func(p place) {
			if p != where || fired || p == atCall && !calling {
				return
			}
			if n++; n == at {
				fired = true
				panic("a fault at " + string(p))
			}
		}
	})
	requests := crowd()
	jobs := together(t, e, requests...)
	if where == atCall {
		onLoop(t, e, func() { calling = true })
		for !fired {
			if err := e.call(context.Background(), func() error { return nil }); fired != errors.Is(err, ErrInternal) {
				t.Errorf("a call ends with %v", err)
			}
		}
	}
	failed := 0
	for i, j := range jobs {
		r := within(t, "a request beside a fault", func() result { return collect(j) })
		want := fakeReply(t, requests[i], d.vocab, e.Context())
		switch {
		case errors.Is(r.err, ErrInternal) && r.reason == ReasonFailure && strings.Contains(r.err.Error(), "a fault at "+string(where)):
			failed++
			if !slices.Equal(r.ids, want[:len(r.ids)]) {
				t.Errorf("%s, %d: request %d failed after %v, alone it gives %v", where, at, i, r.ids, want)
			}
		case r.err != nil || !slices.Equal(r.ids, want):
			t.Errorf("%s, %d: request %d ended with %v after %v, want %v", where, at, i, r.err, r.ids, want)
		}
	}
	onLoop(t, e, func() { e.inject = nil })
	least := min(1, blast)
	if where == atSweep || where == atPublish || where == atReap || where == atKept || where == atKeep || where == atFinish || where == atReclaim {
		least = 0 // nothing has started yet, or it is done for one whose caller has gone
	}
	if !fired && at == 1 {
		t.Errorf("%s was not reached", where)
	}
	if failed > blast || fired && failed < least {
		t.Errorf("%s, %d: %d requests failed, want %d to %d", where, at, failed, least, blast)
	}
	c := e.Counters()
	if (where == atCompute || where == atAdvance) && c.Faults != 0 || fired && where != atCompute && where != atAdvance && c.Faults != 1 {
		t.Errorf("%s, %d: %d faults are counted", where, at, c.Faults)
	}
	if c.Ended[ReasonFailure] != failed || c.Ended[ReasonLength] != 3+len(jobs)-failed {
		t.Errorf("%s, %d: %d failed, the engine counts %v", where, at, failed, c.Ended)
	}
	mustCount(t, e)
	again := requests[len(requests)-1]
	if r := mustRun(t, e, again); !slices.Equal(r.ids, fakeReply(t, again, d.vocab, e.Context())) {
		t.Errorf("%s, %d: a request after it gives %v", where, at, r.ids)
	}
}

// TestBrokenEngine: an engine whose turns panic again and again answers everyone with ErrBroken and takes nothing more.
func TestBrokenEngine(t *testing.T) {
	e, _ := openFake(t, Options{Context: 150, Batch: 24, Sequences: 2})
	if err := e.Err(); err != nil {
		t.Fatal(err)
	}
	faults := 0
	onLoop(t, e, func() {
		e.inject = func(p place) {
			if p == atPublish {
				faults++
				panic("no turn is whole")
			}
		}
	})
	var jobs []*Job
	for _, r := range crowd() {
		j, err := e.Submit(context.Background(), r)
		if errors.Is(err, ErrBroken) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	for i, j := range jobs {
		r := within(t, "a request of a broken engine", func() result { return collect(j) })
		if r.reason != ReasonFailure || !errors.Is(r.err, ErrBroken) && !errors.Is(r.err, ErrInternal) {
			t.Errorf("request %d ended with %s, %v", i, r.reason, r.err)
		}
	}
	<-e.done
	if err := e.Err(); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "no turn is whole") || faults != faultLimit {
		t.Errorf("after %d faults the engine says %v", faults, err)
	}
	if _, err := e.Submit(context.Background(), ask(story(4), 1)); !errors.Is(err, ErrBroken) {
		t.Errorf("a broken engine took a request: %v", err)
	}
	if err := e.SaveSlots(context.Background(), io.Discard); !errors.Is(err, ErrBroken) {
		t.Errorf("a save of a broken engine: %v", err)
	}
	if c := e.Counters(); c.Faults != faultLimit || c.Running+c.Queued != 0 {
		t.Errorf("%+v", c)
	}
	mustClose(t, e)
	if err := e.Err(); !errors.Is(err, ErrBroken) {
		t.Errorf("closed it says %v", err)
	}
}

// TestFaultsThatPass: one good turn after each fault, and the engine goes on for ever.
func TestFaultsThatPass(t *testing.T) {
	e, d := openFake(t, Options{Context: 150, Batch: 24, Sequences: 2})
	for i := range 3 * faultLimit {
		onLoop(t, e, func() {
			e.inject = func(p place) {
				if p == atCompose {
					e.inject = nil
					panic("now and then")
				}
			}
		})
		r := ask(story(30+i), 3)
		j, err := e.Submit(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		if got := collect(j); !errors.Is(got.err, ErrInternal) {
			t.Errorf("a fault is answered with %v", got.err)
		}
		mustIDs(t, "after a fault", mustRun(t, e, r).ids, fakeReply(t, r, d.vocab, 150))
	}
	if err := e.Err(); err != nil {
		t.Error(err)
	}
	mustCount(t, e)
}

// TestStall: an engine that gets nowhere for stallLimit turns says so to those who wait for it, and goes on.
func TestStall(t *testing.T) {
	e, d := openFake(t, Options{Context: 150, Batch: 24, Sequences: 2})
	turns := 0
	onLoop(t, e, func() {
		e.options.Batch = 0 // no step has room for anybody
		e.inject = func(p place) {
			if p == atCompose {
				turns++
			}
		}
	})
	jobs := together(t, e, ask(story(20), 3), ask(story(30), 3))
	for _, j := range jobs {
		r := within(t, "a stalled request", func() result { return collect(j) })
		if r.reason != ReasonFailure || !errors.Is(r.err, ErrInternal) || !strings.Contains(r.err.Error(), "no progress in 64 turns") {
			t.Errorf("it ended with %s, %v", r.reason, r.err)
		}
	}
	onLoop(t, e, func() { e.options.Batch, e.inject = 24, nil })
	if c := e.Counters(); turns != stallLimit || c.Stalled != 1 {
		t.Errorf("%d turns, %d stalls", turns, c.Stalled)
	}
	mustIDs(t, "after a stall", mustRun(t, e, ask(story(20), 3)).ids, fakeReply(t, ask(story(20), 3), d.vocab, 150))
	mustCount(t, e)
}

// TestEndedGoroutine: code of a request that ends the loop's goroutine ends the requests that have started, no more.
func TestEndedGoroutine(t *testing.T) {
	e, d := openFake(t, Options{Context: 150, Batch: 24, Sequences: 2})
	bad := ask(story(20), 3)
	bad.IsEnd = func(int32) bool { runtime.Goexit(); return false }
	jobs := together(t, e, bad, ask(story(30), 30), ask(story(10), 4))
	for i, j := range jobs {
		r := within(t, "a request beside it", func() result { return collect(j) })
		if i < 2 && !errors.Is(r.err, ErrInternal) || i == 2 && (r.err != nil || !slices.Equal(r.ids, fakeReply(t, ask(story(10), 4), d.vocab, 150))) {
			t.Errorf("request %d ended with %v after %v", i, r.err, r.ids)
		}
	}
	err := e.call(context.Background(), func() error { runtime.Goexit(); return nil })
	if !errors.Is(err, ErrInternal) {
		t.Errorf("a call that ends the goroutine: %v", err)
	}
	mustCount(t, e)
}

// breaking panics where it is read or written.
type breaking struct{}

func (breaking) Read([]byte) (int, error)  { panic("the reader panics") }
func (breaking) Write([]byte) (int, error) { panic("the writer panics") }

// TestCallsThatPanic: whoever asks for a session, a save or a load that panics gets the error; requests beside it go on
// and no cell is lost.
func TestCallsThatPanic(t *testing.T) {
	ctx := context.Background()
	e, d := openFake(t, Options{Context: 200, Batch: 24, Sequences: 3})
	var file, slots bytes.Buffer
	s := e.NewSession()
	first := mustRun(t, e, Request{Prompt: story(20), MaxTokens: 4, Sampling: greedy(), Session: s})
	if err := s.Save(ctx, &file, nil); err != nil {
		t.Fatal(err)
	}
	mustRun(t, e, ask(story(33), 2))
	if err := e.SaveSlots(ctx, &slots); err != nil {
		t.Fatal(err)
	}
	half := func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b[:len(b)/2]), breaking{}) }
	for name, f := range map[string]func() error{
		"save":        func() error { return s.Save(ctx, breaking{}, nil) },
		"load":        func() error { _, err := s.Load(ctx, half(file.Bytes())); return err },
		"load slots":  func() error { _, _, err := e.LoadSlots(ctx, half(slots.Bytes())); return err },
		"other calls": func() error { return e.call(ctx, func() error { panic("a call panics") }) },
	} {
		beside := ask(story(25), 40)
		j, err := e.Submit(ctx, beside)
		if err != nil {
			t.Fatal(err)
		}
		j.Next()
		if err := f(); !errors.Is(err, ErrInternal) || !strings.Contains(err.Error(), "panics") {
			t.Errorf("%s: %v", name, err)
		}
		if r := collect(j); r.err != nil || !slices.Equal(r.ids, fakeReply(t, beside, d.vocab, 200)[1:]) {
			t.Errorf("%s: the request beside it ended with %v", name, r.err)
		}
		onLoop(t, e, func() {
			if err := e.arena.Check(e.holders()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		// The session is whole or empty, and serves on.
		turn := slices.Concat(story(20), first.ids, []int32{5})
		r := mustRun(t, e, Request{Prompt: turn, MaxTokens: 4, Sampling: greedy(), Session: s})
		mustIDs(t, name+", the session", r.ids, fakeReply(t, ask(turn, 4), d.vocab, 200))
	}
	func() { // a save of slots runs its writer on the caller's goroutine
		defer func() {
			if p := recover(); p == nil {
				t.Error("the panic of a writer is the caller's")
			}
		}()
		_ = e.SaveSlots(ctx, breaking{})
	}()
	if err := e.SaveSlots(ctx, io.Discard); err != nil {
		t.Errorf("the save after it: %v", err)
	}
	s.Close()
	mustCount(t, e)
}

// TestStepThatPanics: a device that panics or fails in a step ends the requests of that step; those that wait go on.
func TestStepThatPanics(t *testing.T) {
	for _, panics := range []bool{false, true} {
		e, d := openFake(t, Options{Context: 400, Batch: 64, Sequences: 2})
		failing := errors.New("the step fails")
		at := 0
		onLoop(t, e, func() {
			d.step = func(*backend.Batch) error {
				if at++; at != 6 {
					return nil
				}
				if panics {
					panic(fmt.Sprint(failing))
				}
				return failing
			}
		})
		requests := []Request{ask(story(20), 20), ask(story(90), 20), ask(story(30), 5)}
		for i, j := range together(t, e, requests...) {
			r := collect(j)
			if bad := i < 2; bad && (r.reason != ReasonFailure || !strings.Contains(r.err.Error(), failing.Error())) ||
				!bad && (r.err != nil || !slices.Equal(r.ids, fakeReply(t, requests[i], d.vocab, 400))) {
				t.Errorf("request %d ended with %v after %v", i, r.err, r.ids)
			}
		}
		mustCount(t, e)
	}
}

// TestFaultOfASession: a panic in the work for a session's request leaves the session empty or whole, and of use.
func TestFaultOfASession(t *testing.T) {
	for _, where := range []place{atFits, atStart, atAdd, atAdded, atAdvance, atFinish, atCompose} {
		for _, at := range []int{1, 2, 3} {
			e, d := openFake(t, Options{Context: 150, Batch: 24, Sequences: 4})
			s := e.NewSession()
			first := mustRun(t, e, Request{Prompt: story(20), MaxTokens: 4, Sampling: greedy(), Session: s})
			n := 0
			onLoop(t, e, func() {
				e.inject = func(p place) {
					if p == where {
						if n++; n == at {
							panic("a fault at " + string(p))
						}
					}
				}
			})
			turn := slices.Concat(story(20), first.ids, []int32{5})
			r := Request{Prompt: turn, MaxTokens: 6, Sampling: greedy(), Session: s}
			want := fakeReply(t, r, d.vocab, 150)
			for i := range 3 {
				j, err := e.Submit(context.Background(), r)
				if err != nil {
					t.Fatal(err)
				}
				got := within(t, "a session's request", func() result { return collect(j) })
				if got.err != nil && !errors.Is(got.err, ErrInternal) || !slices.Equal(got.ids, want[:len(got.ids)]) || i == 2 && (n < at || got.err == nil) && len(got.ids) == 0 {
					t.Errorf("%s, %d: request %d ended with %v after %v", where, at, i, got.err, got.ids)
				}
			}
			onLoop(t, e, func() { e.inject = nil })
			mustIDs(t, "the session after it", mustRun(t, e, r).ids, want)
			onLoop(t, e, func() {
				if err := e.arena.Check(e.holders()); err != nil {
					t.Errorf("%s, %d: %v", where, at, err)
				}
			})
			s.Close()
			mustCount(t, e)
		}
	}
}
