package server

import (
	"context"
	"sync"
	"time"

	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/sample"
)

// A task is what every API asks for, in the engine's terms.
type task struct {
	prompt    []int32
	n         int // replies to the prompt, each with a seed of its own
	maxTokens int // of a reply; negative to the end of the context
	window    int // most tokens of prompt and reply together; 0 for the context
	sampling  sample.Config
	stop      []string
	mask      func() sample.Mask // a constraint for one reply; nil for none
	ignoreEnd bool
	logprobs  *int
	field     string // of the request that the prompt comes from
	shown     bool   // the tokens of the prompt get log probabilities too

	reasoning bool      // reasoning is told from content
	thinking  bool      // the prompt ends within reasoning
	calls     *callPlan // nil: calls are content
}

// A run is tasks at work. Each of their replies is one of its choices. One goroutine reads its events, to the end or until it calls close.
type run struct {
	tasks   []*task         // of each choice
	ctx     context.Context // of the request and the run
	cancel  context.CancelFunc
	jobs    []*engine.Job
	shown   []*promptScores // of each choice; nil for none
	events  chan event
	began   time.Time
	endings []ending // complete when events is closed
}

type eventKind uint8

const (
	contentEvent eventKind = iota
	reasoningEvent
	callEvent      // a call begins: its text is the function's name
	argumentsEvent // a piece of its arguments
	callEndEvent
	promptEvent // the tokens of the prompt, before everything else, if they are shown
	endEvent    // of one reply
)

// An event is a piece of one of a task's replies.
type event struct {
	kind   eventKind
	choice int
	text   string
	id     string   // of the call that begins
	index  int      // of the call in its reply
	cut    bool     // the arguments of the call that ends are not whole
	tokens []scored // those that the piece brings, where log probabilities are asked for
	ending ending
}

// An ending is how a reply ended.
type ending struct {
	reason   engine.Reason
	stopText string // the stop text that ended it; empty for none
	calls    int    // calls in it
	err      error
	stats    engine.Stats
	think    int // tokens of reasoning
	first    time.Duration
}

// start submits tasks. The run ends when ctx is cancelled or close is called.
func (s *Server) start(ctx context.Context, tasks []*task) (*run, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &run{ctx: ctx, cancel: cancel, events: make(chan event), began: time.Now()}
	var stops []context.CancelFunc
	for _, t := range tasks {
		if err := s.fits(t); err != nil {
			cancel()
			return nil, err
		}
	}
	for _, t := range tasks {
		for i := range t.n {
			ctx, stop := context.WithCancel(ctx)
			shown := s.newPromptScores(t)
			job, err := s.submit(ctx, t, i, shown)
			if err != nil {
				stop()
				cancel() // those before it end unread
				return nil, err
			}
			r.tasks, r.jobs, stops = append(r.tasks, t), append(r.jobs, job), append(stops, stop)
			r.shown = append(r.shown, shown)
		}
	}
	r.endings = make([]ending, len(r.jobs))
	var all sync.WaitGroup
	for i := range r.jobs {
		all.Go(func() { s.follow(r, i, stops[i]) })
	}
	go func() {
		all.Wait()
		cancel()
		close(r.events)
	}()
	return r, nil
}

// fits checks a task's prompt: its tokens, and that they leave room for a reply.
func (s *Server) fits(t *task) error {
	if err := s.checkPrompt(t.field, t.prompt); err != nil {
		return err
	}
	room, more := s.model.Engine.Context(), min(1, max(-t.maxTokens, t.maxTokens))
	if t.window > 0 {
		room = min(room, t.window)
	}
	if len(t.prompt)+more > room {
		return tooLong(t.field, len(t.prompt), more, room)
	}
	return nil
}

