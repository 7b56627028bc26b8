// Package load measures a server that speaks OpenAI's streaming completions, as clients see it: throughput, time to the first
// token, time between tokens. It knows nothing of the server but its address, so that servers of other makers can be
// measured in the same run.
package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrConfig says that a setting makes no sense.
var ErrConfig = errors.New("load: bad setting")

// Limits of a Config.
const (
	MaxClients  = 1 << 10
	MaxRequests = 1 << 20
	MaxWords    = 1 << 20
	maxLine     = 1 << 20 // bytes of a streamed line
)

// A Config describes a load.
type Config struct {
	URL       string  // of the server, such as http://127.0.0.1:8080
	Key       string  // API key; empty for none
	Clients   int     // most requests at once
	Requests  int     // in all
	Rate      float64 // requests per second that arrive, as a Poisson process; 0: each client asks again at once
	Words     int     // of a prompt
	Shared    int     // of them, the same in every prompt
	MaxTokens int     // of a reply, which goes on after an end-of-generation token where the server lets it
	Seed      uint64  // of prompts and arrivals
}

// validate refuses what makes no sense.
func (c *Config) validate() error {
	switch {
	case c.Clients < 1 || c.Clients > MaxClients:
		return fmt.Errorf("%w: %d clients, must lie in [1, %d]", ErrConfig, c.Clients, MaxClients)
	case c.Requests < 1 || c.Requests > MaxRequests:
		return fmt.Errorf("%w: %d requests, must lie in [1, %d]", ErrConfig, c.Requests, MaxRequests)
	case c.Words < 1 || c.Words > MaxWords || c.Shared < 0 || c.Shared > c.Words:
		return fmt.Errorf("%w: %d words, %d of them shared", ErrConfig, c.Words, c.Shared)
	case c.MaxTokens < 1:
		return fmt.Errorf("%w: replies of %d tokens", ErrConfig, c.MaxTokens)
	case !(c.Rate >= 0) || c.Rate > 1e6:
		return fmt.Errorf("%w: %g requests per second", ErrConfig, c.Rate)
	}
	return nil
}

// A Result is what the clients saw.
type Result struct {
	Requests, Failed  int
	FirstError        string // of a failed request
	Prompt, Cached    int    // tokens, as the server counts them
	Tokens            int    // generated
	Took              time.Duration
	First, Between    []time.Duration // sorted: to the first token of a reply, between two tokens of one
	TokensPerSecond   float64
	RequestsPerSecond float64
}

// Percentile is the p-th percentile of sorted times, the nearest rank; 0 of none.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p/100*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// one is what a client saw of a request.
type one struct {
	first          time.Duration
	between        []time.Duration
	prompt, cached int
	tokens         int
	err            error
}

// Run puts a load on a server. Cancelling ctx ends it with an error.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.Clients}}
	defer client.CloseIdleConnections()
	work := make(chan int)
	go arrive(ctx, &c, work)
	all := make([]one, c.Requests)
	var clients sync.WaitGroup
	began := time.Now()
	for range c.Clients {
		clients.Go(func() {
			for i := range work {
				all[i] = ask(ctx, client, &c, i)
			}
		})
	}
	clients.Wait()
	took := time.Since(began)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r := &Result{Requests: c.Requests, Took: took}
	for _, o := range all {
		if o.err != nil {
			if r.Failed++; r.FirstError == "" {
				r.FirstError = o.err.Error()
			}
			continue
		}
		r.Prompt, r.Cached, r.Tokens = r.Prompt+o.prompt, r.Cached+o.cached, r.Tokens+o.tokens
		r.First, r.Between = append(r.First, o.first), append(r.Between, o.between...)
	}
	slices.Sort(r.First)
	slices.Sort(r.Between)
	r.TokensPerSecond, r.RequestsPerSecond = float64(r.Tokens)/took.Seconds(), float64(r.Requests-r.Failed)/took.Seconds()
	return r, nil
}

// arrive hands out the numbers of the requests, as they arrive.
func arrive(ctx context.Context, c *Config, work chan<- int) {
	defer close(work)
	random := rand.New(rand.NewPCG(c.Seed, 1))
	next := time.Now()
	for i := range c.Requests {
		if c.Rate > 0 {
			next = next.Add(time.Duration(random.ExpFloat64() / c.Rate * float64(time.Second)))
			select {
			case <-time.After(time.Until(next)):
			case <-ctx.Done():
				return
			}
		}
		select {
		case work <- i:
		case <-ctx.Done():
			return
		}
	}
}

// words are what prompts are made of.
var words = strings.Fields("the a brave little old fox bird river stone house went saw found said and then but with under over green red quick slow day night")

// prompt is the i-th prompt: its shared beginning and words of its own.
func (c *Config) prompt(i int) string {
	shared, own := rand.New(rand.NewPCG(c.Seed, 2)), rand.New(rand.NewPCG(c.Seed, 3+uint64(i)))
	text := make([]string, c.Words)
	for j := range text {
		random := own
		if j < c.Shared {
			random = shared
		}
		text[j] = words[random.IntN(len(words))]
	}
	return strings.Join(text, " ")
}

// chunk is what matters of a streamed line.
type chunk struct {
	Choices []struct {
		Text string `json:"text"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// ask sends the i-th request and reads its reply.
func ask(ctx context.Context, client *http.Client, c *Config, i int) (o one) {
	body, err := json.Marshal(map[string]any{
		"prompt": c.prompt(i), "max_tokens": c.MaxTokens, "temperature": 0, "stream": true, "ignore_eos": true, "stream_options": map[string]any{"include_usage": true},
	})
	if err != nil {
		return one{err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.URL, "/")+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return one{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return one{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 400))
		return one{err: fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(text))}
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, maxLine)
	last := began
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var got chunk
		if err := json.Unmarshal([]byte(data), &got); err != nil {
			return one{err: err}
		}
		if got.Error != nil {
			return one{err: errors.New(got.Error.Message)}
		}
		now := time.Now()
		if len(got.Choices) > 0 && got.Choices[0].Text != "" {
			if o.first == 0 {
				o.first = now.Sub(began)
			} else {
				o.between = append(o.between, now.Sub(last))
			}
			last = now
		}
		if u := got.Usage; u != nil {
			o.prompt, o.cached, o.tokens = u.Prompt, u.Details.Cached, u.Completion
		}
	}
	if err := in.Err(); err != nil {
		return one{err: err}
	}
	if o.tokens == 0 {
		return one{err: errors.New("the reply has no usage")}
	}
	return o
}
