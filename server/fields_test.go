package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// fieldNames are the fields of each endpoint.
func fieldNames() map[string][]string {
	return map[string][]string{
		"/v1/chat/completions":      names(chatFields),
		"/v1/completions":           names(completionFields),
		"/v1/embeddings":            names(embeddingFields),
		"/v1/responses":             names(responsesFields),
		"/v1/messages":              names(messagesFields),
		"/v1/messages/count_tokens": names(countFields),
		"/api/chat":                 names(ollamaChatFields),
		"/api/generate":             names(ollamaGenerateFields),
		"/api/show":                 names(showFields),
		"/tokenize":                 names(tokenizeFields),
	}
}

func names[T any](f fields[T]) []string {
	var all []string
	for name := range f {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// minimal are bodies that each endpoint answers, without their last brace.
var minimal = map[string]string{
	"/v1/chat/completions":      `{"messages":[{"role":"user","content":"Hi"}],"max_tokens":1`,
	"/v1/completions":           `{"prompt":"Hi","max_tokens":1`,
	"/v1/embeddings":            `{"input":"Hi"`,
	"/v1/responses":             `{"input":"Hi","max_output_tokens":1`,
	"/v1/messages":              `{"messages":[{"role":"user","content":"Hi"}],"max_tokens":1`,
	"/v1/messages/count_tokens": `{"messages":[{"role":"user","content":"Hi"}]`,
	"/api/chat":                 `{"messages":[{"role":"user","content":"Hi"}],"options":{"num_predict":1},"stream":false`,
	"/api/generate":             `{"prompt":"Hi","options":{"num_predict":1},"stream":false`,
	"/api/show":                 `{"model":"tiny"`,
	"/tokenize":                 `{"content":"Hi"`,
	"/detokenize":               `{"tokens":[300]`,
	"/apply-template":           `{"messages":[{"role":"user","content":"Hi"}]`,
}

// TestFieldsAreStrict: every endpoint answers its minimal body, refuses an unknown field, a field of a wrong type, and
// bodies that are no objects; null is absence; the name is told.
func TestFieldsAreStrict(t *testing.T) {
	r := newRig(t)
	for path, body := range minimal {
		r.post(path, body+`}`)
		if text := r.refused(path, body+`,"no_such_field":1}`, http.StatusBadRequest); !strings.Contains(text, "no_such_field") {
			t.Errorf("%s: %s", path, text)
		}
		if status, _, text := r.do(http.MethodPost, path, body+`}`, "Content-Encoding", "gzip"); status != http.StatusUnsupportedMediaType || !strings.Contains(text, "gzip") {
			t.Errorf("%s: %d %s", path, status, text)
		}
		for _, bad := range []string{``, `[]`, `"x"`, `{`, body + `}{}`, body + `}x`} {
			r.refused(path, bad, http.StatusBadRequest)
		}
		for _, name := range fieldNames()[path] {
			if strings.Contains(body, `"`+name+`"`) {
				continue
			}
			r.post(path, body+`,"`+name+`":null}`)
			if name == "metadata" && path == "/v1/responses" || name == "input" {
				continue
			}
			// No field takes a list of lists of booleans.
			if text := r.refused(path, body+`,"`+name+`":[[true]]}`, http.StatusBadRequest); !strings.Contains(text, name) {
				t.Errorf("%s: %s is not named in %s", path, name, text)
			}
		}
	}
}

// TestFieldRefusals: values that cannot be honoured, by endpoint.
func TestFieldRefusals(t *testing.T) {
	r := newRig(t)
	tool := `{"type":"function","function":{"name":"f"}}`
	for _, c := range []struct{ path, more, want string }{
		{"/v1/chat/completions", `"model":"gpt-5"`, "gpt-5"},
		{"/v1/chat/completions", `"temperature":-1`, "temperature"},
		{"/v1/chat/completions", `"top_p":2`, "top"},
		{"/v1/chat/completions", `"top_k":-1`, "top"},
		{"/v1/chat/completions", `"n":129`, "n: 129"},
		{"/v1/chat/completions", `"n":-1`, "n: -1"},
		{"/v1/chat/completions", `"stop":""`, "stop"},
		{"/v1/chat/completions", `"stop":[1]`, "stop"},
		{"/v1/chat/completions", `"logprobs":true,"top_logprobs":21`, "top_logprobs"},
		{"/v1/chat/completions", `"top_logprobs":2`, "top_logprobs"},
		{"/v1/chat/completions", `"max_completion_tokens":2`, "max_completion_tokens"},
		{"/v1/chat/completions", `"logit_bias":{"x":1}`, "logit_bias"},
		{"/v1/chat/completions", `"logit_bias":{"5":101}`, "bias"},
		{"/v1/chat/completions", `"logit_bias":[[5]]`, "logit_bias"},
		{"/v1/chat/completions", `"logit_bias":[[5,1,2]]`, "logit_bias"},
		{"/v1/chat/completions", `"logit_bias":{"99999":1}`, "99999"},
		{"/v1/chat/completions", `"stream_options":{"include_usage":true}`, "stream_options"},
		{"/v1/chat/completions", `"stream":true,"stream_options":{"include_obfuscation":true}`, "include_obfuscation"},
		{"/v1/chat/completions", `"stream":true,"stream_options":{"x":true}`, "x"},
		{"/v1/chat/completions", `"response_format":{"type":"xml"}`, "xml"},
		{"/v1/chat/completions", `"response_format":{"type":"json_schema"}`, "schema"},
		{"/v1/chat/completions", `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"text"}}}`, "response_format"},
		{"/v1/chat/completions", `"documents":[{"text":"x"}]`, "documents"},
		{"/v1/chat/completions", `"grammar":"root = x"`, "grammar"},
		{"/v1/chat/completions", `"grammar":"root ::= \"x\"","response_format":{"type":"json_object"}`, "grammar"},
		{"/v1/chat/completions", `"grammar":"root ::= \"x\"","ignore_eos":true`, "ignore_eos"},
		{"/v1/chat/completions", `"grammar":"root ::= \"x\"","tools":[` + tool + `]`, "tools"},
		{"/v1/chat/completions", `"tools":[{"type":"web_search"}]`, "tools"},
		{"/v1/chat/completions", `"tools":[` + tool + `,` + tool + `]`, "tools"},
		{"/v1/chat/completions", `"tools":[{"type":"function","function":{"name":""}}]`, "tools"},
		{"/v1/chat/completions", `"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`, "tools"},
		{"/v1/chat/completions", `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":1}}}],"tool_choice":"required"`, "tools"},
		{"/v1/chat/completions", `"tool_choice":"required"`, "tool_choice"},
		{"/v1/chat/completions", `"tool_choice":"always"`, "tool_choice"},
		{"/v1/chat/completions", `"tools":[` + tool + `],"tool_choice":{"type":"function","function":{"name":"g"}}`, "tool_choice"},
		{"/v1/chat/completions", `"reasoning_effort":"huge"`, "reasoning_effort"},
		{"/v1/chat/completions", `"store":true`, "store"},
		{"/v1/chat/completions", `"metadata":{"a":"b"}`, "metadata"},
		{"/v1/chat/completions", `"modalities":["text","audio"]`, "modalities"},
		{"/v1/chat/completions", `"service_tier":"flex"`, "service_tier"},
		{"/v1/chat/completions", `"functions":[{"name":"f"}]`, "functions"},
		{"/v1/chat/completions", `"chat_template_kwargs":{"messages":[]}`, "messages"},
		{"/v1/chat/completions", `"dry_sequence_breakers":[""]`, "dry_sequence_breakers"},
		{"/v1/completions", `"best_of":2`, "best_of"},
		{"/v1/completions", `"suffix":"x"`, "suffix"},
		{"/v1/completions", `"json_schema":{"type":1}`, "json_schema"},
		{"/v1/embeddings", `"dimensions":3`, "dimensions"},
		{"/v1/embeddings", `"encoding_format":"hex"`, "encoding_format"},
		{"/v1/embeddings", `"pooling":"max"`, "pooling"},
		{"/v1/responses", `"previous_response_id":"resp_1"`, "previous_response_id"},
		{"/v1/responses", `"store":true`, "store"},
		{"/v1/responses", `"background":true`, "background"},
		{"/v1/responses", `"truncation":"auto"`, "truncation"},
		{"/v1/responses", `"tools":[{"type":"file_search"}]`, "file_search"},
		{"/v1/responses", `"include":["file_search_call.results"]`, "include"},
		{"/v1/responses", `"reasoning":{"summary":"detailed"}`, "reasoning.summary"},
		{"/v1/responses", `"text":{"format":{"type":"xml"}}`, "text.format"},
		{"/v1/messages", `"tools":[{"type":"bash_20250124","name":"bash"}]`, "bash_20250124"},
		{"/v1/messages", `"thinking":{"type":"enabled","budget_tokens":0}`, "budget_tokens"},
		{"/v1/messages", `"thinking":{"type":"on"}`, "thinking"},
		{"/v1/messages", `"tool_choice":{"type":"tool"}`, "tool_choice"},
		{"/v1/messages", `"cache_control":{"type":"forever"}`, "cache_control"},
		{"/v1/messages", `"container":"x"`, "container"},
		{"/api/chat", `"keep_alive":0`, "keep_alive"},
		{"/api/chat", `"format":"xml"`, "format"},
		{"/api/chat", `"think":true`, "think"},
		{"/api/chat", `"think":"high"`, "think"},
		{"/api/chat", `"truncate":true`, "truncate"},
		{"/api/generate", `"suffix":"x"`, "suffix"},
		{"/api/generate", `"template":"x"`, "template"},
		{"/api/generate", `"context":[1]`, "context"},
		{"/api/generate", `"images":["x"]`, "images"},
		{"/api/generate", `"raw":true,"system":"x"`, "system"},
	} {
		want := http.StatusBadRequest
		if strings.Contains(c.more, "gpt-5") {
			want = http.StatusNotFound
		}
		body := minimal[c.path]
		if text := r.refused(c.path, body+`,`+c.more+`}`, want); !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %q is not in %s", c.path, c.more, c.want, text)
		}
	}
	for _, c := range []struct{ path, body, want string }{
		{"/v1/chat/completions", `{"messages":[]}`, "messages"},
		{"/v1/chat/completions", `{"messages":[{"content":"x"}]}`, "role"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x","extra":1}]}`, "extra"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "image_url"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":5}]}`, "messages"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}],"grammar":"root ::= \"x\""}`, "messages"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"},{"role":"user"}]}`, "messages[1]: it has no content"},
		{"/v1/chat/completions", `{"messages":[{"role":"tool","content":null,"tool_call_id":"1"}]}`, "messages[0]: it has no content"},
		{"/v1/chat/completions", `{"messages":[{"role":"assistant"},{"role":"user","content":"x"}]}`, "messages[0]: it has no content"},
		{"/v1/messages", `{"max_tokens":1,"messages":[{"role":"user","content":[]}]}`, "messages[0]: it has no content"},
		{"/v1/messages", `{"max_tokens":1,"messages":[{"role":"user"}]}`, "messages[0]: it has no content"},
		{"/v1/completions", `{}`, "prompt"},
		{"/v1/completions", `{"prompt":[]}`, "prompt"},
		{"/v1/completions", `{"prompt":[99999]}`, "99999"},
		{"/v1/completions", `{"prompt":[true]}`, "prompt"},
		{"/v1/completions", `{"prompt":["a","b"],"n":65}`, "130 replies"},
		{"/v1/completions", `{"prompt":"x","max_tokens":0}`, "max_tokens"},
		{"/v1/completions", `{"prompt":""}`, "prompt"},
		{"/v1/embeddings", `{"input":""}`, "input"},
		{"/v1/embeddings", `{}`, "input"},
		{"/v1/responses", `{}`, "input"},
		{"/v1/responses", `{"input":[]}`, "input"},
		{"/v1/responses", `{"input":[{"type":"item_reference","id":"x"}]}`, "item_reference"},
		{"/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`, "input_image"},
		{"/v1/responses", `{"input":[{"role":"robot","content":"x"}]}`, "robot"},
		{"/v1/responses", `{"input":[{"type":"function_call","name":"f"}]}`, "call_id"},
		{"/v1/messages", `{"messages":[{"role":"user","content":"x"}]}`, "max_tokens"},
		{"/v1/messages", `{"max_tokens":1}`, "messages"},
		{"/v1/messages", `{"max_tokens":1,"messages":[{"role":"robot","content":"x"}]}`, "robot"},
		{"/v1/messages", `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image"}]}]}`, "image"},
		{"/v1/messages", `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_use","name":"f"}]}]}`, "tool_use"},
		{"/v1/messages", `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"x","foo":1}]}]}`, "foo"},
		{"/api/chat", `{"messages":[{"role":"user","content":"x","images":["y"]}]}`, "images"},
		{"/api/chat", `{"messages":[{"content":"x"}]}`, "role"},
		{"/api/chat", `{"messages":[{"role":"user","content":"x"}],"options":{"num_gpu":1}}`, "options.num_gpu"},
		{"/api/chat", `{"messages":[{"role":"user","content":"x"}],"options":{"num_ctx":99999}}`, "options.num_ctx"},
		{"/api/chat", `{"messages":[{"role":"user","content":"x"}],"options":{"foo":1}}`, "options.foo"},
		{"/detokenize", `{"tokens":[-1]}`, "tokens"},
		{"/detokenize", `{"tokens":[1536]}`, "tokens"},
	} {
		if text := r.refused(c.path, c.body, http.StatusBadRequest); !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %q is not in %s", c.path, c.body, c.want, text)
		}
	}
}

