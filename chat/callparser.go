package chat

import "strings"

// A CallPartKind says what a CallPart is.
type CallPartKind uint8

// The kinds. A call is a CallBegin, any number of CallArguments, and a CallEnd.
const (
	CallText      CallPartKind = iota // text beside calls
	CallBegin                         // a call, whose function Text names
	CallArguments                     // a piece of its arguments, which together are a JSON object
	CallEnd
)

// A CallPart is a stretch of a reply.
type CallPart struct {
	Kind CallPartKind
	Text string
	Cut  bool // of a CallEnd: the reply ended within the call, whose arguments are not whole
}

// A CallParser finds the calls in a reply as it arrives. What is not a whole well-formed call stays text. White space
// beside calls is left out.
//
// A call is returned when it is whole. Where the reply is constrained, so that what begins as a call is one, it is returned as
// it arrives; only there can it be cut.
type CallParser struct {
	syntax      CallSyntax
	known       map[string]bool
	constrained bool
	held        string
	state       callState
	json        objectScan
	found       bool // a call was returned
	texted      bool // text other than white space was returned
}

type callState uint8

const (
	outsideCall     callState = iota
	insideCall                // held begins with the mark, or is the object itself
	withinArguments           // of a call that was returned as far as it came
	afterArguments            // the end of that call's object follows
	betweenCalls              // of a list
	afterCall                 // the closing mark may follow
)

// NewCallParser returns a parser for one reply. names are the tools of the request: an object without a mark is a call
// only if it names one of them. constrained: the calls of the reply follow the schema of [Format.ForcedCall].
func NewCallParser(s CallSyntax, names []string, constrained bool) *CallParser {
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	return &CallParser{syntax: s, known: known, constrained: constrained}
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
	switch p.state {
	case withinArguments:
		out = append(out, CallPart{Kind: CallEnd, Cut: true})
	case afterCall:
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
	if n := len(*out); n > 0 && (*out)[n-1].Kind == CallText {
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
	case withinArguments, afterArguments, betweenCalls:
		return p.eager(out)
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
	if p.constrained && p.begin(out, callHead, start, mark != "") {
		return true
	}
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
	for _, c := range calls {
		*out = append(*out, CallPart{Kind: CallBegin, Text: c.Name}, CallPart{Kind: CallArguments, Text: string(c.Arguments)}, CallPart{Kind: CallEnd})
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
