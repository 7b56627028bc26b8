package server

import (
	"context"
	"testing"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/internal/builtin"
	"github.com/minfer-go/minfer/internal/testmodel"
	"github.com/minfer-go/minfer/tokenizer"
)

// TestReasoningTags: reasoning is told from content also where its tags are control tokens, which decode to nothing.
func TestReasoningTags(t *testing.T) {
	for _, tokenType := range []int64{testmodel.ControlToken, testmodel.UserDefinedToken} {
		b, err := testmodel.WithReasoningTags(builtin.Tiny(), tokenType)
		if err != nil {
			t.Fatal(err)
		}
		f, err := gguf.FromBytes("tagged", b)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.New(f)
		if err != nil {
			t.Fatal(err)
		}
		form, err := chat.New(f, tok)
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.Open(context.Background(), f, engine.Options{Context: 128})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		s := rigOn(t, Model{Name: "tagged", File: f, Tokens: tok, Format: form, Engine: e}).server
		r := s.newReply(&task{reasoning: true})
		var reasoning, content string
		collect := func(events []event) {
			for _, e := range events {
				switch e.kind {
				case reasoningEvent:
					reasoning += e.text
				case contentEvent:
					content += e.text
				}
			}
		}
		for _, id := range tok.Encode("<think>\nLet me see.\n</think>\n\nFour.", true) {
			collect(r.push(engine.Token{ID: id}))
		}
		collect(r.flush())
		if reasoning != "Let me see." || content != "Four." {
			t.Errorf("tags of type %d: reasoning %q, content %q", tokenType, reasoning, content)
		}
	}
}
