package chat_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minfer-go/minfer/chat"
)

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		reply     string
		thinking  bool
		reasoning string
		content   string
	}{
		{"Hello", false, "", "Hello"},
		{"", false, "", ""},
		{"  Hello \n", false, "", "  Hello \n"},
		{"<think>\nLet me see.\n</think>\n\nFour.", false, "Let me see.", "Four."},
		{"\n<think>a</think>b", false, "a", "b"},
		{"<think></think>b", false, "", "b"},
		{"<think>\n\n</think>\n\n b", false, "", "b"},
		{"<think>a < b </thin k></think>c", false, "a < b </thin k>", "c"},
		{"<think>never ends\n", false, "never ends", ""},
		{"<thi", false, "", "<thi"},
		{"x <think>a</think>", false, "", "x <think>a</think>"},
		{"<think>a</think>b<think>c</think>", false, "a", "b<think>c</think>"},
		{"a\n</think>\n\nb", true, "a", "b"},
		{"a <think> b", true, "a <think> b", ""},
		{"</think>b", true, "", "b"},
		{"a</thi", true, "a</thi", ""},
	} {
		reasoning, content := chat.Split(test.reply, test.thinking)
		if reasoning != test.reasoning || content != test.content {
			t.Errorf("%q, %v: %q and %q, want %q and %q", test.reply, test.thinking, reasoning, content, test.reasoning, test.content)
		}
	}
}

// TestThinking: prompts that end within a block of reasoning are known.
func TestThinking(t *testing.T) {
	for source, want := range map[string]bool{
		"{{ messages[0].content }}<think>\n":             true,
		"{{ messages[0].content }}<think>":               true,
		"{{ messages[0].content }}<think>\n\n</think>\n": false,
		"{{ messages[0].content }}":                      false,
	} {
		c, _ := format(t, nil, chat.WithTemplate("t", source))
		if p := prompt(t, c, chat.Request{Messages: []chat.Message{chat.User("<think>")}}); p.Thinking != want {
			t.Errorf("%q: %v", source, p.Thinking)
		}
	}
}

// FuzzSplitter: however a reply is cut, its spans are its text, and the same.
func FuzzSplitter(f *testing.F) {
	f.Add("<think>\na\n</think>\n\nb", 3, false)
	f.Add("a </think> b", 1, true)
	f.Add("  <think", 2, false)
	f.Fuzz(func(t *testing.T, reply string, size int, thinking bool) {
		size = max(size%64, 1)
		s := chat.NewSplitter(thinking)
		var spans []chat.Span
		for rest := reply; rest != ""; {
			n := min(size, len(rest))
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			spans, rest = append(spans, s.Push(rest[:n])...), rest[n:]
		}
		spans = append(spans, s.Flush()...)
		var whole, reasoning, content strings.Builder
		for _, x := range spans {
			whole.WriteString(x.Text)
			switch x.Kind {
			case chat.ReasoningText:
				reasoning.WriteString(x.Text)
			case chat.ContentText:
				content.WriteString(x.Text)
			}
		}
		if whole.String() != reply {
			t.Fatalf("%q became %q", reply, whole.String())
		}
		if r, c := chat.Split(reply, thinking); r != reasoning.String() || c != content.String() {
			t.Fatalf("in pieces of %d: %q and %q, whole: %q and %q", size, reasoning.String(), content.String(), r, c)
		}
	})
}
