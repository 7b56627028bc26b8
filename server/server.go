package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// ErrOptions says that an option of New makes no sense.
var ErrOptions = errors.New("server: bad option")

// A Model is what a server serves. Its parts belong together.
type Model struct {
	Name   string // under which clients ask for it
	File   *gguf.File
	Tokens *tokenizer.Tokenizer
	Format *chat.Format
	Engine *engine.Engine
}

// Options configure a server.
type Options struct {
	Version      string   // reported to clients
	Aliases      []string // further names of the model
	Keys         []string // API keys, any of which is needed; none lets everybody in
	Origins      []string // browser origins that may call, "*" for all
	Hosts        []string // names beside loopback ones under which a server without keys is called
	Loopback     bool     // the server listens on a loopback address: without keys, requests for other hosts are refused
	MaxBody      int64    // bytes of a request's body; 0 for DefaultMaxBody
	MaxTokens    int      // of a reply where the request does not say; 0 or negative to the end of the context
	Sampling     sample.Config
	QueueTimeout time.Duration // as the engine has it, for messages
	Drain        time.Duration // how long Serve lets accepted requests finish when it is told to stop
	SlotsFile    string        // keeps evaluated prompts across restarts; empty for none
	Log          *slog.Logger  // nil for none
}

// A Server answers HTTP requests.
type Server struct {
	options  Options
	model    Model
	log      *slog.Logger
	started  time.Time
	names    []string // of the model, in lower case
	masks    masks
	metrics  metrics
	slots    *slotsFile
	guard    guard
	draining atomic.Bool
	patience time.Duration // after which a stream says that it still waits
	handler  http.Handler
}

// New checks the options and the model's chat template. The engine stays the caller's to close, after Serve has returned.
func New(ctx context.Context, m Model, o Options) (*Server, error) {
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = -1
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBody < 0 || o.Drain < 0 {
		return nil, fmt.Errorf("%w: body limit %d, drain time %s", ErrOptions, o.MaxBody, o.Drain)
	}
	if m.Name == "" || len(m.Name) > maxName {
		return nil, fmt.Errorf("%w: the model's name %q has %d bytes, must have 1 to %d", ErrOptions, m.Name, len(m.Name), maxName)
	}
	// Requests append to these.
	o.Sampling.LogitBias, o.Sampling.Ban = slices.Clip(o.Sampling.LogitBias), slices.Clip(o.Sampling.Ban)
	if err := o.Sampling.Validate(m.Tokens.VocabSize()); err != nil {
		return nil, err
	}
	if err := m.Format.Check(ctx); err != nil {
		return nil, err
	}
	s := &Server{options: o, model: m, log: o.Log, started: time.Now(), patience: keepAlive}
	for _, name := range append([]string{m.Name}, o.Aliases...) {
		s.names = append(s.names, strings.ToLower(name))
	}
	var err error
	if s.guard, err = newGuard(o); err != nil {
		return nil, err
	}
	s.metrics.init()
	if o.SlotsFile != "" {
		s.slots = newSlotsFile(o.SlotsFile, m.Engine, o.Log)
	}
	s.handler = s.routes()
	return s, nil
}

// ModelName is the name that a model file is served under: its base without ".gguf" and without the number of a part.
func ModelName(path string) string {
	name := filepath.Base(path)
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".gguf") {
		name = strings.TrimSuffix(name, ext)
	}
	if i := len(name) - len("-00001-of-00002"); i > 0 && splitSuffix.MatchString(name[i:]) {
		name = name[:i]
	}
	return name
}

// Handler answers requests; Serve uses it.
func (s *Server) Handler() http.Handler { return s.handler }

// answers is an endpoint. An error that it returns is written in the API's shape.
type answers func(w http.ResponseWriter, r *http.Request) error

// routes connects paths with endpoints.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	work := func(path string, f answers) { // what the engine works on
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.work(w, r, f) })
	}
	plain := func(pattern string, f answers) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, f) })
	}
	work("/v1/chat/completions", s.chatCompletions)
	work("/v1/completions", s.completions)
	work("/v1/embeddings", s.embeddings)
	work("/v1/responses", s.responses)
	plain("GET /v1/models", s.listModels)
	plain("GET /v1/models/{model...}", s.getModel)

	work("/v1/messages", s.messages)
	plain("POST /v1/messages/count_tokens", s.countTokens)

	work("/api/chat", s.ollamaChat)
	work("/api/generate", s.ollamaGenerate)
	plain("GET /api/tags", s.ollamaTags)
	plain("POST /api/show", s.ollamaShow)
	plain("GET /api/version", s.ollamaVersions)

	plain("GET /health", s.health)
	plain("GET /metrics", s.scrape)
	plain("POST /tokenize", s.tokenize)
	plain("POST /detokenize", s.detokenize)
	plain("POST /apply-template", s.applyTemplate)
	plain("GET /{$}", servePage)
	plain("GET /page/{file}", servePage)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		e := &apiError{status: http.StatusNotFound, kind: "invalid_request_error", code: "unknown_url", message: fmt.Sprintf("no endpoint %s %s", r.Method, r.URL.Path)}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
			if _, pattern := mux.Handler(probe); method != r.Method && pattern != "/" && pattern != "" {
				w.Header().Set("Allow", method)
				e.status, e.code, e.message = http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("%s takes %s, not %s", r.URL.Path, method, r.Method)
			}
		}
		recordOf(r.Context()).fail(e)
		writeError(w, shapeOf(r), e)
	})
	return s.logged(s.guarded(mux))
}

// answer runs an endpoint and writes its error.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f answers) {
	if err := f(w, r); err != nil {
		e := asAPIError(err)
		recordOf(r.Context()).fail(e)
		if e.status != statusClientGone {
			writeError(w, shapeOf(r), e)
		}
	}
}

// work is answer for endpoints that keep the engine busy: they are counted, and refused while the server drains.
func (s *Server) work(w http.ResponseWriter, r *http.Request, f answers) {
	if s.draining.Load() {
		s.metrics.rejected.Add(1)
		s.answer(w, r, func(http.ResponseWriter, *http.Request) error {
			return unavailable("the server is shutting down", retryDrain)
		})
		return
	}
	s.metrics.requests.Add(1)
	s.metrics.inFlight.Add(1)
	defer s.metrics.inFlight.Add(-1)
	s.answer(w, r, func(w http.ResponseWriter, r *http.Request) error {
		err := f(w, r)
		if err != nil && (errors.Is(err, engine.ErrBusy) || errors.Is(err, engine.ErrClosed)) {
			s.metrics.dropped.Add(1)
		}
		if err == nil && r.Context().Err() == nil && recordOf(r.Context()).err == nil {
			s.metrics.completed.Add(1)
		}
		return err
	})
}

// wants checks the model that a request names. None means the one there is.
func (s *Server) wants(name string) error {
	want := strings.ToLower(strings.TrimSuffix(name, ":latest"))
	if want == "" || slices.Contains(s.names, want) || slices.Contains(s.names, strings.TrimSuffix(want, ".gguf")) {
		return nil
	}
	return &apiError{
		status: http.StatusNotFound, kind: "invalid_request_error", code: "model_not_found", param: "model",
		message: fmt.Sprintf("no model %q; this server has %q", clip(name), s.model.Name),
	}
}

// clip shortens what a client sent for a message.
func clip(text string) string {
	if len(text) > maxName {
		return strings.ToValidUTF8(text[:maxName], "") + "..."
	}
	return text
}
