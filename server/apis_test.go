package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/engine"
)

func TestCompletions(t *testing.T) {
	r := newRig(t)
	body := `"prompt":"Once upon a time","max_tokens":8,"temperature":0`
	o := r.post("/v1/completions", `{`+body+`}`)
	text := o.text("choices", 0, "text")
	if o.text("object") != "text_completion" || text == "" || o.text("choices", 0, "finish_reason") != "length" || o.number("usage", "prompt_tokens") != 4 {
		t.Errorf("%v", o.v)
	}
	if have := r.post("/v1/completions", `{`+body+`,"echo":true}`).text("choices", 0, "text"); have != "Once upon a time"+text {
		t.Errorf("echo: %q", have)
	}
	if have := r.post("/v1/completions", `{"prompt":"Once","max_tokens":0,"echo":true}`).text("choices", 0, "text"); have != "Once" {
		t.Errorf("echo alone: %q", have)
	}
	ids, _ := json.Marshal(r.server.model.Tokens.Encode("Once upon a time", true))
	several := r.post("/v1/completions", `{"prompt":["Two plus two is",`+string(ids)+`],"n":2,"max_tokens":8,"temperature":0,"logprobs":2}`)
	if have := several.text("choices", 2, "text"); have != text || several.at("choices", 4) != nil || several.number("choices", 3, "index") != 3 {
		t.Errorf("several prompts: %v", several.v)
	}
	if tokens, _ := several.at("choices", 2, "logprobs", "tokens").([]any); len(tokens) != 8 {
		t.Errorf("logprobs %v", several.at("choices", 2, "logprobs"))
	}
	data, _ := r.stream("/v1/completions", `{"stream":true,"echo":true,"stream_options":{"include_usage":true},`+body+`}`)
	streamed := ""
	for _, d := range data[:len(data)-1] {
		streamed += parse(t, d).text("choices", 0, "text")
	}
	if streamed != "Once upon a time"+text || data[len(data)-1] != "[DONE]" || parse(t, data[len(data)-2]).number("usage", "completion_tokens") != 8 {
		t.Errorf("streamed %q, %v", streamed, data[len(data)-2:])
	}
}

func TestEmbeddings(t *testing.T) {
	r := newRig(t)
	vector := func(o object, i int) []float64 {
		var v []float64
		list, _ := o.at("data", i, "embedding").([]any)
		for j := range list {
			v = append(v, o.number("data", i, "embedding", j))
		}
		return v
	}
	norm := func(v []float64) float64 {
		sum := 0.0
		for _, x := range v {
			sum += x * x
		}
		return math.Sqrt(sum)
	}
	o := r.post("/v1/embeddings", `{"input":["The fox is brave.","A brave fox.","7 + 5 = 12"]}`)
	a, b, c := vector(o, 0), vector(o, 1), vector(o, 2)
	if len(a) != 256 || math.Abs(norm(a)-1) > 1e-4 {
		t.Fatalf("%d numbers of length %g", len(a), norm(a))
	}
	dot := func(a, b []float64) float64 {
		sum := 0.0
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	if dot(a, b) <= dot(a, c) {
		t.Errorf("like texts are %g alike, unlike ones %g", dot(a, b), dot(a, c))
	}
	if o.number("usage", "prompt_tokens") < 6 || o.text("object") != "list" || o.text("data", 1, "object") != "embedding" || o.number("data", 1, "index") != 1 {
		t.Errorf("%v", o.at("usage"))
	}
	packed, err := base64.StdEncoding.DecodeString(r.post("/v1/embeddings", `{"input":"The fox is brave.","encoding_format":"base64"}`).text("data", 0, "embedding"))
	if err != nil || len(packed) != 1024 {
		t.Fatalf("base64 of %d bytes, %v", len(packed), err)
	}
	for i := range a {
		if x := float64(math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))); math.Abs(x-a[i]) > 1e-6 {
			t.Fatalf("number %d is %g in base64, %g in JSON", i, x, a[i])
		}
	}
	if last := vector(r.post("/v1/embeddings", `{"input":"The fox is brave.","pooling":"last"}`), 0); slices.Equal(last, a) {
		t.Error("the pooling makes no difference")
	}
	if raw := vector(r.post("/v1/embeddings", `{"input":"The fox is brave.","normalize":false,"dimensions":256}`), 0); math.Abs(norm(raw)-1) < 0.01 {
		t.Error("normalize makes no difference")
	}
}

