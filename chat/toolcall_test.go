package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/grammar"
)

// flat writes what a parser found: text as it is, calls as name(arguments).
func flat(parts []chat.CallPart) string {
	var out strings.Builder
	for _, p := range parts {
		switch p.Kind {
		case chat.CallText, chat.CallArguments:
			out.WriteString(p.Text)
		case chat.CallBegin:
			fmt.Fprintf(&out, "«%s ", p.Text)
		case chat.CallEnd:
			if p.Cut {
				out.WriteString("…")
			}
			out.WriteString("»")
		}
	}
	return out.String()
}

func TestCallParser(t *testing.T) {
	h, l, m := chat.HermesCalls, chat.LlamaCalls, chat.MistralCalls
	for _, c := range []struct {
		syntax      chat.CallSyntax
		reply, want string
	}{
		{h, "plain text\n", "plain text\n"},
		{h, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", `«f {"a": 1}»`},
		{h, "Let me see.\n\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>", `Let me see.«f {}»«g {}»`},
		{h, `<tool_call>{"arguments":{"x":"</tool_call>}"},"name":"f"}</tool_call> done`, `«f {"x":"</tool_call>}"}»done`},
		{h, `<tool_call>{"name":"f","arguments":"{\"a\":2}"}</tool_call>`, `«f {"a":2}»`},
		{h, `<tool_call>{"name":"f","arguments":{"a":1}}`, `«f {"a":1}»`},
		{h, `<tool_call>{"name":"f","arguments":{"a":1`, `<tool_call>{"name":"f","arguments":{"a":1`},
		{h, `<tool_call>no JSON</tool_call>`, `<tool_call>no JSON</tool_call>`},
		{h, `<tool_call>{"name":1}</tool_call>`, `<tool_call>{"name":1}</tool_call>`},
		{h, `<tool_call>{"name":"f","arguments":[1]}</tool_call>`, `<tool_call>{"name":"f","arguments":[1]}</tool_call>`},
		{h, `a <tool_ b <tool_call`, `a <tool_ b <tool_call`},
		{h, `<tool_call>{"name":"unknown","arguments":{}}</tool_call>`, `«unknown {}»`},
		{h, `{"name":"f","arguments":{}}`, `{"name":"f","arguments":{}}`},
		{l, `{"name": "f", "parameters": {"a": 1}}`, `«f {"a": 1}»`},
		{l, ` {"name": "f", "parameters": {}}; {"name": "g", "parameters": {}}`, `«f {}»«g {}»`},
		{l, `{"name": "unknown", "parameters": {}}`, `{"name": "unknown", "parameters": {}}`},
		{l, `{"answer": 42} is it`, `{"answer": 42} is it`},
		{l, `text {"name": "f", "parameters": {}}`, `text {"name": "f", "parameters": {}}`},
		{l, `<|python_tag|>{"name": "unknown", "parameters": {}}`, `«unknown {}»`},
		{l, `{"type": "function", "function": {"name": "f", "parameters": {"b": "}"}}}`, `«f {"b": "}"}»`},
		{m, `[TOOL_CALLS][{"name": "f", "arguments": {"a": [1, 2]}}, {"name": "g", "arguments": {}}]`, `«f {"a": [1, 2]}»«g {}»`},
		{m, `[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}`, `«f {"a": 1}»«g {}»`},
		{m, `Sure. [TOOL_CALLS] [{"name": "f"}]`, `Sure.«f {}»`},
		{m, `[TOOL_CALLS]`, `[TOOL_CALLS]`},
		{m, `[TOOL_CALLS][1]`, `[TOOL_CALLS][1]`},
		{m, `[TOOL_CALLS]` + strings.Repeat("x", 300), `[TOOL_CALLS]` + strings.Repeat("x", 300)},
	} {
		for _, size := range []int{len(c.reply), 1, 2, 3, 7} {
			if have, _ := inPieces(c.syntax, false, c.reply, size); have != c.want {
				t.Errorf("syntax %d, %q in pieces of %d:\n have %q\n want %q", c.syntax, c.reply, size, have, c.want)
			}
		}
	}
}

// inPieces parses a reply that arrives in pieces.
func inPieces(s chat.CallSyntax, constrained bool, reply string, size int) (string, []chat.CallPart) {
	p := chat.NewCallParser(s, []string{"f", "g"}, constrained)
	var parts []chat.CallPart
	for rest := reply; rest != ""; {
		n := min(max(size, 1), len(rest))
		parts = append(parts, p.Push(rest[:n])...)
		rest = rest[n:]
	}
	parts = append(parts, p.Flush()...)
	return flat(parts), parts
}

// TestConstrainedCalls: calls that follow their schema are returned as they arrive, and are cut where the reply ends.
func TestConstrainedCalls(t *testing.T) {
	h, l, m := chat.HermesCalls, chat.LlamaCalls, chat.MistralCalls
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		syntax      chat.CallSyntax
		reply, want string
	}{
		{h, "plain text\n", "plain text\n"},
		{h, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}]\\\"\"}}\n</tool_call>", `«f {"a": "}]\""}»`},
		{h, "Let me see.\n<tool_call>{ \"name\" : \"f\" , \"arguments\" :\n{ } }</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":{\"a\":[{}]}}", `Let me see.«f { }»«g {"a":[{}]}»`},
		{h, `<tool_call>{"name":"f","arguments":{"a":"` + long + `"}}</tool_call> done`, `«f {"a":"` + long + `"}»done`},
		{h, `<tool_call>{"name":"\u0066","arguments":{"a":1}}`, `«f {"a":1}»`},
		{h, `<tool_call>{"name":"f","arguments":{"a":"b`, `«f {"a":"b…»`},
		{h, `<tool_call>{"name":"f","arguments":`, `<tool_call>{"name":"f","arguments":`},
		{h, `<tool_call>{"arguments":{"a":1},"name":"f"}</tool_call>`, `«f {"a":1}»`}, // not in the order of the schema: when it is whole
		{h, `<tool_call>{"name":"f","arguments":{}x`, `«f {}»x`},
		{l, `{"name": "f", "parameters": {"a": {"b": 1}}}`, `«f {"a": {"b": 1}}»`},
		{l, `{"name": "unknown", "parameters": {"a": 1`, `{"name": "unknown", "parameters": {"a": 1`},
		{l, `<|python_tag|>{"name": "unknown", "parameters": {"a": 1`, `«unknown {"a": 1…»`},
		{m, `[TOOL_CALLS][{"name": "f", "arguments": {"a": [1, 2]}}, {"name": "g", "arguments": {}}]`, `«f {"a": [1, 2]}»«g {}»`},
		{m, "[TOOL_CALLS] [ {\"name\": \"f\", \"arguments\": {}} ,\n{\"name\": \"g\", \"arguments\": {\"a\":", `«f {}»«g {"a":…»`},
		{m, `[TOOL_CALLS][{"name": "f", "arguments": {}}, {"name"`, `«f {}», {"name"`},
		{m, `[TOOL_CALLS]f[ARGS]{"a": 1}`, `«f {"a": 1}»`},
	} {
		for _, size := range []int{len(c.reply), 1, 2, 3, 7} {
			if have, _ := inPieces(c.syntax, true, c.reply, size); have != c.want {
				t.Errorf("syntax %d, %q in pieces of %d:\n have %q\n want %q", c.syntax, c.reply, size, have, c.want)
			}
		}
	}
	reply := `<tool_call>{"name":"f","arguments":{"city":"Paris"}}`
	p := chat.NewCallParser(h, []string{"f"}, true)
	for i := range len(reply) - 1 {
		parts, at := p.Push(reply[i:i+1]), strings.Index(reply, `{"city`)
		switch {
		case i < at && len(parts) > 0, i == at && flat(parts) != "«f {", i > at && i < len(reply)-2 && flat(parts) != reply[i:i+1]:
			t.Errorf("after %q: %q", reply[:i+1], flat(parts))
		}
	}
}

