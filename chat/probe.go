package chat

import (
	"context"
	"strings"
	"sync"

	"github.com/minfer-go/minfer/jinja"
)

// Templates differ in the form of messages that they take and say nothing about it. What a template can do is found out
// by rendering short conversations, once for each template and only when a request makes a difference.

// abilities remembers what was found out.
type abilities struct {
	mu    sync.Mutex
	forms map[*jinja.Template]*ability
}

type ability struct {
	text, parts, calls sync.Once
	form
}

func (a *abilities) of(t *jinja.Template) *ability {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.forms == nil {
		a.forms = map[*jinja.Template]*ability{}
	}
	if a.forms[t] == nil {
		a.forms[t] = new(ability)
	}
	return a.forms[t]
}

// probe is a text that no template writes by itself.
const probe = "minfer-probe-3f81"

// formOf is the form that a template wants the messages of a request in.
func (c *Format) formOf(ctx context.Context, t *jinja.Template, r Request) form {
	a := c.abilities.of(t)
	calls, parts := false, false
	for _, m := range r.Messages {
		calls = calls || len(m.ToolCalls) > 0
		parts = parts || m.Content.kind == partsContent
	}
	ctx = context.WithoutCancel(ctx) // what is remembered must not depend on one request
	a.text.Do(func() { a.form.parts = !c.prints(ctx, t, User(probe)) && c.prints(ctx, t, listOf(probe)) })
	if parts {
		a.parts.Do(func() { a.flat = !c.prints(ctx, t, listOf(probe)) })
	}
	if calls {
		a.calls.Do(func() { a.arguments = c.wantsText(ctx, t) })
	}
	f := form{parts: a.form.parts}
	if parts {
		f.flat = a.flat
	}
	if calls {
		f.arguments = a.arguments
	}
	return f
}

// listOf is a user message whose content is a list of one part.
func listOf(text string) Message {
	return Message{Role: "user", Content: Parts(Part{Type: "text", Text: text})}
}

// render renders messages in a form.
func (c *Format) render(ctx context.Context, t *jinja.Template, f form, messages ...Message) (string, error) {
	values := make([]jinja.Value, len(messages))
	for i, m := range messages {
		v, err := m.value(f)
		if err != nil {
			return "", err
		}
		values[i] = v
	}
	return t.Render(ctx, jinja.Object(append([]jinja.Pair{
		{Key: "messages", Value: jinja.List(values...)}, {Key: "add_generation_prompt", Value: jinja.Bool(false)},
	}, c.special...)...))
}

// prints reports whether a message's text is printed, and not the list that it stands in.
func (c *Format) prints(ctx context.Context, t *jinja.Template, m Message) bool {
	out, err := c.render(ctx, t, form{}, m)
	return err == nil && strings.Contains(out, probe) && !strings.Contains(out, "'"+probe) && !strings.Contains(out, `"`+probe)
}

// wantsText reports whether arguments of a call must be JSON text: an object is refused, left out, or printed as Python
// writes a dict, and a text is not.
func (c *Format) wantsText(ctx context.Context, t *jinja.Template) bool {
	printed := func(f form) bool {
		for _, content := range []Content{{}, Text("")} {
			call := Message{Role: "assistant", Content: content, ToolCalls: []ToolCall{{ID: "call00001", Name: "f", Arguments: []byte(`{"` + probe + `":"x"}`)}}}
			if out, err := c.render(ctx, t, f, User("Hello"), call); err == nil && strings.Contains(out, probe) {
				return !strings.Contains(out, "'"+probe)
			}
		}
		return false
	}
	return !printed(form{}) && printed(form{arguments: true})
}
