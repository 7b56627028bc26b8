package e2e

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/server"
)

const (
	key      = "test-key"
	question = "What is the capital of France?"
	answer   = "The capital of France is Paris."
)

// serve starts a server on the built-in model and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	m, err := minfer.Open(context.Background(), "tiny", minfer.WithSequences(4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	defaults := sample.Default()
	defaults.Temperature = 0
	s, err := server.New(t.Context(), server.Model{Name: "tiny", File: m.File(), Tokens: m.Tokenizer(), Format: m.Format(), Engine: m.Engine()},
		server.Options{Version: "test", Keys: []string{key}, Sampling: defaults, MaxTokens: 256})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return web.URL
}

// schema is the parameters of a tool.
var schema = map[string]any{
	"type": "object", "properties": map[string]any{"city": map[string]any{"enum": []string{"Paris"}}}, "required": []string{"city"}, "additionalProperties": false,
}
