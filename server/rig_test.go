package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	_ "github.com/minfer-go/minfer/backend/cpu" // runs the model
	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/internal/builtin"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// tiny opens the built-in model with an engine of its own.
func tiny(t testing.TB, o engine.Options, opts ...chat.Option) Model {
	t.Helper()
	f, err := gguf.FromBytes("tiny", builtin.Tiny())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(f)
	if err != nil {
		t.Fatal(err)
	}
	format, err := chat.New(f, tok, opts...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(context.Background(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return Model{Name: "tiny", File: f, Tokens: tok, Format: format, Engine: e}
}

// shared is a model that tests which leave no trace use together: loading takes most of a short test's time.
var shared = struct {
	once  sync.Once
	model Model
}{}

func sharedModel(t testing.TB) Model {
	t.Helper()
	shared.once.Do(func() {
		f, err := gguf.FromBytes("tiny", builtin.Tiny())
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.New(f)
		if err != nil {
			t.Fatal(err)
		}
		format, err := chat.New(f, tok)
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.Open(context.Background(), f, engine.Options{Context: 1024, Sequences: 8})
		if err != nil {
			t.Fatal(err)
		}
		shared.model = Model{Name: "tiny", File: f, Tokens: tok, Format: format, Engine: e}
	})
	return shared.model
}

// A rig is a server under test.
type rig struct {
	*testing.T
	server *Server
	web    *httptest.Server
}

// newRig starts a server on the shared model.
func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	return rigOn(t, sharedModel(t), change...)
}

func rigOn(t *testing.T, m Model, change ...func(*Options)) *rig {
	t.Helper()
	o := Options{Version: "test", Sampling: sample.Default(), MaxTokens: 256}
	for _, f := range change {
		f(&o)
	}
	s, err := New(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, server: s, web: httptest.NewServer(s.Handler())}
	t.Cleanup(r.web.Close)
	return r
}

// shapeFor is the shape of a path's API.
func shapeFor(path string) shape {
	return shapeOf(httptest.NewRequest(http.MethodPost, path, http.NoBody))
}

// do sends a request; body is a JSON text, empty for none.
func (r *rig) do(method, path, body string, headers ...string) (int, http.Header, string) {
	r.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, r.web.URL+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.web.Client().Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// post sends a body that must be answered with 200 and a JSON object.
func (r *rig) post(path, body string) object {
	r.Helper()
	status, _, text := r.do(http.MethodPost, path, body)
	if status != http.StatusOK {
		r.Fatalf("POST %s %s: %d %s", path, body, status, text)
	}
	return parse(r.T, text)
}

// refused sends a body that must be refused, and returns the error's text.
func (r *rig) refused(path, body string, want int) string {
	r.Helper()
	status, _, text := r.do(http.MethodPost, path, body)
	if status != want {
		r.Errorf("POST %s %s: %d %s, want %d", path, body, status, text, want)
	}
	return text
}

// stream sends a body and returns the data of the events, and their names.
func (r *rig) stream(path, body string) (data, names []string) {
	r.Helper()
	status, h, text := r.do(http.MethodPost, path, body)
	if status != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		r.Fatalf("POST %s %s: %d %s %s", path, body, status, h.Get("Content-Type"), text)
	}
	name := ""
	in := bufio.NewScanner(strings.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if v, ok := strings.CutPrefix(in.Text(), "event: "); ok {
			name = v
		} else if v, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			data, names, name = append(data, v), append(names, name), ""
		}
	}
	return data, names
}

// object is a decoded JSON value with a way to reach into it.
type object struct {
	t testing.TB
	v any
}

func parse(t testing.TB, text string) object {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object{t, v}
}

// at goes down by keys and indices; a missing one gives nil.
func (o object) at(path ...any) any {
	v := o.v
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func (o object) text(path ...any) string {
	s, _ := o.at(path...).(string)
	return s
}

func (o object) number(path ...any) float64 {
	n, ok := o.at(path...).(json.Number)
	if !ok {
		o.t.Helper()
		o.t.Fatalf("%v is no number in %v", path, o.v)
	}
	f, _ := n.Float64()
	return f
}
