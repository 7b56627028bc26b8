package server

import (
	"container/list"
	"encoding/json"
	"strings"
	"sync"

	"github.com/minfer-go/minfer/grammar"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// masks compiles grammars and schemas, binds them to the vocabulary, and keeps the most recent: requests of one client
// tend to have the same.
type masks struct {
	once  sync.Once
	vocab *grammar.Vocab

	mu    sync.Mutex
	order list.List // of *compiled, the most recently used first
	byKey map[string]*list.Element
}

type compiled struct {
	key     string
	matcher *grammar.Matcher
}

// Kinds of source, the first byte of a key.
const (
	gbnfSource   = "g"
	schemaSource = "s"
)

// get compiles a source that begins with its kind.
func (m *masks) get(t *tokenizer.Tokenizer, key string) (*grammar.Matcher, error) {
	m.mu.Lock()
	if at, ok := m.byKey[key]; ok {
		m.order.MoveToFront(at)
		found := at.Value.(*compiled).matcher
		m.mu.Unlock()
		return found, nil
	}
	m.mu.Unlock()
	var g *grammar.Grammar
	var err error
	if text, ok := strings.CutPrefix(key, gbnfSource); ok {
		g, err = grammar.ParseGBNF(text)
	} else {
		g, err = grammar.FromJSONSchema([]byte(key[len(schemaSource):]))
	}
	if err != nil {
		return nil, err
	}
	m.once.Do(func() {
		pieces := make([][]byte, t.VocabSize())
		for id := range pieces {
			pieces[id] = t.Piece(int32(id))
		}
		m.vocab = grammar.NewVocab(pieces, t.IsEOG)
	})
	made := &compiled{key, g.Bind(m.vocab)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = map[string]*list.Element{}
	}
	m.byKey[key] = m.order.PushFront(made)
	for m.order.Len() > MaxCompileCache {
		last := m.order.Back()
		delete(m.byKey, last.Value.(*compiled).key)
		m.order.Remove(last)
	}
	return made.matcher, nil
}

// A constraint is a source of a mask; empty for none.
type constraint struct {
	key   string
	param string // the field that asks for it
}

// grammarField takes GBNF text.
func (c *constraint) gbnf(raw json.RawMessage) error {
	var text string
	if err := strict(raw, &text); err != nil {
		return err
	}
	return c.set("grammar", gbnfSource+text)
}

func (c *constraint) schema(param string, raw json.RawMessage) error {
	return c.set(param, schemaSource+string(raw))
}

// set keeps the one constraint that a request may have.
func (c *constraint) set(param, key string) error {
	if c.key != "" {
		return badField(param, "excludes %s: a reply has one constraint", c.param)
	}
	c.key, c.param = key, param
	return nil
}

// anyObject is the schema of JSON mode.
const anyObject = `{"type":"object"}`

// responseFormat reads OpenAI's response_format: text, json_object (with llama.cpp's schema) or json_schema.
func (c *constraint) responseFormat(param string, raw json.RawMessage) error {
	var f struct {
		Type       string          `json:"type"`
		Schema     json.RawMessage `json:"schema"`
		JSONSchema *struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"schema"`
			Strict      *bool           `json:"strict"`
		} `json:"json_schema"`
	}
	if err := strict(raw, &f); err != nil {
		return err
	}
	switch f.Type {
	case "text":
		return nil
	case "json_object":
		if len(f.Schema) > 0 {
			return c.schema(param, f.Schema)
		}
		return c.schema(param, []byte(anyObject))
	case "json_schema":
		if f.JSONSchema == nil || len(f.JSONSchema.Schema) == 0 {
			return badField(param, "json_schema.schema is missing")
		}
		return c.schema(param, f.JSONSchema.Schema)
	}
	return badField(param, "type %q is not one of text, json_object, json_schema", clip(f.Type))
}

// mask makes masks for a constraint; nil without one. Where the reply begins within reasoning, that is free.
func (s *Server) mask(c constraint, thinking bool) (func() sample.Mask, error) {
	if c.key == "" {
		return nil, nil
	}
	m, err := s.masks.get(s.model.Tokens, c.key)
	if err != nil {
		return nil, badField(c.param, "%v", err)
	}
	if thinking {
		return func() sample.Mask {
			return newLazyMask(s.model.Tokens, "</think>", m, false)
		}, nil
	}
	return func() sample.Mask { return m.Start() }, nil
}
