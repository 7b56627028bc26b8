package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/minfer-go/minfer/sample"
)

// A story is what a client asks for: a prompt that begins like those of its group, and what goes wrong on the way.
type tale struct {
	group, tail, tokens int
	seed                uint64
	cancelAfter         int // tokens; -1: while it waits; 0: never
	failAfter           int // tokens until its mask fails; 0: never
	panicAfter          int // tokens until its mask panics; 0: never
}

// prompt is the beginning of the group and a tail of the tale's own.
func (s *tale) prompt() []int32 {
	ids := make([]int32, 0, 48+s.tail)
	for i := range 40 {
		ids = append(ids, int32(300+(i*31+s.group*7)%900))
	}
	for i := range 2 + s.tail {
		ids = append(ids, int32(300+(i*17+int(s.seed)*13)%900))
	}
	return ids
}

// A faulty mask allows everything until it fails.
type faulty struct{ failAfter, panicAfter, n int }

var errFaulty = errors.New("the mask fails")

func (m *faulty) Allowed(int32) bool { return true }
func (m *faulty) Apply([]float32) bool {
	return true
}

func (m *faulty) Accept(int32) error {
	m.n++
	if m.n == m.panicAfter {
		panic("the mask panics")
	}
	if m.n == m.failAfter {
		return errFaulty
	}
	return nil
}

func (s *tale) request() Request {
	c := sample.Default()
	c.Seed = s.seed
	r := Request{Prompt: s.prompt(), MaxTokens: s.tokens, Sampling: c}
	if s.failAfter > 0 || s.panicAfter > 0 {
		r.Mask = &faulty{failAfter: s.failAfter, panicAfter: s.panicAfter}
	}
	return r
}

// tell runs a tale and returns what it got.
func (s *tale) tell(e *Engine) (ids []int32, reason Reason, stats Stats, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	j, err := e.Submit(ctx, s.request())
	if err != nil {
		return nil, "", Stats{}, err
	}
	if s.cancelAfter < 0 {
		cancel()
	}
	for t, ok := j.Next(); ok; t, ok = j.Next() {
		if ids = append(ids, t.ID); len(ids) == s.cancelAfter {
			cancel()
		}
	}
	reason, stats, err = j.Result()
	return ids, reason, stats, err
}

func randomTales(r *rand.Rand, n int) []tale {
	all := make([]tale, n)
	for i := range all {
		s := &all[i]
		*s = tale{group: r.IntN(3), tail: r.IntN(30), tokens: 1 + r.IntN(24), seed: r.Uint64N(1 << 20)}
		switch r.IntN(8) {
		case 0:
			s.cancelAfter = 1 + r.IntN(s.tokens)
		case 1:
			s.cancelAfter = -1
		case 2:
			s.failAfter = 1 + r.IntN(s.tokens)
		case 3:
			s.panicAfter = 1 + r.IntN(s.tokens)
		}
	}
	return all
}

// TestTimelines runs random stories of many clients at once on engines with few cells, and holds them to invariants:
//
//	outputs equal serial   a tale gives the tokens that it gives alone on a fresh engine, as far as it got
//	failures stay at home  a tale ends badly only if it was to
//	no request starves     every tale ends
//	counts match           the engine counts each tale once, by how it ended
//	cells never leak       when all have ended, only kept prefixes hold cells, and one request may have them all
func TestTimelines(t *testing.T) {
	runs, size := 4, 24
	if os.Getenv("MINFER_LONG") != "" {
		runs, size = 60, 60
	}
	for run := range runs {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(run), 7))
			tales := randomTales(r, size)
			serial := openTiny(t, Options{Context: 256, Threads: 1})
			want := make([][]int32, len(tales))
			for i, s := range tales {
				s.cancelAfter, s.failAfter, s.panicAfter = 0, 0, 0
				want[i], _, _, _ = s.tell(serial)
			}
			e := openTiny(t, Options{Context: 128 + r.IntN(200), Batch: 8 << r.IntN(5), Sequences: 1 + r.IntN(6), Threads: 1 + r.IntN(2)})
			arrivals := make([]time.Duration, len(tales))
			for i := range arrivals {
				arrivals[i] = time.Duration(r.IntN(30)) * time.Millisecond
			}
			var all sync.WaitGroup
			ended := make(chan Reason, len(tales))
			for i := range tales {
				all.Go(func() {
					time.Sleep(arrivals[i])
					ids, reason, stats, err := tales[i].tell(e)
					ended <- reason
					hold(t, &tales[i], ids, want[i], reason, stats, err)
				})
			}
			finished := make(chan struct{})
			go func() { all.Wait(); close(finished) }()
			select {
			case <-finished:
			case <-time.After(time.Minute):
				t.Fatalf("no request starves: %d of %d ended within a minute, %+v", len(ended), len(tales), e.Counters())
			}
			close(ended)
			counts := map[Reason]int{}
			for reason := range ended {
				counts[reason]++
			}
			settled(t, e, counts)
		})
	}
}

