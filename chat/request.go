package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/minfer-go/minfer/jinja"
)

// A Request is a conversation to answer.
type Request struct {
	Messages  []Message
	Tools     []json.RawMessage // definitions of functions, as JSON objects
	Documents []json.RawMessage // for retrieval, as JSON objects
	Variables Object            // further variables of the template, such as enable_thinking
	// NoReply leaves out the beginning of a reply: the variable add_generation_prompt is false.
	NoReply bool
}

// own are the variables that a request has fields for.
var own = map[string]bool{"messages": true, "tools": true, "documents": true, "add_generation_prompt": true}

// Prompt renders a request and encodes it. Tools and documents that a request does not have are undefined variables.
// Contents and arguments of calls take the form that the template understands:
// a list of text parts becomes one text for a template that prints lists as they are, a text becomes a list where only
// lists are printed, and arguments become JSON text where the template cannot use an object.
//
// Errors wrap [ErrTemplate] or [ErrMessage], or are those of ctx.
func (c *Format) Prompt(ctx context.Context, r Request) (*Prompt, error) {
	src := c.source(len(r.Tools) > 0)
	t, err := src.compile()
	if err != nil {
		return nil, c.fail(err)
	}
	data, err := c.variables(ctx, t, r)
	if err != nil {
		return nil, err
	}
	segments, err := t.Segments(ctx, data)
	if err != nil {
		return nil, c.fail(err)
	}
	return c.encode(segments), nil
}

// variables are what the template sees of a request.
func (c *Format) variables(ctx context.Context, t *jinja.Template, r Request) (jinja.Value, error) {
	if len(r.Messages) == 0 {
		return jinja.Value{}, fmt.Errorf("%w: there are no messages", ErrMessage)
	}
	form := c.formOf(ctx, t, r)
	messages := make([]jinja.Value, len(r.Messages))
	for i, m := range r.Messages {
		v, err := m.value(form)
		if err != nil {
			return jinja.Value{}, fmt.Errorf("%w: message %d: %w", ErrMessage, i, err)
		}
		messages[i] = v
	}
	tools, err := list(r.Tools)
	if err != nil {
		return jinja.Value{}, fmt.Errorf("%w: tools: %w", ErrMessage, err)
	}
	documents, err := list(r.Documents)
	if err != nil {
		return jinja.Value{}, fmt.Errorf("%w: documents: %w", ErrMessage, err)
	}
	pairs := append([]jinja.Pair{
		{Key: "messages", Value: jinja.List(messages...)}, {Key: "add_generation_prompt", Value: jinja.Bool(!r.NoReply)},
	}, c.special...)
	if len(r.Tools) > 0 {
		pairs = append(pairs, jinja.Pair{Key: "tools", Value: tools})
	}
	if len(r.Documents) > 0 {
		pairs = append(pairs, jinja.Pair{Key: "documents", Value: documents})
	}
	for _, f := range r.Variables {
		if own[f.Key] {
			return jinja.Value{}, fmt.Errorf("%w: %q is no variable that a request may set", ErrMessage, f.Key)
		}
		v, err := jinja.FromJSON(f.Value)
		if err != nil {
			return jinja.Value{}, fmt.Errorf("%w: variable %s: %w", ErrMessage, f.Key, err)
		}
		pairs = append(pairs, jinja.Pair{Key: f.Key, Value: v})
	}
	return jinja.Object(pairs...), nil
}

// list is a list of JSON values.
func list(items []json.RawMessage) (jinja.Value, error) {
	values := make([]jinja.Value, len(items))
	for i, raw := range items {
		v, err := jinja.FromJSON(raw)
		if err != nil {
			return v, fmt.Errorf("element %d: %w", i, err)
		}
		values[i] = v
	}
	return jinja.List(values...), nil
}

// A form is how a template wants messages.
type form struct {
	parts     bool // text contents as lists
	flat      bool // lists of parts as one text
	arguments bool // arguments of calls as JSON text
}

