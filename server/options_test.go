package server

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const weather = `"tools":[{"type":"function","function":{"name":"weather","description":"Tell the weather","parameters":{"type":"object",` +
	`"properties":{"city":{"enum":["Paris","Rome"]}},"required":["city"],"additionalProperties":false}}},` +
	`{"type":"function","function":{"name":"clock","parameters":{"type":"object","properties":{},"additionalProperties":false}}}]`

func TestChatOptions(t *testing.T) {
	r := newRig(t)
	content := func(more string) string {
		return r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"Tell me a story about a brave fox."}],"max_tokens":24,`+more+`}`).text("choices", 0, "message", "content")
	}
	if a, b, c := content(`"seed":5`), content(`"seed":5`), content(`"seed":6`); a != b || a == c {
		t.Errorf("seeds: %q %q %q", a, b, c)
	}
	if a, b := content(`"temperature":1.5,"top_k":0`), content(`"temperature":1.5,"top_k":0`); a == b {
		t.Errorf("without a seed two replies are %q", a)
	}
	if a, b := content(`"top_k":1`), content(`"temperature":0`); a != b {
		t.Errorf("top_k 1: %q, greedy: %q", a, b)
	}
	story := content(`"temperature":0`)
	if want, _, _ := strings.Cut(story, " a "); content(`"temperature":0,"stop":[" a "]`) != want {
		t.Errorf("stop: %q", content(`"temperature":0,"stop":[" a "]`))
	}
	first := r.server.model.Tokens.Encode(story, false)[0]
	id, _ := json.Marshal(first)
	for _, bias := range []string{`{"` + string(id) + `":-100}`, `[[` + string(id) + `,false]]`, `[["` + r.server.model.Tokens.Decode([]int32{first}) + `",false]]`} {
		if have := content(`"temperature":0,"logit_bias":` + bias); strings.HasPrefix(have, r.server.model.Tokens.Decode([]int32{first})) {
			t.Errorf("logit_bias %s: %q", bias, have)
		}
	}
	if have := content(`"temperature":0,"grammar":"root ::= \"yes\" | \"no\""`); have != "yes" && have != "no" {
		t.Errorf("grammar: %q", have)
	}
	schema := `"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"n":{"type":"integer","minimum":3,"maximum":9}},"required":["n"],"additionalProperties":false}}}`
	var n struct{ N float64 }
	if have := content(schema); json.Unmarshal([]byte(have), &n) != nil || n.N < 3 || n.N > 9 {
		t.Errorf("response_format: %q", have)
	}
	if have := content(`"ignore_eos":true,"temperature":0`); len(have) < len(story) {
		t.Errorf("ignore_eos: %q", have)
	}
	if have := r.post("/v1/chat/completions", `{`+capital+`,"max_completion_tokens":2}`); have.text("choices", 0, "finish_reason") != "length" || have.number("usage", "completion_tokens") != 2 {
		t.Errorf("max_completion_tokens: %v", have.v)
	}
	// A reply that is begun goes on.
	begun := r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"What is the capital of France?"},{"role":"assistant","content":"The capital of"}],"temperature":0}`)
	if have := begun.text("choices", 0, "message", "content"); have != " France is Paris." {
		t.Errorf("continued: %q", have)
	}
}

func TestChatChoices(t *testing.T) {
	r := newRig(t)
	body := `"messages":[{"role":"user","content":"Tell me a story."}],"n":4,"seed":3,"temperature":1.2,"max_tokens":16`
	o := r.post("/v1/chat/completions", `{`+body+`}`)
	texts := map[string]bool{}
	for i := range 4 {
		texts[o.text("choices", i, "message", "content")] = true
		if o.number("choices", i, "index") != float64(i) {
			t.Errorf("choice %d has index %v", i, o.at("choices", i, "index"))
		}
	}
	if len(texts) < 2 || o.number("usage", "completion_tokens") > 64 {
		t.Errorf("%v", o.v)
	}
	data, _ := r.stream("/v1/chat/completions", `{"stream":true,`+body+`}`)
	streamed := make([]string, 4)
	for _, d := range data[:len(data)-1] {
		c := parse(t, d)
		streamed[int(c.number("choices", 0, "index"))] += c.text("choices", 0, "delta", "content")
	}
	for i, s := range streamed {
		if s != o.text("choices", i, "message", "content") {
			t.Errorf("choice %d streams %q, whole it is %q", i, s, o.text("choices", i, "message", "content"))
		}
	}
}

func TestChatLogprobs(t *testing.T) {
	r := newRig(t)
	o := r.post("/v1/chat/completions", `{`+capital+`,"logprobs":true,"top_logprobs":3}`)
	content, _ := o.at("choices", 0, "logprobs", "content").([]any)
	text := ""
	for i := range content {
		token := object{t, content[i]}
		text += token.text("token")
		top, _ := token.at("top_logprobs").([]any)
		if len(top) != 3 || token.number("logprob") > 0 || (object{t, top[0]}).number("logprob") < (object{t, top[2]}).number("logprob") {
			t.Errorf("token %v", token.v)
		}
		if list, ok := token.at("bytes").([]any); !ok || len(list) != len(token.text("token")) {
			t.Errorf("bytes of %v", token.v)
		}
	}
	if want := o.text("choices", 0, "message", "content"); text != want || text == "" {
		t.Errorf("the tokens make %q, the content is %q", text, want)
	}
	data, _ := r.stream("/v1/chat/completions", `{"stream":true,`+capital+`,"logprobs":true}`)
	streamed := ""
	for _, d := range data[:len(data)-1] {
		list, _ := parse(t, d).at("choices", 0, "logprobs", "content").([]any)
		for i := range list {
			streamed += (object{t, list[i]}).text("token")
		}
	}
	if streamed != text {
		t.Errorf("streamed tokens make %q", streamed)
	}
}

func TestChatTools(t *testing.T) {
	r := newRig(t)
	ask := `"messages":[{"role":"user","content":"What is the weather in Paris?"}],` + weather
	for _, choice := range []string{`"required"`, `{"type":"function","function":{"name":"weather"}}`} {
		o := r.post("/v1/chat/completions", `{`+ask+`,"tool_choice":`+choice+`}`)
		name, arguments := o.text("choices", 0, "message", "tool_calls", 0, "function", "name"), o.text("choices", 0, "message", "tool_calls", 0, "function", "arguments")
		var a struct{ City string }
		if err := json.Unmarshal([]byte(arguments), &a); err != nil {
			t.Fatalf("%v: %v", o.v, err)
		}
		if o.text("choices", 0, "finish_reason") != "tool_calls" || name == "weather" && a.City != "Paris" && a.City != "Rome" || choice[0] == '{' && name != "weather" {
			t.Errorf("tool_choice %s: %v", choice, o.v)
		}
		if o.at("choices", 0, "message", "content") != nil || !strings.HasPrefix(o.text("choices", 0, "message", "tool_calls", 0, "id"), "call_") {
			t.Errorf("tool_choice %s: %v", choice, o.v)
		}
	}
	data, _ := r.stream("/v1/chat/completions", `{"stream":true,`+ask+`,"tool_choice":"required"}`)
	name, arguments, finish := "", "", ""
	for _, d := range data[:len(data)-1] {
		o := parse(t, d)
		if o.at("choices", 0, "delta", "tool_calls") != nil && o.number("choices", 0, "delta", "tool_calls", 0, "index") != 0 {
			t.Errorf("index in %s", d)
		}
		name += o.text("choices", 0, "delta", "tool_calls", 0, "function", "name")
		arguments += o.text("choices", 0, "delta", "tool_calls", 0, "function", "arguments")
		finish += o.text("choices", 0, "finish_reason")
	}
	if name == "" || !json.Valid([]byte(arguments)) || finish != "tool_calls" {
		t.Errorf("streamed %q %q %q", name, arguments, finish)
	}
	// The calls and results of a conversation reach the template; with tool_choice none, tools do not.
	turns := `{"messages":[{"role":"user","content":"Weather?"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]},` +
		`{"role":"tool","tool_call_id":"1","content":"sunny"}],` + weather
	if prompt := r.post("/apply-template", turns+`}`).text("prompt"); !strings.Contains(prompt, "sunny") || !strings.Contains(prompt, `"name":"weather"`) {
		t.Errorf("prompt %q", prompt)
	}
	if prompt := r.post("/apply-template", turns+`,"tool_choice":"none"}`).text("prompt"); strings.Contains(prompt, "Tell the weather") {
		t.Errorf("prompt %q", prompt)
	}
}

// TestPromptTooLong: refused in each API's shape, never cut. The field is that of the API; what is needed and what there
// is are told.
func TestPromptTooLong(t *testing.T) {
	r := newRig(t)
	long := `"` + strings.Repeat("word and ", 1500) + `"`
	for _, c := range []struct{ path, field, body string }{
		{"/v1/chat/completions", "messages", `{"messages":[{"role":"user","content":` + long + `}]}`},
		{"/v1/completions", "prompt", `{"prompt":` + long + `}`},
		{"/v1/completions", "prompt", `{"prompt":["a",` + long + `]}`},
		{"/v1/responses", "input", `{"input":` + long + `}`},
		{"/v1/embeddings", "input", `{"input":["a",` + long + `]}`},
		{"/v1/messages", "messages", `{"max_tokens":5,"messages":[{"role":"user","content":` + long + `}]}`},
		{"/api/chat", "messages", `{"messages":[{"role":"user","content":` + long + `}]}`},
		{"/api/generate", "prompt", `{"prompt":` + long + `}`},
		{"/api/generate", "prompt", `{"raw":true,"prompt":` + long + `}`},
	} {
		text := r.refused(c.path, c.body, http.StatusBadRequest)
		said := regexp.MustCompile(c.field + `: the prompt is too long: (\d+) tokens and [01] of a reply are needed, 1024 are available`).FindStringSubmatch(text)
		if said == nil || len(said[1]) != 4 {
			t.Errorf("%s: %s", c.path, text)
		}
		if o := parse(t, text); shapeFor(c.path) == openAIShape && (o.text("error", "code") != "context_length_exceeded" || o.text("error", "param") != c.field) {
			t.Errorf("%s: %s", c.path, text)
		}
	}
	ids := func(n int) string { return `{"prompt":[` + strings.Repeat("5,", n-1) + `5],"max_tokens":` }
	r.post("/v1/completions", ids(1023)+"1}")
	r.refused("/v1/completions", ids(1024)+"1}", http.StatusBadRequest)
	r.post("/v1/completions", ids(1024)+`0,"echo":true}`)
	r.refused("/v1/completions", ids(1025)+`0,"echo":true}`, http.StatusBadRequest)
	if n := r.server.model.Engine.Counters().Running; n != 0 {
		t.Errorf("%d requests run", n)
	}
	r.refused("/api/chat", `{"messages":[{"role":"user","content":"Tell me a story about a brave fox."}],"options":{"num_ctx":5}}`, http.StatusBadRequest)
	o := r.post("/api/generate", `{"stream":false,"prompt":"Tell me a story about a brave fox.","options":{"num_ctx":30}}`)
	if o.number("prompt_eval_count")+o.number("eval_count") != 30 || o.text("done_reason") != "length" {
		t.Errorf("num_ctx: %v", o.v)
	}
}
