package chat

import (
	"encoding/json"
	"regexp"
	"strings"
)

// callHead matches the beginning of a call up to the brace of its arguments, in the order of ForcedCall's schema: alone, or
// as the first of a list. nextCall matches that of a further one in a list.
var (
	callHead = regexp.MustCompile(`^[ \t\r\n]*(?:\[[ \t\r\n]*)?` + callObject)
	nextCall = regexp.MustCompile(`^[ \t\r\n]*,[ \t\r\n]*` + callObject)
)

const callObject = `\{[ \t\r\n]*"name"[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*,[ \t\r\n]*"(?:arguments|parameters)"[ \t\r\n]*:[ \t\r\n]*\{`

// maxCallHead bounds the beginning of a call that is returned before it is whole, in bytes: its name, perhaps with escapes.
const maxCallHead = 8 * maxCallName

// begin returns a call as soon as its name and the beginning of its arguments are there, after start.
func (p *CallParser) begin(out *[]CallPart, head *regexp.Regexp, start int, marked bool) bool {
	at := head.FindStringSubmatchIndex(p.held[start:min(len(p.held), start+maxCallHead)])
	if at == nil {
		return false
	}
	var name string
	if json.Unmarshal([]byte(p.held[start+at[2]:start+at[3]]), &name) != nil || name == "" || !marked && !p.known[name] {
		return false
	}
	*out = append(*out, CallPart{Kind: CallBegin, Text: name})
	p.held, p.state, p.json, p.found = p.held[start+at[1]-1:], withinArguments, objectScan{}, true
	return true
}

// eager goes on with a call that was begun.
func (p *CallParser) eager(out *[]CallPart) bool {
	if p.held == "" {
		return false
	}
	if p.state == withinArguments {
		end, _ := p.json.end(p.held, 0)
		whole := end >= 0
		if !whole {
			end, p.json.at = len(p.held), 0
		}
		*out = append(*out, CallPart{Kind: CallArguments, Text: p.held[:end]})
		if p.held = p.held[end:]; whole {
			*out = append(*out, CallPart{Kind: CallEnd})
			p.state = afterArguments
		}
		return p.held != ""
	}
	body := strings.TrimLeft(p.held, space)
	switch {
	case body == "":
		return false
	case p.state == afterArguments && body[0] == '}':
		p.held, p.state = body[1:], afterCall
		if p.syntax == MistralCalls {
			p.state = betweenCalls
		}
	case p.state == betweenCalls && body[0] == ']':
		p.held, p.state = body[1:], afterCall
	case p.state == betweenCalls && body[0] == ',':
		return p.begin(out, nextCall, 0, true)
	default: // the reply was not constrained after all
		p.state = outsideCall
	}
	return true
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
