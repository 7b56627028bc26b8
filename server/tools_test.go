package server

import (
	"encoding/json"
	"strings"
	"testing"
)

// place is a tool whose arguments take several tokens.
const place = `{"type":"object","properties":{"city":{"enum":["Paris, the capital of France, where the fox lives"]}},"required":["city"],"additionalProperties":false}`

// TestCallsArriveInPieces: where the reply is constrained to a call, its arguments are streamed as they are generated, in
// every API that has a form for that. The pieces are what a whole answer has.
func TestCallsArriveInPieces(t *testing.T) {
	r := newRig(t)
	ask := `"temperature":0,"stream":true,"messages":[{"role":"user","content":"Where?"}],`
	const want = `{"city":"Paris, the capital of France, where the fox lives"}`
	clean := func(s string) string { return strings.ReplaceAll(s, `": "`, `":"`) }
	data, _ := r.stream("/v1/chat/completions", `{`+ask+`"tools":[{"type":"function","function":{"name":"place","parameters":`+place+`}}],"tool_choice":"required"}`)
	arguments, pieces := "", 0
	for i, d := range data[:len(data)-1] {
		o := parse(t, d)
		call, ok := o.at("choices", 0, "delta", "tool_calls", 0).(map[string]any)
		if !ok {
			continue
		}
		if first := arguments == "" && pieces == 0; first != (call["id"] != nil) || first != (call["type"] != nil) || first != (o.at("choices", 0, "delta", "tool_calls", 0, "function", "name") != nil) || o.number("choices", 0, "delta", "tool_calls", 0, "index") != 0 {
			t.Errorf("chunk %d: %s", i, d)
		}
		pieces++
		arguments += o.text("choices", 0, "delta", "tool_calls", 0, "function", "arguments")
	}
	if clean(arguments) != want || pieces < 6 {
		t.Errorf("%d pieces: %s", pieces, arguments)
	}
	data, names := r.stream("/v1/messages", `{`+ask+`"max_tokens":100,"tools":[{"name":"place","input_schema":`+place+`}],"tool_choice":{"type":"any"}}`)
	arguments, pieces = "", 0
	for i, d := range data {
		if o := parse(t, d); names[i] == "content_block_delta" {
			arguments += o.text("delta", "partial_json")
			pieces++
		} else if names[i] == "content_block_start" && o.at("content_block", "input") == nil {
			t.Errorf("%s", d)
		}
	}
	if clean(arguments) != want || pieces < 5 {
		t.Errorf("%d pieces: %s", pieces, arguments)
	}
	data, names = r.stream("/v1/responses", `{"temperature":0,"stream":true,"input":"Where?","tools":[{"type":"function","name":"place","parameters":`+place+`}],"tool_choice":"required"}`)
	arguments, pieces = "", 0
	for i, d := range data {
		switch o := parse(t, d); names[i] {
		case "response.output_item.added":
			if o.text("item", "arguments") != "" || o.text("item", "status") != "in_progress" {
				t.Errorf("%s", d)
			}
		case "response.function_call_arguments.delta":
			arguments += o.text("delta")
			pieces++
		case "response.function_call_arguments.done":
			if o.text("arguments") != arguments {
				t.Errorf("%s", d)
			}
		case "response.output_item.done":
			if o.text("item", "arguments") != arguments || o.text("item", "status") != "completed" {
				t.Errorf("%s", d)
			}
		}
	}
	if clean(arguments) != want || pieces < 5 {
		t.Errorf("%d pieces: %s", pieces, arguments)
	}
}

// TestCutCall: a call at which the limit of tokens strikes. Forms that have arguments as text give what there is, the
// others leave the call out; nowhere does the reply claim to be a call.
func TestCutCall(t *testing.T) {
	r := newRig(t)
	messages := `"temperature":0,"messages":[{"role":"user","content":"Where?"}],`
	tools := `"tools":[{"type":"function","function":{"name":"place","parameters":` + place + `}}]`
	cut := func(arguments string) bool {
		return strings.HasPrefix(arguments, `{"city":`) && !json.Valid([]byte(arguments))
	}
	for n := 10; ; n++ { // tokens until the arguments have begun
		o := r.post("/v1/chat/completions", `{`+messages+`"max_tokens":`+itoa(n)+`,`+tools+`,"tool_choice":"required"}`)
		if arguments := o.text("choices", 0, "message", "tool_calls", 0, "function", "arguments"); strings.Contains(arguments, "Paris") {
			if !cut(arguments) || o.text("choices", 0, "finish_reason") != "length" {
				t.Errorf("%v", o.v)
			}
			m := r.post("/v1/messages", `{`+messages+`"max_tokens":`+itoa(n)+`,"tools":[{"name":"place","input_schema":`+place+`}],"tool_choice":{"type":"any"}}`)
			if m.text("stop_reason") != "max_tokens" || m.at("content", 0) != nil {
				t.Errorf("%v", m.v)
			}
			s := r.post("/v1/responses", `{"temperature":0,"input":"Where?","max_output_tokens":`+itoa(n)+`,"tools":[{"type":"function","name":"place","parameters":`+place+`}],"tool_choice":"required"}`)
			if s.text("status") != "incomplete" || s.text("output", 0, "status") != "incomplete" || !cut(s.text("output", 0, "arguments")) {
				t.Errorf("%v", s.v)
			}
			_, names := r.stream("/v1/responses", `{"stream":true,"temperature":0,"input":"Where?","max_output_tokens":`+itoa(n)+`,"tools":[{"type":"function","name":"place","parameters":`+place+`}],"tool_choice":"required"}`)
			if last := names[len(names)-2:]; last[0] != "response.output_item.done" || last[1] != "response.incomplete" || strings.Contains(strings.Join(names, " "), "arguments.done") {
				t.Errorf("%v", names)
			}
			return
		} else if n > 60 {
			t.Fatalf("no arguments: %v", o.v)
		}
	}
}
