package server

import (
	"bytes"

	"github.com/minfer-go/minfer/grammar"
	"github.com/minfer-go/minfer/tokenizer"
)

// A lazyMask lets a reply run free until a mark, and constrains what follows it. If it repeats, the reply is free again
// once the constrained text is complete, until the next mark. Without a mark, it constrains a reply that begins with an
// object.
type lazyMask struct {
	tokens  *tokenizer.Tokenizer
	mark    []byte
	matcher *grammar.Matcher
	repeats bool
	tail    []byte // the end of the free text, shorter than the mark
	state   *grammar.State
	free    bool // for good
}

func newLazyMask(t *tokenizer.Tokenizer, mark string, m *grammar.Matcher, repeats bool) *lazyMask {
	return &lazyMask{tokens: t, mark: []byte(mark), matcher: m, repeats: repeats}
}

// Allowed reports whether a token may come next.
func (m *lazyMask) Allowed(id int32) bool { return m.state == nil || m.state.Allowed(id) }

// Apply sets the logits of tokens that may not come next to -Inf.
func (m *lazyMask) Apply(logits []float32) bool {
	return m.state == nil || m.state.Apply(logits)
}

// Accept moves past a token.
func (m *lazyMask) Accept(id int32) error {
	if m.state != nil {
		if err := m.state.Accept(id); err != nil {
			return err
		}
		m.settle()
		return nil
	}
	if m.free {
		return nil
	}
	text := append(m.tail, m.tokens.PieceSpecial(id)...)
	if len(m.mark) == 0 {
		return m.begin(text)
	}
	at := bytes.Index(text, m.mark)
	if at < 0 {
		m.tail = bytes.Clone(text[max(0, len(text)-len(m.mark)+1):])
		return nil
	}
	m.tail = nil
	state := m.matcher.Start()
	// A token may hold the mark and more. What more it holds was free; if it fits, the constraint goes on from there.
	if rest := text[at+len(m.mark):]; state.AcceptBytes(rest) == nil {
		m.state = state
		m.settle()
	}
	return nil
}

// begin looks at the first text of a reply that has no mark.
func (m *lazyMask) begin(text []byte) error {
	if m.tail = bytes.TrimSpace(text); len(m.tail) == 0 {
		return nil
	}
	state := m.matcher.Start()
	if m.free = m.tail[0] != '{' || state.AcceptBytes(m.tail) != nil; !m.free {
		m.state = state
	}
	return nil
}

// settle frees the reply once the constrained text is complete.
func (m *lazyMask) settle() {
	if m.repeats && m.state.Complete() {
		m.state = nil
	}
}