func TestResponses(t *testing.T) {
	r := newRig(t)
	ask := `"input":"What is the capital of France?","temperature":0`
	o := r.post("/v1/responses", `{`+ask+`,"metadata":{"a":"b"}}`)
	if o.text("output", 0, "content", 0, "text") != "The capital of France is Paris." || o.text("status") != "completed" || o.text("metadata", "a") != "b" || o.text("output", 0, "status") != "completed" {
		t.Errorf("%v", o.v)
	}
	short := r.post("/v1/responses", `{`+ask+`,"max_output_tokens":2}`)
	if short.text("status") != "incomplete" || short.text("incomplete_details", "reason") != "max_output_tokens" || short.text("output", 0, "status") != "incomplete" {
		t.Errorf("%v", short.v)
	}
	data, names := r.stream("/v1/responses", `{"stream":true,`+ask+`}`)
	text := ""
	for i, d := range data {
		e := parse(t, d)
		if e.text("type") != names[i] || e.number("sequence_number") != float64(i) {
			t.Errorf("event %d: %s", i, d)
		}
		if names[i] == "response.output_text.delta" {
			text += e.text("delta")
		}
	}
	kinds := slices.Compact(slices.Clone(names))
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
	}
	if !slices.Equal(kinds, want) || text != "The capital of France is Paris." {
		t.Errorf("events %v, text %q", kinds, text)
	}
	tool := `"tools":[{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"enum":["Paris"]}},"required":["city"],"additionalProperties":false},"strict":true}]`
	call := r.post("/v1/responses", `{"input":"Weather?",`+tool+`,"tool_choice":{"type":"function","name":"weather"}}`)
	if call.text("output", 0, "type") != "function_call" || !json.Valid([]byte(call.text("output", 0, "arguments"))) || call.text("output", 0, "call_id") == "" {
		t.Errorf("%v", call.v)
	}
	_, names = r.stream("/v1/responses", `{"stream":true,"input":"Weather?",`+tool+`,"tool_choice":"required"}`)
	if !slices.Contains(names, "response.function_call_arguments.delta") || !slices.Contains(names, "response.function_call_arguments.done") {
		t.Errorf("events %v", names)
	}
	format := `"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"n":{"const":7}},"required":["n"],"additionalProperties":false}}}`
	var n struct{ N float64 }
	if o := r.post("/v1/responses", `{"input":"n",`+format+`}`); json.Unmarshal([]byte(o.text("output", 0, "content", 0, "text")), &n) != nil || n.N != 7 {
		t.Errorf("%v", o.v)
	}
	r.post("/v1/responses", `{"instructions":"Be brief.","max_output_tokens":3,"input":[{"role":"user","content":[{"type":"input_text","text":"Weather?"}]},`+
		`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},`+
		`{"type":"function_call","call_id":"c1","name":"weather","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"sunny"},`+
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Sunny.","annotations":[]}]},{"role":"user","content":"Thanks"}]}`)
	if o := r.post("/v1/responses", `{`+ask+`,"include":["message.output_text.logprobs"],"top_logprobs":2}`); o.at("output", 0, "content", 0, "logprobs", 0, "top_logprobs", 1) == nil {
		t.Errorf("%v", o.v)
	}
}

