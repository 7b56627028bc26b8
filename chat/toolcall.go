package chat

import (
	"encoding/json"
	"strings"
)

// A CallSyntax is how a model writes calls of tools in its replies.
type CallSyntax uint8

// The syntaxes.
const (
	HermesCalls  CallSyntax = iota // <tool_call>{"name": ..., "arguments": {...}}</tool_call>, of Qwen and Hermes too
	LlamaCalls                     // {"name": ..., "parameters": {...}} as the whole reply, or after <|python_tag|>
	MistralCalls                   // [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...], or [TOOL_CALLS]name[ARGS]{...}
)

// The marks around calls.
const (
	hermesOpen  = "<tool_call>"
	hermesClose = "</tool_call>"
	llamaOpen   = "<|python_tag|>"
	mistralOpen = "[TOOL_CALLS]"
	mistralArgs = "[ARGS]"
)

// marks are the texts that a syntax may hold as control tokens.
var marks = map[CallSyntax][]string{
	HermesCalls:  {hermesOpen, hermesClose},
	LlamaCalls:   {llamaOpen},
	MistralCalls: {mistralOpen, mistralArgs},
}

// open is the mark that begins a call.
func (s CallSyntax) open() string { return marks[s][0] }

// Mark is the text that every call begins with; empty where a reply that is an object is a call.
func (s CallSyntax) Mark() string {
	if s == LlamaCalls {
		return ""
	}
	return s.open()
}

// Calls is the syntax that the model's template teaches it.
func (c *Format) Calls() CallSyntax {
	text := c.source(true).text
	switch {
	case strings.Contains(text, hermesOpen):
		return HermesCalls
	case strings.Contains(text, mistralOpen):
		return MistralCalls
	case strings.Contains(text, llamaOpen), strings.Contains(text, "<|start_header_id|>"):
		return LlamaCalls
	}
	return HermesCalls
}

// TakesTools reports whether the template reads the tools of a request.
func (c *Format) TakesTools() bool { return strings.Contains(c.source(true).text, "tools") }

// CallMark returns the text of a control token that is part of the model's syntax of calls, which a decoder of tokens
// leaves out and a CallParser needs.
func (c *Format) CallMark(s CallSyntax, id int32) (string, bool) {
	if !c.tokens.IsControl(id) {
		return "", false
	}
	text := c.tokens.Text(id)
	for _, m := range marks[s] {
		if m == text {
			return m, true
		}
	}
	return "", false
}

// ForcedCall returns what to put after a prompt so that the reply must be a call, and the JSON Schema of what follows it.
// tools are the names that may be called with the schemas of their arguments, most bounds how many calls where the syntax
// holds several. thinking: the prompt ends within a block of reasoning, which is closed.
func (c *Format) ForcedCall(s CallSyntax, tools []CallTool, most int, thinking bool) (prefix []int32, text string, schema []byte, err error) {
	text = s.open()
	if s == HermesCalls {
		text += "\n"
	}
	if s == LlamaCalls {
		text = "" // a reply that is an object is a call
	}
	before := ""
	if thinking {
		before = "\n" + thinkClose + "\n\n"
	}
	prefix = c.tokens.Encode(before+text, true)
	key := "arguments"
	if s == LlamaCalls {
		key = "parameters"
	}
	var calls []json.RawMessage
	for _, t := range tools {
		parameters := t.Parameters
		if isNull(parameters) {
			parameters = json.RawMessage(`{"type":"object"}`)
		}
		name, err := marshal(t.Name)
		if err != nil {
			return nil, "", nil, err
		}
		call := `{"type":"object","properties":{"name":{"const":` + string(name) + `},"` + key + `":` + string(parameters) +
			`},"required":["name","` + key + `"],"additionalProperties":false}`
		calls = append(calls, json.RawMessage(call))
	}
	var one any = calls[0]
	if len(calls) > 1 {
		one = map[string]any{"anyOf": calls}
	}
	if s == MistralCalls {
		one = map[string]any{"type": "array", "minItems": 1, "maxItems": most, "items": one}
	}
	schema, err = marshal(one)
	return prefix, text, schema, err
}

// A CallTool is a function that may be called.
type CallTool struct {
	Name       string
	Parameters json.RawMessage // JSON Schema of its arguments; null for any object
}
