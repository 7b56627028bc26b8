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
		if p.Call == nil {
			out.WriteString(p.Text)
			continue
		}
		fmt.Fprintf(&out, "«%s %s»", p.Call.Name, p.Call.Arguments)
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
		whole := chat.NewCallParser(c.syntax, []string{"f", "g"})
		if have := flat(append(whole.Push(c.reply), whole.Flush()...)); have != c.want {
			t.Errorf("syntax %d, %q:\n have %q\n want %q", c.syntax, c.reply, have, c.want)
		}
		for _, size := range []int{1, 2, 3, 7} {
			p := chat.NewCallParser(c.syntax, []string{"f", "g"})
			var parts []chat.CallPart
			for rest := c.reply; rest != ""; {
				n := min(size, len(rest))
				parts = append(parts, p.Push(rest[:n])...)
				rest = rest[n:]
			}
			if have := flat(append(parts, p.Flush()...)); have != c.want {
				t.Errorf("syntax %d, %q in pieces of %d:\n have %q\n want %q", c.syntax, c.reply, size, have, c.want)
			}
		}
	}
}

func FuzzCallParser(f *testing.F) {
	f.Add(uint8(0), "a<tool_call>{\"name\":\"f\"}</tool_call>b", uint8(3))
	f.Add(uint8(1), "{\"name\":\"f\",\"parameters\":{}};{\"name\":\"g\"}", uint8(1))
	f.Add(uint8(2), "[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS][{\"name\":\"g\"}]", uint8(2))
	f.Fuzz(func(t *testing.T, syntax uint8, reply string, size uint8) {
		s := chat.CallSyntax(syntax % 3)
		whole := chat.NewCallParser(s, []string{"f", "g"})
		want := flat(append(whole.Push(reply), whole.Flush()...))
		p := chat.NewCallParser(s, []string{"f", "g"})
		var parts []chat.CallPart
		for rest := reply; rest != ""; {
			n := min(max(1, int(size)), len(rest))
			parts = append(parts, p.Push(rest[:n])...)
			rest = rest[n:]
		}
		if have := flat(append(parts, p.Flush()...)); have != want {
			t.Fatalf("%q in pieces of %d:\n have %q\n want %q", reply, size, have, want)
		}
		for _, part := range parts {
			if part.Call != nil && (part.Call.Name == "" || !json.Valid(part.Call.Arguments) || part.Call.Arguments[0] != '{') {
				t.Fatalf("%q: call %q %s", reply, part.Call.Name, part.Call.Arguments)
			}
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
		p := chat.NewCallParser(c.syntax, []string{"f", "g"})
		if have := flat(append(p.Push(text+good), p.Flush()...)); have != `«f {"city":"Paris"}»` {
			t.Errorf("%s: %s", c.template, have)
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
