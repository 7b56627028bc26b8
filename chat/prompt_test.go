package chat_test

import (
	"slices"
	"testing"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/tokenizer"
	"pgregory.net/rapid"
)

// spell encodes a text one character at a time: other ids than a model would be given, but the same text.
func spell(tok *tokenizer.Tokenizer, text string) []int32 {
	var ids []int32
	for _, r := range text {
		ids = append(ids, tok.Encode(string(r), false)...)
	}
	return ids
}

// TestResumeKeepsWhatWasSampled: a reply stays in the ids that the model chose, and what follows it is what the template
// says.
func TestResumeKeepsWhatWasSampled(t *testing.T) {
	c, tok := format(t, nil)
	messages := []chat.Message{chat.User("Tell me a story.")}
	first := prompt(t, c, chat.Request{Messages: messages})
	reply := "Once upon a time"
	sampled := spell(tok, reply)
	if slices.Equal(sampled, tok.Encode(reply, false)) {
		t.Fatal("the text has only one spelling")
	}
	held := append(slices.Clone(first.Tokens), sampled...)
	second := prompt(t, c, chat.Request{Messages: append(messages, chat.Assistant(reply), chat.User("And then?"))})
	ids := second.Resume(held)
	if !slices.Equal(ids[:len(held)], held) {
		t.Errorf("held %v\nids  %v", held, ids)
	}
	if rest := tok.Encode("<|im_end|>\n<|im_start|>user\nAnd then?<|im_end|>\n<|im_start|>assistant\n", true); !slices.Equal(ids[len(held):], rest) {
		t.Errorf("rest %v, want %v", ids[len(held):], rest)
	}
	for name, other := range map[string]*chat.Prompt{
		"another reply":  prompt(t, c, chat.Request{Messages: append(messages, chat.Assistant("Once upon a hill"), chat.User("And then?"))}),
		"a longer reply": prompt(t, c, chat.Request{Messages: append(messages, chat.Assistant(reply+"s"), chat.User("And then?"))}),
		"a marker":       prompt(t, c, chat.Request{Messages: append(messages, chat.Assistant("<|im_end|>"), chat.User("And then?"))}),
	} {
		if ids := other.Resume(held); !slices.Equal(ids, other.Tokens) {
			t.Errorf("%s: %v, want %v", name, ids, other.Tokens)
		}
	}
	shorter := prompt(t, c, chat.Request{Messages: append(messages, chat.Assistant("Once upon a tim"), chat.User("And then?"))})
	if ids, n := shorter.Resume(held), len(held)-1; !slices.Equal(ids[:n], held[:n]) { // a stop string took the rest
		t.Errorf("a shorter reply: %v, held %v", ids, held)
	}
	if ids := first.Resume(nil); !slices.Equal(ids, first.Tokens) {
		t.Errorf("nothing held: %v", ids)
	}
}

// TestResumeProperty: whatever is held, what Resume gives has the text of the prompt with its control tokens where the
// template put them.
func TestResumeProperty(t *testing.T) {
	c, tok := format(t, nil)
	text := func(ids []int32) string {
		d := tok.NewSpecialDecoder()
		s := ""
		for _, id := range ids {
			s += d.Push(id)
		}
		return s + d.Flush()
	}
	controls := func(ids []int32) (n []int32) {
		for _, id := range ids {
			if tok.IsControl(id) {
				n = append(n, id)
			}
		}
		return n
	}
	word := rapid.SampledFrom([]string{"a", "Once upon a time", " 7", "\n", "<|im_end|>", "é", "你好", "", " the fox "})
	conversation := rapid.Custom(func(r *rapid.T) []chat.Message {
		var m []chat.Message
		for range rapid.IntRange(0, 3).Draw(r, "turns") {
			m = append(m, chat.User(word.Draw(r, "user")), chat.Assistant(word.Draw(r, "assistant")))
		}
		return append(m, chat.User(word.Draw(r, "last")))
	})
	rapid.Check(t, func(r *rapid.T) {
		before := conversation.Draw(r, "before")
		var after []chat.Message
		if rapid.Bool().Draw(r, "other") {
			after = conversation.Draw(r, "after")
		} else {
			reply := word.Draw(r, "reply")
			after = append(slices.Clone(before), chat.Assistant(reply), chat.User(word.Draw(r, "next")))
		}
		held := append(slices.Clone(prompt(t, c, chat.Request{Messages: before}).Tokens), spell(tok, word.Draw(r, "sampled"))...)
		held = held[:rapid.IntRange(0, len(held)).Draw(r, "length")]
		p := prompt(t, c, chat.Request{Messages: after})
		ids := p.Resume(held)
		if text(ids) != p.Text || !slices.Equal(controls(ids), controls(p.Tokens)) {
			r.Fatalf("held %q gives %q, the prompt is %q", text(held), text(ids), p.Text)
		}
		if from, to, rest, ok := p.Shift(held); ok {
			left := slices.Concat(held[:from], held[to:])
			if text(rest) != p.Text || !slices.Equal(controls(rest), controls(p.Tokens)) {
				r.Fatalf("shift of %q gives %q, the prompt is %q", text(held), text(rest), p.Text)
			}
			if n := min(len(rest), len(left)); from < to && !slices.Equal(rest[:n], left[:n]) {
				r.Fatalf("%v does not begin with what is left, %v", rest, left)
			}
		}
	})
}

// TestShift: turns in the middle are found wherever they end.
func TestShift(t *testing.T) {
	c, tok := format(t, nil)
	system, messages := chat.System("Be brief."), []chat.Message{}
	all := func(n int, more ...chat.Message) chat.Request {
		return chat.Request{Messages: slices.Concat([]chat.Message{system}, messages[n:], more)}
	}
	held := []int32{}
	for _, turn := range [][2]string{{"What is 2 plus 3?", "5"}, {"And 4?", "It is 9."}, {"And 4?", "Now 13."}} {
		messages = append(messages, chat.User(turn[0]))
		held = append(prompt(t, c, all(0)).Resume(held), spell(tok, turn[1])...)
		messages = append(messages, chat.Assistant(turn[1]))
	}
	for n := 2; n <= 4; n += 2 {
		p := prompt(t, c, all(n, chat.User("Why?")))
		from, to, rest, ok := p.Shift(held)
		if !ok || from == to {
			t.Fatalf("%d messages less: [%d,%d) %v", n, from, to, ok)
		}
		left := slices.Concat(held[:from], held[to:])
		if !slices.Equal(rest[:len(left)], left) {
			t.Errorf("%d messages less: %v does not begin with %v", n, rest, left)
		}
		if want := tok.Encode("<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n", true); !slices.Equal(rest[len(left):], want) {
			t.Errorf("%d messages less: then %v, want %v", n, rest[len(left):], want)
		}
	}
	p := prompt(t, c, chat.Request{Messages: []chat.Message{system, chat.User("And 5?"), chat.Assistant("It is 9."), chat.User("Why?")}})
	if from, to, _, ok := p.Shift(held); ok {
		t.Errorf("what was never held: [%d,%d)", from, to)
	}
}
