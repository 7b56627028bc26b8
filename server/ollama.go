package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
)

// ollamaVersion is the version of Ollama's API that the answers follow, for clients that look at it.
const ollamaVersion = "0.12.0"

// ollamaCall is a call in Ollama's form.
type ollamaCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// ollamaReply is a line of the answer: of /api/chat with a message, of /api/generate with a response.
type ollamaReply struct {
	Model      string          `json:"model"`
	Created    string          `json:"created_at"`
	Message    *ollamaAnswer   `json:"message,omitempty"`
	Response   *string         `json:"response,omitempty"`
	Thinking   string          `json:"thinking,omitempty"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason,omitempty"`
	Logprobs   *[]fullScore    `json:"logprobs,omitempty"`
	Total      *time.Duration  `json:"total_duration,omitempty"`
	Load       *time.Duration  `json:"load_duration,omitempty"`
	Prompt     *int            `json:"prompt_eval_count,omitempty"`
	PromptTime *time.Duration  `json:"prompt_eval_duration,omitempty"`
	Eval       *int            `json:"eval_count,omitempty"`
	EvalTime   *time.Duration  `json:"eval_duration,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
}

type ollamaAnswer struct {
	Role      string       `json:"role"`
	Content   string       `json:"content"`
	Thinking  string       `json:"thinking,omitempty"`
	ToolCalls []ollamaCall `json:"tool_calls,omitempty"`
}

// ollamaChat answers /api/chat.
func (s *Server) ollamaChat(w http.ResponseWriter, r *http.Request) error {
	var q ollamaRequest
	if err := decode(s, w, r, ollamaChatFields, &q); err != nil {
		return err
	}
	if len(q.messages) == 0 {
		return s.ollamaLoad(w, &q, true)
	}
	q.names = ollamaChatNames
	return s.ollama(w, r, &q, true, s.task)
}

// ollamaGenerate answers /api/generate.
func (s *Server) ollamaGenerate(w http.ResponseWriter, r *http.Request) error {
	var q ollamaRequest
	if err := decode(s, w, r, ollamaGenerateFields, &q); err != nil {
		return err
	}
	if q.prompt == "" {
		return s.ollamaLoad(w, &q, false)
	}
	q.names = ollamaGenerateNames
	if q.raw {
		if q.system != "" {
			return badField("system", "raw sends the prompt as it is")
		}
		return s.ollama(w, r, &q, false, s.rawTask(q.prompt))
	}
	if q.system != "" {
		q.messages = append(q.messages, chat.System(q.system))
	}
	q.messages = append(q.messages, chat.User(q.prompt))
	return s.ollama(w, r, &q, false, s.task)
}

// ollamaLoad answers a request without a prompt, which asks to load the model: it is.
func (s *Server) ollamaLoad(w http.ResponseWriter, q *ollamaRequest, chat bool) error {
	if err := s.wants(q.model); err != nil {
		return err
	}
	one := s.ollamaLine(chat)
	one.Done, one.DoneReason = true, "load"
	writeJSON(w, http.StatusOK, one)
	return nil
}

// ollamaLine is an empty line.
func (s *Server) ollamaLine(chat bool) ollamaReply {
	one := ollamaReply{Model: s.model.Name, Created: time.Now().UTC().Format(time.RFC3339Nano)}
	if chat {
		one.Message = &ollamaAnswer{Role: "assistant"}
	} else {
		one.Response = new(string)
	}
	return one
}

// ollama runs a request.
func (s *Server) ollama(w http.ResponseWriter, r *http.Request, q *ollamaRequest, chat bool, make1 taskMaker) error {
	if q.logprobs {
		if q.conversation.logprobs = q.top; q.top == nil {
			q.conversation.logprobs = new(int)
		}
	} else if q.top != nil && *q.top > 0 {
		return badField("top_logprobs", "needs logprobs")
	}
	if q.thinks && !s.reasons() {
		return badField("think", "the model's template knows no reasoning")
	}
	t, err := make1(r.Context(), &q.conversation)
	if err != nil {
		return err
	}
	if t.window > s.model.Engine.Context() {
		return badField("options.num_ctx", "%d, the server's context has %d", t.window, s.model.Engine.Context())
	}
	b := &ollamaBuilder{server: s, chat: chat, total: s.ollamaLine(chat)}
	if !q.whole {
		b.lines = newLines(w)
		return s.stream(r.Context(), b, t)
	}
	run, err := s.each(r.Context(), []*task{t}, func(e event) { _ = b.event(e) }) // nothing is written yet
	if err != nil {
		return err
	}
	b.finish(run)
	writeJSON(w, http.StatusOK, b.total)
	return nil
}

// An ollamaBuilder adds up events, and, if it has lines, streams them.
type ollamaBuilder struct {
	*lines // nil: nothing is streamed
	server *Server
	chat   bool
	total  ollamaReply // of the whole reply, or of the last line
	reason engine.Reason
	call   wholeCall // that grows
	scored []scored  // its tokens
}

func (b *ollamaBuilder) begin(*run) error { return b.start("application/x-ndjson") }

func (b *ollamaBuilder) event(e event) error {
	switch e.kind { // the form has whole calls alone
	case endEvent:
		b.reason = e.ending.reason
		return nil
	case callEvent:
		b.call = wholeCall{id: e.id, name: e.text}
		b.scored = append(b.scored, e.tokens...)
		return nil
	case argumentsEvent:
		b.call.arguments += e.text
		b.scored = append(b.scored, e.tokens...)
		return nil
	case callEndEvent:
		if e.tokens, b.scored = b.scored, nil; e.cut {
			return nil
		}
	}
	one := &b.total
	if b.lines != nil {
		fresh := b.server.ollamaLine(b.chat)
		one = &fresh
	}
	switch e.kind {
	case contentEvent:
		if b.chat {
			one.Message.Content += e.text
		} else {
			*one.Response += e.text
		}
	case reasoningEvent:
		if b.chat {
			one.Message.Thinking += e.text
		} else {
			one.Thinking += e.text
		}
	case callEndEvent:
		call := ollamaCall{ID: b.call.id}
		call.Function.Index, call.Function.Name, call.Function.Arguments = e.index, b.call.name, json.RawMessage(b.call.arguments)
		one.Message.ToolCalls = append(one.Message.ToolCalls, call)
	}
	if list := b.server.scores(e.tokens); list != nil {
		have := list.Content
		if one.Logprobs != nil {
			have = append(*one.Logprobs, have...)
		}
		one.Logprobs = &have
	}
	if b.lines == nil {
		return nil
	}
	return b.line(one)
}

// finish fills in how the reply ended and what it took.
func (b *ollamaBuilder) finish(r *run) {
	u, one := r.usage(), &b.total
	one.Created = time.Now().UTC().Format(time.RFC3339Nano)
	one.Done, one.DoneReason = true, "stop"
	if b.reason == engine.ReasonLength {
		one.DoneReason = "length"
	}
	total, load := time.Since(r.began), time.Duration(0)
	one.Total, one.Load, one.Prompt, one.PromptTime, one.Eval, one.EvalTime = &total, &load, &u.prompt, &u.prefill, &u.generated, &u.decode
}

func (b *ollamaBuilder) end(r *run) error {
	b.finish(r)
	return b.line(b.total)
}

func (b *ollamaBuilder) fail(e *apiError) error { return b.line(ollamaShape.body(e)) }

// idle sends nothing: the form has no comments.
func (b *ollamaBuilder) idle(int) error { return b.control.Flush() }
