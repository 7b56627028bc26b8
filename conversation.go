package minfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
)

// ErrConversation is wrapped where a conversation cannot do what it is asked for.
var ErrConversation = errors.New("minfer: conversation")

// A Conversation is a chat with one model that remembers. Its tokens stay in the engine's cells from turn to turn: a turn
// evaluates only what is new. When the context is full, the oldest turns leave the prompt; the system message never does.
//
// The prompt of a turn is always the one that the template gives for the messages. Replies keep the tokens that were
// sampled where the template repeats their text; where it does not, as with templates that leave out earlier reasoning, the
// prompt is what the template says and is evaluated from the first difference on.
//
// A Conversation belongs to one goroutine.
type Conversation struct {
	model     *Model
	settings  Settings
	session   *engine.Session
	noShift   bool
	messages  []chat.Message // user and assistant in turn; the system message is in settings
	forgotten int            // how many messages, from the beginning, the prompt leaves out
	replies   uint64         // requests so far; each draws from a generator of its own
}

// NewConversation starts a conversation. The settings hold for each of its replies; System is its system message. The first
// reply is the one that Chat would give. Close frees its cells.
func (m *Model) NewConversation(settings ...Setting) *Conversation {
	s := DefaultSettings()
	for _, set := range settings {
		set(&s)
	}
	s.System = whole(s.System)
	return &Conversation{model: m, settings: s, session: m.engine.NewSession(), noShift: os.Getenv("MINFER_NO_CONTEXT_SHIFT") != ""}
}

// Close frees the conversation's cells.
func (c *Conversation) Close() { c.session.Close() }

// System is the system message, empty for none.
func (c *Conversation) System() string { return c.settings.System }

// SetSystem changes the system message. The next turn evaluates the conversation anew.
func (c *Conversation) SetSystem(text string) { c.settings.System = whole(text) }

// whole replaces each byte that is part of no character by U+FFFD, as saving does: a conversation goes on from a file as it
// would have without.
func whole(text string) string { return string([]rune(text)) }

// Messages are the messages so far without the system message; the first Forgotten of them are not part of the prompt.
func (c *Conversation) Messages() []chat.Message { return slices.Clone(c.messages) }

// Forgotten is how many messages the prompt leaves out because the context was full.
func (c *Conversation) Forgotten() int { return c.forgotten }

// Held is how many tokens of the conversation lie in the engine's cells.
func (c *Conversation) Held() int { return len(c.session.Tokens()) }

// Clear forgets all messages and what was computed for them, and keeps the system message.
func (c *Conversation) Clear() {
	c.messages, c.forgotten = nil, 0
	c.dropCells(context.Background())
}

// Say adds a message of the user and prepares the reply. Cancelling ctx ends the reply; what was said until then stays. If
// there is an error the message is not added.
func (c *Conversation) Say(ctx context.Context, text string) (*Turn, error) {
	before := c.forgotten
	c.messages = append(c.messages, chat.User(whole(text)))
	t := &Turn{conversation: c, ctx: ctx, undo: func() {
		c.messages, c.forgotten = c.messages[:len(c.messages)-1], before
	}}
	if err := t.begin(); err != nil {
		t.undo()
		return nil, err
	}
	return t, nil
}

// Regenerate takes back the last reply and prepares another. If nothing comes of it the old one stays.
func (c *Conversation) Regenerate(ctx context.Context) (*Turn, error) {
	n := len(c.messages)
	if n < 2 || c.messages[n-1].Role != "assistant" || c.forgotten > n-2 {
		return nil, fmt.Errorf("%w: there is no reply to regenerate", ErrConversation)
	}
	before, old := c.forgotten, c.messages[n-1]
	c.messages = c.messages[:n-1]
	t := &Turn{conversation: c, ctx: ctx, undo: func() { c.messages, c.forgotten = append(c.messages, old), before }}
	if err := t.begin(); err != nil {
		t.undo()
		return nil, err
	}
	return t, nil
}

// prompt renders the messages that are not forgotten, and the beginning of a reply.
func (c *Conversation) prompt(ctx context.Context) (*chat.Prompt, error) {
	return c.model.format.Prompt(ctx, chat.Request{
		Messages: c.settings.withSystem(c.messages[c.forgotten:]), Variables: c.settings.Variables,
	})
}

// next is the index of the second turn of the prompt, or 0 if there is only one.
func (c *Conversation) next() int {
	for i := c.forgotten + 1; i < len(c.messages); i++ {
		if c.messages[i].Role == "user" {
			return i
		}
	}
	return 0
}

// canForget reports whether the prompt has more than one turn.
func (c *Conversation) canForget() bool { return c.next() > 0 }

// forget leaves the oldest turn out of the prompt; the last one always stays. It reports whether there was another.
func (c *Conversation) forget() bool {
	i := c.next()
	if i > 0 {
		c.forgotten = i
	}
	return i > 0
}

// reserve is how much room a reply finds when it begins: what it may need, but no more than an eighth of the context, since
// turns can also be forgotten while it grows.
func (c *Conversation) reserve(maxTokens int) int {
	part := max(c.model.engine.Context()/8, 1)
	if maxTokens < 0 {
		return part
	}
	return min(maxTokens, part)
}
