package minfer

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// A Turn is a reply of a conversation on its way. One goroutine reads it, once: the reply is part of the conversation when
// Spans has ended.
type Turn struct {
	conversation *Conversation
	ctx          context.Context
	undo         func() // takes the turn back
	before       int    // messages forgotten when the turn began

	prompt   []int32 // ids before the reply
	reply    []int32 // ids of the reply so far
	thinking bool
	request  engine.Request

	text    *tokenizer.Decoder
	stop    *sample.Stopper
	split   *chat.Splitter
	message chat.Message // the reply so far
	visible string
	stopped bool
	left    bool // the reader has enough

	stats  TurnStats
	reason engine.Reason
	err    error
}

// TurnStats are what a turn took.
type TurnStats struct {
	engine.Stats
	Prefilled int // tokens that were evaluated before the reply, and after each shift within it
	Forgotten int // messages that left the prompt in this turn
	// Rerendered: the turns that left could not be removed in place, so the prompt was evaluated anew.
	Rerendered bool
}

// begin finds the prompt and what the reply has to start with. It forgets turns until there is room.
func (t *Turn) begin() error {
	c := t.conversation
	s := c.settings
	var err error
	if t.stop, err = sample.NewStopper(s.Stop); err != nil {
		return err
	}
	t.before = c.forgotten
	for {
		p, err := c.prompt(t.ctx)
		if err != nil {
			return err
		}
		held := c.session.Tokens()
		ids := p.Resume(held)
		if len(ids)+c.reserve(s.MaxTokens) > c.model.engine.Context() && c.forget() {
			continue
		}
		if len(ids) >= c.model.engine.Context() {
			return fmt.Errorf("%w: the message makes %d tokens, the context holds %d", engine.ErrContextLength, len(ids), c.model.engine.Context())
		}
		if c.forgotten > t.before {
			ids = t.shift(p, held, ids)
		}
		t.prompt, t.thinking = ids, p.Thinking
		break
	}
	s.Sampling.Seed += c.replies
	t.request = c.model.request(nil, s)
	t.request.Session = c.session
	t.text, t.split = c.model.tokens.NewDecoder(), chat.NewSplitter(t.thinking)
	return nil
}

// shift removes from the cells what the prompt leaves out and returns the ids to evaluate. Where that cannot be done in
// place they are those of the whole prompt.
func (t *Turn) shift(p *chat.Prompt, held, ids []int32) []int32 {
	c := t.conversation
	if len(held) > 0 && !c.noShift {
		if from, to, rest, ok := p.Shift(held); ok && len(rest) < c.model.engine.Context() {
			if from == to || c.session.Remove(t.ctx, from, to) == nil {
				return rest
			}
		}
		if c.forgotten == len(c.messages)-1 && len(t.reply) == 0 {
			return ids // nothing that was evaluated is left but the system message
		}
	}
	t.stats.Rerendered = true
	return ids
}

// Spans yields the reply as it grows: whole characters only, nothing of a stop text. Leaving the loop early ends the reply.
// At its end the reply becomes part of the conversation; if nothing came but an error, the turn is taken back.
func (t *Turn) Spans() iter.Seq[chat.Span] {
	return func(yield func(chat.Span) bool) {
		ctx, cancel := context.WithCancel(t.ctx)
		defer cancel()
		emit := func(spans []chat.Span) bool {
			for _, s := range spans {
				t.visible += s.Text
				switch s.Kind {
				case chat.ContentText:
					t.message.Content = chat.Text(t.message.Content.String() + s.Text)
				case chat.ReasoningText:
					t.message.Reasoning += s.Text
				}
				if !t.left && !yield(s) {
					t.left = true
					cancel()
				}
			}
			return ctx.Err() == nil
		}
		for t.run(ctx, emit) && t.makeRoom() {
			continue
		}
		if !t.stopped {
			emit(t.split.Push(t.stop.Flush()))
		}
		emit(t.split.Flush())
		t.end()
	}
}

// run asks the engine for the reply, or for the rest of it. more: the context is full and the reply is not at its end.
func (t *Turn) run(ctx context.Context, emit func([]chat.Span) bool) (more bool) {
	c := t.conversation
	t.request.Prompt = append(slices.Clone(t.prompt), t.reply...)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.replies++
	job, err := c.model.engine.Submit(ctx, t.request)
	if err != nil {
		t.reason, t.err = engine.ReasonFailure, err
		return false
	}
	n := 0
	for token, ok := job.Next(); ok; token, ok = job.Next() {
		n++
		t.reply = append(t.reply, token.ID)
		if t.stopped {
			continue
		}
		var text string
		if piece := textOf(token.ID, t.text, c.model.format); piece != "" {
			text, t.stopped = t.stop.Push(piece)
		}
		if !emit(t.split.Push(text)) || t.stopped {
			cancel()
		}
	}
	var stats engine.Stats
	t.reason, stats, t.err = job.Result()
	t.count(stats)
	switch {
	case t.stopped:
		t.reason, t.err = engine.ReasonStop, nil
	case t.left:
		t.err = nil
	case t.reason == engine.ReasonLength && (t.request.MaxTokens < 0 || n < t.request.MaxTokens):
		if t.request.MaxTokens > 0 {
			t.request.MaxTokens -= n
		}
		t.request.Sampling.Seed++
		return true
	}
	return false
}

// count adds what one request took.
func (t *Turn) count(s engine.Stats) {
	all := &t.stats
	if all.Prompt == 0 {
		all.Prompt, all.Cached = s.Prompt, s.Cached
	}
	all.Prefilled += s.Prompt - s.Cached
	all.Generated += s.Generated
	all.Queued += s.Queued
	all.Prefill += s.Prefill
	all.Decode += s.Decode
}

// makeRoom forgets turns in the middle of a reply. false: there is none left to forget.
func (t *Turn) makeRoom() bool {
	c := t.conversation
	room := c.model.engine.Context() - c.reserve(t.request.MaxTokens)
	for c.forget() {
		p, err := c.prompt(t.ctx)
		if err != nil {
			t.reason, t.err = engine.ReasonFailure, err
			return false
		}
		held := t.prompt
		if all := c.session.Tokens(); len(all) < len(held) || !slices.Equal(all[:len(held)], held) {
			held = nil // the cells went to another request
		}
		ids := p.Resume(held)
		if len(ids)+len(t.reply) > room && c.canForget() {
			continue
		}
		if len(ids)+len(t.reply) >= c.model.engine.Context() {
			return false
		}
		t.prompt = t.shift(p, held, ids)
		return true
	}
	return false
}

// end makes the reply part of the conversation.
func (t *Turn) end() {
	c := t.conversation
	t.stats.Forgotten = c.forgotten - t.before
	if len(t.reply) == 0 && t.err != nil {
		t.undo()
		return
	}
	t.message.Role = "assistant"
	if t.message.Content.IsZero() {
		t.message.Content = chat.Text("")
	}
	c.messages = append(c.messages, t.message)
}

// Stats counts tokens and time; valid after Spans.
func (t *Turn) Stats() TurnStats { return t.stats }

// Reason is how the reply ended; valid after Spans.
func (t *Turn) Reason() engine.Reason { return t.reason }

// Err is why the reply ended early, nil if it did not; valid after Spans.
func (t *Turn) Err() error { return t.err }

// Text reads the reply to its end.
func (t *Turn) Text() (string, error) {
	for range t.Spans() { // the turn keeps the text
	}
	return t.visible, t.err
}
