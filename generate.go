package minfer

import (
	"context"
	"iter"

	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// DefaultMaxTokens bounds a reply where nothing else does.
const DefaultMaxTokens = 512

// Settings say how to generate. Start from DefaultSettings.
type Settings struct {
	MaxTokens int           // most tokens of the reply; negative runs to the end of the context
	Sampling  sample.Config //
	Mask      sample.Mask   // a grammar, or nil
	Stop      []string      // texts that end the reply and are not part of it
	Raw       bool          // the prompt goes to the model as it is, without a chat template
	IgnoreEnd bool          // go on after an end-of-generation token
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

// Generate starts a reply to a prompt. Cancelling ctx ends it.
func (m *Model) Generate(ctx context.Context, prompt string, settings ...Setting) (*Generation, error) {
	s := DefaultSettings()
	for _, set := range settings {
		set(&s)
	}
	return m.GenerateTokens(ctx, m.Prompt(prompt, s.Raw), s)
}

// Prompt turns a text into the token ids of a prompt: as one user message in the ChatML form where the vocabulary has
// its markers, otherwise, or if raw, as it is. Markers in the text itself stay text unless raw. A model that wants a
// beginning-of-sequence token gets it.
func (m *Model) Prompt(text string, raw bool) []int32 {
	t := m.tokens
	var ids []int32
	if bos, ok := t.BOS(); ok && t.AddBOS() {
		ids = append(ids, bos)
	}
	_, start := t.ID("<|im_start|>")
	_, end := t.ID("<|im_end|>")
	if raw || !start || !end {
		return t.Append(ids, text, raw)
	}
	ids = t.Append(ids, "<|im_start|>user\n", true)
	ids = t.Append(ids, text, false)
	return t.Append(ids, "<|im_end|>\n<|im_start|>assistant\n", true)
}

// GenerateTokens starts a reply to a prompt of token ids.
func (m *Model) GenerateTokens(ctx context.Context, prompt []int32, s Settings) (*Generation, error) {
	stopper, err := sample.NewStopper(s.Stop)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := engine.Request{Prompt: prompt, MaxTokens: s.MaxTokens, Sampling: s.Sampling, Mask: s.Mask}
	if !s.IgnoreEnd {
		r.IsEnd = m.tokens.IsEOG
	}
	j, err := m.engine.Submit(ctx, r)
	if err != nil {
		cancel()
		return nil, err
	}
	return &Generation{job: j, cancel: cancel, text: m.tokens.NewDecoder(), stop: stopper}, nil
}

// A Generation is a reply on its way. One goroutine reads it, once.
type Generation struct {
	job     *engine.Job
	cancel  context.CancelFunc
	text    *tokenizer.Decoder
	stop    *sample.Stopper
	stopped bool
	reason  engine.Reason
	stats   engine.Stats
	err     error
}

// Pieces yields the reply as it grows: whole characters only, nothing of a stop text. Leaving the loop early ends the
// generation.
func (g *Generation) Pieces() iter.Seq[string] {
	return func(yield func(string) bool) {
		defer g.end()
		for !g.stopped {
			t, ok := g.job.Next()
			if !ok {
				break
			}
			if piece := g.push(g.text.Push(t.ID)); piece != "" && !yield(piece) {
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
	if g.stopped {
		g.reason, g.err = engine.ReasonStop, nil
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

// Stats counts tokens and time; valid after Pieces.
func (g *Generation) Stats() engine.Stats { return g.stats }
