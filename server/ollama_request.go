package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/minfer-go/minfer/chat"
)

// ollamaRequest is the body of Ollama's /api/chat and /api/generate.
type ollamaRequest struct {
	conversation
	whole    bool // not streamed
	thinks   bool // reasoning is asked for
	logprobs bool
	top      *int

	prompt, system string
	raw            bool
}

// ollamaOptions are the options that a request may set. The others belong to the server.
var ollamaOptions = within(func(c *conversation) *sampling { return &c.sampling }, samplingFields.pick("temperature", "top_k", "top_p", "min_p",
	"typical_p", "repeat_penalty", "repeat_last_n", "frequency_penalty", "presence_penalty", "mirostat", "mirostat_tau", "mirostat_eta", "seed",
	"top_n_sigma", "xtc_probability", "xtc_threshold", "dynatemp_range", "dynatemp_exponent", "dry_multiplier", "dry_base", "dry_allowed_length",
	"dry_penalty_last_n", "dry_sequence_breakers", "logit_bias", "ignore_eos")).with(fields[conversation]{
	"stop": value(func(c *conversation) *stops { return &c.stop }),
	"num_predict": func(c *conversation, raw json.RawMessage) error {
		var n int
		if err := strict(raw, &n); err != nil {
			return err
		}
		if n != -1 && n != -2 { // no limit, and until the context is full
			c.maxTokens = &n
		}
		return nil
	},
	"num_ctx": func(c *conversation, raw json.RawMessage) error {
		if err := strict(raw, &c.window); err != nil {
			return err
		}
		if c.window < 1 {
			return fmt.Errorf("%d, must be at least 1", c.window)
		}
		return nil
	},
	"num_keep":         only[conversation]("prompts are never cut", "-1", "0", "4"),
	"penalize_newline": only[conversation]("newlines are penalised like other tokens", "true"),
	"tfs_z":            only[conversation]("tail-free sampling is not supported", "1"),
	"num_batch":        fixed, "num_gpu": fixed, "main_gpu": fixed, "num_thread": fixed, "numa": fixed, "use_mmap": fixed, "use_mlock": fixed,
	"low_vram": fixed, "f16_kv": fixed, "vocab_only": fixed,
})

// fixed refuses an option that only starting the server can set.
func fixed(*conversation, json.RawMessage) error {
	return errors.New("it is set when the server starts")
}

// Fields that have other names than in chat completions. Those of options are named as they stand there.
var (
	ollamaChatNames     = renames{"max_tokens": "options.num_predict"}.with(ollamaOptions)
	ollamaGenerateNames = renames{"max_tokens": "options.num_predict", "messages": "prompt"}.with(ollamaOptions)
)

// with adds the fields of options.
func (n renames) with(options fields[conversation]) renames {
	for name := range options {
		n[name] = "options." + name
	}
	return n
}

// ollamaCommon are the fields of both endpoints.
var ollamaCommon = fields[ollamaRequest]{
	"model": value(func(r *ollamaRequest) *string { return &r.model }),
	"stream": func(r *ollamaRequest, raw json.RawMessage) error {
		stream := true
		err := strict(raw, &stream)
		r.whole = !stream
		return err
	},
	"format":       (*ollamaRequest).format,
	"options":      (*ollamaRequest).options,
	"think":        (*ollamaRequest).think,
	"keep_alive":   (*ollamaRequest).keepAlive,
	"logprobs":     value(func(r *ollamaRequest) *bool { return &r.logprobs }),
	"top_logprobs": pointer(func(r *ollamaRequest) **int { return &r.top }),
	"truncate":     only[ollamaRequest]("prompts are never cut", "false"),
	"shift":        only[ollamaRequest]("a reply ends with the context", "false"),
}

var ollamaChatFields = ollamaCommon.with(fields[ollamaRequest]{
	"messages": (*ollamaRequest).read,
	"tools":    func(r *ollamaRequest, raw json.RawMessage) error { return r.tools.openAI(raw) },
})

var ollamaGenerateFields = ollamaCommon.with(fields[ollamaRequest]{
	"prompt":   value(func(r *ollamaRequest) *string { return &r.prompt }),
	"system":   value(func(r *ollamaRequest) *string { return &r.system }),
	"raw":      value(func(r *ollamaRequest) *bool { return &r.raw }),
	"suffix":   only[ollamaRequest]("filling in the middle is not supported", `""`),
	"template": only[ollamaRequest]("the model's own template is used", `""`),
	"images":   only[ollamaRequest]("the model takes text alone", "[]"),
	"context":  only[ollamaRequest]("send the conversation to /api/chat", "[]"),
})

// format reads "json" or a JSON Schema.
func (r *ollamaRequest) format(raw json.RawMessage) error {
	switch string(raw) {
	case `""`:
		return nil
	case `"json"`:
		return r.constraint.schema("format", []byte(anyObject))
	}
	if raw[0] != '{' {
		return errors.New(`it is neither "json" nor a JSON Schema`)
	}
	return r.constraint.schema("format", raw)
}

func (r *ollamaRequest) options(raw json.RawMessage) error {
	var o chat.Object
	if err := strict(raw, &o); err != nil {
		return err
	}
	return ollamaOptions.object(o, &r.conversation, "options.")
}

// think switches reasoning: a boolean or an effort.
func (r *ollamaRequest) think(raw json.RawMessage) error {
	if raw[0] == '"' {
		r.thinks = true
		return r.effort(raw)
	}
	if err := strict(raw, &r.thinks); err != nil {
		return err
	}
	r.variables.Set("enable_thinking", raw)
	return nil
}

// keepAlive accepts how long the model is to stay loaded: it does for good. So it cannot be unloaded.
func (r *ollamaRequest) keepAlive(raw json.RawMessage) error {
	switch string(bytes.Trim(raw, `"`)) {
	case "0", "0s", "0m", "0h":
		return errors.New("the model cannot be unloaded")
	}
	var text string
	var seconds float64
	if strict(raw, &text) != nil && strict(raw, &seconds) != nil {
		return errors.New("it is neither a duration nor a number of seconds")
	}
	return nil
}

// ollamaMessage is a message in Ollama's form.
type ollamaMessage struct {
	Role      string   `json:"role"`
	Content   string   `json:"content"`
	Thinking  string   `json:"thinking"`
	Images    []string `json:"images"`
	ToolName  string   `json:"tool_name"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Index       int             `json:"index"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Arguments   json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

// read turns messages of Ollama into those of the chat form.
func (r *ollamaRequest) read(raw json.RawMessage) error {
	var list []ollamaMessage
	if err := strict(raw, &list); err != nil {
		return err
	}
	for i, m := range list {
		if m.Role == "" {
			return badField(fmt.Sprintf("messages[%d]", i), "it has no role")
		}
		if len(m.Images) > 0 {
			return badField(fmt.Sprintf("messages[%d].images", i), "the model takes text alone")
		}
		one := chat.Message{Role: m.Role, Content: chat.Text(m.Content), Reasoning: m.Thinking, ToolCallID: m.ToolCallID, Name: m.ToolName}
		for j, c := range m.ToolCalls {
			id := c.ID
			if id == "" {
				id = fmt.Sprintf("call_%d_%d", i, j) // templates that write ids get some
			}
			one.ToolCalls = append(one.ToolCalls, chat.ToolCall{ID: id, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		r.messages = append(r.messages, one)
	}
	return nil
}
