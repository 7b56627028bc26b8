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

// A CallPart is a stretch of a reply: text, or, where Call is set, a call.
type CallPart struct {
	Text string
	Call *ToolCall // its Arguments are a JSON object
}

// A CallParser finds the calls in a reply as it arrives. What is not a whole well-formed call stays text. White space
// beside calls is left out.
type CallParser struct {
	syntax CallSyntax
	known  map[string]bool
	held   string
	state  callState
	json   objectScan
	found  bool // a call was returned
	texted bool // text other than white space was returned
}

type callState uint8

const (
	outsideCall callState = iota
	insideCall            // held begins with the mark, or is the object itself
	afterCall             // the closing mark may follow
)

// NewCallParser returns a parser for one reply. names are the tools of the request: an object without a mark is a call
// only if it names one of them.
func NewCallParser(s CallSyntax, names []string) *CallParser {
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	return &CallParser{syntax: s, known: known}
}

// Push adds text and returns what is settled.
func (p *CallParser) Push(text string) []CallPart {
	p.held += text
	var out []CallPart
	for p.step(&out, false) {
	}
	return out
}

// Flush ends the reply and returns what was held back.
func (p *CallParser) Flush() []CallPart {
	var out []CallPart
	for p.step(&out, true) {
	}
	if p.state == afterCall {
		p.held = ""
	}
	if p.found {
		p.held = strings.TrimRight(p.held, space)
	}
	p.text(&out, p.held)
	p.held = ""
	return out
}

func (p *CallParser) text(out *[]CallPart, text string) {
	if p.found && !p.texted {
		text = strings.TrimLeft(text, space)
	}
	if text == "" {
		return
	}
	p.texted = p.texted || strings.Trim(text, space) != ""
	if n := len(*out); n > 0 && (*out)[n-1].Call == nil {
		(*out)[n-1].Text += text
		return
	}
	*out = append(*out, CallPart{Text: text})
}

// step takes one decision on what is held and reports whether another may follow. last: nothing else will come.
func (p *CallParser) step(out *[]CallPart, last bool) bool {
	switch p.state {
	case outsideCall:
		return p.outside(out, last)
	case afterCall:
		body := strings.TrimLeft(p.held, space)
		if p.syntax == LlamaCalls {
			body = strings.TrimLeft(body, ";"+space)
		}
		p.held = body
		if body == "" || p.syntax == HermesCalls && !last && body != hermesClose && strings.HasPrefix(hermesClose, body) {
			return false
		}
		if p.syntax == HermesCalls {
			p.held = strings.TrimPrefix(body, hermesClose)
		}
		p.state, p.texted = outsideCall, false
		return p.held != ""
	}
	return p.inside(out, last)
}

// outside looks for the beginning of a call.
func (p *CallParser) outside(out *[]CallPart, last bool) bool {
	mark := p.syntax.open()
	at := strings.Index(p.held, mark)
	if p.syntax == LlamaCalls && !p.texted {
		if body := strings.TrimLeft(p.held, space); strings.HasPrefix(body, "{") {
			p.held, p.state, p.json = body, insideCall, objectScan{}
			return true
		} else if body == "" {
			return false
		}
	}
	if at >= 0 {
		p.text(out, strings.TrimRight(p.held[:at], space))
		p.held, p.state, p.json = p.held[at:], insideCall, objectScan{}
		return true
	}
	if last {
		return false
	}
	keep := len(p.held) - markBegun(p.held, mark)
	keep = len(strings.TrimRight(p.held[:keep], space))
	p.text(out, p.held[:keep])
	p.held = p.held[keep:]
	return false
}

