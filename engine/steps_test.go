package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"sync"
	"testing"

	"github.com/minfer-go/minfer/backend"
)

// An act is what happens to a tale before a step: it arrives, or it is cancelled.
type act struct {
	step, tale int
	cancel     bool
}

// A script runs tales on a fake whose steps are the clock, and looks at the engine in each of them.
type script struct {
	t     *testing.T
	e     *Engine
	d     *fakeDevice
	tales []tale

	mu      sync.Mutex // what follows, but for what only the loop uses
	acts    []act      // to come
	jobs    []*Job
	cancels []context.CancelFunc
	live    int // arrived and not ended
	ended   sync.Cond

	order     map[*Job]int  // by arrival
	lastStart int           // the latest to start
	evaluated map[*Job]int  // prompt rows
	back      map[*Job]bool // gave way
	running   map[*Job]bool // in the last step
	got       []result
	stages    map[string]int // where cancellations met their requests
	fail      map[int]bool   // steps that fail
	failed    map[*Job]bool
}

// stage says what becomes of a job at the moment. It runs on the loop, or while that rests.
func (s *script) stage(j *Job) string {
	e := s.e
	for _, q := range e.running {
		switch {
		case q.job != j:
		case q.behind != nil && !q.looked:
			return "behind another"
		case q.prefills():
			return "prefilling"
		default:
			return "decoding"
		}
	}
	for _, q := range e.waiting {
		if q.job == j {
			return "gave way"
		}
	}
	if j.over {
		return "ended"
	}
	return "queued"
}

// play does an act. The caller holds mu.
func (s *script) play(a act) {
	if a.cancel {
		if j := s.jobs[a.tale]; j != nil {
			s.stages[s.stage(j)]++
			s.cancels[a.tale]()
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	j, err := s.e.Submit(ctx, s.tales[a.tale].request())
	if err != nil {
		s.t.Error(err)
		cancel()
		return
	}
	s.jobs[a.tale], s.cancels[a.tale] = j, cancel
	s.order[j] = len(s.order)
	s.live++
	go func() {
		r := collect(j)
		cancel()
		s.mu.Lock()
		s.got[a.tale] = r
		s.live--
		s.ended.Signal()
		s.mu.Unlock()
	}()
}

// step plays what is due and holds the composed step to the invariants. It runs on the loop.
func (s *script) step(b *backend.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, n := s.e, s.d.steps
	if err := e.arena.Check(e.holders()); err != nil {
		s.t.Errorf("cells never leak: step %d: %v", n, err)
	}
	planned := map[*Job]portion{}
	decoding, prompts := 0, 0
	for _, p := range e.plan {
		j := p.seq.job
		planned[j] = p
		if p.seq.prefills() {
			prompts += p.rows
			if !p.seq.decoding {
				s.evaluated[j] += p.rows
			}
		} else {
			decoding += p.rows
		}
		if s.fail[n] {
			s.failed[j] = true
		}
	}
	for _, q := range e.waiting {
		s.back[q.job] = true
		if have, want := e.fits(q, len(q.pending)), s.fits(q); have != want {
			s.t.Errorf("no request starves: step %d: that a request fits is %v, counted it is %v", n, have, want)
		}
	}
	running := map[*Job]bool{}
	for _, q := range e.running {
		running[q.job] = true
		if _, has := planned[q.job]; !has && !q.prefills() {
			s.t.Errorf("nobody waits for a token: step %d has no row of a sequence that generates", n)
		}
		if !s.running[q.job] && !s.back[q.job] {
			if at := s.order[q.job]; at < s.lastStart {
				s.t.Errorf("first come, first served: step %d: request %d starts after request %d", n, at, s.lastStart)
			} else {
				s.lastStart = at
			}
		}
	}
	s.running = running
	room := e.options.Batch - decoding
	if decoding > 0 {
		room = min(room, mixedPrompt)
	}
	if prompts > room || len(b.Tokens) != decoding+prompts {
		s.t.Errorf("nobody waits long: step %d has %d rows of prompts beside %d, of %d rows", n, prompts, decoding, len(b.Tokens))
	}
	for i, q := range e.prompts { // the shortest first
		p, has := planned[q.job]
		if q.runs && !has && room >= len(e.prompts) {
			s.t.Errorf("nobody starves: step %d has room for %d rows and none of prompt %d of %d", n, room, i, len(e.prompts))
		}
		if share := min(len(q.pending), room/len(e.prompts)); has && p.rows < share {
			s.t.Errorf("fair: step %d has %d rows of prompt %d of %d, its share of %d is %d", n, p.rows, i, len(e.prompts), room, share)
		}
	}
	for len(s.acts) > 0 && s.acts[0].step <= n {
		s.play(s.acts[0])
		s.acts = s.acts[1:]
	}
	if s.fail[n] {
		return errFaulty
	}
	return nil
}

// fits counts whether the cells for a sequence that waits can be had.
func (s *script) fits(q *sequence) bool {
	held, shared := map[int32]bool{}, 0
	for _, r := range s.e.running {
		for _, c := range r.cells.Cells() {
			held[c] = true
		}
		shared = max(shared, common(r.tokens, q.pending))
	}
	return s.e.options.Context-len(held)+shared >= len(q.pending)
}

// run plays the script to its end: when nothing runs any more, the next act is due.
func (s *script) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for s.live > 0 {
			s.ended.Wait()
		}
		if len(s.acts) == 0 {
			return
		}
		a := s.acts[0]
		s.acts = s.acts[1:]
		if !a.cancel {
			s.play(a)
		}
	}
}

