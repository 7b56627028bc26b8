package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/sample"
)

// A tool is a function that a request offers.
type tool struct {
	chat.CallTool
	definition json.RawMessage // as the template sees it, in OpenAI's shape
	strict     bool            // arguments must follow the schema
}

// A choice says whether tools are called.
type choice uint8

const (
	choiceAuto     choice = iota
	choiceNone            // no tool is called
	choiceRequired        // some tool is called, or the one that is named
)

// tools are what a request says about tools.
type tools struct {
	list     []tool
	choice   choice
	name     string // with choiceRequired: the tool to call; empty for any
	parallel *bool  // several calls in one reply; nil for yes
}

// function is the definition of a function in OpenAI's shape.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// openAI reads the tools of chat completions.
func (t *tools) openAI(raw json.RawMessage) error {
	var list []struct {
		Type     string    `json:"type"`
		Function *function `json:"function"`
	}
	if err := strict(raw, &list); err != nil {
		return err
	}
	for i, d := range list {
		if d.Type != "function" || d.Function == nil {
			return fmt.Errorf("tool %d: type %q is not supported, only function is", i, clip(d.Type))
		}
		if err := t.add(i, *d.Function); err != nil {
			return err
		}
	}
	return nil
}

// add checks a function and keeps it.
func (t *tools) add(i int, f function) error {
	if len(t.list) >= MaxTools {
		return fmt.Errorf("more than %d tools", MaxTools)
	}
	if f.Name == "" || len(f.Name) > maxName {
		return fmt.Errorf("tool %d: the name has %d bytes, must have 1 to %d", i, len(f.Name), maxName)
	}
	for _, have := range t.list {
		if have.Name == f.Name {
			return fmt.Errorf("tool %d: there is another %q", i, f.Name)
		}
	}
	if p := f.Parameters; len(p) > 0 && string(p) != "null" && p[0] != '{' {
		return fmt.Errorf("tool %d: parameters are no JSON Schema of an object", i)
	}
	one := tool{CallTool: chat.CallTool{Name: f.Name, Parameters: f.Parameters}, strict: f.Strict != nil && *f.Strict}
	f.Strict = nil // templates print what they get
	if len(f.Parameters) == 0 || string(f.Parameters) == "null" {
		f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	definition, err := encode(map[string]any{"type": "function", "function": f})
	if err != nil {
		return err
	}
	one.definition = definition
	t.list = append(t.list, one)
	return nil
}

// openAIChoice reads tool_choice of chat completions and responses: a word or {"type": "function", ...}.
func (t *tools) openAIChoice(raw json.RawMessage) error {
	if raw[0] == '"' {
		var word string
		if err := strict(raw, &word); err != nil {
			return err
		}
		switch word {
		case "none":
			t.choice = choiceNone
		case "auto":
			t.choice = choiceAuto
		case "required":
			t.choice = choiceRequired
		default:
			return fmt.Errorf("%q is not one of none, auto, required", clip(word))
		}
		return nil
	}
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := strict(raw, &named); err != nil {
		return err
	}
	if named.Type != "function" {
		return fmt.Errorf("type %q is not supported, only function is", clip(named.Type))
	}
	if t.choice, t.name = choiceRequired, named.Function.Name; t.name == "" {
		t.name = named.Name
	}
	if t.name == "" {
		return fmt.Errorf("the function has no name")
	}
	return nil
}

// A toolPlan is how a request's tools are offered and found.
type toolPlan struct {
	syntax      chat.CallSyntax
	definitions []json.RawMessage // for the template
	offered     []tool            // that may be called
	forced      bool
	most        int // calls
}

// maxCalls bounds the calls of a reply that must have some.
const maxCalls = 16

// plan decides which tools a request offers, and writes the ids of earlier calls in the template's form.
func (s *Server) plan(c *conversation) (*toolPlan, error) {
	t := &c.tools
	p := &toolPlan{syntax: s.model.Format.Calls(), forced: t.choice == choiceRequired, most: maxCalls}
	if t.parallel != nil && !*t.parallel {
		p.most = 1
	}
	for i := range c.messages {
		m := &c.messages[i]
		m.ToolCallID = callID(p.syntax, m.ToolCallID)
		for j := range m.ToolCalls {
			m.ToolCalls[j].ID = callID(p.syntax, m.ToolCalls[j].ID)
		}
	}
	if t.choice == choiceNone {
		return p, nil
	}
	for _, one := range t.list {
		p.definitions = append(p.definitions, one.definition)
		if t.name == "" || t.name == one.Name {
			p.offered = append(p.offered, one)
		}
	}
	if p.forced && len(p.offered) == 0 {
		if t.name != "" {
			return nil, badField("tool_choice", "there is no tool %q", clip(t.name))
		}
		return nil, badField("tool_choice", "a call is required, but there are no tools")
	}
	if len(p.definitions) > 0 && !s.model.Format.TakesTools() {
		c.messages = teach(c.messages, p.definitions)
	}
	return p, nil
}

// Around the definitions, where the template has no place for tools.
const (
	teachBefore = "You may call functions. These are their signatures:\n<tools>\n"
	teachAfter  = "</tools>\nTo call one, answer with its name and arguments as a JSON object within tags:\n" +
		"<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"
)

// teach tells a model about tools whose template does not: in the system message, or before the first message of the user.
func teach(messages []chat.Message, definitions []json.RawMessage) []chat.Message {
	var text strings.Builder
	text.WriteString(teachBefore)
	for _, d := range definitions {
		text.Write(d)
		text.WriteByte('\n')
	}
	text.WriteString(teachAfter)
	all := slices.Clone(messages)
	for i, m := range all {
		switch m.Role {
		case "system":
			all[i].Content = chat.Text(m.Content.String() + "\n\n" + text.String())
			return all
		case "user":
			all[i].Content = chat.Text(text.String() + "\n\n" + m.Content.String())
			return all
		}
	}
	return append([]chat.Message{chat.System(text.String())}, all...)
}

// callsOf completes a task by its tools: how calls are found in the reply, and what constrains them.
func (s *Server) callsOf(t *task, p *toolPlan) error {
	if len(p.offered) == 0 {
		return nil
	}
	if t.mask != nil {
		return badField("tools", "exclude a constraint on the reply, such as response_format, unless tool_choice is none")
	}
	t.calls = &callPlan{syntax: p.syntax, single: p.most == 1}
	strict := false
	var callable []chat.CallTool
	for _, one := range p.offered {
		t.calls.names = append(t.calls.names, one.Name)
		callable = append(callable, one.CallTool)
		if !p.forced && !one.strict {
			callable[len(callable)-1].Parameters = nil
		}
		strict = strict || one.strict
	}
	if !p.forced && !strict {
		return nil
	}
	prefix, text, schema, err := s.model.Format.ForcedCall(p.syntax, callable, p.most, t.thinking)
	if err != nil {
		return err
	}
	matcher, err := s.masks.get(s.model.Tokens, schemaSource+string(schema))
	if err != nil {
		return badField("tools", "the schema of the parameters: %v", err)
	}
	if p.forced {
		t.prompt = append(t.prompt[:len(t.prompt):len(t.prompt)], prefix...)
		t.calls.prefix, t.calls.constrained, t.reasoning = text, true, false
		t.mask = func() sample.Mask { return matcher.Start() }
		return nil
	}
	t.calls.constrained = true
	mark := p.syntax.Mark()
	t.mask = func() sample.Mask { return newLazyMask(s.model.Tokens, mark, matcher, true) }
	return nil
}
