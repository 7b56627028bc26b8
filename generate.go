package minfer

import (
	"context"
	"iter"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/grammar"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// DefaultMaxTokens bounds a reply where nothing else does.
const DefaultMaxTokens = 512

// Settings say how to generate. Start from DefaultSettings.
type Settings struct {
	MaxTokens int           // most tokens of the reply; negative runs to the end of the context
	Sampling  sample.Config //
	Grammar   *grammar.Grammar
	Mask      sample.Mask // constrains this one reply in place of Grammar; or nil
	System    string      // a system message before the prompt; empty for none
	Variables chat.Object // further variables of the chat template, such as enable_thinking
	Stop      []string    // texts that end the reply and are not part of it
	Raw       bool        // the prompt goes to the model as it is, without a chat template
	IgnoreEnd bool        // go on after an end-of-generation token
	Logprobs  *int        // log probabilities of each token, and of so many of the likeliest; nil for none
}

// DefaultSettings are those that a call without options uses.
func DefaultSettings() Settings {
	return Settings{MaxTokens: DefaultMaxTokens, Sampling: sample.Default()}
}

// A Setting changes one of the Settings of a call.
type Setting func(*Settings)

// WithSettings sets all of them at once.
func WithSettings(s Settings) Setting { return func(have *Settings) { *have = s } }

// MaxTokens bounds the reply.
func MaxTokens(n int) Setting { return func(s *Settings) { s.MaxTokens = n } }

// Seed starts the random generator; equal seeds give equal replies.
func Seed(seed uint64) Setting { return func(s *Settings) { s.Sampling.Seed = seed } }

// Greedy takes the most likely token at every step.
func Greedy() Setting { return func(s *Settings) { s.Sampling.Temperature = 0 } }

// Stop ends the reply at any of the texts.
func Stop(texts ...string) Setting { return func(s *Settings) { s.Stop = texts } }

// Raw sends the prompt without a chat template.
func Raw() Setting { return func(s *Settings) { s.Raw = true } }

// System puts a system message before the prompt.
func System(text string) Setting { return func(s *Settings) { s.System = text } }

// Logprobs asks for the log probability of each token, and for those of the likeliest, so many in each place. They are of the
// model's own distribution, before anything that chooses tokens. Generation.Tokens has them.
func Logprobs(top int) Setting { return func(s *Settings) { s.Logprobs = &top } }

// WithGrammar constrains the reply to a grammar or JSON Schema.
func WithGrammar(g *grammar.Grammar) Setting { return func(s *Settings) { s.Grammar = g } }

// Generate starts a reply to a prompt: one user message in the model's chat form, or, if raw, the text as it is. Cancelling
// ctx ends the reply.
func (m *Model) Generate(ctx context.Context, prompt string, settings ...Setting) (*Generation, error) {
	s := DefaultSettings()
	for _, set := range settings {
		set(&s)
	}
	p, err := m.Prompt(ctx, prompt, s)
	if err != nil {
		return nil, err
	}
	return m.generate(ctx, p, s)
}

// Chat starts a reply to a conversation in the model's chat form. Cancelling ctx ends it.
func (m *Model) Chat(ctx context.Context, messages []chat.Message, settings ...Setting) (*Generation, error) {
	s := DefaultSettings()
	for _, set := range settings {
		set(&s)
	}
	p, err := m.format.Prompt(ctx, chat.Request{Messages: s.withSystem(messages), Variables: s.Variables})
	if err != nil {
		return nil, err
	}
	return m.generate(ctx, p, s)
}

// withSystem puts the system message of the settings before others.
func (s *Settings) withSystem(messages []chat.Message) []chat.Message {
	if s.System == "" {
		return messages
	}
	return append([]chat.Message{chat.System(s.System)}, messages...)
}

// Prompt turns a text into a prompt as the settings say: one user message in the model's chat form, in which control
// tokens in the text are plain text; or, if raw, the text itself, in which they are recognised. A model that wants a
// beginning-of-sequence token gets it.
func (m *Model) Prompt(ctx context.Context, text string, s Settings) (*chat.Prompt, error) {
	if s.Raw {
		return m.format.Raw(text), nil
	}
	return m.format.Prompt(ctx, chat.Request{Messages: s.withSystem([]chat.Message{chat.User(text)}), Variables: s.Variables})
}

func (m *Model) generate(ctx context.Context, p *chat.Prompt, s Settings) (*Generation, error) {
	g, err := m.GenerateTokens(ctx, p.Tokens, s)
	if err == nil {
		g.thinking = p.Thinking
	}
	return g, err
}

// GenerateTokens starts a reply to a prompt of token ids.
func (m *Model) GenerateTokens(ctx context.Context, prompt []int32, s Settings) (*Generation, error) {
	stopper, err := sample.NewStopper(s.Stop)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	j, err := m.engine.Submit(ctx, m.request(prompt, s))
	if err != nil {
		cancel()
		return nil, err
	}
	return &Generation{job: j, cancel: cancel, form: m.format, text: m.tokens.NewDecoder(), stop: stopper}, nil
}

// request is what the engine is asked for.
func (m *Model) request(prompt []int32, s Settings) engine.Request {
	r := engine.Request{Prompt: prompt, MaxTokens: s.MaxTokens, Sampling: s.Sampling, Mask: s.Mask, Logprobs: s.Logprobs}
	if r.Mask == nil && s.Grammar != nil {
		r.Mask = m.masks.start(s.Grammar, m.tokens)
	}
	if !s.IgnoreEnd {
		r.IsEnd = m.tokens.IsEOG
	}
	return r
}

// A Generation is a reply on its way. One goroutine reads it, once.
type Generation struct {
	job     *engine.Job
	cancel  context.CancelFunc
	form    *chat.Format
	text    *tokenizer.Decoder
	stop    *sample.Stopper
	stopped bool
	tokens  []engine.Token

	left     bool // the reader has left Pieces
	thinking bool // the prompt ends within a block of reasoning
	reason   engine.Reason
	stats    engine.Stats
	err      error
}

// Pieces yields the reply as it grows: whole characters only, nothing of a stop text. Leaving the loop early ends the
// generation; its reason is then engine.ReasonCancel, without an error.
func (g *Generation) Pieces() iter.Seq[string] {
	return func(yield func(string) bool) {
		defer g.end()
		for !g.stopped {
			t, ok := g.job.Next()
			if !ok {
				break
			}
			g.tokens = append(g.tokens, t)
			if piece := g.push(textOf(t.ID, g.text, g.form)); piece != "" && !yield(piece) {
				g.left = true
				return
			}
		}
		if !g.stopped {
			rest := g.push(g.text.Flush())
			if !g.stopped {
				rest += g.stop.Flush()
			}
			if rest != "" {
				yield(rest)
			}
		}
	}
}

// textOf is the text that becomes complete with a token: what it decodes to, or the tag of reasoning that it is.
func textOf(id int32, text *tokenizer.Decoder, form *chat.Format) string {
	if tag, ok := form.ThinkMark(id); ok {
		return text.Flush() + tag
	}
	return text.Push(id)
}

// Spans is Pieces divided into reasoning and content; tags and white space around reasoning are spans of their own.
func (g *Generation) Spans() iter.Seq[chat.Span] {
	return func(yield func(chat.Span) bool) {
		split := chat.NewSplitter(g.thinking)
		for piece := range g.Pieces() {
			for _, span := range split.Push(piece) {
				if !yield(span) {
					return
				}
			}
		}
		for _, span := range split.Flush() {
			if !yield(span) {
				return
			}
		}
	}
}

// push passes text through the stop strings.
func (g *Generation) push(text string) string {
	if text == "" {
		return ""
	}
	emit, stopped := g.stop.Push(text)
	g.stopped = stopped
	return emit
}

// end stops the request if it still runs and keeps its result.
func (g *Generation) end() {
	g.cancel()
	for _, more := g.job.Next(); more; _, more = g.job.Next() { //nolint:revive // drain until the engine has let go
	}
	g.reason, g.stats, g.err = g.job.Result()
	switch {
	case g.stopped:
		g.reason, g.err = engine.ReasonStop, nil
	case g.left:
		g.reason, g.err = engine.ReasonCancel, nil
	}
}

// Text reads the reply to its end.
func (g *Generation) Text() (string, error) {
	text := ""
	for piece := range g.Pieces() {
		text += piece
	}
	return text, g.err
}

// Err is why the reply ended early, nil if it did not; valid after Pieces.
func (g *Generation) Err() error { return g.err }

// Reason is how the reply ended; valid after Pieces.
func (g *Generation) Reason() engine.Reason { return g.reason }

// Tokens are the tokens of the reply so far, those of a stop text too, without the one that ended it; they belong to the
// Generation.
func (g *Generation) Tokens() []engine.Token { return g.tokens }

// Stats counts tokens and time; valid after Pieces.
func (g *Generation) Stats() engine.Stats { return g.stats }