// inside waits for the end of a call's JSON.
func (p *CallParser) inside(out *[]CallPart, last bool) bool {
	mark := p.syntax.open()
	if !strings.HasPrefix(p.held, mark) {
		mark = ""
	}
	start := len(mark)
	name := ""
	if p.syntax == MistralCalls {
		// [TOOL_CALLS]name[ARGS]{...}
		body := strings.TrimLeft(p.held[start:], space)
		if body != "" && body[0] != '[' && body[0] != '{' {
			args := strings.Index(p.held, mistralArgs)
			if args < 0 {
				return p.giveUp(out, last || len(body) > maxCallName, start)
			}
			name, start = strings.TrimSpace(p.held[start:args]), args+len(mistralArgs)
		}
	}
	end, ok := p.json.end(p.held, start)
	if !ok {
		return p.giveUp(out, true, start)
	}
	if end < 0 {
		return p.giveUp(out, last, start)
	}
	calls, ok := parseCalls(p.held[start:end], name)
	if ok && mark == "" {
		for _, c := range calls {
			ok = ok && p.known[c.Name]
		}
	}
	if !ok {
		return p.giveUp(out, true, end)
	}
	for i := range calls {
		*out = append(*out, CallPart{Call: &calls[i]})
	}
	p.held, p.state, p.found = p.held[end:], afterCall, true
	return true
}

// maxCallName bounds the name of a function that stands outside JSON.
const maxCallName = 256

// giveUp makes what is held up to an index text, if it can no longer become a call.
func (p *CallParser) giveUp(out *[]CallPart, sure bool, upTo int) bool {
	if !sure {
		return false
	}
	upTo = max(upTo, min(1, len(p.held)))
	p.text(out, p.held[:upTo])
	p.texted = true
	p.held, p.state = p.held[upTo:], outsideCall
	return p.held != ""
}

// markBegun is the length of the longest end of a text that may begin a mark.
func markBegun(text, mark string) int {
	for n := min(len(text), len(mark)-1); n > 0; n-- {
		if strings.HasPrefix(mark, text[len(text)-n:]) {
			return n
		}
	}
	return 0
}

// An objectScan finds where a JSON object or list ends in a text that grows.
type objectScan struct {
	at      int // scanned up to here
	depth   int
	text    bool // within a string
	escaped bool
}

// end returns the index after the value that begins at or after start, white space aside; -1 while it has not ended, and
// ok false if there is none.
func (s *objectScan) end(text string, start int) (at int, ok bool) {
	for s.at = max(s.at, start); s.at < len(text); s.at++ {
		c := text[s.at]
		switch {
		case s.escaped:
			s.escaped = false
		case s.text:
			s.escaped = c == '\\'
			s.text = c != '"'
		case c == '{' || c == '[':
			s.depth++
		case s.depth == 0:
			if !strings.ContainsRune(space, rune(c)) {
				return -1, false
			}
		case c == '"':
			s.text = true
		case c == '}' || c == ']':
			if s.depth--; s.depth == 0 {
				s.at++
				return s.at, true
			}
		}
	}
	return -1, true
}

// parseCalls reads a call or a list of them. name is that of the function where the JSON holds its arguments alone.
func parseCalls(text, name string) (calls []ToolCall, ok bool) {
	text = strings.TrimSpace(text)
	if name != "" {
		arguments, ok := argumentsOf(json.RawMessage(text))
		return []ToolCall{{Name: name, Arguments: arguments}}, ok
	}
	if strings.HasPrefix(text, "[") {
		var items []json.RawMessage
		if json.Unmarshal([]byte(text), &items) != nil || len(items) == 0 {
			return nil, false
		}
		for _, raw := range items {
			more, ok := parseCalls(string(raw), "")
			if !ok {
				return nil, false
			}
			calls = append(calls, more...)
		}
		return calls, true
	}
	var o Object
	if json.Unmarshal([]byte(text), &o) != nil {
		return nil, false
	}
	if inner, ok := o.Get("function"); ok && json.Unmarshal(inner, &o) != nil {
		return nil, false
	}
	call := ToolCall{}
	if err := o.take("name", &call.Name); err != nil || call.Name == "" {
		return nil, false
	}
	raw, ok := o.Get("arguments")
	if !ok {
		raw, _ = o.Get("parameters")
	}
	call.Arguments, ok = argumentsOf(raw)
	return []ToolCall{call}, ok
}

// argumentsOf is the object of a call's arguments, which may stand in a string.
func argumentsOf(raw json.RawMessage) (json.RawMessage, bool) {
	if isNull(raw) {
		return json.RawMessage("{}"), true
	}
	var inner string
	if raw[0] == '"' && json.Unmarshal(raw, &inner) == nil {
		raw = json.RawMessage(strings.TrimSpace(inner))
	}
	return raw, len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}
