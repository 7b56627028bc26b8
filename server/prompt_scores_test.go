package server

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestEchoLogprobs: an echoed prompt has the log probabilities that its tokens had when they were generated, to the bit;
// its first token has none. Streams, several replies and texts of prompts give the same.
func TestEchoLogprobs(t *testing.T) {
	r := newRig(t)
	prompt := "<|im_start|>user\nÜber what? Once upon"
	head := r.server.model.Format.Raw(prompt).Tokens
	list := func(ids []int32) string { b, _ := json.Marshal(ids); return string(b) }
	made := r.post("/v1/completions", `{"prompt":`+list(head)+`,"max_tokens":12,"temperature":0,"logprobs":3}`)
	text := made.text("choices", 0, "text")
	all := append(head, r.server.model.Tokens.Encode(text, false)...)
	if have := r.server.model.Tokens.Decode(all[len(head):]); have != text {
		t.Fatalf("%q is encoded as %q", text, have)
	}
	echoed := r.post("/v1/completions", `{"prompt":`+list(all)+`,"max_tokens":0,"echo":true,"logprobs":3}`)
	column := func(o object, choice int, key string) []any {
		l, _ := o.at("choices", choice, "logprobs", key).([]any)
		return l
	}
	for _, key := range []string{"tokens", "token_logprobs", "top_logprobs"} {
		want, have := column(made, 0, key), column(echoed, 0, key)
		if len(want) != 12 || len(have) != len(all) || !reflect.DeepEqual(have[len(head):], want) {
			t.Errorf("%s: generated %v, echoed %v", key, want, have)
		}
	}
	if column(echoed, 0, "token_logprobs")[0] != nil || column(echoed, 0, "top_logprobs")[0] != nil || column(echoed, 0, "token_logprobs")[1] == nil {
		t.Errorf("%v", echoed.v)
	}
	if echoed.number("usage", "completion_tokens") != 0 || echoed.text("choices", 0, "finish_reason") != "length" {
		t.Errorf("%v", echoed.at("usage"))
	}
	body := `"max_tokens":5,"temperature":0,"echo":true,"logprobs":1,"n":2,"seed":1`
	quoted, _ := json.Marshal(prompt)
	whole := r.post("/v1/completions", `{"prompt":`+string(quoted)+`,`+body+`}`)
	for i := range 2 {
		tokens, offsets := column(whole, i, "tokens"), column(whole, i, "text_offset")
		text, spelled := []rune(whole.text("choices", i, "text")), ""
		for j, token := range tokens {
			at := int(object{t, offsets[j]}.number())
			if part := token.(string); !strings.Contains(part, "\ufffd") && !strings.HasPrefix(string(text[at:]), part) {
				t.Errorf("choice %d: token %d %q does not stand at %d of %q", i, j, part, at, string(text))
			}
			spelled += token.(string)
		}
		if len(tokens) != len(head)+5 || !strings.HasPrefix(string(text), prompt) {
			t.Errorf("choice %d: %d tokens %q, text %q", i, len(tokens), spelled, string(text))
		}
	}
	data, _ := r.stream("/v1/completions", `{"stream":true,"prompt":`+string(quoted)+`,`+body+`}`)
	texts, columns := [2]string{}, [2]map[string][]any{{}, {}}
	for _, d := range data[:len(data)-1] {
		o := parse(t, d)
		i := int(o.number("choices", 0, "index"))
		texts[i] += o.text("choices", 0, "text")
		for _, key := range []string{"tokens", "token_logprobs", "top_logprobs", "text_offset"} {
			columns[i][key] = append(columns[i][key], column(o, 0, key)...)
		}
	}
	for i := range 2 {
		for key, have := range columns[i] {
			if want := column(whole, i, key); !reflect.DeepEqual(have, want) {
				t.Errorf("choice %d, %s: streamed %v, whole %v", i, key, have, want)
			}
		}
		if texts[i] != whole.text("choices", i, "text") {
			t.Errorf("choice %d: streamed %q", i, texts[i])
		}
	}
}
