package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/minfer-go/minfer/kv"
)

// together submits requests while the loop is held, so that it finds them all at once.
func together(t *testing.T, e *Engine, requests ...Request) []*Job {
	t.Helper()
	hold, held := make(chan struct{}), make(chan error, 1)
	began := make(chan struct{})
	go func() {
		held <- e.call(context.Background(), func() error { close(began); <-hold; return nil })
	}()
	<-began
	var jobs []*Job
	for _, r := range requests {
		j, err := e.Submit(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	close(hold)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	return jobs
}

// drain reads a job to its end.
func drain(t *testing.T, j *Job) (ids []int32, stats Stats) {
	t.Helper()
	for tok, ok := j.Next(); ok; tok, ok = j.Next() {
		ids = append(ids, tok.ID)
	}
	_, stats, err := j.Result()
	if err != nil {
		t.Error(err)
	}
	return ids, stats
}

// ask is a greedy request.
func ask(prompt []int32, n int) Request {
	return Request{Prompt: prompt, MaxTokens: n, Sampling: greedy()}
}

// TestSamePromptsTogether: of requests with one long prompt that arrive together, one evaluates it; the switches change
// how, and not what comes out.
func TestSamePromptsTogether(t *testing.T) {
	want, _ := reply(t, openTiny(t, Options{}), nil, story(300), 6)
	for _, c := range []struct {
		name, env      string
		cached, shared int
	}{
		{"shared", "", 299, 299},
		{"copied", "MINFER_NO_KV_SHARE", 299, 0},
		{"evaluated", "MINFER_NO_PREFIX_REUSE", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv(c.env, "1")
			}
			e := openTiny(t, Options{Sequences: 3, Context: 1024, Batch: 64})
			var rows int
			for i, j := range together(t, e, ask(story(300), 6), ask(story(300), 6), ask(story(300), 6)) {
				ids, stats := drain(t, j)
				rows += stats.Prompt - stats.Cached
				if cached := min(i, 1) * c.cached; stats.Cached != cached || !slices.Equal(ids, want) {
					t.Errorf("request %d: %d cached, want %d; tokens %v, want %v", i, stats.Cached, cached, ids, want)
				}
			}
			if n := e.Counters(); n.Prompt != 900 || n.Cached != 2*c.cached || rows != 900-2*c.cached {
				t.Errorf("%d prompt tokens, %d cached, %d evaluated", n.Prompt, n.Cached, rows)
			}
		})
	}
}

// TestCopiedCells: under MINFER_NO_KV_SHARE no cell has two owners, and a prefix that is given up to make room for its
// own copy is evaluated again.
func TestCopiedCells(t *testing.T) {
	t.Setenv("MINFER_NO_KV_SHARE", "1")
	e := openTiny(t, Options{Context: 256})
	reply(t, e, nil, story(100), 1)
	other := slices.Concat(story(90), []int32{7, 7, 7})
	ids, stats := reply(t, e, nil, other, 5)
	if c := cellsOf(t, e); stats.Cached != 90 || c.Shared != 0 || c.Used != 100+97 {
		t.Errorf("%d cached, cells %+v", stats.Cached, c)
	}
	if want, _ := reply(t, openTiny(t, Options{Context: 256}), nil, other, 5); !slices.Equal(ids, want) {
		t.Errorf("a copy continues with %v, want %v", ids, want)
	}
	long := slices.Concat(story(90), []int32{8, 8, 8}, story(150))
	ids, stats = reply(t, e, nil, long, 5)
	if want, _ := reply(t, openTiny(t, Options{Context: 256}), nil, long, 5); !slices.Equal(ids, want) || stats.Cached > 90 {
		t.Errorf("%d cached; a crowded arena continues with %v, want %v", stats.Cached, ids, want)
	}
}

// TestPromptsThatKeepTheirCells: requests that cannot give way, such as for embeddings, take turns where the arena does
// not hold them all.
func TestPromptsThatKeepTheirCells(t *testing.T) {
	for _, what := range []string{"hidden", "logits", "mixed"} {
		t.Run(what, func(t *testing.T) {
			e := openTiny(t, Options{Sequences: 6, Context: 300, Batch: 48})
			var requests []Request
			got := make([]int, 6)
			for i := range got {
				prompt := slices.Concat([]int32{int32(500 + i)}, story(129))
				r := ask(prompt, 0)
				seen := func(int, []float32) { got[i]++ }
				switch {
				case what == "mixed" && i%2 == 0:
					r, got[i] = ask(prompt, 40), 130
				case what == "hidden":
					r.Hidden = seen
				default:
					r.Logits = seen
				}
				requests = append(requests, r)
			}
			for i, j := range together(t, e, requests...) {
				if drain(t, j); got[i] != 130 {
					t.Errorf("request %d: results of %d positions, want 130", i, got[i])
				}
			}
		})
	}
}

