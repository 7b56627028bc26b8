package minfer_test

import (
	"math"
	"testing"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/internal/builtin"
	"github.com/minfer-go/minfer/internal/testmodel"
)

// withTags is the built-in model with the tags of reasoning as tokens of a type.
func withTags(t *testing.T, tokenType int64) *minfer.Model {
	t.Helper()
	b, err := testmodel.WithReasoningTags(builtin.Tiny(), tokenType)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.FromBytes("tagged", b)
	if err != nil {
		t.Fatal(err)
	}
	m, err := minfer.Load(t.Context(), f, minfer.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// A dictation is a mask that leaves one token at a time.
type dictation struct {
	ids []int32
	at  int
}

func (d *dictation) Allowed(id int32) bool { return id == d.ids[d.at] }

func (d *dictation) Apply(logits []float32) bool {
	for id := range logits {
		if !d.Allowed(int32(id)) {
			logits[id] = float32(math.Inf(-1))
		}
	}
	return true
}

func (d *dictation) Accept(int32) error {
	d.at = min(d.at+1, len(d.ids)-1)
	return nil
}

// TestReasoningTags: reasoning is told from content whether its tags are control tokens, tokens of text, or text.
func TestReasoningTags(t *testing.T) {
	for name, m := range map[string]*minfer.Model{
		"control": withTags(t, testmodel.ControlToken), "user-defined": withTags(t, testmodel.UserDefinedToken), "text": open(t),
	} {
		tok := m.Tokenizer()
		end, ok := tok.ID("<|im_end|>")
		if !ok {
			t.Fatal("no end token")
		}
		const reply = "<think>\nLet me see.\n</think>\n\nFour."
		ids := append(tok.Encode(reply, true), end)
		if id, one := tok.ID("<think>"); one != (name != "text") || one && (ids[0] != id || tok.IsControl(id) != (name == "control")) {
			t.Fatalf("%s: %d", name, ids)
		}
		settings := minfer.DefaultSettings()
		settings.Mask = &dictation{ids: ids}
		c := m.NewConversation(minfer.WithSettings(settings))
		text, _ := say(t, c, "What is 2 plus 2?")
		last := c.Messages()[1]
		if text != reply || last.Reasoning != "Let me see." || last.Content.String() != "Four." {
			t.Errorf("%s: %q, reasoning %q, content %q", name, text, last.Reasoning, last.Content.String())
		}
		c.Close()
		settings.Mask = &dictation{ids: ids}
		g, err := m.Generate(t.Context(), "What is 2 plus 2?", minfer.WithSettings(settings))
		if err != nil {
			t.Fatal(err)
		}
		var parts [3]string
		for span := range g.Spans() {
			parts[span.Kind] += span.Text
		}
		if parts[chat.ReasoningText] != "Let me see." || parts[chat.ContentText] != "Four." {
			t.Errorf("%s: %q", name, parts)
		}
	}
}