func FuzzCallParser(f *testing.F) {
	f.Add(uint8(0), "a<tool_call>{\"name\":\"f\"}</tool_call>b", uint8(3), false)
	f.Add(uint8(1), "{\"name\":\"f\",\"parameters\":{}};{\"name\":\"g\"}", uint8(1), true)
	f.Add(uint8(2), "[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS][{\"name\":\"g\"}]", uint8(2), false)
	f.Add(uint8(2), "[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}},{\"name\":\"g\",\"arguments\":{\"a\":1", uint8(1), true)
	f.Fuzz(func(t *testing.T, syntax uint8, reply string, size uint8, constrained bool) {
		s := chat.CallSyntax(syntax % 3)
		want, _ := inPieces(s, constrained, reply, len(reply))
		have, parts := inPieces(s, constrained, reply, int(size))
		if have != want {
			t.Fatalf("%q in pieces of %d:\n have %q\n want %q", reply, size, have, want)
		}
		open, arguments := false, ""
		for _, part := range parts {
			switch part.Kind {
			case chat.CallText:
				if open {
					t.Fatalf("%q: text %q within a call", reply, part.Text)
				}
			case chat.CallBegin:
				if open || part.Text == "" {
					t.Fatalf("%q: call %q", reply, part.Text)
				}
				open, arguments = true, ""
			case chat.CallArguments:
				if arguments += part.Text; !open {
					t.Fatalf("%q: arguments %q without a call", reply, part.Text)
				}
			case chat.CallEnd:
				if !open || arguments == "" || arguments[0] != '{' || !constrained && (part.Cut || !json.Valid([]byte(arguments))) {
					t.Fatalf("%q: arguments %s", reply, arguments)
				}
				open = false
			}
		}
		if open {
			t.Fatalf("%q: a call has no end", reply)
		}
	})
}

