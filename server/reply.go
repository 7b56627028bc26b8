package server

import (
	"unicode/utf8"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// A callPlan says how calls of tools are found in a reply.
type callPlan struct {
	syntax chat.CallSyntax
	names  []string
	prefix string // the beginning of a call that stands at the end of the prompt
	single bool   // the reply ends after its first call

	constrained bool // calls follow their schemas, so that they are given out as they arrive
}

// A scored token is one with its log probability.
type scored struct {
	id      int32
	logprob float64
	top     []sample.Logprob
	start   int  // where its text begins among what the reply decoded to, in bytes
	at      int  // the same in characters
	prompt  bool // it belongs to the prompt
	bare    bool // the first token of a prompt, which has no log probability
}

// A reply turns tokens into events: text, stop texts, reasoning, calls, one stage after the other. It holds back what
// may still become something else, and nothing is emitted twice or lost but stop texts and the marks of calls.
type reply struct {
	task   *task
	text   *tokenizer.Decoder
	marks  []func(id int32) (string, bool) // control tokens that belong to reasoning or calls
	stop   *sample.Stopper
	split  *chat.Splitter
	parser *chat.CallParser

	stopped bool
	found   string // the stop text
	begun   int    // calls
	calls   int    // that are whole
	think   int    // tokens of reasoning

	reasoned, content bool // the reply has got so far

	decoded, emitted int      // bytes of text before and after stop texts were looked for
	characters       int      // those of decoded
	scored           []scored // whose text is held back
	ready            []scored // whose text was emitted and that no event has brought yet
}

func (s *Server) newReply(t *task) *reply {
	r := &reply{task: t, text: s.model.Tokens.NewDecoder()}
	r.stop, _ = sample.NewStopper(t.stop) // the request's were checked when it was read
	if t.reasoning {
		r.split = chat.NewSplitter(t.thinking)
		r.marks = append(r.marks, s.model.Format.ThinkMark)
	}
	if p := t.calls; p != nil {
		r.parser = chat.NewCallParser(p.syntax, p.names, p.constrained)
		r.marks = append(r.marks, func(id int32) (string, bool) { return s.model.Format.CallMark(p.syntax, id) })
		if p.prefix != "" {
			r.split = nil
			r.parser.Push(p.prefix)
		}
	}
	return r
}

// push takes a token.
func (r *reply) push(t engine.Token) []event {
	if r.task.logprobs != nil {
		r.scored = append(r.scored, scored{id: t.ID, logprob: t.Logprob, top: t.Top, start: r.decoded, at: r.characters})
	}
	text := ""
	for _, of := range r.marks {
		if mark, ok := of(t.ID); ok {
			text = r.text.Flush() + mark
		}
	}
	if text == "" {
		text = r.text.Push(t.ID)
	}
	events := r.stage(text, false)
	if r.reasoned && !r.content {
		r.think++
	}
	return events
}

// flush ends the reply.
func (r *reply) flush() []event {
	if r.stopped {
		return nil
	}
	events := r.stage(r.text.Flush(), true)
	r.ready, r.scored = append(r.ready, r.scored...), nil
	return events
}

// stage takes text through the stages. last: nothing follows.
func (r *reply) stage(text string, last bool) []event {
	r.decoded += len(text)
	r.characters += utf8.RuneCountInString(text)
	if !r.stopped {
		var stopped bool
		if text, stopped = r.stop.Push(text); stopped {
			r.stopped, last = true, true
			r.found, _ = r.stop.Found()
		} else if last {
			text += r.stop.Flush()
		}
	}
	r.release(len(text))
	var events []event
	if r.split == nil {
		r.find(&events, text, last)
		return events
	}
	spans := r.split.Push(text)
	if last {
		spans = append(spans, r.split.Flush()...)
	}
	for _, span := range spans {
		switch span.Kind {
		case chat.ReasoningText:
			r.reasoned = true
			events = append(events, event{kind: reasoningEvent, text: span.Text, tokens: r.take()})
		case chat.ContentText:
			r.content = true
			r.find(&events, span.Text, false)
		}
	}
	if last {
		r.find(&events, "", true)
	}
	return events
}

// find tells calls from content.
func (r *reply) find(events *[]event, text string, last bool) {
	content := func(text string) {
		if text != "" {
			*events = append(*events, event{kind: contentEvent, text: text, tokens: r.take()})
		}
	}
	if r.parser == nil {
		content(text)
		return
	}
	parts := r.parser.Push(text)
	if last {
		parts = append(parts, r.parser.Flush()...)
	}
	for _, p := range parts {
		if r.calls > 0 && r.task.calls.single {
			r.stopped = true
			return
		}
		e := event{index: r.begun - 1, text: p.Text}
		switch p.Kind {
		case chat.CallText:
			content(p.Text)
			continue
		case chat.CallBegin:
			e.kind, e.id, e.index = callEvent, newCallID(r.task.calls.syntax), r.begun
			r.begun++
		case chat.CallArguments:
			e.kind = argumentsEvent
		case chat.CallEnd:
			if e.kind, e.cut = callEndEvent, p.Cut; !p.Cut {
				r.calls++
			}
			*events = append(*events, e)
			continue // tokens belong to the next piece
		}
		e.tokens = r.take()
		*events = append(*events, e)
	}
	r.stopped = r.stopped || r.calls > 0 && r.task.calls.single
}

// release makes ready the tokens whose text has been emitted.
func (r *reply) release(n int) {
	r.emitted += n
	for len(r.scored) > 0 && r.scored[0].start < r.emitted {
		r.ready, r.scored = append(r.ready, r.scored[0]), r.scored[1:]
	}
}

// take hands the ready tokens to an event.
func (r *reply) take() []scored {
	t := r.ready
	r.ready = nil
	return t
}
