package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/sample"
)

// A conversation is a request for replies to messages, of any API.
type conversation struct {
	model       string
	messages    []chat.Message
	documents   []json.RawMessage
	variables   chat.Object // of the template
	tools       tools
	sampling    sampling
	constraint  constraint
	stop        stops
	maxTokens   *int
	window      int
	n           *int
	logprobs    *int
	user        string
	thinkBudget *int // most tokens of reasoning
	names       renames
}

// taskMaker makes a task of a conversation.
type taskMaker func(ctx context.Context, c *conversation) (*task, error)

// rawTask makes tasks of a prompt that is sent as it is; the conversation gives the rest.
func (s *Server) rawTask(prompt string) taskMaker {
	return func(ctx context.Context, c *conversation) (_ *task, err error) {
		defer func() { err = c.names.in(err) }()
		recordOf(ctx).user = clip(c.user)
		if err := s.wants(c.model); err != nil {
			return nil, err
		}
		t, err := s.limits(c)
		if err != nil {
			return nil, err
		}
		if t.mask, err = s.mask(c.constraint, false); err != nil {
			return nil, err
		}
		if t.mask != nil && t.ignoreEnd {
			return nil, errIgnoreEnd
		}
		t.prompt = s.model.Format.Raw(prompt).Tokens
		return t, nil
	}
}

// errIgnoreEnd refuses a reply that may not end where its constraint does.
var errIgnoreEnd = badField("ignore_eos", "excludes a constraint, which decides where the reply may end")

// task renders a conversation and checks what depends on the model.
func (s *Server) task(ctx context.Context, c *conversation) (_ *task, err error) {
	defer func() { err = c.names.in(err) }()
	recordOf(ctx).user = clip(c.user)
	if err := s.wants(c.model); err != nil {
		return nil, err
	}
	if len(c.messages) > MaxMessages {
		return nil, badField("messages", "%d messages, the limit is %d", len(c.messages), MaxMessages)
	}
	if len(c.documents) > 0 && !strings.Contains(s.model.Format.Source(), "documents") {
		return nil, badField("documents", "the model's template has no place for them")
	}
	t, err := s.limits(c)
	if err != nil {
		return nil, err
	}
	plan, err := s.plan(c)
	if err != nil {
		return nil, err
	}
	messages, beginning, err := c.continued()
	if err != nil {
		return nil, err
	}
	request := chat.Request{Messages: messages, Documents: c.documents, Variables: c.variables, Tools: plan.definitions}
	prompt, err := s.model.Format.Prompt(ctx, request)
	if err != nil {
		return nil, err
	}
	t.prompt, t.thinking, t.reasoning = prompt.Tokens, prompt.Thinking, true
	if beginning != "" {
		if t.thinking {
			t.prompt, t.thinking = s.model.Tokens.Append(t.prompt, "\n"+thinkClose+"\n\n", true), false
		}
		t.prompt = s.model.Tokens.Append(t.prompt, beginning, false)
	}
	if t.mask, err = s.mask(c.constraint, t.thinking); err != nil {
		return nil, err
	}
	if err := s.callsOf(t, plan); err != nil {
		return nil, err
	}
	if c.thinkBudget != nil && t.reasoning {
		inner, tokens, thinking := t.mask, *c.thinkBudget, t.thinking
		t.mask = func() sample.Mask {
			var m sample.Mask
			if inner != nil {
				m = inner()
			}
			return newBudgetMask(s.model.Tokens, m, tokens, thinking)
		}
	} else if t.mask != nil && t.ignoreEnd {
		return nil, errIgnoreEnd
	}
	return t, nil
}

// continued takes the beginning of the reply off the conversation, if its last message is one.
func (c *conversation) continued() (messages []chat.Message, beginning string, err error) {
	last := len(c.messages) - 1
	if last < 0 || c.messages[last].Role != "assistant" || len(c.messages[last].ToolCalls) > 0 {
		return c.messages, "", nil
	}
	if c.constraint.key != "" || c.tools.choice == choiceRequired {
		return nil, "", badField("messages", "the last message begins the reply, which excludes a constraint on it")
	}
	return c.messages[:last], c.messages[last].Content.String(), nil
}

// choices is how many replies to a prompt are wanted.
func (c *conversation) choices() int {
	if c.n == nil {
		return 1
	}
	return *c.n
}