// TestFieldNames: an error names the field as the API does.
func TestFieldNames(t *testing.T) {
	r := newRig(t)
	ask := `{"messages":[{"role":"user","content":"Hi"}]`
	for _, c := range []struct{ path, body, field string }{
		{"/v1/chat/completions", ask + `,"temperature":-1}`, "temperature"},
		{"/v1/chat/completions", ask + `,"top_p":1,"min_p":2}`, "min_p"},
		{"/v1/chat/completions", ask + `,"top_k":-1}`, "top_k"},
		{"/v1/chat/completions", ask + `,"logit_bias":{"99999":1}}`, "logit_bias"},
		{"/v1/chat/completions", ask + `,"logit_bias":{"9":101}}`, "logit_bias"},
		{"/v1/chat/completions", ask + `,"logit_bias":[["Paris",101]]}`, "logit_bias"},
		{"/v1/chat/completions", ask + `,"n":0}`, "n"},
		{"/v1/chat/completions", ask + `,"max_tokens":0}`, "max_tokens"},
		{"/v1/chat/completions", ask + `,"max_completion_tokens":0}`, "max_completion_tokens"},
		{"/v1/completions", `{"prompt":"x","n":0}`, "n"},
		{"/v1/completions", `{"prompt":"x","logprobs":21}`, "logprobs"},
		{"/v1/completions", `{"prompt":"x","max_tokens":-1}`, "max_tokens"},
		{"/v1/completions", `{"prompt":""}`, "prompt"},
		{"/v1/completions", `{"prompt":["x",[99999]]}`, "prompt"},
		{"/v1/embeddings", `{"input":[99999]}`, "input"},
		{"/v1/embeddings", `{"input":[[]]}`, "input"},
		{"/v1/responses", `{"input":"x","max_output_tokens":0}`, "max_output_tokens"},
		{"/v1/responses", `{"input":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}],"grammar":"root ::= \"x\""}`, "input"},
		{"/v1/messages", ask + `,"max_tokens":0}`, "max_tokens"},
		{"/v1/messages", ask + `,"max_tokens":1,"stop_sequences":[""]}`, "stop_sequences"},
		{"/v1/messages", ask + `,"max_tokens":1,"top_p":3}`, "top_p"},
		{"/api/chat", ask + `,"options":{"num_predict":-3}}`, "options.num_predict"},
		{"/api/chat", ask + `,"options":{"stop":[""]}}`, "options.stop"},
		{"/api/chat", ask + `,"options":{"top_p":3}}`, "options.top_p"},
		{"/api/chat", ask + `,"logprobs":true,"top_logprobs":21}`, "top_logprobs"},
		{"/api/generate", `{"prompt":"x","raw":true,"options":{"temperature":-1}}`, "options.temperature"},
	} {
		o := parse(t, r.refused(c.path, c.body, http.StatusBadRequest))
		message := o.text("error", "message")
		if shapeFor(c.path) == ollamaShape {
			message = o.text("error")
		}
		if !strings.HasPrefix(message, c.field+": ") || shapeFor(c.path) == openAIShape && o.text("error", "param") != c.field {
			t.Errorf("%s %s: %v", c.path, c.body, o.v)
		}
	}
}

