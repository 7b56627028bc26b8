package server

import (
	"encoding/json"
	"net/http"

	"github.com/minfer-go/minfer/engine"
)

// messageBlock is an element of a reply in Anthropic's form.
type messageBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// messageUsage counts tokens in Anthropic's form: those of the prompt that were cached stand apart.
type messageUsage struct {
	Input   int    `json:"input_tokens"`
	Output  int    `json:"output_tokens"`
	Read    int    `json:"cache_read_input_tokens"`
	Created int    `json:"cache_creation_input_tokens"`
	Tier    string `json:"service_tier,omitempty"`
}

// message is the answer of /v1/messages.
type message struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Model        string         `json:"model"`
	Content      []messageBlock `json:"content"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        messageUsage   `json:"usage"`
}

func anthropicUsage(prompt, cached, generated int) messageUsage {
	return messageUsage{Input: prompt - cached, Output: generated, Read: cached, Tier: "standard"}
}

// stopReason is Anthropic's word for how a reply ended.
func stopReason(e *ending) (reason string, sequence *string) {
	switch {
	case e.reason == engine.ReasonLength:
		return "max_tokens", nil
	case e.calls > 0:
		return "tool_use", nil
	case e.stopText != "":
		return "stop_sequence", &e.stopText
	}
	return "end_turn", nil
}

// messages answers /v1/messages.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) error {
	t, q, err := s.messagesTask(w, r, messagesFields, false)
	if err != nil {
		return err
	}
	b := &messageBuilder{message: message{ID: "msg_" + newID(), Type: "message", Role: "assistant", Model: s.model.Name, Content: []messageBlock{}}}
	if q.stream {
		b.lines = newLines(w)
		return s.stream(r.Context(), b, t)
	}
	run, err := s.each(r.Context(), []*task{t}, func(e event) { _ = b.event(e) }) // nothing is written yet
	if err != nil {
		return err
	}
	u := run.usage()
	b.message.Usage = anthropicUsage(u.prompt, u.cached, u.generated)
	writeJSON(w, http.StatusOK, b.message)
	return nil
}

// countFields are the fields of /v1/messages/count_tokens.
var countFields = messagesFields.pick("model", "messages", "system", "tools", "tool_choice", "thinking", "cache_control", "mcp_servers", "output_config", "output_format")

// countTokens answers /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) error {
	t, _, err := s.messagesTask(w, r, countFields, true)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"input_tokens": len(t.prompt)})
	return nil
}

// messagesTask reads a request. count: only the prompt is wanted.
func (s *Server) messagesTask(w http.ResponseWriter, r *http.Request, table fields[messagesRequest], count bool) (*task, *messagesRequest, error) {
	var q messagesRequest
	if err := decode(s, w, r, table, &q); err != nil {
		return nil, nil, err
	}
	if count {
		one := 1
		q.maxTokens = &one
	}
	if err := q.read(); err != nil {
		return nil, nil, err
	}
	t, err := s.task(r.Context(), &q.conversation)
	return t, &q, err
}

// A messageBuilder makes the blocks of events, and, if it has lines, streams what it does.
type messageBuilder struct {
	*lines  // nil: nothing is streamed
	message message
	open    string // type of the block that grows; empty for none
	input   []byte // of the call that grows
}

func (b *messageBuilder) emit(name string, fields map[string]any) error {
	if b.lines == nil {
		return nil
	}
	fields["type"] = name
	return b.named(name, fields)
}

func (b *messageBuilder) begin(r *run) error {
	if err := b.start("text/event-stream; charset=utf-8"); err != nil {
		return err
	}
	_, stats, _ := r.jobs[0].Result() // so far
	b.message.Usage = anthropicUsage(len(r.tasks[0].prompt), stats.Cached, 0)
	return b.emit("message_start", map[string]any{"message": b.message})
}

// last is the index of the last block.
func (b *messageBuilder) last() int { return len(b.message.Content) - 1 }

// add opens a block.
func (b *messageBuilder) add(one messageBlock) error {
	b.message.Content = append(b.message.Content, one)
	b.open = one.Type
	return b.emit("content_block_start", map[string]any{"index": b.last(), "content_block": one})
}

// close ends the open block.
func (b *messageBuilder) close() error {
	if b.open == "" {
		return nil
	}
	if b.open == "thinking" {
		if err := b.delta(map[string]any{"type": "signature_delta", "signature": ""}); err != nil {
			return err
		}
	}
	b.open = ""
	return b.emit("content_block_stop", map[string]any{"index": b.last()})
}

func (b *messageBuilder) delta(d map[string]any) error {
	return b.emit("content_block_delta", map[string]any{"index": b.last(), "delta": d})
}

// ensure makes a block of a type the open one.
func (b *messageBuilder) ensure(kind string) error {
	if b.open == kind {
		return nil
	}
	if err := b.close(); err != nil {
		return err
	}
	if kind == "thinking" {
		return b.add(messageBlock{Type: kind, Thinking: new(string), Signature: new(string)})
	}
	return b.add(messageBlock{Type: kind, Text: new(string)})
}

func (b *messageBuilder) event(e event) error {
	switch e.kind {
	case contentEvent:
		if err := b.ensure("text"); err != nil {
			return err
		}
		*b.message.Content[b.last()].Text += e.text
		return b.delta(map[string]any{"type": "text_delta", "text": e.text})
	case reasoningEvent:
		if err := b.ensure("thinking"); err != nil {
			return err
		}
		*b.message.Content[b.last()].Thinking += e.text
		return b.delta(map[string]any{"type": "thinking_delta", "thinking": e.text})
	case callEvent:
		if err := b.close(); err != nil {
			return err
		}
		b.input = nil
		return b.add(messageBlock{Type: "tool_use", ID: e.id, Name: e.text, Input: json.RawMessage("{}")})
	case argumentsEvent:
		b.input = append(b.input, e.text...)
		return b.delta(map[string]any{"type": "input_json_delta", "partial_json": e.text})
	case callEndEvent:
		if err := b.close(); err != nil {
			return err
		}
		if b.message.Content[b.last()].Input = b.input; e.cut { // such input is none; a stream has told of it
			b.message.Content = b.message.Content[:b.last()]
		}
		return nil
	}
	reason, sequence := stopReason(&e.ending)
	b.message.StopReason, b.message.StopSequence = &reason, sequence
	return b.close()
}

func (b *messageBuilder) end(r *run) error {
	u := r.usage()
	usage := anthropicUsage(u.prompt, u.cached, u.generated)
	usage.Tier = ""
	delta := map[string]any{"stop_reason": b.message.StopReason, "stop_sequence": b.message.StopSequence}
	if err := b.emit("message_delta", map[string]any{"delta": delta, "usage": usage}); err != nil {
		return err
	}
	return b.emit("message_stop", map[string]any{})
}

func (b *messageBuilder) fail(e *apiError) error { return b.named("error", anthropicShape.body(e)) }

func (b *messageBuilder) idle(int) error { return b.emit("ping", map[string]any{}) }
