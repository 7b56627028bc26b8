package chat

import (
	"strings"

	"github.com/minfer-go/minfer/jinja"
)

// The tags around reasoning.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// ThinkMark returns the text of a control token that is a tag of reasoning. A decoder of tokens leaves it out, and a Splitter
// needs it. In most vocabularies the tags are tokens that decode to their text, or no tokens of their own.
func (c *Format) ThinkMark(id int32) (string, bool) {
	if !c.tokens.IsControl(id) {
		return "", false
	}
	text := c.tokens.Text(id)
	return text, text == thinkOpen || text == thinkClose
}

// thinkingAtEnd reports whether rendered text ends with an opening tag that the template wrote, white space aside.
func thinkingAtEnd(segments []jinja.Segment) bool {
	if len(segments) == 0 || !segments[len(segments)-1].Trusted {
		return false
	}
	return strings.HasSuffix(strings.TrimSpace(segments[len(segments)-1].Text), thinkOpen)
}

// A Kind says what a stretch of a reply is.
type Kind uint8

// The kinds. Markup is a tag of a block of reasoning, with the white space beside it.
const (
	ContentText Kind = iota
	ReasoningText
	Markup
)

// A Span is a stretch of a reply.
type Span struct {
	Kind Kind
	Text string
}

// A Splitter divides a reply, as it arrives, into reasoning and content. Reasoning is what stands in <think>...</think> at
// the beginning of the reply; such tags further on are content. The spans of a reply are its text, nothing lost, and do
// not depend on how it is cut into pieces, neighbours of one kind aside.
type Splitter struct {
	state splitState
	held  string
	seen  bool // reasoning was emitted
}

type splitState uint8

const (
	beforeReply splitState = iota
	inReasoning
	afterReasoning
	inContent
)

// NewSplitter returns a splitter for one reply. thinking: the prompt ends within a block of reasoning.
func NewSplitter(thinking bool) *Splitter {
	s := &Splitter{}
	if thinking {
		s.state = inReasoning
	}
	return s
}

// Push adds a piece of the reply and returns what is settled. It holds back the beginning of a tag and white space that
// may border on one.
func (s *Splitter) Push(piece string) []Span {
	if piece == "" {
		return nil
	}
	s.held += piece
	var out []Span
	for s.step(&out) {
	}
	return out
}

// Flush ends the reply and returns what was held back. The splitter must not be used after it.
func (s *Splitter) Flush() []Span {
	var out []Span
	switch s.state {
	case inReasoning:
		text := strings.TrimRight(s.held, space)
		s.reason(&out, text)
		emit(&out, Markup, s.held[len(text):])
	case afterReasoning:
		emit(&out, Markup, s.held)
	default:
		emit(&out, ContentText, s.held)
	}
	s.held, s.state = "", inContent
	return out
}

const space = " \t\r\n"

func emit(out *[]Span, k Kind, text string) {
	if text != "" {
		*out = append(*out, Span{k, text})
	}
}

// step takes one decision on what is held and reports whether another may follow.
func (s *Splitter) step(out *[]Span) bool {
	switch s.state {
	case beforeReply:
		body := strings.TrimLeft(s.held, space)
		if strings.HasPrefix(body, thinkOpen) {
			n := len(s.held) - len(body) + len(thinkOpen)
			emit(out, Markup, s.held[:n])
			s.held, s.state = s.held[n:], inReasoning
			return true
		}
		if strings.HasPrefix(thinkOpen, body) {
			return false
		}
		s.state = inContent
		return true
	case inReasoning:
		if at := strings.Index(s.held, thinkClose); at >= 0 {
			text := strings.TrimRight(s.held[:at], space)
			s.reason(out, text)
			emit(out, Markup, s.held[len(text):at+len(thinkClose)])
			s.held, s.state = s.held[at+len(thinkClose):], afterReasoning
			return true
		}
		n := len(strings.TrimRight(s.held[:len(s.held)-tagBegun(s.held)], space))
		s.reason(out, s.held[:n])
		s.held = s.held[n:]
		return false
	case afterReasoning:
		body := strings.TrimLeft(s.held, space)
		emit(out, Markup, s.held[:len(s.held)-len(body)])
		if s.held = body; body != "" {
			s.state = inContent
		}
		return body != ""
	}
	emit(out, ContentText, s.held)
	s.held = ""
	return false
}

// reason emits reasoning; white space before its first character is markup.
func (s *Splitter) reason(out *[]Span, text string) {
	if text == "" {
		return
	}
	if !s.seen {
		body := strings.TrimLeft(text, space)
		emit(out, Markup, text[:len(text)-len(body)])
		text, s.seen = body, body != ""
	}
	emit(out, ReasoningText, text)
}

// tagBegun is the length of the longest end of a text that may begin the closing tag.
func tagBegun(text string) int {
	for n := min(len(text), len(thinkClose)-1); n > 0; n-- {
		if strings.HasPrefix(thinkClose, text[len(text)-n:]) {
			return n
		}
	}
	return 0
}

// Split divides a whole reply.
func Split(reply string, thinking bool) (reasoning, content string) {
	s := NewSplitter(thinking)
	for _, span := range append(s.Push(reply), s.Flush()...) {
		switch span.Kind {
		case ReasoningText:
			reasoning += span.Text
		case ContentText:
			content += span.Text
		}
	}
	return reasoning, content
}
