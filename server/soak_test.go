package server

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minfer-go/minfer/engine"
)

// soakTime is how long TestSoak lasts: a second, half a minute with MINFER_LONG=1, or what MINFER_LONG says, such as 1h.
func soakTime() time.Duration {
	switch text := os.Getenv("MINFER_LONG"); text {
	case "":
		return time.Second
	default:
		if d, err := time.ParseDuration(text); err == nil {
			return d
		}
		return 30 * time.Second
	}
}

// changing matches what differs between two answers to one request: ids, times, what was cached, and comments.
var changing = regexp.MustCompile(`"[a-z_]*id":"[^"]*"|"created[a-z_]*":("[^"]*"|\d+)|"completed_at":\d+|"[a-z_]*_duration":\d+|"cached_tokens":\d+|` +
	`"input_tokens":\d+|"cache_read_input_tokens":\d+|(?m)^: .*\n\n`)

// stable is an answer without them.
func stable(text string) string { return changing.ReplaceAllString(text, "") }

// TestSoak lets clients of every API ask and leave at random times. No byte is wrong, and when they are gone there are no
// more goroutines, cells or bytes in use than before.
func TestSoak(t *testing.T) {
	m := tiny(t, engine.Options{Context: 512, Sequences: 4, Queue: 64})
	r := rigOn(t, m)
	asks := []struct{ path, body string }{
		{"/v1/chat/completions", `{"temperature":0,"messages":[{"role":"user","content":"%s"}],"max_tokens":20}`},
		{"/v1/chat/completions", `{"temperature":0,"stream":true,"logprobs":true,"messages":[{"role":"user","content":"%s"}],"max_tokens":20}`},
		{"/v1/chat/completions", `{"temperature":0,"n":3,"messages":[{"role":"user","content":"%s"}],"response_format":{"type":"json_object"},"max_tokens":20}`},
		{"/v1/completions", `{"temperature":0,"prompt":"%s","max_tokens":12}`},
		{"/v1/responses", `{"temperature":0,"stream":true,"input":"%s","max_output_tokens":12}`},
		{"/v1/messages", `{"temperature":0,"messages":[{"role":"user","content":"%s"}],"max_tokens":12}`},
		{"/v1/embeddings", `{"input":["%s","and more"]}`},
		{"/api/chat", `{"options":{"temperature":0,"num_predict":12},"messages":[{"role":"user","content":"%s"}]}`},
	}
	topics := []string{"What is the capital of France?", "Tell me a story about a brave fox.", "Two plus two is", "Name three colours and a bird."}
	var mu sync.Mutex
	answers := map[string]string{}
	ask := func(ctx context.Context, path, body string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.web.URL+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := r.web.Client().Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode == http.StatusTooManyRequests {
			return err
		}
		have := stable(string(b))
		mu.Lock()
		defer mu.Unlock()
		if want, ok := answers[path+body]; ok && have != want {
			t.Errorf("%s %s:\n%s\nbefore it was\n%s", path, body, have, want)
		}
		answers[path+body] = have
		return nil
	}
	load := func(lasting time.Duration, seed uint64) {
		var clients sync.WaitGroup
		end := time.Now().Add(lasting)
		for c := range 8 {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(c)))
				for time.Now().Before(end) {
					one := asks[random.IntN(len(asks))]
					ctx, cancel := context.WithCancel(t.Context())
					if random.IntN(3) == 0 {
						ctx, cancel = context.WithTimeout(t.Context(), time.Duration(random.IntN(8000))*time.Microsecond)
					}
					if err := ask(ctx, one.path, fmt.Sprintf(one.body, topics[random.IntN(len(topics))])); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		clients.Wait()
		r.web.Client().CloseIdleConnections()
		eventually(t, "no request in flight", func() bool { return r.server.metrics.inFlight.Load() == 0 && m.Engine.Counters().Running == 0 })
	}
	memory := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	load(soakTime()/4, 1) // what is compiled and kept for good
	goroutines, bytes := runtime.NumGoroutine(), memory()
	load(soakTime(), 2)
	eventually(t, fmt.Sprintf("%d goroutines, now %d", goroutines, runtime.NumGoroutine()), func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := memory(); now > bytes+bytes/4+4<<20 {
		t.Errorf("%d bytes are in use, before it were %d", now, bytes)
	}
	if c := m.Engine.Counters().Cells; c.Used+c.Free != c.Total {
		t.Errorf("cells %+v", c)
	}
	whole := `{"prompt":[` + strings.TrimSuffix(strings.Repeat("700,", 511), ",") + `],"max_tokens":1}`
	r.post("/v1/completions", whole) // all cells can be had
	if len(answers) < 16 {
		t.Errorf("only %d different answers", len(answers))
	}
}
