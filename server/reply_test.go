package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/sample"
)

// play sends a text through a reply, one token at a time, and writes what came out.
func play(s *Server, t *task, text string) (out string, r *reply, tokens int) {
	r = s.newReply(t)
	var b strings.Builder
	write := func(events []event) {
		for _, e := range events {
			tokens += len(e.tokens)
			switch e.kind {
			case contentEvent:
				b.WriteString(e.text)
			case reasoningEvent:
				fmt.Fprintf(&b, "(%s)", e.text)
			case callEvent:
				fmt.Fprintf(&b, "«%d %s ", e.index, e.text)
			case argumentsEvent:
				b.WriteString(e.text)
			case callEndEvent:
				if e.cut {
					b.WriteString("…")
				}
				b.WriteString("»")
			}
		}
	}
	for _, id := range s.model.Tokens.Encode(text, false) {
		if r.stopped {
			break
		}
		write(r.push(engine.Token{ID: id, Top: []sample.Logprob{{ID: id}}}))
	}
	write(r.flush())
	tokens += len(r.take())
	return strings.ReplaceAll(b.String(), ")(", ""), r, tokens
}

func TestReply(t *testing.T) {
	s := newRig(t).server
	hermes := &callPlan{syntax: chat.HermesCalls, names: []string{"f"}}
	single := &callPlan{syntax: chat.HermesCalls, names: []string{"f"}, single: true}
	call := "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"
	for _, c := range []struct {
		name, text, want string
		task             task
		stopped          bool
	}{
		{"plain", "Hello there.", "Hello there.", task{}, false},
		{"stop text", "one two three", "one ", task{stop: []string{"two"}}, true},
		{"stop text across tokens", "The capital of France", "The cap", task{stop: []string{"ital of Fr"}}, true},
		{"half a stop text", "one tw", "one tw", task{stop: []string{"two"}}, false},
		{"reasoning", "<think>\nwhy\n</think>\n\nBecause.", "(why)Because.", task{reasoning: true}, false},
		{"reasoning in the prompt", "why</think>Because.", "(why)Because.", task{reasoning: true, thinking: true}, false},
		{"reasoning alone", "<think>why", "(why)", task{reasoning: true}, false},
		{"reasoning as content", "<think>why</think>", "<think>why</think>", task{}, false},
		{"a stop text within reasoning", "<think>why two</think>x", "(why)", task{reasoning: true, stop: []string{"two"}}, true},
		{"a call", "Well.\n" + call, `Well.«0 f {"a": 1}»`, task{calls: hermes}, false},
		{"calls", call + "\n" + call, `«0 f {"a": 1}»«1 f {"a": 1}»`, task{calls: hermes}, false},
		{"one call at most", call + "\n" + call, `«0 f {"a": 1}»`, task{calls: single}, true},
		{"reasoning and a call", "<think>hm</think>\n\n" + call, `(hm)«0 f {"a": 1}»`, task{reasoning: true, calls: hermes}, false},
		{"a call in reasoning", "<think>" + call + "</think>x", "(" + call + ")x", task{reasoning: true, calls: hermes}, false},
		{"a call that is not asked for", call, call, task{}, false},
		{"a forced call", `{"name": "f", "arguments": {}}`, `«0 f {}»`, task{calls: &callPlan{syntax: chat.HermesCalls, names: []string{"f"}, prefix: "<tool_call>\n"}}, false},
	} {
		one := c.task
		one.logprobs = new(int)
		have, r, tokens := play(s, &one, c.text)
		if have != c.want || r.stopped != c.stopped {
			t.Errorf("%s: %q, stopped %v, want %q, %v", c.name, have, r.stopped, c.want, c.stopped)
		}
		if all := len(s.model.Tokens.Encode(c.text, false)); !c.stopped && tokens != all {
			t.Errorf("%s: %d tokens were scored, want %d", c.name, tokens, all)
		}
	}
}

