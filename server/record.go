package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// A record is what the log tells of a request.
type record struct {
	id     string // told to the client
	user   string
	usage  usage
	ran    bool   // a run took place
	reason string // why the first reply ended
	err    *apiError
}

type recordKey struct{}

// recordOf is the record of a request's context.
func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

// finish takes what a run took.
func (q *record) finish(s *Server, r *run) {
	q.usage, q.ran = r.usage(), true
	q.reason = string(r.endings[0].reason)
	s.metrics.ended(&q.usage, r)
	if s.slots != nil {
		s.slots.touch()
	}
}

// embedded takes what embeddings took.
func (q *record) embedded(s *Server, u usage) {
	q.usage, q.ran, q.reason = u, true, "embedded"
	s.metrics.prompt.Add(int64(u.prompt))
	s.metrics.promptLength.observe(float64(u.prompt))
	s.metrics.queue.observe(u.queued.Seconds())
}

func (q *record) fail(e *apiError) { q.err = e }

// A statusWriter remembers the status. It keeps the powers of the writer below for http.ResponseController.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write notes the implied status.
func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// logged writes one line for each request and turns a panic into an answer.
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, q := time.Now(), &record{id: "req_" + newID()}
		w.Header().Set("X-Request-Id", q.id)
		w.Header().Set("Request-Id", q.id) // as Anthropic's clients read it
		sw := &statusWriter{ResponseWriter: w}
		r = r.WithContext(context.WithValue(r.Context(), recordKey{}, q))
		defer func() {
			if p := recover(); p != nil {
				q.err = &apiError{status: http.StatusInternalServerError, kind: "server_error", code: "internal_error", message: "internal error"}
				s.log.Error("panic", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				if sw.status == 0 {
					writeError(sw, shapeOf(r), q.err)
				}
			}
			s.write(r, q, sw.status, time.Since(began))
		}()
		next.ServeHTTP(sw, r)
	})
}

// write logs a request.
func (s *Server) write(r *http.Request, q *record, status int, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case status >= http.StatusInternalServerError:
		level = slog.LevelError
	case q.err != nil || status >= http.StatusBadRequest:
		level = slog.LevelWarn
	case !q.ran && r.Method == http.MethodGet:
		level = slog.LevelDebug // pages, health and scrapes
	}
	if status == 0 || r.Context().Err() != nil && q.err == nil && q.ran && q.reason == "cancelled" {
		status = statusClientGone
	}
	attrs := []slog.Attr{
		slog.String("id", q.id), slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", status), slog.String("client", r.RemoteAddr),
		slog.Float64("total_ms", ms(took)),
	}
	if q.user != "" {
		attrs = append(attrs, slog.String("user", q.user))
	}
	if u := &q.usage; q.ran {
		attrs = append(attrs, slog.Int("prompt_tokens", u.prompt), slog.Int("cached_tokens", u.cached), slog.Int("completion_tokens", u.generated),
			slog.Float64("queue_ms", ms(u.queued)), slog.Float64("prefill_ms", ms(u.prefill)), slog.Float64("decode_ms", ms(u.decode)),
			slog.Float64("first_token_ms", ms(u.first)), slog.String("finish", q.reason))
	}
	if q.err != nil {
		attrs = append(attrs, slog.String("error", q.err.message))
	}
	s.log.LogAttrs(context.WithoutCancel(r.Context()), level, "request", attrs...)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
