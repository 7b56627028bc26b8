package server

import (
	"bytes"
	"math"

	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// A budgetMask ends a block of reasoning that takes too many tokens: then nothing but its closing tag may come. It stands
// before another mask or nil.
type budgetMask struct {
	inner   sample.Mask
	tokens  *tokenizer.Tokenizer
	closing []int32 // the closing tag
	left    int     // tokens of reasoning
	state   budgetState
	tail    []byte
	forced  int // tokens of the closing tag that came
}

type budgetState uint8

const (
	budgetBefore budgetState = iota // the reply may begin with reasoning
	budgetWithin
	budgetForcing
	budgetOver
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// newBudgetMask bounds the reasoning of a reply. thinking: the prompt ends within it.
func newBudgetMask(t *tokenizer.Tokenizer, inner sample.Mask, tokens int, thinking bool) *budgetMask {
	m := &budgetMask{inner: inner, tokens: t, left: tokens, closing: t.Encode(thinkClose, true)}
	if thinking {
		m.state = budgetWithin
	}
	return m
}

// Allowed reports whether a token may come next.
func (m *budgetMask) Allowed(id int32) bool {
	if m.state == budgetForcing {
		return id == m.closing[m.forced]
	}
	return m.inner == nil || m.inner.Allowed(id)
}

// Apply sets the logits of tokens that may not come next to -Inf.
func (m *budgetMask) Apply(logits []float32) bool {
	if m.state != budgetForcing {
		return m.inner == nil || m.inner.Apply(logits)
	}
	want := int(m.closing[m.forced])
	for i := range logits {
		if i != want {
			logits[i] = float32(math.Inf(-1))
		}
	}
	return want < len(logits) && !math.IsInf(float64(logits[want]), -1)
}

// Accept moves past a token.
func (m *budgetMask) Accept(id int32) error {
	m.move(id)
	if inner, ok := m.inner.(interface{ Accept(int32) error }); ok {
		return inner.Accept(id)
	}
	return nil
}

func (m *budgetMask) move(id int32) {
	text := append(m.tail, m.tokens.PieceSpecial(id)...)
	switch m.state {
	case budgetBefore:
		body := bytes.TrimSpace(text)
		m.tail = body
		if bytes.HasPrefix(body, []byte(thinkOpen)) {
			m.state, m.tail = budgetWithin, nil
		} else if !bytes.HasPrefix([]byte(thinkOpen), body) {
			m.state = budgetOver
		}
	case budgetWithin:
		m.left--
		m.tail = bytes.Clone(text[max(0, len(text)-len(thinkClose)+1):])
		if bytes.Contains(text, []byte(thinkClose)) {
			m.state = budgetOver
		} else if m.left <= 0 {
			m.state = budgetForcing
		}
	case budgetForcing:
		if m.forced++; m.forced == len(m.closing) {
			m.state = budgetOver
		}
	}
}
