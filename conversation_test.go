package minfer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/engine"
)

// open opens the built-in model.
func open(t testing.TB, opts ...minfer.Option) *minfer.Model {
	t.Helper()
	m, err := minfer.Open(t.Context(), "tiny", append([]minfer.Option{minfer.WithThreads(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// say runs a turn to its end.
func say(t testing.TB, c *minfer.Conversation, text string) (string, minfer.TurnStats) {
	t.Helper()
	turn, err := c.Say(context.Background(), text)
	return finish(t, turn, err)
}

func finish(t testing.TB, turn *minfer.Turn, err error) (string, minfer.TurnStats) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	text, err := turn.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text, turn.Stats()
}

// questions are turns that the built-in model answers.
var questions = []string{
	"What is the capital of France?", "What is 2 plus 3?", "Tell me a story about a brave fox.", "What is the opposite of hot?",
	"Name three animals.", "Tell me a story about a cat.", "What is the capital of Italy?", "What is 7 plus 1?",
	"Give me a JSON object for a person named Mia who is 7 years old.", "What is the opposite of big?", "Tell me a story about a dog.",
	"What is the capital of Spain?",
}

// TestTurnsEvaluateTheirDelta: a turn evaluates only what is new, and answers as a chat with the whole history does.
func TestTurnsEvaluateTheirDelta(t *testing.T) {
	m := open(t)
	c := m.NewConversation(minfer.Greedy(), minfer.System("You are helpful."), minfer.MaxTokens(40))
	defer c.Close()
	held := 0
	for i, q := range questions[:5] {
		turn, err := c.Say(context.Background(), q)
		have, stats := finish(t, turn, err)
		if i > 0 && stats.Cached != held {
			t.Errorf("turn %d: %d tokens cached, %d were held", i, stats.Cached, held)
		}
		if stats.Prefilled != stats.Prompt-stats.Cached || i > 0 && stats.Prefilled > 40 {
			t.Errorf("turn %d: %+v", i, stats)
		}
		held = c.Held()
		all := c.Messages()
		g, err := m.Chat(context.Background(), all[:len(all)-1], minfer.Greedy(), minfer.System("You are helpful."), minfer.MaxTokens(40))
		if err != nil {
			t.Fatal(err)
		}
		want, err := g.Text()
		if err != nil || have != want {
			t.Errorf("turn %d: %q, a chat with the whole history gives %q, %v", i, have, want, err)
		}
		if i > 0 && g.Stats().Cached >= g.Stats().Prompt {
			t.Errorf("turn %d: the chat evaluated nothing", i)
		}
	}
}

func TestRegenerate(t *testing.T) {
	m := open(t)
	c := m.NewConversation(minfer.MaxTokens(30), minfer.Seed(3))
	defer c.Close()
	if _, err := c.Regenerate(context.Background()); !errors.Is(err, minfer.ErrConversation) {
		t.Errorf("nothing to regenerate: %v", err)
	}
	first, _ := say(t, c, "Tell me a story.")
	turn, err := c.Regenerate(context.Background())
	second, stats := finish(t, turn, err)
	if first == second {
		t.Errorf("the reply is the same: %q", first)
	}
	if stats.Prefilled != 1 {
		t.Errorf("%d tokens prefilled for another reply to the same prompt", stats.Prefilled)
	}
	if all := c.Messages(); len(all) != 2 || all[1].Content.String() != second {
		t.Errorf("messages %v, want one turn that ends in %q", all, second)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	turn, err = c.Regenerate(stopped)
	if err == nil {
		_, err = turn.Text()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if all := c.Messages(); len(all) != 2 || all[1].Content.String() != second {
		t.Errorf("after a regeneration that gave nothing: %v", all)
	}
}

// TestCancelKeepsTheTurn: what was said until a reply is stopped stays, and the next turn goes on from it.
func TestCancelKeepsTheTurn(t *testing.T) {
	m := open(t)
	c := m.NewConversation(minfer.Greedy())
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	turn, err := c.Say(ctx, "Tell me a story.")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range turn.Spans() {
		if n++; n == 5 {
			cancel()
		}
	}
	if !errors.Is(turn.Err(), context.Canceled) || turn.Reason() != engine.ReasonCancel {
		t.Errorf("%v, %v", turn.Reason(), turn.Err())
	}
	all := c.Messages()
	if len(all) != 2 || all[1].Content.String() == "" {
		t.Fatalf("messages %v", all)
	}
	_, stats := say(t, c, "What is 2 plus 3?")
	if stats.Prefilled > 30 {
		t.Errorf("%+v: the stopped reply was evaluated again", stats)
	}
	if turn, err = c.Say(context.Background(), "Tell me a story."); err != nil {
		t.Fatal(err)
	}
	text := ""
	for span := range turn.Spans() {
		if text += span.Text; len(text) > 20 {
			break
		}
	}
	if turn.Err() != nil || turn.Reason() != engine.ReasonCancel {
		t.Errorf("left early: %v, %v", turn.Reason(), turn.Err())
	}
	if all := c.Messages(); len(all) != 6 || !strings.HasPrefix(all[5].Content.String(), text) {
		t.Errorf("left early at %q: %v", text, all)
	}
}

// overflow holds a conversation in a context that is too small for it. check is told, too, whether messages were forgotten
// while the reply was under way.
func overflow(t *testing.T, m *minfer.Model, check func(c *minfer.Conversation, turn int, text string, s minfer.TurnStats, within bool)) {
	c := m.NewConversation(minfer.Greedy(), minfer.System("You are helpful."), minfer.MaxTokens(60))
	defer c.Close()
	forgotten := 0
	for i, q := range questions {
		turn, err := c.Say(context.Background(), q)
		early := c.Forgotten()
		text, stats := finish(t, turn, err)
		forgotten += stats.Forgotten
		if c.Held() > m.Engine().Context() {
			t.Errorf("turn %d: %d tokens held", i, c.Held())
		}
		check(c, i, text, stats, c.Forgotten() > early)
	}
	if forgotten == 0 || forgotten != c.Forgotten() || len(c.Messages()) != 2*len(questions) {
		t.Errorf("%d messages forgotten in turns, %d in all, of %d", forgotten, c.Forgotten(), len(c.Messages()))
	}
}

func TestOverflowShifts(t *testing.T) {
	m := open(t, minfer.WithContext(192))
	shifts := 0
	overflow(t, m, func(_ *minfer.Conversation, i int, _ string, s minfer.TurnStats, _ bool) {
		if s.Forgotten == 0 {
			return
		}
		shifts++
		if s.Rerendered || s.Prefilled > 64 {
			t.Errorf("turn %d: %+v: the prompt was evaluated anew", i, s)
		}
	})
	t.Logf("%d turns with a shift", shifts)
}

// TestOverflowWithoutShift: replies are exactly those to the messages that are left.
func TestOverflowWithoutShift(t *testing.T) {
	t.Setenv("MINFER_NO_CONTEXT_SHIFT", "1")
	m := open(t, minfer.WithContext(192))
	compared := 0
	overflow(t, m, func(c *minfer.Conversation, i int, text string, s minfer.TurnStats, within bool) {
		if s.Forgotten == 0 {
			return
		}
		if !s.Rerendered {
			t.Errorf("turn %d: %+v: shifted", i, s)
		}
		if within {
			return // its beginning was a reply to more messages
		}
		compared++
		all := c.Messages()
		g, err := m.Chat(context.Background(), all[c.Forgotten():len(all)-1], minfer.Greedy(), minfer.System("You are helpful."), minfer.MaxTokens(60))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := g.Text(); err != nil || text != want {
			t.Errorf("turn %d: %q, the messages that are left give %q, %v", i, text, want, err)
		}
	})
	if compared == 0 {
		t.Error("no turn forgot messages before its reply")
	}
}

// TestOverflowWithinReply: a reply that does not fit beside earlier turns goes on after they are gone.
func TestOverflowWithinReply(t *testing.T) {
	wide := open(t).NewConversation(minfer.Greedy(), minfer.MaxTokens(-1))
	defer wide.Close()
	say(t, wide, "What is the capital of France?")
	whole, _ := say(t, wide, "Tell me a story about a brave fox.")
	for _, off := range []string{"", "1"} {
		t.Run("off="+off, func(t *testing.T) {
			t.Setenv("MINFER_NO_CONTEXT_SHIFT", off)
			m := open(t, minfer.WithContext(80))
			c := m.NewConversation(minfer.Greedy(), minfer.MaxTokens(-1))
			defer c.Close()
			say(t, c, "What is the capital of France?")
			before := c.Held()
			turn, err := c.Say(context.Background(), "Tell me a story about a brave fox.")
			text, stats := finish(t, turn, err)
			if stats.Forgotten != 2 || stats.Prompt+stats.Generated <= 80 {
				t.Errorf("%+v, %s", stats, turn.Reason())
			}
			if off == "" && (stats.Rerendered || stats.Prefilled != stats.Prompt-before+1) {
				t.Errorf("%+v: more was evaluated than the message and the token at which the context was full", stats)
			}
			if off == "1" && !stats.Rerendered {
				t.Errorf("%+v: shifted", stats)
			}
			if n := 80; len(text) < n || len(whole) < n || text[:n] != whole[:n] {
				t.Errorf("%q, with more room it is %q", text, whole)
			}
			s := minfer.DefaultSettings()
			s.MaxTokens, s.IgnoreEnd = -1, true
			c = m.NewConversation(minfer.WithSettings(s))
			defer c.Close()
			turn, err = c.Say(context.Background(), "What is 2 plus 3?")
			_, stats = finish(t, turn, err)
			if stats.Prompt+stats.Generated-1 != 80 || turn.Reason() != engine.ReasonLength {
				t.Errorf("a reply alone in the context: %+v, %s", stats, turn.Reason())
			}
		})
	}
}

func TestMessageTooLong(t *testing.T) {
	m := open(t, minfer.WithContext(64))
	c := m.NewConversation(minfer.Greedy(), minfer.MaxTokens(8))
	defer c.Close()
	say(t, c, "What is 2 plus 3?")
	if _, err := c.Say(context.Background(), strings.Repeat("What is 2 plus 3? ", 30)); !errors.Is(err, engine.ErrContextLength) {
		t.Errorf("%v", err)
	}
	if len(c.Messages()) != 2 || c.Forgotten() != 0 {
		t.Errorf("%d messages, %d forgotten after a refusal", len(c.Messages()), c.Forgotten())
	}
	say(t, c, "What is 2 plus 3?")
}

// TestClear: nothing of a conversation that is forgotten is left, in the cells or in a file.
func TestClear(t *testing.T) {
	m := open(t)
	c := m.NewConversation(minfer.Greedy(), minfer.System("You are helpful."))
	defer c.Close()
	first, _ := say(t, c, "What is the capital of France?")
	c.Clear()
	if c.Held() != 0 || len(c.Messages()) != 0 || c.System() == "" {
		t.Errorf("%d tokens and %v are left, system %q", c.Held(), c.Messages(), c.System())
	}
	if again, stats := say(t, c, "What is the capital of France?"); again != first || stats.Cached != 0 {
		t.Errorf("%q, %+v", again, stats)
	}
}

// TestStopStrings: nothing of a stop string is part of the reply, and the conversation goes on.
func TestStopStrings(t *testing.T) {
	m := open(t)
	s := minfer.DefaultSettings()
	s.Sampling.Temperature, s.Stop = 0, []string{"time,"}
	c := m.NewConversation(minfer.WithSettings(s))
	defer c.Close()
	for range 2 {
		if text, _ := say(t, c, "Tell me a story about a brave fox."); strings.Contains(text, "time") || text == "" {
			t.Errorf("%q", text)
		}
	}
}
