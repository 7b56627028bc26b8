package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/minfer-go/minfer/chat"
)

// messagesRequest is the body of Anthropic's /v1/messages.
type messagesRequest struct {
	conversation
	system   json.RawMessage
	turns    []turn
	stream   bool
	thinking thinkingConfig
}

// thinkingConfig says whether the model reasons.
type thinkingConfig struct {
	Type    string  `json:"type"`
	Budget  *int    `json:"budget_tokens"`
	Display *string `json:"display"`
}

// turn is a message in Anthropic's form.
type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

var messagesFields = fields[messagesRequest]{
	"model":          value(func(r *messagesRequest) *string { return &r.model }),
	"messages":       value(func(r *messagesRequest) *[]turn { return &r.turns }),
	"system":         value(func(r *messagesRequest) *json.RawMessage { return &r.system }),
	"max_tokens":     pointer(func(r *messagesRequest) **int { return &r.maxTokens }),
	"stop_sequences": value(func(r *messagesRequest) *stops { return &r.stop }),
	"stream":         value(func(r *messagesRequest) *bool { return &r.stream }),
	"tools":          func(r *messagesRequest, raw json.RawMessage) error { return r.conversation.tools.anthropic(raw) },
	"tool_choice":    func(r *messagesRequest, raw json.RawMessage) error { return r.conversation.tools.anthropicChoice(raw) },
	"thinking":       (*messagesRequest).think,
	"metadata": func(r *messagesRequest, raw json.RawMessage) error {
		var m struct {
			User string `json:"user_id"`
		}
		err := strict(raw, &m)
		r.user = m.User
		return err
	},
	"output_format": func(r *messagesRequest, raw json.RawMessage) error { return r.format("output_format", raw) },
	"output_config": func(r *messagesRequest, raw json.RawMessage) error {
		var c struct {
			Effort json.RawMessage `json:"effort"`
			Format json.RawMessage `json:"format"`
		}
		if err := strict(raw, &c); err != nil {
			return err
		}
		if len(c.Format) > 0 && string(c.Format) != "null" {
			if err := r.format("output_config.format", c.Format); err != nil {
				return err
			}
		}
		if len(c.Effort) > 0 && string(c.Effort) != "null" {
			return r.effort(c.Effort)
		}
		return nil
	},
	"cache_control": cacheControl[messagesRequest],
	"service_tier":  only[messagesRequest]("there is one tier: auto or standard_only", `"auto"`, `"standard_only"`),
	"container":     only[messagesRequest]("there are no containers"),
	"mcp_servers":   only[messagesRequest]("this server calls no tools itself", "[]"),
}.with(within(func(r *messagesRequest) *sampling { return &r.sampling }, samplingFields))

// messagesNames are the fields that have other names than in chat completions.
var messagesNames = renames{"stop": "stop_sequences"}

// cacheControl accepts a mark of Anthropic's prompt cache: every prompt is kept, for as long as there is room.
func cacheControl[T any](_ *T, raw json.RawMessage) error {
	var c struct {
		Type string `json:"type"`
		TTL  string `json:"ttl"`
	}
	if err := strict(raw, &c); err != nil {
		return err
	}
	if c.Type != "ephemeral" {
		return fmt.Errorf("type %q is not supported, only ephemeral is", clip(c.Type))
	}
	return nil
}

// format reads a JSON Schema for the text.
func (r *messagesRequest) format(param string, raw json.RawMessage) error {
	var f struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
	}
	if err := strict(raw, &f); err != nil {
		return err
	}
	if f.Type != "json_schema" || len(f.Schema) == 0 {
		return badField(param, "it is no json_schema with a schema")
	}
	return r.constraint.schema(param, f.Schema)
}

// think reads whether the model is to reason.
func (r *messagesRequest) think(raw json.RawMessage) error {
	if err := strict(raw, &r.thinking); err != nil {
		return err
	}
	if d := r.thinking.Display; d != nil && *d != "summarized" {
		return badField("thinking.display", "reasoning is always shown")
	}
	switch t := &r.thinking; {
	case t.Type == "disabled" && t.Budget == nil:
		r.variables.Set("enable_thinking", json.RawMessage("false"))
	case t.Type == "adaptive" && t.Budget == nil:
	case t.Type == "enabled":
		r.variables.Set("enable_thinking", json.RawMessage("true"))
		if t.Budget != nil {
			if *t.Budget < 1 {
				return badField("thinking.budget_tokens", "%d, must be at least 1", *t.Budget)
			}
			r.thinkBudget = t.Budget
		}
	default:
		return badField("thinking", "type %q is not one of enabled, disabled, adaptive; only enabled takes a budget", clip(t.Type))
	}
	return nil
}

