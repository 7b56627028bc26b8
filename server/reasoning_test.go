package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/sample"
)

// thinker is a template whose replies begin within reasoning, unless that is switched off.
const thinker = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is not defined or enable_thinking %}<think>
{% endif %}{% endif %}`

// TestReasoning: in every API reasoning is apart from the text, ends at its budget, can be switched off, and is free where
// the reply is constrained.
func TestReasoning(t *testing.T) {
	m := tiny(t, engine.Options{Context: 512, Sequences: 2}, chat.WithTemplate("thinker", thinker))
	r := rigOn(t, m)
	ask := `"messages":[{"role":"user","content":"What is the capital of France?"}],"temperature":0`
	budget := `"max_tokens":60,"thinking":{"type":"enabled","budget_tokens":4}`
	endless := `,"logit_bias":[[1535,false]]` // the model would rather end the reply than its reasoning

	o := r.post("/v1/messages", `{`+ask+`,`+budget+endless+`}`)
	thinking, text := o.text("content", 0, "thinking"), o.text("content", 1, "text")
	if o.text("content", 0, "type") != "thinking" || o.text("content", 1, "type") != "text" || thinking == "" || text == "" {
		t.Fatalf("%v", o.v)
	}
	if n := len(m.Tokens.Encode(thinking, false)); n > 4 {
		t.Errorf("%d tokens of reasoning: %q", n, thinking)
	}
	data, names := r.stream("/v1/messages", `{"stream":true,`+ask+`,`+budget+endless+`}`)
	streamed := ""
	for _, d := range data {
		streamed += parse(t, d).text("delta", "thinking")
	}
	if streamed != thinking || strings.Count(strings.Join(names, " "), "content_block_start") != 2 {
		t.Errorf("streamed %q, %v", streamed, names)
	}

	// The model never ends its reasoning by itself: all is reasoning.
	whole := r.post("/v1/chat/completions", `{`+ask+`,"max_tokens":6`+endless+`}`)
	if whole.text("choices", 0, "message", "reasoning_content") == "" || whole.text("choices", 0, "message", "content") != "" ||
		whole.number("usage", "completion_tokens_details", "reasoning_tokens") != 6 {
		t.Errorf("%v", whole.v)
	}
	for path, off := range map[string]string{"/v1/chat/completions": `"reasoning_effort":"none"`, "/v1/messages": `"max_tokens":30,"thinking":{"type":"disabled"}`, "/api/chat": `"stream":false,"think":false`} {
		body := ask
		if path == "/api/chat" {
			body = strings.Replace(ask, `"temperature":0`, `"options":{"temperature":0}`, 1)
		}
		o := r.post(path, `{`+body+`,`+off+`}`)
		have := o.text("choices", 0, "message", "content") + o.text("content", 0, "text") + o.text("message", "content")
		if have != "The capital of France is Paris." {
			t.Errorf("%s without reasoning: %v", path, o.v)
		}
	}
	if o := r.post("/api/chat", `{"stream":false,"think":true,"messages":[{"role":"user","content":"Hi"}],"options":{"num_predict":6,"logit_bias":[[1535,false]]}}`); o.text("message", "thinking") == "" {
		t.Errorf("%v", o.v)
	}

	// In the stream of responses, reasoning is an item with a part, as a message is.
	data, names = r.stream("/v1/responses", `{"stream":true,"temperature":0,"max_output_tokens":4,"input":"What is the capital of France?"`+endless+`}`)
	kinds, reasoning := slices.Compact(slices.Clone(names)), ""
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.reasoning_text.delta",
		"response.reasoning_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("events %v", kinds)
	}
	for i, d := range data {
		switch e := parse(t, d); names[i] {
		case "response.output_item.added":
			if parts, ok := e.at("item", "content").([]any); !ok || len(parts) != 0 {
				t.Errorf("%s", d)
			}
		case "response.content_part.added":
			if e.text("part", "type") != "reasoning_text" || e.text("part", "text") != "" || e.number("content_index") != 0 {
				t.Errorf("%s", d)
			}
		case "response.reasoning_text.delta":
			reasoning += e.text("delta")
		case "response.content_part.done":
			if e.text("part", "text") != reasoning {
				t.Errorf("%s", d)
			}
		}
	}

	// A constraint holds once the reasoning is over.
	schema := `"output_format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"enum":["a","b"]}},"required":["n"],"additionalProperties":false}}`
	o = r.post("/v1/messages", `{"logit_bias":[[1535,-20]],`+ask+`,`+budget+`,`+schema+`}`)
	var n struct{ N string }
	if err := json.Unmarshal([]byte(o.text("content", 1, "text")), &n); err != nil || n.N == "" || o.text("content", 0, "thinking") == "" {
		t.Errorf("%v, %v", o.v, err)
	}
	// A call that must be made is made at once.
	o = r.post("/v1/chat/completions", `{`+ask+`,`+weather+`,"tool_choice":"required"}`)
	if o.text("choices", 0, "finish_reason") != "tool_calls" || o.text("choices", 0, "message", "reasoning_content") != "" {
		t.Errorf("%v", o.v)
	}
	if status, _, body := r.do(http.MethodPost, "/api/show", `{"model":"tiny"}`); status != 200 || !strings.Contains(body, `"thinking"`) {
		t.Errorf("%d %s", status, body)
	}
}

// TestTemplateErrors: a template that cannot work keeps the server from starting; one that refuses a request gives 400.
func TestTemplateErrors(t *testing.T) {
	broken := tiny(t, engine.Options{Context: 64}, chat.WithTemplate("broken", "{% if %}"))
	if _, err := New(t.Context(), broken, Options{Sampling: sample.Default()}); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%v", err)
	}
	picky := tiny(t, engine.Options{Context: 64}, chat.WithTemplate("picky", `{% if messages[0].role == "system" %}{{ raise_exception("no system here") }}{% endif %}x`))
	r := rigOn(t, picky)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"system","content":"x"}]}`,
		"/v1/messages":         `{"max_tokens":1,"system":"x","messages":[{"role":"user","content":"x"}]}`,
		"/api/chat":            `{"messages":[{"role":"system","content":"x"}]}`,
	} {
		if text := r.refused(path, body, http.StatusBadRequest); !strings.Contains(text, "no system here") {
			t.Errorf("%s: %s", path, text)
		}
	}
}
