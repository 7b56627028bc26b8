package minfer_test

import (
	"errors"
	"math"
	"testing"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/engine"
)

// TestLogprobs: the tokens of a reply are those of its text, each with its probability and the likeliest ones in order.
func TestLogprobs(t *testing.T) {
	m := open(t)
	s := minfer.DefaultSettings()
	s.Sampling.RepeatPenalty, s.MaxTokens = 1, 200
	const top = 3
	run := func(settings ...minfer.Setting) *minfer.Generation {
		t.Helper()
		g, err := m.Generate(t.Context(), fox, append([]minfer.Setting{minfer.WithSettings(s)}, settings...)...)
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.Text()
		if err != nil {
			t.Fatal(err)
		}
		var ids []int32
		for _, token := range g.Tokens() {
			ids = append(ids, token.ID)
			if m.Tokenizer().IsEOG(token.ID) {
				t.Error("the end token is one of the reply's")
			}
		}
		if have := m.Tokenizer().Decode(ids); have != text || len(ids) == 0 {
			t.Errorf("the tokens are %q, the text %q", have, text)
		}
		return g
	}
	for i, token := range run(minfer.Greedy(), minfer.Logprobs(top)).Tokens() {
		if len(token.Top) != top || token.Top[0].ID != token.ID || token.Top[0].Value != token.Logprob {
			t.Fatalf("token %d: %+v", i, token)
		}
		sum := 0.0
		for k, l := range token.Top {
			if sum += math.Exp(l.Value); k > 0 && l.Value > token.Top[k-1].Value {
				t.Errorf("token %d: %+v is not in order", i, token.Top)
			}
		}
		if sum > 1+1e-6 || token.Logprob > 0 {
			t.Errorf("token %d: %+v is no distribution", i, token.Top)
		}
	}
	for i, token := range run(minfer.Logprobs(0)).Tokens() {
		if len(token.Top) != 0 || token.Logprob >= 0 {
			t.Errorf("token %d: %+v, want its probability alone", i, token)
		}
	}
	for i, token := range run().Tokens() {
		if token.Top != nil || token.Logprob != 0 {
			t.Errorf("token %d: %+v, want no probabilities", i, token)
		}
	}
	if _, err := m.Generate(t.Context(), fox, minfer.Logprobs(-1)); !errors.Is(err, engine.ErrRequest) {
		t.Errorf("-1 log probabilities: %v", err)
	}
}
