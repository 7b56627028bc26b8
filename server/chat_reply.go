package server

import (
	"encoding/json"
	"fmt"

	"github.com/minfer-go/minfer/engine"
)

// chatHead begins each answer of /v1/chat/completions.
type chatHead struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	Model       string `json:"model"`
	ServiceTier string `json:"service_tier"`
	Fingerprint string `json:"system_fingerprint"`
}

// chatUsage counts tokens in OpenAI's form.
type chatUsage struct {
	Prompt        int      `json:"prompt_tokens"`
	Completion    int      `json:"completion_tokens"`
	Total         int      `json:"total_tokens"`
	PromptDetails struct { //
		Cached int `json:"cached_tokens"` //
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func openAIUsage(u usage) *chatUsage {
	c := &chatUsage{Prompt: u.prompt, Completion: u.generated, Total: u.total()}
	c.PromptDetails.Cached, c.CompletionDetails.Reasoning = u.cached, u.reasoning
	return c
}

// tokenScore is a token with its log probability.
type tokenScore struct {
	Token   string       `json:"token"`
	Logprob float64      `json:"logprob"`
	Bytes   []int        `json:"bytes"`
	Top     []tokenScore `json:"top_logprobs,omitempty"`
}

// scoreList is a reply's log probabilities.
type scoreList struct {
	Content []fullScore `json:"content"`
	Refusal *string     `json:"refusal"`
}

// fullScore is a tokenScore whose alternatives are a list even where there are none.
type fullScore struct {
	tokenScore
	Top []tokenScore `json:"top_logprobs"`
}

// scores writes tokens in OpenAI's form; nil if there are none.
func (s *Server) scores(tokens []scored) *scoreList {
	if len(tokens) == 0 {
		return nil
	}
	list := &scoreList{}
	for _, t := range tokens {
		full := fullScore{tokenScore: s.score(t.id, t.logprob), Top: []tokenScore{}}
		for _, alternative := range t.top {
			full.Top = append(full.Top, s.score(alternative.ID, alternative.Value))
		}
		list.Content = append(list.Content, full)
	}
	return list
}

// lowest stands for the logarithm of zero, which JSON cannot write.
const lowest = -9999

func (s *Server) score(id int32, logprob float64) tokenScore {
	piece := s.model.Tokens.PieceSpecial(id)
	t := tokenScore{Token: validText(piece), Logprob: max(logprob, lowest), Bytes: make([]int, len(piece))}
	for i, b := range piece {
		t.Bytes[i] = int(b)
	}
	return t
}

// A toolCall is a call in OpenAI's form.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in streams
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// finishReason is OpenAI's word for how a reply ended.
func finishReason(e *ending) string {
	switch {
	case e.reason == engine.ReasonLength:
		return "length"
	case e.calls > 0:
		return "tool_calls"
	}
	return "stop"
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type chatChoice struct {
	Index    int         `json:"index"`
	Message  chatMessage `json:"message"`
	Logprobs *scoreList  `json:"logprobs"`
	Finish   string      `json:"finish_reason"`
}

type chatCompletion struct {
	chatHead
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage"`
}

// chatReply is the whole answer.
func (s *Server) chatReply(head chatHead, all []whole, u usage) chatCompletion {
	c := chatCompletion{chatHead: head, Usage: openAIUsage(u)}
	for i, w := range all {
		m := chatMessage{Role: "assistant", Content: &w.content, Reasoning: w.reasoning}
		if w.content == "" && len(w.calls) > 0 {
			m.Content = nil
		}
		for _, e := range w.calls {
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: e.id, Type: "function", Function: functionCall{e.name, e.arguments}})
		}
		c.Choices = append(c.Choices, chatChoice{Index: i, Message: m, Logprobs: s.scores(w.tokens), Finish: finishReason(&w.ending)})
	}
	return c
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type chatChunkChoice struct {
	Index    int        `json:"index"`
	Delta    chatDelta  `json:"delta"`
	Logprobs *scoreList `json:"logprobs"`
	Finish   *string    `json:"finish_reason"`
}

type chatChunk struct {
	chatHead
	Choices []chatChunkChoice `json:"choices"`
	Usage   json.RawMessage   `json:"usage,omitempty"` // null but in the last chunk, if asked for
}

// A chatStream is the streaming form.
type chatStream struct {
	*lines
	head   chatHead
	scores func([]scored) *scoreList
	usage  bool
	opened map[int]bool
}

func (c *chatStream) begin(*run) error {
	c.opened = map[int]bool{}
	return c.start("text/event-stream; charset=utf-8")
}

// chunk sends a delta; the first one of a choice brings the role.
func (c *chatStream) chunk(choice chatChunkChoice) error {
	if !c.opened[choice.Index] {
		c.opened[choice.Index] = true
		if err := c.chunk(chatChunkChoice{Index: choice.Index, Delta: chatDelta{Role: "assistant", Content: new(string)}}); err != nil {
			return err
		}
	}
	chunk := chatChunk{chatHead: c.head, Choices: []chatChunkChoice{choice}}
	if c.usage {
		chunk.Usage = json.RawMessage("null")
	}
	return c.data(chunk)
}

func (c *chatStream) event(e event) error {
	choice := chatChunkChoice{Index: e.choice, Logprobs: c.scores(e.tokens)}
	switch e.kind {
	case contentEvent:
		choice.Delta.Content = &e.text
	case reasoningEvent:
		choice.Delta.Reasoning = e.text
	case callEvent:
		choice.Delta.ToolCalls = []toolCall{{Index: &e.index, ID: e.id, Type: "function", Function: functionCall{Name: e.text}}}
	case argumentsEvent:
		choice.Delta.ToolCalls = []toolCall{{Index: &e.index, Function: functionCall{Arguments: e.text}}}
	case callEndEvent:
		return nil
	case endEvent:
		finish := finishReason(&e.ending)
		choice.Finish = &finish
	}
	return c.chunk(choice)
}

func (c *chatStream) end(r *run) error {
	if c.usage {
		raw, err := encode(openAIUsage(r.usage()))
		if err != nil {
			return err
		}
		if err := c.data(chatChunk{chatHead: c.head, Choices: []chatChunkChoice{}, Usage: raw}); err != nil {
			return err
		}
	}
	return c.done()
}

func (c *chatStream) fail(e *apiError) error {
	if err := c.data(openAIShape.body(e)); err != nil {
		return err
	}
	return c.done()
}

func (c *chatStream) idle(position int) error { return c.comment(waiting(position)) }

// done ends a stream of OpenAI's older APIs.
func (l *lines) done() error { return l.write([]byte("data: [DONE]\n\n")) }

// waiting is what a comment says while nothing happens.
func waiting(position int) string {
	if position > 0 {
		return fmt.Sprintf("queued, position %d", position)
	}
	return "working"
}
