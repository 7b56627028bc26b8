package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/jinja"
	"github.com/minfer-go/minfer/tokenizer"
)

// Keys of a model file. Further templates stand under templateKey and a name of their own, such as ".tool_use".
const (
	templateKey  = "tokenizer.chat_template"
	templateList = "tokenizer.chat_templates"
	toolUse      = "tool_use"
)

// chatML is how a model is spoken to whose file has no template.
const chatML = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + (m.content or '') + '<|im_end|>\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// A source is a template that may not be compiled yet.
type source struct {
	name, text string
	opts       []jinja.Option
	once       sync.Once
	template   *jinja.Template
	err        error
}

func (s *source) compile() (*jinja.Template, error) {
	s.once.Do(func() { s.template, s.err = jinja.Parse(s.name, s.text, s.opts...) })
	return s.template, s.err
}

// A Format is the chat form of a model.
type Format struct {
	file     string // for errors
	tokens   *tokenizer.Tokenizer
	controls controls
	main     *source
	tools    *source      // for requests with tools; nil for the same
	special  []jinja.Pair // bos_token and the like
	notice   string

	abilities abilities
}

// An Option configures New.
type Option func(*options)

type options struct {
	name, text string
	given      bool
	clock      func() time.Time
}

// WithTemplate sets the template, in place of those of the file. The name, that of a file for example, is for errors.
func WithTemplate(name, text string) Option {
	return func(o *options) { o.name, o.text, o.given = name, text, true }
}

// WithClock sets the clock that templates read; the default is time.Now.
func WithClock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// New returns the chat form of a model. It compiles nothing; f and t must belong together. Errors are those of reading f.
func New(f *gguf.File, t *tokenizer.Tokenizer, opts ...Option) (*Format, error) {
	o := options{clock: time.Now}
	for _, set := range opts {
		set(&o)
	}
	c := &Format{file: f.Name(), tokens: t, controls: newControls(t), special: specials(f, t)}
	make1 := func(name, text string) *source {
		return &source{name: name, text: text, opts: []jinja.Option{jinja.WithClock(o.clock)}}
	}
	if o.given {
		c.file, c.main = "", make1(o.name, o.text)
		return c, nil
	}
	text, err := f.String(templateKey)
	switch {
	case err == nil:
		c.main = make1(templateKey, text)
	case errors.Is(err, gguf.ErrMissingKey):
	default:
		return nil, err
	}
	if text, err := f.String(templateKey + "." + toolUse); err == nil {
		c.tools = make1(templateKey+"."+toolUse, text)
	} else if !errors.Is(err, gguf.ErrMissingKey) {
		return nil, err
	}
	if c.main == nil {
		if names, err := f.Strings(templateList); err == nil || c.tools != nil {
			return nil, fmt.Errorf("%w: %s: there is no %s, only others by name: %q", ErrTemplate, f.Name(), templateKey, names)
		}
		c.main = make1("ChatML", chatML)
		c.notice = fmt.Sprintf("%s has no %s: messages are put in the ChatML form", f.Name(), templateKey)
	}
	return c, nil
}

// Notice tells that the file has no template and ChatML is used; it is empty otherwise.
func (c *Format) Notice() string { return c.notice }

// Source is the text of the template that renders requests without tools.
func (c *Format) Source() string { return c.main.text }

// specials are the variables for special tokens that transformers passes to a template.
func specials(f *gguf.File, t *tokenizer.Tokenizer) []jinja.Pair {
	var out []jinja.Pair
	for _, s := range []struct{ variable, key string }{
		{"bos_token", "bos"},
		{"eos_token", "eos"},
		{"unk_token", "unknown"},
		{"sep_token", "seperator"}, //nolint:misspell // the key is spelled so in every file
		{"pad_token", "padding"},
		{"cls_token", "cls"},
		{"mask_token", "mask"},
	} {
		id, err := f.Uint("tokenizer.ggml." + s.key + "_token_id")
		if err != nil || id >= uint64(t.VocabSize()) {
			continue
		}
		out = append(out, jinja.Pair{Key: s.variable, Value: jinja.Trusted(string(t.PieceSpecial(int32(id))))})
	}
	return out
}

// Check compiles the template and renders a short conversation, so that one that cannot work is found before the first
// request. A template that raises an exception of its own about that conversation passes.
func (c *Format) Check(ctx context.Context) error {
	_, err := c.Prompt(ctx, Request{Messages: []Message{User("Hello")}})
	if errors.Is(err, jinja.ErrRaised) {
		return nil
	}
	return err
}

// RenderJSON renders the template with the variables of a JSON object, exactly as they stand there. Special tokens
// are added where the object lacks them.
func (c *Format) RenderJSON(ctx context.Context, data []byte) (string, error) {
	v, err := jinja.FromJSON(data)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrMessage, err)
	}
	var request struct {
		Tools []json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal(data, &request) // tools of another type are the template's to judge
	src := c.source(len(request.Tools) > 0)
	for _, p := range c.special {
		if _, ok := v.Get(p.Key); !ok {
			v = v.With(p.Key, p.Value)
		}
	}
	t, err := src.compile()
	if err != nil {
		return "", c.fail(err)
	}
	text, err := t.Render(ctx, v)
	return text, c.fail(err)
}

// source is the template for requests with or without tools.
func (c *Format) source(tools bool) *source {
	if tools && c.tools != nil {
		return c.tools
	}
	return c.main
}

// fail wraps an error of the template engine.
func (c *Format) fail(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if c.file == "" {
		return fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrTemplate, c.file, err)
}
