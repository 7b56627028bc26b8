package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fake streams three tokens, the second after a pause, to every request whose prompt lacks the word that fails.
func fake(t *testing.T, seen func(prompt string), most *atomic.Int64) *httptest.Server {
	t.Helper()
	var running atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		var body struct {
			Prompt    string
			MaxTokens int `json:"max_tokens"`
			Stream    bool
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || !body.Stream || body.MaxTokens != 3 || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%+v, %v", body, err)
		}
		seen(body.Prompt)
		if strings.HasPrefix(body.Prompt, "night") {
			http.Error(w, "too dark", http.StatusTooManyRequests)
			return
		}
		for i := range 3 {
			if i == 1 {
				time.Sleep(20 * time.Millisecond)
			}
			fmt.Fprintf(w, ": comment\n\ndata: {\"choices\":[{\"text\":\"x%d\"}]}\n\n", i)
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(web.Close)
	return web
}

func TestRun(t *testing.T) {
	var mu sync.Mutex
	var prompts []string
	var most atomic.Int64
	web := fake(t, func(p string) {
		mu.Lock()
		defer mu.Unlock()
		prompts = append(prompts, p)
	}, &most)
	c := Config{URL: web.URL + "/", Key: "k", Clients: 3, Requests: 40, Words: 12, Shared: 0, MaxTokens: 3, Seed: 5}
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	dark, distinct := 0, map[string]bool{}
	for _, p := range prompts {
		distinct[p] = true
		if strings.HasPrefix(p, "night") {
			dark++
		}
		if len(strings.Fields(p)) != 12 {
			t.Errorf("prompt %q", p)
		}
	}
	good := 40 - dark
	if dark == 0 || r.Failed != dark || !strings.Contains(r.FirstError, "status 429: too dark") {
		t.Errorf("%d failed, want %d: %s", r.Failed, dark, r.FirstError)
	}
	if len(distinct) != 40 || most.Load() > 3 || most.Load() < 2 {
		t.Errorf("%d distinct prompts, %d at once", len(distinct), most.Load())
	}
	if r.Tokens != 3*good || r.Prompt != 10*good || r.Cached != 4*good || len(r.First) != good || len(r.Between) != 2*good {
		t.Errorf("%+v", r)
	}
	if p := Percentile(r.Between, 99); p < 20*time.Millisecond || Percentile(r.First, 50) >= 20*time.Millisecond {
		t.Errorf("between tokens %s, to the first %s", p, Percentile(r.First, 50))
	}
	var b bytes.Buffer
	row := Row{Server: "fake", Prompt: "distinct", Config: c, Result: r}
	if err := WriteMarkdown(&b, []Row{row, row}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 || strings.Count(lines[0], "|") != strings.Count(lines[3], "|") || !strings.Contains(lines[3], "| closed |") || !strings.Contains(lines[3], "40%") {
		t.Errorf("%s", b.String())
	}
	b.Reset()
	var out map[string]any
	if err := row.WriteJSON(&b); err != nil || json.Unmarshal(b.Bytes(), &out) != nil || out["failed"] != float64(dark) || out["between_p99"].(float64) < 0.02 {
		t.Errorf("%s, %v", b.String(), err)
	}
}

// TestArrivals: with a rate, requests arrive at times of their own; the same seed gives the same prompts.
func TestArrivals(t *testing.T) {
	var most atomic.Int64
	web := fake(t, func(string) {}, &most)
	c := Config{URL: web.URL, Key: "k", Clients: 16, Requests: 30, Rate: 200, Words: 5, Shared: 5, MaxTokens: 3, Seed: 1}
	began := time.Now()
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 50*time.Millisecond || took > 10*time.Second {
		t.Errorf("30 requests at 200 per second took %s", took)
	}
	if c.prompt(1) != c.prompt(2) {
		t.Error("shared prompts differ")
	}
	c.Shared = 3
	a, b := strings.Fields(c.prompt(1)), strings.Fields(c.prompt(2))
	if strings.Join(a[:3], " ") != strings.Join(b[:3], " ") || c.prompt(1) == c.prompt(2) {
		t.Errorf("%v, %v", a, b)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	c.Rate = 0.001
	if _, err := Run(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	good := Config{Clients: 1, Requests: 1, Words: 1, MaxTokens: 1}
	for _, change := range []func(*Config){
		func(c *Config) { c.Clients = 0 }, func(c *Config) { c.Clients = MaxClients + 1 }, func(c *Config) { c.Requests = 0 },
		func(c *Config) { c.Requests = MaxRequests + 1 }, func(c *Config) { c.Words = 0 }, func(c *Config) { c.Shared = 2 },
		func(c *Config) { c.MaxTokens = 0 }, func(c *Config) { c.Rate = -1 }, func(c *Config) { c.Rate = 1e7 },
	} {
		c := good
		change(&c)
		if _, err := Run(t.Context(), c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := good.validate(); err != nil {
		t.Error(err)
	}
}

func TestPercentile(t *testing.T) {
	var times []time.Duration
	if Percentile(times, 50) != 0 {
		t.Error("of none")
	}
	for i := range 100 {
		times = append(times, time.Duration(i+1))
	}
	for p, want := range map[float64]time.Duration{0: 1, 1: 1, 50: 50, 90: 90, 99: 99, 100: 100} {
		if have := Percentile(times, p); have != want {
			t.Errorf("%g: %d, want %d", p, have, want)
		}
	}
}