func TestMessages(t *testing.T) {
	r := newRig(t)
	ask := `"max_tokens":32,"messages":[{"role":"user","content":[{"type":"text","text":"What is the capital of France?","cache_control":{"type":"ephemeral"}}]}],"temperature":0`
	r.post("/v1/messages", `{`+ask+`}`)
	o := r.post("/v1/messages", `{`+ask+`}`)
	if o.text("content", 0, "text") != "The capital of France is Paris." || o.text("stop_reason") != "end_turn" || o.text("type") != "message" {
		t.Errorf("%v", o.v)
	}
	if o.number("usage", "input_tokens") != 1 || o.number("usage", "cache_read_input_tokens") != 14 || o.number("usage", "output_tokens") != 9 {
		t.Errorf("%v", o.at("usage"))
	}
	if n := r.post("/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"What is the capital of France?"}]}`).number("input_tokens"); n != 15 {
		t.Errorf("count_tokens: %v", n)
	}
	stopped := r.post("/v1/messages", `{`+ask+`,"stop_sequences":["France"]}`)
	if stopped.text("stop_reason") != "stop_sequence" || stopped.text("stop_sequence") != "France" || stopped.text("content", 0, "text") != "The capital of " {
		t.Errorf("%v", stopped.v)
	}
	data, names := r.stream("/v1/messages", `{"stream":true,`+ask+`}`)
	text := ""
	for i, d := range data {
		e := parse(t, d)
		if e.text("type") != names[i] {
			t.Errorf("event %s: %s", names[i], d)
		}
		text += e.text("delta", "text")
	}
	want := []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
	if kinds := slices.Compact(slices.Clone(names)); !slices.Equal(kinds, want) || text != "The capital of France is Paris." {
		t.Errorf("events %v, text %q", kinds, text)
	}
	tools := `"tools":[{"name":"weather","input_schema":{"type":"object","properties":{"city":{"enum":["Paris"]}},"required":["city"],"additionalProperties":false}}]`
	call := r.post("/v1/messages", `{"max_tokens":64,"messages":[{"role":"user","content":"Weather?"}],`+tools+`,"tool_choice":{"type":"any"}}`)
	if call.text("content", 0, "type") != "tool_use" || call.text("content", 0, "input", "city") != "Paris" || call.text("stop_reason") != "tool_use" {
		t.Errorf("%v", call.v)
	}
	data, _ = r.stream("/v1/messages", `{"stream":true,"max_tokens":64,"messages":[{"role":"user","content":"Weather?"}],`+tools+`,"tool_choice":{"type":"tool","name":"weather"}}`)
	arguments := ""
	for _, d := range data {
		arguments += parse(t, d).text("delta", "partial_json")
	}
	if !json.Valid([]byte(arguments)) {
		t.Errorf("partial_json %q", arguments)
	}
	r.post("/v1/messages", `{"max_tokens":2,"system":[{"type":"text","text":"Be brief."}],"metadata":{"user_id":"u"},"thinking":{"type":"enabled","budget_tokens":1024},"messages":[`+
		`{"role":"user","content":"Weather?"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"Let me see."},{"type":"tool_use","id":"t1","name":"weather","input":{"city":"Paris"}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"sunny"}]},{"type":"text","text":"And?"}]}]}`)
	status, _, body := r.do(http.MethodPost, "/v1/messages", `{"max_tokens":1,"messages":[]}`)
	if e := parse(t, body); status != 400 || e.text("type") != "error" || e.text("error", "type") != "invalid_request_error" {
		t.Errorf("%d %s", status, body)
	}
}

func TestOllama(t *testing.T) {
	r := newRig(t)
	ask := `"model":"tiny:latest","messages":[{"role":"user","content":"What is the capital of France?"}],"options":{"temperature":0}`
	o := r.post("/api/chat", `{"stream":false,`+ask+`}`)
	if o.text("message", "content") != "The capital of France is Paris." || o.at("done") != true || o.text("done_reason") != "stop" || o.number("eval_count") != 9 || o.number("prompt_eval_count") != 15 {
		t.Errorf("%v", o.v)
	}
	status, h, body := r.do(http.MethodPost, "/api/chat", `{`+ask+`}`)
	if status != 200 || h.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d %v", status, h)
	}
	text, lines := "", strings.Split(strings.TrimSpace(body), "\n")
	for i, l := range lines {
		e := parse(t, l)
		text += e.text("message", "content")
		if (e.at("done") == true) != (i == len(lines)-1) {
			t.Errorf("line %d: %s", i, l)
		}
	}
	if text != "The capital of France is Paris." || parse(t, lines[len(lines)-1]).number("total_duration") <= 0 {
		t.Errorf("%q, %s", text, lines[len(lines)-1])
	}
	if o := r.post("/api/generate", `{"stream":false,"prompt":"What is the capital of France?","options":{"temperature":0},"logprobs":true}`); o.text("response") != text || o.at("logprobs", 0, "token") != "The" {
		t.Errorf("%v", o.v)
	}
	if o := r.post("/api/generate", `{"stream":false,"raw":true,"prompt":"Once upon a","options":{"temperature":0,"num_predict":1}}`); o.text("response") != " time" {
		t.Errorf("%v", o.v)
	}
	var n struct{ N float64 }
	if o := r.post("/api/chat", `{"stream":false,"messages":[{"role":"user","content":"n"}],"format":{"type":"object","properties":{"N":{"const":4}},"required":["N"],"additionalProperties":false}}`); json.Unmarshal([]byte(o.text("message", "content")), &n) != nil || n.N != 4 {
		t.Errorf("%v", o.v)
	}
	for _, path := range []string{"/api/chat", "/api/generate"} {
		if o := r.post(path, `{"model":"tiny"}`); o.text("done_reason") != "load" {
			t.Errorf("%v", o.v)
		}
	}
	if _, _, body := r.do(http.MethodGet, "/api/tags", ""); parse(t, body).text("models", 0, "name") != "tiny:latest" || parse(t, body).text("models", 0, "details", "quantization_level") != "Q8_0" {
		t.Error(body)
	}
	if o := r.post("/api/show", `{"model":"tiny"}`); o.text("model_info", "general.architecture") != "qwen3" || !strings.Contains(o.text("template"), "im_start") || o.at("model_info", "tokenizer.ggml.tokens") != nil {
		t.Errorf("%v", o.v)
	}
	if o := r.post("/api/show", `{"model":"tiny","verbose":true}`); o.at("model_info", "tokenizer.ggml.tokens", 300) == nil {
		t.Error("verbose shows no tokens")
	}
	if _, _, body := r.do(http.MethodGet, "/api/version", ""); parse(t, body).text("version") == "" {
		t.Error(body)
	}
	if status, _, body := r.do(http.MethodPost, "/api/chat", `{"model":"x"}`); status != 404 || parse(t, body).text("error") == "" {
		t.Errorf("%d %s", status, body)
	}
}

