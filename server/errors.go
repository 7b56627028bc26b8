package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/grammar"
	"github.com/minfer-go/minfer/sample"
)

// How long a refused client is asked to wait before it tries again.
const (
	retryBusy  = time.Second
	retryDrain = 5 * time.Second
)

// An apiError is an answer that is no success. Every API writes it in its own shape.
type apiError struct {
	status  int
	kind    string // OpenAI's type
	code    string // OpenAI's code
	param   string // the field that it is about
	message string
	retry   time.Duration // Retry-After
}

func (e *apiError) Error() string { return e.message }

// badField refuses a field of a request.
func badField(param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", param: param, message: param + ": " + fmt.Sprintf(format, args...)}
}

// codeContextLength is the code of prompts that do not fit.
const codeContextLength = "context_length_exceeded"

// tooLong refuses a prompt that does not fit: it has so many tokens and needs room for some more.
func tooLong(param string, tokens, more, room int) *apiError {
	e := badField(param, "the prompt is too long: %d tokens and %d of a reply are needed, %d are available", tokens, more, room)
	e.code = codeContextLength
	return e
}

// badRequest refuses a request as a whole.
func badRequest(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", message: fmt.Sprintf(format, args...)}
}

// renames are the fields of an API that stand for those of chat completions, where they have other names.
type renames map[string]string

// of is the API's name of a field.
func (n renames) of(field string) string {
	if name := n[field]; name != "" {
		return name
	}
	return field
}

// in makes an error that names a field of chat completions name the API's.
func (n renames) in(err error) error {
	var have *apiError
	if !errors.As(err, &have) || n[have.param] == "" {
		return err
	}
	e := *have
	e.param = n[have.param]
	if rest, ok := strings.CutPrefix(have.message, have.param+": "); ok {
		e.message = e.param + ": " + rest
	}
	return &e
}

func unavailable(message string, retry time.Duration) *apiError {
	return &apiError{status: http.StatusServiceUnavailable, kind: "unavailable_error", code: "unavailable", message: message, retry: retry}
}

// asAPIError gives an error of the packages below its status.
func asAPIError(err error) *apiError {
	var have *apiError
	if errors.As(err, &have) {
		return have
	}
	e := &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", message: err.Error()}
	switch {
	case errors.Is(err, engine.ErrContextLength):
		e.code = codeContextLength
	case errors.Is(err, engine.ErrRequest), errors.Is(err, sample.ErrConfig), errors.Is(err, chat.ErrTemplate), errors.Is(err, chat.ErrMessage):
	case errors.Is(err, grammar.ErrSyntax), errors.Is(err, grammar.ErrUnsupported), errors.Is(err, grammar.ErrLimit), errors.Is(err, grammar.ErrEmpty):
	case errors.Is(err, engine.ErrBusy) && strings.Contains(err.Error(), "waited"):
		return unavailable(err.Error(), retryBusy)
	case errors.Is(err, engine.ErrBusy):
		return &apiError{status: http.StatusTooManyRequests, kind: "rate_limit_error", code: "rate_limit_exceeded", message: err.Error(), retry: retryBusy}
	case errors.Is(err, engine.ErrClosed):
		return unavailable("the server is shutting down", retryDrain)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.status, e.kind, e.message = statusClientGone, "cancelled", "the request was cancelled"
	default:
		e.status, e.kind, e.code = http.StatusInternalServerError, "server_error", "internal_error"
		if errors.Is(err, engine.ErrInternal) { // its text has a stack, which is for the log alone
			e.message = firstLine(err)
		}
	}
	return e
}

// statusClientGone is what the log says of a request whose client went away; nobody receives it.
const statusClientGone = 499

// A shape is how an API writes errors.
type shape uint8

const (
	openAIShape shape = iota
	anthropicShape
	ollamaShape
)

// shapeOf is the shape of the API that a request is for.
func shapeOf(r *http.Request) shape {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/v1/messages"), strings.HasPrefix(path, "/v1/models") && asAnthropic(r):
		return anthropicShape
	case strings.HasPrefix(path, "/api/"):
		return ollamaShape
	}
	return openAIShape
}

// asAnthropic reports whether a client speaks Anthropic's API, where that shares paths with OpenAI's.
func asAnthropic(r *http.Request) bool { return r.Header.Get("Anthropic-Version") != "" }

// body is the error as a JSON value.
func (s shape) body(e *apiError) any {
	switch s {
	case anthropicShape:
		return map[string]any{"type": "error", "error": map[string]any{"type": anthropicKind(e.status), "message": e.message}}
	case ollamaShape:
		return map[string]any{"error": e.message}
	}
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"error": map[string]any{"message": e.message, "type": e.kind, "param": orNull(e.param), "code": orNull(e.code)}}
}

// anthropicKind is Anthropic's name for a status.
func anthropicKind(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	case http.StatusInternalServerError:
		return "api_error"
	}
	return "invalid_request_error"
}

// writeError answers with an error.
func writeError(w http.ResponseWriter, s shape, e *apiError) {
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(e.retry.Seconds()))))
	}
	writeJSON(w, e.status, s.body(e))
}

// writeJSON answers with a JSON value. A failure to write means that the client is gone.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := encode(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer cannot be written as JSON","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// encode is json.Marshal without the escapes for HTML.
func encode(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
