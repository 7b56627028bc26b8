package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/minfer-go/minfer/sample"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	conversation
	prompts      prompts
	bestOf       *int
	echo         bool
	stream       bool
	includeUsage bool
	tokens       *int
}

// prompts are texts or lists of token ids.
type prompts struct {
	texts []string
	ids   [][]int32 // nil where the prompt is a text
}

// UnmarshalJSON reads a text, a list of texts, a list of ids, or a list of lists of ids.
func (p *prompts) UnmarshalJSON(b []byte) error {
	var one string
	var ids []int32
	var items []json.RawMessage
	switch {
	case json.Unmarshal(b, &one) == nil:
		p.add(one, nil)
		return nil
	case json.Unmarshal(b, &items) != nil:
		return errors.New("it is neither a text, nor a list of texts, nor of token ids")
	case len(items) == 0:
		return errors.New("the list is empty")
	case items[0][0] != '"' && items[0][0] != '[':
		if err := json.Unmarshal(b, &ids); err != nil {
			return errors.New("it is no list of token ids")
		}
		p.add("", ids)
		return nil
	}
	for i, raw := range items {
		var one string
		var ids []int32
		if json.Unmarshal(raw, &one) == nil {
			p.add(one, nil)
		} else if json.Unmarshal(raw, &ids) == nil {
			p.add("", ids)
		} else {
			return fmt.Errorf("element %d is neither a text nor a list of token ids", i)
		}
	}
	return nil
}

func (p *prompts) add(text string, ids []int32) {
	p.texts, p.ids = append(p.texts, text), append(p.ids, ids)
}

// tokens are the ids of one of the prompts. Control tokens in texts are recognised: there is no template to write them.
func (s *Server) tokens(p *prompts, i int) []int32 {
	if p.ids[i] != nil {
		return p.ids[i]
	}
	return s.model.Format.Raw(p.texts[i]).Tokens
}

var completionFields = fields[completionRequest]{
	"model":      value(func(r *completionRequest) *string { return &r.model }),
	"prompt":     value(func(r *completionRequest) *prompts { return &r.prompts }),
	"stream":     value(func(r *completionRequest) *bool { return &r.stream }),
	"n":          pointer(func(r *completionRequest) **int { return &r.n }),
	"best_of":    pointer(func(r *completionRequest) **int { return &r.bestOf }),
	"echo":       value(func(r *completionRequest) *bool { return &r.echo }),
	"max_tokens": pointer(func(r *completionRequest) **int { return &r.tokens }),
	"stop":       value(func(r *completionRequest) *stops { return &r.stop }),
	"logprobs":   pointer(func(r *completionRequest) **int { return &r.logprobs }),
	"user":       value(func(r *completionRequest) *string { return &r.user }),
	"suffix":     only[completionRequest]("filling in the middle is not supported", `""`),
	"stream_options": func(r *completionRequest, raw json.RawMessage) error {
		var err error
		r.includeUsage, err = streamOptions(raw)
		return err
	},
	"response_format": func(r *completionRequest, raw json.RawMessage) error {
		return r.constraint.responseFormat("response_format", raw)
	},
	"grammar": func(r *completionRequest, raw json.RawMessage) error { return r.constraint.gbnf(raw) },
	"json_schema": func(r *completionRequest, raw json.RawMessage) error {
		return r.constraint.schema("json_schema", raw)
	},
}.with(within(func(r *completionRequest) *sampling { return &r.sampling }, samplingFields))

// completionNames are the fields that have other names than in chat completions.
var completionNames = renames{"messages": "prompt", "top_logprobs": "logprobs"}

// completionTasks makes a task of each prompt.
func (s *Server) completionTasks(ctx context.Context, q *completionRequest) ([]*task, error) {
	if n := len(q.prompts.texts); n == 0 || n > MaxPrompts {
		return nil, badField("prompt", "%d prompts, must be 1 to %d", n, MaxPrompts)
	}
	if n := len(q.prompts.texts) * q.choices(); n > MaxChoices {
		return nil, badField("n", "%d replies to all prompts, the limit is %d", n, MaxChoices)
	}
	if q.bestOf != nil && *q.bestOf != q.choices() {
		return nil, badField("best_of", "replies are not ranked: it must equal n")
	}
	if q.includeUsage && !q.stream {
		return nil, badField("stream_options", "needs stream")
	}
	q.names = completionNames
	none := q.tokens != nil && *q.tokens == 0
	if none && !q.echo {
		return nil, badField("max_tokens", "0 tokens are wanted, and no echo")
	}
	if !none {
		q.maxTokens = q.tokens
	}
	var all []*task
	for i := range q.prompts.texts {
		t, err := s.rawTask("")(ctx, &q.conversation)
		if err != nil {
			return nil, err
		}
		if none {
			t.maxTokens = 0
		}
		t.sampling.Seed += uint64(i * t.n)
		t.prompt, t.shown = s.tokens(&q.prompts, i), q.echo && t.logprobs != nil
		all = append(all, t)
	}
	return all, nil
}

