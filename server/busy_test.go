package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minfer-go/minfer/engine"
)

// endless is a request that runs until it is cut off.
const endless = `{"stream":true,"messages":[{"role":"user","content":"Tell me a story."}],"ignore_eos":true,"logit_bias":[[1535,false]],"max_tokens":100000}`

// hold starts a stream and returns once it has begun, with what ends it.
func (r *rig) hold(body string) (end func()) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.web.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	resp, err := r.web.Client().Do(req) //nolint:bodyclose // the caller ends it
	if err != nil {
		r.Fatal(err)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || resp.StatusCode != http.StatusOK {
		r.Fatalf("%d, %v", resp.StatusCode, err)
	}
	return func() {
		cancel()
		resp.Body.Close()
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// slow is an engine on which an endless request lasts: the reference path.
func slow(o engine.Options) engine.Options {
	o.F32Activations, o.Threads, o.Context = true, 1, 1024
	return o
}

// TestSaturation: with one place and one that waits, a third request is refused with 429 and the second with 503 when its
// time is over; both say when to come back. Nothing of this disturbs the first.
func TestSaturation(t *testing.T) {
	m := tiny(t, slow(engine.Options{Sequences: 1, Queue: 1, QueueTimeout: 200 * time.Millisecond}))
	r := rigOn(t, m)
	end := r.hold(endless)
	defer end()
	var wg sync.WaitGroup
	wg.Go(func() {
		status, h, body := r.do(http.MethodPost, "/v1/chat/completions", `{`+capital+`}`)
		if status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" || parse(t, body).text("error", "type") != "unavailable_error" {
			t.Errorf("the second: %d %v %s", status, h, body)
		}
	})
	eventually(t, "a queued request", func() bool { return m.Engine.Counters().Queued == 1 })
	for path, want := range map[string]string{"/v1/chat/completions": "rate_limit_exceeded", "/v1/messages": "rate_limit_error", "/api/chat": "wait already"} {
		status, h, body := r.do(http.MethodPost, path, minimal[path]+`}`)
		if status != http.StatusTooManyRequests || h.Get("Retry-After") == "" || !strings.Contains(body, want) {
			t.Errorf("%s: %d %v %s", path, status, h, body)
		}
	}
	wg.Wait()
	if n := r.server.metrics.dropped.Load(); n != 4 {
		t.Errorf("%d requests were dropped, want 4", n)
	}
	if c := m.Engine.Counters(); c.Running != 1 {
		t.Errorf("%d run", c.Running)
	}
}

// TestClientGone: a client that goes away frees its place, whether it runs or waits, and its cells stay useful.
func TestClientGone(t *testing.T) {
	m := tiny(t, slow(engine.Options{Sequences: 1}))
	r := rigOn(t, m)
	end := r.hold(endless)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.web.URL+"/v1/chat/completions", strings.NewReader(`{`+capital+`}`))
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := r.web.Client().Do(req); err == nil {
			resp.Body.Close()
			t.Errorf("the waiting request was answered with %d", resp.StatusCode)
		}
	})
	eventually(t, "a queued request", func() bool { return m.Engine.Counters().Queued == 1 })
	cancel()
	wg.Wait()
	eventually(t, "an empty queue", func() bool { return m.Engine.Counters().Queued == 0 })
	end()
	eventually(t, "an idle engine", func() bool { return m.Engine.Counters().Running == 0 })
	eventually(t, "no request in flight", func() bool { return r.server.metrics.inFlight.Load() == 0 })
	if r.server.metrics.completed.Load() != 0 || r.server.metrics.completion.Load() != 0 {
		t.Error("what nobody received was counted")
	}
	if c := m.Engine.Counters(); c.Ended[engine.ReasonCancel] != 2 || c.Cells.Seqs > 1 {
		t.Errorf("%+v", c)
	}
}