// value is the message as the template sees it.
func (m *Message) value(f form) (jinja.Value, error) {
	pairs := []jinja.Pair{{Key: "role", Value: jinja.String(m.Role)}}
	content, err := m.Content.value(f)
	if err != nil {
		return content, err
	}
	pairs = append(pairs, jinja.Pair{Key: "content", Value: content})
	if m.Reasoning != "" {
		pairs = append(pairs, jinja.Pair{Key: "reasoning_content", Value: jinja.String(m.Reasoning)})
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]jinja.Value, len(m.ToolCalls))
		for i := range m.ToolCalls {
			if calls[i], err = m.ToolCalls[i].value(f); err != nil {
				return calls[i], fmt.Errorf("tool call %d: %w", i, err)
			}
		}
		pairs = append(pairs, jinja.Pair{Key: "tool_calls", Value: jinja.List(calls...)})
	}
	if m.ToolCallID != "" {
		pairs = append(pairs, jinja.Pair{Key: "tool_call_id", Value: jinja.String(m.ToolCallID)})
	}
	if m.Name != "" {
		pairs = append(pairs, jinja.Pair{Key: "name", Value: jinja.String(m.Name)})
	}
	return object(pairs, m.Extra)
}

func (c Content) value(f form) (jinja.Value, error) {
	switch {
	case c.kind == noContent:
		return jinja.None(), nil
	case c.kind == textContent && f.parts:
		return Parts(Part{Type: "text", Text: c.text}).value(form{})
	case c.kind == textContent:
		return jinja.String(c.text), nil
	case f.flat:
		for _, p := range c.parts {
			if p.Type != "text" {
				return jinja.Value{}, fmt.Errorf("the template takes no part of type %q", p.Type)
			}
		}
		return jinja.String(c.String()), nil
	}
	parts := make([]jinja.Value, len(c.parts))
	for i, p := range c.parts {
		pairs := []jinja.Pair{{Key: "type", Value: jinja.String(p.Type)}}
		if p.Type == "text" {
			pairs = append(pairs, jinja.Pair{Key: "text", Value: jinja.String(p.Text)})
		}
		var err error
		if parts[i], err = object(pairs, p.Extra); err != nil {
			return parts[i], err
		}
	}
	return jinja.List(parts...), nil
}

func (c *ToolCall) value(f form) (jinja.Value, error) {
	arguments, err := c.arguments(f.arguments)
	if err != nil {
		return arguments, fmt.Errorf("arguments of %s: %w", c.Name, err)
	}
	function := jinja.Object(jinja.Pair{Key: "name", Value: jinja.String(c.Name)}, jinja.Pair{Key: "arguments", Value: arguments})
	var pairs []jinja.Pair
	if c.ID != "" {
		pairs = append(pairs, jinja.Pair{Key: "id", Value: jinja.String(c.ID)})
	}
	pairs = append(pairs, jinja.Pair{Key: "type", Value: jinja.String("function")}, jinja.Pair{Key: "function", Value: function})
	return object(pairs, c.Extra)
}

// arguments are the object, or its JSON text.
func (c *ToolCall) arguments(text bool) (jinja.Value, error) {
	raw := bytes.TrimSpace(c.Arguments)
	if isNull(raw) {
		raw = []byte("{}")
	}
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		if text {
			return jinja.String(inner), nil
		}
		if b := bytes.TrimSpace([]byte(inner)); len(b) > 0 && b[0] == '{' && json.Valid(b) {
			return jinja.FromJSON(b)
		}
		return jinja.String(inner), nil
	}
	if text {
		return jinja.String(string(raw)), nil
	}
	return jinja.FromJSON(raw)
}

// object appends further keys to pairs.
func object(pairs []jinja.Pair, extra Object) (jinja.Value, error) {
	for _, f := range extra {
		v, err := jinja.FromJSON(f.Value)
		if err != nil {
			return v, fmt.Errorf("%s: %w", f.Key, err)
		}
		pairs = append(pairs, jinja.Pair{Key: f.Key, Value: v})
	}
	return jinja.Object(pairs...), nil
}