// TestReplyScores: the log probabilities of a stop text's tokens are not reported, those before it are.
func TestReplyScores(t *testing.T) {
	s := newRig(t).server
	one := &task{stop: []string{" three"}, logprobs: new(int)}
	_, _, tokens := play(s, one, "one two three four")
	if want := len(s.model.Tokens.Encode("one two", false)); tokens != want {
		t.Errorf("%d tokens, want %d", tokens, want)
	}
}

func TestLazyMask(t *testing.T) {
	s := newRig(t).server
	tok := s.model.Tokens
	matcher, err := s.masks.get(tok, schemaSource+`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`)
	if err != nil {
		t.Fatal(err)
	}
	accept := func(m *lazyMask, text string) bool {
		for _, id := range tok.Encode(text, false) {
			if !m.Allowed(id) || m.Accept(id) != nil {
				return false
			}
		}
		return true
	}
	for _, c := range []struct {
		mark    string
		repeats bool
		text    string
		want    bool
	}{
		{"</think>", false, `anything at all`, true},
		{"</think>", false, `hm</think>{"a":1}`, true},
		{"</think>", false, `hm</think>{"b":1}`, false},
		{"<tool_call>", true, `<tool_call>{"a":1}</tool_call> and {"b":2}`, true},
		{"<tool_call>", true, `<tool_call>{"a":1}</tool_call><tool_call>{"b":2}`, false},
		{"", true, `{"b":1}`, false},
		{"", true, `{"a":1}`, true},
		{"", true, `text {"b":1}`, true},
	} {
		if have := accept(newLazyMask(tok, c.mark, matcher, c.repeats), c.text); have != c.want {
			t.Errorf("mark %q, %q: %v", c.mark, c.text, have)
		}
	}
}

func TestBudgetMask(t *testing.T) {
	s := newRig(t).server
	tok := s.model.Tokens
	closing := tok.Encode(thinkClose, true)
	for _, c := range []struct {
		thinking bool
		text     string
		forced   bool
	}{
		{false, "<think>" + strings.Repeat("word ", 30), true},
		{true, "" + strings.Repeat("word ", 30), true},
		{false, "<think>a</think> " + strings.Repeat("word ", 30), false},
		{false, "" + strings.Repeat("word ", 30), false},
		{true, "a</think>" + strings.Repeat("word ", 30), false},
	} {
		m := newBudgetMask(tok, nil, 20, c.thinking)
		forced := false
		for _, id := range tok.Encode(c.text, false) {
			if !m.Allowed(id) {
				forced = true
				break
			}
			if err := m.Accept(id); err != nil {
				t.Fatal(err)
			}
		}
		if forced != c.forced {
			t.Errorf("%q: forced %v", c.text, forced)
		}
		if !forced {
			continue
		}
		logits := make([]float32, tok.VocabSize())
		for _, id := range closing {
			if !m.Allowed(id) || !m.Apply(logits) {
				t.Errorf("%q: the closing tag is not allowed", c.text)
			}
			clear(logits)
			if err := m.Accept(id); err != nil {
				t.Fatal(err)
			}
		}
		if !m.Allowed(tok.Encode("x", false)[0]) {
			t.Errorf("%q: the reply is not free after the closing tag", c.text)
		}
	}
}

func TestCallIDs(t *testing.T) {
	for _, c := range []struct {
		syntax   chat.CallSyntax
		id       string
		same     bool
		nineLong bool
	}{
		{chat.HermesCalls, "toolu_01", true, false},
		{chat.MistralCalls, "abcDEF123", true, true},
		{chat.MistralCalls, "call_abcdefgh", false, true},
		{chat.MistralCalls, "abc-EF123", false, true},
		{chat.MistralCalls, "", true, false},
	} {
		have := callID(c.syntax, c.id)
		if (have == c.id) != c.same || c.nineLong && len(have) != mistralID || have != callID(c.syntax, c.id) {
			t.Errorf("%q: %q", c.id, have)
		}
	}
	if id := newCallID(chat.MistralCalls); len(id) != mistralID {
		t.Errorf("new id %q", id)
	}
}