// TestSlowReader: a client that reads nothing holds neither the engine nor others.
func TestSlowReader(t *testing.T) {
	m := tiny(t, engine.Options{Sequences: 2, Context: 1024})
	r := rigOn(t, m)
	conn, err := net.Dial("tcp", r.web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := strings.Replace(endless, `"stream":true`, `"stream":true,"logprobs":true,"top_logprobs":20`, 1)
	if _, err := io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the request to run", func() bool { return m.Engine.Counters().Running == 1 })
	for range 3 {
		if o := r.post("/v1/chat/completions", `{`+capital+`}`); o.text("choices", 0, "finish_reason") != "stop" {
			t.Errorf("%v", o.v)
		}
	}
	eventually(t, "the engine to be done", func() bool { return m.Engine.Counters().Ended[engine.ReasonLength] == 1 })
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

// A service is a server that listens, and can be told to stop.
type service struct {
	*rig
	stop context.CancelFunc
	done chan error
	url  string
	logs *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func serveOn(t *testing.T, m Model, change func(*Options)) *service {
	t.Helper()
	logs := &syncBuffer{}
	r := rigOn(t, m, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(logs, nil))
		change(o)
	})
	r.web.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &service{rig: r, stop: cancel, done: make(chan error, 1), url: "http://" + l.Addr().String(), logs: logs}
	r.web.URL = s.url
	go func() { s.done <- r.server.Serve(ctx, l) }()
	t.Cleanup(cancel)
	return s
}

func TestDrain(t *testing.T) {
	m := tiny(t, slow(engine.Options{Sequences: 2}))
	for _, c := range []struct {
		name      string
		limit     time.Duration
		body      string
		abandoned int64
	}{
		{"finishes in time", 20 * time.Second, `{"stream":true,"messages":[{"role":"user","content":"Tell me a story."}],"max_tokens":40}`, 0},
		{"is cut off", 50 * time.Millisecond, endless, 1},
	} {
		s := serveOn(t, m, func(o *Options) { o.Drain = c.limit })
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(resp.Body)
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		s.stop()
		eventually(t, "the listener to close", func() bool {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err == nil {
				conn.Close()
			}
			return err != nil
		})
		rest, _ := io.ReadAll(in)
		resp.Body.Close()
		if whole := strings.Contains(string(rest), "[DONE]"); whole != (c.abandoned == 0) {
			t.Errorf("%s: the stream ends with %.200q", c.name, rest[max(0, len(rest)-200):])
		}
		select {
		case err := <-s.done:
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: Serve does not return", c.name)
		}
		if have := s.server.metrics.abandoned.Load(); have != c.abandoned {
			t.Errorf("%s: %d abandoned, want %d", c.name, have, c.abandoned)
		}
		// A request on a connection that was accepted before.
		w := &recorder{h: http.Header{}}
		req, _ = http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(`{}`))
		s.server.Handler().ServeHTTP(w, req)
		if w.status != http.StatusServiceUnavailable || w.h.Get("Retry-After") == "" || s.server.metrics.rejected.Load() != 1 {
			t.Errorf("%s: while draining %d %v", c.name, w.status, w.h)
		}
		if !strings.Contains(s.logs.String(), `"msg":"draining"`) {
			t.Errorf("%s: %s", c.name, s.logs.String())
		}
	}
	eventually(t, "an idle engine", func() bool { return m.Engine.Counters().Running == 0 })
}

type recorder struct {
	h      http.Header
	status int
	bytes.Buffer
}

func (r *recorder) Header() http.Header    { return r.h }
func (r *recorder) WriteHeader(status int) { r.status = status }

// TestLog: one line for each request, with what it took.
func TestLog(t *testing.T) {
	m := tiny(t, engine.Options{Sequences: 1})
	s := serveOn(t, m, func(*Options) {})
	s.post("/v1/chat/completions", `{"user":"somebody",`+capital+`}`)
	s.refused("/v1/chat/completions", `{"x":1}`, http.StatusBadRequest)
	s.do(http.MethodGet, "/health", "")
	eventually(t, "two lines", func() bool { return strings.Count(s.logs.String(), `"msg":"request"`) == 2 })
	lines := strings.Split(strings.TrimSpace(s.logs.String()), "\n")
	first, second := parse(t, lines[0]), parse(t, lines[1])
	if first.text("path") != "/v1/chat/completions" || first.number("prompt_tokens") != 15 || first.number("cached_tokens") != 0 || first.number("completion_tokens") != 9 ||
		first.text("finish") != "stop" || first.text("user") != "somebody" || first.number("status") != 200 || first.number("first_token_ms") <= 0 {
		t.Errorf("%s", lines[0])
	}
	if second.text("level") != "WARN" || second.number("status") != 400 || !strings.Contains(second.text("error"), "x") {
		t.Errorf("%s", lines[1])
	}
}