// TestForcedCall: what follows the prefix is a call that the parser finds, for each template's syntax.
func TestForcedCall(t *testing.T) {
	v := openVocabulary(t, "qwen3-vocab.gguf")
	parameters := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)
	tools := []chat.CallTool{{Name: "f", Parameters: parameters}, {Name: "g"}}
	for _, c := range []struct {
		template string
		syntax   chat.CallSyntax
		key      string
		list     bool
	}{
		{"<tool_call> tools", chat.HermesCalls, "arguments", false},
		{"<|python_tag|> tools", chat.LlamaCalls, "parameters", false},
		{"[TOOL_CALLS] tools", chat.MistralCalls, "arguments", true},
		{"none", chat.HermesCalls, "arguments", false},
	} {
		format, err := chat.New(v.file, v.tokens, chat.WithTemplate("t", c.template))
		if err != nil {
			t.Fatal(err)
		}
		if format.Calls() != c.syntax || format.TakesTools() != strings.Contains(c.template, "tools") {
			t.Errorf("%s: syntax %d, tools %v", c.template, format.Calls(), format.TakesTools())
		}
		_, text, schema, err := format.ForcedCall(c.syntax, tools, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		g, err := grammar.FromJSONSchema(schema)
		if err != nil {
			t.Fatal(err)
		}
		write := func(call string) string {
			if c.list {
				return "[" + call + "]"
			}
			return call
		}
		good := write(`{"name":"f","` + c.key + `":{"city":"Paris"}}`)
		if !g.Match([]byte(good)) {
			t.Errorf("%s: %s is not allowed", c.template, good)
		}
		for _, constrained := range []bool{false, true} {
			if have, _ := inPieces(c.syntax, constrained, text+good, 1); have != `«f {"city":"Paris"}»` {
				t.Errorf("%s: %s", c.template, have)
			}
		}
		for _, bad := range []string{`{"name":"h","` + c.key + `":{}}`, `{"name":"f","` + c.key + `":{"town":"x"}}`, `{"name":"g"}`} {
			if g.Match([]byte(write(bad))) {
				t.Errorf("%s: %s is allowed", c.template, bad)
			}
		}
		prefix, _, _, err := format.ForcedCall(c.syntax, tools, 2, true)
		if err != nil || !strings.HasPrefix(v.tokens.Decode(prefix), "\n</think>\n\n"+text) {
			t.Errorf("%s: after reasoning %q, %v", c.template, v.tokens.Decode(prefix), err)
		}
	}
}
