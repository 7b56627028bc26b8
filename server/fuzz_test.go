package server

import (
	"errors"
	"testing"
)

// readers read a body as far as it needs no model.
var readers = []func(body []byte) error{
	func(b []byte) error {
		var q chatRequest
		if err := chatFields.decode(b, &q); err != nil {
			return err
		}
		return q.check()
	},
	func(b []byte) error {
		var q completionRequest
		return completionFields.decode(b, &q)
	},
	func(b []byte) error {
		var q embeddingRequest
		return embeddingFields.decode(b, &q)
	},
	func(b []byte) error {
		var q responsesRequest
		if err := responsesFields.decode(b, &q); err != nil {
			return err
		}
		return q.read()
	},
	func(b []byte) error {
		var q messagesRequest
		if err := messagesFields.decode(b, &q); err != nil {
			return err
		}
		return q.read()
	},
	func(b []byte) error {
		var q ollamaRequest
		return ollamaChatFields.decode(b, &q)
	},
	func(b []byte) error {
		var q ollamaRequest
		return ollamaGenerateFields.decode(b, &q)
	},
}

// FuzzRequests: whatever a body holds, it is read or refused with a status and a message.
func FuzzRequests(f *testing.F) {
	for _, body := range minimal {
		for i := range readers {
			f.Add(uint8(i), []byte(body+"}"))
		}
	}
	for i, body := range []string{
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"y"}],` +
			`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"},"strict":true}}],"tool_choice":{"type":"function","function":{"name":"f"}},"logit_bias":[[1,false],["x",2]],"stop":["a","b"],"response_format":{"type":"json_object"}}`,
		`{"prompt":[[1,2],"x"],"logit_bias":{"1":2},"grammar":"root ::= \"x\"","n":2}`,
		`{"input":[[1]],"dimensions":3}`,
		`{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"reasoning","summary":[],"content":[]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"y"}],"text":{"format":{"type":"json_schema","schema":{}}},"reasoning":{"effort":"low"}}`,
		`{"max_tokens":1,"system":[{"type":"text","text":"s"}],"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x"},{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"y","is_error":true}]}],"thinking":{"type":"enabled","budget_tokens":5}}`,
		`{"messages":[{"role":"user","content":"x","tool_calls":[{"function":{"name":"f","arguments":{}}}]}],"options":{"num_ctx":5,"stop":"x","num_predict":-1},"format":{},"think":"low","keep_alive":"5m"}`,
		`{"prompt":"x","format":"json","raw":true,"keep_alive":-1}`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		err := readers[int(which)%len(readers)](body)
		if err == nil {
			return
		}
		var e *apiError
		if !errors.As(err, &e) || e.status < 400 || e.status > 499 || e.message == "" {
			t.Fatalf("%q: %v", body, err)
		}
		for _, s := range []shape{openAIShape, anthropicShape, ollamaShape} {
			if _, err := encode(s.body(e)); err != nil {
				t.Fatalf("%q: %v", body, err)
			}
		}
	})
}
