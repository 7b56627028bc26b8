package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// readBody reads a request's body within the limits of size and time.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		e := badRequest("bodies with Content-Encoding %q are not read", clip(coding))
		e.status = http.StatusUnsupportedMediaType
		return nil, e
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readBodyTimeout)) // not every writer has deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.options.MaxBody))
	_ = control.SetReadDeadline(time.Time{}) // the connection is watched from now on for the client's going
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &apiError{
			status: http.StatusRequestEntityTooLarge, kind: "invalid_request_error", code: "request_too_large",
			message: badRequest("the body has more than %d bytes", large.Limit).message,
		}
	case err != nil:
		return nil, badRequest("reading the body: %v", err)
	}
	return body, nil
}

// decode reads the body of a request by a table.
func decode[T any](s *Server, w http.ResponseWriter, r *http.Request, table fields[T], into *T) error {
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	return table.decode(body, into)
}

// An encoder writes a run in an API's streaming form.
type encoder interface {
	begin(r *run) error      // when it is known that the run works
	event(e event) error     // in the order of the run
	end(r *run) error        // all replies have ended well
	fail(e *apiError) error  // in place of end
	idle(position int) error // nothing has happened for a while; the request may still stand in the queue, at 1 or further back
}

// stream runs tasks and writes their events as they come. An error that is returned has not been answered yet.
func (s *Server) stream(ctx context.Context, enc encoder, tasks ...*task) error {
	r, err := s.start(ctx, tasks)
	if err != nil {
		return err
	}
	defer func() {
		r.close()
		recordOf(ctx).finish(s, r)
	}()
	begun := false
	begin := func() error {
		if begun {
			return nil
		}
		begun = true
		return enc.begin(r)
	}
	ticker := time.NewTicker(s.patience)
	defer ticker.Stop()
	for {
		select {
		case e, ok := <-r.events:
			if !ok {
				if err := context.Cause(ctx); err != nil {
					return nil // the client is gone: nobody to tell
				}
				if err := begin(); err != nil {
					return nil // likewise
				}
				_ = enc.end(r)
				return nil
			}
			if e.kind == endEvent && e.ending.err != nil {
				failed := asAPIError(e.ending.err)
				recordOf(ctx).fail(failed)
				if !begun {
					return failed
				}
				_ = enc.fail(failed)
				return nil
			}
			if begin() != nil || enc.event(e) != nil {
				return nil // the client is gone, or does not read
			}
			ticker.Reset(s.patience)
		case <-ticker.C:
			if begin() != nil || enc.idle(r.position()) != nil {
				return nil
			}
		}
	}
}

// A wholeCall is a call that has been collected.
type wholeCall struct{ id, name, arguments string }

// A whole is a reply that has been collected.
type whole struct {
	content, reasoning string
	calls              []wholeCall
	tokens             []scored
	ending             ending
}

// each runs tasks to their end and calls f with each event. An event of a failure ends it with that failure.
func (s *Server) each(ctx context.Context, tasks []*task, f func(event)) (*run, error) {
	r, err := s.start(ctx, tasks)
	if err != nil {
		return nil, err
	}
	defer func() {
		r.close()
		recordOf(ctx).finish(s, r)
	}()
	for e := range r.events {
		if e.kind == endEvent && e.ending.err != nil {
			return nil, e.ending.err
		}
		f(e)
	}
	return r, context.Cause(ctx)
}

// collect runs tasks to their end and adds up the replies.
func (s *Server) collect(ctx context.Context, tasks ...*task) ([]whole, *run, error) {
	n := 0
	for _, t := range tasks {
		n += max(t.n, 1)
	}
	all := make([]whole, n)
	r, err := s.each(ctx, tasks, func(e event) {
		w := &all[e.choice]
		w.tokens = append(w.tokens, e.tokens...)
		switch e.kind {
		case contentEvent:
			w.content += e.text
		case reasoningEvent:
			w.reasoning += e.text
		case callEvent:
			w.calls = append(w.calls, wholeCall{id: e.id, name: e.text})
		case argumentsEvent:
			w.calls[e.index].arguments += e.text
		case endEvent:
			w.ending = e.ending
		}
	})
	return all, r, err
}

// A lines writes a stream of JSON values, each sent at once: server-sent events or lines.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newLines(w http.ResponseWriter) *lines { return &lines{w, http.NewResponseController(w)} }

// start sends the header.
func (l *lines) start(contentType string) error {
	h := l.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // proxies shall not wait for more
	l.w.WriteHeader(http.StatusOK)
	return nil
}

// write sends bytes; a client that does not take them in time is given up.
func (l *lines) write(b []byte) error {
	_ = l.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has deadlines
	if _, err := l.w.Write(b); err != nil {
		return err
	}
	return l.control.Flush()
}

// data sends a server-sent event without a name.
func (l *lines) data(v any) error { return l.named("", v) }

// named sends a server-sent event.
func (l *lines) named(name string, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	var out []byte
	if name != "" {
		out = append(append(append(out, "event: "...), name...), '\n')
	}
	return l.write(append(append(append(out, "data: "...), b...), "\n\n"...))
}

// comment sends a line of server-sent events that clients leave out.
func (l *lines) comment(text string) error { return l.write([]byte(": " + text + "\n\n")) }

// line sends a JSON value on a line.
func (l *lines) line(v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return l.write(append(b, '\n'))
}
