package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/minfer-go/minfer/sample"
)

// A Request asks for a continuation of a prompt.
type Request struct {
	Prompt    []int32                         // token ids, at least one
	MaxTokens int                             // most tokens to generate; 0 only evaluates the prompt, negative runs to the end of the context
	Sampling  sample.Config                   //
	Mask      sample.Mask                     // constrains what may be sampled, such as a grammar.State; nil for none. The engine calls it from its own goroutine and tells it the sampled tokens if it has a method Accept(int32) error
	IsEnd     func(id int32) bool             // end-of-generation tokens; nil for none
	Logits    func(pos int, logits []float32) // called with the logits of every position of the prompt, in order, from the engine's goroutine; nil for none
	Hidden    func(pos int, hidden []float32) // like Logits, with the final hidden state of every position; MaxTokens must be 0
	Logprobs  *int                            // log probabilities of each token, and of so many of the likeliest; nil for none
	Fresh     bool                            // evaluate the whole prompt even where the cells hold its beginning
	Session   *Session                        // continues this session; nil for a sequence of its own
	Chunk     int                             // most prompt tokens in one step; 0 for the engine's batch
}

// An accepter is a mask with a position of its own: it is told every token that is delivered and followed by another.
type accepter interface{ Accept(id int32) error }

// A Reason says why a request ended.
type Reason string

// The reasons.
const (
	ReasonStop    Reason = "stop"   // an end-of-generation token was sampled
	ReasonLength  Reason = "length" // MaxTokens or the context is used up
	ReasonCancel  Reason = "cancelled"
	ReasonFailure Reason = "error"
)

// A Token is one generated token.
type Token struct {
	ID      int32
	Logprob float64          // of the model's own distribution, if the request asked for it
	Top     []sample.Logprob // the likeliest tokens, likewise
}

// Stats counts what a request took.
type Stats struct {
	Prompt    int           // prompt tokens
	Cached    int           // of them found in the KV cells
	Generated int           // tokens sampled, the end-of-generation token included
	Queued    time.Duration // from Submit to admission
	Prefill   time.Duration // from admission until the prompt was evaluated
	Decode    time.Duration // from then on
}

// A Job is a submitted request. One goroutine reads it.
type Job struct {
	request Request
	ctx     context.Context
	engine  *Engine
	sampler *sample.Sampler
	queued  time.Time
	changed chan struct{} // capacity 1
	release func()        // lets go of ctx
	over    bool          // owned by the loop: it has ended
	waits   *sequence     // owned by the loop: what it will run as, once it was first in the queue

	mu     sync.Mutex
	tokens []Token // delivered; those before read were read
	read   int
	ended  bool
	reason Reason
	err    error
	stats  Stats
}

// Submit queues a request. Cancelling ctx ends it wherever it is; the job still has to be read to its end or dropped.
func (e *Engine) Submit(ctx context.Context, r Request) (*Job, error) {
	vocab := e.model.Config().Vocab
	if len(r.Prompt) == 0 {
		return nil, fmt.Errorf("%w: the prompt has no tokens", ErrRequest)
	}
	if err := e.validTokens(r.Prompt); err != nil {
		return nil, err
	}
	if r.Session != nil && r.Session.engine != e {
		return nil, fmt.Errorf("%w: the session belongs to another engine", ErrRequest)
	}
	need := len(r.Prompt)
	if r.MaxTokens != 0 {
		need++
	}
	if need > e.options.Context {
		return nil, fmt.Errorf("%w: %d prompt tokens, the context holds %d", ErrContextLength, len(r.Prompt), e.options.Context)
	}
	if r.Chunk < 0 {
		return nil, fmt.Errorf("%w: chunk of %d tokens", ErrRequest, r.Chunk)
	}
	if r.Hidden != nil && (r.MaxTokens != 0 || r.Logits != nil || r.Session != nil) {
		return nil, fmt.Errorf("%w: hidden states are given without generating, logits or a session", ErrRequest)
	}
	if r.Logprobs != nil && (*r.Logprobs < 0 || *r.Logprobs > vocab) {
		return nil, fmt.Errorf("%w: %d log probabilities of a vocabulary of %d", ErrRequest, *r.Logprobs, vocab)
	}
	sampler, err := sample.New(r.Sampling, vocab)
	if err != nil {
		return nil, err
	}
	for _, id := range r.Prompt {
		sampler.Accept(id)
	}
	j := &Job{request: r, engine: e, sampler: sampler, queued: time.Now(), changed: make(chan struct{}, 1)}
	// A context of the job's own: the loop asks it often, and never runs code of the caller's for that.
	own, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(own, e.nudge)
	j.ctx, j.release = own, func() { stop(); cancel(nil) }
	if err := e.enqueue(j); err != nil {
		j.release()
		return nil, err
	}
	e.nudge()
	return j, nil
}

func (e *Engine) enqueue(j *Job) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refusal(); err != nil {
		return err
	}
	if n := len(e.queue); n >= e.options.Queue {
		return fmt.Errorf("%w: %d requests wait already", ErrBusy, n)
	}
	e.queue = append(e.queue, j)
	return nil
}

// Next waits for the next token. ok is false when the request has ended; Result says how.
func (j *Job) Next() (t Token, ok bool) {
	for {
		j.mu.Lock()
		if j.read < len(j.tokens) {
			t = j.tokens[j.read]
			if j.read++; j.read == len(j.tokens) {
				j.tokens, j.read = j.tokens[:0], 0
			}
			j.mu.Unlock()
			return t, true
		}
		ended := j.ended
		j.mu.Unlock()
		if ended {
			return Token{}, false
		}
		<-j.changed
	}
}

// Position is the request's place in the queue: 1 if it starts next, 0 once it has started or ended.
func (j *Job) Position() int {
	j.engine.mu.Lock()
	defer j.engine.mu.Unlock()
	return 1 + slices.Index(j.engine.queue, j)
}

// report is the callback that gets a result of every position of the prompt, nil if there is none.
func (j *Job) report() func(pos int, result []float32) {
	if j.request.Hidden != nil {
		return j.request.Hidden
	}
	return j.request.Logits
}

// Result is how an ended request ended. err is nil for ReasonStop and ReasonLength; for ReasonCancel it is the cause.
func (j *Job) Result() (Reason, Stats, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.reason, j.stats, j.err
}

func (j *Job) deliver(t Token, s Stats) {
	j.mu.Lock()
	j.tokens = append(j.tokens, t)
	j.stats = s
	j.mu.Unlock()
	j.signal()
}

func (j *Job) end(r Reason, s Stats, err error) {
	j.mu.Lock()
	j.ended, j.reason, j.stats, j.err = true, r, s, err
	j.mu.Unlock()
	j.release()
	j.signal()
}

func (j *Job) signal() {
	select {
	case j.changed <- struct{}{}:
	default:
	}
}