func TestTokenize(t *testing.T) {
	r := newRig(t)
	text := "Hello, world! 😀<|im_end|>"
	quoted, _ := json.Marshal(text)
	o := r.post("/tokenize", `{"content":`+string(quoted)+`}`)
	ids, _ := json.Marshal(o.at("tokens"))
	if have := r.post("/detokenize", `{"tokens":`+string(ids)+`}`).text("content"); have != text {
		t.Errorf("%q", have)
	}
	plain, _ := r.post("/tokenize", `{"content":`+string(quoted)+`,"parse_special":false}`).at("tokens").([]any)
	if all, _ := o.at("tokens").([]any); len(plain) <= len(all) {
		t.Errorf("%d plain tokens, %d with control tokens", len(plain), len(all))
	}
	pieces, _ := r.post("/tokenize", `{"content":`+string(quoted)+`,"with_pieces":true}`).at("tokens").([]any)
	joined := ""
	for i := range pieces {
		p := object{t, pieces[i]}
		if s, ok := p.at("piece").(string); ok {
			joined += s
			continue
		}
		list, _ := p.at("piece").([]any)
		for j := range list {
			joined += string([]byte{byte(p.number("piece", j))})
		}
	}
	if joined != text {
		t.Errorf("pieces make %q", joined)
	}
}

func TestPlainEndpoints(t *testing.T) {
	r := newRig(t)
	get := func(path string, headers ...string) (int, http.Header, string) {
		return r.do(http.MethodGet, path, "", headers...)
	}
	if status, _, body := get("/health"); status != 200 || parse(t, body).text("status") != "ok" {
		t.Errorf("%d %s", status, body)
	}
	broken := rigOn(t, tiny(t, engine.Options{Context: 64}))
	if err := broken.server.model.Engine.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _, body := broken.do(http.MethodGet, "/health", ""); status != 503 || parse(t, body).text("status") != "failed" || parse(t, body).text("error") == "" {
		t.Errorf("an engine that takes no requests: %d %s", status, body)
	}
	if _, _, body := get("/v1/models"); parse(t, body).text("data", 0, "id") != "tiny" || parse(t, body).number("data", 0, "meta", "n_ctx") != 1024 {
		t.Error(body)
	}
	if _, _, body := get("/v1/models", "Anthropic-Version", "2023-06-01"); parse(t, body).text("data", 0, "type") != "model" {
		t.Error(body)
	}
	for path, want := range map[string]string{
		"/v1/models/tiny": `"display_name":"tiny"`, "/v1/models?limit=1": `"first_id":"tiny"`, "/v1/models?after_id=tiny&limit=1000": `"data":[]`,
		"/v1/models?before_id=tiny": `"first_id":null`,
	} {
		if status, h, body := get(path, "Anthropic-Version", "2023-06-01"); status != 200 || !strings.Contains(body, want) || h.Get("Request-Id") == "" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for path, want := range map[string]int{"/v1/models/x": 404, "/v1/models?limit=0": 400, "/v1/models?limit=1001": 400, "/v1/models?after_id=x": 400, "/v1/models?x=1": 400} {
		if status, _, body := get(path, "Anthropic-Version", "2023-06-01"); status != want || parse(t, body).text("type") != "error" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _, _ := get("/v1/models/tiny"); status != 200 {
		t.Error(status)
	}
	for path, want := range map[string]int{
		"/v1/models/other": 404, "/nothing": 404, "/page/other": 404, "/v1/models?x=1": 400, "/v1/chat/completions": 405,
		"/": 200, "/page/chat.js": 200, "/page/chat.css": 200,
	} {
		if status, _, body := get(path); status != want {
			t.Errorf("GET %s: %d %s, want %d", path, status, body, want)
		}
	}
	_, h, body := get("/")
	if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || strings.Contains(body, "http://") || strings.Contains(body, "https://") {
		t.Errorf("the page: %v", h)
	}
	if status, h, _ := r.do(http.MethodDelete, "/health", ""); status != 405 || h.Get("Allow") != "GET" {
		t.Errorf("%d %v", status, h)
	}
}
