package server

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/minfer-go/minfer/chat"
)

// responsesRequest is the body of /v1/responses.
type responsesRequest struct {
	conversation
	instructions string
	input        json.RawMessage
	stream       bool
	metadata     json.RawMessage
	format       json.RawMessage // of the text, as it was sent
	toolList     json.RawMessage
	toolChoice   json.RawMessage
	reasoning    json.RawMessage
	topLogprobs  *int
	include      []string
}

var responsesFields = fields[responsesRequest]{
	"model":             value(func(r *responsesRequest) *string { return &r.model }),
	"input":             value(func(r *responsesRequest) *json.RawMessage { return &r.input }),
	"instructions":      value(func(r *responsesRequest) *string { return &r.instructions }),
	"stream":            value(func(r *responsesRequest) *bool { return &r.stream }),
	"max_output_tokens": pointer(func(r *responsesRequest) **int { return &r.maxTokens }),
	"metadata": func(r *responsesRequest, raw json.RawMessage) error {
		var m map[string]string
		r.metadata = raw
		return strict(raw, &m)
	},
	"tools": func(r *responsesRequest, raw json.RawMessage) error {
		r.toolList = raw
		return r.conversation.tools.responses(raw)
	},
	"tool_choice": func(r *responsesRequest, raw json.RawMessage) error {
		r.toolChoice = raw
		return r.conversation.tools.openAIChoice(raw)
	},
	"parallel_tool_calls": pointer(func(r *responsesRequest) **bool { return &r.conversation.tools.parallel }),
	"text":                (*responsesRequest).text,
	"reasoning":           (*responsesRequest).reason,
	"top_logprobs":        pointer(func(r *responsesRequest) **int { return &r.topLogprobs }),
	"include": func(r *responsesRequest, raw json.RawMessage) error {
		if err := strict(raw, &r.include); err != nil {
			return err
		}
		for _, what := range r.include {
			// Reasoning is in the output as it is, so that there is nothing to encrypt.
			if what != includeLogprobs && what != "reasoning.encrypted_content" {
				return fmt.Errorf("%q is not supported", clip(what))
			}
		}
		return nil
	},
	"stream_options": func(_ *responsesRequest, raw json.RawMessage) error {
		_, err := streamOptions(raw)
		return err
	},
	"stop":                 value(func(r *responsesRequest) *stops { return &r.stop }),
	"grammar":              func(r *responsesRequest, raw json.RawMessage) error { return r.constraint.gbnf(raw) },
	"user":                 value(func(r *responsesRequest) *string { return &r.user }),
	"safety_identifier":    value(func(r *responsesRequest) *string { return &r.user }),
	"prompt_cache_key":     text[responsesRequest],
	"service_tier":         only[responsesRequest]("there is one tier: auto or default", `"auto"`, `"default"`),
	"store":                only[responsesRequest]("nothing is stored", "false"),
	"background":           only[responsesRequest]("requests are answered at once", "false"),
	"truncation":           only[responsesRequest]("prompts are never cut", `"disabled"`),
	"previous_response_id": only[responsesRequest]("nothing is stored: send the whole conversation"),
	"conversation":         only[responsesRequest]("nothing is stored: send the whole conversation"),
	"prompt":               only[responsesRequest]("prompts are not stored"),
	"max_tool_calls":       only[responsesRequest]("this server calls no tools itself"),
}.with(within(func(r *responsesRequest) *sampling { return &r.sampling }, samplingFields))

// responsesNames are the fields that have other names than in chat completions.
var responsesNames = renames{"messages": "input", "max_tokens": "max_output_tokens"}

// includeLogprobs asks for log probabilities.
const includeLogprobs = "message.output_text.logprobs"

// text reads how the text is to look.
func (r *responsesRequest) text(raw json.RawMessage) error {
	var t struct {
		Format    json.RawMessage `json:"format"`
		Verbosity *string         `json:"verbosity"`
	}
	if err := strict(raw, &t); err != nil {
		return err
	}
	if t.Verbosity != nil && *t.Verbosity != "medium" {
		return badField("text.verbosity", "the model has no setting for it")
	}
	if len(t.Format) == 0 || string(t.Format) == "null" {
		return nil
	}
	r.format = t.Format
	var f struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Strict      *bool           `json:"strict"`
	}
	if err := strict(t.Format, &f); err != nil {
		return fmt.Errorf("format: %w", err)
	}
	switch f.Type {
	case "text":
		return nil
	case "json_object":
		return r.constraint.schema("text.format", []byte(anyObject))
	case "json_schema":
		if len(f.Schema) == 0 {
			return badField("text.format", "schema is missing")
		}
		return r.constraint.schema("text.format", f.Schema)
	}
	return badField("text.format", "type %q is not one of text, json_object, json_schema", clip(f.Type))
}

// reason reads how much the model is to reason.
func (r *responsesRequest) reason(raw json.RawMessage) error {
	var q struct {
		Effort  json.RawMessage `json:"effort"`
		Summary *string         `json:"summary"`
		Old     *string         `json:"generate_summary"`
	}
	if err := strict(raw, &q); err != nil {
		return err
	}
	for _, s := range []*string{q.Summary, q.Old} {
		if s != nil && *s != "auto" {
			return badField("reasoning.summary", "reasoning is given whole, not summarised")
		}
	}
	r.reasoning = raw
	if len(q.Effort) == 0 || string(q.Effort) == "null" {
		return nil
	}
	return r.effort(q.Effort)
}