// completionScores are log probabilities in the form of completions.
type completionScores struct {
	Tokens  []string             `json:"tokens"`
	Scores  []*float64           `json:"token_logprobs"` // null for the first token of a prompt
	Top     []map[string]float64 `json:"top_logprobs"`   // likewise
	Offsets []int                `json:"text_offset"`
}

type completionChoice struct {
	Text     string            `json:"text"`
	Index    int               `json:"index"`
	Logprobs *completionScores `json:"logprobs"`
	Finish   *string           `json:"finish_reason"`
}

type completion struct {
	ID          string             `json:"id"`
	Object      string             `json:"object"`
	Created     int64              `json:"created"`
	Model       string             `json:"model"`
	Fingerprint string             `json:"system_fingerprint"`
	Choices     []completionChoice `json:"choices"`
	Usage       json.RawMessage    `json:"usage,omitempty"`
}

// completions answers /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) error {
	var q completionRequest
	if err := decode(s, w, r, completionFields, &q); err != nil {
		return err
	}
	tasks, err := s.completionTasks(r.Context(), &q)
	if err != nil {
		return err
	}
	head := completion{ID: "cmpl-" + newID(), Object: "text_completion", Created: now(), Model: s.model.Name, Fingerprint: s.fingerprint(), Choices: []completionChoice{}}
	if q.stream {
		enc := &completionStream{lines: newLines(w), server: s, head: head, usage: q.includeUsage, q: &q}
		return s.stream(r.Context(), enc, tasks...)
	}
	all, run, err := s.collect(r.Context(), tasks...)
	if err != nil {
		return err
	}
	for i, whole := range all {
		finish := finishReason(&whole.ending)
		c := completionChoice{Text: whole.content, Index: i, Finish: &finish}
		before := ""
		if q.echo {
			before = s.echo(&q, i)
		}
		c.Text, c.Logprobs = before+c.Text, s.completionScores(whole.tokens, before)
		head.Choices = append(head.Choices, c)
	}
	if head.Usage, err = encode(openAIUsage(run.usage())); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, head)
	return nil
}

// echo is the prompt of a choice.
func (s *Server) echo(q *completionRequest, choice int) string {
	i := choice / q.choices()
	if q.prompts.ids[i] != nil {
		return s.model.Tokens.Decode(q.prompts.ids[i])
	}
	return q.prompts.texts[i]
}

// completionScores writes tokens in the form of completions; nil if there are none. echo is the text before the reply.
func (s *Server) completionScores(tokens []scored, echo string) *completionScores {
	if len(tokens) == 0 {
		return nil
	}
	c := &completionScores{}
	name := func(id int32) string { return validText(s.model.Tokens.PieceSpecial(id)) }
	before := utf8.RuneCountInString(echo)
	for _, t := range tokens {
		c.Tokens = append(c.Tokens, name(t.id))
		if t.prompt {
			c.Offsets = append(c.Offsets, t.at)
		} else {
			c.Offsets = append(c.Offsets, before+t.at)
		}
		if t.bare {
			c.Scores, c.Top = append(c.Scores, nil), append(c.Top, nil)
			continue
		}
		score, top := max(t.logprob, lowest), map[string]float64{}
		for _, alternative := range append([]sample.Logprob{{ID: t.id, Value: t.logprob}}, t.top...) {
			top[name(alternative.ID)] = max(alternative.Value, lowest)
		}
		c.Scores, c.Top = append(c.Scores, &score), append(c.Top, top)
	}
	return c
}

// A completionStream is the streaming form.
type completionStream struct {
	*lines
	server *Server
	head   completion
	usage  bool
	q      *completionRequest
	echoed map[int]bool
}

func (c *completionStream) begin(*run) error {
	c.echoed = map[int]bool{}
	return c.start("text/event-stream; charset=utf-8")
}

func (c *completionStream) chunk(choice completionChoice) error {
	chunk := c.head
	chunk.Choices = []completionChoice{choice}
	if c.usage {
		chunk.Usage = json.RawMessage("null")
	}
	return c.data(chunk)
}

func (c *completionStream) event(e event) error {
	echo := ""
	if c.q.echo {
		echo = c.server.echo(c.q, e.choice)
	}
	choice := completionChoice{Text: e.text, Index: e.choice, Logprobs: c.server.completionScores(e.tokens, echo)}
	if !c.echoed[e.choice] {
		c.echoed[e.choice] = true
		choice.Text = echo + choice.Text
	}
	if e.kind == endEvent {
		finish := finishReason(&e.ending)
		choice.Finish = &finish
	}
	return c.chunk(choice)
}

func (c *completionStream) end(r *run) error {
	if c.usage {
		var err error
		if c.head.Usage, err = encode(openAIUsage(r.usage())); err != nil {
			return err
		}
		if err := c.data(c.head); err != nil {
			return err
		}
	}
	return c.done()
}

func (c *completionStream) fail(e *apiError) error {
	if err := c.data(openAIShape.body(e)); err != nil {
		return err
	}
	return c.done()
}

func (c *completionStream) idle(position int) error { return c.comment(waiting(position)) }