// hold checks one tale.
func hold(t *testing.T, s *tale, ids, want []int32, reason Reason, stats Stats, err error) {
	if len(ids) > len(want) || !slices.Equal(ids, want[:len(ids)]) {
		t.Errorf("outputs equal serial: %+v gives %v, alone %v", *s, ids, want)
	}
	bad := s.failAfter > 0 && s.failAfter < len(want) || s.panicAfter > 0 && s.panicAfter < len(want)
	switch {
	case bad && (reason != ReasonFailure || !errors.Is(err, errFaulty) && !errors.Is(err, ErrInternal)):
		t.Errorf("failures stay at home: %+v ended with %s, %v", *s, reason, err)
	case bad:
	case s.cancelAfter != 0 && (reason == ReasonLength || reason == ReasonCancel):
	case s.cancelAfter == 0 && reason == ReasonLength && err == nil && len(ids) == len(want) && stats.Generated == len(want):
	case (s.failAfter > 0 || s.panicAfter > 0) && reason == ReasonFailure:
	default:
		t.Errorf("failures stay at home: %+v ended with %s, %v after %d of %d tokens", *s, reason, err, len(ids), len(want))
	}
	if stats.Prompt != len(s.prompt()) || stats.Cached >= stats.Prompt {
		t.Errorf("counts match: %+v has %+v", *s, stats)
	}
}

// settled checks an engine on which nothing runs any more.
func settled(t *testing.T, e *Engine, counts map[Reason]int) {
	for end := time.Now().Add(5 * time.Second); e.Counters().Running > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	var kept, tokens int
	if err := e.call(context.Background(), func() error {
		kept = len(e.prefixes.kept)
		for _, p := range e.prefixes.kept {
			tokens += len(p.tokens)
			if p.cells.Len() != len(p.tokens) {
				t.Errorf("cells never leak: a kept prefix of %d tokens has %d cells", len(p.tokens), p.cells.Len())
			}
		}
		if len(e.running)+len(e.waiting) > 0 {
			t.Errorf("no request starves: %d run, %d wait", len(e.running), len(e.waiting))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c := e.Counters()
	for reason, n := range counts {
		if c.Ended[reason] != n {
			t.Errorf("counts match: %d ended with %q, the engine says %d", n, reason, c.Ended[reason])
		}
	}
	stats := cellsOf(t, e)
	if stats.Seqs != kept || stats.Used > tokens || stats.Used+stats.Free != stats.Total {
		t.Errorf("cells never leak: %+v with %d kept prefixes of %d tokens", stats, kept, tokens)
	}
	whole := make([]int32, e.Context()-1)
	for i := range whole {
		whole[i] = int32(400 + i%1000)
	}
	if _, reason, _, err := run1(e, whole); err != nil || reason != ReasonLength {
		t.Errorf("cells never leak: a request for all of them ends with %s, %v", reason, err)
	}
}

func run1(e *Engine, prompt []int32) ([]int32, Reason, Stats, error) {
	j, err := e.Submit(context.Background(), Request{Prompt: prompt, MaxTokens: 1, Sampling: sample.Default()})
	if err != nil {
		return nil, "", Stats{}, err
	}
	var ids []int32
	for t, ok := j.Next(); ok; t, ok = j.Next() {
		ids = append(ids, t.ID)
	}
	reason, stats, err := j.Result()
	return ids, reason, stats, err
}