func TestLimits(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxBody = 1 << 20 })
	message := `{"role":"user","content":""}`
	list := func(one string, n int) string { return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]" }
	if text := r.refused("/v1/chat/completions", `{"messages":`+list(message, MaxMessages+1)+`}`, http.StatusBadRequest); !strings.Contains(text, "4096") {
		t.Error(text)
	}
	// At the limit the conversation is read, and is too long for the context.
	if text := r.refused("/v1/chat/completions", `{"messages":`+list(message, MaxMessages)+`}`, http.StatusBadRequest); !strings.Contains(text, "context_length_exceeded") {
		t.Error(text)
	}
	r.refused("/v1/completions", `{"prompt":`+list(`"x"`, MaxPrompts+1)+`}`, http.StatusBadRequest)
	r.refused("/v1/embeddings", `{"input":`+list(`"x"`, MaxInputs+1)+`}`, http.StatusBadRequest)
	var tools []string
	for i := range MaxTools + 1 {
		tools = append(tools, `{"type":"function","function":{"name":"f`+strings.Repeat("x", i)+`"}}`)
	}
	body := func(n int) string {
		return minimal["/v1/chat/completions"] + `,"tool_choice":"none","tools":[` + strings.Join(tools[:n], ",") + `]}`
	}
	r.post("/v1/chat/completions", body(MaxTools))
	if text := r.refused("/v1/chat/completions", body(MaxTools+1), http.StatusBadRequest); !strings.Contains(text, "256") {
		t.Error(text)
	}
	variables := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`,"v` + strings.Repeat("x", i) + `":1`)
		}
		return minimal["/v1/chat/completions"] + `,"chat_template_kwargs":{` + b.String()[1:] + `}}`
	}
	r.post("/v1/chat/completions", variables(MaxVariables))
	if text := r.refused("/v1/chat/completions", variables(MaxVariables+1), http.StatusBadRequest); !strings.Contains(text, "chat_template_kwargs: 257 variables") {
		t.Error(text)
	}
	small := newRig(t, func(o *Options) { o.MaxBody = int64(len(minimal["/tokenize"])) + 1 })
	small.post("/tokenize", minimal["/tokenize"]+"}")
	if text := small.refused("/tokenize", minimal["/tokenize"]+" }", http.StatusRequestEntityTooLarge); !strings.Contains(text, "request_too_large") {
		t.Error(text)
	}
}