// responses reads the tools of the responses API, whose functions lie flat.
func (t *tools) responses(raw json.RawMessage) error {
	var list []struct {
		Type string `json:"type"`
		function
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for i, d := range list {
		if d.Type != "function" {
			return fmt.Errorf("tool %d: type %q is not supported, only function is", i, clip(d.Type))
		}
	}
	if err := strict(raw, &list); err != nil {
		return err
	}
	for i, d := range list {
		if err := t.add(i, d.function); err != nil {
			return err
		}
	}
	return nil
}

// item is an element of the input. Which keys count depends on the type.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted *string         `json:"encrypted_content"`
	Phase     *string         `json:"phase"`
	Namespace *string         `json:"namespace"`
	Caller    json.RawMessage `json:"caller"`
}

// read turns instructions and input into messages.
func (r *responsesRequest) read() error {
	r.names = responsesNames
	if r.instructions != "" {
		r.messages = append(r.messages, chat.System(r.instructions))
	}
	if len(r.input) == 0 {
		return badField("input", "it is missing")
	}
	if r.input[0] == '"' {
		var text string
		if err := strict(r.input, &text); err != nil {
			return named(err, "input")
		}
		r.messages = append(r.messages, chat.User(text))
		return nil
	}
	var items []json.RawMessage
	if err := strict(r.input, &items); err != nil {
		return named(err, "input")
	}
	if len(items) == 0 || len(items) > MaxMessages {
		return badField("input", "%d items, must be 1 to %d", len(items), MaxMessages)
	}
	for i, raw := range items {
		where := fmt.Sprintf("input[%d]", i)
		var one item
		if err := strict(raw, &one); err != nil {
			return named(err, where)
		}
		if err := r.add(one); err != nil {
			return named(err, where)
		}
	}
	return nil
}

// reply is the assistant's message at the end, which the next item of a reply belongs to: a new one if there is none.
func (r *responsesRequest) reply(fits func(*chat.Message) bool) *chat.Message {
	if n := len(r.messages); n > 0 && r.messages[n-1].Role == "assistant" && fits(&r.messages[n-1]) {
		return &r.messages[n-1]
	}
	r.messages = append(r.messages, chat.Message{Role: "assistant"})
	return &r.messages[len(r.messages)-1]
}

// add appends an item to the conversation.
func (r *responsesRequest) add(one item) error {
	if one.Namespace != nil && *one.Namespace != "" {
		return fmt.Errorf("namespace is not supported")
	}
	if len(one.Caller) > 0 && string(one.Caller) != "null" {
		return fmt.Errorf("caller is not supported")
	}
	switch one.Type {
	case "", "message":
		text, err := itemText(one.Content)
		if err != nil {
			return err
		}
		switch one.Role {
		case "assistant":
			m := r.reply(func(m *chat.Message) bool { return m.Content.IsZero() && len(m.ToolCalls) == 0 })
			m.Content = chat.Text(text)
		case "developer", "system":
			r.messages = append(r.messages, chat.System(text))
		case "user":
			r.messages = append(r.messages, chat.User(text))
		default:
			return fmt.Errorf("role %q is not one of user, assistant, system, developer", clip(one.Role))
		}
	case "function_call":
		if one.Name == "" || one.CallID == "" || one.Arguments == nil {
			return fmt.Errorf("a function_call needs name, call_id and arguments")
		}
		arguments, err := encode(*one.Arguments)
		if err != nil {
			return err
		}
		m := r.reply(func(*chat.Message) bool { return true })
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: one.CallID, Name: one.Name, Arguments: arguments})
	case "function_call_output":
		text, err := itemText(one.Output)
		if err != nil {
			return err
		}
		r.messages = append(r.messages, chat.Message{Role: "tool", ToolCallID: one.CallID, Content: chat.Text(text)})
	case "reasoning":
		if one.Encrypted != nil && *one.Encrypted != "" {
			return fmt.Errorf("encrypted_content cannot be read")
		}
		text, err := itemText(one.Content)
		if err != nil {
			return err
		}
		m := r.reply(func(m *chat.Message) bool { return m.Reasoning == "" && m.Content.IsZero() && len(m.ToolCalls) == 0 })
		m.Reasoning = text
	default:
		return fmt.Errorf("type %q is not supported", clip(one.Type))
	}
	return nil
}

// textTypes are the types of parts that are text.
var textTypes = []string{"input_text", "output_text", "text", "reasoning_text", "summary_text"}

// itemText is a content: a text or a list of parts of text.
func itemText(raw json.RawMessage) (string, error) {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		return text, strict(raw, &text)
	}
	var parts []struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Refusal     string          `json:"refusal"`
		Annotations json.RawMessage `json:"annotations"`
		Logprobs    json.RawMessage `json:"logprobs"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", fmt.Errorf("content is neither a text nor a list of parts")
	}
	for i, p := range parts {
		switch {
		case slices.Contains(textTypes, p.Type):
			text += p.Text
		case p.Type == "refusal":
			text += p.Refusal
		default:
			return "", fmt.Errorf("content[%d]: the model takes no part of type %q", i, clip(p.Type))
		}
	}
	return text, strict(raw, &parts)
}
