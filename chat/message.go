package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A Message is one message of a conversation, in the shape of OpenAI's API.
type Message struct {
	Role       string
	Content    Content
	Reasoning  string // "reasoning_content": what the model thought before it answered
	ToolCalls  []ToolCall
	ToolCallID string // which call a tool message answers
	Name       string
	Extra      Object // further keys, which the template sees too
}

// System is a message that says how to behave.
func System(text string) Message { return Message{Role: "system", Content: Text(text)} }

// User is a message of the user.
func User(text string) Message { return Message{Role: "user", Content: Text(text)} }

// Assistant is a reply of the model.
func Assistant(text string) Message { return Message{Role: "assistant", Content: Text(text)} }

// A Content is a text, a list of parts, or nothing (null), which is the zero Content.
type Content struct {
	text  string
	parts []Part
	kind  contentKind
}

type contentKind uint8

const (
	noContent contentKind = iota
	textContent
	partsContent
)

// A Part is one element of a content that is a list.
type Part struct {
	Type  string // "text", "image_url", ...
	Text  string // of a part of type "text"
	Extra Object // further keys
}

// Text is a content that is one text.
func Text(s string) Content { return Content{text: s, kind: textContent} }

// Parts is a content that is a list.
func Parts(p ...Part) Content { return Content{parts: p, kind: partsContent} }

// IsZero reports whether there is no content.
func (c Content) IsZero() bool { return c.kind == noContent }

// Parts returns the parts of a list; ok is false if the content is none.
func (c Content) Parts() (p []Part, ok bool) { return c.parts, c.kind == partsContent }

// String is the text, or the texts of the parts with line ends between them.
func (c Content) String() string {
	if c.kind != partsContent {
		return c.text
	}
	var texts []string
	for _, p := range c.parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// A ToolCall is a call that the model asked for.
type ToolCall struct {
	ID        string
	Name      string          // of the function
	Arguments json.RawMessage // a JSON object; a JSON string that holds one counts as that object where the template wants it
	Extra     Object          // further keys
}

// UnmarshalJSON reads a string, a list of parts, or null.
func (c *Content) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case isNull(b):
		*c = Content{}
		return nil
	case b[0] == '"':
		c.kind = textContent
		return json.Unmarshal(b, &c.text)
	case b[0] == '[':
		c.kind = partsContent
		return json.Unmarshal(b, &c.parts)
	}
	return fmt.Errorf("content is neither a string nor a list of parts: %.40s", b)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (c Content) MarshalJSON() ([]byte, error) {
	switch c.kind {
	case textContent:
		return marshal(c.text)
	case partsContent:
		if c.parts == nil {
			return []byte("[]"), nil
		}
		return marshal(c.parts)
	}
	return []byte("null"), nil
}

// take removes a key of an object and reads its value, if it is there and not null.
func (o *Object) take(key string, into any) error {
	value, ok := o.Get(key)
	if !ok {
		return nil
	}
	kept := (*o)[:0]
	for _, f := range *o {
		if f.Key != key {
			kept = append(kept, f)
		}
	}
	*o = kept
	if isNull(value) {
		return nil
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// UnmarshalJSON reads a part.
func (p *Part) UnmarshalJSON(b []byte) error {
	*p = Part{}
	if err := json.Unmarshal(b, &p.Extra); err != nil {
		return err
	}
	if err := p.Extra.take("type", &p.Type); err != nil {
		return err
	}
	if p.Type != "text" {
		return nil
	}
	return p.Extra.take("text", &p.Text)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (p Part) MarshalJSON() ([]byte, error) {
	o := Object{}
	if err := o.add("type", p.Type); err != nil {
		return nil, err
	}
	if p.Type == "text" {
		if err := o.add("text", p.Text); err != nil {
			return nil, err
		}
	}
	return append(o, p.Extra...).MarshalJSON()
}

// UnmarshalJSON reads {"id", "type": "function", "function": {"name", "arguments"}}, or the inner object alone.
func (c *ToolCall) UnmarshalJSON(b []byte) error {
	*c = ToolCall{}
	if err := json.Unmarshal(b, &c.Extra); err != nil {
		return err
	}
	if err := c.Extra.take("id", &c.ID); err != nil {
		return err
	}
	var function Object
	if raw, ok := c.Extra.Get("function"); !ok {
		function = c.Extra
		c.Extra = nil
	} else if err := json.Unmarshal(raw, &function); err != nil {
		return fmt.Errorf("function: %w", err)
	}
	var kind string
	for _, k := range []struct {
		from *Object
		key  string
		into any
	}{
		{&c.Extra, "type", &kind}, {&c.Extra, "function", &Object{}}, {&function, "name", &c.Name}, {&function, "arguments", &c.Arguments},
	} {
		if err := k.from.take(k.key, k.into); err != nil {
			return err
		}
	}
	c.Extra = append(c.Extra, function...)
	return nil
}

// MarshalJSON writes a call in OpenAI's shape.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	var function, o Object
	arguments := c.Arguments
	if isNull(arguments) {
		arguments = json.RawMessage("{}")
	}
	err := function.add("name", c.Name)
	if err != nil {
		return nil, err
	}
	function.Set("arguments", arguments)
	if c.ID != "" {
		if err := o.add("id", c.ID); err != nil {
			return nil, err
		}
	}
	if err := o.add("type", "function"); err != nil {
		return nil, err
	}
	if err := o.add("function", function); err != nil {
		return nil, err
	}
	return append(o, c.Extra...).MarshalJSON()
}

// UnmarshalJSON reads a message.
func (m *Message) UnmarshalJSON(b []byte) error {
	*m = Message{}
	if err := json.Unmarshal(b, &m.Extra); err != nil {
		return err
	}
	if role, ok := m.Extra.Get("role"); !ok || isNull(role) {
		return fmt.Errorf("%w: it has no role", ErrMessage)
	}
	for _, k := range []struct {
		key  string
		into any
	}{
		{"role", &m.Role},
		{"content", &m.Content},
		{"reasoning_content", &m.Reasoning},
		{"tool_calls", &m.ToolCalls},
		{"tool_call_id", &m.ToolCallID},
		{"name", &m.Name},
	} {
		if err := m.Extra.take(k.key, k.into); err != nil {
			return fmt.Errorf("%w: %w", ErrMessage, err)
		}
	}
	if len(m.Extra) == 0 {
		m.Extra = nil
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (m Message) MarshalJSON() ([]byte, error) {
	o := Object{}
	add := func(ok bool, key string, value any) error {
		if !ok {
			return nil
		}
		return o.add(key, value)
	}
	for _, k := range []struct {
		ok    bool
		key   string
		value any
	}{
		{true, "role", m.Role},
		{true, "content", m.Content},
		{m.Reasoning != "", "reasoning_content", m.Reasoning},
		{len(m.ToolCalls) > 0, "tool_calls", m.ToolCalls},
		{m.ToolCallID != "", "tool_call_id", m.ToolCallID},
		{m.Name != "", "name", m.Name},
	} {
		if err := add(k.ok, k.key, k.value); err != nil {
			return nil, err
		}
	}
	return append(o, m.Extra...).MarshalJSON()
}