// anthropic reads tools in Anthropic's form.
func (t *tools) anthropic(raw json.RawMessage) error {
	var list []struct {
		Type         *string         `json:"type"`
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"input_schema"`
		Strict       *bool           `json:"strict"`
		CacheControl json.RawMessage `json:"cache_control"`
		Examples     json.RawMessage `json:"input_examples"`
		Streaming    *bool           `json:"eager_input_streaming"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for i, d := range list {
		if d.Type != nil && *d.Type != "custom" {
			return fmt.Errorf("tool %d: type %q is not supported, only custom is", i, clip(*d.Type))
		}
	}
	if err := strict(raw, &list); err != nil {
		return err
	}
	for i, d := range list {
		if len(d.Examples) > 0 && string(d.Examples) != "null" && string(d.Examples) != "[]" {
			return fmt.Errorf("tool %d: input_examples are not supported", i)
		}
		if err := t.add(i, function{Name: d.Name, Description: d.Description, Parameters: d.InputSchema, Strict: d.Strict}); err != nil {
			return err
		}
	}
	return nil
}

// anthropicChoice reads tool_choice in Anthropic's form.
func (t *tools) anthropicChoice(raw json.RawMessage) error {
	var c struct {
		Type   string `json:"type"`
		Name   string `json:"name"`
		Single bool   `json:"disable_parallel_tool_use"`
	}
	if err := strict(raw, &c); err != nil {
		return err
	}
	several := !c.Single
	t.parallel = &several
	switch c.Type {
	case "auto":
		t.choice = choiceAuto
	case "none":
		t.choice = choiceNone
	case "any":
		t.choice = choiceRequired
	case "tool":
		t.choice, t.name = choiceRequired, c.Name
		if c.Name == "" {
			return fmt.Errorf("the tool has no name")
		}
	default:
		return fmt.Errorf("type %q is not one of auto, any, tool, none", clip(c.Type))
	}
	return nil
}

// block is an element of a content in Anthropic's form. Which keys count depends on the type.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      json.RawMessage `json:"content"`
	IsError      bool            `json:"is_error"`
	CacheControl json.RawMessage `json:"cache_control"`
	Citations    json.RawMessage `json:"citations"`
	Caller       json.RawMessage `json:"caller"`
}

// blocks reads a content: a text counts as one block of text.
func blocks(raw json.RawMessage) ([]block, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		b := block{Type: "text"}
		return []block{b}, strict(raw, &b.Text)
	}
	var kinds []struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &kinds); err != nil {
		return nil, fmt.Errorf("content is neither a text nor a list of blocks")
	}
	for i, k := range kinds {
		switch k.Type {
		case "text", "thinking", "tool_use", "tool_result":
		default:
			return nil, fmt.Errorf("content[%d]: the model takes no block of type %q", i, clip(k.Type))
		}
	}
	var all []block
	if err := strict(raw, &all); err != nil {
		return nil, err
	}
	for i, b := range all {
		if c := b.Citations; len(c) > 0 && string(c) != "null" && string(c) != "[]" {
			return nil, fmt.Errorf("content[%d]: citations are not supported", i)
		}
		if len(b.CacheControl) > 0 && string(b.CacheControl) != "null" {
			if err := cacheControl[block](nil, b.CacheControl); err != nil {
				return nil, fmt.Errorf("content[%d].cache_control: %w", i, err)
			}
		}
	}
	return all, nil
}

// plainText is a content of text alone.
func plainText(raw json.RawMessage) (string, error) {
	all, err := blocks(raw)
	if err != nil {
		return "", err
	}
	var texts []string
	for i, b := range all {
		if b.Type != "text" {
			return "", fmt.Errorf("content[%d]: only text is allowed here, not %q", i, b.Type)
		}
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n"), nil
}

// read turns system and turns into messages.
func (r *messagesRequest) read() error {
	r.names = messagesNames
	if r.maxTokens == nil {
		return badField("max_tokens", "it is missing")
	}
	if len(r.turns) == 0 {
		return badField("messages", "there are none")
	}
	system, err := plainText(r.system)
	if err != nil {
		return named(err, "system")
	}
	if system != "" {
		r.messages = append(r.messages, chat.System(system))
	}
	for i, t := range r.turns {
		all, err := blocks(t.Content)
		if err == nil {
			switch t.Role {
			case "user":
				err = r.asUser(all)
			case "assistant":
				err = r.asAssistant(all)
			case "system":
				var text string
				if text, err = plainText(t.Content); err == nil {
					r.messages = append(r.messages, chat.System(text))
				}
			default:
				err = fmt.Errorf("role %q is neither user nor assistant", clip(t.Role))
			}
		}
		if err != nil {
			return named(err, fmt.Sprintf("messages[%d]", i))
		}
	}
	return nil
}

// asUser adds a turn of the user: results of tools, which are messages of their own, and text.
func (r *messagesRequest) asUser(all []block) error {
	if len(all) == 0 {
		return fmt.Errorf("it has no content")
	}
	var texts []string
	for i, b := range all {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
		case "tool_result":
			text, err := plainText(b.Content)
			if err != nil {
				return fmt.Errorf("content[%d]: %w", i, err)
			}
			if b.IsError {
				text = "Error: " + text
			}
			r.messages = append(r.messages, chat.Message{Role: "tool", ToolCallID: b.ToolUseID, Content: chat.Text(text)})
		default:
			return fmt.Errorf("content[%d]: a user has no block of type %q", i, b.Type)
		}
	}
	if len(texts) > 0 {
		r.messages = append(r.messages, chat.User(strings.Join(texts, "\n")))
	}
	return nil
}

// asAssistant adds a reply of the model.
func (r *messagesRequest) asAssistant(all []block) error {
	m := chat.Message{Role: "assistant"}
	text, some := "", false
	for i, b := range all {
		switch b.Type {
		case "text":
			text, some = text+b.Text, true
		case "thinking":
			m.Reasoning += b.Thinking
		case "tool_use":
			if b.Name == "" {
				return fmt.Errorf("content[%d]: the call has no name", i)
			}
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: b.ID, Name: b.Name, Arguments: b.Input})
		default:
			return fmt.Errorf("content[%d]: an assistant has no block of type %q", i, b.Type)
		}
	}
	if some || len(m.ToolCalls) == 0 {
		m.Content = chat.Text(text)
	}
	r.messages = append(r.messages, m)
	return nil
}