// limits checks the numbers of a request.
func (s *Server) limits(c *conversation) (*task, error) {
	t := &task{
		n: c.choices(), maxTokens: s.options.MaxTokens, window: c.window, stop: c.stop, logprobs: c.logprobs, ignoreEnd: c.sampling.ignoreEnd,
		field: c.names.of("messages"),
	}
	if t.n < 1 || t.n > MaxChoices {
		return nil, badField("n", "%d replies, must lie in [1, %d]", t.n, MaxChoices)
	}
	if c.maxTokens != nil {
		if t.maxTokens = *c.maxTokens; t.maxTokens < 1 {
			return nil, badField("max_tokens", "%d, must be at least 1", t.maxTokens)
		}
	}
	if t.logprobs != nil && (*t.logprobs < 0 || *t.logprobs > MaxTopLogprobs) {
		return nil, badField("top_logprobs", "%d, must lie in [0, %d]", *t.logprobs, MaxTopLogprobs)
	}
	if _, err := sample.NewStopper(t.stop); err != nil {
		return nil, badField("stop", "%v", err)
	}
	var err error
	t.sampling, err = s.config(&c.sampling)
	return t, err
}

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	conversation
	stream       bool
	logprobs     bool
	topLogprobs  *int
	includeUsage bool
	completion   *int // max_completion_tokens
	tokens       *int // max_tokens
}

var chatFields = fields[chatRequest]{
	"model":                 value(func(r *chatRequest) *string { return &r.model }),
	"messages":              value(func(r *chatRequest) *[]chat.Message { return &r.messages }),
	"stream":                value(func(r *chatRequest) *bool { return &r.stream }),
	"n":                     pointer(func(r *chatRequest) **int { return &r.n }),
	"max_tokens":            pointer(func(r *chatRequest) **int { return &r.tokens }),
	"max_completion_tokens": pointer(func(r *chatRequest) **int { return &r.completion }),
	"stop":                  value(func(r *chatRequest) *stops { return &r.stop }),
	"logprobs":              value(func(r *chatRequest) *bool { return &r.logprobs }),
	"top_logprobs":          pointer(func(r *chatRequest) **int { return &r.topLogprobs }),
	"stream_options": func(r *chatRequest, raw json.RawMessage) error {
		var err error
		r.includeUsage, err = streamOptions(raw)
		return err
	},
	"response_format": func(r *chatRequest, raw json.RawMessage) error {
		return r.constraint.responseFormat("response_format", raw)
	},
	"grammar":             func(r *chatRequest, raw json.RawMessage) error { return r.constraint.gbnf(raw) },
	"tools":               func(r *chatRequest, raw json.RawMessage) error { return r.conversation.tools.openAI(raw) },
	"tool_choice":         func(r *chatRequest, raw json.RawMessage) error { return r.conversation.tools.openAIChoice(raw) },
	"parallel_tool_calls": pointer(func(r *chatRequest) **bool { return &r.conversation.tools.parallel }),
	"reasoning_effort":    func(r *chatRequest, raw json.RawMessage) error { return r.effort(raw) },
	"chat_template_kwargs": func(r *chatRequest, raw json.RawMessage) error {
		var o chat.Object
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		if len(o) > MaxVariables {
			return fmt.Errorf("%d variables, the limit is %d", len(o), MaxVariables)
		}
		for _, f := range o {
			r.variables.Set(f.Key, f.Value)
		}
		return nil
	},
	"documents": func(r *chatRequest, raw json.RawMessage) error {
		var objects []chat.Object
		if err := json.Unmarshal(raw, &objects); err != nil {
			return err
		}
		return strict(raw, &r.documents)
	},
	"user":              value(func(r *chatRequest) *string { return &r.user }),
	"safety_identifier": value(func(r *chatRequest) *string { return &r.user }),
	"prompt_cache_key":  text[chatRequest],
	"service_tier":      only[chatRequest]("there is one tier: auto or default", `"auto"`, `"default"`),
	"store":             only[chatRequest]("nothing is stored", "false"),
	"metadata":          only[chatRequest]("nothing is stored that metadata could describe", "{}"),
	"modalities":        only[chatRequest]("the model gives text alone", `["text"]`),
	"verbosity":         only[chatRequest]("the model has no setting for it", `"medium"`),
	"audio":             only[chatRequest]("the model gives text alone"),
	"prediction":        only[chatRequest]("predicted outputs are not supported"),
	"web_search_options": only[chatRequest](
		"this server does not search"),
	"functions":     only[chatRequest]("use tools", "[]"),
	"function_call": only[chatRequest]("use tool_choice", `"none"`, `"auto"`),
}.with(within(func(r *chatRequest) *sampling { return &r.sampling }, samplingFields))

// text accepts a text that makes no difference: prompts are found in the cache by their tokens.
func text[T any](_ *T, raw json.RawMessage) error {
	var t string
	return strict(raw, &t)
}

// streamOptions reads stream_options.
func streamOptions(raw json.RawMessage) (usage bool, err error) {
	var o struct {
		IncludeUsage       bool `json:"include_usage"`
		IncludeObfuscation bool `json:"include_obfuscation"`
	}
	if err := strict(raw, &o); err != nil {
		return false, err
	}
	if o.IncludeObfuscation {
		return false, badField("stream_options.include_obfuscation", "chunks are not padded")
	}
	return o.IncludeUsage, nil
}