// newScript is a random script on a random engine.
func newScript(t *testing.T, r *rand.Rand, size int) *script {
	s := &script{
		t: t, tales: randomTales(r, size), jobs: make([]*Job, size), cancels: make([]context.CancelFunc, size), got: make([]result, size),
		order: map[*Job]int{}, evaluated: map[*Job]int{}, back: map[*Job]bool{}, running: map[*Job]bool{}, stages: map[string]int{}, fail: map[int]bool{}, failed: map[*Job]bool{},
	}
	s.ended.L = &s.mu
	s.e, s.d = openFake(t, Options{Context: 100 + r.IntN(300), Batch: 8 << r.IntN(6), Sequences: 1 + r.IntN(8)})
	at := 0
	for i := range s.tales {
		if s.tales[i].cancelAfter != 0 {
			s.tales[i].cancelAfter = 0
			s.acts = append(s.acts, act{step: at + r.IntN(20), tale: i, cancel: true})
		}
		if r.IntN(6) == 0 {
			s.tales[i].tokens += 40
			s.tales[i].tail += 50
		}
		s.acts = append(s.acts, act{step: at, tale: i})
		at += r.IntN(6)
	}
	sort.SliceStable(s.acts, func(i, j int) bool { return s.acts[i].step < s.acts[j].step })
	if r.IntN(3) == 0 {
		for range 3 {
			s.fail[r.IntN(100)] = true
		}
	}
	return s
}

// TestScripts plays random scripts: requests that arrive and are cancelled at given steps, masks that fail and panic, and
// steps that fail, on engines with few cells. The invariants of TestTimelines hold, and these in every step:
//
//	cells never leak          the arena counts what the sequences hold
//	nobody waits for a token  each sequence that generates has a row
//	nobody waits long         a step has at most so many rows of prompts, and few where others generate
//	nobody starves, fair      each prompt has its share of the rows
//	first come, first served  requests start in the order of their arrival
//	counts match              the prompt tokens that were not cached were evaluated, once
func TestScripts(t *testing.T) {
	runs, size := 25, 40
	if os.Getenv("MINFER_LONG") != "" {
		runs, size = 1000, 60
	}
	stages := map[string]int{}
	cached, gaveWay := 0, 0
	for run := range runs {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			s := newScript(t, rand.New(rand.NewPCG(uint64(run), 11)), size)
			onLoop(t, s.e, func() { s.d.step = s.step })
			within(t, "no request starves", func() bool { s.run(); return true })
			counts := map[Reason]int{}
			for i := range s.tales {
				s.judge(i)
				counts[s.got[i].reason]++
			}
			onLoop(t, s.e, func() { s.d.step = nil })
			settled(t, s.e, counts)
			mustCount(t, s.e)
			for k, n := range s.stages {
				stages[k] += n
			}
			c := s.e.Counters()
			cached, gaveWay = cached+c.Cached, gaveWay+c.GaveWay
			if t.Failed() {
				t.Logf("%+v", s.e.options)
			}
		})
	}
	t.Logf("%d tokens cached, %d times a request gave way, cancelled: %v", cached, gaveWay, stages)
	for _, k := range []string{"queued", "gave way", "behind another", "prefilling", "decoding", "ended"} {
		if stages[k] == 0 {
			t.Errorf("no request was cancelled while %s: %v", k, stages)
		}
	}
}

// judge holds what a tale got to what it should.
func (s *script) judge(i int) {
	tale, r, j := s.tales[i], s.got[i], s.jobs[i]
	request := tale.request()
	want := fakeReply(s.t, request, s.d.vocab, s.e.Context())
	if len(r.ids) > len(want) || !slices.Equal(r.ids, want[:len(r.ids)]) {
		s.t.Errorf("outputs equal serial: tale %d gives %v, alone %v", i, r.ids, want)
	}
	masked := tale.failAfter > 0 || tale.panicAfter > 0
	switch {
	case r.reason == ReasonLength && r.err == nil && len(r.ids) == len(want) && r.stats.Generated == len(want):
	case r.reason == ReasonCancel && errors.Is(r.err, context.Canceled):
	case r.reason == ReasonFailure && s.failed[j] && errors.Is(r.err, errFaulty):
	case r.reason == ReasonFailure && masked && (errors.Is(r.err, errFaulty) || errors.Is(r.err, ErrInternal)):
	default:
		s.t.Errorf("failures stay at home: tale %d, %+v, ended with %s, %v after %d of %d tokens", i, tale, r.reason, r.err, len(r.ids), len(want))
	}
	if n := s.evaluated[j]; r.reason == ReasonLength && !s.back[j] && n != r.stats.Prompt-r.stats.Cached || r.stats.Prompt != len(request.Prompt) {
		s.t.Errorf("counts match: tale %d says %+v, %d rows of its prompt were evaluated", i, r.stats, n)
	}
}