// checkPrompt checks the tokens of a prompt.
func (s *Server) checkPrompt(field string, prompt []int32) error {
	if len(prompt) == 0 {
		return badField(field, "the prompt has no tokens")
	}
	for i, id := range prompt {
		if id < 0 || int(id) >= s.model.Tokens.VocabSize() {
			return badField(field, "token id %d at %d is outside the vocabulary of %d", id, i, s.model.Tokens.VocabSize())
		}
	}
	return nil
}

// submit hands one reply of a task to the engine.
func (s *Server) submit(ctx context.Context, t *task, i int, shown *promptScores) (*engine.Job, error) {
	r := engine.Request{Prompt: t.prompt, MaxTokens: t.maxTokens, Sampling: t.sampling, Logprobs: t.logprobs}
	if limit := t.window; limit > 0 {
		if left := limit - len(t.prompt); r.MaxTokens < 0 || r.MaxTokens > left {
			r.MaxTokens = left
		}
	}
	r.Sampling.Seed += uint64(i)
	if t.mask != nil {
		r.Mask = t.mask()
	}
	if shown != nil {
		r.Logits = shown.add
	}
	if !t.ignoreEnd {
		r.IsEnd = s.model.Tokens.IsEOG
	}
	return s.model.Engine.Submit(ctx, r)
}

// follow turns the tokens of a run's i-th job into events.
func (s *Server) follow(r *run, i int, stop context.CancelFunc) {
	job, reply := r.jobs[i], s.newReply(r.tasks[i])
	wanted := true
	send := func(events []event) {
		for _, e := range events {
			e.choice = i
			select {
			case r.events <- e:
			case <-r.ctx.Done():
				wanted = false
				return
			}
		}
	}
	var first, last time.Time
	shown := r.shown[i]
	for wanted && !reply.stopped {
		t, ok := job.Next()
		if shown != nil { // it is complete once there is a token or the end
			send([]event{{kind: promptEvent, tokens: shown.tokens}})
			shown = nil
		}
		if !ok {
			break
		}
		now := time.Now()
		if first.IsZero() {
			first = now
			s.metrics.firstToken.observe(now.Sub(r.began).Seconds())
		} else {
			s.metrics.betweenTokens.observe(now.Sub(last).Seconds())
		}
		last = now
		s.metrics.tokens.add(now, 1)
		send(reply.push(t))
	}
	stop() // nothing more is wanted
	for more := true; more; {
		_, more = job.Next()
	}
	send(reply.flush())
	end := ending{calls: reply.calls, think: reply.think}
	end.reason, end.stats, end.err = job.Result()
	if !first.IsZero() {
		end.first = first.Sub(r.began)
	}
	if reply.stopped {
		end.reason, end.err, end.stopText = engine.ReasonStop, nil, reply.found
	}
	r.endings[i] = end
	send([]event{{kind: endEvent, ending: end, tokens: reply.take()}})
}

// close ends a run and waits until the engine has let go of it.
func (r *run) close() {
	r.cancel()
	for range r.events {
	}
}

// position is the run's place in the queue: 1 if its first reply starts next, 0 once one has started.
func (r *run) position() int {
	at := r.jobs[0].Position()
	for _, job := range r.jobs[1:] {
		at = min(at, job.Position())
	}
	return at
}

// A usage counts the tokens and times of a run.
type usage struct {
	prompt, cached, generated, reasoning int
	queued, prefill, decode, first       time.Duration // the longest of its replies
}

func (u *usage) total() int { return u.prompt + u.generated }

// usage adds up a run that has ended. A prompt counts once; it is cached as far as its first reply found it.
func (r *run) usage() usage {
	var u usage
	for i, end := range r.endings {
		if i == 0 || r.tasks[i] != r.tasks[i-1] {
			u.prompt += len(r.tasks[i].prompt)
			u.cached += end.stats.Cached
		}
		u.generated += end.stats.Generated
		u.reasoning += end.think
		u.queued = max(u.queued, end.stats.Queued)
		u.prefill = max(u.prefill, end.stats.Prefill)
		u.decode = max(u.decode, end.stats.Decode)
		u.first = max(u.first, end.first)
	}
	return u
}
