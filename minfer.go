// Package minfer runs language models from GGUF files on this machine: open a model, generate text.
//
//	m, err := minfer.Open(ctx, "tiny")
//	if err != nil { ... }
//	defer m.Close()
//	g, err := m.Generate(ctx, "Tell me a story about a brave fox.")
//	if err != nil { ... }
//	for piece := range g.Pieces() {
//		fmt.Print(piece)
//	}
//	if err := g.Err(); err != nil { ... }
//
// Generate answers one prompt, Chat a list of messages, and a Conversation remembers what was said:
//
//	c := m.NewConversation(minfer.System("You are terse."))
//	defer c.Close()
//	turn, err := c.Say(ctx, "Hello")
//	if err != nil { ... }
//	for span := range turn.Spans() {
//		fmt.Print(span.Text)
//	}
//
// A Model may be used by several goroutines at once; their requests share one engine, the same that the command line and
// the server drive.
package minfer

import (
	"context"
	"errors"
	"fmt"

	_ "github.com/minfer-go/minfer/backend/cpu" // registers itself
	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/hub"
	"github.com/minfer-go/minfer/tokenizer"
)

// ErrVocabulary says that a file's tokens and its embedding table do not fit each other.
var ErrVocabulary = errors.New("minfer: vocabulary does not fit the model")

// A Model is an open model with its engine.
type Model struct {
	file   *gguf.File
	tokens *tokenizer.Tokenizer
	engine *engine.Engine
	format *chat.Format
	masks  masks
}

// An Option configures Open.
type Option func(*options)

type options struct {
	engine engine.Options
	chat   []chat.Option
	check  bool
}

// WithEngine sets all options of the engine at once.
func WithEngine(o engine.Options) Option { return func(have *options) { have.engine = o } }

// WithChat sets options of the chat form, such as another template.
func WithChat(o ...chat.Option) Option {
	return func(have *options) { have.chat = append(have.chat, o...) }
}

// WithChatCheck refuses a model whose chat template cannot be rendered, before its weights are loaded.
func WithChatCheck() Option { return func(o *options) { o.check = true } }

// WithContext sets the number of tokens that prompt and reply share; the default is engine.DefaultContext.
func WithContext(tokens int) Option { return func(o *options) { o.engine.Context = tokens } }

// WithThreads sets the number of CPU workers; the default suits the machine.
func WithThreads(n int) Option { return func(o *options) { o.engine.Threads = n } }

// WithBackends fences the backends that may take part, by name.
func WithBackends(names ...string) Option { return func(o *options) { o.engine.Backends = names } }

// WithSequences sets how many requests may run at once; further ones wait. The default is 1.
func WithSequences(n int) Option { return func(o *options) { o.engine.Sequences = n } }

// Open opens a model by name (the built-in "tiny", a path, or the name of a cached file), loads its weights and starts
// its engine. Cancelling ctx stops loading.
func Open(ctx context.Context, name string, opts ...Option) (*Model, error) {
	f, err := hub.Open(name)
	if err != nil {
		return nil, err
	}
	m, err := Load(ctx, f, opts...)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// Load is Open for a file that is open already. Closing the model closes the file.
func Load(ctx context.Context, f *gguf.File, opts ...Option) (*Model, error) {
	var o options
	for _, set := range opts {
		set(&o)
	}
	t, err := tokenizer.New(f)
	if err != nil {
		return nil, err
	}
	format, err := chat.New(f, t, o.chat...)
	if err != nil {
		return nil, err
	}
	if o.check {
		if err := format.Check(ctx); err != nil {
			return nil, err
		}
	}
	e, err := engine.Open(ctx, f, o.engine)
	if err != nil {
		return nil, err
	}
	if have, want := t.VocabSize(), e.Model().Config().Vocab; have != want {
		return nil, errors.Join(fmt.Errorf("%w: %s: the tokenizer has %d tokens, the embedding table %d rows", ErrVocabulary, f.Name(), have, want), e.Close())
	}
	return &Model{file: f, tokens: t, engine: e, format: format}, nil
}

// Close ends running generations and frees the model.
func (m *Model) Close() error { return errors.Join(m.engine.Close(), m.file.Close()) }

// Tokenizer is the model's tokenizer.
func (m *Model) Tokenizer() *tokenizer.Tokenizer { return m.tokens }

// Format is the model's chat form.
func (m *Model) Format() *chat.Format { return m.format }

// Engine is the engine that serves the model's requests.
func (m *Model) Engine() *engine.Engine { return m.engine }

// File is the open model file.
func (m *Model) File() *gguf.File { return m.file }
