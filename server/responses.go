package server

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/minfer-go/minfer/engine"
)

// outputItem is an element of a response's output: a message, a call or reasoning.
type outputItem struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	Status    string        `json:"status"`
	Role      string        `json:"role,omitempty"`
	Content   *[]outputPart `json:"content,omitempty"` // of messages and reasoning
	Summary   *[]outputPart `json:"summary,omitempty"`
	CallID    string        `json:"call_id,omitempty"`
	Name      string        `json:"name,omitempty"`
	Arguments *string       `json:"arguments,omitempty"`
}

// outputPart is an element of a message's content.
type outputPart struct {
	Type        string       `json:"type"`
	Text        string       `json:"text"`
	Annotations *[]string    `json:"annotations,omitempty"`
	Logprobs    *[]fullScore `json:"logprobs,omitempty"`
}

// response is the answer of /v1/responses.
type response struct {
	ID           string          `json:"id"`
	Object       string          `json:"object"`
	Created      int64           `json:"created_at"`
	Completed    *int64          `json:"completed_at"`
	Status       string          `json:"status"`
	Background   bool            `json:"background"`
	Error        any             `json:"error"`
	Incomplete   any             `json:"incomplete_details"`
	Instructions *string         `json:"instructions"`
	MaxOutput    *int            `json:"max_output_tokens"`
	Model        string          `json:"model"`
	Output       []*outputItem   `json:"output"`
	Parallel     bool            `json:"parallel_tool_calls"`
	Previous     *string         `json:"previous_response_id"`
	Reasoning    json.RawMessage `json:"reasoning"`
	Store        bool            `json:"store"`
	Temperature  float64         `json:"temperature"`
	TopP         float64         `json:"top_p"`
	TopLogprobs  int             `json:"top_logprobs"`
	Text         any             `json:"text"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Tools        json.RawMessage `json:"tools"`
	Truncation   string          `json:"truncation"`
	ServiceTier  string          `json:"service_tier"`
	Usage        *responseUsage  `json:"usage"`
	User         *string         `json:"user"`
	Metadata     json.RawMessage `json:"metadata"`
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

// newResponse is the answer before anything was generated.
func (s *Server) newResponse(q *responsesRequest, t *task) *response {
	or := func(raw json.RawMessage, otherwise string) json.RawMessage {
		if len(raw) == 0 {
			return json.RawMessage(otherwise)
		}
		return raw
	}
	orNull := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	r := &response{
		ID: "resp_" + newID(), Object: "response", Created: now(), Status: "in_progress", Model: s.model.Name, Output: []*outputItem{},
		Instructions: orNull(q.instructions), MaxOutput: q.maxTokens, Parallel: q.conversation.tools.parallel == nil || *q.conversation.tools.parallel,
		Reasoning: or(q.reasoning, `{"effort":null,"summary":null}`), Temperature: t.sampling.Temperature, TopP: t.sampling.TopP,
		Text:       map[string]any{"format": or(q.format, `{"type":"text"}`)},
		ToolChoice: or(q.toolChoice, `"auto"`), Tools: or(q.toolList, "[]"), Truncation: "disabled", ServiceTier: "default", User: orNull(q.user),
		Metadata: or(q.metadata, "{}"),
	}
	if q.topLogprobs != nil {
		r.TopLogprobs = *q.topLogprobs
	}
	return r
}

// responses answers /v1/responses.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) error {
	var q responsesRequest
	if err := decode(s, w, r, responsesFields, &q); err != nil {
		return err
	}
	if err := q.read(); err != nil {
		return err
	}
	if q.topLogprobs != nil || slices.Contains(q.include, includeLogprobs) {
		if q.logprobs = q.topLogprobs; q.logprobs == nil {
			q.logprobs = new(int)
		}
	}
	t, err := s.task(r.Context(), &q.conversation)
	if err != nil {
		return err
	}
	b := &responseBuilder{server: s, response: s.newResponse(&q, t), scored: t.logprobs != nil}
	if q.stream {
		b.lines = newLines(w)
		return s.stream(r.Context(), b, t)
	}
	run, err := s.each(r.Context(), []*task{t}, func(e event) { _ = b.event(e) }) // nothing is written yet
	if err != nil {
		return err
	}
	b.complete(run)
	writeJSON(w, http.StatusOK, b.response)
	return nil
}

// A responseBuilder makes the output of events, and, if it has lines, streams what it does.
type responseBuilder struct {
	*lines   // nil: nothing is streamed
	server   *Server
	response *response
	scored   bool
	open     *outputItem // the item that grows
	number   int         // of the next event
	reason   engine.Reason
	cut      bool // the open item is a call that is not whole
}

// emit streams an event; the fields are completed by those that all events have.
func (b *responseBuilder) emit(name string, fields map[string]any) error {
	if b.lines == nil {
		return nil
	}
	fields["type"], fields["sequence_number"] = name, b.number
	b.number++
	return b.named(name, fields)
}

// at is where the open item lies, for events.
func (b *responseBuilder) at(more map[string]any) map[string]any {
	more["output_index"], more["item_id"], more["content_index"] = len(b.response.Output)-1, b.open.ID, 0
	return more
}

func (b *responseBuilder) begin(*run) error {
	if err := b.start("text/event-stream; charset=utf-8"); err != nil {
		return err
	}
	if err := b.emit("response.created", map[string]any{"response": b.response}); err != nil {
		return err
	}
	return b.emit("response.in_progress", map[string]any{"response": b.response})
}

// add opens an item.
func (b *responseBuilder) add(item *outputItem) error {
	item.Status = "in_progress"
	b.open = item
	b.response.Output = append(b.response.Output, item)
	return b.emit("response.output_item.added", map[string]any{"output_index": len(b.response.Output) - 1, "item": item})
}

// close ends the open item.
func (b *responseBuilder) close() error {
	item := b.open
	if item == nil {
		return nil
	}
	item.Status = "completed"
	if b.reason == engine.ReasonLength || b.cut {
		item.Status = "incomplete"
	}
	var err error
	switch item.Type {
	case "message":
		part := (*item.Content)[0]
		if err = b.emit("response.output_text.done", b.at(map[string]any{"text": part.Text, "logprobs": part.Logprobs})); err == nil {
			err = b.emit("response.content_part.done", b.at(map[string]any{"part": part}))
		}
	case "reasoning":
		part := (*item.Content)[0]
		if err = b.emit("response.reasoning_text.done", b.at(map[string]any{"text": part.Text})); err == nil {
			err = b.emit("response.content_part.done", b.at(map[string]any{"part": part}))
		}
	}
	if err == nil {
		err = b.emit("response.output_item.done", map[string]any{"output_index": len(b.response.Output) - 1, "item": item})
	}
	b.open = nil
	return err
}

// ensure makes an item of a type the open one.
func (b *responseBuilder) ensure(kind string) error {
	if b.open != nil && b.open.Type == kind {
		return nil
	}
	if err := b.close(); err != nil {
		return err
	}
	if kind == "reasoning" {
		if err := b.add(&outputItem{ID: "rs_" + newID(), Type: kind, Summary: &[]outputPart{}, Content: &[]outputPart{}}); err != nil {
			return err
		}
		return b.part(outputPart{Type: "reasoning_text"})
	}
	if err := b.add(&outputItem{ID: "msg_" + newID(), Type: kind, Role: "assistant", Content: &[]outputPart{}}); err != nil {
		return err
	}
	return b.part(outputPart{Type: "output_text", Annotations: &[]string{}, Logprobs: &[]fullScore{}})
}

// part gives the open item its one part.
func (b *responseBuilder) part(p outputPart) error {
	*b.open.Content = []outputPart{p}
	return b.emit("response.content_part.added", b.at(map[string]any{"part": p}))
}

func (b *responseBuilder) event(e event) error {
	switch e.kind {
	case contentEvent:
		if err := b.ensure("message"); err != nil {
			return err
		}
		part := &(*b.open.Content)[0]
		part.Text += e.text
		scores := []fullScore{}
		if list := b.server.scores(e.tokens); b.scored && list != nil {
			scores = list.Content
			*part.Logprobs = append(*part.Logprobs, scores...)
		}
		return b.emit("response.output_text.delta", b.at(map[string]any{"delta": e.text, "logprobs": scores}))
	case reasoningEvent:
		if err := b.ensure("reasoning"); err != nil {
			return err
		}
		(*b.open.Content)[0].Text += e.text
		return b.emit("response.reasoning_text.delta", b.at(map[string]any{"delta": e.text}))
	case callEvent, argumentsEvent, callEndEvent:
		return b.call(e)
	}
	b.reason = e.ending.reason
	return b.close()
}

// callAt is where the open call lies, for events.
func (b *responseBuilder) callAt(more map[string]any) map[string]any {
	more = b.at(more)
	delete(more, "content_index")
	return more
}

// call goes on with a call.
func (b *responseBuilder) call(e event) error {
	switch e.kind {
	case callEvent:
		if err := b.close(); err != nil {
			return err
		}
		return b.add(&outputItem{ID: "fc_" + newID(), Type: "function_call", CallID: e.id, Name: e.text, Arguments: new(string)})
	case argumentsEvent:
		*b.open.Arguments += e.text
		return b.emit("response.function_call_arguments.delta", b.callAt(map[string]any{"delta": e.text}))
	}
	if b.cut = e.cut; e.cut {
		return b.close()
	}
	done := b.callAt(map[string]any{"arguments": *b.open.Arguments, "name": b.open.Name})
	if err := b.emit("response.function_call_arguments.done", done); err != nil {
		return err
	}
	return b.close()
}

// complete fills in how the response ended and what it took.
func (b *responseBuilder) complete(r *run) {
	at := now()
	b.response.Status, b.response.Completed = "completed", &at
	if b.reason == engine.ReasonLength {
		b.response.Status, b.response.Completed = "incomplete", nil
		b.response.Incomplete = map[string]any{"reason": "max_output_tokens"}
	}
	u, have := r.usage(), &responseUsage{}
	have.Input, have.InputDetails.Cached, have.Output, have.OutputDetails.Reasoning, have.Total = u.prompt, u.cached, u.generated, u.reasoning, u.total()
	b.response.Usage = have
}

func (b *responseBuilder) end(r *run) error {
	b.complete(r)
	return b.emit("response."+b.response.Status, map[string]any{"response": b.response})
}

func (b *responseBuilder) fail(e *apiError) error {
	b.response.Status = "failed"
	b.response.Error = map[string]any{"code": e.kind, "message": e.message}
	return b.emit("response.failed", map[string]any{"response": b.response})
}

func (b *responseBuilder) idle(position int) error { return b.comment(waiting(position)) }
