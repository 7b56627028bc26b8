package server

import (
	"encoding/json"
	"strings"
	"testing"
)

// capital is a question that the model answers with "The capital of France is Paris."
const capital = `"messages":[{"role":"user","content":"What is the capital of France?"}],"temperature":0`

func TestChatWhole(t *testing.T) {
	r := newRig(t)
	o := r.post("/v1/chat/completions", `{"model":"tiny",`+capital+`}`)
	if have := o.text("choices", 0, "message", "content"); !strings.Contains(have, "Paris") {
		t.Errorf("content %q", have)
	}
	if o.text("object") != "chat.completion" || o.text("choices", 0, "finish_reason") != "stop" || o.text("choices", 0, "message", "role") != "assistant" {
		t.Errorf("%v", o.v)
	}
	prompt, completion := o.number("usage", "prompt_tokens"), o.number("usage", "completion_tokens")
	if prompt < 5 || completion < 5 || o.number("usage", "total_tokens") != prompt+completion {
		t.Errorf("usage %v", o.at("usage"))
	}
	again := r.post("/v1/chat/completions", `{`+capital+`}`)
	if again.text("choices", 0, "message", "content") != o.text("choices", 0, "message", "content") {
		t.Error("greedy replies differ")
	}
	if cached := again.number("usage", "prompt_tokens_details", "cached_tokens"); cached != prompt-1 {
		t.Errorf("%v of %v prompt tokens were cached", cached, prompt)
	}
}

func TestChatStream(t *testing.T) {
	r := newRig(t)
	want := r.post("/v1/chat/completions", `{`+capital+`}`).text("choices", 0, "message", "content")
	for _, usage := range []string{"", `,"stream_options":{"include_usage":true}`} {
		data, _ := r.stream("/v1/chat/completions", `{"stream":true`+usage+`,`+capital+`}`)
		if data[len(data)-1] != "[DONE]" {
			t.Fatalf("ends with %q", data[len(data)-1])
		}
		data = data[:len(data)-1]
		text, finish, usages := "", "", 0
		for i, d := range data {
			o := parse(t, d)
			if o.text("object") != "chat.completion.chunk" || o.text("id") != parse(t, data[0]).text("id") {
				t.Errorf("chunk %s", d)
			}
			if i == 0 && o.text("choices", 0, "delta", "role") != "assistant" {
				t.Errorf("first chunk %s", d)
			}
			text += o.text("choices", 0, "delta", "content")
			if f := o.text("choices", 0, "finish_reason"); f != "" {
				finish += f
			}
			if _, ok := o.at("usage", "prompt_tokens").(json.Number); ok {
				usages++
				if i != len(data)-1 || len(o.at("choices").([]any)) != 0 {
					t.Errorf("usage in chunk %d of %d", i, len(data))
				}
			}
		}
		if text != want || finish != "stop" || usages != strings.Count(usage, "include_usage") {
			t.Errorf("%q, %q, %d usages", text, finish, usages)
		}
	}
}