// TestLongPromptStopsNobody: while a long prompt is evaluated, every step has a row of the sequence that generates.
func TestLongPromptStopsNobody(t *testing.T) {
	e := openTiny(t, Options{Sequences: 2, Context: 2048})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	both := &held{reached: make(chan struct{}), open: make(chan struct{})}
	endless := ask(story(4), -1)
	endless.Mask = both // its first token waits until the long prompt is there
	first, err := e.Submit(ctx, endless)
	if err != nil {
		t.Fatal(err)
	}
	<-both.reached
	steps := 0
	long := ask(story(900), 0)
	long.Logits = func(pos int, _ []float32) { // on the loop
		if pos%mixedPrompt != 0 {
			return
		}
		steps++
		if n := len(e.plan); n != 2 || e.plan[0].seq.job != first || e.plan[1].rows > mixedPrompt {
			t.Errorf("at %d the step has %d portions, the last of %d rows", pos, n, e.plan[n-1].rows)
		}
	}
	second, err := e.Submit(ctx, long)
	if err != nil {
		t.Fatal(err)
	}
	close(both.open)
	drain(t, second)
	if steps != 8 {
		t.Errorf("%d steps, want 8", steps)
	}
}

// held is a mask that allows every token; it says when it is first asked, and answers from when it is opened.
type held struct {
	once          sync.Once
	reached, open chan struct{}
}

func (h *held) Allowed(int32) bool {
	h.once.Do(func() { close(h.reached) })
	<-h.open
	return true
}

func (h *held) Apply([]float32) bool { return h.Allowed(0) }

// TestLongestFindsTheLongest compares the search by hashes with one by tokens.
func TestLongestFindsTheLongest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	arena, err := kv.NewArena(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	random := func() []int32 {
		ids := make([]int32, 1+r.IntN(5*markEvery))
		for i := range ids {
			if i%50 == 0 {
				ids[i] = int32(r.IntN(3))
			}
		}
		return ids
	}
	p := newPrefixes(1 << 16)
	for range 300 {
		ids := random()
		s := arena.NewSeq()
		if err := s.Append(len(ids)); err != nil {
			t.Fatal(err)
		}
		p.keep(ids, s)
		prompt, want := random(), 0
		for i, have := range p.kept {
			want = max(want, common(have.tokens, prompt))
			for j, other := range p.kept {
				if i != j && common(have.tokens, other.tokens) == len(have.tokens) {
					t.Fatalf("a kept sequence of %d tokens begins one of %d", len(have.tokens), len(other.tokens))
				}
			}
		}
		from, n := p.longest(prompt, marksOf(prompt), nil, len(prompt))
		if n != want || n > 0 && n > from.Len() {
			t.Fatalf("found %d tokens, want %d", n, want)
		}
	}
	sum := 0
	for _, k := range p.kept {
		sum += len(k.tokens)
	}
	if s := arena.Stats(); s.Seqs != len(p.kept) || sum != p.tokens || s.Used != sum {
		t.Errorf("%d kept of %d tokens, %d counted, cells %+v", len(p.kept), sum, p.tokens, s)
	}
}

// TestKeptIsBounded: what kept sequences remember is bounded where they share nearly all their cells.
func TestKeptIsBounded(t *testing.T) {
	e := openTiny(t, Options{Context: 128})
	for i := range int32(100) {
		reply(t, e, nil, slices.Concat(story(110), []int32{i + 5}), 1)
		reply(t, e, nil, story(110-int(i)), 0)
	}
	if err := e.call(context.Background(), func() error {
		p := &e.prefixes
		if p.most != keptFactor*128 || p.tokens > p.most || len(p.kept) < 15 || len(p.kept) > 18 {
			return fmt.Errorf("%d kept of %d tokens, at most %d", len(p.kept), p.tokens, p.most)
		}
		p.most = 5 * 111
		return nil
	}); err != nil {
		t.Error(err)
	}
	reply(t, e, nil, slices.Concat(story(110), []int32{200}), 1)
	if c := cellsOf(t, e); c.Seqs != 5 || c.Used != 110+5 {
		t.Errorf("at a limit of 5 the cells are %+v", c)
	}
}

// BenchmarkLongest searches prefixes that share a long beginning.
func BenchmarkLongest(b *testing.B) {
	for _, kept := range []int{16, 1024} {
		b.Run(fmt.Sprint(kept), func(b *testing.B) {
			p := newPrefixes(1 << 20)
			for i := range kept {
				p.keep(slices.Concat(story(8000), []int32{int32(2000 + i), 5}), new(kv.Seq))
			}
			prompt := slices.Concat(story(8000), []int32{2000, 9})
			for b.Loop() {
				p.longest(prompt, marksOf(prompt), nil, len(prompt))
			}
		})
	}
}