// effort passes the effort of reasoning to the template: as it is, and as the switch that most templates have.
func (c *conversation) effort(raw json.RawMessage) error {
	var effort string
	if err := strict(raw, &effort); err != nil {
		return err
	}
	switch effort {
	case "none", "minimal":
		c.variables.Set("enable_thinking", json.RawMessage("false"))
	case "low", "medium", "high", "xhigh":
		c.variables.Set("enable_thinking", json.RawMessage("true"))
	default:
		return fmt.Errorf("%q is not one of none, minimal, low, medium, high, xhigh", clip(effort))
	}
	c.variables.Set("reasoning_effort", raw)
	return nil
}

// chatCompletions answers /v1/chat/completions.
func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	var q chatRequest
	if err := decode(s, w, r, chatFields, &q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	t, err := s.task(r.Context(), &q.conversation)
	if err != nil {
		return err
	}
	head := chatHead{ID: "chatcmpl-" + newID(), Created: now(), Model: s.model.Name, ServiceTier: "default", Fingerprint: s.fingerprint()}
	if q.stream {
		head.Object = "chat.completion.chunk"
		return s.stream(r.Context(), &chatStream{lines: newLines(w), head: head, scores: s.scores, usage: q.includeUsage}, t)
	}
	all, run, err := s.collect(r.Context(), t)
	if err != nil {
		return err
	}
	head.Object = "chat.completion"
	writeJSON(w, http.StatusOK, s.chatReply(head, all, run.usage()))
	return nil
}

// check joins fields that depend on each other.
func (q *chatRequest) check() error {
	q.maxTokens = q.tokens
	if q.completion != nil {
		if q.tokens != nil && *q.tokens != *q.completion {
			return badField("max_completion_tokens", "differs from max_tokens")
		}
		q.maxTokens, q.names = q.completion, renames{"max_tokens": "max_completion_tokens"}
	}
	if q.topLogprobs != nil && !q.logprobs {
		return badField("top_logprobs", "needs logprobs")
	}
	if q.logprobs {
		q.conversation.logprobs = new(int)
		if q.topLogprobs != nil {
			q.conversation.logprobs = q.topLogprobs
		}
	}
	if q.includeUsage && !q.stream {
		return badField("stream_options", "needs stream")
	}
	if len(q.messages) == 0 {
		return badField("messages", "there are none")
	}
	for i := range q.messages {
		if err := checkMessage(&q.messages[i]); err != nil {
			return named(err, fmt.Sprintf("messages[%d]", i))
		}
	}
	return nil
}

// checkMessage refuses what a message of OpenAI's API cannot carry to a model of text. Roles are the template's to judge.
func checkMessage(m *chat.Message) error {
	if m.Role == "developer" {
		m.Role = "system"
	}
	_, refusal := m.Extra.Get("refusal")
	if m.Content.IsZero() && (m.Role != "assistant" || len(m.ToolCalls) == 0 && m.Reasoning == "" && !refusal) {
		return errors.New("it has no content")
	}
	if parts, ok := m.Content.Parts(); ok {
		kept := make([]chat.Part, len(parts))
		for i, p := range parts {
			switch p.Type {
			case "text":
				p.Extra = nil // such as cache_control: prompts are kept anyway
			case "refusal":
				raw, _ := p.Extra.Get("refusal")
				p = chat.Part{Type: "text"}
				if err := strict(raw, &p.Text); err != nil {
					return fmt.Errorf("content[%d].refusal: %w", i, err)
				}
			default:
				return fmt.Errorf("content[%d]: the model takes no part of type %q", i, clip(p.Type))
			}
			kept[i] = p
		}
		m.Content = chat.Parts(kept...)
	}
	var kept chat.Object
	for _, f := range m.Extra {
		switch f.Key {
		case "refusal", "audio", "annotations", "function_call": // null in replies that clients send back
			if v := string(f.Value); v != "null" && v != "[]" {
				return fmt.Errorf("%s is not supported", f.Key)
			}
		case "reasoning": // another name of reasoning_content
			if err := strict(f.Value, &m.Reasoning); err != nil {
				return fmt.Errorf("reasoning: %w", err)
			}
		case "tool_plan", "thinking", "prefix":
			kept = append(kept, f) // variables that templates read
		default:
			return fmt.Errorf("unknown field %q", f.Key)
		}
	}
	m.Extra = kept
	return nil
}

// fingerprint tells clients when the answers to a seed may have changed.
func (s *Server) fingerprint() string {
	return "fp_" + strings.ReplaceAll(s.options.Version, " ", "_")
}