// TestSlotsFile: a server that starts again finds the prompts that its predecessor evaluated; a file of another run is
// refused with the reason.
func TestSlotsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slots.kv")
	run := func(o engine.Options) (cached float64, logs string) {
		s := serveOn(t, tiny(t, o), func(o *Options) { o.SlotsFile, o.Drain = path, time.Second })
		cached = s.post("/v1/chat/completions", `{`+capital+`}`).number("usage", "prompt_tokens_details", "cached_tokens")
		s.stop()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		return cached, s.logs.String()
	}
	if cached, _ := run(engine.Options{Context: 512}); cached != 0 {
		t.Errorf("%v tokens were cached at first", cached)
	}
	if cached, logs := run(engine.Options{Context: 512}); cached != 14 || !strings.Contains(logs, "slots resumed") {
		t.Errorf("%v tokens were cached after a restart\n%s", cached, logs)
	}
	if cached, logs := run(engine.Options{Context: 256}); cached != 0 || !strings.Contains(logs, "this run has 256") {
		t.Errorf("%v tokens were cached in another context\n%s", cached, logs)
	}
	if err := os.WriteFile(path, []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cached, logs := run(engine.Options{Context: 256}); cached != 0 || !strings.Contains(logs, "starting empty") {
		t.Errorf("%v tokens were cached from a damaged file\n%s", cached, logs)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
}

// TestErrorsHaveAStatus: every failure of the packages below.
func TestErrorsHaveAStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{engine.ErrContextLength, 400},
		{engine.ErrRequest, 400},
		{engine.ErrBusy, 429},
		{errors.Join(engine.ErrBusy, errors.New("waited 1 s")), 503},
		{engine.ErrClosed, 503},
		{engine.ErrInternal, 500},
		{context.Canceled, statusClientGone},
		{errors.New("other"), 500},
	} {
		if have := asAPIError(c.err); have.status != c.want {
			t.Errorf("%v: %d, want %d", c.err, have.status, c.want)
		}
	}
	secret := asAPIError(errors.Join(engine.ErrInternal, errors.New("goroutine 1 [running]")))
	if strings.Contains(secret.message, "goroutine") {
		t.Error("a stack is told to clients")
	}
}

// TestWaiting: a stream that waits says so: with its place in the queue, which is 1 for the next, or by the pings that
// Anthropic's API has. Ollama's has nothing for it. A failure after that arrives in the stream.
func TestWaiting(t *testing.T) {
	m := tiny(t, slow(engine.Options{Sequences: 1, QueueTimeout: 400 * time.Millisecond}))
	r := rigOn(t, m)
	r.server.patience = 20 * time.Millisecond
	end := r.hold(endless)
	defer end()
	var wg sync.WaitGroup
	place := regexp.MustCompile(`(?m)^: queued, position (\d+)$`)
	for i, c := range []struct{ path, body string }{
		{"/v1/chat/completions", `{"stream":true,` + capital + `}`},
		{"/v1/responses", `{"stream":true,"input":"Hi"}`},
		{"/v1/completions", `{"stream":true,"prompt":"Hi"}`},
		{"/v1/messages", `{"stream":true,"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`},
		{"/api/chat", `{"messages":[{"role":"user","content":"Hi"}]}`},
	} {
		wg.Go(func() {
			status, _, text := r.do(http.MethodPost, c.path, c.body)
			if status != http.StatusOK || !strings.Contains(text, "waited") {
				t.Errorf("%s: %d %s", c.path, status, text)
			}
			switch told := place.FindStringSubmatch(text); c.path {
			case "/api/chat":
				if strings.Count(text, "\n") != 1 {
					t.Errorf("%s: %s", c.path, text)
				}
			case "/v1/messages":
				if told != nil || !strings.Contains(text, "event: ping\ndata: {\"type\":\"ping\"}\n\n") {
					t.Errorf("%s: %s", c.path, text)
				}
			default:
				if told == nil || told[1] != itoa(i+1) {
					t.Errorf("%s waits in place %d and says %v", c.path, i+1, told)
				}
			}
		})
		eventually(t, "a place in the queue", func() bool { return m.Engine.Counters().Queued == i+1 })
	}
	wg.Wait()
}
